"""Reading and writing by index: gather, scatter, masks, order, search, segments."""

from mycelia import ops
from mycelia.engine.base import dtypes
from mycelia.engine.ops.arrays.order import _searchsorted
from mycelia.engine.ops.arrays.row_updates import index_put
from mycelia.engine.ops.arrays.shape import constant
from mycelia.engine.ops.reductions import segments
from mycelia.engine.tensors.tensor import Tensor
from mycelia.ops.primitives.checks import (
    Misfit,
    anything,
    boolean,
    choice,
    dtype,
    integer,
    integers,
    number,
    optional,
    positive,
    type_id,
)  # fmt: skip
from mycelia.ops.primitives.define import primitive, table


def _int(axis):
    return int(axis.asnumpy()) if isinstance(axis, Tensor) else axis


# ---- gather ----------------------------------------------------------------------------------------------


@primitive
def Gather(input_params, input_indices, axis, *, batch_dims: integer = 0):
    """Slices of `input_params` along `axis` at the indices."""
    return ops.gather(input_params, input_indices, _int(axis), batch_dims)


@primitive(extra={"batch_dims": 0})
def GatherV2(input_params, input_indices, axis):
    """Slices of `input_params` along `axis` at the indices."""
    return ops.gather(input_params, input_indices, _int(axis))


@primitive(extra={"bprop_return_sparse": True})
def SparseGatherV2(input_params, input_indices, axis):
    """Slices of `input_params` along `axis` at the indices."""
    return ops.gather(input_params, input_indices, _int(axis))


@primitive(extra={"bprop_return_sparse": True})
def EmbeddingLookup(input_params, input_indices, offset):
    """Rows of `input_params` at the indices less `offset`; zeros where that is outside."""
    return segments.embedding_lookup(input_params, input_indices, _int(offset))


table(ops, {"GatherD": "gather_d"})

# ---- scatter ---------------------------------------------------------------------------------------------

table(ops, {f"TensorScatter{kind}": f"tensor_scatter_{kind.lower()}"
            for kind in ("Add", "Div", "Max", "Min", "Mul", "Sub", "Update")})  # fmt: skip
table(ops, {"ScatterNonAliasingAdd": "scatter_nd_add"}, extra={"side_effect_mem": True})


def _writes(called, function, default):
    """A class that writes into a Parameter: `use_locking` is taken, calls are in order anyway."""

    def write(input_x, indices, updates, *, use_locking: boolean = default):
        return function(input_x, indices, updates)

    write.__doc__ = (function.__doc__ or "").strip().partition("\n")[0]
    primitive(write, name=called, extra={"side_effect_mem": True})


for _kind in ("Add", "Div", "Max", "Min", "Mul", "Sub", "Update"):
    for _prefix, _name in (("Scatter", "scatter_"), ("ScatterNd", "scatter_nd_")):
        _writes(_prefix + _kind, getattr(ops, _name + _kind.lower()), _kind == "Update")


@primitive(shows={"reduction": lambda value: 0 if value == "none" else 1})
def TensorScatterElements(
    data, indices, updates, *, axis: integer = 0, reduction: choice("none", "add") = "none"
):
    """`data` with single elements along `axis` replaced or added to."""
    return ops.tensor_scatter_elements(data, indices, updates, axis, reduction)


@primitive
def ScatterAddWithAxis(input_x, indices, updates, *, axis: integer = 0):
    """`input_x` with single elements along `axis` added to."""
    return ops.tensor_scatter_elements(input_x, indices, updates, axis, "add")


# ---- writing rows ----------------------------------------------------------------------------------------


@primitive
def InplaceAdd(x, input_v, *, indices: integers):
    """`x` with `input_v` added to the rows `indices`."""
    return ops.inplace_add(x, input_v, indices)


@primitive
def InplaceSub(x, input_v, *, indices: integers):
    """`x` with `input_v` subtracted from the rows `indices`."""
    return ops.inplace_sub(x, input_v, indices)


@primitive
def InplaceUpdate(x, v, *, indices: integers):
    """`x` with the rows `indices` replaced by `v`."""
    return ops.inplace_update(x, v, indices)


@primitive
def InplaceUpdateV2(x, indices, v):
    """`x` with the rows `indices` replaced by `v`."""
    return ops.inplace_update(x, v, indices)


@primitive
def InplaceIndexAdd(var, indices, updates, *, axis: integer):
    """`var` with `updates` added to its slices along `axis`; a Parameter is overwritten."""
    return ops.inplace_index_add(var, indices, updates, axis)


@primitive
def IndexAdd(
    x, indices, y, *, axis: integer, use_lock: boolean = True, check_index_bound: boolean = True
):  # fmt: skip
    """`x` with `y` added to its slices along `axis`; a Parameter is overwritten."""
    return ops.index_add(x, indices, y, axis, use_lock, check_index_bound)


@primitive
def IndexFill(x, dim, index, value):
    """`x` with the slices `index` along `dim` filled by a number."""
    return ops.index_fill(x, _int(dim), index, value)


@primitive
def IndexPut(x1, x2, indices, *, accumulate: choice(0, 1) = 0):
    """`x1` with the values `x2` at the positions that the index tensors name, replacing or added."""
    return index_put(x1, indices, x2, bool(accumulate))


# ---- masks -----------------------------------------------------------------------------------------------

table(ops, {"MaskedFill": "masked_fill", "NonZero": "nonzero"})


@primitive
def Select(condition, input, other):
    """`input` where the condition holds, `other` elsewhere."""
    return ops.select(condition, input, other)


# ---- order and search ------------------------------------------------------------------------------------


@primitive
def Sort(x, *, axis: integer = -1, descending: boolean = False):
    """Elements in order along `axis`, and where they were."""
    return ops.sort(x, axis, descending)


@primitive
def TopK(input_x, k, *, sorted: boolean = True):
    """The `k` largest elements of the last axis, and where they are."""
    return ops.top_k(input_x, _int(k), sorted)


@primitive
def Unique(x):
    """The different elements in the order in which they appear, and for each element its place there."""
    return ops.unique(x)


@primitive
def UniqueWithPad(x, pad_num):
    """The different elements, filled up with `pad_num`, and for each element its place among them."""
    return ops.unique_with_pad(x, pad_num)


_NOTHING = constant(0, dtypes.int64)


def _tuple(value):
    return value if isinstance(value, tuple) else (value,)


@primitive
def UniqueConsecutive(
    input, *, return_inverse: boolean = False, return_counts: boolean = False, dim: optional(integer) = None
):
    """One element for each run of equal ones; the places of all in it, and the lengths."""
    values, *more = _tuple(ops.unique_consecutive(input, return_inverse, return_counts, dim))
    return values, *(more.pop(0) if wanted else _NOTHING for wanted in (return_inverse, return_counts))


@primitive(shows={"dtype": type_id})
def SearchSorted(
    sorted_sequence, values, sorter=None, *, dtype: dtype = dtypes.int64, right: boolean = False
):
    """Where values would be put into sorted rows."""
    found = ops.searchsorted(sorted_sequence, values, right=right, sorter=sorter)
    return ops.cast(found, dtype)


def _index_dtype(value):
    value = dtype(value)
    if value not in (dtypes.int32, dtypes.int64):
        raise Misfit(TypeError, "int32 or int64")
    return value


@primitive
def LowerBound(sorted_x, values, *, out_type: _index_dtype = dtypes.int32):
    """The first place in each sorted row at which a value could be put."""
    return _searchsorted(sorted_x, values, right=False, dtype=out_type)


@primitive
def UpperBound(sorted_x, values, *, out_type: _index_dtype = dtypes.int32):
    """The last place in each sorted row at which a value could be put."""
    return _searchsorted(sorted_x, values, right=True, dtype=out_type)


@primitive
def Bucketize(input, *, boundaries: anything):
    """The number of the interval between the boundaries in which each element lies."""
    limits = constant(boundaries, dtypes.float32)
    return _searchsorted(limits, ops.cast(input, dtypes.float32), right=True, dtype=dtypes.int32)


@primitive
def Bincount(array, size, weights):
    """For each number below `size` how often it occurs, or the sum of its weights."""
    return segments.bincount(array, _int(size), weights)


@primitive
def Histogram(x, *, bins: positive = 100, min: number = 0.0, max: number = 0.0):
    """How many elements lie in each of `bins` equal intervals between `min` and `max`."""
    return ops.histc(x, bins, float(min), float(max))


@primitive
def HistogramFixedWidth(x, range, *, nbins: positive, dtype: anything = "int32"):
    """How many elements lie in each of `nbins` equal intervals of `range`; the rest counts at its ends."""
    return segments.histogram_fixed_width(x, range, nbins)


@primitive
def ListDiff(x, y, *, out_idx: _index_dtype = dtypes.int32):
    """The elements of `x` that are not in `y`, and their places."""
    values, places = segments.list_diff(x, y)
    return values, ops.cast(places, out_idx)


@primitive
def InvertPermutation(input_x):
    """The permutation that undoes this one, as a tuple for a tuple."""
    if isinstance(input_x, (tuple, list)):
        found = [0] * len(input_x)
        for place, value in enumerate(input_x):
            found[value] = place
        return tuple(found)
    return ops.cast(ops.argsort(input_x), input_x.dtype)


@primitive
def UnravelIndex(indices, dims):
    """Coordinates of flat indices in a tensor of these sizes."""
    return segments.unravel_index(indices, dims)


@primitive
def RaggedRange(starts, limits, deltas, *, Tsplits: _index_dtype):
    """Ranges of numbers one after the other: where each begins, and all numbers."""
    splits, values = segments.ragged_range(starts, limits, deltas)
    return ops.cast(splits, Tsplits), values


@primitive
def NoRepeatNGram(state_seq, log_probs, *, ngram_size: positive = 1):
    """`log_probs` with the lowest number for words that would repeat a run of `ngram_size` words."""
    return segments.no_repeat_ngram(state_seq, log_probs, ngram_size=ngram_size)


@primitive
def NthElement(input, n, *, reverse: boolean = False):
    """The element of each row with `n` smaller ones before it in order; with `reverse` larger ones."""
    return ops.sort(input, -1, reverse)[0][..., _int(n)]


@primitive
def EditDistance(
    hypothesis_indices, hypothesis_values, hypothesis_shape, truth_indices, truth_values, truth_shape, *,
    normalize: boolean = True,
):  # fmt: skip
    """Levenshtein distance of sequences given as sparse tensors."""
    return segments.edit_distance(
        hypothesis_indices, hypothesis_values, hypothesis_shape, truth_indices, truth_values, truth_shape,
        normalize,
    )  # fmt: skip


# ---- segments --------------------------------------------------------------------------------------------

table(ops, {f"UnsortedSegment{kind}": f"unsorted_segment_{kind.lower()}"
            for kind in ("Max", "Min", "Prod", "Sum")})  # fmt: skip
table(
    segments,
    {f"Segment{kind}": f"segment_{kind.lower()}" for kind in ("Max", "Mean", "Min", "Prod", "Sum")},
    extra={"max_length": 1000000},
)

# ---- Parameters ------------------------------------------------------------------------------------------

table(ops, {"Assign": "assign", "AssignAdd": "assign_add", "AssignSub": "assign_sub"},
      extra={"side_effect_mem": True})  # fmt: skip
