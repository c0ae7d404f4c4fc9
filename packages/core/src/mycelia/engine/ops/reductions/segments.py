"""Sorted segments, histograms, sets, ragged ranges, edit distance: results whose size depends on the data."""

import numpy as np

from mycelia.engine.base import dtypes, errors
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops.arrays.gathering import gather
from mycelia.engine.ops.arrays.masks import where
from mycelia.engine.ops.arrays.shape import as_ints, constant
from mycelia.engine.ops.define import op
from mycelia.engine.ops.elementwise.cast import cast

# ---- segments --------------------------------------------------------------------------------------------

_STARTS = {"sum": 0, "mean": 0, "prod": 1}
_APPLY = {"sum": np.add, "mean": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}


def _segment_type(x, segment_ids, reduction):
    if len(segment_ids.shape) != 1:
        raise ValueError(f"segment_ids must be a vector, but its shape is {list(segment_ids.shape)}")
    if not x.shape or x.shape[0] != segment_ids.shape[0] and -1 not in (x.shape[0], segment_ids.shape[0]):
        raise ValueError(f"segment_ids has {segment_ids.shape[0]} elements for x of shape {list(x.shape)}")
    return TensorType(x.dtype, (-1, *x.shape[1:]))


@op(infer=_segment_type, dynamic=True)
def _segment(x, segment_ids, *, reduction: "sum|mean|prod|max|min" = "sum"):
    """Rows of `x` with the same id combined; ids ascend, and an id that does not occur gives an empty sum.

    Shapes: x [n, R..], segment_ids [n] -> [last id + 1, R..].  dtypes: any; integer ids.
    Errors: ValueError for ids that descend or are negative.
    """
    if segment_ids.size and (segment_ids[0] < 0 or (np.diff(segment_ids) < 0).any()):
        raise ValueError("segment_ids must be ascending and not negative")
    count = int(segment_ids[-1]) + 1 if segment_ids.size else 0
    out = np.full((count, *x.shape[1:]), _STARTS.get(reduction, 0), x.dtype)
    if reduction in ("max", "min"):
        present, first = np.unique(segment_ids, return_index=True)
        out[present] = x[first]
    _APPLY[reduction].at(out, segment_ids, x)
    if reduction == "mean":
        sizes = np.maximum(np.bincount(segment_ids, minlength=count), 1)
        out = (out / sizes.reshape(-1, *[1] * (x.ndim - 1))).astype(x.dtype)
    return out


@_segment.vjp
def _segment(ct, x, segment_ids, out, *, reduction):
    share = gather(ct, segment_ids, 0)
    if reduction == "sum":
        return share, None
    if reduction == "prod":
        return share * gather(out, segment_ids, 0) / x, None
    if reduction == "mean":
        return share / _sizes(x, segment_ids), None
    hit = cast(x == gather(out, segment_ids, 0), x.dtype)
    ties = gather(_segment(hit, segment_ids), segment_ids, 0)
    return share * hit / ties, None


def _sizes(x, segment_ids):
    """The size of the segment of each row, broadcastable to `x`."""
    ones = cast(segment_ids >= 0, x.dtype)
    sizes = gather(_segment(ones, segment_ids), segment_ids, 0)
    return sizes.reshape((-1, *[1] * (x.ndim - 1)))


@_segment.samples
def _segment(rand):
    ids = np.array([0, 0, 1, 3], "int32")
    for reduction in ("sum", "mean", "max", "min"):
        yield rand.distinct(4, 3), ids, dict(reduction=reduction)
    yield rand(4, 3, low=0.5), ids, dict(reduction="prod")  # the gradient divides by the factors
    yield rand(4), ids.astype("int64")


def _segment_function(reduction, what):
    def function(input_x, segment_ids):
        return _segment(input_x, segment_ids, reduction=reduction)

    function.__name__ = function.__qualname__ = f"segment_{reduction}"
    function.__doc__ = f"{what} of the rows with one id; ids ascend.\n\nShapes: [n, R..] -> [ids, R..]."
    return function


segment_sum = _segment_function("sum", "Sum")
segment_mean = _segment_function("mean", "Mean")
segment_prod = _segment_function("prod", "Product")
segment_max = _segment_function("max", "Largest element")
segment_min = _segment_function("min", "Smallest element")


def embedding_lookup(table, indices, offset):
    """Rows of `table` at ``indices - offset``; zeros for indices outside.

    Shapes: [n, R..] and [I..] -> [I.., R..].  dtypes: any; integer indices.
    """
    place = indices - offset
    inside = (place >= 0).logical_and(place < table.shape[0])
    rows = gather(table, where(inside, place, place * 0), 0)
    return where(inside.reshape((*inside.shape, *[1] * (table.ndim - 1))), rows, constant(0, table.dtype))


# ---- counting --------------------------------------------------------------------------------------------


def _counted_type(array, weights, size):
    return TensorType(weights.dtype, (size,))


@op(infer=_counted_type, nondiff=True)
def _weighted_count(array, weights, *, size: "int"):
    """Sum of the weights of each number below `size`, all 1 if there are none.

    Shapes: any of one shape -> [size].  dtypes: int32; result as the weights.
    """
    values = array.reshape(-1)
    weights = np.ones(values.shape, weights.dtype) if weights.size == 0 else weights.reshape(-1)
    keep = (values >= 0) & (values < size)
    out = np.zeros(size, weights.dtype)
    np.add.at(out, values[keep], weights[keep])
    return out


@_weighted_count.samples
def _weighted_count(rand):
    yield rand.ints(0, 6, (9,)), rand(9), dict(size=5)
    yield rand.ints(0, 6, (2, 3)), rand(0), dict(size=7)


def bincount(array, size, weights):
    """How often each number below `size` occurs in `array`, or the sum of its weights."""
    if size < 0:
        raise errors.value_error("Bincount", f"size must not be negative, but got {size}")
    return _weighted_count(array, weights, size=size)


@op(infer=lambda x, limits, bins: TensorType(dtypes.int32, (bins,)), nondiff=True)
def _fixed_histogram(x, limits, *, bins: "int"):
    """How many elements lie in each of `bins` equal intervals; those outside count at the ends.

    Shapes: any, limits [2] -> [bins].  dtypes: any -> int32.
    """
    low, high = (float(v) for v in limits)
    places = np.floor((x.reshape(-1).astype(np.float64) - low) / (high - low) * bins)
    return np.bincount(np.clip(places, 0, bins - 1).astype(np.int64), minlength=bins).astype(np.int32)


@_fixed_histogram.samples
def _fixed_histogram(rand):
    yield rand(20), np.array([-0.5, 0.5], "float32"), dict(bins=5)


def histogram_fixed_width(x, limits, bins):
    """How many elements lie in each of `bins` equal intervals of `limits`; the rest counts at the ends."""
    return _fixed_histogram(x, limits, bins=bins)


# ---- sets and runs ---------------------------------------------------------------------------------------


@op(
    infer=lambda x, y: (TensorType(x.dtype, (-1,)), TensorType(dtypes.int64, (-1,))),
    outputs=2, dynamic=True, nondiff=True,
)  # fmt: skip
def list_diff(x, y):
    """The elements of the vector `x` that are not in `y`, and their places.

    Shapes: [n], [m] -> [k], [k].  dtypes: any.
    """
    places = np.flatnonzero(~np.isin(x, y))
    return x[places], places


@list_diff.samples
def list_diff(rand):
    yield rand.ints(0, 9, (8,)), rand.ints(0, 9, (3,))


@op(infer=lambda indices, dims: TensorType(indices.dtype, (dims.shape[0], *indices.shape)), nondiff=True)
def unravel_index(indices, dims):
    """Coordinates of flat indices in a tensor of the sizes `dims`.

    Shapes: [n] or [], dims [r] -> [r, n] or [r].  dtypes: int32, int64.
    Errors: ValueError for an index outside.
    """
    return np.stack(np.unravel_index(indices, tuple(int(d) for d in dims))).astype(indices.dtype)


@unravel_index.samples
def unravel_index(rand):
    yield rand.ints(0, 11, (5,)), np.array([3, 4], "int32")


# ---- sparse ----------------------------------------------------------------------------------------------


@op(
    infer=lambda indices, values, shape, start, size: (
        TensorType(indices.dtype, (-1, indices.shape[1])),
        TensorType(values.dtype, (-1,)),
        TensorType(shape.dtype, shape.shape),
    ),
    outputs=3, dynamic=True, nondiff=True,
)  # fmt: skip
def sparse_slice(indices, values, shape, start, size):
    """The part of a sparse tensor from `start` of the sizes `size`, less where the tensor ends before.

    Shapes: indices [n, r], values [n], the others [r] -> [k, r], [k], [r].  dtypes: int64 indices.
    """
    size = np.minimum(size, shape - start)
    keep = ((indices >= start) & (indices < start + size)).all(axis=1)
    return indices[keep] - start, values[keep], size


@sparse_slice.samples
def sparse_slice(rand):
    places = np.array([[0, 1], [1, 2], [2, 3]], "int64")
    yield places, rand(3), np.array([3, 4]), np.array([0, 1]), np.array([2, 9])


def _kept_types(x, *, max_num, offset):
    bound = 2 ** (8 * x.dtype.itemsize - 1)
    if not -bound <= offset < bound:
        raise ValueError(f"offset must fit {x.dtype.name}, got {offset}")
    return TensorType(x.dtype, (-1,)), TensorType(x.dtype, (-1,))


@op(
    infer=_kept_types,
    outputs=2, dynamic=True, nondiff=True,
)  # fmt: skip
def subtracted_and_kept(x, *, max_num: "int", offset: "int"):
    """``x - offset`` where that is in [0, max_num), and the places where it is.

    Shapes: [n] -> [k], [k].  dtypes: int32, int64.
    """
    moved = x - x.dtype.type(offset)
    places = np.flatnonzero((moved >= 0) & (moved < max_num))
    return moved[places], places.astype(x.dtype)


@subtracted_and_kept.samples
def subtracted_and_kept(rand):
    yield rand.ints(0, 20, (9,)), dict(max_num=10, offset=5)


# ---- texts -----------------------------------------------------------------------------------------------


def _ngram_type(state_seq, log_probs, *, ngram_size):
    if ngram_size < 1:
        raise ValueError(f"ngram_size must be 1 or more, got {ngram_size}")
    return log_probs


@op(infer=_ngram_type, nondiff=True)
def no_repeat_ngram(state_seq, log_probs, *, ngram_size: "int" = 1):
    """`log_probs` with the dtype's lowest number for each word that would complete a run of `ngram_size`
    words that the sequence has already.

    Shapes: [.., length], [.., words] -> [.., words].  dtypes: int32, floating.
    """
    out = log_probs.copy()
    lowest = np.finfo(out.dtype).min
    known = ngram_size - 1
    length = state_seq.shape[-1]
    for place in np.ndindex(*state_seq.shape[:-1]):
        words = state_seq[place]
        last = words[length - known :]
        for start in range(length - known):
            if (words[start : start + known] == last).all():
                out[place][words[start + known]] = lowest
    return out


@no_repeat_ngram.samples
def no_repeat_ngram(rand):
    yield rand.ints(0, 4, (2, 3, 7)), rand(2, 3, 5), dict(ngram_size=3)
    yield rand.ints(0, 4, (2, 5)), rand(2, 5)


# ---- ragged ----------------------------------------------------------------------------------------------


@op(
    infer=lambda starts, limits, deltas: (TensorType(dtypes.int64, (-1,)), TensorType(starts.dtype, (-1,))),
    outputs=2, dynamic=True, nondiff=True,
)  # fmt: skip
def ragged_range(starts, limits, deltas):
    """Ranges one after the other: the places where each begins and the last ends, and all numbers.

    Shapes: [n] or [] each -> [n + 1], [numbers].  dtypes: int32, int64, float32, float64.
    """
    rows = [np.arange(*row, dtype=starts.dtype) for row in np.nditer([starts, limits, deltas])]
    splits = np.cumsum([0, *(len(row) for row in rows)])
    return splits, np.concatenate(rows) if rows else np.zeros(0, starts.dtype)


@ragged_range.samples
def ragged_range(rand):
    yield np.array([2, 5, 8], "int32"), np.array([3, 5, 12], "int32"), np.array([1, 1, 1], "int32")


def _levenshtein(a, b):
    """Number of insertions, deletions and substitutions from one list to the other."""
    row = np.arange(len(b) + 1)
    for i, x in enumerate(a, 1):
        before, row = row, np.empty_like(row)
        row[0] = i
        for j, y in enumerate(b, 1):
            row[j] = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (x != y))
    return row[-1]


def edit_distance(
    hypothesis_indices, hypothesis_values, hypothesis_shape, truth_indices, truth_values, truth_shape,
    normalize,
):  # fmt: skip
    """Levenshtein distance of each pair of sequences in two sparse tensors.

    Shapes: indices [n, r], values [n], shape [r] -> the leading r - 1 sizes.  dtypes: result float32.
    With `normalize` it is divided by the length of the truth; inf for a truth without elements.
    """
    sides = []
    for indices, values in ((hypothesis_indices, hypothesis_values), (truth_indices, truth_values)):
        rows = {}
        for place, value in zip(indices.asnumpy().tolist(), values.asnumpy().tolist()):
            rows.setdefault(tuple(place[:-1]), []).append(value)
        sides.append(rows)
    sizes = [as_ints(s) for s in (hypothesis_shape, truth_shape)]
    out = np.zeros([max(pair) for pair in zip(*(s[:-1] for s in sizes))], np.float32)
    for place in np.ndindex(*out.shape):
        guess, truth = (side.get(place, []) for side in sides)
        distance = float(_levenshtein(guess, truth))
        if normalize:
            distance = distance / len(truth) if truth else float("inf") if guess else 0.0
        out[place] = distance
    return constant(out)


__all__ = []
