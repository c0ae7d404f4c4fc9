"""Convolutions and their transposes, patches of images and volumes."""

from mycelia import ops
from mycelia.engine.base import errors
from mycelia.engine.ops.images.sampling import deformable_offsets
from mycelia.engine.ops.nn_ops import conv as _conv
from mycelia.engine.ops.nn_ops import conv_functions as _conv_functions
from mycelia.engine.ops.nn_ops import conv_geometry as _conv_geometry
from mycelia.engine.ops.nn_ops import unfold as _unfold
from mycelia.ops.primitives.checks import Misfit, anything, boolean, choice, integer, positive, within
from mycelia.ops.primitives.define import primitive

_mode = choice("valid", "same", "pad", fold=True)
_cross_correlation = within(integer, 1, 1)  # the only `mode` that there is
_nchw = choice("NCHW")  # other layouts run on other targets only
_ncdhw = choice("NCDHW")


def extents(rank, *, least=1, wide=False):
    """Check of window settings: one int, one a spatial dimension, `wide`: also after batch and channels."""
    expected = f"{'a positive int' if least else 'an int >= 0'} or a tuple of {rank} of them"

    def checked(value):
        if isinstance(value, int) and not isinstance(value, bool):
            values = (value,) * rank
        elif isinstance(value, tuple):
            values = value[2:] if wide and len(value) == rank + 2 else value
        else:
            raise Misfit(TypeError, expected)
        if len(values) != rank or any(isinstance(v, bool) or not isinstance(v, int) for v in values):
            raise Misfit(ValueError, expected)
        if min(values) < least:
            raise Misfit(ValueError, expected)
        return values

    return checked


def paddings(rank):
    """Check of `pad`: an int, or begin and end of each spatial dimension."""

    def checked(value):
        if isinstance(value, int) and not isinstance(value, bool):
            return (value,) * (2 * rank)
        if not isinstance(value, (tuple, list)):
            raise Misfit(TypeError, f"an int or a tuple of {2 * rank} ints")
        if len(value) != 2 * rank:
            raise Misfit(ValueError, f"an int or a tuple of {2 * rank} ints")
        return tuple(value)

    return checked


def full(values):
    """Settings as they are printed: with batch and channels."""
    return (1, 1, *values)


_pair, _triple = extents(2), extents(3)
_pair4, _triple5 = extents(2, wide=True), extents(3, wide=True)
_pads2, _pads3 = paddings(2), paddings(3)


def _needs_no_pad(constants):
    pad_mode, pad = constants["pad_mode"], constants["pad"]
    if pad_mode == "pad":
        if min(pad) < 0:
            raise errors.value_error(f"'pad' must not be negative, but got {pad}")
    elif any(pad):
        raise errors.value_error(
            f"'pad' must be zero when 'pad_mode' is not 'pad', but got {pad} and {pad_mode!r}"
        )


def _check_shapes(owner, x, rank, weight, want):
    """x has the rank, the weight the shape `want`, where None stands for any extent."""
    for name, tensor in (("x", x), ("weight", weight)):
        if tensor.ndim != rank:
            raise errors.value_error(
                f"For '{owner}', {name} must have rank {rank}, but its shape is {tuple(tensor.shape)}"
            )
    if any(w is not None and w != n for w, n in zip(want, weight.shape, strict=True)):
        shown = tuple("any" if w is None else w for w in want)
        raise errors.runtime_error(
            owner, f"the weight must have shape {shown}, but its shape is {tuple(weight.shape)}"
        )


def _check_same_dtype(owner, x, weight):
    if x.dtype is not weight.dtype:
        raise errors.type_error(
            f"For '{owner}', x and weight must have one dtype, but got {x.dtype} and {weight.dtype}"
        )


def _convolved(owner, x, w, out_channel, kernel, pad_mode, pad, stride, dilation, group):
    if x.ndim > 1 and x.shape[1] >= 0 and x.shape[1] % group:
        raise errors.runtime_error(
            owner, f"the {x.shape[1]} channels of x are not divisible by group {group}"
        )
    channels = x.shape[1] // group if x.ndim > 1 and x.shape[1] >= 0 else None
    _check_shapes(owner, x, len(kernel) + 2, w, (out_channel, channels, *kernel))
    _check_same_dtype(owner, x, w)
    if pad_mode != "pad":
        pad = 0
    pads = _conv_geometry.explicit_pads(owner, pad_mode, pad, x.shape[2:], kernel, stride, dilation)
    return _conv._conv(x, w, None, stride=stride, pad=pads, dilation=dilation, group=group)


@primitive(shows={"stride": full, "dilation": full}, check=_needs_no_pad)
def Conv2D(
    x, w, *, out_channel: positive, kernel_size: _pair, mode: _cross_correlation = 1,
    pad_mode: _mode = "valid", pad: _pads2 = 0, stride: _pair4 = 1, dilation: _pair4 = 1,
    group: positive = 1, data_format: _nchw = "NCHW",
):  # fmt: skip
    """Convolution of images, see `ops.conv2d`. Shapes: x [N, C, H, W], w [O, C / group, KH, KW]."""
    return _convolved("Conv2D", x, w, out_channel, kernel_size, pad_mode, pad, stride, dilation, group)


@primitive(check=_needs_no_pad)
def Conv3D(
    x, w, *, out_channel: positive, kernel_size: _triple, mode: _cross_correlation = 1,
    pad_mode: _mode = "valid", pad: _pads3 = 0, stride: _triple5 = 1, dilation: _triple5 = 1,
    group: positive = 1, data_format: _ncdhw = "NCDHW",
):  # fmt: skip
    """Convolution of volumes, see `ops.conv3d`. Shapes: x [N, C, D, H, W], w [O, C / group, KD, KH, KW]."""
    return _convolved("Conv3D", x, w, out_channel, kernel_size, pad_mode, pad, stride, dilation, group)


def _input_gradient(owner, dy, w, sizes, out_channel, kernel, pad_mode, pad, stride, dilation, group):
    if hasattr(sizes, "asnumpy"):
        sizes = tuple(sizes.asnumpy().tolist())
    if len(sizes) != 4 or not all(isinstance(n, int) and n > 0 for n in sizes):
        raise errors.value_error(f"For '{owner}', 'input_size' must be 4 positive ints, but got {sizes}")
    _check_shapes(owner, dy, 4, w, (out_channel, None, *kernel))
    if pad_mode != "pad":
        pad = 0
    pads = _conv_geometry.explicit_pads(owner, pad_mode, pad, sizes[2:], kernel, stride, dilation)
    return _conv._conv_input_grad(
        dy, w, size=tuple(sizes[2:]), stride=stride, pad=pads, dilation=dilation, group=group
    )


@primitive(shows={"stride": full, "dilation": full}, check=_needs_no_pad)
def Conv2DBackpropInput(
    out_backprop, filter, input_sizes, *, out_channel: positive, kernel_size: _pair,
    pad_mode: _mode = "valid", pad: _pads2 = 0, pad_list: anything = None,
    mode: _cross_correlation = 1, stride: _pair4 = 1, dilation: _pair4 = 1, group: positive = 1,
    data_format: _nchw = "NCHW",
):  # fmt: skip
    """Gradient of `Conv2D` with respect to x.

    Shapes: out_backprop [N, O, *positions], filter [O, C / group, KH, KW], input_sizes (N, C, H, W).
    """
    how = (filter.shape[0], filter.shape[2:], pad_mode, pad, stride, dilation, group)  # of what it is
    return _input_gradient("Conv2DBackpropInput", out_backprop, filter, input_sizes, *how)


@primitive(shows={"stride": full, "dilation": full}, check=_needs_no_pad)
def Conv2DTranspose(
    dout, weight, input_size, *, out_channel: positive, kernel_size: _pair, pad_mode: _mode = "valid",
    pad: _pads2 = 0, pad_list: anything = None, mode: _cross_correlation = 1, stride: _pair4 = 1,
    dilation: _pair4 = 1, group: positive = 1, data_format: _nchw = "NCHW",
):  # fmt: skip
    """Transposed convolution of images to the size given.

    Shapes: dout [N, O, *positions], weight [O, C / group, KH, KW], input_size (N, C, H, W) -> [N, C, H, W].
    """
    how = (out_channel, kernel_size, pad_mode, pad, stride, dilation, group)
    return _input_gradient("Conv2DTranspose", dout, weight, input_size, *how)


@primitive(check=_needs_no_pad)
def Conv3DTranspose(
    x, filter, *, in_channel: positive, out_channel: positive, kernel_size: _triple,
    mode: _cross_correlation = 1, pad_mode: _mode = "valid", pad: _pads3 = 0, stride: _triple5 = 1,
    dilation: _triple5 = 1, group: positive = 1, output_padding: extents(3, least=0, wide=True) = 0,
    data_format: _ncdhw = "NCDHW",
):  # fmt: skip
    """Transposed convolution of volumes, see `ops.conv3d_transpose`.

    Shapes: x [N, C, D, H, W], filter [C, O / group, KD, KH, KW] -> [N, O, *sizes].
    """
    _check_shapes("Conv3DTranspose", x, 5, filter, (in_channel, out_channel // group, *kernel_size))
    if pad_mode != "pad":
        pad = 0
    return _conv_functions.conv_transpose(
        x, filter, None, stride, pad_mode, pad, dilation, group, output_padding
    )


@primitive(check=_needs_no_pad)
def DepthwiseConv2dNative(
    x, w, *, channel_multiplier: positive, kernel_size: _pair, mode: within(integer, 3, 3) = 3,
    pad_mode: _mode = "valid", pad: _pads2 = 0, stride: _pair4 = 1, dilation: _pair4 = 1, group: positive = 1,
):  # fmt: skip
    """Convolution of each channel with filters of its own.

    Shapes: x [N, C, H, W], w [channel_multiplier, C, KH, KW] -> [N, channel_multiplier * C, *positions].
    """
    _check_shapes("DepthwiseConv2dNative", x, 4, w, (channel_multiplier, x.shape[1], *kernel_size))
    channels = x.shape[1]
    filters = ops.reshape(ops.transpose(w, (1, 0, 2, 3)), (channels * channel_multiplier, 1, *kernel_size))
    how = (channels * channel_multiplier, kernel_size, pad_mode, pad, stride, dilation, channels)
    return _convolved("DepthwiseConv2dNative", x, filters, *how)


def _plain(rank, *, least=1):
    """Check of an int or a sequence of `rank` ints, as `ops.unfold` takes them."""

    def checked(value):
        values = (value,) * rank if isinstance(value, int) and not isinstance(value, bool) else value
        if not isinstance(values, (tuple, list)):
            raise Misfit(TypeError, f"an int or {rank} ints")
        values = tuple(values) * rank if len(values) == 1 else tuple(values)
        if len(values) != rank or any(not isinstance(v, int) or v < least for v in values):
            raise Misfit(ValueError, f"an int or {rank} ints of {least} or more")
        return values

    return checked


@primitive
def Im2Col(
    x, *, ksizes: _plain(2), strides: _plain(2) = 1, dilations: _plain(2) = 1, pads: _plain(2, least=0) = 0
):
    """Patches of images, a column each. Shapes: [N, C, H, W] -> [N, C, KH * KW, patches]."""
    columns = ops.unfold(x, ksizes, dilations, pads, strides)
    return ops.reshape(columns, (x.shape[0], x.shape[1], ksizes[0] * ksizes[1], columns.shape[-1]))


@primitive
def Col2Im(
    x, output_size, *, kernel_size: _plain(2), dilation: _plain(2) = 1, padding: _plain(2, least=0) = 0,
    stride: _plain(2) = 1,
):  # fmt: skip
    """Sums of patches at their places, see `ops.fold`.

    Shapes: x [N, C, KH * KW, patches], output_size int32 [2] -> [N, C, *output_size].
    """
    if x.ndim != 4:
        raise errors.value_error(f"For 'Col2Im', x must have rank 4, but its shape is {tuple(x.shape)}")
    columns = ops.reshape(x, (x.shape[0], x.shape[1] * x.shape[2], x.shape[3]))
    return ops.fold(columns, output_size, kernel_size, dilation, padding, stride)


def _patch_setting(value):
    """(1, 1, rows, columns), as the real op takes windows of images."""
    if isinstance(value, int) and not isinstance(value, bool):
        return (value, value)
    if not isinstance(value, (tuple, list)):
        raise Misfit(TypeError, "a tuple of 4 ints")
    values = tuple(value)
    if len(values) == 2:
        return values
    if len(values) != 4 or values[0] != 1:
        raise Misfit(ValueError, "a tuple of 4 ints that begins with 1")
    return values[2:] if values[1] == 1 else values[1:3]


@primitive
def ExtractImagePatches(
    input_x, *, ksizes: _patch_setting, strides: _patch_setting, rates: _patch_setting,
    padding: choice("VALID", "SAME", fold=True) = "VALID",
):  # fmt: skip
    """Patches of images as channels. Shapes: [N, C, H, W] -> [N, KH * KW * C, rows, columns]."""
    pads = (0, 0, 0, 0)
    if padding == "SAME":
        pads = _conv_geometry.same_pads(input_x.shape[2:], ksizes, strides, rates)
    rows, columns = _conv_geometry.output_size(input_x.shape[2:], ksizes, strides, pads, rates)
    found = _unfold._im2col(input_x, kernel=ksizes, stride=strides, pad=pads, dilation=rates)
    n, c, size = input_x.shape[0], input_x.shape[1], ksizes[0] * ksizes[1]
    # A patch lists its positions first, the channels of each within.
    found = ops.transpose(ops.reshape(found, (n, c, size, rows, columns)), (0, 2, 1, 3, 4))
    return ops.reshape(found, (n, size * c, rows, columns))


def _last_two(value):
    if not isinstance(value, tuple):
        raise Misfit(TypeError, "a tuple of 4 ints")
    if len(value) != 4:
        raise Misfit(ValueError, "a tuple of 4 ints")
    return value


@primitive
def DeformableOffsets(
    x, offsets, *, strides: _last_two, pads: _last_two, ksize: extents(2),
    dilations: _last_two = (1, 1, 1, 1), data_format: _nchw = "NCHW", deformable_groups: positive = 1,
    modulated: boolean = True,
):  # fmt: skip
    """What the bent windows of a deformable convolution read, see `ops.deformable_conv2d`.

    Shapes: x [N, C, H, W], offsets [N, 3 * groups * KH * KW, H', W'] -> [N, C, H' * KH, W' * KW].
    """
    how = (ksize, strides, pads, dilations, deformable_groups, modulated)
    return deformable_offsets("DeformableOffsets", x, offsets, *how)


def _window3(value):
    if not isinstance(value, (int, tuple, list)) or isinstance(value, bool):
        raise Misfit(TypeError, "an int or a tuple of ints")
    values = (value,) * 3 if isinstance(value, int) else tuple(value)[-3:]
    if len(values) != 3 or min(values) < 1:
        raise Misfit(ValueError, "an int or a tuple of 3 or 5 positive ints")
    return values


@primitive
def ExtractVolumePatches(
    input_x, *, kernel_size: _window3, strides: _window3, padding: choice("VALID", "SAME", fold=True)
):
    """Patches of volumes as channels. Shapes: [N, C, D, H, W] -> [N, KD * KH * KW * C, *positions]."""
    one = (1, 1, 1)
    same = padding == "SAME"
    pads = _conv_geometry.same_pads(input_x.shape[2:], kernel_size, strides, one) if same else (0,) * 6
    positions = _conv_geometry.output_size(input_x.shape[2:], kernel_size, strides, pads, one)
    found = _unfold._im2col(input_x, kernel=kernel_size, stride=strides, pad=pads, dilation=one)
    n, c = input_x.shape[:2]
    found = ops.transpose(ops.reshape(found, (n, c, -1, *positions)), (0, 2, 1, 3, 4, 5))
    return ops.reshape(found, (n, -1, *positions))


@primitive
def Dilation2D(
    x, filter, *, stride: extents(2, wide=True), dilation: extents(2, wide=True),
    pad_mode: choice("SAME", "VALID", fold=True) = "SAME", data_format: _nchw = "NCHW",
):  # fmt: skip
    """Largest sum of a window and a filter of each channel. Shapes: x [N, C, H, W], filter [C, KH, KW]."""
    kernel = filter.shape[1:]
    pads = (0, 0, 0, 0)
    if pad_mode == "SAME":
        pads = _conv_geometry.same_pads(x.shape[2:], kernel, stride, dilation)
    padded = ops.pad(x, (pads[1], pads[3], pads[0], pads[2]), "constant", float("-inf")) if any(pads) else x
    rows, columns = _conv_geometry.output_size(x.shape[2:], kernel, stride, pads, dilation)
    found = _unfold._im2col(padded, kernel=kernel, stride=stride, pad=(0,), dilation=dilation)
    found = ops.reshape(found, (*x.shape[:2], kernel[0] * kernel[1], rows * columns))
    sums = found + ops.reshape(filter, (1, x.shape[1], -1, 1))
    return ops.reshape(ops.amax(sums, 2), (*x.shape[:2], rows, columns))
