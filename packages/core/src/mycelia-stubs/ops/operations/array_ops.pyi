# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from mycelia.engine.ops.arrays.shape import as_ints as as_ints
from mycelia.numpy.creation import constant as constant
from mycelia.ops.operations import (
    BartlettWindow as BartlettWindow, BlackmanWindow as BlackmanWindow, BroadcastTo as BroadcastTo,
    Cast as Cast, Concat as Concat, ConjugateTranspose as ConjugateTranspose, DType as DType,
    DiagPart as DiagPart, DynamicShape as DynamicShape, Expand as Expand, Fill as Fill,
    FillDiagonal as FillDiagonal, FillV2 as FillV2, Flatten as Flatten, HammingWindow as HammingWindow,
    Identity as Identity, IdentityN as IdentityN, LinSpace as LinSpace, LogSpace as LogSpace,
    MatrixBandPart as MatrixBandPart, MatrixDiagPartV3 as MatrixDiagPartV3, MatrixDiagV3 as MatrixDiagV3,
    MatrixSetDiagV3 as MatrixSetDiagV3, Meshgrid as Meshgrid, OneHot as OneHot, Ones as Ones, Pack as Pack,
    ParallelConcat as ParallelConcat, Range as Range, Reshape as Reshape,
    ReverseSequence as ReverseSequence, ReverseV2 as ReverseV2, Roll as Roll, Shift as Shift,
    Slice as Slice, Split as Split, SplitV as SplitV, Squeeze as Squeeze, Stack as Stack,
    StridedSlice as StridedSlice, TensorShape as TensorShape, Tril as Tril, TrilIndices as TrilIndices,
    Triu as Triu, TriuIndices as TriuIndices, Unpack as Unpack, Unstack as Unstack, Zeros as Zeros,
)
from mycelia.ops.primitives.checks import (
    anything as anything, boolean as boolean, choice as choice, dtype as dtype, integer as integer,
    integer_tuple as integer_tuple, integers as integers, number as number, optional as optional,
    real as real, within as within,
)
from mycelia.ops.primitives.define import primitive as primitive, table as table
from typing import Any as Any

__all__ = [
    "BartlettWindow", "BlackmanWindow", "BroadcastTo", "Cast", "Concat", "ConjugateTranspose", "DType",
    "DiagPart", "DynamicShape", "Expand", "Fill", "FillDiagonal", "FillV2", "Flatten", "HammingWindow",
    "Identity", "IdentityN", "LinSpace", "LogSpace", "MatrixBandPart", "MatrixDiagPartV3", "MatrixDiagV3",
    "MatrixSetDiagV3", "Meshgrid", "OneHot", "Ones", "Pack", "ParallelConcat", "Range", "Reshape",
    "ReverseSequence", "ReverseV2", "Roll", "Shift", "Slice", "Split", "SplitV", "Squeeze", "Stack",
    "StridedSlice", "Tensor", "TensorShape", "Tril", "TrilIndices", "Triu", "TriuIndices", "Unpack",
    "Unstack", "Zeros", "anything", "as_ints", "boolean", "choice", "constant", "dtype", "integer",
    "integer_tuple", "integers", "natural", "number", "optional", "positive", "primitive", "real", "table",
    "within",
]


def natural(value: Any) -> Any: ...

def positive(value: Any) -> Any: ...
