"""Rules of strided parts: read, assigned, placed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mycelia.engine.ir.symint import SymInt
from mycelia.io.compositions import Unsupported
from mycelia.io.onnx.rules.shapes import LAST, whole
from mycelia.io.onnx.rules.table import rule


def _is_open(n: Any) -> bool:
    return type(n) is SymInt


def _part(w: Any, x: Any, begin: Any, size: Any, stride: Any) -> Any:
    """The elements from `begin` on, `size` of them (-1: up to the end), every `stride`-th."""
    axes = [d for d, n in enumerate(x.shape) if not whole(begin[d], size[d], stride[d], n)]
    if not axes:
        return x
    begins, ends, steps = [], [], []
    for d in axes:
        b, n, s = begin[d], size[d], stride[d]
        steps.append(s)
        begins.append(b)
        if not _is_open(n) and n == -1:
            ends.append(LAST if s > 0 else -LAST - 1)
        elif s > 0:
            ends.append(b + n * s)
        elif _is_open(b) or _is_open(n):
            raise Unsupported("a part backwards along an axis whose size is left open")
        else:
            ends.append(b + n * s if b + n * s >= 0 else -LAST - 1)
    return w.slice(x, begins, ends, axes, steps)


@rule("strided_slice")
def _strided_slice(w, node, x):
    begin, size, stride, shape = (node.attrs[n] for n in ("begin", "size", "stride", "shape"))
    part = _part(w, x, begin, size, stride)
    dropped = _dropped(size, shape)
    if dropped is not None:
        return w.squeeze(part, dropped)
    if sum(not _is_open(n) and n == -1 for n in shape) > 1:
        raise Unsupported(f"a part in the shape {shape}, where sizes are left open")
    return w.reshape(part, shape)


def _dropped(size: Any, shape: Any) -> list[int] | None:
    """The axes of size 1 without which `size` is `shape`; None if there is more to it."""
    left, axes = list(shape), []
    for axis, n in enumerate(size):
        if left and (n is left[0] or not _is_open(n) and (n == -1 or not _is_open(left[0]) and n == left[0])):
            left.pop(0)
        elif not _is_open(n) and n == 1:
            axes.append(axis)
        else:
            return None
    return None if left else axes


def _flat_places(w: Any, x: Any, begin: Any, size: Any, stride: Any) -> Any:
    """The places of a strided part in the flattened tensor `x`, as indices of ScatterND."""
    if -1 not in x.shape and not any(map(_is_open, (*begin, *size))):
        grid = np.arange(math.prod(x.shape)).reshape(x.shape)
        picks = np.ix_(*(b + s * np.arange(n) for b, n, s in zip(begin, size, stride)))
        return w.constant(grid[picks].reshape(-1, 1).astype(np.int64))
    count = w.squeeze(w.op("ReduceProd", w.shape_of(x), keepdims=1), [0])
    zero, one = (w.constant(np.array(n, np.int64)) for n in (0, 1))
    grid = w.reshape_as(w.op("Range", zero, count, one), x)
    return w.reshape(_part(w, w.like(grid, x.shape), begin, size, stride), (-1, 1))


def _assigned(w: Any, x: Any, values: Any, begin: Any, size: Any, stride: Any) -> Any:
    flat = w.reshape(x, (-1,))
    places = _flat_places(w, x, begin, size, stride)
    flat = w.op("ScatterND", flat, places, w.reshape(values, (-1,)))
    return w.reshape_as(flat, x)


@rule("strided_assign", "strided_write")
def _strided_assign(w, node, x, value):
    begin, size, stride = (node.attrs[n] for n in ("begin", "size", "stride"))
    surplus = max(value.rank - x.rank, 0)
    value = w.squeeze(value, [*range(surplus)])
    if x.rank == 0:
        return value
    sizes = [w.size_of(x, d) if not _is_open(n) and n == -1 else w.ints([n]) for d, n in enumerate(size)]
    value = w.op("Expand", value, w.op("Concat", *sizes, axis=0))
    return _assigned(w, x, value, begin, size, stride)


@rule("strided_place")
def _strided_place(w, node, x):
    begin, stride, shape = (node.attrs[n] for n in ("begin", "stride", "shape"))
    out = node.outputs[0].type.shape
    if -1 in out or -1 in x.shape or any(map(_is_open, (*begin, *shape))):
        raise Unsupported("strided_place with sizes that are left open")
    zeros = w.constant(np.zeros(out), x.dtype)
    return _assigned(w, zeros, x, begin, x.shape, stride) if out else x
