"""Checks and Parameters that layers of `nn` and of `mint.nn` have in common."""

from __future__ import annotations

import math

from mycelia.engine import _C
from mycelia.engine.base import errors
from mycelia.engine.capture.trace import of_this_thread
from mycelia.engine.tensors.initializer import HeUniform, Uniform, initializer
from mycelia.engine.tensors.tensor import Parameter
from mycelia.nn.cell import Cell


def check_positive(owner: str, **values) -> None:
    """Raise TypeError unless each value is an int, ValueError unless it is at least 1."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int):
            raise errors.type_error(owner, f"{name} must be an int, but got {value!r}")
        if value < 1:
            raise errors.value_error(owner, f"{name} must be positive, but got {value}")


def check_group_norm(num_groups, num_channels) -> None:
    """Raise TypeError or ValueError unless the channels can be cut into that many groups."""
    check_positive("GroupNorm", num_groups=num_groups, num_channels=num_channels)
    if num_channels % num_groups:
        raise errors.value_error(
            "GroupNorm", f"num_channels {num_channels} must be divisible by num_groups {num_groups}"
        )


def parameters(shape, dtype, trained: bool, **initializers) -> tuple[Parameter, ...]:
    """A Parameter of this shape for each name, filled by its initializer; `trained`: with a gradient."""
    return tuple(
        Parameter(initializer(init, shape, dtype), name=name, requires_grad=trained)
        for name, init in initializers.items()
    )


def release(parameter: Parameter) -> None:
    """Gives up the memory of a Parameter; within a capture, when that has ended."""

    def drop() -> None:
        parameter._assign(_C.make_traced(None, parameter.dtype, parameter.shape))

    trace = of_this_thread()
    if trace is None:
        drop()
    else:
        trace.root.afterwards.append(drop)


class Convolution(Cell):
    """Channels, weight and bias of all convolution layers.

    The weight is [out_channels, in_channels / groups, *kernel_size], that of a transposed layer has
    in_channels and out_channels exchanged; the bias is [out_channels] or None.
    """

    _rank = 2
    _transposed = False

    def _init_channels(self, in_channels, out_channels, **group) -> None:
        """Check and keep the channels and the number of groups, under the name that it is given by."""
        owner = type(self).__name__
        check_positive(owner, in_channels=in_channels, out_channels=out_channels, **group)
        ((name, count),) = group.items()
        if in_channels % count or out_channels % count:
            raise errors.value_error(
                owner,
                f"in_channels {in_channels} and out_channels {out_channels} must be divisible by {name} "
                f"{count}",
            )
        self.in_channels, self.out_channels = in_channels, out_channels
        setattr(self, name, count)

    def _init_parameters(self, groups: int, kernel, dtype, has_bias, weight_init=None, bias_init=None):
        """Make weight and bias; returns their initializers, which are uniform unless given (He et al. 2015,
        bounds of PyTorch)."""
        first, second = self.out_channels, self.in_channels
        if self._transposed:
            first, second = second, first
        shape = (first, second // groups, *kernel)
        weight_init = HeUniform(math.sqrt(5)) if weight_init is None else weight_init
        self.weight = Parameter(initializer(weight_init, shape, dtype), name="weight")
        self.bias = None
        if has_bias:
            bias_init = Uniform(1 / math.sqrt(math.prod(shape[1:]))) if bias_init is None else bias_init
            self.bias = Parameter(initializer(bias_init, (self.out_channels,), dtype), name="bias")
        return weight_init, bias_init
