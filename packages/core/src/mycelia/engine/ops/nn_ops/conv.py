"""Convolution over one to three spatial dimensions: forward, gradients, transposed forms.

One op serves every rank. Paddings of the ops are explicit (all begins, then all ends); `same_pads` and
`explicit_pads` turn MindSpore's pad modes into them. Layout is channels first: x [N, C, *spatial], w [O, C /
group, *kernel].
"""

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops import batch_rules as _batch
from mycelia.engine.ops import cost as _cost
from mycelia.engine.ops.define import find, op
from mycelia.engine.ops.layout_rules import float32_images
from mycelia.engine.ops.nn_ops.conv_geometry import full_attributes, output_size
from mycelia.engine.ops.reductions import reduce as _reduce


def _check_groups(channels, per_group, outputs, group):
    if group < 1 or outputs % group:
        raise errors.value_error(f"the {outputs} output channels must be divisible by group={group}")
    if channels >= 0 and channels != per_group * group:
        raise errors.value_error(
            f"input channels {channels} / group {group} must be the weight's channels per group {per_group}: "
            f"the input has {channels} channels, the weight takes {per_group * group}"
        )


def _np_meetings(tap, size, positions, stride, pad, dilation):
    """Where a tap meets an image of `size`: slices of its positions, and of the places that they read.

    None if all of them lie on padding.
    """
    at, read = [], []
    for d, t in enumerate(tap):
        offset = t * dilation[d] - pad[d]
        first = max(0, -(offset // stride[d]))
        last = min(positions[d] - 1, (size[d] - 1 - offset) // stride[d])
        if first > last:
            return None
        at.append(slice(first, last + 1))
        read.append(slice(first * stride[d] + offset, last * stride[d] + offset + 1, stride[d]))
    return (..., *at), (..., *read)


def _np_grouped(x, group, axis):
    """The channels of `axis` as groups of channels; float16 becomes float32, in which sums are taken."""
    x = x.astype(np.float32) if x.dtype == np.float16 else x
    return x.reshape(*x.shape[:axis], group, x.shape[axis] // group, *x.shape[axis + 1 :])


def _np_flat(x, rank):
    """The last `rank` axes as one."""
    return x.reshape(*x.shape[: x.ndim - rank], int(np.prod(x.shape[x.ndim - rank :])))


def _side_by_side(x, axis: int):
    """The examples of a batch next to one another along `axis` of an example."""
    order = [i + 1 for i in range(x.ndim - 1)]
    order.insert(axis, 0)
    x = find("transpose")(x, tuple(order))
    return _batch.reshaped(x, (*x.shape[:axis], x.shape[axis] * x.shape[axis + 1], *x.shape[axis + 2 :]))


def _apart(call, x, axis: int):
    """The inverse of `_side_by_side` for a result."""
    shape = call.out_types[0].shape
    x = _batch.reshaped(x, (*shape[:axis], call.size, *shape[axis:]))
    return find("transpose")(x, (axis, *(i for i in range(x.ndim) if i != axis)))


def _groups(call):
    return {"group": call.attrs["group"] * call.size}


# ---- convolutions with the channels last -------------------------------------------------------------------


def _geometry_last(node, kernel):
    """The attributes that the forms on channels last share."""
    kernel, stride, pad, dilation = full_attributes(
        2, kernel, node.attrs["stride"], node.attrs["pad"], node.attrs["dilation"]
    )
    return dict(kernel=kernel, stride=stride, pad=pad, dilation=dilation, group=node.attrs["group"])


def _pack(rewriter, weight, algorithm, group, transposed=False):
    attrs = dict(algorithm=algorithm, group=group, transposed=transposed)
    return rewriter.emit("conv_pack", [weight], attrs)[0]


def _algorithm(inputs, channels, group):
    """How a convolution is computed unless the backend knows a better way (`passes/algorithms.py`)."""
    return "depthwise" if group == channels == inputs else "direct"


# ---- the ops -----------------------------------------------------------------------------------------------


@op(name="conv", promote=("x", "w"), precision="short", layout=float32_images((0,), (0,), 1))
def _conv(
    x, w, b: "tensor?" = None,
    *, stride: "ints" = (1,), pad: "ints" = (0,), dilation: "ints" = (1,), group: "int" = 1,
):  # fmt: skip
    """Cross-correlation: each output is the inner product of a filter and a window, plus a bias.

    ``y[n, o, p] = b[o] + sum over c, k of w[o, c, k] * x[n, c, p * stride + k * dilation - pad]``;
    `pad` holds all begins, then all ends. A sum has the terms whose places lie inside of x: padding is never
    multiplied, neither here nor in the gradients, so that weights that are not finite reach no further.
    Shapes: x [N, C, *size], w [O, C / group, *kernel], b [O] -> [N, O, *positions], one to three dimensions.
    dtypes: floating, integers.
    Errors: ValueError if channels, groups or window sizes disagree.
    """
    _, stride, pad, dilation = full_attributes(x.ndim - 2, w.shape[2:], stride, pad, dilation)
    rank, size = x.ndim - 2, x.shape[2:]
    positions = output_size(size, w.shape[2:], stride, pad, dilation)
    xs, ws = _np_grouped(x, group, 1), _np_grouped(w, group, 0)
    y = np.zeros((*xs.shape[:2], ws.shape[1], *positions), xs.dtype)
    for tap in np.ndindex(*w.shape[2:]):
        if meetings := _np_meetings(tap, size, positions, stride, pad, dilation):
            at, read = meetings
            window = xs[read]
            y[at] += np.matmul(ws[(..., *tap)], _np_flat(window, rank)).reshape(
                *y.shape[:3], *window.shape[3:]
            )
    y = y.reshape(x.shape[0], w.shape[0], *positions).astype(x.dtype)
    return y if b is None else y + b.reshape(-1, *[1] * rank)


@_conv.infer
def _conv(x, w, b, *, stride, pad, dilation, group):
    rank = x.rank - 2
    if w.rank != x.rank:
        raise ValueError(f"x and w must have the same rank, got shapes {x.shape} and {w.shape}")
    kernel, stride, pad, dilation = full_attributes(rank, w.shape[2:], stride, pad, dilation)
    _check_groups(x.shape[1], w.shape[1], w.shape[0], group)
    if b is not None and b.shape != (w.shape[0],):
        raise ValueError(f"the bias must be [{w.shape[0]}] for w of shape {w.shape}, got {b.shape}")
    size = output_size(x.shape[2:], kernel, stride, pad, dilation)
    return TensorType(x.dtype, (x.shape[0], w.shape[0], *size))


@_conv.vjp
def _conv(ct, x, w, needs, *, stride, pad, dilation, group):
    how = dict(stride=stride, pad=pad, dilation=dilation, group=group)
    return (
        _conv_input_grad(ct, w, size=x.shape[2:], **how) if needs[0] else None,
        _conv_weight_grad(x, ct, kernel=w.shape[2:], **how) if needs[1] else None,
        _reduce.sum(ct, (0, *range(2, ct.ndim))) if needs[2] else None,
    )


@_conv.samples
def _conv(rand):
    yield rand(2, 1, 7, 6), rand(3, 1, 3, 2), rand(3)
    yield rand(1, 4, 5), rand(6, 2, 3), dict(stride=(2,), pad=(1, 2), dilation=(1,), group=2)
    yield rand(2, 3, 5, 5), rand(2, 3, 3, 3), rand(2), dict(stride=(2, 1), pad=(1, 0, 1, 2), dilation=(1, 2))
    yield (
        rand(1, 3, 4, 4),
        rand(6, 1, 3, 3),
        dict(pad=(1, 1, 1, 1), group=3),
    )  # depthwise, two outputs a channel
    yield rand(2, 4, 3, 3), rand(3, 4, 1, 1), rand(3), dict(_dtypes=("float64", "int32"))
    yield rand(1, 2, 5, 5), rand(2, 2, 2, 2), dict(stride=(4, 3))  # stride beyond the kernel
    yield rand(1, 2, 3, 4, 3), rand(2, 2, 2, 2, 2), rand(2), dict(stride=(1, 2, 1), pad=(1, 0, 0, 0, 1, 0))
    yield rand(0, 2, 5, 5), rand(3, 2, 3, 3), rand(3)
    # Sizes that reach the blocked paths of native kernels; too large for finite differences.
    yield rand(2, 7, 13, 11), rand(37, 7, 3, 3), rand(37), dict(pad=(1, 1, 1, 1), _grad=False)
    yield rand(17, 6, 14, 14), rand(16, 6, 5, 5), rand(16), dict(_grad=False)
    yield rand(3, 19, 9, 8), rand(21, 19, 3, 3), dict(stride=(2, 2), pad=(1, 1, 1, 1), _grad=False)
    yield (
        rand(3, 19, 9, 8),
        rand(19, 1, 3, 3),
        rand(19),
        dict(stride=(2, 1), pad=(1, 1, 1, 1), group=19, _grad=False),
    )
    yield rand(1, 67, 5, 7), rand(33, 67, 1, 1), dict(_grad=False)


@_conv.batch
def _conv(call):
    """Shared weights: more images; weights of each example: more groups of channels."""
    if call.only(0):
        return _batch.joined(0)(call)
    if not call.batched[1]:
        return _batch.one_by_one(call)
    x, w = _side_by_side(call.whole(0), 1), _side_by_side(call.operands[1], 0)
    b = call.whole(2)
    found = call.run([x, w, None if b is None else _batch.reshaped(b, (-1,))], **_groups(call))
    return [_apart(call, found[0], 1)]


@_conv.cost
def _conv(inputs, outputs, **_):
    return _cost.window(outputs[0], inputs[1])


@_conv.layout
def _conv(rewriter, node):
    x, weight, bias = node.inputs
    how = _geometry_last(node, weight.type.shape[2:])
    channels = weight.type.shape[0]
    algorithm = _algorithm(x.type.shape[1], channels, how["group"])
    pack = _pack(rewriter, weight, algorithm, how["group"])
    attrs = dict(channels=channels, algorithm=algorithm, **how)
    return rewriter.emit("conv_last", [rewriter.last(x), pack, bias, None], attrs, rewriter.types)


@op(name="conv_input_grad", promote=("dy", "w"), precision="short", layout=float32_images((0,), (0,), 1))
def _conv_input_grad(
    dy, w,
    *, size: "ints", stride: "ints" = (1,), pad: "ints" = (0,), dilation: "ints" = (1,), group: "int" = 1,
):  # fmt: skip
    """Gradient of `conv` for x of spatial `size`; also the transposed convolution with that output size.

    ``y[n, c, p * stride + k * dilation - pad] += w[o, c, k] * dy[n, o, p]``.
    Shapes: dy [N, O, *positions], w [O, C / group, *kernel] -> [N, C, *size].  dtypes: floating, integers.
    Errors: ValueError if `conv` over `size` would not give dy's positions.
    """
    _, stride, pad, dilation = full_attributes(dy.ndim - 2, w.shape[2:], stride, pad, dilation)
    rank, size = dy.ndim - 2, tuple(size)
    ys, ws = _np_grouped(dy, group, 1), _np_grouped(w, group, 0).swapaxes(1, 2)
    x = np.zeros((*ys.shape[:2], ws.shape[1], *size), ys.dtype)
    for tap in np.ndindex(*w.shape[2:]):
        if meetings := _np_meetings(tap, size, dy.shape[2:], stride, pad, dilation):
            at, read = meetings
            part = ys[at]
            x[read] += np.matmul(ws[(..., *tap)], _np_flat(part, rank)).reshape(*x.shape[:3], *part.shape[3:])
    return x.reshape(dy.shape[0], w.shape[1] * group, *size).astype(dy.dtype)


@_conv_input_grad.infer
def _conv_input_grad(dy, w, *, size, stride, pad, dilation, group):
    if w.rank != dy.rank:
        raise ValueError(f"dy and w must have the same rank, got shapes {dy.shape} and {w.shape}")
    kernel, stride, pad, dilation = full_attributes(dy.rank - 2, w.shape[2:], stride, pad, dilation)
    _check_groups(-1, w.shape[1], w.shape[0], group)
    if len(size) != len(kernel):
        raise ValueError(f"size must have {len(kernel)} entries, got {size}")
    if dy.shape[1] not in (-1, w.shape[0]):
        raise ValueError(f"dy of shape {dy.shape} must have the weight's {w.shape[0]} output channels")
    expected = output_size(size, kernel, stride, pad, dilation)
    if any(a != b and -1 not in (a, b) for a, b in zip(expected, dy.shape[2:], strict=True)):
        raise ValueError(f"a convolution over size {size} gives positions {expected}, dy has {dy.shape[2:]}")
    return TensorType(dy.dtype, (dy.shape[0], w.shape[1] * group, *size))


@_conv_input_grad.vjp
def _conv_input_grad(ct, dy, w, needs, *, size, stride, pad, dilation, group):
    how = dict(stride=stride, pad=pad, dilation=dilation, group=group)
    return (
        _conv(ct, w, **how) if needs[0] else None,
        _conv_weight_grad(ct, dy, kernel=w.shape[2:], **how) if needs[1] else None,
    )


@_conv_input_grad.samples
def _conv_input_grad(rand):
    yield rand(2, 3, 3, 4), rand(3, 2, 3, 2), dict(size=(5, 5))
    yield rand(1, 4, 3), rand(4, 1, 2), dict(size=(6,), stride=(2,), pad=(1, 0), group=2)
    yield (
        rand(2, 2, 3, 2),
        rand(2, 3, 3, 2),
        dict(size=(5, 7), stride=(2, 3), pad=(1, 0, 1, 1), dilation=(1, 2)),
    )
    yield rand(1, 2, 2, 2), rand(2, 1, 2, 2), dict(size=(7, 6), stride=(4, 3))  # rows that no window touches
    yield rand(1, 2, 2, 2, 2), rand(2, 2, 2, 1, 2), dict(size=(3, 2, 4), stride=(1, 1, 2))
    yield rand(0, 3, 3, 3), rand(3, 2, 3, 3), dict(size=(5, 5))
    yield rand(2, 37, 13, 11), rand(37, 7, 3, 3), dict(size=(13, 11), pad=(1, 1, 1, 1), _grad=False)
    yield rand(17, 16, 10, 10), rand(16, 6, 5, 5), dict(size=(14, 14), _grad=False)
    yield (
        rand(3, 21, 5, 4),
        rand(21, 19, 3, 3),
        dict(size=(9, 8), stride=(2, 2), pad=(1, 1, 1, 1), _grad=False),
    )
    yield (
        rand(3, 19, 5, 8),
        rand(19, 1, 3, 3),
        dict(size=(9, 8), stride=(2, 1), pad=(1, 1, 1, 1), group=19, _grad=False),
    )


@_conv_input_grad.batch
def _conv_input_grad(call):
    if call.only(0):
        return _batch.joined(0)(call)
    dy, w = _side_by_side(call.whole(0), 1), _side_by_side(call.operands[1], 0)
    return [_apart(call, call.run([dy, w], **_groups(call))[0], 1)]


@_conv_input_grad.cost
def _conv_input_grad(inputs, outputs, **_):
    return _cost.window(inputs[0], inputs[1])


@_conv_input_grad.layout
def _conv_input_grad(rewriter, node):
    dy, weight = node.inputs
    how = _geometry_last(node, weight.type.shape[2:])
    channels, pad = weight.type.shape[1] * how["group"], how["pad"]
    reach = [d * (k - 1) for d, k in zip(how["dilation"], how["kernel"])] * 2
    if how["stride"] == (1, 1) and all(p <= r for p, r in zip(pad, reach)):
        # Without a stride it is a convolution of dy with the turned weights.
        how["pad"] = tuple(r - p for p, r in zip(pad, reach))
        algorithm = _algorithm(dy.type.shape[1], channels, how["group"])
        pack = _pack(rewriter, weight, algorithm, how["group"], transposed=True)
        attrs = dict(channels=channels, algorithm=algorithm, **how)
        return rewriter.emit("conv_last", [rewriter.last(dy), pack, None, None], attrs, rewriter.types)
    algorithm = _algorithm(weight.type.shape[0], channels, how["group"])
    pack = _pack(rewriter, weight, algorithm, how["group"], transposed=True)
    attrs = dict(channels=channels, size=node.attrs["size"], algorithm=algorithm, **how)
    return rewriter.emit("conv_last_input_grad", [rewriter.last(dy), pack], attrs, rewriter.types)


@op(name="conv_weight_grad", promote=("x", "dy"), layout=float32_images((0, 1), ()))
def _conv_weight_grad(
    x, dy,
    *, kernel: "ints", stride: "ints" = (1,), pad: "ints" = (0,), dilation: "ints" = (1,), group: "int" = 1,
):  # fmt: skip
    """Gradient of `conv` with respect to w of spatial size `kernel`.

    ``sum over n, p of dy[n, o, p] * x[n, c, p * stride + k * dilation - pad]``.
    Shapes: x [N, C, *size], dy [N, O, *positions] -> [O, C / group, *kernel].  dtypes: floating, integers.
    Errors: ValueError if `conv` would not give dy's positions.
    """
    kernel, stride, pad, dilation = full_attributes(x.ndim - 2, kernel, stride, pad, dilation)
    rank = x.ndim - 2
    xs, ys = _np_grouped(x, group, 1), _np_grouped(dy, group, 1)
    w = np.zeros((group, ys.shape[2], xs.shape[2], *kernel), xs.dtype)

    def columns(part):
        """[N, group, channels, *places] -> [group, channels, N * places]"""
        return _np_flat(np.moveaxis(part, 0, 2), rank + 1)

    for tap in np.ndindex(*kernel):
        if meetings := _np_meetings(tap, x.shape[2:], dy.shape[2:], stride, pad, dilation):
            at, read = meetings
            w[(..., *tap)] = np.matmul(columns(ys[at]), columns(xs[read]).swapaxes(1, 2))
    return w.reshape(dy.shape[1], x.shape[1] // group, *kernel).astype(x.dtype)


@_conv_weight_grad.infer
def _conv_weight_grad(x, dy, *, kernel, stride, pad, dilation, group):
    if dy.rank != x.rank:
        raise ValueError(f"x and dy must have the same rank, got shapes {x.shape} and {dy.shape}")
    kernel, stride, pad, dilation = full_attributes(x.rank - 2, kernel, stride, pad, dilation)
    _check_groups(x.shape[1], x.shape[1] // group if group > 0 else -1, dy.shape[1], group)
    expected = (x.shape[0], *output_size(x.shape[2:], kernel, stride, pad, dilation))
    got = (dy.shape[0], *dy.shape[2:])
    if any(a != b and -1 not in (a, b) for a, b in zip(expected, got, strict=True)):
        raise ValueError(
            f"a convolution of x {x.shape} gives [{expected[0]}, O, *{expected[1:]}], dy is {dy.shape}"
        )
    return TensorType(x.dtype, (dy.shape[1], x.shape[1] // group, *kernel))


@_conv_weight_grad.vjp
def _conv_weight_grad(ct, x, dy, needs, *, kernel, stride, pad, dilation, group):
    how = dict(stride=stride, pad=pad, dilation=dilation, group=group)
    return (
        _conv_input_grad(dy, ct, size=x.shape[2:], **how) if needs[0] else None,
        _conv(x, ct, **how) if needs[1] else None,
    )


@_conv_weight_grad.samples
def _conv_weight_grad(rand):
    yield rand(2, 2, 5, 5), rand(2, 3, 3, 4), dict(kernel=(3, 2))
    yield rand(1, 2, 6), rand(1, 4, 3), dict(kernel=(3,), stride=(2,), pad=(1, 0), group=2)
    yield (
        rand(2, 2, 5, 7),
        rand(2, 2, 3, 2),
        dict(kernel=(3, 2), stride=(2, 3), pad=(1, 0, 1, 1), dilation=(1, 2)),
    )
    yield rand(1, 2, 3, 2, 4), rand(1, 2, 2, 2, 2), dict(kernel=(2, 1, 2), stride=(1, 1, 2))
    yield rand(0, 2, 5, 5), rand(0, 3, 3, 3), dict(kernel=(3, 3))
    yield rand(2, 7, 13, 11), rand(2, 37, 13, 11), dict(kernel=(3, 3), pad=(1, 1, 1, 1), _grad=False)
    yield rand(17, 6, 14, 14), rand(17, 16, 10, 10), dict(kernel=(5, 5), _grad=False)
    yield (
        rand(3, 19, 9, 8),
        rand(3, 21, 5, 4),
        dict(kernel=(3, 3), stride=(2, 2), pad=(1, 1, 1, 1), _grad=False),
    )
    yield (
        rand(3, 19, 9, 8),
        rand(3, 19, 5, 8),
        dict(kernel=(3, 3), stride=(2, 1), pad=(1, 1, 1, 1), group=19, _grad=False),
    )


@_conv_weight_grad.batch
def _conv_weight_grad(call):
    x, dy = _side_by_side(call.whole(0), 1), _side_by_side(call.whole(1), 1)
    return [_apart(call, call.run([x, dy], **_groups(call))[0], 0)]


@_conv_weight_grad.cost
def _conv_weight_grad(inputs, outputs, **_):
    return _cost.window(inputs[1], outputs[0])


@_conv_weight_grad.layout
def _conv_weight_grad(rewriter, node):
    how = _geometry_last(node, node.attrs["kernel"])
    inputs = [rewriter.last(v) for v in node.inputs]
    return rewriter.emit("conv_last_weight_grad", inputs, how, rewriter.types)
