"""Fully connected layers and the layers that only rearrange or select: Flatten, Dropout, Embedding, OneHot, Pad, ..."""

from __future__ import annotations

import math

from mycelia import errors
from mycelia.common.initializer import HeUniform, Uniform, initializer
from mycelia.dtypes import float32
from mycelia.nn.activation import get_activation
from mycelia.nn.cell import Cell
from mycelia.ops import linalg as _linalg
from mycelia.tensor import Parameter


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
        text = f"input_channels={self.in_channels}, output_channels={self.out_channels}, has_bias={self.has_bias}"
        return text if self.activation is None else f"{text}, activation={self.activation}"


class Flatten(Cell):
    """Join the dimensions `start_dim` to `end_dim`. Shapes: [N, a, b, ...] -> [N, a * b * ...]."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1):
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def construct(self, x):
        from mycelia.ops.shape import flatten

        return flatten(x, start_dim=self.start_dim, end_dim=self.end_dim)


class Identity(Cell):
    """The input itself. Arguments of the constructor are ignored."""

    def __init__(self, *args, **kwargs):
        super().__init__()

    def construct(self, input):
        return input


class Dropout(Cell):
    """In training, zero each element with probability `p` and scale the rest by ``1 / (1 - p)``.

    `keep_prob` is the old name for ``1 - p``. Raises ValueError for a probability outside [0, 1).
    """

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
        self.p = float(p)

    def construct(self, x):
        from mycelia.ops.random import dropout

        return dropout(x, self.p, self.training) if self.training and self.p > 0 else x

    def extend_repr(self):
        return self._shown


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
            from mycelia.tensor import Tensor

            table = Tensor(values, dtype)
        self.embedding_table = Parameter(table, name="embedding_table")

    def construct(self, ids):
        from mycelia.ops.index import embedding

        return embedding(ids, self.embedding_table)

    def extend_repr(self):
        return (
            f"vocab_size={self.vocab_size}, embedding_size={self.embedding_size}, use_one_hot={self.use_one_hot}, "
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
        from mycelia.ops.index import one_hot
        from mycelia.tensor import Tensor

        return one_hot(
            indices,
            self.depth,
            Tensor(self.on_value, self.dtype),
            Tensor(self.off_value, self.dtype),
            self.axis,
        )
