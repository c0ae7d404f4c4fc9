"""`pad` in NumPy's modes."""

from __future__ import annotations

import numpy as np

from mycelia import ops
from mycelia.engine.base import dtypes, errors
from mycelia.engine.ir.symint import SymInt, applied
from mycelia.engine.ops.arrays.shape import constant
from mycelia.engine.tensors.tensor import is_tensor
from mycelia.faces.numpy._arguments import as_float, as_tensor, to_dtype


def _pairs(name: str, value, rank: int):
    """(before, after) for each axis, from a number, a pair, or a pair for each axis."""
    if is_tensor(value):
        value = value.asnumpy().tolist()
    try:
        table = np.broadcast_to(np.asarray(value), (rank, 2))
    except ValueError:
        raise errors.value_error(
            "pad", f"{name} must give a pair for each of {rank} axes, but got {value!r}"
        ) from None
    return [tuple(row) for row in table.tolist()]


def pad(
    arr,
    pad_width,
    mode="constant",
    stat_length=None,
    constant_values=0,
    end_values=0,
    reflect_type="even",
    **kwargs,
):
    """`arr` made larger by `pad_width` at both ends of each axis, one axis after another.

    `mode`: constant, edge, empty, linear_ramp, maximum, mean, minimum, reflect, symmetric, wrap, or a
    function ``(vector, (before, after), axis, kwargs) -> vector``.  Shapes: sizes grow by both widths.
    dtypes: number.  Errors: ValueError for widths that do not fit and unknown modes, NotImplementedError for
    the median.
    """
    x = as_tensor("pad", arr, "arr")
    widths = _pairs("pad_width", pad_width, x.ndim)
    widths = [(max(int(b), 0), max(int(a), 0)) for b, a in widths]
    if callable(mode):
        return _by_function(x, widths, mode, kwargs)
    if mode == "median":
        raise errors.error(errors.NotSupportedError, "pad", "mode 'median' is not supported")
    values = {"constant": constant_values, "linear_ramp": end_values, "empty": 0}
    if mode in values:
        ends = _pairs("constant_values" if mode == "constant" else "end_values", values[mode], x.ndim)
        side = _ramp if mode == "linear_ramp" else _filled
        for axis, (width, end) in enumerate(zip(widths, ends)):
            parts = [side(x, axis, width[0], end[0], False), x, side(x, axis, width[1], end[1], True)]
            x = _joined(parts, axis)
        return x
    if mode in _STATISTICS:
        lengths = (
            [(None, None)] * x.ndim if stat_length is None else _pairs("stat_length", stat_length, x.ndim)
        )
        for axis, (width, length) in enumerate(zip(widths, lengths)):
            parts = [
                _statistic(x, axis, width[0], length[0], mode, False), x,
                _statistic(x, axis, width[1], length[1], mode, True),
            ]  # fmt: skip
            x = _joined(parts, axis)
        return x
    if mode not in ("edge", "reflect", "symmetric", "wrap"):
        raise errors.value_error("pad", f"mode is unknown: {mode!r}")
    for axis, width in enumerate(widths):
        x = (
            _mirrored_odd(x, axis, width, mode)
            if _odd(mode, reflect_type)
            else _from_itself(x, axis, width, mode)
        )
    return x


def _odd(mode, reflect_type):
    return mode in ("reflect", "symmetric") and reflect_type == "odd"


def _joined(parts, axis):
    kept = [part for part in parts if part is not None]
    return ops.cat(kept, axis) if len(kept) > 1 else kept[0]


def _side_shape(x, axis, width):
    return tuple(width if i == axis else n for i, n in enumerate(x.shape))


def _filled(x, axis, width, value, after):
    if not width:
        return None
    return ops.broadcast_to(constant(value, x.dtype), _side_shape(x, axis, width))


def _end(x, axis, after, count=1):
    n = x.shape[axis]
    return ops.narrow(x, axis, n - count if after else 0, count)


def _ramp(x, axis, width, value, after):
    if not width:
        return None
    share = np.arange(width) / width  # of the way from the given end to the edge
    share = share[::-1] if after else share
    share = constant(share.reshape([-1 if i == axis else 1 for i in range(x.ndim)]), dtypes.float32)
    edge = to_dtype(_end(x, axis, after), dtypes.float32)
    return to_dtype(value + (edge - value) * share, x.dtype)


_STATISTICS = {"maximum": ops.amax, "minimum": ops.amin, "mean": ops.mean}


def _statistic(x, axis, width, length, mode, after):
    if not width:
        return None
    length = x.shape[axis] if length is None else min(int(length), x.shape[axis])
    part = _end(x, axis, after, length)
    value = _STATISTICS[mode](as_float(part) if mode == "mean" else part, axis, True)
    return ops.broadcast_to(to_dtype(value, x.dtype), _side_shape(x, axis, width))


def _from_itself(x, axis, width, mode):
    """Elements of `x` again, in the order of `mode`."""
    if not any(width):
        return x
    n = x.shape[axis]
    if type(n) is SymInt:
        places = _open_places(n, width, mode)
    else:
        places = constant(np.pad(np.arange(n), width, mode), dtypes.int64)
    return ops.gather(x, places, axis)


def _open_places(n, width, mode):
    """``np.pad(np.arange(n), width, mode)`` for sizes left open."""
    before, after = width
    place = ops.arange(n + before + after) - before
    if mode == "edge":
        return ops.minimum(ops.maximum(place, 0), n - 1)
    if mode == "wrap":
        return place % n
    period = 2 * n if mode == "symmetric" else applied(max, 2 * n - 2, 1)
    place = place % period
    return ops.minimum(place, (period - 1 if mode == "symmetric" else period) - place)


def _mirrored_odd(x, axis, width, mode):
    """Mirrored at the edges, and turned around them: 2 * edge - x."""
    before, after = width
    skip = 1 if mode == "reflect" else 0
    while before or after:
        n = x.shape[axis]
        room = max(n - skip, 1)
        left, right = min(before, room), min(after, room)
        flipped = ops.flip(x, (axis,))
        parts = [None, x, None]
        if left:
            source = flipped if n == 1 and skip else ops.narrow(flipped, axis, n - skip - left, left)
            parts[0] = 2 * _end(x, axis, False) - source
        if right:
            source = flipped if n == 1 and skip else ops.narrow(flipped, axis, skip, right)
            parts[2] = 2 * _end(x, axis, True) - source
        x, before, after = _joined(parts, axis), before - left, after - right
    return x


def _by_function(x, widths, function, kwargs):
    """Zeros around `x`, filled by a function that sees every vector of each axis."""
    x = pad(x, widths)
    for axis, width in enumerate(widths):
        moved = ops.moveaxis(x, axis, -1)
        rows = ops.reshape(moved, (-1, moved.shape[-1]))
        done = [function(rows[i], width, axis, kwargs) for i in range(rows.shape[0])]
        x = ops.moveaxis(ops.reshape(ops.stack(done, 0), moved.shape), -1, axis)
    return x
