"""Pooling by a ratio of sizes: cells that differ by one element in size lie in random order (Graham 2014)."""

import numpy as np

from mycelia.engine.base import dtypes
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops.define import op
from mycelia.engine.ops.random.draws import _check_key, _np_uniform

__all__: list[str] = []


def _np_sequence(u, size, count, pseudo_random):
    """Where the cells begin, and the end, from `count` numbers in [0, 1)."""
    small, larger = divmod(size, count)
    if not larger:
        return np.arange(count + 1) * small
    if pseudo_random:
        ratio = size / count
        shift = u[0] * min((small + 1) / ratio - 1, (size + 1 - small) / ratio - (count - 1))
        found = np.ceil(ratio * (np.arange(count + 1) + shift)).astype(np.int64)
        found = found - found[0]
    else:
        steps = np.full(count, small)
        steps[np.argsort(u, kind="stable")[:larger]] += 1
        found = np.concatenate(([0], np.cumsum(steps)))
    found[-1] = size
    return found


def _outputs(size, ratio):
    return tuple(int(n / r) for n, r in zip(size, ratio, strict=True))


@op(name="ratio_pool_cells", outputs=2, nondiff=True)
def _ratio_pool_cells(key, *, size: "ints", ratio: "any", pseudo_random: "bool" = False):
    """Where rows and columns of cells begin, with the ends. Shapes: key [2] -> int64 [H' + 1], [W' + 1]."""
    counts = _outputs(size, ratio)
    u = _np_uniform(key, sum(counts), np.float64)
    return (
        _np_sequence(u[: counts[0]], size[0], counts[0], pseudo_random),
        _np_sequence(u[counts[0] :], size[1], counts[1], pseudo_random),
    )


@_ratio_pool_cells.infer
def _ratio_pool_cells(key, *, size, ratio, pseudo_random):
    _check_key(key)
    counts = _outputs(size, ratio)
    if min(counts) < 1:
        raise ValueError(f"a ratio of {ratio} leaves nothing of size {size}")
    return tuple(TensorType(dtypes.int64, (n + 1,)) for n in counts)


@_ratio_pool_cells.samples
def _ratio_pool_cells(rand):
    key = np.array([1, 2], np.int64)
    yield key, dict(size=(6, 8), ratio=(1.5, 1.4))
    yield key, dict(size=(9, 11), ratio=(1.4, 1.7), pseudo_random=True)


def _np_cells(begins, size, overlapping):
    ends = np.minimum(begins[1:] + int(overlapping), size)
    return list(zip(begins[:-1], ends, strict=True))


def _pooled_type(x, rows, columns, **attrs):
    if x.rank != 4:
        raise ValueError(f"x must be [N, H, W, C], but has shape {x.shape}")
    return TensorType(x.dtype, (x.shape[0], rows.shape[0] - 1, columns.shape[0] - 1, x.shape[3]))


@op(name="ratio_pool", infer=_pooled_type)
def _ratio_pool(x, rows, columns, *, kind: "max|avg", overlapping: "bool" = False):
    """The largest element or the mean of each cell; `overlapping` cells hold the next row and column too.

    Shapes: x [N, H, W, C], rows [H' + 1], columns [W' + 1] -> [N, H', W', C].  dtypes: numbers.
    """
    ys, xs = (_np_cells(b, n, overlapping) for b, n in ((rows, x.shape[1]), (columns, x.shape[2])))
    out = np.zeros((x.shape[0], len(ys), len(xs), x.shape[3]), x.dtype)
    for i, (top, bottom) in enumerate(ys):
        for j, (left, right) in enumerate(xs):
            cell = x[:, top:bottom, left:right]
            value = cell.max((1, 2)) if kind == "max" else cell.mean((1, 2), dtype=np.float64)
            out[:, i, j] = value if x.dtype.kind == "f" else np.trunc(value)
    return out


@_ratio_pool.vjp
def _ratio_pool(ct, x, rows, columns, *, kind, overlapping):
    return _ratio_pool_grad(ct, x, rows, columns, kind=kind, overlapping=overlapping), None, None


@_ratio_pool.samples
def _ratio_pool(rand):
    rows, columns = np.array([0, 1, 3, 4]), np.array([0, 2, 3, 5])
    yield rand.distinct(2, 4, 5, 2), rows, columns, dict(kind="max", _second=False)
    yield rand(1, 4, 5, 2), rows, columns, dict(kind="avg", overlapping=True, _second=False)


@op(name="ratio_pool_grad", nondiff=True)
def _ratio_pool_grad(dy, x, rows, columns, *, kind: "max|avg", overlapping: "bool" = False):
    """Gradient of ratio_pool with respect to x."""
    out = np.zeros(x.shape, x.dtype if x.dtype.kind == "f" else np.float64)
    ys, xs = (_np_cells(b, n, overlapping) for b, n in ((rows, x.shape[1]), (columns, x.shape[2])))
    for i, (top, bottom) in enumerate(ys):
        for j, (left, right) in enumerate(xs):
            cell, part = x[:, top:bottom, left:right], dy[:, i : i + 1, j : j + 1]
            if kind == "avg":
                share = part / (cell.shape[1] * cell.shape[2])
            else:
                flat = cell.reshape(cell.shape[0], -1, cell.shape[3])
                first = np.arange(flat.shape[1])[None, :, None] == flat.argmax(1)[:, None]
                share = part * first.reshape(cell.shape)
            out[:, top:bottom, left:right] += share
    return out.astype(x.dtype, copy=False)


@_ratio_pool_grad.infer
def _ratio_pool_grad(dy, x, rows, columns, *, kind, overlapping):
    return x
