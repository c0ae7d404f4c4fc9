"""Fully connected layers and the layers that select or rearrange: Flatten, Dropout, Embedding, OneHot, ..."""

from __future__ import annotations

import math

from mycelia.engine.base import errors, ignored
from mycelia.engine.base.dtypes import float32
from mycelia.engine.ops.linalg import products as _linalg
from mycelia.engine.tensors.initializer import HeUniform, Uniform, initializer
from mycelia.engine.tensors.tensor import Parameter
from mycelia.nn.activation import get_activation
from mycelia.nn.cell import Cell
from mycelia.nn.parts import Part, operator


def _positive(owner: str, **values) -> None:
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int):
            raise errors.type_error(owner, f"{name} must be an int, but got {value!r}")
        if value < 1:
            raise errors.value_error(owner, f"{name} must be positive, but got {value}")


class Dense(Cell):
    """Fully connected layer: ``activation(x @ weight.T + bias)``.

    Shapes: x [..., in_channels] -> [..., out_channels]; weight [out_channels, in_channels].
    """

    matmul, bias_add = operator("MatMul", transpose_b=True), operator("BiasAdd")
    reshape, shape_op = operator("Reshape"), operator("Shape")
    activation_flag = Part(lambda cell: cell.activation is not None)

    def __init__(
        self,
        in_channels,
        out_channels,
        weight_init=None,
        bias_init=None,
        has_bias=True,
        activation=None,
        dtype=float32,
    ):
        super().__init__()
        _positive("Dense", in_channels=in_channels, out_channels=out_channels)
        self.in_channels, self.out_channels, self.has_bias = in_channels, out_channels, has_bias
        default = HeUniform(math.sqrt(5))
        shape = (out_channels, in_channels)
        self.weight = Parameter(
            initializer(default if weight_init is None else weight_init, shape, dtype), name="weight"
        )
        self.bias = None
        if has_bias:
            bound = Uniform(1 / math.sqrt(in_channels)) if bias_init is None else bias_init
            self.bias = Parameter(initializer(bound, (out_channels,), dtype), name="bias")
        self.activation = get_activation(activation) if isinstance(activation, str) else activation
        if self.activation is not None and not callable(self.activation):
            raise errors.type_error(
                "Dense", f"activation must be a name, a Cell or a function, but got {activation!r}"
            )

    def construct(self, x):
        x = _linalg.dense(x, self.weight, self.bias)
        return x if self.activation is None else self.activation(x)

    def extend_repr(self):
        sizes = f"input_channels={self.in_channels}, output_channels={self.out_channels}"
        text = f"{sizes}, has_bias=True" if self.has_bias else sizes
        return text if self.activation is None else f"{text}, activation={self.activation}"


class Linear(Cell):
    """Fully connected layer under the names of `mint`: ``x @ weight.T + bias``.

    Shapes: x [..., in_features] -> [..., out_features]; weight [out_features, in_features].
    """

    def __init__(self, in_features, out_features, bias=True, weight_init=None, bias_init=None, dtype=None):
        super().__init__()
        _positive("Linear", in_features=in_features, out_features=out_features)
        if not isinstance(bias, bool):
            raise errors.type_error("Linear", f"bias must be a bool, but got {bias!r}")
        dtype = float32 if dtype is None else dtype
        self.in_features, self.out_features, self.has_bias = in_features, out_features, bias
        weight_init = HeUniform(math.sqrt(5)) if weight_init is None else weight_init
        self.weight = Parameter(initializer(weight_init, (out_features, in_features), dtype), name="weight")
        self.bias = None
        if bias:
            bound = Uniform(1 / math.sqrt(in_features)) if bias_init is None else bias_init
            self.bias = Parameter(initializer(bound, (out_features,), dtype), name="bias")

    def construct(self, input):
        return _linalg.dense(input, self.weight, self.bias)

    def extend_repr(self):
        sizes = f"input_features={self.in_features}, output_features={self.out_features}"
        return f"{sizes}, has_bias=True" if self.has_bias else sizes


class BiDense(Cell):
    """Bilinear layer: ``out[k] = x1 @ weight[k] @ x2 + bias[k]``.

    Shapes: input1 [..., in1_channels], input2 [..., in2_channels] -> [..., out_channels];
    weight [out_channels, in1_channels, in2_channels].
    """

    def __init__(
        self,
        in1_channels,
        in2_channels,
        out_channels,
        weight_init=None,
        bias_init=None,
        has_bias=True,
        dtype=float32,
    ):
        super().__init__()
        _positive("BiDense", in1_channels=in1_channels, in2_channels=in2_channels, out_channels=out_channels)
        if not isinstance(has_bias, bool):
            raise errors.type_error("BiDense", f"has_bias must be a bool, but got {has_bias!r}")
        self.in1_channels, self.in2_channels, self.out_channels = in1_channels, in2_channels, out_channels
        self.has_bias = has_bias
        bound = Uniform(1 / math.sqrt(in1_channels))
        shape = (out_channels, in1_channels, in2_channels)
        self.weight = Parameter(
            initializer(bound if weight_init is None else weight_init, shape, dtype), name="weight"
        )
        self.bias = None
        if has_bias:
            self.bias = Parameter(
                initializer(bound if bias_init is None else bias_init, (out_channels,), dtype), name="bias"
            )

    def construct(self, input1, input2):
        from mycelia.engine.ops.arrays.axes import transpose
        from mycelia.engine.ops.arrays.shape import reshape

        for name, x, size in (("input1", input1, self.in1_channels), ("input2", input2, self.in2_channels)):
            if not x.ndim or x.shape[-1] != size or input1.shape[:-1] != input2.shape[:-1]:
                raise errors.shape_error(
                    "BiDense",
                    f"{name} must be [..., {size}], but the shapes are {input1.shape} and {input2.shape}",
                )
        lead = input1.shape[:-1]
        x1, x2 = reshape(input1, (-1, self.in1_channels)), reshape(input2, (-1, self.in2_channels))
        # [in1, out * in2]: one product gives input1 @ weight[k] for every k
        table = reshape(transpose(self.weight, (1, 0, 2)), (self.in1_channels, -1))
        rows = reshape(x1 @ table, (-1, self.out_channels, self.in2_channels))
        out = reshape(rows @ reshape(x2, (-1, self.in2_channels, 1)), (*lead, self.out_channels))
        return out if self.bias is None else out + self.bias

    def extend_repr(self):
        return (
            f"in1_channels={self.in1_channels}, in2_channels={self.in2_channels}, "
            f"output_channels={self.out_channels}, "
            f"has_bias={self.has_bias}"
        )


class Unflatten(Cell):
    """Split dimension `axis` into `unflattened_size`, one of which may be -1. Shapes: [..., n, ...] ->
    [..., *sizes, ...]."""

    def __init__(self, axis: int, unflattened_size):
        super().__init__()
        if isinstance(axis, bool) or not isinstance(axis, int):
            raise errors.type_error("Unflatten", f"axis must be an int, but got {axis!r}")
        if not isinstance(unflattened_size, (tuple, list)) or any(
            isinstance(n, bool) or not isinstance(n, int) for n in unflattened_size
        ):
            raise errors.type_error(
                "Unflatten", f"unflattened_size must be a tuple of ints, but got {unflattened_size!r}"
            )
        self.axis, self.unflattened_size = axis, tuple(unflattened_size)

    def construct(self, input_x):
        from mycelia.engine.ops.arrays.shape import reshape

        shape = input_x.shape
        if not -len(shape) <= self.axis < len(shape):
            raise errors.value_error(
                "Unflatten", f"axis must be in [{-len(shape)}, {len(shape)}), but got {self.axis}"
            )
        axis = self.axis % len(shape)
        return reshape(input_x, (*shape[:axis], *self.unflattened_size, *shape[axis + 1 :]))


class Flatten(Cell):
    """Join the dimensions `start_dim` to `end_dim`. Shapes: [N, a, b, ...] -> [N, a * b * ...]."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1):
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def check_axis_valid(self, axis: int, ndim: int) -> None:
        """Errors: ValueError unless `axis` is one of `ndim` axes, counted from either end."""
        if not -ndim <= axis < ndim:
            raise errors.value_error(
                "Flatten", f"start_dim and end_dim must be in [{-ndim}, {ndim}), but got {axis}"
            )

    def construct(self, x):
        from mycelia.engine.ops.arrays.axes import flatten

        return flatten(x, start_dim=self.start_dim, end_dim=self.end_dim)


class Identity(Cell):
    """The input itself. Arguments of the constructor are ignored."""

    def __init__(self, *args, **kwargs):
        del args, kwargs  # so that it can stand for any layer
        super().__init__()

    def construct(self, input):
        return input


class Dropout(Cell):
    """In training, zero each element with probability `p` and scale the rest by ``1 / (1 - p)``.

    `keep_prob` is the old name for ``1 - p``. Raises ValueError for a probability outside [0, 1).
    """

    @ignored.arguments(dtype="the result has the dtype of the input")
    def __init__(self, keep_prob: float = 0.5, p: float | None = None, dtype=float32):
        super().__init__()
        if p is None:
            if (
                isinstance(keep_prob, bool)
                or not isinstance(keep_prob, (int, float))
                or not 0 < keep_prob <= 1
            ):
                raise errors.value_error("Dropout", f"keep_prob must be in (0, 1], but got {keep_prob!r}")
            self._shown = f"keep_prob={keep_prob}"
            p = 1 - keep_prob
        else:
            if isinstance(p, bool) or not isinstance(p, (int, float)) or not 0 <= p < 1:
                raise errors.value_error("Dropout", f"p must be in [0, 1), but got {p!r}")
            self._shown = f"p={p}"
        self.p, self.keep_prob = float(p), keep_prob

    def construct(self, x):
        from mycelia.engine.ops.random.random import dropout

        return dropout(x, self.p, self.training) if self.training and self.p > 0 else x

    def extend_repr(self):
        return self._shown


class _ChannelDropout(Cell):
    """In training, zero whole channels with probability `p` and scale the rest by ``1 / (1 - p)``."""

    def __init__(self, p: float = 0.5):
        super().__init__()
        owner = type(self).__name__
        if not isinstance(p, float):
            raise errors.type_error(owner, f"p must be a float, but got {p!r}")
        if not 0 <= p <= 1:
            raise errors.value_error(owner, f"p must be in [0, 1], but got {p}")
        self.p = p

    def construct(self, x):
        if not self.training or self.p == 0:
            return x
        if self.p == 1:
            return x * 0.0
        from mycelia.engine.ops.random import random

        return getattr(random, self._function)(x, self.p)

    def extend_repr(self):
        return f"p={1 - self.p}"  # MindSpore prints how many it keeps


class Dropout1d(_ChannelDropout):
    """Dropout of whole channels. Shapes: [N, C, L] or [C, L] -> same.
    Errors: ValueError for p outside [0, 1].
    """

    _function = "dropout1d"

    def extend_repr(self):
        return ""


class Dropout2d(_ChannelDropout):
    """Dropout of whole channels. Shapes: [N, C, H, W] -> same. Errors: ValueError for p outside [0, 1]."""

    _function = "dropout2d"


class Dropout3d(_ChannelDropout):
    """Dropout of whole channels. Shapes: [N, C, D, H, W] -> same. Errors: ValueError for p outside [0, 1]."""

    _function = "dropout3d"


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
        _positive("EmbeddingLookup", vocab_size=vocab_size, embedding_size=embedding_size)
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
        return rows if self.max_norm is None else _clipped(rows, float(self.max_norm), (-1,))

    def extend_repr(self):
        return f"vocab_size={self.vocab_size}, embedding_size={self.embedding_size}"


def _clipped(x, limit, axes):
    """x scaled down along `axes` where its Euclidean norm is above `limit`."""
    from mycelia.engine.ops.elementwise.clipping import maximum
    from mycelia.engine.ops.elementwise.powers import sqrt
    from mycelia.engine.ops.reductions.reduce import sum as total

    length = sqrt(total(x * x, axes, True))
    return x * limit / maximum(length, limit)


class ClipByNorm(Cell):
    """``x * clip_norm / max(norm(x), clip_norm)``, the norm over `axis` (all by default), in float32.

    Shapes: x any, clip_norm a scalar or broadcastable to x -> as x.
    """

    def __init__(self, axis=None):
        super().__init__()
        items = axis if isinstance(axis, tuple) else () if axis is None else (axis,)
        if any(isinstance(a, bool) or not isinstance(a, int) for a in items):
            raise errors.type_error(
                "ClipByNorm", f"axis must be None, an int or a tuple of ints, but got {axis!r}"
            )
        self.axis = axis

    def construct(self, x, clip_norm):
        from mycelia.engine.ops.elementwise.cast import cast

        axes = tuple(range(x.ndim)) if self.axis is None else self.axis
        return _clipped(cast(x, float32), cast(clip_norm, float32), axes)


class Embedding(Cell):
    """A table of vectors looked up by integer ids; the row `padding_idx` starts as zeros.

    Shapes: x [...] of int -> [..., embedding_size]; `embedding_table` [vocab_size, embedding_size].
    Errors: IndexError for an id outside [0, vocab_size).
    """

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
        _positive("Embedding", vocab_size=vocab_size, embedding_size=embedding_size)
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
