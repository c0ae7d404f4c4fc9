"""Convolution over one to three spatial dimensions: forward, gradients, transposed forms, unfold and fold.

One op serves every rank. Paddings of the ops are explicit (all begins, then all ends); `same_pads` and
`explicit_pads` turn MindSpore's pad modes into them. Layout is channels first: x [N, C, *spatial], w [O, C /
group, *kernel].
"""

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops import batch_rules as _batch
from mycelia.engine.ops import cost as _cost
from mycelia.engine.ops.arrays import shape as _shape
from mycelia.engine.ops.define import find, op
from mycelia.engine.ops.reductions import reduce as _reduce

# --------------------------------------------------------------------------------------------- geometry


def same_pads(size, kernel, stride, dilation):
    """Explicit paddings (begins, then ends) of pad mode 'same': ``ceil(size / stride)`` output positions.

    The smaller half comes first. Unknown sizes (-1) are allowed where the stride is 1.
    """
    begins, ends = [], []
    for n, k, s, d in zip(size, kernel, stride, dilation, strict=True):
        if n < 0 and s != 1:
            raise errors.value_error(
                f"pad mode 'same' with stride {s} needs known spatial sizes, got {tuple(size)}"
            )
        outputs = n if s == 1 else -(-n // s)
        total = max((outputs - 1) * s + (k - 1) * d + 1 - n, 0)
        begins.append(total // 2)
        ends.append(total - total // 2)
    return (*begins, *ends)


def spread(name, value, rank, least, owner):
    """`rank` ints from one int or a sequence, each at least `least`; errors name `owner` and `name`."""
    values = (value,) * rank if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(values, (tuple, list)) or any(
        isinstance(v, bool) or not isinstance(v, int) for v in values
    ):
        kind = type(value).__name__
        raise errors.type_error(
            f"For '{owner}', '{name}' must be an int or {rank} ints, got {value!r} ({kind})"
        )
    if len(values) == 1:
        values = tuple(values) * rank
    if len(values) != rank:
        raise errors.value_error(
            f"For '{owner}', '{name}' must be an int or a tuple of {rank} ints, got {value!r}"
        )
    if any(v < least for v in values):
        raise errors.value_error(f"For '{owner}', '{name}' must be at least {least}, got {value!r}")
    return tuple(values)


def explicit_pads(owner, pad_mode, padding, size, kernel, stride, dilation):
    """Explicit paddings for MindSpore's `pad_mode`;
    `padding` is symmetric or has begin and end a dimension.
    """
    rank = len(kernel)
    if pad_mode == "pad":
        if isinstance(padding, (tuple, list)) and len(padding) == 2 * rank and rank > 1:
            both = spread("padding", padding, 2 * rank, 0, owner)  # (top, bottom, left, right)
            return (*both[0::2], *both[1::2])
        return spread("padding", padding, rank, 0, owner) * 2
    if pad_mode not in ("valid", "same"):
        raise errors.value_error(
            f"For '{owner}', 'pad_mode' must be 'valid', 'same' or 'pad', got {pad_mode!r}"
        )
    if any(padding) if isinstance(padding, (tuple, list)) else padding:
        raise errors.value_error(
            f"For '{owner}', 'padding' must be 0 when 'pad_mode' is {pad_mode!r}, got {padding!r}"
        )
    return same_pads(size, kernel, stride, dilation) if pad_mode == "same" else (0,) * (2 * rank)


LARGEST = 2**31 - 1  # kernel, stride, pad, dilation: sums and products of positions stay far from overflow


def full_attributes(rank, kernel, stride, pad, dilation):
    """The list attributes, each with one entry a spatial dimension (pads: two), checked."""
    if not 1 <= rank <= 3:
        raise errors.value_error(f"convolution has 1 to 3 spatial dimensions, got {rank}")

    def full(name, values, count, least):
        values = tuple(values) * count if len(values) == 1 else tuple(values)
        if len(values) != count or min(values) < least:
            raise errors.value_error(f"{name} must have {count} entries of {least} or more, got {values}")
        if max(values) > LARGEST:
            raise errors.value_error(f"{name} must have entries of at most {LARGEST}, got {values}")
        return values

    return (
        full("kernel", kernel, rank, 1),
        full("stride", stride, rank, 1),
        full("pad", pad, 2 * rank, 0),
        full("dilation", dilation, rank, 1),
    )


def output_size(size, kernel, stride, pad, dilation):
    """Positions of the window in each dimension; -1 where the size is unknown."""
    rank, out = len(kernel), []
    for d in range(rank):
        span = (kernel[d] - 1) * dilation[d] + 1
        padded = size[d] + pad[d] + pad[rank + d]
        if size[d] >= 0 and padded < span:
            raise errors.value_error(
                f"a window of {span} does not fit the padded size {padded} of spatial dimension {d}"
            )
        out.append(-1 if size[d] < 0 else (padded - span) // stride[d] + 1)
    return tuple(out)


def _check_groups(channels, per_group, outputs, group):
    if group < 1 or outputs % group:
        raise errors.value_error(f"the {outputs} output channels must be divisible by group={group}")
    if channels >= 0 and channels != per_group * group:
        raise errors.value_error(
            f"input channels {channels} / group {group} must be the weight's channels per group {per_group}: "
            f"the input has {channels} channels, the weight takes {per_group * group}"
        )


# --------------------------------------------------------------------------------------------- NumPy bodies


def _np_windows(x, kernel, stride, pad, dilation):
    """Columns of a zero-padded array: [N, C, *spatial] -> [N, C, *kernel, *positions]."""
    rank = len(kernel)
    size = output_size(x.shape[2:], kernel, stride, pad, dilation)
    if any(pad):
        x = np.pad(x, [(0, 0), (0, 0), *zip(pad[:rank], pad[rank:], strict=True)])
    steps = x.strides[2:]
    strides = (*x.strides[:2], *(s * d for s, d in zip(steps, dilation, strict=True)),
               *(s * d for s, d in zip(steps, stride, strict=True)))  # fmt: skip
    view = np.lib.stride_tricks.as_strided(x, (*x.shape[:2], *kernel, *size), strides, writeable=False)
    return np.ascontiguousarray(view)


def _np_add_windows(columns, size, stride, pad, dilation):
    """Transpose of `_np_windows`: every column element is added where it came from; -> [N, C, *size]."""
    rank = len(size)
    kernel, positions = columns.shape[2 : 2 + rank], columns.shape[2 + rank :]
    padded = tuple(n + pad[d] + pad[rank + d] for d, n in enumerate(size))
    out = np.zeros((*columns.shape[:2], *padded), columns.dtype)
    for tap in np.ndindex(*kernel):
        where = tuple(
            slice(t * dl, t * dl + (p - 1) * s + 1 if p else t * dl, s)
            for t, dl, p, s in zip(tap, dilation, positions, stride, strict=True)
        )
        out[(..., *where)] += columns[(slice(None), slice(None), *tap)]
    inside = tuple(slice(pad[d], pad[d] + n) for d, n in enumerate(size))
    return np.ascontiguousarray(out[(..., *inside)])


def _np_product(a, b):
    """Batched matrix product; half precision is summed in float32."""
    if a.dtype == np.float16:
        return np.matmul(a.astype(np.float32), b.astype(np.float32)).astype(np.float16)
    return np.matmul(a, b)


# --------------------------------------------------------------------------------------------- convolution


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


@op(name="conv", promote=("x", "w"), precision="short")
def _conv(
    x, w, b: "tensor?" = None,
    *, stride: "ints" = (1,), pad: "ints" = (0,), dilation: "ints" = (1,), group: "int" = 1,
):  # fmt: skip
    """Cross-correlation: each output is the inner product of a filter and a window, plus a bias.

    ``y[n, o, p] = b[o] + sum over c, k of w[o, c, k] * x[n, c, p * stride + k * dilation - pad]``;
    `pad` holds all begins, then all ends.
    Shapes: x [N, C, *size], w [O, C / group, *kernel], b [O] -> [N, O, *positions], one to three dimensions.
    dtypes: floating, integers.
    Errors: ValueError if channels, groups or window sizes disagree.
    """
    _, stride, pad, dilation = full_attributes(x.ndim - 2, w.shape[2:], stride, pad, dilation)
    columns = _np_windows(x, w.shape[2:], stride, pad, dilation)
    positions = columns.shape[w.ndim :]
    y = _np_product(
        w.reshape(group, w.shape[0] // group, int(np.prod(w.shape[1:]))),
        columns.reshape(x.shape[0], group, int(np.prod(w.shape[1:])), int(np.prod(positions))),
    ).reshape(x.shape[0], w.shape[0], *positions)
    return y if b is None else y + b.reshape(-1, *[1] * len(positions))


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


@op(name="conv_input_grad", promote=("dy", "w"), precision="short")
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
    positions = dy.shape[2:]
    columns = _np_product(
        w.reshape(group, w.shape[0] // group, int(np.prod(w.shape[1:]))).swapaxes(1, 2),
        dy.reshape(dy.shape[0], group, w.shape[0] // group, int(np.prod(positions))),
    ).reshape(dy.shape[0], w.shape[1] * group, *w.shape[2:], *positions)
    return _np_add_windows(columns, tuple(size), stride, pad, dilation)


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


@op(name="conv_weight_grad", promote=("x", "dy"))
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
    n, o, positions = x.shape[0], dy.shape[1], int(np.prod(dy.shape[2:]))
    per_group = x.shape[1] // group
    columns = _np_windows(x, kernel, stride, pad, dilation).reshape(
        n, group, per_group * int(np.prod(kernel)), positions
    )
    a = (
        dy.reshape(n, group, o // group, positions)
        .transpose(1, 2, 0, 3)
        .reshape(group, o // group, n * positions)
    )
    b = columns.transpose(1, 0, 3, 2).reshape(group, n * positions, per_group * int(np.prod(kernel)))
    return _np_product(a, b).reshape(o, per_group, *kernel)


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


# --------------------------------------------------------------------------------------------- unfold, fold


@op(name="im2col", batch=_batch.joined(0), cost=0)
def _im2col(x, *, kernel: "ints", stride: "ints" = (1,), pad: "ints" = (0,), dilation: "ints" = (1,)):
    """All windows of the zero-padded x as columns.

    Shapes: x [N, C, *size] -> [N, C * prod(kernel), prod(positions)], positions as in `conv`.  dtypes: any.
    """
    kernel, stride, pad, dilation = full_attributes(x.ndim - 2, kernel, stride, pad, dilation)
    columns = _np_windows(x, kernel, stride, pad, dilation)
    taps, positions = int(np.prod(kernel)), int(np.prod(columns.shape[x.ndim :]))
    return columns.reshape(x.shape[0], x.shape[1] * taps, positions)


@_im2col.infer
def _im2col(x, *, kernel, stride, pad, dilation):
    kernel, stride, pad, dilation = full_attributes(x.rank - 2, kernel, stride, pad, dilation)
    size = output_size(x.shape[2:], kernel, stride, pad, dilation)
    taps = int(np.prod(kernel))
    channels = -1 if x.shape[1] < 0 else x.shape[1] * taps
    return TensorType(x.dtype, (x.shape[0], channels, -1 if min(size) < 0 else int(np.prod(size))))


@_im2col.vjp
def _im2col(ct, x_shape, *, kernel, stride, pad, dilation):
    return _col2im(ct, size=x_shape[2:], kernel=kernel, stride=stride, pad=pad, dilation=dilation)


@_im2col.samples
def _im2col(rand):
    yield rand(2, 2, 4, 3), dict(kernel=(2, 2))
    yield rand(1, 2, 5, 5), dict(kernel=(3, 2), stride=(2, 1), pad=(1, 0, 0, 1), dilation=(1, 2))
    yield rand(1, 2, 6), dict(kernel=(2,), stride=(3,), _dtypes=("int32",))
    yield rand(1, 1, 3, 3, 2), dict(kernel=(2, 1, 2))
    yield rand(0, 2, 4, 3), dict(kernel=(2, 2))


@op(name="col2im", batch=_batch.joined(0), cost=0)
def _col2im(
    x, *, size: "ints", kernel: "ints", stride: "ints" = (1,), pad: "ints" = (0,), dilation: "ints" = (1,)
):
    """Sum of columns at the places `im2col` took them from.

    Shapes: x [N, C * prod(kernel), prod(positions)] -> [N, C, *size].  dtypes: any.
    Errors: ValueError if `im2col` over `size` would not give x's shape.
    """
    kernel, stride, pad, dilation = full_attributes(len(size), kernel, stride, pad, dilation)
    positions = output_size(size, kernel, stride, pad, dilation)
    columns = x.reshape(x.shape[0], x.shape[1] // int(np.prod(kernel)), *kernel, *positions)
    return _np_add_windows(columns, tuple(size), stride, pad, dilation)


@_col2im.infer
def _col2im(x, *, size, kernel, stride, pad, dilation):
    kernel, stride, pad, dilation = full_attributes(len(size), kernel, stride, pad, dilation)
    taps, positions = int(np.prod(kernel)), int(np.prod(output_size(size, kernel, stride, pad, dilation)))
    if x.rank != 3 or x.shape[1] % taps or x.shape[2] not in (-1, positions):
        raise ValueError(
            f"x must be [N, C * {taps}, {positions}] for size {size} and kernel {kernel}, got {x.shape}"
        )
    return TensorType(x.dtype, (x.shape[0], x.shape[1] // taps, *size))


@_col2im.vjp
def _col2im(ct, *, size, kernel, stride, pad, dilation):
    return _im2col(ct, kernel=kernel, stride=stride, pad=pad, dilation=dilation)


@_col2im.samples
def _col2im(rand):
    yield rand(2, 8, 6), dict(size=(4, 3), kernel=(2, 2))
    yield rand(1, 12, 4), dict(size=(5, 5), kernel=(3, 2), stride=(2, 2), pad=(1, 0, 0, 1), dilation=(1, 2))
    yield rand(1, 4, 2), dict(size=(6,), kernel=(2,), stride=(3,))
    yield rand(0, 4, 6), dict(size=(4, 3), kernel=(2, 2))


# --------------------------------------------------------------------------------------------- public


def _convolution(owner, x, weight, bias, stride, pad_mode, padding, dilation, groups):
    rank = {"conv1d": 1, "conv2d": 2, "conv3d": 3}[owner]
    if x.ndim != rank + 2 or weight.ndim != rank + 2:
        raise errors.value_error(
            f"For '{owner}', input and weight must have rank {rank + 2}, got {x.shape} and {weight.shape}"
        )
    stride = spread("stride", stride, rank, 1, owner)
    dilation = spread("dilation", dilation, rank, 1, owner)
    if isinstance(padding, (tuple, list)) and len(padding) not in (1, rank):
        raise errors.value_error(
            f"For '{owner}', 'padding' must be an int or a tuple of {rank} ints, got {padding!r}"
        )
    pad = explicit_pads(owner, pad_mode, padding, x.shape[2:], weight.shape[2:], stride, dilation)
    return _conv(x, weight, bias, stride=stride, pad=pad, dilation=dilation, group=groups)


def conv1d(input, weight, bias=None, stride=1, pad_mode="valid", padding=0, dilation=1, groups=1):
    """Convolution over one spatial dimension, see `conv2d`.

    Shapes: input [N, C, L], weight [O, C / groups, K], bias [O] -> [N, O, positions].
    """
    return _convolution("conv1d", input, weight, bias, stride, pad_mode, padding, dilation, groups)


def conv2d(input, weight, bias=None, stride=1, pad_mode="valid", padding=0, dilation=1, groups=1):
    """Convolution (cross-correlation) of images with a bank of filters.

    `pad_mode`: 'valid' (no padding), 'same' (``ceil(size / stride)`` positions) or 'pad' (`padding` on both
    sides, an int or one int a dimension).
    Shapes: input [N, C, H, W], weight [O, C / groups, KH, KW], bias [O] -> [N, O, *positions].
    dtypes: floating.
    Errors: ValueError for wrong channels, groups, pad mode or window sizes; TypeError for what is not an int.
    """
    return _convolution("conv2d", input, weight, bias, stride, pad_mode, padding, dilation, groups)


def conv3d(input, weight, bias=None, stride=1, pad_mode="valid", padding=0, dilation=1, groups=1):
    """Convolution over three spatial dimensions, see `conv2d`.

    Shapes: input [N, C, D, H, W], weight [O, C / groups, KD, KH, KW], bias [O] -> [N, O, *positions].
    """
    return _convolution("conv3d", input, weight, bias, stride, pad_mode, padding, dilation, groups)


def conv_transpose(
    input, weight, bias=None, stride=1, pad_mode="valid", padding=0, dilation=1, group=1, output_padding=0
):
    """Transposed convolution over one to three dimensions with the pad modes of the nn layers.

    Output sizes: 'same' ``size * stride``; 'valid' ``size * stride + max(span - stride, 0)``; 'pad'
    ``(size - 1) * stride + span - paddings + output_padding``, where ``span = dilation * (kernel - 1) + 1``.
    `padding`: an int, one int a dimension, or begin and end for each dimension.
    Shapes: input [N, C, *size], weight [C, O / group, *kernel], bias [O] -> [N, O, *sizes].
    Errors: ValueError for wrong channels, groups or pad mode, `output_padding` without pad mode 'pad'.
    """
    owner, rank = "conv_transpose", input.ndim - 2
    kernel = weight.shape[2:]
    stride = spread("stride", stride, rank, 1, owner)
    dilation = spread("dilation", dilation, rank, 1, owner)
    extra = spread("output_padding", output_padding, rank, 0, owner)
    span = tuple(d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True))
    if pad_mode != "pad" and any(extra):
        raise errors.value_error(
            f"For '{owner}', 'output_padding' must be zero when 'pad_mode' is {pad_mode!r}, got {extra}"
        )
    if any(e >= max(s, d) for e, s, d in zip(extra, stride, dilation, strict=True)):
        raise errors.value_error(
            f"For '{owner}', 'output_padding' {extra} must be less than stride {stride} or dilation"
        )
    if pad_mode == "pad":
        pad = explicit_pads(owner, "pad", padding, input.shape[2:], kernel, stride, dilation)
        size = tuple(
            (n - 1) * stride[d] + span[d] - pad[d] - pad[rank + d] + extra[d]
            for d, n in enumerate(input.shape[2:])
        )
        if min(size) < 1:
            raise errors.value_error(
                f"For '{owner}', input {input.shape} with padding {pad} gives no output: size {size}"
            )
    else:
        size = tuple(
            n * s + (max(p - s, 0) if pad_mode == "valid" else 0)
            for n, s, p in zip(input.shape[2:], stride, span, strict=True)
        )
        pad = explicit_pads(owner, pad_mode, padding, size, kernel, stride, dilation)
    y = _conv_input_grad(input, weight, size=size, stride=stride, pad=pad, dilation=dilation, group=group)
    return y if bias is None else y + _shape.reshape(bias, (1, bias.size) + (1,) * rank)


def conv_transpose2d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """Transposed convolution of images with explicit padding, see `conv_transpose` with pad mode 'pad'.

    Shapes: input [N, C, H, W], weight [C, O / groups, KH, KW], bias [O] -> [N, O, *sizes].
    """
    if input.ndim != 4:
        raise errors.value_error(f"For 'conv_transpose2d', input must have rank 4, got shape {input.shape}")
    return conv_transpose(input, weight, bias, stride, "pad", padding, dilation, groups, output_padding)


def conv3d_transpose(
    inputs, weight, pad_mode="valid", padding=0, stride=1, dilation=1, group=1, output_padding=0
):
    """Transposed convolution over three dimensions, see `conv_transpose`.

    Shapes: inputs [N, C, D, H, W], weight [C, O / group, KD, KH, KW] -> [N, O, *sizes].
    """
    if inputs.ndim != 5:
        raise errors.value_error(f"For 'conv3d_transpose', inputs must have rank 5, got shape {inputs.shape}")
    return conv_transpose(inputs, weight, None, stride, pad_mode, padding, dilation, group, output_padding)


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """Sliding windows of a batch of images as columns.

    Shapes: input [N, C, H, W] -> [N, C * KH * KW, positions].  dtypes: any.
    Errors: ValueError if the rank is not 4.
    """
    if input.ndim != 4:
        raise errors.value_error(f"For 'unfold', input must have rank 4, got shape {input.shape}")
    return _im2col(
        input,
        kernel=spread("kernel_size", kernel_size, 2, 1, "unfold"),
        stride=spread("stride", stride, 2, 1, "unfold"),
        pad=spread("padding", padding, 2, 0, "unfold") * 2,
        dilation=spread("dilation", dilation, 2, 1, "unfold"),
    )


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """Sum of columns at the places `unfold` takes them from.

    `output_size` is a pair of ints or a tensor of two.
    Shapes: input [N, C * KH * KW, positions] or [N, C, KH * KW, positions] -> [N, C, *output_size].
    Errors: ValueError if the number of columns does not fit.
    """
    if input.ndim not in (3, 4):
        raise errors.value_error(f"For 'fold', input must have rank 3 or 4, got shape {input.shape}")
    if not isinstance(output_size, (int, tuple, list)):
        output_size = tuple(int(n) for n in output_size.asnumpy())
    if input.ndim == 4:
        input = _shape.reshape(input, (input.shape[0], input.shape[1] * input.shape[2], input.shape[3]))
    if isinstance(output_size, (tuple, list)) and any(n < 0 for n in output_size):
        raise errors.value_error(
            f"For 'fold', the value of 'output_size' must not be negative, but got {tuple(output_size)}"
        )
    return _col2im(
        input,
        size=spread("output_size", output_size, 2, 1, "fold"),
        kernel=spread("kernel_size", kernel_size, 2, 1, "fold"),
        stride=spread("stride", stride, 2, 1, "fold"),
        pad=spread("padding", padding, 2, 0, "fold") * 2,
        dilation=spread("dilation", dilation, 2, 1, "fold"),
    )


__all__ = [
    "conv1d", "conv2d", "conv3d", "conv3d_transpose", "conv_transpose2d", "fold", "unfold",
]  # fmt: skip
