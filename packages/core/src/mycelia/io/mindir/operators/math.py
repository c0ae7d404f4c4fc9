"""Arithmetic, reductions, matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycelia.engine import ops
from mycelia.engine.base import dtypes
from mycelia.engine.ops.linalg.decomposition import _svd
from mycelia.engine.ops.linalg.products import batch_matmul, bias_add, mat_mul
from mycelia.engine.tensors.tensor import Tensor
from mycelia.io.mindir.operators.arguments import (
    as_dtype,
    axes_or_all,
    ints,
    is_channels_last,
    one_axis,
    text,
)
from mycelia.io.mindir.operators.table import operator, simple

# ---- arithmetic --------------------------------------------------------------------------------

simple(
    Div="div", RealDiv="true_divide", Muls="mul", Divs="div", FloorDivScalar="floor_divide",
    PowTensorScalar="pow", PowScalarTensor="pow", RemainderTensorTensor="remainder",
    RemainderTensorScalar="remainder", RemainderScalarTensor="remainder", FmodTensor="fmod",
    FmodScalar="fmod", XLogYScalarOther="xlogy", XLogYScalarSelf="xlogy", LessScalar="less",
    LessEqualScalar="less_equal", GreaterScalar="greater", GreaterEqualScalar="greater_equal",
    EqScalar="equal", NeScalar="not_equal", LogAddExp="logaddexp", LogAddExp2="logaddexp2", Exp2="exp2",
    Log2="log2", Log10="log10", Frac="frac", Sgn="sgn", BitwiseAndScalar="bitwise_and",
    BitwiseOrScalar="bitwise_or", BitwiseXorScalar="bitwise_xor", LeftShift="bitwise_left_shift",
    RightShift="bitwise_right_shift", Swiglu="swiglu", GLU="glu", Inv="reciprocal",
    ZerosLike="zeros_like", OnesLike="ones_like", Rank="rank", Size="size", Select="where",
    ExpandAs="expand_as", Outer="outer", Dot="dot", Trace="trace", MatrixInverseExt="inverse",
    IsNegInf="isneginf", IsPosInf="isposinf", Lerp="lerp", LerpScalar="lerp", MaskedFill="masked_fill",
    Kron="kron", Mod="floor_mod", Expand="broadcast_to",
)  # fmt: skip


@operator
def AddExt(x, y, alpha=1):
    return ops.add(x, y if alpha == 1 else ops.mul(y, alpha))


@operator
def SubExt(x, y, alpha=1):
    return ops.sub(x, y if alpha == 1 else ops.mul(y, alpha))


operator(AddExt, "AddScalar")
operator(SubExt, "SubScalar")


@operator
def DivMod(x, y, rounding_mode=None):
    mode = None if rounding_mode is None else text(rounding_mode, ("round", "trunc", "floor", "ceil"))
    return ops.div(x, y, rounding_mode=mode)


operator(DivMod, "DivMods")


@operator
def SquaredDifference(x, y):
    return ops.square(ops.sub(x, y))


@operator
def DivNoNan(x, y):
    zero = ops.equal(y, 0)
    return ops.where(zero, ops.zeros_like(x), ops.div(x, ops.where(zero, ops.ones_like(y), y)))


@operator
def MulNoNan(x, y):
    return ops.where(ops.equal(y, 0), ops.zeros_like(ops.mul(x, y)), ops.mul(x, y))


@operator
def AddN(items):
    return ops.addn(items)


operator(AddN, "AccumulateNV2")


@operator
def Addcmul(x, a, b, value=1):
    return ops.addcmul(x, a, b, value)


@operator
def Addcdiv(x, a, b, value=1):
    return ops.addcdiv(x, a, b, value)


operator(Addcmul, "AddcmulExt")
operator(Addcdiv, "AddcdivExt")


@operator
def ClampTensor(x, min=None, max=None):
    return ops.clamp(x, min, max)


operator(ClampTensor, "ClampScalar")


@operator
def ClipByValue(x, low, high):
    return ops.clamp(x, low, high)


@operator
def Round(x, decimals=0):
    return ops.round(x, decimals=decimals)


@operator
def Cast(x, dtype):
    wanted = as_dtype(dtype)
    return ops.cast(x, wanted) if isinstance(x, Tensor) else Tensor(x, wanted)


@operator
def TypeAs(x, y):
    return ops.cast(x, y.dtype)


@operator
def NanToNum(x, *, nan=None, posinf=None, neginf=None):
    return ops.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


# ---- reductions --------------------------------------------------------------------------------


def _reduction(name: str, function: Callable) -> None:
    def reduce(x, axis=None, *, keep_dims=False, skip_mode=False):
        if skip_mode and axis is not None and not ints(axis):
            return x
        return function(x, axes_or_all(axis), bool(keep_dims))

    operator(reduce, name)


_reduction("ReduceSum", lambda x, axis, keep: ops.sum(x, axis, keep, dtype=x.dtype))
_reduction("ReduceMean", lambda x, axis, keep: ops.mean(x, axis, keep))
_reduction("ReduceMax", lambda x, axis, keep: ops.amax(x, axis, keep))
_reduction("ReduceMin", lambda x, axis, keep: ops.amin(x, axis, keep))
_reduction("ReduceProd", lambda x, axis, keep: ops.prod(x, axis, keep))
_reduction("ReduceAll", lambda x, axis, keep: ops.all(x, axis, keep))
_reduction("ReduceAny", lambda x, axis, keep: ops.any(x, axis, keep))


def _cast_first(x: Tensor, dtype: Any) -> Tensor:
    return x if dtype is None else ops.cast(x, as_dtype(dtype))


@operator
def SumExt(x, dim=None, keepdim=False, dtype=None):
    return ops.sum(x, axes_or_all(dim), bool(keepdim), dtype=as_dtype(dtype))


@operator
def MeanExt(x, dim=None, keepdim=False, dtype=None):
    return ops.mean(_cast_first(x, dtype), axes_or_all(dim), bool(keepdim))


@operator
def ProdExt(x, dim=None, keepdim=False, dtype=None):
    return ops.prod(x, dim, bool(keepdim), dtype=as_dtype(dtype))


@operator
def AnyExt(x, dim=None, keepdim=False):
    return ops.any(x, axes_or_all(dim), bool(keepdim))


@operator
def Max(x):
    return ops.amax(x)


@operator
def Min(x):
    return ops.amin(x)


@operator
def MaxDim(x, dim, keepdim=False):
    return ops.max(x, dim, keepdim)


@operator
def MinDim(x, dim, keepdim=False):
    return ops.min(x, dim, keepdim)


@operator
def ArgMaxWithValue(x, *, axis=0, keep_dims=False):
    value, index = ops.max(x, axis, keep_dims)
    return index, value


@operator
def ArgMinWithValue(x, *, axis=0, keep_dims=False):
    value, index = ops.min(x, axis, keep_dims)
    return index, value


@operator
def Argmax(x, *, axis=-1, output_type=dtypes.int32):
    return ops.cast(ops.argmax(x, axis), as_dtype(output_type))


@operator
def Argmin(x, *, axis=-1, output_type=dtypes.int32):
    return ops.cast(ops.argmin(x, axis), as_dtype(output_type))


@operator
def ArgMaxExt(x, dim=None, keepdim=False):
    return ops.argmax(x, dim, keepdim)


@operator
def ArgMinExt(x, dim=None, keepdim=False):
    return ops.argmin(x, dim, keepdim)


@operator
def CumSum(x, axis, *, exclusive=False, reverse=False):
    return _cumulative(ops.cumsum, x, axis, exclusive, reverse, 0)


@operator
def CumProd(x, axis, *, exclusive=False, reverse=False):
    return _cumulative(ops.cumprod, x, axis, exclusive, reverse, 1)


def _cumulative(
    function: Callable, x: Tensor, axis: Any, exclusive: bool, reverse: bool, start: int
) -> Tensor:
    axis = one_axis(axis) % max(x.ndim, 1)
    if reverse:
        x = ops.flip(x, (axis,))
    if exclusive:  # the sum of what precedes an element: shifted by one
        first = ops.zeros_like(ops.narrow(x, axis, 0, 1)) + start
        x = ops.concat((ops.cast(first, x.dtype), ops.narrow(x, axis, 0, x.shape[axis] - 1)), axis)
    y = ops.cast(function(x, axis), x.dtype)
    return ops.flip(y, (axis,)) if reverse else y


@operator
def Median(x, *, global_median=False, axis=0, keep_dims=False, ignore_nan=False):
    if global_median:
        return ops.median(ops.reshape(x, (-1,)), 0)
    function = ops.nanmedian if ignore_nan else ops.median
    return function(x, axis, keep_dims)


@operator
def CumsumExt(x, dim, dtype=None):
    return ops.cumsum(x, dim, dtype=as_dtype(dtype))


@operator
def Cummax(x, *, axis):
    return ops.cummax(x, axis)


@operator
def Cummin(x, *, axis):
    return ops.cummin(x, axis)


@operator
def LogSumExp(x, dim, keepdim=False):
    return ops.logsumexp(x, ints(dim), keepdim)


@operator
def Var(x, dim=None, correction=1, keepdim=False):
    return ops.var(x, axes_or_all(dim), correction, keepdim)


@operator
def Std(x, dim=None, correction=1, keepdim=False):
    return ops.std(x, axes_or_all(dim), correction, keepdim)


@operator
def VarMean(x, dim=None, correction=1, keepdim=False):
    return ops.var_mean(x, axes_or_all(dim), correction, keepdim)


@operator
def StdMean(x, dim=None, correction=1, keepdim=False):
    return ops.std_mean(x, axes_or_all(dim), correction, keepdim)


@operator
def ReduceStd(x, *, axis=(), unbiased=True, keep_dims=False):
    return ops.std_mean(x, axes_or_all(axis), int(unbiased), keep_dims)


@operator
def Norm(x, p=2.0, dim=None, keepdim=False, dtype=None):
    return ops.norm(x, p, axes_or_all(dim), keepdim, dtype=as_dtype(dtype))


@operator
def LpNormV2(x, p=2.0, dim=None, keepdim=False, epsilon=1e-12):
    return ops.vector_norm(x, p, axes_or_all(dim), keepdim)


@operator
def LinalgVectorNorm(x, ord=2, dim=None, keepdim=False, dtype=None):
    return ops.vector_norm(x, ord, axes_or_all(dim), keepdim, dtype=as_dtype(dtype))


@operator
def CountNonZero(x, dim=None):
    return ops.count_nonzero(x, () if dim is None else ints(dim))


# ---- matrices ----------------------------------------------------------------------------------


@operator
def MatMul(x, y, *, transpose_a=False, transpose_b=False):
    return mat_mul(x, y, transpose_a=transpose_a, transpose_b=transpose_b)


@operator
def BatchMatMul(x, y, *, transpose_a=False, transpose_b=False):
    return batch_matmul(x, y, transpose_a=transpose_a, transpose_b=transpose_b)


@operator
def MatMulExt(x, y):
    return ops.matmul(x, y)


@operator
def Dense(x, weight, bias=None):
    return ops.dense(x, weight, bias)


@operator
def Addmm(x, a, b, beta=1, alpha=1):
    return ops.add(ops.mul(x, beta), ops.mul(ops.matmul(a, b), alpha))


operator(Addmm, "Baddbmm")
operator(Addmm, "Addmv")


@operator
def Addbmm(x, a, b, beta=1, alpha=1):
    return ops.add(ops.mul(x, beta), ops.mul(ops.sum(ops.matmul(a, b), 0), alpha))


@operator
def BiasAdd(x, bias, *, data_format="NCHW"):
    return bias_add(x, bias, data_format="NHWC" if is_channels_last(data_format) else "NCHW")


@operator
def MatrixInverse(x, *, adjoint=False):
    found = ops.inverse(x)
    return ops.conj(ops.swapaxes(found, -1, -2)) if adjoint else found


@operator
def Svd(x, full_matrices=False, compute_uv=True):
    return _svd(x, full_matrices=bool(full_matrices))  # without `compute_uv` nobody uses the others


@operator
def Eig(x, compute_v=False):
    return ops.eig(x)  # without `compute_v` nobody uses the vectors
