"""Convolution layers of `mint.nn`: torch's arguments, padding by name or in numbers, all padding modes."""

from __future__ import annotations

from mycelia.engine.base import errors
from mycelia.engine.base.dtypes import float32
from mycelia.engine.ops.nn_ops.conv_geometry import spread
from mycelia.faces.mint.nn import functional as F
from mycelia.faces.mint.nn.windows import named_pads
from mycelia.nn.parameters import Convolution

_PAD_MODES = ("zeros", "reflect", "replicate", "circular")


class _Conv(Convolution):
    """What all convolution layers share."""

    _function = staticmethod(F.conv2d)
    transposed = False

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=True,
        padding_mode="zeros",
        dtype=None,
    ):
        super().__init__()
        owner, rank = type(self).__name__, self._rank
        self._init_channels(in_channels, out_channels, groups=groups)
        if padding_mode not in _PAD_MODES:
            raise errors.one_of(padding_mode, list(_PAD_MODES), subject=owner, what="padding_mode")
        self.kernel_size = spread("kernel_size", kernel_size, rank, 1, owner)
        self.stride = spread("stride", stride, rank, 1, owner)
        self.dilation = spread("dilation", dilation, rank, 1, owner)
        self.padding_mode = padding_mode
        if isinstance(padding, str):
            pads = named_pads(owner, padding, self.kernel_size, self.stride, self.dilation)
            self.padding = padding
        else:
            self.padding = spread("padding", padding, rank, 0, owner)
            pads = self.padding * 2
        # For `pad`: begin and end of the last dimension first.
        self._border = [n for i in reversed(range(rank)) for n in (pads[i], pads[rank + i])]
        self._init_parameters(groups, self.kernel_size, float32 if dtype is None else dtype, bias)

    def construct(self, input):
        padding = self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._border, self.padding_mode), 0
        return self._function(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

    def extend_repr(self):
        return (
            f"input_channels={self.in_channels}, output_channels={self.out_channels}, "
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, groups={self.groups}, bias={self.bias is not None}"
        )


class Conv1d(_Conv):
    """Convolution of sequences. Shapes: [N, C, L] or [C, L] -> [..., out_channels, positions]."""

    _rank, _function = 1, staticmethod(F.conv1d)


class Conv2d(_Conv):
    """Convolution of images. Shapes: [N, C, H, W] or [C, H, W] -> [..., out_channels, *positions].

    `padding`: one int, one a dimension, 'valid' or 'same'; `padding_mode`: 'zeros', 'reflect', 'replicate' or
    'circular'.
    """


class Conv3d(_Conv):
    """Convolution of volumes. Shapes: [N, C, D, H, W] or [C, D, H, W] -> [..., out_channels, *positions]."""

    _rank, _function = 3, staticmethod(F.conv3d)


class ConvTranspose2d(_Conv):
    """Transposed convolution of images. Shapes: [N, C, H, W] or [C, H, W] -> [..., out_channels, *sizes]."""

    transposed = _transposed = True

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups=1,
        bias=True,
        dilation=1,
        padding_mode="zeros",
        dtype=None,
    ):
        if padding_mode != "zeros":
            raise errors.one_of(padding_mode, ["zeros"], subject="ConvTranspose2d", what="padding_mode")
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            spread("padding", padding, 2, 0, "ConvTranspose2d"),
            dilation,
            groups,
            bias,
            padding_mode,
            dtype,
        )
        self.output_padding = spread("output_padding", output_padding, 2, 0, "ConvTranspose2d")

    def construct(self, input, output_size=None):
        extra = self.output_padding if output_size is None else self._padding_for(input, output_size)
        return F.conv_transpose2d(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )

    def _padding_for(self, input, output_size) -> tuple[int, ...]:
        """The output padding that gives `output_size`. Raises ValueError if none does."""
        least = [
            (n - 1) * s - 2 * p + d * (k - 1) + 1
            for n, s, p, d, k in zip(
                input.shape[-2:], self.stride, self.padding, self.dilation, self.kernel_size
            )
        ]
        extra = tuple(size - n for size, n in zip(output_size[-2:], least))
        if any(not 0 <= e < s for e, s in zip(extra, self.stride)):
            most = [n + s - 1 for n, s in zip(least, self.stride)]
            raise errors.value_error(
                "ConvTranspose2d", f"output_size must be from {least} to {most}, but is {output_size}"
            )
        return extra
