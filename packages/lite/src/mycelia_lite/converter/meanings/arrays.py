"""Shapes, parts and reductions of arrays by numbers that are data."""

from __future__ import annotations

import numpy as np

from mycelia_lite.converter.meanings.table import meaning


@meaning("Reshape")
def reshaped(x, shape):
    """0 stands for the size that x has there."""
    return x.reshape([x.shape[i] if n == 0 else int(n) for i, n in enumerate(shape)])


@meaning("reshape")
def reshaped_as_given(x, shape):
    return x.reshape(tuple(map(int, shape)))


@meaning("BroadcastTo")
def broadcast(x, shape):
    return np.broadcast_to(x, tuple(map(int, shape)))


@meaning("Fill")
def filled(value, shape):
    return np.full(tuple(map(int, shape)), value)


@meaning("TileFusion")
def tiled(x, repeats, *, dims):
    return np.tile(x, tuple(map(int, repeats)))


@meaning("StridedSlice")
def sliced(x, starts, ends, axes, steps):
    """Places beyond the ends of an axis are moved to them; those below 0 count from its end."""
    for start, end, axis, step in zip(*(v.tolist() for v in (starts, ends, axes, steps)), strict=True):
        n = x.shape[axis]
        lowest, highest = (0, n) if step > 0 else (-1, n - 1)
        first, last = (max(lowest, min(i + n if i < 0 else i, highest)) for i in (start, end))
        x = np.take(x, np.arange(first, last, step), axis)
    return x


@meaning("ExpandDims")
def expanded(x, axes):
    return np.expand_dims(x, tuple(map(int, axes)))


@meaning("Transpose")
def turned(x, order):
    return x.transpose(tuple(map(int, order)))


@meaning("TopKFusion")
def best(x, k, *, axis, largest, sorted):
    """Of equal elements the first ones."""
    n, count = x.shape[axis], int(k.reshape(()))
    if largest:  # from the back, lest the sign of the least integer be changed
        order = n - 1 - np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
    else:
        order = np.argsort(x, axis, kind="stable")
    places = np.take(order, np.arange(count), axis)
    return np.take_along_axis(x, places, axis), places.astype(np.int32)


@meaning("ReverseSequence")
def reversed_sequences(x, lengths, *, batch_dim, seq_dim):
    made = np.moveaxis(x, (batch_dim, seq_dim), (0, 1)).copy()
    for row, length in zip(made, lengths.tolist(), strict=True):
        row[:length] = row[:length][::-1].copy()
    return np.moveaxis(made, (0, 1), (batch_dim, seq_dim))


@meaning("PadFusion")
def mirrored(x, pads, *, padding_mode):
    return np.pad(x, pads.tolist(), padding_mode.lower())


@meaning("pad")
def padded(x, pads, *more, mode, given):
    """`more`: the element and the axes, where `given` says that they are there. Pads below 0 cut off."""
    value, axes = (more[sum(given[:i])] if there else None for i, there in enumerate(given))
    axes = range(x.ndim) if axes is None else [int(a) % x.ndim for a in axes]
    both = [[0, 0] for _ in range(x.ndim)]
    for i, axis in enumerate(axes):
        both[axis] = [int(pads[i]), int(pads[i + len(axes)])]
    kept = tuple(slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(both, x.shape))
    more = {} if mode or value is None else {"constant_values": value.reshape(())}
    widths = [(max(a, 0), max(b, 0)) for a, b in both]
    if mode == 0:
        return np.pad(x[kept], widths, "constant", **more)
    if mode == 2:  # the edge of what is left over
        return np.pad(x[kept], widths, "edge")
    return np.pad(x, widths, ("reflect", "wrap")[mode // 2])[
        tuple(slice(s.start, s.stop + a + b) for s, (a, b) in zip(kept, widths))
    ]


@meaning("pad_to")
def filled_up(x, shape):
    """x in the first places, zeros behind."""
    return np.pad(x, [(0, int(n) - size) for n, size in zip(shape, x.shape, strict=True)])


@meaning("center_crop_pad")
def centered(x, shape, *, axes):
    """Of an odd number that is cut off or filled up, the one more is at the end."""
    for axis, wanted in zip(axes, shape.tolist(), strict=True):
        n = x.shape[axis]
        before = abs(wanted - n) // 2
        if wanted <= n:
            x = np.take(x, np.arange(before, before + wanted), axis)
        else:
            x = np.pad(x, [(before, wanted - n - before) if d == axis else (0, 0) for d in range(x.ndim)])
    return x


@meaning("tril", "Tril")
def lower(x, k=None, *, diagonal=0):
    return np.tril(x, diagonal if k is None else int(k))


@meaning("triu", "Triu")
def upper(x, k=None, *, diagonal=0):
    return np.triu(x, diagonal if k is None else int(k))


@meaning("bitcast")
def bits(x, *, dtype):
    from mycelia_lite.enums import DataType

    wanted = np.dtype(DataType(dtype).numpy)
    shape = list(x.shape)
    if x.itemsize > wanted.itemsize:
        shape.append(x.itemsize // wanted.itemsize)
    elif x.itemsize < wanted.itemsize:
        shape.pop()
    return np.ascontiguousarray(x).reshape(-1).view(wanted).reshape(shape)


@meaning("require")
def required(x, condition, *, reason="a condition of the model does not hold for its data"):
    if not condition.all():
        raise ValueError(reason)
    return x


def _log_sum_exp(x, axis, keepdims):
    most = x.max(axis=axis, keepdims=True, initial=-np.inf)
    most = np.where(np.isfinite(most), most, 0)
    made = np.log(np.exp(x - most).sum(axis=axis, keepdims=True)) + most
    return made if keepdims else made.reshape([n for d, n in enumerate(made.shape) if d not in axis])


def _extreme(function, first):
    def run(x, axis, keepdims):
        more = {"initial": first} if x.dtype.kind == "f" and not x.size else {}
        return function(x, axis=axis, keepdims=keepdims, **more)

    return run


def _sum(x, axis, keepdims):
    return x.sum(axis=axis, keepdims=keepdims, dtype=x.dtype if x.dtype.kind in "iu" else np.float64)


_REDUCTIONS = (
    _sum,
    lambda x, axis, keepdims: x.mean(axis=axis, keepdims=keepdims, dtype=np.float64),
    _extreme(np.max, -np.inf),
    _extreme(np.min, np.inf),
    lambda x, axis, keepdims: x.prod(axis=axis, keepdims=keepdims, dtype=x.dtype),
    lambda x, axis, keepdims: _sum(abs(x), axis, keepdims),
    lambda x, axis, keepdims: np.sqrt(_sum(x * x, axis, keepdims)),
    lambda x, axis, keepdims: _sum(x * x, axis, keepdims),
    lambda x, axis, keepdims: np.log(_sum(x, axis, keepdims)),
    _log_sum_exp,
)  # in the order of the attribute `kind`


@meaning("reduce")
def reduced(x, axes, *, kind, keep, none):
    """No axes are all of them, or none if `none` is set."""
    axis = tuple(int(a) % x.ndim for a in axes)
    if not axis and not none:
        axis = tuple(range(x.ndim))
    return _REDUCTIONS[kind](x, axis, bool(keep)).astype(x.dtype)
