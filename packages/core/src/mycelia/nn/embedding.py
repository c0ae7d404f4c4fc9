"""Tables of vectors by index, and indices as vectors of zeros and a one."""

from __future__ import annotations

from mycelia.engine.base import errors, ignored
from mycelia.engine.base.dtypes import float32
from mycelia.engine.tensors.initializer import initializer
from mycelia.engine.tensors.tensor import Parameter
from mycelia.nn.cell import Cell
from mycelia.nn.clipping import clipped
from mycelia.nn.parameters import check_positive
from mycelia.nn.parts import has_strategy, operator


class EmbeddingLookup(Cell):
    """A table of vectors looked up by integer ids; an id outside the table gives zeros.

    `max_norm` scales longer vectors down to it; `target`, `slice_mode`, `manual_shapes` and `sparse` speak
    of clusters and have no effect. Shapes: x [...] of int -> [..., embedding_size]; `embedding_table`
    [vocab_size, embedding_size].
    """

    BATCH_SLICE = "batch_slice"
    FIELD_SLICE = "field_slice"
    TABLE_ROW_SLICE = "table_row_slice"
    TABLE_COLUMN_SLICE = "table_column_slice"

    @ignored.arguments(
        slice_mode="the table is not cut among devices",
        manual_shapes="the table is not cut among devices",
        sparse="the table's gradient is dense",
    )
    def __init__(
        self,
        vocab_size,
        embedding_size,
        param_init="normal",
        target="CPU",
        slice_mode="batch_slice",
        manual_shapes=None,
        max_norm=None,
        sparse=True,
        dtype=float32,
    ):
        super().__init__()
        check_positive("EmbeddingLookup", vocab_size=vocab_size, embedding_size=embedding_size)
        if target not in ("CPU", "DEVICE"):
            raise errors.one_of(target, ["CPU", "DEVICE"], subject="EmbeddingLookup", what="target")
        if max_norm is not None and (
            isinstance(max_norm, bool) or not isinstance(max_norm, (int, float)) or max_norm <= 0
        ):
            raise errors.value_error(
                "EmbeddingLookup", f"max_norm must be a positive number or None, but got {max_norm!r}"
            )
        self.vocab_size, self.embedding_size, self.max_norm, self.target = (
            vocab_size,
            embedding_size,
            max_norm,
            target,
        )
        self.embedding_table = Parameter(
            initializer(param_init, (vocab_size, embedding_size), dtype), name="embedding_table"
        )

    def construct(self, indices):
        from mycelia.engine.ops.arrays.gathering import embedding
        from mycelia.engine.ops.arrays.shape import expand_dims
        from mycelia.engine.ops.elementwise.cast import cast
        from mycelia.engine.ops.elementwise.clipping import maximum, minimum

        inside = cast((indices >= 0) & (indices < self.vocab_size), self.embedding_table.dtype)
        rows = embedding(minimum(maximum(indices, 0), self.vocab_size - 1), self.embedding_table)
        rows = rows * expand_dims(inside, -1)
        return rows if self.max_norm is None else clipped(rows, float(self.max_norm), (-1,))

    def extend_repr(self):
        return f"vocab_size={self.vocab_size}, embedding_size={self.embedding_size}"


class Embedding(Cell):
    """A table of vectors looked up by integer ids; the row `padding_idx` starts as zeros.

    Shapes: x [...] of int -> [..., embedding_size]; `embedding_table` [vocab_size, embedding_size].
    Errors: IndexError for an id outside [0, vocab_size).
    """

    gather = operator("Gather")

    def __init__(
        self,
        vocab_size,
        embedding_size,
        use_one_hot=False,
        embedding_table="normal",
        dtype=float32,
        padding_idx=None,
    ):
        super().__init__()
        check_positive("Embedding", vocab_size=vocab_size, embedding_size=embedding_size)
        self.vocab_size, self.embedding_size, self.use_one_hot = vocab_size, embedding_size, use_one_hot
        self.dtype, self.padding_idx = dtype, padding_idx
        table = initializer(embedding_table, (vocab_size, embedding_size), dtype)
        if padding_idx is not None:
            if not 0 <= padding_idx < vocab_size:
                raise errors.value_error(
                    "Embedding", f"padding_idx must be in [0, {vocab_size}), but got {padding_idx}"
                )
            values = table.asnumpy().copy()
            values[padding_idx] = 0
            from mycelia.engine.tensors.tensor import Tensor

            table = Tensor(values, dtype)
        self.embedding_table = Parameter(table, name="embedding_table")

    def construct(self, ids):
        from mycelia.engine.ops.arrays.gathering import embedding

        if has_strategy(self, "gather"):
            return self.gather(self.embedding_table, ids, 0)
        return embedding(ids, self.embedding_table)

    def extend_repr(self):
        return (
            f"vocab_size={self.vocab_size}, embedding_size={self.embedding_size}, "
            f"use_one_hot={self.use_one_hot}, "
            f"embedding_table={self.embedding_table}, dtype={self.dtype}, padding_idx={self.padding_idx}"
        )


class OneHot(Cell):
    """`on_value` at each index along a new `axis` of size `depth`, else `off_value`.

    Shapes: indices [...] -> [..., depth] for axis=-1.
    """

    def __init__(self, axis=-1, depth=1, on_value=1.0, off_value=0.0, dtype=float32):
        super().__init__()
        self.axis, self.depth, self.on_value, self.off_value, self.dtype = (
            axis,
            depth,
            on_value,
            off_value,
            dtype,
        )

    def construct(self, indices):
        from mycelia.engine.ops.arrays.masks import one_hot
        from mycelia.engine.tensors.tensor import Tensor

        return one_hot(
            indices,
            self.depth,
            Tensor(self.on_value, self.dtype),
            Tensor(self.off_value, self.dtype),
            self.axis,
        )
