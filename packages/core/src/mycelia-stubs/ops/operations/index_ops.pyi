# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from mycelia.numpy.creation import constant as constant
from mycelia.ops.operations import (
    Bincount as Bincount, Bucketize as Bucketize, EditDistance as EditDistance,
    EmbeddingLookup as EmbeddingLookup, Gather as Gather, GatherV2 as GatherV2, Histogram as Histogram,
    HistogramFixedWidth as HistogramFixedWidth, IndexAdd as IndexAdd, IndexFill as IndexFill,
    IndexPut as IndexPut, InplaceAdd as InplaceAdd, InplaceIndexAdd as InplaceIndexAdd,
    InplaceSub as InplaceSub, InplaceUpdate as InplaceUpdate, InplaceUpdateV2 as InplaceUpdateV2,
    InvertPermutation as InvertPermutation, ListDiff as ListDiff, LowerBound as LowerBound,
    NoRepeatNGram as NoRepeatNGram, NthElement as NthElement, RaggedRange as RaggedRange,
    ScatterAddWithAxis as ScatterAddWithAxis, SearchSorted as SearchSorted, Select as Select, Sort as Sort,
    SparseGatherV2 as SparseGatherV2, TensorScatterElements as TensorScatterElements, TopK as TopK,
    Unique as Unique, UniqueConsecutive as UniqueConsecutive, UniqueWithPad as UniqueWithPad,
    UnravelIndex as UnravelIndex, UpperBound as UpperBound,
)
from mycelia.ops.operations.array_ops import positive as positive
from mycelia.ops.primitives.checks import (
    Misfit as Misfit, anything as anything, boolean as boolean, choice as choice, dtype as dtype,
    integer as integer, integers as integers, number as number, optional as optional, type_id as type_id,
)
from mycelia.ops.primitives.define import primitive as primitive, table as table

__all__ = [
    "Bincount", "Bucketize", "EditDistance", "EmbeddingLookup", "Gather", "GatherV2", "Histogram",
    "HistogramFixedWidth", "IndexAdd", "IndexFill", "IndexPut", "InplaceAdd", "InplaceIndexAdd",
    "InplaceSub", "InplaceUpdate", "InplaceUpdateV2", "InvertPermutation", "ListDiff", "LowerBound",
    "Misfit", "NoRepeatNGram", "NthElement", "RaggedRange", "ScatterAddWithAxis", "SearchSorted", "Select",
    "Sort", "SparseGatherV2", "Tensor", "TensorScatterElements", "TopK", "Unique", "UniqueConsecutive",
    "UniqueWithPad", "UnravelIndex", "UpperBound", "anything", "boolean", "choice", "constant", "dtype",
    "index_put", "integer", "integers", "number", "optional", "positive", "primitive", "table", "type_id",
]


def index_put(input, indices, values, accumulate=False) -> Tensor:
    """`input` with `values` at the positions ``(indices[0][i], indices[1][i], ...)``, replacing or (`accumulate`) added."""
