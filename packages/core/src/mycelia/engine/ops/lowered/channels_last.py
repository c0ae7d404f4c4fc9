"""Forms that the compiler gives convolutions and products of weights: channels last, weights packed.

Programs hold them, users never call them: they have no gradient, and no public name. What a pack looks like
is the business of the backend that made it: a pack and the op that reads it always run on the same backend,
and the compiler emits them only where that backend has kernels for both. Sizes of packs are fixed, though:
``16 * ceil(channels / 16)`` output channels, called padded below.
"""

import math
from functools import partial

import numpy as np

from mycelia.engine.base import dtypes, errors
from mycelia.engine.ir.types import UNKNOWN, TensorType
from mycelia.engine.ops import cost as _cost
from mycelia.engine.ops.define import find, op
from mycelia.engine.ops.nn_ops.conv_geometry import full_attributes, output_size

PANEL = 16  # channels: packs are padded to a multiple of it
_TAPS = {"winograd4": 36 + 9, "winograd6": 64 + 9}  # elements per pair of channels: transformed, and as given

ACTIVATIONS = {
    "none": ("", {}),
    "relu": ("relu", {}),
    "relu6": ("relu6", {}),
    "hardswish": ("hardswish", {}),
    "silu": ("silu", {}),
    "sigmoid": ("sigmoid", {}),
    "gelu": ("gelu", {"approximate": "none"}),
    "gelu_tanh": ("gelu", {"approximate": "tanh"}),
}  # value of the attribute `activation` -> the op it stands for, and its attributes


def padded(channels):
    """`channels` rounded up to whole panels."""
    return -(-channels // PANEL) * PANEL


def _np_activated(y, activation):
    name, attrs = ACTIVATIONS[activation]
    return find(name).definition.body(y, **attrs) if name else y


def _need_float32(**tensors):
    for name, t in tensors.items():
        if t is not None and t.dtype is not dtypes.float32:
            raise errors.dtype_error(
                f"{name} must be float32, but is {t.dtype.name} of shape {list(t.shape)}"
            )


# --------------------------------------------------------------------------------------------- packs


def _weight_shape(shape, group, transposed):
    """(output channels, input channels per group, kh, kw) of the convolution that a pack is for."""
    o, per_group, kh, kw = shape
    return (per_group * group, o // group, kh, kw) if transposed else (o, per_group, kh, kw)


def pack_size(algorithm, channels, per_group, kernel, group):
    """Elements of the pack for `channels` outputs and `per_group` inputs a group."""
    if algorithm == "depthwise":
        return math.prod(kernel) * padded(channels)
    if algorithm == "direct":
        return group * math.prod(kernel) * per_group * padded(channels // group) + PANEL
    return _TAPS[algorithm] * per_group * padded(channels) + PANEL


def _check_algorithm(algorithm, channels, per_group, kernel, group, stride=(1, 1), dilation=(1, 1)):
    if algorithm == "depthwise":
        if per_group != 1 or channels != group:
            raise errors.value_error(
                f"algorithm 'depthwise' is for one input and one output channel a group, got {channels} "
                f"outputs, group={group}, {per_group} inputs a group"
            )
    elif algorithm != "direct" and (
        tuple(kernel) != (3, 3) or (*stride, *dilation) != (1, 1, 1, 1) or group != 1
    ):
        raise errors.value_error(
            f"algorithm '{algorithm}' is for 3x3 kernels of stride 1, dilation 1 and group 1, got kernel "
            f"{tuple(kernel)}, stride {tuple(stride)}, dilation {tuple(dilation)}, group={group}"
        )


def _np_turned(w, group):
    """Weights of the convolution that is the input gradient of `w`'s: channels swapped, taps flipped."""
    o, per_group, kh, kw = w.shape
    grouped = w.reshape(group, o // group, per_group, kh, kw).swapaxes(1, 2)
    return np.ascontiguousarray(grouped[..., ::-1, ::-1]).reshape(group * per_group, o // group, kh, kw)


@op(name="conv_pack", nondiff=True, cost=0)
def conv_pack(
    w,
    *, algorithm: "direct|winograd4|winograd6|depthwise", group: "int" = 1, transposed: "bool" = False,
):  # fmt: skip
    """Weights of a convolution in the form that `conv_last` and `conv_last_input_grad` read.

    `transposed`: for the input gradient, channels swapped and taps flipped.
    Shapes: w [O, I / group, kh, kw] -> [k], with O and I swapped if `transposed`: direct ``k = kh * kw * I *
    padded(O / group) + 16``, winograd4 ``(36 + 9) * I * padded(O) + 16``, winograd6 ``(64 + 9) * I *
    padded(O) + 16``, depthwise ``kh * kw * padded(O)``.  dtypes: float32.
    Errors: ValueError if the algorithm does not suit the shape.
    """
    w = _np_turned(w, group) if transposed else w
    channels, per_group, *kernel = w.shape
    size = pack_size(algorithm, channels, per_group, kernel, group)
    pack = np.zeros(size, w.dtype)
    pack[: w.size] = w.reshape(-1)  # the body needs no order of its own: its conv_last reads this back
    return pack


@conv_pack.infer
def conv_pack(w, *, algorithm, group, transposed):
    _need_float32(w=w)
    if w.rank != 4 or group < 1 or w.shape[0] % group:
        raise errors.value_error(
            f"w must be [O, I / group, kh, kw] with O divisible by group={group}, got {w}"
        )
    channels, per_group, *kernel = _weight_shape(w.shape, group, transposed)
    _check_algorithm(algorithm, channels, per_group, kernel, group)
    return TensorType(w.dtype, (pack_size(algorithm, channels, per_group, kernel, group),))


@conv_pack.samples
def conv_pack(rand):
    # What a pack holds is compared through conv_last: packs of two backends differ.
    opaque = dict(_value=False)
    yield rand(5, 3, 3, 3), dict(algorithm="direct", **opaque)
    yield rand(6, 2, 3, 2), dict(algorithm="direct", group=3, transposed=True, **opaque)
    yield rand(17, 5, 3, 3), dict(algorithm="winograd4", **opaque)
    yield rand(17, 5, 3, 3), dict(algorithm="winograd6", transposed=True, **opaque)
    yield rand(19, 1, 5, 5), dict(algorithm="depthwise", group=19, **opaque)


def _np_unpacked(pack, channels, per_group, kernel):
    """The weights that the body of conv_pack stored."""
    shape = (channels, per_group, *kernel)
    return pack[: math.prod(shape)].reshape(shape)


def _check_pack(w, algorithm, channels, per_group, kernel, group):
    size = pack_size(algorithm, channels, per_group, kernel, group)
    if w.shape != (size,):
        raise errors.value_error(
            f"w must be the '{algorithm}' pack of {channels} x {per_group} channels and kernel "
            f"{tuple(kernel)}, group={group}: [{size}], got {list(w.shape)}"
        )


# --------------------------------------------------------------------------------------------- convolution


def _np_first(x):
    """[N, *size, C] -> [N, C, *size]."""
    return np.ascontiguousarray(np.moveaxis(x, -1, 1))


def _np_last(x):
    """[N, C, *size] -> [N, *size, C]."""
    return np.ascontiguousarray(np.moveaxis(x, 1, -1))


def _per_group(channels, group):
    if channels == UNKNOWN or group < 1 or channels % group:
        raise errors.value_error(f"{channels} channels cannot be divided into {group} groups")
    return channels // group


def _check_epilogue(y, b, residual):
    _need_float32(b=b, residual=residual)
    if b is not None and b.shape != y.shape[-1:]:
        raise errors.value_error(f"the bias must be [{y.shape[-1]}], got {list(b.shape)}")
    if residual is not None and not y.accepts(residual):
        raise errors.value_error(f"residual must have the result's shape {list(y.shape)}, got {residual}")


@op(name="conv_last", nondiff=True)
def conv_last(
    x, w, b: "tensor?" = None, residual: "tensor?" = None,
    *, channels: "int", kernel: "ints", stride: "ints" = (1, 1), pad: "ints" = (0, 0, 0, 0),
    dilation: "ints" = (1, 1), group: "int" = 1,
    algorithm: "direct|winograd4|winograd6|depthwise" = "direct",
    activation: "none|relu|relu6|hardswish|silu|sigmoid|gelu|gelu_tanh" = "none",
):  # fmt: skip
    """Convolution of images with the channels last: ``activation(conv(x, w) + b + residual)``.

    `w` is what `conv_pack` made for `algorithm`; `pad` holds all begins, then all ends.
    Shapes: x [N, H, W, I], w the pack, b [O], residual like the result -> [N, H', W', O] with O `channels`.
    dtypes: float32.
    Errors: ValueError if channels, groups, the pack's size or window sizes disagree.
    """
    weights = _np_unpacked(w, channels, x.shape[-1] // group, kernel)
    y = find("conv").definition.body(
        _np_first(x), weights, b, stride=stride, pad=pad, dilation=dilation, group=group
    )
    y = _np_last(y)
    return _np_activated(y if residual is None else y + residual, activation)


@conv_last.infer
def conv_last(x, w, b, residual, *, channels, kernel, stride, pad, dilation, group, algorithm, activation):
    _need_float32(x=x, w=w)
    if x.rank != 4:
        raise errors.value_error(f"x must be [N, H, W, I], got {x}")
    kernel, stride, pad, dilation = full_attributes(2, kernel, stride, pad, dilation)
    per_group = _per_group(x.shape[3], group)
    _per_group(channels, group)
    _check_algorithm(algorithm, channels, per_group, kernel, group, stride, dilation)
    _check_pack(w, algorithm, channels, per_group, kernel, group)
    size = output_size(x.shape[1:3], kernel, stride, pad, dilation)
    y = TensorType(x.dtype, (x.shape[0], *size, channels))
    _check_epilogue(y, b, residual)
    return y


def _packing(position, **attrs):
    """Option of a sample: the argument at `position` goes through conv_pack first."""
    return dict(_prepare={position: partial(conv_pack, **attrs)})


@conv_last.samples
def conv_last(rand):
    def sample(x, w, b=None, residual=None, algorithm="direct", group=1, **how):
        attrs = dict(channels=w.shape[0], kernel=w.shape[2:], group=group, algorithm=algorithm, **how)
        return x, w, b, residual, {**attrs, **_packing(1, algorithm=algorithm, group=group)}

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
    for algorithm, rtol in (("winograd4", 1e-4), ("winograd6", 1e-3)):
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


@conv_last.cost
def conv_last(inputs, outputs, *, kernel, group, **_):
    return _cost.product(outputs, math.prod(kernel) * (inputs[0].shape[-1] // group))


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


@op(name="conv_last_input_grad", nondiff=True)
def conv_last_input_grad(
    dy, w,
    *, channels: "int", size: "ints", kernel: "ints", stride: "ints" = (1, 1), pad: "ints" = (0, 0, 0, 0),
    dilation: "ints" = (1, 1), group: "int" = 1,
    algorithm: "direct|winograd4|winograd6|depthwise" = "direct",
):  # fmt: skip
    """Gradient of a convolution with respect to images of `channels` and spatial `size`, channels last.

    `w` is what `conv_pack` made with `transposed`.
    Shapes: dy [N, H', W', O], w the pack -> [N, *size, I] with I `channels`.  dtypes: float32.
    Errors: ValueError if the convolution over `size` would not give dy's positions, or the pack has another
    size.
    """
    turned = _np_unpacked(w, channels, dy.shape[-1] // group, kernel)
    x = find("conv_input_grad").definition.body(
        _np_first(dy), _np_turned(turned, group), size=size, stride=stride, pad=pad, dilation=dilation,
        group=group,
    )  # fmt: skip
    return _np_last(x)


@conv_last_input_grad.infer
def conv_last_input_grad(dy, w, *, channels, size, kernel, stride, pad, dilation, group, algorithm):
    _need_float32(dy=dy, w=w)
    if dy.rank != 4 or len(size) != 2:
        raise errors.value_error(f"dy must be [N, H', W', O] and size (H, W), got {dy} and {size}")
    kernel, stride, pad, dilation = full_attributes(2, kernel, stride, pad, dilation)
    per_group = _per_group(dy.shape[3], group)
    _per_group(channels, group)
    _check_algorithm(algorithm, channels, per_group, kernel, group, stride, dilation)
    _check_pack(w, algorithm, channels, per_group, kernel, group)
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
        packing = _packing(1, algorithm=algorithm, group=group, transposed=True)
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
        _np_first(x), _np_first(dy), kernel=kernel, stride=stride, pad=pad, dilation=dilation, group=group
    )


@conv_last_weight_grad.infer
def conv_last_weight_grad(x, dy, *, kernel, stride, pad, dilation, group, algorithm):
    _need_float32(x=x, dy=dy)
    if x.rank != 4 or dy.rank != 4:
        raise errors.value_error(f"x and dy must be [N, H, W, C], got {x} and {dy}")
    kernel, stride, pad, dilation = full_attributes(2, kernel, stride, pad, dilation)
    per_group = _per_group(x.shape[3], group)
    _per_group(dy.shape[3], group)
    _check_algorithm(algorithm, dy.shape[3], per_group, kernel, group, stride, dilation)
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


# --------------------------------------------------------------------------------------------- products


def _linear_pack_size(algorithm, inputs, outputs):
    """Elements of the pack of a matrix: Strassen's holds seven sums of its quarters."""
    if algorithm == "plain":
        return inputs * padded(outputs)
    if UNKNOWN in (inputs, outputs) or inputs % 2 or outputs % 2:
        raise errors.value_error(
            f"algorithm 'strassen' is for even numbers of inputs and outputs, got {inputs} and {outputs}"
        )
    return 7 * (inputs // 2) * padded(outputs // 2)


@op(name="linear_pack", nondiff=True, cost=0)
def linear_pack(w, *, transpose_w: "bool" = True, algorithm: "plain|strassen" = "plain"):
    """A matrix of weights in the form that `linear` reads by the same algorithm.

    Strassen's product has one multiplication in eight less, 7/4 of the memory and a larger error.
    Shapes: w [out, in], or [in, out] without `transpose_w` -> plain [in * padded(out)], strassen
    [7 * (in / 2) * padded(out / 2)].  dtypes: float32.  Errors: ValueError for strassen if a size is odd.
    Source: Winograd's form, Higham 2002, section 23.2.2.
    """
    w = w.T if transpose_w else w
    if algorithm == "plain":
        return _columns_padded(w).reshape(-1)
    (b11, b12), (b21, b22) = (np.hsplit(half, 2) for half in np.vsplit(w, 2))
    t1, t2 = b12 - b11, b22 - (b12 - b11)
    terms = (b11, b21, b22, t2 - b21, t1, t2, b22 - b12)
    return np.stack([_columns_padded(term) for term in terms]).reshape(-1)


def _columns_padded(matrix):
    pack = np.zeros((matrix.shape[0], padded(matrix.shape[1])), matrix.dtype)
    pack[:, : matrix.shape[1]] = matrix
    return pack


@linear_pack.infer
def linear_pack(w, *, transpose_w, algorithm):
    _need_float32(w=w)
    if w.rank != 2:
        raise errors.value_error(f"w must be a matrix, got {w}")
    outputs, inputs = w.shape if transpose_w else w.shape[::-1]
    return TensorType(w.dtype, (_linear_pack_size(algorithm, inputs, outputs),))


@linear_pack.samples
def linear_pack(rand):
    yield rand(5, 3), dict(_value=False)
    yield rand(3, 17), dict(transpose_w=False, _value=False)
    yield rand(10, 6), dict(algorithm="strassen", _value=False)
    yield rand(6, 34), dict(algorithm="strassen", transpose_w=False, _value=False)


@op(name="linear", nondiff=True)
def linear(
    x, w, b: "tensor?" = None, residual: "tensor?" = None,
    *, channels: "int", algorithm: "plain|strassen" = "plain",
    activation: "none|relu|relu6|hardswish|silu|sigmoid|gelu|gelu_tanh" = "none",
):  # fmt: skip
    """Fully connected layer on packed weights: ``activation(x @ w.T + b + residual)``.

    Shapes: x [..., in], w what `linear_pack` made for `algorithm`, b [out], residual like the result ->
    [..., out] with out `channels`.  dtypes: float32.
    Errors: ValueError if the pack or the epilogue's shapes do not fit.
    """
    depth = x.shape[-1]
    if algorithm == "plain":
        y = x @ w.reshape(depth, padded(channels))[:, :channels]
    else:
        terms = w.reshape(7, depth // 2, padded(channels // 2))[:, :, : channels // 2]
        b11, b21, b22, b12 = *terms[:3], terms[2] - terms[6]
        y = x @ np.block([[b11, b12], [b21, b22]])
    y = y if b is None else y + b
    return _np_activated(y if residual is None else y + residual, activation)


@linear.infer
def linear(x, w, b, residual, *, channels, algorithm, activation):
    _need_float32(x=x, w=w)
    if x.rank < 1 or x.shape[-1] == UNKNOWN or channels < 0:
        raise errors.value_error(f"x must be [..., in] with a known in, got {x}, and channels {channels}")
    size = _linear_pack_size(algorithm, x.shape[-1], channels)
    if w.shape != (size,):
        raise errors.value_error(
            f"w must be the '{algorithm}' pack of {channels} x {x.shape[-1]} weights: [{size}], "
            f"got {list(w.shape)}"
        )
    y = TensorType(x.dtype, (*x.shape[:-1], channels))
    _check_epilogue(y, b, residual)
    return y


@linear.samples
def linear(rand):
    def sample(x, w, b=None, residual=None, transpose_w=True, algorithm="plain", **how):
        prepare = {1: partial(linear_pack, transpose_w=transpose_w, algorithm=algorithm)}
        channels = w.shape[0 if transpose_w else 1]
        return x, w, b, residual, dict(channels=channels, algorithm=algorithm, _prepare=prepare, **how)

    yield sample(rand(2, 3), rand(4, 3), rand(4))
    yield sample(rand(2, 5, 3), rand(3, 4), rand(4), rand(2, 5, 4), transpose_w=False, activation="relu")
    yield sample(rand(3), rand(17, 3), activation="sigmoid")
    yield sample(rand(1, 67), rand(53, 67), rand(53), activation="gelu")
    yield sample(rand(7, 67), rand(67, 53), rand(53), transpose_w=False, activation="gelu_tanh")
    yield sample(rand(151, 19), rand(32, 19), rand(32), rand(151, 32), activation="silu")
    yield sample(rand(37, 131), rand(48, 131), rand(48), activation="hardswish")
    yield sample(rand(6, 16), rand(16, 16), activation="relu6")
    yield sample(rand(0, 3), rand(4, 3), rand(4))
    yield sample(rand(2, 0), rand(4, 0), rand(4))
    halved = dict(algorithm="strassen")
    yield sample(rand(5, 6), rand(34, 6), rand(34), rand(5, 34), activation="relu", **halved)
    yield sample(rand(2, 13, 10), rand(10, 40), rand(40), transpose_w=False, activation="gelu", **halved)


@linear.cost
def linear(inputs, outputs, **_):
    return _cost.product(outputs, inputs[0].shape[-1])
