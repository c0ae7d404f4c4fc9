"""Convolution layers: `Conv1d`, `Conv2d`, `Conv3d` and their transposes. Layout NC... only."""

from __future__ import annotations

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.base.dtypes import float32
from mycelia.engine.ops.arrays.padding import pad
from mycelia.engine.ops.arrays.shape import reshape
from mycelia.engine.ops.nn_ops import conv as _conv
from mycelia.engine.ops.nn_ops import conv_functions as _conv_functions
from mycelia.engine.ops.nn_ops import conv_geometry as _conv_geometry
from mycelia.nn.parameters import Convolution
from mycelia.nn.parts import has_strategy, operator


class _Conv(Convolution):
    """What all convolution layers share; the constructor is that of images."""

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, pad_mode="same", padding=0, dilation=1,
        group=1, has_bias=False, weight_init=None, bias_init=None, data_format="NCHW", dtype=float32,
    ):  # fmt: skip
        super().__init__()
        owner, rank = type(self).__name__, self._rank
        self._init_channels(in_channels, out_channels, group=group)
        if pad_mode not in ("same", "valid", "pad"):
            raise errors.one_of(pad_mode, ["same", "valid", "pad"], subject=owner, what="pad_mode")
        if pad_mode != "pad" and np.any(padding):
            raise errors.value_error(
                owner, f"padding must be 0 when pad_mode is {pad_mode!r}, but got {padding}"
            )
        if data_format not in ("NCHW", "NCDHW"):
            raise errors.error(
                errors.NotSupportedError,
                owner,
                f"data_format {data_format!r}: only channels-first layouts are computed",
            )
        self._kernel = _conv_geometry.spread("kernel_size", kernel_size, rank, 1, owner)
        self._stride = _conv_geometry.spread("stride", stride, rank, 1, owner)
        self._dilation = _conv_geometry.spread("dilation", dilation, rank, 1, owner)
        # One-dimensional layers show and store themselves as MindSpore's do: with a height of 1.
        lead = (1,) if rank == 1 else ()
        self.kernel_size, self.stride = (*lead, *self._kernel), (*lead, *self._stride)
        self.dilation = (*lead, *self._dilation)
        self.pad_mode, self.has_bias, self.format = pad_mode, has_bias, data_format
        self._padding = padding
        self.padding = (0, 0, padding, padding) if rank == 1 else padding
        self._pads = None if pad_mode == "same" else self._pads_for((1,) * rank)
        self.weight_init, self.bias_init = self._init_parameters(
            group, self.kernel_size, dtype, has_bias, weight_init, bias_init
        )

    def _pads_for(self, size: tuple[int, ...]) -> tuple[int, ...]:
        return _conv_geometry.explicit_pads(
            type(self).__name__,
            self.pad_mode,
            self._padding,
            size,
            self._kernel,
            self._stride,
            self._dilation,
        )

    def _kernels(self, x):
        """The weight with as many spatial dimensions as x has. Raises ValueError when x has another rank."""
        if x.ndim != self._rank + 2:
            raise errors.shape_error(
                type(self).__name__, f"x must have rank {self._rank + 2}, but its shape is {list(x.shape)}"
            )
        if self._rank > 1:
            return self.weight
        return reshape(self.weight, (*self.weight.shape[:2], *self._kernel))

    def construct(self, x):
        weight = self._kernels(x)
        pads = self._pads_for(x.shape[2:]) if self._pads is None else self._pads
        return _conv._conv(
            x, weight, self.bias, stride=self._stride, pad=pads, dilation=self._dilation, group=self.group
        )

    def extend_repr(self):
        return (
            f"input_channels={self.in_channels}, output_channels={self.out_channels}, "
            f"kernel_size={self.kernel_size}, stride={self.stride}, pad_mode={self.pad_mode}, "
            f"padding={self.padding}, dilation={self.dilation}, group={self.group}, "
            f"has_bias={self.has_bias}, "
            f"weight_init={self.weight_init}, bias_init={self.bias_init}, format={self.format}"
        )


class _Conv1d(_Conv):
    """The constructor of layers of sequences, which have no `data_format`."""

    _rank = 1

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, pad_mode="same", padding=0, dilation=1,
        group=1, has_bias=False, weight_init=None, bias_init=None, dtype=float32,
    ):  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias,
            weight_init, bias_init, dtype=dtype,
        )  # fmt: skip


class Conv1d(_Conv1d):
    """1-D convolution. The weight is [out_channels, in_channels / group, 1, kernel_size].

    Shapes: x [N, in_channels, L] -> [N, out_channels, L']. `pad_mode`: 'same',
    'valid', or 'pad' with `padding`.
    """


class Conv2d(_Conv):
    """2-D convolution.

    Shapes: x [N, in_channels, H, W] -> [N, out_channels, H', W']. `pad_mode`: 'same', 'valid', or 'pad' with
    `padding` (one int, or top, bottom, left, right).
    """

    bias_add = operator("BiasAdd")
    conv2d = operator(
        "Conv2D",
        lambda cell: cell.out_channels,
        lambda cell: cell.kernel_size,
        mode=1,
        pad_mode=lambda cell: cell.pad_mode,
        pad=lambda cell: cell.padding,
        stride=lambda cell: cell.stride,
        dilation=lambda cell: cell.dilation,
        group=lambda cell: cell.group,
    )

    def construct(self, x):
        if not has_strategy(self, "conv2d", "bias_add"):
            return super().construct(x)
        found = self.conv2d(x, self.weight)
        return found if self.bias is None else self.bias_add(found, self.bias)


class Conv3d(_Conv):
    """3-D convolution.

    Shapes: x [N, in_channels, D, H, W] -> [N, out_channels, D', H', W'].
    """

    _rank = 3

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, pad_mode="same", padding=0, dilation=1,
        group=1, has_bias=False, weight_init=None, bias_init=None, data_format="NCDHW", dtype=float32,
    ):  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias,
            weight_init, bias_init, data_format, dtype,
        )  # fmt: skip


class _Transposed(_Conv):
    """A convolution run backwards: its gradient with respect to the input as a layer."""

    _transposed = True
    output_padding = 0

    def shard(self, strategy):
        """Spreading over devices: not there, see `Cell.shard`."""
        return super().shard(strategy)

    def _set_output_padding(self, output_padding) -> None:
        owner = type(self).__name__
        extra = _conv_geometry.spread("output_padding", output_padding, self._rank, 0, owner)
        if self.pad_mode != "pad" and any(extra):
            raise errors.value_error(
                owner, f"output_padding must be 0 unless pad_mode is 'pad', but got {output_padding}"
            )
        self.output_padding = extra

    def construct(self, x):
        weight = self._kernels(x)
        return _conv_functions.conv_transpose(
            x,
            weight,
            self.bias,
            self._stride,
            self.pad_mode,
            self._padding,
            self._dilation,
            self.group,
            self.output_padding,
        )


class Conv1dTranspose(_Transposed, _Conv1d):
    """Transposed 1-D convolution. The weight is [in_channels, out_channels / group, 1, kernel_size].

    Shapes: x [N, in_channels, L] -> [N, out_channels, L'], L' = L * stride with pad_mode 'same'.
    """


class Conv2dTranspose(_Transposed):
    """Transposed 2-D convolution. The weight is [in_channels, out_channels / group, *kernel_size].

    Shapes: x [N, in_channels, H, W] -> [N, out_channels, H', W']: the size times the stride with pad_mode
    'same'. `output_padding`: zeros added at the end of the output with pad_mode 'pad',
    as MindSpore's layer does.
    """

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, pad_mode="same", padding=0, output_padding=0,
        dilation=1, group=1, has_bias=False, weight_init=None, bias_init=None, dtype=float32,
    ):  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias,
            weight_init, bias_init, dtype=dtype,
        )  # fmt: skip
        self._set_output_padding(output_padding)
        extra, self.output_padding = self.output_padding, 0
        self._zeros = (0, extra[1], 0, extra[0]) if any(extra) else None

    def construct(self, x):
        y = super().construct(x)
        return y if self._zeros is None else pad(y, self._zeros)


class Conv3dTranspose(_Transposed):
    """Transposed 3-D convolution. The weight is [in_channels, out_channels / group, *kernel_size].

    Shapes: x [N, in_channels, D, H, W] -> [N, out_channels, D', H', W'].
    """

    _rank = 3

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, pad_mode="same", padding=0, dilation=1,
        group=1, output_padding=0, has_bias=False, weight_init=None, bias_init=None, data_format="NCDHW",
        dtype=float32,
    ):  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias,
            weight_init, bias_init, data_format, dtype,
        )  # fmt: skip
        self._set_output_padding(output_padding)
