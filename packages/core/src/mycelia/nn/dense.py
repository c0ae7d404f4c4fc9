"""Fully connected layers, and those that give the same elements another shape."""

from __future__ import annotations

import math

from mycelia.engine.base import errors
from mycelia.engine.base.dtypes import float32
from mycelia.engine.ops.linalg import products as _linalg
from mycelia.engine.tensors.initializer import HeUniform, Uniform, initializer
from mycelia.engine.tensors.tensor import Parameter
from mycelia.nn.activation import get_activation
from mycelia.nn.cell import Cell
from mycelia.nn.parameters import check_positive
from mycelia.nn.parts import Part, has_strategy, operator


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
        check_positive("Dense", in_channels=in_channels, out_channels=out_channels)
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
        if has_strategy(self, "matmul", "bias_add"):
            x = self._by_operators(x)
        else:
            x = _linalg.dense(x, self.weight, self.bias)
        return x if self.activation is None else self.activation(x)

    def _by_operators(self, x):
        """As `construct` without the activation, by the operators that may have strategies."""
        lead = x.shape[:-1]
        x = self.matmul(x if len(lead) == 1 else x.reshape(-1, x.shape[-1]), self.weight)
        x = x if self.bias is None else self.bias_add(x, self.bias)
        return x if len(lead) == 1 else x.reshape(*lead, self.out_channels)

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
        check_positive("Linear", in_features=in_features, out_features=out_features)
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
        check_positive(
            "BiDense", in1_channels=in1_channels, in2_channels=in2_channels, out_channels=out_channels
        )
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
