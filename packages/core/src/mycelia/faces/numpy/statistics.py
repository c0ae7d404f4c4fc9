"""Histograms, places in sorted vectors, covariance."""

from __future__ import annotations

import numpy as np

from mycelia import ops
from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.arrays.scatter import scatter_add_along
from mycelia.engine.ops.arrays.shape import constant
from mycelia.engine.tensors.tensor import is_tensor
from mycelia.faces.numpy._arguments import an_int, as_float, as_tensor, result_dtype, same_dtype, to_dtype


def _counted(places, weights, length):
    """The sum of the weights (or the number) of the elements at each place below `length`, as float32."""
    weights = ops.ones(places.shape) if weights is None else to_dtype(weights, dtypes.float32)
    inside = ops.logical_and(ops.greater_equal(places, 0), ops.less(places, length))
    weights = ops.where(inside, weights, ops.zeros_like(weights))
    if length == 0:
        return ops.zeros((0,))
    places = ops.clamp(places, 0, length - 1)
    return scatter_add_along(ops.zeros((length,)), 0, to_dtype(places, dtypes.int64), weights)


def bincount(x, weights=None, minlength=0, length=None):
    """How often 0, 1, 2, .. occur in a vector, or the sum of their weights.

    Shapes: [n] -> [`length`], by default of the largest number plus 1, `minlength` at least.
    dtypes: integer -> float32.  Errors: TypeError for other dtypes, ValueError for other ranks.
    """
    x = as_tensor("bincount", x)
    if not x.dtype.is_integer:
        raise errors.type_error("bincount", f"x must be integers, but is {x.dtype}")
    if x.ndim != 1:
        raise errors.value_error("bincount", f"x must be a vector, but has shape {x.shape}")
    if length is None:
        largest = int(ops.amax(x).item()) if x.size else -1
        length = max(largest + 1, an_int("bincount", minlength, "minlength"))
    if weights is not None:
        weights = as_tensor("bincount", weights, "weights")
        if weights.shape != x.shape:
            raise errors.value_error("bincount", f"weights have shape {weights.shape}, x has {x.shape}")
    return _counted(x, weights, length)


def histogram_bin_edges(a, bins=10, range=None, weights=None):
    """The edges of `bins` equal parts of `range`, by default from the least element to the largest.

    Shapes: [bins + 1]; `bins` that are edges already come back.  dtypes: float32.
    Errors: ValueError for a range that falls, NotImplementedError for names of rules.
    """
    del weights  # edges depend on the values alone
    x = as_tensor("histogram_bin_edges", a, "a")
    if isinstance(bins, str):
        raise errors.error(
            errors.NotSupportedError, "histogram_bin_edges", f"bins {bins!r} are not supported"
        )
    if is_tensor(bins) or isinstance(bins, (tuple, list, _count)):
        edges = as_tensor("histogram_bin_edges", list(bins) if isinstance(bins, _count) else bins, "bins")
        if edges.ndim == 0:
            bins = int(edges.item())
        elif edges.ndim == 1:
            if isinstance(bins, (tuple, list)) and any(b > a for a, b in zip(bins[1:], bins)):
                raise errors.value_error("histogram_bin_edges", f"bins must not fall, but got {bins!r:.60}")
            return edges
        else:
            raise errors.value_error("histogram_bin_edges", "bins must be a number or a vector")
    if an_int("histogram_bin_edges", bins, "bins") < 1:
        raise errors.value_error("histogram_bin_edges", f"bins must be positive, but got {bins}")
    if range is None:
        if x.size == 0:
            low, high = constant(0.0, dtypes.float32), constant(1.0, dtypes.float32)
        else:
            low, high = (to_dtype(f(x), dtypes.float32) for f in (ops.amin, ops.amax))
    else:
        low, high = (to_dtype(as_tensor("histogram_bin_edges", v), dtypes.float32) for v in range)
        if not isinstance(range[0], (int, float)) or range[0] > range[1]:
            raise errors.value_error(
                "histogram_bin_edges", f"range must be two growing numbers, but got {range}"
            )
    half = ops.where(ops.equal(low, high), 0.5, 0.0)
    low, high = low - half, high + half
    shares = constant(np.arange(bins) / bins, dtypes.float32)
    # The last edge exactly: the largest element belongs to the last bin.
    return ops.cat([low + (high - low) * shares, ops.reshape(high, (1,))], 0)


def _bin_of(x, edges):
    """The bin of each element of a vector; the last includes its upper edge; -1 is outside."""
    x, edges = same_dtype([x, edges], "histogram")
    n = edges.shape[0] - 1
    if n < 1:
        return ops.full(x.shape, -1, dtype=dtypes.int32)
    place = ops.sum(to_dtype(ops.greater_equal(ops.expand_dims(x, 1), edges), dtypes.int32), 1) - 1
    place = ops.where(ops.equal(x, edges[n]), n - 1, place)
    return ops.where(ops.greater(x, edges[n]), -1, place)


def histogram(a, bins=10, range=None, weights=None, density=False):
    """How many elements (or how much of `weights`) fall in each bin, and the edges of the bins.

    With `density` the numbers are those of a density: its integral is 1.
    Shapes: [bins], [bins + 1].  dtypes: float32.  Errors: as of `histogram_bin_edges`.
    """
    x = as_tensor("histogram", a, "a")
    edges = histogram_bin_edges(x, bins, range)
    if weights is not None:
        weights = as_tensor("histogram", weights, "weights")
        if weights.shape != x.shape:
            raise errors.value_error("histogram", f"weights have shape {weights.shape}, a has {x.shape}")
        weights = ops.reshape(weights, (-1,))
    count = _counted(_bin_of(ops.reshape(x, (-1,)), edges), weights, edges.shape[0] - 1)
    if density:
        count = count / to_dtype(edges[1:] - edges[:-1], dtypes.float32) / ops.sum(count)
    return count, edges


def histogramdd(sample, bins=10, range=None, weights=None, density=False):
    """A histogram of points: `sample` holds a point in each row, or the coordinates of all in each member.

    Shapes: [n, d] -> [bins.., ], a list of d vectors of edges.  dtypes: float32.
    Errors: ValueError if bins or ranges are not as many as coordinates.
    """
    if isinstance(sample, (tuple, list)):
        columns = [ops.reshape(as_tensor("histogramdd", x), (-1,)) for x in sample]
    else:
        sample = as_tensor("histogramdd", sample, "sample")
        if sample.ndim != 2:
            raise errors.value_error("histogramdd", f"sample must be a matrix, but has shape {sample.shape}")
        columns = [sample[:, i] for i in _count(sample.shape[1])]
    bins = [bins] * len(columns) if isinstance(bins, int) else list(bins)
    ranges = [None] * len(columns) if range is None else list(range)
    if len(bins) != len(columns) or len(ranges) != len(columns):
        raise errors.value_error("histogramdd", f"bins and range must have {len(columns)} members")
    edges = [histogram_bin_edges(x, b, r) for x, b, r in zip(columns, bins, ranges)]
    place, outside, sizes = 0, None, []
    for x, edge in zip(columns, edges):
        own = _bin_of(x, edge)
        sizes.append(edge.shape[0] - 1)
        place = place * sizes[-1] + own
        missed = ops.less(own, 0)
        outside = missed if outside is None else ops.logical_or(outside, missed)
    place = ops.where(outside, -1, place)
    weights = None if weights is None else as_tensor("histogramdd", weights, "weights")
    count = ops.reshape(_counted(place, weights, int(np.prod(sizes))), tuple(sizes))
    if density:
        total = ops.sum(count)
        for i, edge in enumerate(edges):
            width = to_dtype(edge[1:] - edge[:-1], dtypes.float32)
            count = count / ops.reshape(width, tuple(-1 if i == j else 1 for j in _count(len(sizes))))
        count = count / total
    return count, edges


_count = range  # the functions above have a parameter of this name


def histogram2d(x, y, bins=10, range=None, weights=None, density=False):
    """A histogram of points in the plane. `bins`: as of `histogram`, or a pair of such for x and y.

    Shapes: [n], [n] -> [bins, bins], and the edges along x and y.  dtypes: float32.
    """
    numbers = isinstance(bins, (tuple, list)) and all(isinstance(b, (int, float)) for b in bins)
    if numbers and len(bins) != 2:  # the edges of both
        bins = [bins, bins]
    count, edges = histogramdd([x, y], bins, range, weights, density)
    return count, edges[0], edges[1]


def searchsorted(a, v, side="left", sorter=None):
    """Where the elements of `v` belong in the sorted vector `a`: before equal ones, or after with "right".

    Shapes: [n], any -> as `v`.  dtypes: promoted -> int32.
    Errors: ValueError for another side or rank, TypeError unless sorter is a Tensor.
    """
    if side not in ("left", "right"):
        raise errors.value_error("searchsorted", f"side must be 'left' or 'right', but got {side!r}")
    a, v = same_dtype([as_tensor("searchsorted", a, "a"), as_tensor("searchsorted", v, "v")], "searchsorted")
    if a.ndim != 1:
        raise errors.value_error("searchsorted", f"a must be a vector, but has shape {a.shape}")
    if sorter is not None:
        if not is_tensor(sorter):
            raise errors.type_error("searchsorted", f"sorter must be a Tensor, but got {sorter!r:.60}")
        a = ops.gather(a, sorter, 0)
    return _place_in(a, v, side == "right")


def _place_in(a, v, right):
    below = (ops.less_equal if right else ops.less)(a, ops.expand_dims(v, -1))
    return to_dtype(ops.sum(to_dtype(below, dtypes.int32), -1), dtypes.int32)


def digitize(x, bins, right=False):
    """The bin of each element: i if ``bins[i - 1] <= x < bins[i]``, with `right` ``<``, ``<=``.

    The bins may also fall.
    Shapes: any, [n] -> as `x`.  dtypes: promoted -> int32.  Errors: ValueError unless bins are a vector.
    """
    x, bins = same_dtype([as_tensor("digitize", x), as_tensor("digitize", bins, "bins")], "digitize")
    if bins.ndim != 1:
        raise errors.value_error("digitize", f"bins must be a vector, but have shape {bins.shape}")
    if bins.size == 0:
        return ops.zeros(x.shape, dtypes.int32)
    rising = _place_in(bins, x, not right)
    compare = ops.greater if right else ops.greater_equal
    falling = bins.shape[0] - to_dtype(
        ops.sum(to_dtype(compare(ops.expand_dims(x, -1), bins), dtypes.int32), -1), dtypes.int32
    )
    return ops.where(ops.less_equal(bins[0], bins[-1]), rising, falling)


# ------------------------------------------------------------------------------------------------ covariance


def _rows(name, x, rowvar):
    x = as_float(as_tensor(name, x, "m"))
    if x.ndim > 2:
        raise errors.value_error(name, f"m must be a vector or a matrix, but has shape {x.shape}")
    x = ops.reshape(x, (1, -1)) if x.ndim < 2 else x
    return x if rowvar or x.shape[0] == 1 else ops.swapaxes(x, 0, 1)


def cov(m, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None, dtype=None):
    """Covariances of the rows of `m` (of the columns without `rowvar`), and of `y`.

    `fweights` says how often each observation counts, `aweights` how much.  Sums are divided by the number
    of observations less `ddof`: 1, or 0 with `bias`.
    Shapes: [k, n] -> [k, k]; [n] -> [].  dtypes: float32 or `dtype`.
    Errors: ValueError for more axes, TypeError for weights of other dtypes or no Tensor.
    """
    if ddof is not None and not isinstance(ddof, int):
        raise errors.type_error("cov", f"ddof must be an int, but got {ddof!r}")
    x = _rows("cov", m, rowvar)
    if y is not None:
        x = ops.cat(same_dtype([x, _rows("cov", y, rowvar)], "cov"), 0)
    ddof = (0 if bias else 1) if ddof is None else ddof
    weights = _observation_weights(fweights, aweights)
    if weights is None:
        off, norm = x - ops.mean(x, 1, True), max(x.shape[1] - ddof, 0)
        scaled = off
    else:
        total = ops.sum(weights)
        off = x - ops.sum(x * weights, 1, True) / total
        scaled, norm = off * weights, total - ddof
        if aweights is not None and ddof:
            norm = total - ddof * ops.sum(weights * as_float(aweights)) / total
    result = ops.matmul(off, ops.swapaxes(scaled, 0, 1)) / norm
    return to_dtype(ops.squeeze(result), result_dtype("cov", dtype))


def _observation_weights(fweights, aweights):
    weights = None
    if fweights is not None:
        weights = as_float(as_tensor("cov", fweights, "fweights"))
    if aweights is not None:
        if not is_tensor(aweights):
            raise errors.type_error("cov", f"aweights must be a Tensor, but got {type(aweights).__name__}")
        weights = as_float(aweights) if weights is None else weights * as_float(aweights)
    return weights


def corrcoef(x, y=None, rowvar=True, dtype=None):
    """Correlations of the rows of `x` (of the columns without `rowvar`), and of `y`; between -1 and 1.

    Shapes: [k, n] -> [k, k]; [n] -> [].  dtypes: float32 or `dtype`.
    """
    c = cov(x, y, rowvar)
    if c.ndim == 0:
        return to_dtype(c / c, result_dtype("corrcoef", dtype))
    deviation = ops.sqrt(ops.diagonal(c))
    c = c / ops.expand_dims(deviation, 1) / ops.expand_dims(deviation, 0)
    return to_dtype(ops.clamp(c, -1.0, 1.0), result_dtype("corrcoef", dtype))
