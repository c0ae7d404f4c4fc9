"""Convolution layers: `Conv1d`, `Conv2d`, `Conv3d` and their transposes. Layout NC... only."""

from __future__ import annotations

import math

from mycelia import errors
from mycelia.common.initializer import HeUniform, Uniform, initializer
from mycelia.dtypes import float32
from mycelia.nn.cell import Cell
from mycelia.ops import conv as _conv
from mycelia.tensor import Parameter


class _Conv(Cell):
    """What all convolution layers share: checks, weight and bias."""

    _rank = 2
    _transposed = False

    def __init__(self, in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias,
                 weight_init, bias_init, data_format, dtype):  # fmt: skip
        super().__init__()
        owner, rank = type(self).__name__, self._rank
        for name, value in (("in_channels", in_channels), ("out_channels", out_channels), ("group", group)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise errors.type_error(owner, f"{name} must be an int, but got {value!r}")
            if value < 1:
                raise errors.value_error(owner, f"{name} must be positive, but got {value}")
        if in_channels % group or out_channels % group:
            raise errors.value_error(
                owner,
                f"in_channels {in_channels} and out_channels {out_channels} must be divisible by group {group}",
            )
        if pad_mode not in ("same", "valid", "pad"):
            raise errors.one_of(pad_mode, ["same", "valid", "pad"], subject=owner, what="pad_mode")
        if data_format not in ("NCHW", "NCDHW", "NCW"):
            raise errors.error(
                errors.NotSupportedError,
                owner,
                f"data_format {data_format!r}: only channels-first layouts are computed",
            )
        self.in_channels, self.out_channels, self.group = in_channels, out_channels, group
        self.kernel_size = _conv.spread("kernel_size", kernel_size, rank, 1, owner)
        self.stride = _conv.spread("stride", stride, rank, 1, owner)
        self.dilation = _conv.spread("dilation", dilation, rank, 1, owner)
        self.pad_mode, self.padding = pad_mode, padding
        self.has_bias, self.format = has_bias, data_format
        self.weight_init, self.bias_init = weight_init, bias_init
        first, second = (in_channels, out_channels) if self._transposed else (out_channels, in_channels)
        shape = (first, second // group, *self.kernel_size)
        default = HeUniform(math.sqrt(5))
        self.weight = Parameter(
            initializer(default if weight_init is None else weight_init, shape, dtype), name="weight"
        )
        self._pads = None if pad_mode == "same" else self._pads_for((1,) * rank)
        self.bias = None
        if has_bias:
            fan_in = shape[1] * math.prod(self.kernel_size)
            bound = Uniform(1 / math.sqrt(fan_in)) if bias_init is None else bias_init
            self.bias = Parameter(initializer(bound, (out_channels,), dtype), name="bias")

    def _pads_for(self, size: tuple[int, ...]) -> tuple[int, ...]:
        return _conv.explicit_pads(
            type(self).__name__,
            self.pad_mode,
            self.padding,
            size,
            self.kernel_size,
            self.stride,
            self.dilation,
        )

    def construct(self, x):
        if x.ndim != self._rank + 2:
            raise errors.shape_error(
                type(self).__name__, f"x must have rank {self._rank + 2}, but its shape is {list(x.shape)}"
            )
        pads = self._pads_for(x.shape[2:]) if self._pads is None else self._pads
        return _conv._conv(
            x, self.weight, self.bias, stride=self.stride, pad=pads, dilation=self.dilation, group=self.group
        )

    def extend_repr(self):
        return (
            f"input_channels={self.in_channels}, output_channels={self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}, pad_mode={self.pad_mode}, padding={self.padding}, dilation={self.dilation}, "
            f"group={self.group}, has_bias={self.has_bias}, weight_init={self.weight_init}, bias_init={self.bias_init}, "
            f"format={self.format}"
        )


class Conv1d(_Conv):
    """1-D convolution.

    Shapes: x [N, in_channels, L] -> [N, out_channels, L']. `pad_mode`: 'same', 'valid', or 'pad' with `padding`.
    """

    _rank = 1

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, pad_mode="same", padding=0, dilation=1, group=1,
                 has_bias=False, weight_init=None, bias_init=None, dtype=float32):  # fmt: skip
        super().__init__(in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias,
                         weight_init, bias_init, "NCW", dtype)  # fmt: skip


class Conv2d(_Conv):
    """2-D convolution.

    Shapes: x [N, in_channels, H, W] -> [N, out_channels, H', W']. `pad_mode`: 'same', 'valid', or 'pad' with `padding`
    (one int, or top, bottom, left, right).
    """

    _rank = 2

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, pad_mode="same", padding=0, dilation=1, group=1,
                 has_bias=False, weight_init=None, bias_init=None, data_format="NCHW", dtype=float32):  # fmt: skip
        super().__init__(in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias,
                         weight_init, bias_init, data_format, dtype)  # fmt: skip


class Conv3d(_Conv):
    """3-D convolution.

    Shapes: x [N, in_channels, D, H, W] -> [N, out_channels, D', H', W'].
    """

    _rank = 3

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, pad_mode="same", padding=0, dilation=1, group=1,
                 has_bias=False, weight_init=None, bias_init=None, data_format="NCDHW", dtype=float32):  # fmt: skip
        super().__init__(in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias,
                         weight_init, bias_init, data_format, dtype)  # fmt: skip
