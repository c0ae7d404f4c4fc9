"""ATen ops of layers: products, convolutions, pools, normalizations."""

from __future__ import annotations

from mycelia import ops
from mycelia_lite.converter.importers.torch.calls import as_tensor, aten, cast, shape_of
from mycelia_lite.converter.importers.torch.shared import as_onnx


@aten("mm", "bmm")
def _product(call, a, b):
    return ops.matmul(a, b)


@aten("addmm", "baddbmm")
def _addmm(call, bias, a, b, beta=1, alpha=1):
    made = ops.matmul(a, b)
    made = made if alpha == 1 else ops.mul(made, as_tensor(alpha, call.dtype))
    return ops.add(made, bias if beta == 1 else ops.mul(bias, as_tensor(beta, call.dtype)))


def _as_image(x):
    """[N, C, L] as [N, C, 1, L]."""
    return ops.expand_dims(x, 2)


@aten("convolution")
def _convolution(call, x, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    rank = len(shape_of(x)) - 2
    if rank == 3:
        how = dict(strides=list(stride), pads=list(padding) * 2, dilations=list(dilation), group=groups)
        if transposed:
            return as_onnx(
                call, "ConvTranspose", [x, weight, bias], output_padding=list(output_padding), **how
            )
        return as_onnx(call, "Conv", [x, weight, bias], **how)
    if rank not in (1, 2):
        raise call.fail(f"a convolution of {rank} dimensions is not imported")
    if rank == 1:
        x, weight = _as_image(x), _as_image(weight)
        stride, padding, dilation = [1, *stride], [0, *padding], [1, *dilation]
        output_padding = [0, *output_padding]
    if transposed:
        y = ops.conv_transpose2d(
            x, weight, bias, tuple(stride), tuple(padding), tuple(output_padding), groups, tuple(dilation)
        )
    else:
        y = ops.conv2d(x, weight, bias, tuple(stride), "pad", tuple(padding), tuple(dilation), groups)
    return ops.squeeze(y, 2) if rank == 1 else y


@aten("max_pool2d_with_indices")
def _max_pool(call, x, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    if any(user.args[1:2] == (1,) for user in call.node.users):
        raise call.fail("the indices of the largest elements are not imported")
    stride = tuple(stride) or tuple(kernel_size)
    return [
        ops.max_pool2d(x, _pair(kernel_size), stride, _pair(padding), _pair(dilation), False, ceil_mode),
        None,
    ]


def _pair(value):
    if isinstance(value, int):
        return (value, value)
    return tuple(value) if len(value) == 2 else (value[0], value[0])


@aten("avg_pool2d", "avg_pool1d")
def _avg_pool(
    call, x, kernel_size, stride=(), padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
):
    is_1d = call.kind == "aten.avg_pool1d.default"
    call.need("divisor_override", divisor_override, None)
    kernel, stride = list(_pair(kernel_size)), list(_pair(stride or kernel_size))
    padding = list(_pair(padding))
    if is_1d:
        x, kernel[0], stride[0], padding[0] = _as_image(x), 1, 1, 0
    around = (padding[0], padding[0], padding[1], padding[1])
    y = ops.avg_pool2d(x, tuple(kernel), tuple(stride), around, ceil_mode, count_include_pad)
    return ops.squeeze(y, 2) if is_1d else y


@aten("_adaptive_avg_pool2d", "adaptive_avg_pool2d")
def _adaptive_avg_pool(call, x, output_size):
    return ops.adaptive_avg_pool2d(x, tuple(output_size))


@aten("_native_batch_norm_legit_no_training")
def _batch_norm(call, x, weight, bias, mean, variance, momentum, eps):
    shape = (1, -1) + (1,) * (len(shape_of(x)) - 2)
    if len(shape_of(x)) == 4 and weight is not None and bias is not None:
        return [ops.batch_norm(x, mean, variance, weight, bias, False, 0.1, eps), None, None]
    scale = ops.rsqrt(ops.add(variance, as_tensor(eps, variance.dtype)))
    scale = scale if weight is None else ops.mul(scale, weight)
    y = ops.mul(ops.sub(x, ops.reshape(mean, shape)), ops.reshape(scale, shape))
    return [y if bias is None else ops.add(y, ops.reshape(bias, shape)), None, None]


@aten("_native_batch_norm_legit.no_stats")
def _instance_norm(call, x, weight, bias, training, momentum, eps):
    """Each channel by its own mean and deviation: what a layer without statistics does."""
    _only_first(call)
    rank = len(shape_of(x))
    over = (0, *range(2, rank))
    centred = ops.sub(x, ops.mean(x, over, True))
    variance = ops.mean(ops.mul(centred, centred), over, True)
    y = ops.mul(centred, ops.rsqrt(ops.add(variance, as_tensor(eps, x.dtype))))
    return [_affine(y, weight, bias, (1, -1) + (1,) * (rank - 2)), None, None]


@aten("native_layer_norm")
def _layer_norm(call, x, normalized_shape, weight, bias, eps):
    _only_first(call)
    if weight is not None and bias is not None:
        return [ops.layer_norm(x, tuple(normalized_shape), weight, bias, eps), None, None]
    return [
        _affine(_normalized(x, len(normalized_shape), eps), weight, bias, tuple(normalized_shape)),
        None,
        None,
    ]


@aten("native_group_norm")
def _group_norm(call, x, weight, bias, n, c, hw, group, eps):
    _only_first(call)
    given = shape_of(x)
    grouped = ops.reshape(x, (given[0], group, -1))
    y = ops.reshape(_normalized(grouped, 1, eps), given)
    return [_affine(y, weight, bias, (1, c) + (1,) * (len(given) - 2)), None, None]


def _only_first(call):
    if any(user.args[1] != 0 for user in call.node.users):
        raise call.fail("only the normalized values are imported, not their mean and deviation")


def _normalized(x, axes, eps):
    """x over its last axes without mean and deviation."""
    rank = len(shape_of(x))
    over = tuple(range(rank - axes, rank))
    centred = ops.sub(x, ops.mean(x, over, True))
    variance = ops.mean(ops.mul(centred, centred), over, True)
    return ops.mul(centred, ops.rsqrt(ops.add(variance, as_tensor(eps, x.dtype))))


def _affine(y, weight, bias, shape):
    y = y if weight is None else ops.mul(y, cast(ops.reshape(weight, shape), y.dtype))
    return y if bias is None else ops.add(y, cast(ops.reshape(bias, shape), y.dtype))
