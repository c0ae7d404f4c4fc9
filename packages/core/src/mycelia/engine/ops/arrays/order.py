"""Ops that compare elements with each other: sort, topk, searchsorted, unique.

NaN sorts as the largest value; elements that compare equal keep their order.
"""

import numpy as np

from mycelia.engine.base import dtypes, errors
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops import batch_rules as _batch
from mycelia.engine.ops.arrays.gathering import index_select
from mycelia.engine.ops.arrays.index import is_tensor
from mycelia.engine.ops.arrays.scatter import _scatter_elements
from mycelia.engine.ops.arrays.shape import constant, positive_axis, reshape, squeeze
from mycelia.engine.ops.define import op


def _order(x, axis, descending):
    """Stable argsort with NaN largest in both directions."""
    if not descending:
        return np.argsort(x, axis, kind="stable")
    # a stable descending order is the reverse of the stable ascending order of the reversed input
    order = np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
    return x.shape[axis] - 1 - order


def _spread(ct, indices, x_shape, axis):
    """The adjoint of picking elements along `axis`: zeros of `x_shape` with `ct` at `indices`.

    None without `ct`: where only the positions went into a result.
    """
    if ct is None:
        return None
    from mycelia.engine.ops.arrays.create import zeros

    return _scatter_elements(zeros(x_shape, ct.dtype), indices, ct, axis, "add")


def _sorted_types(x, axis, descending):
    positive_axis(axis, x.rank)
    return x, TensorType(dtypes.int32, x.shape)


@op(
    infer=lambda x, axis, descending: _sorted_types(x, axis, descending),
    outputs=2,
    mindir="Sort",
    mindir_attributes=True,
    batch=_batch.along("axis"),
    cost=0,
    exact=True,
)
def _sort(input_x, *, axis: "int" = -1, descending: "bool" = False):
    """Values in order along an axis, and where they were; stable, NaN is the largest.

    Shapes: any -> same, twice.  dtypes: real -> the same, int32.
    """
    order = _order(input_x, axis, descending)
    return np.take_along_axis(input_x, order, axis), order.astype(np.int32)


@_sort.vjp
def _sort(cts, outs, input_x_shape, *, axis):
    return _spread(cts[0], outs[1], input_x_shape, axis)


@_sort.samples
def _sort(rand):
    yield rand.distinct(7), dict(_dtypes=("float64", "float16"))
    yield rand.distinct(3, 5), dict(axis=0)
    yield rand.distinct(2, 4, 3), dict(axis=1, descending=True)
    yield rand.ints(-3, 3, (2, 40)), dict(_dtypes=("int64",))
    yield rand.ints(0, 2, (2, 40), "int64"), dict(descending=True)
    yield np.array([3, np.nan, -np.inf, 0.0, -0.0, np.inf, np.nan, 3], np.float32), dict(_grad=False)
    yield (
        np.array([3, np.nan, -np.inf, 0.0, -0.0, np.inf, np.nan, 3], np.float32),
        dict(descending=True, _grad=False),
    )
    yield rand(2, 300), dict(_grad=False)
    yield rand(0, 3), dict(axis=0)
    yield rand(1)


def sort(input_x, axis=-1, descending=False):
    """Values in order along `axis`, and the positions they had; equal values keep their order.

    Shapes: any -> same, twice.  dtypes: real -> the same, int32.
    Errors: ValueError if the axis is out of range.
    """
    return _sort(input_x, axis, descending)


def argsort(input, axis=-1, descending=False):
    """The positions that put `axis` in order; equal values keep their order.

    Shapes: any -> same.  dtypes: real -> int32.
    """
    return _sort(input, axis, descending)[1]


def msort(input):
    """The values in ascending order along the first axis."""
    return _sort(input, 0)[0]


def _topk_types(x, k, axis, largest, sorted):
    at = positive_axis(axis, x.rank)
    if not 0 <= k <= x.shape[at] and x.shape[at] != -1:
        raise ValueError(f"k must be in [0, {x.shape[at]}] for axis {axis} of shape {x.shape}, but got {k}")
    shape = (*x.shape[:at], k, *x.shape[at + 1 :])
    return TensorType(x.dtype, shape), TensorType(dtypes.int32, shape)


@op(infer=lambda x, **attrs: _topk_types(x, **attrs), outputs=2, batch=_batch.along("axis"), exact=True)
def _topk(input, *, k: "int", axis: "int" = -1, largest: "bool" = True, sorted: "bool" = True):
    """The k largest (or smallest) values along an axis in order, and where they were; NaN is the largest.

    Shapes: [.., n, ..] -> [.., k, ..], twice.  dtypes: real -> the same, int32.
    """
    order = np.take(_order(input, axis, largest), np.arange(k), axis)
    return np.take_along_axis(input, order, axis), order.astype(np.int32)


@_topk.vjp
def _topk(cts, outs, input_shape, *, axis):
    return _spread(cts[0], outs[1], input_shape, axis)


@_topk.samples
def _topk(rand):
    yield rand.distinct(7), dict(k=3, _dtypes=("float64", "float16"))
    yield rand.distinct(3, 5), dict(k=2, axis=0, largest=False)
    yield rand.distinct(2, 4, 3), dict(k=4, axis=1, sorted=False)
    yield rand.ints(-3, 3, (2, 40)), dict(k=9, _dtypes=("int64",))
    yield np.array([3, np.nan, -np.inf, 0.0, -0.0, np.inf, 3], np.float32), dict(k=4, _grad=False)
    yield (
        np.array([3, np.nan, -np.inf, 0.0, -0.0, np.inf, 3], np.float32),
        dict(k=4, largest=False, _grad=False),
    )
    yield rand(2, 1000), dict(k=20, _grad=False)
    yield rand(2, 1000), dict(k=900, _grad=False)
    yield rand(0, 3), dict(k=2)
    yield rand(3), dict(k=0)


def topk(input, k, dim=None, largest=True, sorted=True):
    """The `k` largest (or smallest) values along `dim` (the last axis if None), and the positions they had.

    Not `sorted`, all values stay where they are.
    Shapes: [.., n, ..] -> [.., k, ..], twice.  dtypes: real -> the same, int32.
    Errors: ValueError if k exceeds n.
    """
    if hasattr(k, "asnumpy"):
        k = int(k.asnumpy().item())
    elif isinstance(k, tuple) and len(k) == 1:
        k = k[0]
    dim = -1 if dim is None else dim
    if sorted is False and input.ndim and k == input.shape[positive_axis(dim, input.ndim)]:
        return _as_they_are(input, positive_axis(dim, input.ndim))
    return _topk(input, k, dim, largest, sorted)


def _as_they_are(x, axis):
    """All values along an axis, and where they are."""
    from mycelia.engine.ops.arrays.create import arange
    from mycelia.engine.ops.arrays.shape import broadcast_to

    places = arange(x.shape[axis], dtype=dtypes.int32)
    along = tuple(-1 if i == axis else 1 for i in range(x.ndim))
    return reshape(x, x.shape), broadcast_to(reshape(places, along), x.shape)


def top_k(input_x, k, sorted=True):
    """The `k` largest values along the last axis, and the positions they had."""
    return topk(input_x, k, None, True, sorted)


def kthvalue(input, k, dim=-1, keepdim=False):
    """The `k`-th smallest value along `dim`, counted from 1, and its position."""
    n = input.shape[positive_axis(dim, input.ndim, "dim")]
    if not 1 <= k <= n:
        raise errors.value_error(f"For 'kthvalue', k must be in [1, {n}], but got {k}")
    values, places = _sort(input, dim)
    found = [index_select(t, dim, constant([k - 1])) for t in (values, places)]
    return tuple(found if keepdim else (squeeze(t, dim) for t in found))


def intopk(x1, x2, k):
    """Whether the class `x2` of each row of `x1` is among its `k` largest values.

    Shapes: [n, classes], [n] -> [n].  dtypes: floating, integer -> bool.
    """
    own = index_own(x1, x2)
    return (x1 > own).astype(dtypes.int32).sum(1) < k


def index_own(x, classes):
    """``x[i, classes[i]]`` as a column."""
    from mycelia.engine.ops.arrays.gathering import gather_d

    return gather_d(x, 1, reshape(classes, (-1, 1)))


def _search_types(sequence, values, right, dtype):
    if sequence.rank != 1 and sequence.shape[:-1] != values.shape[:-1]:
        raise ValueError(f"all axes but the last must agree, but got {sequence.shape} and {values.shape}")
    return TensorType(dtype, values.shape)


@op(infer=lambda sequence, values, right, dtype: _search_types(sequence, values, right, dtype),
    promote=("sorted_sequence", "values"), nondiff=True, mindir="SearchSorted")  # fmt: skip
def _searchsorted(sorted_sequence, values, *, right: "bool" = False, dtype: "dtype" = "int64"):
    """Where each value would be inserted into its ascending sequence: before equal elements,
    or behind them (`right`).

    Shapes: [n], any -> same, or [B.., n], [B.., m] -> [B.., m].  dtypes: real -> `dtype`.
    """
    side = "right" if right else "left"
    if sorted_sequence.ndim == 1:
        return np.searchsorted(sorted_sequence, values, side)
    result = np.empty(values.shape, np.int64)
    for row in np.ndindex(*values.shape[:-1]):
        result[row] = np.searchsorted(sorted_sequence[row], values[row], side)
    return result


@_searchsorted.samples
def _searchsorted(rand):
    yield np.sort(rand(9)), rand(2, 3)
    yield np.array([1, 2, 2, 3], np.float32), np.array([0, 2, 4], np.float32), dict(right=True)
    yield np.sort(rand.ints(0, 9, (2, 7))), rand.ints(0, 9, (2, 5)), dict(dtype="int32")
    yield rand(0), rand(2)


def searchsorted(sorted_sequence, values, *, out_int32=False, right=False, side=None, sorter=None):
    """Where each value would be inserted into its ascending sequence: before equal elements,
    or behind them (`right`).

    Shapes: [n], any -> same, or [B.., n], [B.., m] -> [B.., m].
    dtypes: real -> int64, or int32 if `out_int32`.
    Errors: ValueError if `side` contradicts `right` or shapes differ.
    """
    if side not in (None, "left", "right") or (side == "left" and right):
        raise errors.value_error(
            f"For 'searchsorted', side must be 'left' or 'right' and fit right={right}, but got {side!r}"
        )
    if sorter is not None:
        from mycelia.engine.ops.arrays.gathering import gather_d

        sorted_sequence = gather_d(sorted_sequence, -1, sorter)
    dtype = dtypes.int32 if out_int32 else dtypes.int64
    if not is_tensor(values):
        values = constant(values, sorted_sequence.dtype)
    return _searchsorted(sorted_sequence, values, right=right or side == "right", dtype=dtype)


def bucketize(input, boundaries, *, right=False):
    """The number of the interval between ascending `boundaries` in which each element lies.

    Shapes: any -> same.  dtypes: real -> int32.
    """
    limits = constant(boundaries, dtypes.float32 if input.dtype.is_floating else None)
    return _searchsorted(limits, input, right=right, dtype=dtypes.int32)


def _unique_types(x):
    index = dtypes.int64 if x.dtype is dtypes.int64 else dtypes.int32
    return TensorType(x.dtype, (-1,)), TensorType(index, x.shape)


@op(
    infer=lambda x: _unique_types(x),
    outputs=2,
    dynamic=True,
    nondiff=True,
    mindir="Unique",
    mindir_attributes=True,
)
def unique(input):
    """The different elements in the order of their first appearance,
    and for each element which of them it is.

    Shapes: any -> [number], same as input.  dtypes: any -> the same, int32 (int64 for int64 input).
    """
    values, first, inverse = np.unique(input, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return values[order], rank[inverse].reshape(input.shape)


@unique.samples
def unique(rand):
    yield rand.ints(0, 4, (9,)), dict(_dtypes=("int64", "float32"))
    yield rand.ints(0, 4, (3, 4))
    yield rand(0)


def _runs_types(x, dim):
    if dim is None:
        return TensorType(x.dtype, (-1,)), TensorType(dtypes.int64, x.shape), TensorType(dtypes.int64, (-1,))
    at = positive_axis(dim, x.rank, "dim")
    shape = (*x.shape[:at], -1, *x.shape[at + 1 :])
    return (
        TensorType(x.dtype, shape),
        TensorType(dtypes.int64, x.shape[at : at + 1]),
        TensorType(dtypes.int64, (-1,)),
    )


@op(
    infer=lambda x, dim: _runs_types(x, dim),
    outputs=3,
    dynamic=True,
    nondiff=True,
    mindir="UniqueConsecutive",
)
def _unique_consecutive(input, *, dim: "int?" = None):
    """One element (or slice along `dim`) for each run of equal ones,
    the run of each element, the lengths of the runs.

    Shapes: any -> [number], same as input, [number].  dtypes: any -> the same, int64, int64.
    """
    x = input.ravel() if dim is None else np.moveaxis(input, dim, 0)
    starts = np.ones(len(x), bool)
    starts[1:] = (x[1:] != x[:-1]).any(tuple(range(1, x.ndim)))
    run = np.cumsum(starts) - 1
    values = x[starts] if dim is None else np.moveaxis(x[starts], 0, dim)
    return values, run.reshape(input.shape) if dim is None else run, np.bincount(run, minlength=starts.sum())


@_unique_consecutive.samples
def _unique_consecutive(rand):
    yield rand.ints(0, 2, (9,)), dict(_dtypes=("int64", "float32"))
    yield rand.ints(0, 2, (3, 4))
    yield rand.ints(0, 2, (5, 1)), dict(dim=0)
    yield rand(0)


def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """One element (or slice along `dim`) for each run of equal ones; if asked,
    the run of each element and the lengths.

    Shapes: any -> [number] (, same as input) (, [number]).  dtypes: any -> the same (, int64) (, int64).
    """
    values, inverse, counts = _unique_consecutive(input, dim=dim)
    if not return_inverse and not return_counts:
        return values
    return (values, *([inverse] if return_inverse else []), *([counts] if return_counts else []))


__all__ = [
    "sort", "argsort", "msort", "topk", "top_k", "kthvalue", "intopk", "searchsorted", "bucketize", "unique",
    "unique_consecutive",
]  # fmt: skip
