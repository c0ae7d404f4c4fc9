"""Convolutions of images with the channels last, on packed weights (`packed.py`)."""

import math
from functools import partial

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.ir.types import UNKNOWN, TensorType
from mycelia.engine.ops import cost as _cost
from mycelia.engine.ops.define import find, op
from mycelia.engine.ops.lowered.packed import PANEL, check_epilogue, need_float32, np_activated, padded
from mycelia.engine.ops.nn_ops.conv_geometry import full_attributes, output_size

# Elements per pair of channels: transformed, and as given.
_TAPS = {"winograd2": 16 + 9, "winograd4": 36 + 9, "winograd6": 64 + 9}


# --------------------------------------------------------------------------------------------- packs


def _weight_shape(shape, group, transposed):
    """(output channels, input channels per group, kh, kw) of the convolution that a pack is for."""
    o, per_group, kh, kw = shape
    return (per_group * group, o // group, kh, kw) if transposed else (o, per_group, kh, kw)


def pack_size(algorithm, channels, per_group, kernel, group):
    """Elements of the pack for `channels` outputs and `per_group` inputs a group."""
    if algorithm == "depthwise":
        return math.prod(kernel) * padded(channels)
    if algorithm in ("direct", "planes"):
        return group * math.prod(kernel) * per_group * padded(channels // group)
    return _TAPS[algorithm] * per_group * padded(channels) + PANEL


def check_algorithm(algorithm, channels, per_group, kernel, group, stride=(1, 1), dilation=(1, 1)):
    if algorithm == "depthwise":
        if per_group != 1 or channels != group:
            raise errors.value_error(
                f"algorithm 'depthwise' is for one input and one output channel a group, got {channels} "
                f"outputs, group={group}, {per_group} inputs a group"
            )
    elif algorithm == "planes":
        if group != 1:
            raise errors.value_error(f"algorithm 'planes' is for one group, got group={group}")
    elif algorithm != "direct" and (
        tuple(kernel) != (3, 3) or (*stride, *dilation) != (1, 1, 1, 1) or group != 1
    ):
        raise errors.value_error(
            f"algorithm '{algorithm}' is for 3x3 kernels of stride 1, dilation 1 and group 1, got kernel "
            f"{tuple(kernel)}, stride {tuple(stride)}, dilation {tuple(dilation)}, group={group}"
        )


def np_turned(w, group):
    """Weights of the convolution that is the input gradient of `w`'s: channels swapped, taps flipped."""
    o, per_group, kh, kw = w.shape
    grouped = w.reshape(group, o // group, per_group, kh, kw).swapaxes(1, 2)
    return np.ascontiguousarray(grouped[..., ::-1, ::-1]).reshape(group * per_group, o // group, kh, kw)


@op(name="conv_pack", nondiff=True, cost=0)
def conv_pack(
    w,
    *, algorithm: "direct|winograd4|winograd6|depthwise|winograd2|planes", group: "int" = 1,
    transposed: "bool" = False,
):  # fmt: skip
    """Weights of a convolution in the form that `conv_last` and `conv_last_input_grad` read.

    `transposed`: for the input gradient, channels swapped and taps flipped.
    Shapes: w [O, I / group, kh, kw] -> [k], with O and I swapped if `transposed`: direct and planes
    ``k = kh * kw * I * padded(O / group)``, winograd2 ``(16 + 9) * I * padded(O) + 16``, winograd4
    ``(36 + 9) * I * padded(O) + 16``, winograd6 ``(64 + 9) * I * padded(O) + 16``, depthwise
    ``kh * kw * padded(O)``.
    dtypes: float32.
    Errors: ValueError if the algorithm does not suit the shape.
    """
    w = np_turned(w, group) if transposed else w
    channels, per_group, *kernel = w.shape
    size = pack_size(algorithm, channels, per_group, kernel, group)
    pack = np.zeros(size, w.dtype)
    pack[: w.size] = w.reshape(-1)  # the body needs no order of its own: its conv_last reads this back
    return pack


@conv_pack.infer
def conv_pack(w, *, algorithm, group, transposed):
    need_float32(w=w)
    if w.rank != 4 or group < 1 or w.shape[0] % group:
        raise errors.value_error(
            f"w must be [O, I / group, kh, kw] with O divisible by group={group}, got {w}"
        )
    channels, per_group, *kernel = _weight_shape(w.shape, group, transposed)
    check_algorithm(algorithm, channels, per_group, kernel, group)
    if transposed and algorithm == "planes":
        raise errors.value_error("algorithm 'planes' has no input gradient, got transposed=True")
    return TensorType(w.dtype, (pack_size(algorithm, channels, per_group, kernel, group),))


@conv_pack.samples
def conv_pack(rand):
    # What a pack holds is compared through conv_last: packs of two backends differ.
    opaque = dict(_value=False)
    yield rand(5, 3, 3, 3), dict(algorithm="direct", **opaque)
    yield rand(6, 2, 3, 2), dict(algorithm="direct", group=3, transposed=True, **opaque)
    yield rand(17, 5, 3, 3), dict(algorithm="winograd4", **opaque)
    yield rand(17, 5, 3, 3), dict(algorithm="winograd2", **opaque)
    yield rand(17, 5, 3, 3), dict(algorithm="winograd6", transposed=True, **opaque)
    yield rand(19, 1, 5, 5), dict(algorithm="depthwise", group=19, **opaque)
    yield rand(18, 3, 5, 3), dict(algorithm="planes", **opaque)


def np_unpacked(pack, channels, per_group, kernel):
    """The weights that the body of conv_pack stored."""
    shape = (channels, per_group, *kernel)
    return pack[: math.prod(shape)].reshape(shape)


def check_pack(w, algorithm, channels, per_group, kernel, group):
    size = pack_size(algorithm, channels, per_group, kernel, group)
    if w.shape != (size,):
        raise errors.value_error(
            f"w must be the '{algorithm}' pack of {channels} x {per_group} channels and kernel "
            f"{tuple(kernel)}, group={group}: [{size}], got {list(w.shape)}"
        )


# --------------------------------------------------------------------------------------------- convolution


def np_first(x):
    """[N, *size, C] -> [N, C, *size]."""
    return np.ascontiguousarray(np.moveaxis(x, -1, 1))


def np_last(x):
    """[N, C, *size] -> [N, *size, C]."""
    return np.ascontiguousarray(np.moveaxis(x, 1, -1))


def inputs_per_group(channels, group):
    if channels == UNKNOWN or group < 1 or channels % group:
        raise errors.value_error(f"{channels} channels cannot be divided into {group} groups")
    return channels // group


@op(name="conv_last", nondiff=True)
def conv_last(
    x, w, b: "tensor?" = None, residual: "tensor?" = None,
    *, channels: "int", kernel: "ints", stride: "ints" = (1, 1), pad: "ints" = (0, 0, 0, 0),
    dilation: "ints" = (1, 1), group: "int" = 1,
    algorithm: "direct|winograd4|winograd6|depthwise|winograd2|planes" = "direct",
    activation: "none|relu|relu6|hardswish|silu|sigmoid|gelu|gelu_tanh" = "none",
):  # fmt: skip
    """Convolution of images with the channels last: ``activation(conv(x, w) + b + residual)``.

    `w` is what `conv_pack` made for `algorithm`; `pad` holds all begins, then all ends. "planes" is for
    images that come with the channels first and have few of them, so that they need not be turned.
    Shapes: x [N, H, W, I], [N, I, H, W] for "planes", w the pack, b [O], residual like the result
    -> [N, H', W', O] with O `channels`.
    dtypes: float32.
    Errors: ValueError if channels, groups, the pack's size or window sizes disagree.
    """
    x = x if algorithm == "planes" else np_first(x)
    weights = np_unpacked(w, channels, x.shape[1] // group, kernel)
    y = find("conv").definition.body(x, weights, b, stride=stride, pad=pad, dilation=dilation, group=group)
    y = np_last(y)
    return np_activated(y if residual is None else y + residual, activation)


@conv_last.infer
def conv_last(x, w, b, residual, *, channels, kernel, stride, pad, dilation, group, algorithm, activation):
    need_float32(x=x, w=w)
    if x.rank != 4:
        raise errors.value_error(f"x must be [N, H, W, I], got {x}")
    kernel, stride, pad, dilation = full_attributes(2, kernel, stride, pad, dilation)
    inputs, image = (x.shape[1], x.shape[2:]) if algorithm == "planes" else (x.shape[3], x.shape[1:3])
    per_group = inputs_per_group(inputs, group)
    inputs_per_group(channels, group)
    check_algorithm(algorithm, channels, per_group, kernel, group, stride, dilation)
    check_pack(w, algorithm, channels, per_group, kernel, group)
    size = output_size(image, kernel, stride, pad, dilation)
    y = TensorType(x.dtype, (x.shape[0], *size, channels))
    check_epilogue(y, b, residual)
    return y


def with_pack(position, **attrs):
    """Option of a sample: the argument at `position` goes through conv_pack first."""
    return dict(_prepare={position: partial(conv_pack, **attrs)})


@conv_last.samples
def conv_last(rand):
    def sample(x, w, b=None, residual=None, algorithm="direct", group=1, **how):
        attrs = dict(channels=w.shape[0], kernel=w.shape[2:], group=group, algorithm=algorithm, **how)
        return x, w, b, residual, {**attrs, **with_pack(1, algorithm=algorithm, group=group)}

    same, bottom = dict(pad=(1, 1, 1, 1)), dict(stride=(2, 2), pad=(0, 0, 1, 1))
    yield sample(rand(2, 7, 6, 3), rand(5, 3, 3, 2), rand(5))
    yield sample(rand(1, 5, 7, 8), rand(16, 8, 3, 3), rand(16), rand(1, 5, 7, 16), activation="relu", **same)
    yield sample(rand(2, 8, 9, 19), rand(37, 19, 3, 3), rand(37), activation="relu6", **bottom)
    yield sample(rand(1, 9, 8, 4), rand(6, 4, 3, 3), pad=(1, 0, 1, 2), stride=(2, 1), dilation=(1, 2))
    yield sample(rand(2, 6, 5, 12), rand(18, 4, 3, 3), rand(18), group=3, activation="silu", **same)
    yield sample(rand(1, 13, 11, 3), rand(24, 3, 7, 7), rand(24), stride=(2, 2), pad=(3, 3, 3, 3))
    yield sample(rand(3, 5, 7, 67), rand(33, 67, 1, 1), rand(33), rand(3, 5, 7, 33), activation="gelu")
    yield sample(rand(1, 4, 4, 16), rand(32, 16, 1, 1), activation="gelu_tanh", stride=(2, 2))
    yield sample(rand(1, 1, 1, 24), rand(8, 24, 1, 1), rand(8), activation="sigmoid")
    yield sample(rand(1, 5, 5, 2), rand(2, 2, 2, 2), stride=(4, 3), activation="hardswish")
    yield sample(rand(0, 5, 5, 2), rand(3, 2, 3, 3), rand(3))
    yield sample(rand(17, 7, 7, 48), rand(64, 48, 3, 3), rand(64), rand(17, 7, 7, 64), **same)
    for algorithm, rtol in (("winograd2", 1e-4), ("winograd4", 1e-4), ("winograd6", 1e-3)):
        loose = dict(_rtol=rtol, **same)  # transforms cancel: small results keep the error of large ones
        yield sample(rand(1, 12, 12, 16), rand(32, 16, 3, 3), rand(32), algorithm=algorithm, **loose)
        yield sample(
            rand(2, 13, 7, 21), rand(19, 21, 3, 3), rand(19), rand(2, 14, 6, 19), algorithm=algorithm,
            pad=(1, 0, 2, 1), activation="relu", _rtol=rtol,
        )  # fmt: skip
        yield sample(rand(3, 3, 2, 5), rand(7, 5, 3, 3), algorithm=algorithm, activation="silu", **loose)
        yield sample(rand(0, 5, 5, 3), rand(4, 3, 3, 3), algorithm=algorithm)
    deep = dict(algorithm="depthwise")
    yield sample(rand(2, 9, 8, 19), rand(19, 1, 3, 3), rand(19), group=19, activation="relu6", **deep, **same)
    yield sample(rand(1, 8, 9, 32), rand(32, 1, 3, 3), group=32, **deep, **bottom)
    yield sample(
        rand(1, 10, 11, 24), rand(24, 1, 5, 5), rand(24), rand(1, 10, 11, 24), group=24, pad=(2, 2, 2, 2),
        activation="hardswish", **deep,
    )  # fmt: skip
    yield sample(rand(1, 9, 9, 5), rand(5, 1, 3, 3), group=5, dilation=(2, 1), pad=(2, 1, 2, 1), **deep)
    planes = dict(algorithm="planes")
    yield sample(rand(2, 3, 13, 11), rand(24, 3, 3, 3), rand(24), activation="relu6", **planes, **bottom)
    yield sample(rand(1, 2, 9, 8), rand(6, 2, 5, 3), rand(6), rand(1, 5, 4, 6), dilation=(1, 2), **planes)
    yield sample(rand(0, 3, 5, 5), rand(3, 3, 3, 3), **planes)


@conv_last.cost
def conv_last(inputs, outputs, *, kernel, group, algorithm, **_):
    channels = inputs[0].shape[1 if algorithm == "planes" else 3]
    return _cost.product(outputs, math.prod(kernel) * (channels // group))


def _separable_attrs(hidden, channels, kernel, stride, pad, expand_activation, hidden_activation, activation):
    """Attributes of the three convolutions that `conv_last_separable` is made of."""
    point = dict(kernel=(1, 1), stride=(1, 1), pad=(0, 0, 0, 0), dilation=(1, 1), group=1, algorithm="direct")
    window = dict(kernel=kernel, stride=stride, pad=pad, group=hidden, algorithm="depthwise")
    return (
        {**point, "channels": hidden, "activation": expand_activation},
        {**point, **window, "channels": hidden, "activation": hidden_activation},
        {**point, "channels": channels, "activation": activation},
    )


@op(name="conv_last_separable", nondiff=True)
def conv_last_separable(
    x, w, project, b: "tensor?" = None, project_b: "tensor?" = None, residual: "tensor?" = None,
    expand: "tensor?" = None, expand_b: "tensor?" = None,
    *, hidden: "int", channels: "int", kernel: "ints", stride: "ints" = (1, 1), pad: "ints" = (0, 0, 0, 0),
    expand_activation: "none|relu|relu6|hardswish|silu|sigmoid|gelu|gelu_tanh" = "none",
    hidden_activation: "none|relu|relu6|hardswish|silu|sigmoid|gelu|gelu_tanh" = "none",
    activation: "none|relu|relu6|hardswish|silu|sigmoid|gelu|gelu_tanh" = "none",
):  # fmt: skip
    """Depthwise convolution between 1x1 convolutions, channels last: ``conv_last`` two or three times.

    `expand` (if given: 1x1, I to `hidden` channels, then `expand_activation`), the depthwise convolution `w`
    of `hidden` channels (then `hidden_activation`), `project` (1x1, to `channels`, plus `residual`, then
    `activation`). All weights are what `conv_pack` made.
    Shapes: x [N, H, W, I], b and expand_b [hidden], project_b [O], residual like the result ->
    [N, H', W', O] with O `channels`.  dtypes: float32.
    Errors: ValueError as `conv_last` for each of them.  Source: Sandler et al. 2018, "MobileNetV2".
    """
    expanding, deep, projecting = _separable_attrs(
        hidden, channels, kernel, stride, pad, expand_activation, hidden_activation, activation
    )
    body = conv_last.definition.body
    y = x if expand is None else body(x, expand, expand_b, None, **expanding)
    return body(body(y, w, b, None, **deep), project, project_b, residual, **projecting)


@conv_last_separable.infer
def conv_last_separable(x, w, project, b, project_b, residual, expand, expand_b, **attrs):
    expanding, deep, projecting = _separable_attrs(**attrs)
    infer = conv_last.definition.infer_rule
    y = x if expand is None else infer(x, expand, expand_b, None, **expanding)
    return infer(infer(y, w, b, None, **deep), project, project_b, residual, **projecting)


@conv_last_separable.samples
def conv_last_separable(rand):
    def sample(x, hidden, channels, kernel, expanded=True, bias=True, residual=None, **how):
        kernels = rand(hidden, 1, kernel, kernel), rand(channels, hidden, 1, 1)
        expand = rand(hidden, x.shape[-1], 1, 1) if expanded else None
        vectors = [rand(n) if bias else None for n in (hidden, channels)]
        packing = {
            1: partial(conv_pack, algorithm="depthwise", group=hidden),
            2: partial(conv_pack, algorithm="direct"),
        }
        if expanded:
            packing[6] = packing[2]
        attrs = dict(hidden=hidden, channels=channels, kernel=(kernel, kernel), _prepare=packing, **how)
        return x, *kernels, *vectors, residual, expand, rand(hidden) if expanded and bias else None, attrs

    same, bounds = dict(pad=(1, 1, 1, 1)), dict(expand_activation="relu6", hidden_activation="relu6")
    half = dict(stride=(2, 2), pad=(0, 0, 1, 1))
    wide = dict(pad=(2, 2, 2, 2))
    yield sample(rand(2, 9, 28, 5), 19, 5, 3, residual=rand(2, 9, 28, 5), **bounds, **same)
    yield sample(rand(2, 10, 13, 7), 24, 33, 3, **bounds, **half)
    yield sample(
        rand(1, 8, 9, 16), 16, 24, 3, expanded=False, hidden_activation="relu", activation="relu", **same
    )
    yield sample(rand(3, 7, 6, 3), 3, 8, 3, expanded=False, stride=(2, 2), **same)
    yield sample(
        rand(2, 11, 25, 8), 40, 24, 5, expand_activation="hardswish", hidden_activation="hardswish", **wide
    )
    yield sample(rand(1, 12, 11, 4), 12, 6, 5, bias=False, stride=(2, 2), activation="silu", **wide)
    yield sample(rand(1, 6, 5, 2), 400, 9, 2, hidden_activation="gelu", stride=(1, 2))
    yield sample(rand(0, 5, 5, 2), 4, 3, 3)


@conv_last_separable.cost
def conv_last_separable(inputs, outputs, *, kernel, hidden, **_):
    pixels, places = inputs[0].size // inputs[0].shape[-1], outputs[0].size // outputs[0].shape[-1]
    expanding = 0 if inputs[6] is None else pixels * inputs[0].shape[-1]
    return 2 * hidden * (expanding + places * (math.prod(kernel) + outputs[0].shape[-1]))
