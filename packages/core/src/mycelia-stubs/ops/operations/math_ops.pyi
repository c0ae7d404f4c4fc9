# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor, TensorLike as TensorLike
from mycelia.ops.operations import (
    AccumulateNV2 as AccumulateNV2, AddN as AddN, ApproximateEqual as ApproximateEqual, Cdist as Cdist,
    CheckNumerics as CheckNumerics, CompareAndBitpack as CompareAndBitpack, Complex as Complex,
    ComplexAbs as ComplexAbs, Cross as Cross, DivNoNan as DivNoNan, Einsum as Einsum,
    EqualCount as EqualCount, Ger as Ger, Inv as Inv, IsClose as IsClose, Logit as Logit,
    MulNoNan as MulNoNan, NanToNum as NanToNum, Pdist as Pdist, RealDiv as RealDiv, Rint as Rint,
    Round as Round, SquareSumAll as SquareSumAll, SquaredDifference as SquaredDifference,
)
from mycelia.ops.primitives.checks import (
    boolean as boolean, integer as integer, number as number, optional as optional, real as real,
    text as text,
)
from mycelia.ops.primitives.define import primitive as primitive, renamed as renamed, table as table

__all__ = [
    "AccumulateNV2", "AddN", "ApproximateEqual", "Cdist", "CheckNumerics", "CompareAndBitpack", "Complex",
    "ComplexAbs", "Cross", "DivNoNan", "Einsum", "EqualCount", "Ger", "Inv", "IsClose", "Logit", "MulNoNan",
    "NanToNum", "Pdist", "RealDiv", "Rint", "Round", "SquareSumAll", "SquaredDifference", "Tensor",
    "boolean", "check_numerics", "integer", "number", "optional", "primitive", "real", "renamed", "table",
    "text",
]


def check_numerics(x: TensorLike) -> Tensor:
    """`x`, if all its elements are finite."""
