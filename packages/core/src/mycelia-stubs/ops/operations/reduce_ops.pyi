# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from mycelia.numpy.creation import constant as constant
from mycelia.ops.operations import (
    ArgMaxWithValue as ArgMaxWithValue, ArgMinWithValue as ArgMinWithValue, Argmax as Argmax,
    Argmin as Argmin, CountNonZero as CountNonZero, CumProd as CumProd, CumSum as CumSum, Cummax as Cummax,
    Cummin as Cummin, CumulativeLogsumexp as CumulativeLogsumexp, EuclideanNorm as EuclideanNorm,
    LpNorm as LpNorm, Median as Median, Quantile as Quantile, ReduceAll as ReduceAll,
    ReduceAny as ReduceAny, ReduceMax as ReduceMax, ReduceMean as ReduceMean, ReduceMin as ReduceMin,
    ReduceProd as ReduceProd, ReduceStd as ReduceStd, ReduceSum as ReduceSum, Renorm as Renorm,
)
from mycelia.ops.primitives.checks import (
    boolean as boolean, dtype as dtype, integer as integer, integers as integers, optional as optional,
    real as real, type_id as type_id,
)
from mycelia.ops.primitives.define import primitive as primitive

__all__ = [
    "ArgMaxWithValue", "ArgMinWithValue", "Argmax", "Argmin", "CountNonZero", "CumProd", "CumSum", "Cummax",
    "Cummin", "CumulativeLogsumexp", "EuclideanNorm", "LpNorm", "Median", "Quantile", "ReduceAll",
    "ReduceAny", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceStd", "ReduceSum", "Renorm",
    "Tensor", "boolean", "constant", "dtype", "integer", "integers", "optional", "primitive", "real",
    "type_id",
]
