"""Gradients of convolutions of images with the channels last, on packed weights (`channels_last.py`)."""

import math

from mycelia.engine.base import errors
from mycelia.engine.ir.types import UNKNOWN, TensorType
from mycelia.engine.ops import cost as _cost
from mycelia.engine.ops.define import find, op
from mycelia.engine.ops.lowered.channels_last import (
    check_algorithm,
    check_pack,
    inputs_per_group,
    np_first,
    np_last,
    np_turned,
    np_unpacked,
    with_pack,
)
from mycelia.engine.ops.lowered.packed import need_float32
from mycelia.engine.ops.nn_ops.conv_geometry import full_attributes, output_size


@op(name="conv_last_input_grad", nondiff=True)
def conv_last_input_grad(
    dy, w,
    *, channels: "int", size: "ints", kernel: "ints", stride: "ints" = (1, 1), pad: "ints" = (0, 0, 0, 0),
    dilation: "ints" = (1, 1), group: "int" = 1,
    algorithm: "direct|winograd4|winograd6|depthwise|winograd2" = "direct",
):  # fmt: skip
    """Gradient of a convolution with respect to images of `channels` and spatial `size`, channels last.

    `w` is what `conv_pack` made with `transposed`.
    Shapes: dy [N, H', W', O], w the pack -> [N, *size, I] with I `channels`.  dtypes: float32.
    Errors: ValueError if the convolution over `size` would not give dy's positions, or the pack has another
    size.
    """
    turned = np_unpacked(w, channels, dy.shape[-1] // group, kernel)
    x = find("conv_input_grad").definition.body(
        np_first(dy), np_turned(turned, group), size=size, stride=stride, pad=pad, dilation=dilation,
        group=group,
    )  # fmt: skip
    return np_last(x)


@conv_last_input_grad.infer
def conv_last_input_grad(dy, w, *, channels, size, kernel, stride, pad, dilation, group, algorithm):
    need_float32(dy=dy, w=w)
    if dy.rank != 4 or len(size) != 2:
        raise errors.value_error(f"dy must be [N, H', W', O] and size (H, W), got {dy} and {size}")
    kernel, stride, pad, dilation = full_attributes(2, kernel, stride, pad, dilation)
    per_group = inputs_per_group(dy.shape[3], group)
    inputs_per_group(channels, group)
    check_algorithm(algorithm, channels, per_group, kernel, group, stride, dilation)
    check_pack(w, algorithm, channels, per_group, kernel, group)
    expected = output_size(size, kernel, stride, pad, dilation)
    if any(a != b and UNKNOWN not in (a, b) for a, b in zip(expected, dy.shape[1:3], strict=True)):
        raise errors.value_error(f"a convolution over size {size} gives positions {expected}, dy is {dy}")
    return TensorType(dy.dtype, (dy.shape[0], *size, channels))


@conv_last_input_grad.samples
def conv_last_input_grad(rand):
    def sample(n, size, w, algorithm="direct", group=1, **how):
        geometry = dict(stride=(1, 1), pad=(0, 0, 0, 0), dilation=(1, 1)) | how
        positions = output_size(size, w.shape[2:], **geometry)
        attrs = dict(
            channels=w.shape[1] * group, size=size, kernel=w.shape[2:], group=group, algorithm=algorithm
        )
        packing = with_pack(1, algorithm=algorithm, group=group, transposed=True)
        return rand(n, *positions, w.shape[0]), w, {**attrs, **geometry, **packing}

    half = dict(stride=(2, 2), pad=(1, 1, 1, 1))
    yield sample(2, (8, 9), rand(24, 16, 3, 3), **half)
    yield sample(2, (9, 8), rand(37, 19, 3, 3), **half)
    yield sample(1, (7, 6), rand(6, 5, 3, 2), stride=(2, 3), pad=(1, 0, 1, 1), dilation=(1, 2))
    yield sample(3, (8, 8), rand(32, 48, 1, 1), stride=(2, 2))
    yield sample(1, (7, 6), rand(2, 1, 2, 2), stride=(4, 3))  # rows that no window touches
    yield sample(1, (13, 13), rand(16, 3, 7, 7), stride=(2, 2), pad=(3, 3, 3, 3))
    yield sample(2, (6, 6), rand(6, 4, 3, 3), group=2, **half)
    yield sample(2, (9, 8), rand(19, 1, 3, 3), algorithm="depthwise", group=19, **half)
    yield sample(
        1, (10, 10), rand(32, 1, 5, 5), algorithm="depthwise", group=32, stride=(2, 2), pad=(2, 2, 2, 2)
    )
    yield sample(0, (5, 5), rand(3, 2, 3, 3), **half)


@conv_last_input_grad.cost
def conv_last_input_grad(inputs, outputs, *, kernel, group, **_):
    return 2 * inputs[0].size * math.prod(kernel) * (outputs[0].shape[-1] // group)


@op(name="conv_last_weight_grad", nondiff=True)
def conv_last_weight_grad(
    x, dy,
    *, kernel: "ints", stride: "ints" = (1, 1), pad: "ints" = (0, 0, 0, 0), dilation: "ints" = (1, 1),
    group: "int" = 1, algorithm: "direct|winograd4" = "direct",
):  # fmt: skip
    """Gradient of a convolution of images with respect to its weights, images with the channels last.

    `algorithm` "winograd4" (3x3, stride and dilation 1, one group) lets a kernel multiply transformed tiles
    of 4x4 positions where that is faster.
    Shapes: x [N, H, W, I], dy [N, H', W', O] -> [O, I / group, kh, kw].  dtypes: float32.
    Errors: ValueError if the convolution would not give dy's positions or the algorithm does not suit it.
    """
    body = find("conv_weight_grad").definition.body
    return body(
        np_first(x), np_first(dy), kernel=kernel, stride=stride, pad=pad, dilation=dilation, group=group
    )


@conv_last_weight_grad.infer
def conv_last_weight_grad(x, dy, *, kernel, stride, pad, dilation, group, algorithm):
    need_float32(x=x, dy=dy)
    if x.rank != 4 or dy.rank != 4:
        raise errors.value_error(f"x and dy must be [N, H, W, C], got {x} and {dy}")
    kernel, stride, pad, dilation = full_attributes(2, kernel, stride, pad, dilation)
    per_group = inputs_per_group(x.shape[3], group)
    inputs_per_group(dy.shape[3], group)
    check_algorithm(algorithm, dy.shape[3], per_group, kernel, group, stride, dilation)
    expected = output_size(x.shape[1:3], kernel, stride, pad, dilation)
    if any(a != b and UNKNOWN not in (a, b) for a, b in zip(expected, dy.shape[1:3], strict=True)):
        raise errors.value_error(f"a convolution of {x} gives positions {expected}, dy is {dy}")
    return TensorType(x.dtype, (dy.shape[3], per_group, *kernel))


@conv_last_weight_grad.samples
def conv_last_weight_grad(rand):
    def sample(x, channels, kernel, **how):
        geometry = dict(stride=(1, 1), pad=(0, 0, 0, 0), dilation=(1, 1)) | how
        group, algorithm = geometry.pop("group", 1), geometry.pop("algorithm", "direct")
        rtol = dict(_rtol=geometry.pop("_rtol")) if "_rtol" in geometry else {}
        positions = output_size(x.shape[1:3], kernel, **geometry)
        attrs = dict(kernel=kernel, group=group, algorithm=algorithm, **geometry, **rtol)
        return x, rand(x.shape[0], *positions, channels), attrs

    same, half = dict(pad=(1, 1, 1, 1)), dict(stride=(2, 2), pad=(1, 1, 1, 1))
    yield sample(rand(2, 7, 6, 3), 5, (3, 2))
    yield sample(rand(2, 8, 9, 16), 32, (3, 3), **same)
    yield sample(rand(3, 9, 8, 19), 37, (3, 3), **half)
    yield sample(rand(1, 9, 8, 4), 6, (3, 3), pad=(1, 0, 1, 2), stride=(2, 1), dilation=(1, 2))
    yield sample(rand(2, 5, 7, 67), 33, (1, 1))
    yield sample(rand(2, 8, 8, 24), 16, (1, 1), stride=(2, 2))
    yield sample(rand(2, 13, 11, 3), 24, (7, 7), stride=(2, 2), pad=(3, 3, 3, 3))
    yield sample(rand(2, 6, 6, 12), 18, (3, 3), group=3, **same)
    yield sample(rand(2, 9, 8, 19), 19, (3, 3), group=19, **half)
    yield sample(rand(1, 10, 10, 32), 32, (5, 5), group=32, pad=(2, 2, 2, 2))
    yield sample(rand(0, 5, 5, 2), 3, (3, 3))
    loose = dict(algorithm="winograd4", _rtol=1e-4)  # tile transforms round differently
    yield sample(rand(2, 12, 13, 16), 32, (3, 3), **same, **loose)
    yield sample(rand(3, 14, 11, 37), 19, (3, 3), pad=(1, 0, 2, 1), **loose)
    yield sample(rand(1, 4, 5, 3), 4, (3, 3), **loose)


@conv_last_weight_grad.cost
def conv_last_weight_grad(inputs, outputs, **_):
    return _cost.window(inputs[1], outputs[0])
