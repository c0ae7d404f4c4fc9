"""Gradients of layers as primitives of their own: each asks the rule of the function it belongs to."""

import math

from mycelia import ops
from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.arrays.shape import as_ints
from mycelia.engine.ops.images.sampling import deformable_offsets
from mycelia.engine.ops.nn_ops.ratio_pool import _ratio_pool_grad
from mycelia.ops.primitives.checks import anything, boolean, integer, integers, real
from mycelia.ops.primitives.define import primitive, registry
from mycelia.ops.primitives.grad_ops import _pull


def _zeros(shape, like):
    return ops.zeros(as_ints(shape), like.dtype)


# ---- gradient first, then the input -----------------------------------------------------------------------


@primitive
def LogitGrad(grads, x, *, eps: real = -1.0):
    """Gradient of `Logit`."""
    return _pull(registry["Logit"](eps), grads, x)


@primitive
def GluGrad(grads, x, *, axis: integer):
    """Gradient of `GLU`."""
    return _pull(lambda v: ops.glu(v, axis), grads, x)


@primitive
def SliceGrad(dy, x, begin, size):
    """Gradient of `Slice`: `dy` in its place, zeros elsewhere."""
    return _pull(lambda v: ops.slice(v, as_ints(begin), as_ints(size)), dy, ops.zeros_like(x))


@primitive
def CholeskyGrad(x, grad):
    """Gradient of `Cholesky` from its result."""
    return _pull(ops.cholesky, grad, ops.matmul(x, ops.swapaxes(x, -1, -2)))


@primitive
def CdistGrad(grad, input_x, input_y, cdist, *, p: real = 2.0):
    """Gradient of `Cdist` for its first input, by the distances that are given."""
    if p == 0.0:
        return ops.zeros_like(input_x)
    difference = ops.expand_dims(input_x, -2) - ops.expand_dims(input_y, -3)
    distance, size = ops.expand_dims(cdist, -1), ops.abs(difference)
    if math.isinf(p):
        share = ops.sign(difference) * ops.cast(size == distance, input_x.dtype)
    elif p == 1.0:
        share = ops.sign(difference)
    else:
        flat = ops.logical_or(distance == 0, size == 0)
        ratio = ops.where(flat, 1.0, size) / ops.where(flat, 1.0, distance)
        share = ops.where(flat, 0.0, ops.sign(difference) * ops.pow(ratio, p - 1.0))
    return ops.sum(ops.cast(share, input_x.dtype) * ops.expand_dims(grad, -1), -2)


@primitive
def PdistGrad(y_grad, x, y, *, p: real = 2.0):
    """Gradient of `Pdist`."""
    return _pull(registry["Pdist"](p), y_grad, x)


@primitive
def MedianGrad(
    y_grad, x, y, indices, *, global_median: boolean = False, axis: integer = 0, keep_dims: boolean = False
):
    """Gradient of `Median`: what was chosen gets it, for the whole equal values share it."""
    if global_median:
        chosen = ops.cast(x == y, x.dtype)
        return chosen * y_grad / ops.sum(chosen)
    if not keep_dims:
        y_grad, indices = ops.expand_dims(y_grad, axis), ops.expand_dims(indices, axis)
    return ops.tensor_scatter_elements(ops.zeros_like(x), indices, ops.cast(y_grad, x.dtype), axis)


@primitive
def PadV3Grad(x, paddings, *, mode: anything = "reflect", paddings_contiguous: boolean = True):
    """Gradient of `PadV3`."""
    amounts = as_ints(paddings)
    pairs = list(zip(amounts[::2], amounts[1::2]))
    if not paddings_contiguous:
        half = len(amounts) // 2
        pairs = list(zip(amounts[:half], amounts[half:]))
    pairs += [(0, 0)] * (x.ndim - len(pairs))
    inner = tuple(n - before - after for n, (before, after) in zip(x.shape, reversed(pairs)))
    forward = registry["PadV3"](mode, paddings_contiguous)
    return _pull(lambda v: forward(v, paddings), x, _zeros(inner, x))


# ---- losses and normalization -----------------------------------------------------------------------------


@primitive
def NLLLossGrad(
    logits, loss_grad, labels, weight, total_weight, *, reduction: anything = "mean",
    ignore_index: anything = -100,
):  # fmt: skip
    """Gradient of `NLLLoss`."""
    forward = registry["NLLLoss"](reduction, ignore_index)
    return _pull(lambda v: forward(v, labels, weight)[0], loss_grad, logits)


@primitive
def BatchNormGrad(
    dout, x, scale, saved_mean, saved_variance, reserve=None, *, is_training: boolean = False,
    epsilon: real = 1e-5, data_format: anything = "NCHW",
):  # fmt: skip
    """Gradients of `BatchNorm` for the input, its scale and its shift, from the statistics of the pass.

    In training `saved_variance` is the inverse of the deviation, else the variance itself.
    """
    channel = 1 if data_format == "NCHW" else x.ndim - 1
    axes = tuple(i for i in range(x.ndim) if i != channel)
    along = tuple(-1 if i == channel else 1 for i in range(x.ndim))
    deviation = saved_variance if is_training else ops.rsqrt(saved_variance + epsilon)
    inverse = ops.reshape(deviation, along)
    normal = (x - ops.reshape(saved_mean, along)) * inverse
    dscale, dbias = ops.sum(dout * normal, axes), ops.sum(dout, axes)
    dx = dout * ops.reshape(scale, along) * inverse
    if is_training:
        count = x.size // x.shape[channel]
        back = (ops.reshape(dbias, along) + normal * ops.reshape(dscale, along)) / count
        dx = (dout - back) * ops.reshape(scale, along) * inverse
    return dx, dscale, dbias


@primitive
def LRNGrad(grads, x, y, *, depth_radius: integer = 5, bias: real = 1.0, alpha: real = 1.0, beta: real = 0.5):
    """Gradient of `LRN`."""
    return _pull(registry["LRN"](depth_radius, bias, alpha, beta), grads, x)


@primitive
def SoftmaxBackward(dout, out, dim=-1):
    """Gradient of softmax along `dim` from its result."""
    return out * (dout - ops.sum(dout * out, dim, True))


def _second_order(called, forward):
    def gradient(x, y, dx, dy, *, grad_x: boolean = True, grad_y: boolean = True):
        first = (x >= y) if forward is ops.maximum else (x <= y)
        passed = ops.where(first, dx, dy)
        return ops.zeros_like(x), ops.zeros_like(y), passed

    gradient.__doc__ = f"Gradients of the gradients of `{forward.__name__}`."
    primitive(gradient, name=called)


_second_order("MaximumGradGrad", ops.maximum)
_second_order("MinimumGradGrad", ops.minimum)


# ---- images -----------------------------------------------------------------------------------------------


def _resizing(called, forward):
    def gradient(grads, image, *, align_corners: boolean = False, half_pixel_centers: boolean = False):
        size = tuple(grads.shape[2:])
        resize = registry[forward](align_corners, half_pixel_centers)
        return _pull(lambda v: resize(v, size), ops.cast(grads, image.dtype), image)

    gradient.__doc__ = f"Gradient of `{forward}`; `image` gives its input's size and dtype."
    primitive(gradient, name=called)


_resizing("ResizeBilinearGrad", "ResizeBilinearV2")
_resizing("ResizeBicubicGrad", "ResizeBicubic")


def _nearest(called):
    def gradient(grads, size, *, align_corners: boolean = False, half_pixel_centers: boolean = False):
        resize = registry["ResizeNearestNeighborV2"](align_corners, half_pixel_centers)
        image = _zeros((*grads.shape[:2], *as_ints(size)), grads)
        return _pull(lambda v: resize(v, tuple(grads.shape[2:])), grads, image)

    gradient.__doc__ = "Gradient of nearest neighbour resizing to images of this size."
    primitive(gradient, name=called)


_nearest("ResizeNearestNeighborV2Grad")
_nearest("ResizeNearestNeighborGrad")


@primitive
def UpsampleNearest3DGrad(dy, input_size, output_size=None, scales=None):
    """Gradient of `UpsampleNearest3D`."""
    return _pull(
        lambda v: registry["UpsampleNearest3D"]()(v, output_size, scales), dy, _zeros(input_size, dy)
    )


@primitive
def UpsampleTrilinear3DGrad(dy, input_size, output_size=None, scales=None, *, align_corners: boolean = False):
    """Gradient of `UpsampleTrilinear3D`."""
    forward = registry["UpsampleTrilinear3D"](align_corners)
    return _pull(lambda v: forward(v, output_size, scales), dy, _zeros(input_size, dy))


def _sampling(called, forward):
    def gradient(
        grad, input_x, grid, *, interpolation_mode: anything = "bilinear", padding_mode: anything = "zeros",
        align_corners: boolean = False, output_mask: anything = (1, 1),
    ):  # fmt: skip
        sample = registry[forward](interpolation_mode, padding_mode, align_corners)
        return _pull(sample, grad, input_x, grid)

    gradient.__doc__ = f"Gradients of `{forward}` for images and grid."
    primitive(gradient, name=called)


_sampling("GridSampler2DGrad", "GridSampler2D")
_sampling("GridSampler3DGrad", "GridSampler3D")


@primitive
def ROIAlignGrad(
    dy, rois, xdiff_shape, *, pooled_height: integer, pooled_width: integer, spatial_scale: real,
    sample_num: integer = 2,
):  # fmt: skip
    """Gradient of `ROIAlign` for features of shape `xdiff_shape`."""
    forward = registry["ROIAlign"](pooled_height, pooled_width, spatial_scale, sample_num)
    return _pull(lambda v: forward(v, rois), dy, _zeros(xdiff_shape, dy))


# ---- pooling ----------------------------------------------------------------------------------------------


def _spatial(sizes, count):
    """The last sizes of a window that may be given for all axes."""
    return tuple(sizes[-count:]) if isinstance(sizes, (tuple, list)) else sizes


@primitive
def MaxPool3DGrad(
    x_origin, out_origin, grad, *, kernel_size: anything = (1, 1, 1, 1, 1),
    strides: anything = (1, 1, 1, 1, 1), pad_mode: anything = "VALID", pad_list: anything = 0,
    data_format: anything = "NCDHW",
):  # fmt: skip
    """Gradient of `MaxPool3D`."""
    forward = registry["MaxPool3D"](_spatial(kernel_size, 3), _spatial(strides, 3), pad_mode, pad_list)
    return _pull(forward, grad, x_origin)


def _placed(x, grad, argmax, axes):
    """`grad` added up where the flat indices of the last `axes` axes point to, in zeros like `x`."""
    outer = tuple(x.shape[: x.ndim - axes])
    flat = ops.zeros((*outer, math.prod(x.shape[x.ndim - axes :])), grad.dtype)
    places = ops.reshape(ops.cast(argmax, dtypes.int64), (*outer, -1))
    added = ops.tensor_scatter_elements(flat, places, ops.reshape(grad, (*outer, -1)), x.ndim - axes, "add")
    return ops.reshape(added, x.shape)


@primitive
def MaxPoolGradWithArgmax(
    x, grad, argmax, *, kernel_size: anything = 1, strides: anything = 1, pad_mode: anything = "VALID",
    data_format: anything = "NCHW",
):  # fmt: skip
    """Gradient of `MaxPoolWithArgmax`."""
    return _placed(x, grad, argmax, 3)


@primitive
def MaxPoolGradWithArgmaxV2(
    x, grad, argmax, *, kernel_size: anything, strides: anything = None, pads: anything = 0,
    dilation: anything = (1, 1), ceil_mode: boolean = False, argmax_type: anything = dtypes.int64,
):  # fmt: skip
    """Gradient of `MaxPoolWithArgmaxV2`."""
    return _placed(x, grad, argmax, 2)


@primitive
def FractionalMaxPoolGradWithFixedKsize(
    origin_input, out_backprop, argmax, *, data_format: anything = "NCHW"
):
    """Gradient of `FractionalMaxPoolWithFixedKsize`."""
    return _placed(origin_input, out_backprop, argmax, 2)


@primitive
def FractionalMaxPool3DGradWithFixedKsize(
    origin_input, out_backprop, argmax, *, data_format: anything = "NCDHW"
):
    """Gradient of `FractionalMaxPool3DWithFixedKsize`."""
    if data_format == "NDHWC":
        raise errors.value_error("FractionalMaxPool3DGradWithFixedKsize", "only the format NCDHW is there")
    return _placed(origin_input, out_backprop, argmax, 3)


@primitive
def FractionalMaxPoolGrad(
    orig_input, orig_output, out_backprop, row_pooling_sequence, col_pooling_sequence,
    *, overlapping: boolean = False,
):  # fmt: skip
    """Gradient of `FractionalMaxPool`, whose cells begin at the sequences."""
    cells = row_pooling_sequence, col_pooling_sequence
    return _ratio_pool_grad(out_backprop, orig_input, *cells, kind="max", overlapping=overlapping)


@primitive(extra={"max_length": 1000000})
def FractionalAvgPoolGrad(
    orig_input_tensor_shape, out_backprop, row_pooling_sequence, col_pooling_sequence,
    *, overlapping: boolean = False,
):  # fmt: skip
    """Gradient of `FractionalAvgPool`, whose input's sizes and whose cells' beginnings are given."""
    cells = row_pooling_sequence, col_pooling_sequence
    x = _zeros(orig_input_tensor_shape, out_backprop)
    return _ratio_pool_grad(out_backprop, x, *cells, kind="avg", overlapping=overlapping)


@primitive
def MaxPoolGradGradWithArgmax(
    x, grad, argmax, *, kernel_size: anything = 1, strides: anything = 1, pad_mode: anything = "VALID"
):
    """Gradient of `MaxPoolGradWithArgmax`: what lies where the largest values were, counted in an image."""
    outer = tuple(x.shape[:1])
    places = ops.reshape(ops.cast(argmax, dtypes.int64), (*outer, -1))
    return ops.reshape(ops.gather_elements(ops.reshape(grad, (*outer, -1)), 1, places), argmax.shape)


def _pool_grad_grad(called, forward, count):
    def gradient(
        orig_input, orig_output, grad, *, kernel_size: anything = 1, strides: anything = 1,
        pad_mode: anything = "VALID", data_format: anything = "NCHW",
    ):  # fmt: skip
        from mycelia.engine.autodiff.jacobian_products import jvp

        pool = registry[forward](_spatial(kernel_size, count), _spatial(strides, count), pad_mode)
        return jvp(pool, (orig_input,), (grad,))[1]

    gradient.__doc__ = f"Gradient of the gradient of `{forward}`."
    primitive(gradient, name=called)


_pool_grad_grad("MaxPoolGradGrad", "MaxPool", 2)
_pool_grad_grad("MaxPool3DGradGrad", "MaxPool3D", 3)


# ---- convolutions -----------------------------------------------------------------------------------------


def _conv3d(out_channel, kernel_size, mode, pad_mode, pad, stride, dilation, group):
    return registry["Conv3D"](
        out_channel, kernel_size, mode, pad_mode, pad, _spatial(stride, 3), _spatial(dilation, 3), group
    )


@primitive
def Conv3DBackpropInput(
    filter, out_backprop, input_size, *, out_channel: anything, kernel_size: anything, mode: integer = 1,
    pad_mode: anything = "valid", pad: anything = 0, stride: anything = 1, dilation: anything = 1,
    group: integer = 1, data_format: anything = "NCDHW",
):  # fmt: skip
    """Gradient of `Conv3D` for an input of shape `input_size`."""
    forward = _conv3d(out_channel, kernel_size, mode, pad_mode, pad, stride, dilation, group)
    return _pull(lambda v: forward(v, filter), out_backprop, _zeros(input_size, filter))


@primitive
def Conv3DBackpropFilter(
    x, out_backprop, filter_size, *, out_channel: anything, kernel_size: anything, mode: integer = 1,
    pad_mode: anything = "valid", pad: anything = 0, stride: anything = 1, dilation: anything = 1,
    group: integer = 1, data_format: anything = "NCDHW",
):  # fmt: skip
    """Gradient of `Conv3D` for weights of shape `filter_size`."""
    forward = _conv3d(out_channel, kernel_size, mode, pad_mode, pad, stride, dilation, group)
    return _pull(lambda w: forward(x, w), out_backprop, _zeros(filter_size, x))


@primitive
def DeformableOffsetsGrad(
    out_backprop, input, offsets, *, strides: integers, pads: integers, kernel_size: integers,
    dilations: integers = (1, 1, 1, 1), data_format: anything = "NCHW", deformable_groups: integer = 1,
    modulated: boolean = True,
):  # fmt: skip
    """Gradients of `DeformableOffsets` for the input and the offsets, also those of some windows only."""

    def forward(x, offsets):
        how = (kernel_size, strides, pads, dilations, deformable_groups, modulated)
        return deformable_offsets("DeformableOffsetsGrad", x, offsets, *how, tuple(offsets.shape[2:]))

    kind = input.dtype
    inputs = [ops.cast(t, dtypes.float32) for t in (out_backprop, input, offsets)]
    if data_format != "NHWC":
        return tuple(ops.cast(t, kind) for t in _pull(forward, *inputs))
    to_front, to_back = (0, 3, 1, 2), (0, 2, 3, 1)
    found = _pull(forward, *(ops.transpose(t, to_front) for t in inputs))
    return tuple(ops.cast(ops.transpose(t, to_back), kind) for t in found)
