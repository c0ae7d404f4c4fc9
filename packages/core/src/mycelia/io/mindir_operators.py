"""MindSpore operators as Python functions over `mycelia.ops`: what a node of a MindIR file computes.

A function's name is the operator's. Its positional parameters are the operator's inputs; keyword-only
parameters are the arguments that files of before `mind_ir_version` 2 keep as attributes and later ones give
as further inputs, in this order. So one signature serves every kind of file. Operators that an op names
itself (`@op(mindir=...)`) with the same arguments need no function here. `mindir_export` has the other
direction.
"""

from __future__ import annotations

import functools
import inspect
import math
import operator as py
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mycelia import dtypes, ops
from mycelia.dtypes import DType
from mycelia.io.mindir_values import dtype_of_id
from mycelia.ops import conv as _conv
from mycelia.ops import linalg as _linalg
from mycelia.ops import norm as _norm
from mycelia.ops import pool as _pooling
from mycelia.ops import rnn as _rnn
from mycelia.tensor import Parameter, Tensor

_ALIASES = {  # attribute -> its names in older files
    "data_format": ("format",),
    "transpose_a": ("transpose_x1", "adj_x"),
    "transpose_b": ("transpose_x2", "adj_y"),
    "group": ("groups",),
    "pad": ("pad_list", "padding"),
    "strides": ("stride",),
    "stride": ("strides",),
    "dims": ("perm", "multiples"),
    "axis": ("dim",),
}
_RENAMED = {  # operator -> the name it has now
    "TensorAdd": "Add", "Gelu": "GeLU", "Swish": "SiLU", "LogicalNOT": "LogicalNot", "tuple_getitem": "TupleGetItem",
    "list_getitem": "TupleGetItem", "ListGetItem": "TupleGetItem", "RealTupleGetItem": "TupleGetItem",
    "RealMakeTuple": "MakeTuple", "make_tuple": "MakeTuple", "make_list": "MakeList", "GatherV2": "Gather",
    "SparseGatherV2": "Gather", "Sqr": "Square", "EqualExt": "Equal", "AsinExt": "Asin", "AcosExt": "ACos",
    "AtanExt": "Atan", "Atan2Ext": "Atan2", "AsinhExt": "Asinh", "AcoshExt": "Acosh", "MishExt": "Mish",
    "SeLUExt": "SeLU", "TrilExt": "Tril", "BitwiseNot": "Invert", "BitwiseAndTensor": "BitwiseAnd",
    "BitwiseOrTensor": "BitwiseOr", "BitwiseXorTensor": "BitwiseXor", "Mod": "FloorMod", "SelectV2": "Select",
    "Contiguous": "Identity", "Clone": "Identity", "Copy": "Identity", "TensorMove": "Identity", "SetSize": "Identity",
    "TensorShape": "Shape", "ReduceAnyExt": "AnyExt", "NonZeroExt": "NonZeroTuple", "MaskedFillScalar": "MaskedFill",
    "GatherNdExt": "GatherNd", "Mm": "MatMulExt", "BatchMatMulExt": "MatMulExt", "Mv": "MatMulExt",
}  # fmt: skip

_FORMATS = ("NCHW", "NHWC", "NHWC4", "HWKC", "HWCK", "KCHW", "CKHW", "KHWC", "CHWK", "HW", "HW4", "NC", "NC4",
            "NC4HW4", "NCDHW", "NWC", "NCW", "NDHWC")  # fmt: skip
_PAD_MODES = ("pad", "same", "valid", "full")
_REDUCTIONS = ("sum", "mean", "none")
_NORM_MODES = ("backward", "forward", "ortho")


class Operator:
    """One operator: the function and how the arguments of a node become its parameters."""

    __slots__ = ("effect", "function", "keywords", "positional", "varied")

    def __init__(
        self,
        function: Callable,
        positional: Sequence[str],
        keywords: Sequence[str],
        varied: bool,
        effect: bool,
    ):
        self.function, self.positional, self.keywords = function, tuple(positional), tuple(keywords)
        self.varied, self.effect = varied, effect

    def bind(self, arguments: list, attributes: Mapping[str, Any]) -> tuple[list, dict[str, Any]]:
        """(positional, keyword) arguments of a call. Errors: TypeError for too many inputs."""
        if self.varied:
            return arguments, {}
        count = len(self.positional)
        extra = arguments[count:]
        if len(extra) > len(self.keywords):
            raise TypeError(
                f"takes up to {count + len(self.keywords)} arguments, the file gives {len(arguments)}"
            )
        bound = dict(zip(self.keywords, extra))
        for name in (*self.positional[len(arguments) :], *self.keywords[len(extra) :]):
            for known in (name, *_ALIASES.get(name, ())):
                if known in attributes:
                    bound[name] = attributes[known]
                    break
        return arguments[:count], bound


_table: dict[str, Operator] = {}


def operator(function: Callable, name: str = "", effect: bool = False) -> Callable:
    """Enters a function into the table; its signature says which arguments are inputs and which attributes."""
    parameters = inspect.signature(function).parameters.values()
    positional = [p.name for p in parameters if p.kind == p.POSITIONAL_OR_KEYWORD]
    keywords = [p.name for p in parameters if p.kind == p.KEYWORD_ONLY]
    varied = any(p.kind == p.VAR_POSITIONAL for p in parameters)
    _table[name or function.__name__] = Operator(function, positional, keywords, varied, effect)
    return function


def writes(function: Callable) -> Callable:
    """`operator` for one that changes a parameter or the world: it runs in its place even when nothing uses
    it.
    """
    return operator(function, effect=True)


@functools.cache
def find(name: str) -> Operator | None:
    """The operator of a name, or None when it is not known."""
    name = _RENAMED.get(name, name)
    if name in _table:
        return _table[name]
    return _named_by_ops().get(name)


def has_effect(name: str, attributes: Mapping[str, Any]) -> bool:
    """Whether an operator with these attributes changes parameters or prints."""
    flags = ("side_effect_mem", "side_effect_io", "is_training")
    return (name in _table and _table[name].effect) or any(attributes.get(flag) for flag in flags)


@functools.cache
def _named_by_ops() -> dict[str, Operator]:
    """The operators that ops name themselves."""
    from mycelia.ops.define import registry

    table = {}
    for op in registry.values():
        definition = op.definition
        if definition.mindir:
            table[definition.mindir] = Operator(
                op, definition.param_names, [a.name for a in definition.attrs], False, bool(definition.effect)
            )
    return table


# ----------------------------------------------------------------------------------------------------
# arguments
def _text(value: Any, names: Sequence[str]) -> str:
    """An enumeration as lower-case text: it is a number as an input, text of either case as an attribute."""
    return names[value] if isinstance(value, int) else value.lower()


def _is_channels_last(data_format: Any) -> bool:
    name = _FORMATS[data_format] if isinstance(data_format, int) and data_format >= 0 else data_format
    return name in ("NHWC", "NDHWC", "NWC")


def _pad_mode(value: Any) -> str:
    mode = _text(value, _PAD_MODES)
    return "pad" if mode == "calculated" else mode


def _dtype(value: Any) -> DType | None:
    return dtype_of_id(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _ints(value: Any) -> tuple[int, ...]:
    """A tuple of ints from an int, a sequence, or a Tensor."""
    if isinstance(value, Tensor):
        return tuple(int(v) for v in value.asnumpy().reshape(-1))
    if isinstance(value, (tuple, list)):
        return tuple(int(v) for v in value)
    return (int(value),)


def _axes(value: Any) -> tuple[int, ...] | None:
    """Axes of a reduction; None stands for all, as an empty tuple does in files."""
    return None if value is None else _ints(value) or None


def _axis(value: Any) -> int:
    return _ints(value)[0]


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, Tensor) else value


def _last_two(value: Any, rank: int = 2) -> tuple[int, ...]:
    """Sizes of the image dimensions: older files give (1, 1, h, w)."""
    values = _ints(value)
    return (values * rank)[:rank] if len(values) == 1 else values[-rank:]


def _channels_first(function: Callable, x: Tensor, data_format: Any) -> Tensor:
    """Applies a channels-first function to data of either layout."""
    if not _is_channels_last(data_format):
        return function(x)
    last = x.ndim - 1
    y = function(ops.transpose(x, (0, last, *range(1, last))))
    return ops.transpose(y, (0, *range(2, last + 1), 1))


# ----------------------------------------------------------------------------------------------------
# structure
def _simple(**names: str) -> None:
    """Operators whose inputs are the arguments of a public function: operator = name of the function."""
    for name, function in names.items():
        _table[name] = Operator(_public(function), (), (), True, False)


def _public(name: str) -> Callable:
    return lambda *arguments: getattr(ops, name)(*arguments)


_simple(
    Add="add", Sub="sub", Mul="mul", Div="div", RealDiv="true_divide", FloorDiv="floor_div", FloorMod="floor_mod",
    TruncateDiv="truncate_div", TruncateMod="truncate_mod", Pow="pow", Maximum="maximum", Minimum="minimum",
    Muls="mul", Divs="div", FloorDivScalar="floor_divide", PowTensorScalar="pow", PowScalarTensor="pow",
    RemainderTensorTensor="remainder", RemainderTensorScalar="remainder", RemainderScalarTensor="remainder",
    FmodTensor="fmod", FmodScalar="fmod", Xlogy="xlogy", XLogYScalarOther="xlogy", XLogYScalarSelf="xlogy",
    LessScalar="less", LessEqualScalar="less_equal", GreaterScalar="greater", GreaterEqualScalar="greater_equal",
    EqScalar="equal", NeScalar="not_equal", LogAddExp="logaddexp", LogAddExp2="logaddexp2", Erf="erf", Erfc="erfc",
    Erfinv="erfinv", Exp2="exp2", Log2="log2", Log10="log10", Sinc="sinc", Frac="frac", Sgn="sgn",
    BitwiseAndScalar="bitwise_and", BitwiseOrScalar="bitwise_or", BitwiseXorScalar="bitwise_xor",
    LeftShift="bitwise_left_shift", RightShift="bitwise_right_shift", SiLU="silu", Swiglu="swiglu", GLU="glu",
    Inv="reciprocal", ZerosLike="zeros_like", OnesLike="ones_like", Rank="rank", Size="size", Select="where",
    ExpandAs="expand_as", Outer="outer", Dot="dot", Trace="trace", Angle="angle", Conj="conj", Real="real",
    Imag="imag", MatrixDeterminant="det", MatrixInverseExt="inverse", MatrixInverse="inverse", Lgamma="lgamma",
    Digamma="digamma", IsNegInf="isneginf", IsPosInf="isposinf", Lerp="lerp", LerpScalar="lerp", MaskedFill="masked_fill",
    Kron="kron", Gcd="gcd", Lcm="lcm", Mod="floor_mod", Expand="broadcast_to",
)  # fmt: skip


@operator
def MakeTuple(*items):
    return items


@operator
def MakeList(*items):
    return list(items)


@operator
def TupleGetItem(sequence, index):
    return sequence[int(index)]


@operator
def make_dict(keys, values):
    return dict(zip(keys, values))


@operator
def Identity(x):
    return x.value() if isinstance(x, Parameter) else x


@operator
def Shape(x):
    return tuple(x.shape)


operator(Shape, "DynamicShape")


@operator
def TensorToScalar(x):
    return x.item()


@operator
def ScalarToTensor(x, dtype=None):
    return Tensor(x, _dtype(dtype))


@operator
def TupleToTensor(items, dtype=None):
    return Tensor([_number(v) for v in items], _dtype(dtype))


operator(TupleToTensor, "ListToTensor")


@operator
def TensorToTuple(x):
    return tuple(x.asnumpy().tolist())


@operator
def TupleToList(items):
    return list(items)


@operator
def ListToTuple(items):
    return tuple(items)


@operator
def ScalarCast(x, dtype):
    wanted = _dtype(dtype)
    return bool(x) if wanted.is_bool else float(x) if wanted.is_floating else int(x)


@operator
def SequenceLen(items):
    return len(items)


operator(SequenceLen, "sequence_len")


def _scalar(**functions: Callable) -> None:
    for name, function in functions.items():
        _table[name] = Operator(function, (), (), True, False)


_scalar(
    ScalarAdd=py.add, ScalarSub=py.sub, ScalarMul=py.mul, ScalarDiv=py.truediv, ScalarFloorDiv=py.floordiv,
    ScalarMod=py.mod, ScalarPow=py.pow, ScalarEq=py.eq, ScalarGe=py.ge, ScalarGt=py.gt, ScalarLe=py.le, ScalarLt=py.lt,
    ScalarMax=max, ScalarMin=min, ScalarLog=math.log, ScalarUadd=py.pos, ScalarUsub=py.neg, ScalarBool=bool, BoolNot=py.not_,
    bool_not=py.not_, scalar_add=py.add, scalar_sub=py.sub, scalar_mul=py.mul, scalar_div=py.truediv,
    scalar_floordiv=py.floordiv, scalar_mod=py.mod, scalar_eq=py.eq, scalar_ge=py.ge, scalar_gt=py.gt, scalar_le=py.le,
    scalar_lt=py.lt, scalar_uadd=py.pos, scalar_usub=py.neg,
)  # fmt: skip


# ----------------------------------------------------------------------------------------------------
# arithmetic
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
    mode = None if rounding_mode is None else _text(rounding_mode, ("round", "trunc", "floor", "ceil"))
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
    wanted = _dtype(dtype)
    return ops.cast(x, wanted) if isinstance(x, Tensor) else Tensor(x, wanted)


@operator
def TypeAs(x, y):
    return ops.cast(x, y.dtype)


@operator
def NanToNum(x, *, nan=None, posinf=None, neginf=None):
    return ops.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


# ----------------------------------------------------------------------------------------------------
# activations
@operator
def GeLU(x):
    return ops.gelu(x, approximate="tanh")


@operator
def GeluExt(x, approximate=0):
    return ops.gelu(x, approximate=_text(approximate, ("none", "tanh")))


@operator
def Softmax(x, *, axis=-1):
    axes = _ints(axis)
    if len(axes) == 1:
        return ops.softmax(x, axes[0])
    e = ops.exp(x - ops.amax(x, axes, True))
    return e / ops.sum(e, axes, True)


@operator
def LogSoftmaxExt(x, dim=None, dtype=None):
    if dtype is not None:
        x = ops.cast(x, _dtype(dtype))
    return ops.log_softmax(x, -1 if dim is None else dim)


@operator
def Elu(x, *, alpha=1.0):
    return ops.elu(x, alpha)


operator(Elu, "EluExt")


@operator
def LeakyReLU(x, *, negative_slope=0.01):
    return ops.leaky_relu(x, alpha=negative_slope)


operator(LeakyReLU, "LeakyReLUExt")


@operator
def Softplus(x):
    return ops.softplus(x)


@operator
def SoftplusExt(x, beta=1, threshold=20):
    return ops.softplus(x, beta, threshold)


@operator
def Hardtanh(x, min_val=-1, max_val=1):
    return ops.hardtanh(x, min_val, max_val)


@operator
def Threshold(x, threshold, value):
    return ops.threshold(x, thr=threshold, value=value)


@operator
def LogSigmoid(x):
    y = ops.logsigmoid(x)
    return y, y  # the second is a buffer for the gradient


@operator
def Dropout(x, *, keep_prob=0.5, Seed0=0, Seed1=0):
    y = ops.dropout(x, p=1 - keep_prob, training=True)
    return y, ops.cast(ops.not_equal(y, 0), x.dtype)


# ----------------------------------------------------------------------------------------------------
# reductions
def _reduction(name: str, function: Callable) -> None:
    def reduce(x, axis=None, *, keep_dims=False, skip_mode=False):
        if skip_mode and axis is not None and not _ints(axis):
            return x
        return function(x, _axes(axis), bool(keep_dims))

    operator(reduce, name)


_reduction("ReduceSum", lambda x, axis, keep: ops.sum(x, axis, keep, dtype=x.dtype))
_reduction("ReduceMean", lambda x, axis, keep: ops.mean(x, axis, keep))
_reduction("ReduceMax", lambda x, axis, keep: ops.amax(x, axis, keep))
_reduction("ReduceMin", lambda x, axis, keep: ops.amin(x, axis, keep))
_reduction("ReduceProd", lambda x, axis, keep: ops.prod(x, axis, keep))
_reduction("ReduceAll", lambda x, axis, keep: ops.all(x, axis, keep))
_reduction("ReduceAny", lambda x, axis, keep: ops.any(x, axis, keep))


def _cast_first(x: Tensor, dtype: Any) -> Tensor:
    return x if dtype is None else ops.cast(x, _dtype(dtype))


@operator
def SumExt(x, dim=None, keepdim=False, dtype=None):
    return ops.sum(x, _axes(dim), bool(keepdim), dtype=_dtype(dtype))


@operator
def MeanExt(x, dim=None, keepdim=False, dtype=None):
    return ops.mean(_cast_first(x, dtype), _axes(dim), bool(keepdim))


@operator
def ProdExt(x, dim=None, keepdim=False, dtype=None):
    return ops.prod(x, dim, bool(keepdim), dtype=_dtype(dtype))


@operator
def AnyExt(x, dim=None, keepdim=False):
    return ops.any(x, _axes(dim), bool(keepdim))


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
    return ops.cast(ops.argmax(x, axis), _dtype(output_type))


@operator
def Argmin(x, *, axis=-1, output_type=dtypes.int32):
    return ops.cast(ops.argmin(x, axis), _dtype(output_type))


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
    axis = _axis(axis) % x.ndim
    if reverse:
        x = ops.flip(x, (axis,))
    if exclusive:  # the sum of what precedes an element: shifted by one
        first = ops.zeros_like(ops.narrow(x, axis, 0, 1)) + start
        x = ops.concat((ops.cast(first, x.dtype), ops.narrow(x, axis, 0, x.shape[axis] - 1)), axis)
    y = function(x, axis)
    return ops.flip(y, (axis,)) if reverse else y


@operator
def CumsumExt(x, dim, dtype=None):
    return ops.cumsum(x, dim, dtype=_dtype(dtype))


@operator
def Cummax(x, *, axis):
    return ops.cummax(x, axis)


@operator
def Cummin(x, *, axis):
    return ops.cummin(x, axis)


@operator
def LogSumExp(x, dim, keepdim=False):
    return ops.logsumexp(x, _ints(dim), keepdim)


@operator
def Var(x, dim=None, correction=1, keepdim=False):
    return ops.var(x, _axes(dim), correction, keepdim)


@operator
def Std(x, dim=None, correction=1, keepdim=False):
    return ops.std(x, _axes(dim), correction, keepdim)


@operator
def VarMean(x, dim=None, correction=1, keepdim=False):
    return ops.var_mean(x, _axes(dim), correction, keepdim)


@operator
def StdMean(x, dim=None, correction=1, keepdim=False):
    return ops.std_mean(x, _axes(dim), correction, keepdim)


@operator
def ReduceStd(x, *, axis=(), unbiased=True, keep_dims=False):
    return ops.std_mean(x, _axes(axis), int(unbiased), keep_dims)


@operator
def Norm(x, p=2.0, dim=None, keepdim=False, dtype=None):
    return ops.norm(x, p, _axes(dim), keepdim, dtype=_dtype(dtype))


@operator
def LpNormV2(x, p=2.0, dim=None, keepdim=False, epsilon=1e-12):
    return ops.vector_norm(x, p, _axes(dim), keepdim)


@operator
def LinalgVectorNorm(x, ord=2, dim=None, keepdim=False, dtype=None):
    return ops.vector_norm(x, ord, _axes(dim), keepdim, dtype=_dtype(dtype))


@operator
def CountNonZero(x, dim=None):
    return ops.count_nonzero(x, () if dim is None else _ints(dim))


@operator
def L2Normalize(x, *, axis=0, epsilon=1e-4):
    return ops.L2Normalize(axis, epsilon)(x)


# ----------------------------------------------------------------------------------------------------
# matrices
@operator
def MatMul(x, y, *, transpose_a=False, transpose_b=False):
    return _linalg.mat_mul(x, y, transpose_a=transpose_a, transpose_b=transpose_b)


@operator
def BatchMatMul(x, y, *, transpose_a=False, transpose_b=False):
    return _linalg.batch_matmul(x, y, transpose_a=transpose_a, transpose_b=transpose_b)


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
    return _linalg.bias_add(x, bias, data_format="NHWC" if _is_channels_last(data_format) else "NCHW")


# ----------------------------------------------------------------------------------------------------
# convolutions
def _convolution(x, w, rank, stride, pad, dilation, group, pad_mode, data_format):
    kernel, mode = w.shape[2:], _pad_mode(pad_mode)
    strides, dilations = _last_two(stride, rank), _last_two(dilation, rank)

    def apply(data):
        pads = _explicit_pads(mode, pad, data.shape[2:], kernel, strides, dilations)
        return _conv._conv(data, w, stride=strides, pad=pads, dilation=dilations, group=group)

    return _channels_first(apply, x, data_format)


def _explicit_pads(
    mode: str, pad: Any, size: Sequence, kernel: Sequence, stride: Sequence, dilation: Sequence
) -> tuple:
    """All begins, then all ends. `pad` holds one number, one a dimension, or begin and end of each dimension."""
    if mode == "same":
        return _conv.same_pads(size, kernel, stride, dilation)
    rank = len(kernel)
    if mode != "pad":
        return (0,) * (2 * rank)
    pads = _ints(pad)
    if len(pads) <= rank:
        return _last_two(pads, rank) * 2
    return pads[0::2] + pads[1::2]


@operator
def Conv2D(x, w, *, stride=1, dilation=1, pad=0, pad_mode="valid", group=1, data_format="NCHW"):
    if _is_channels_last(data_format):
        w = ops.transpose(w, (0, 3, 1, 2))
    return _convolution(x, w, 2, stride, pad, dilation, group, pad_mode, data_format)


@operator
def DepthwiseConv2dNative(x, w, *, stride=1, dilation=1, pad=0, pad_mode="valid", data_format="NCHW"):
    w = ops.reshape(ops.swapaxes(w, 0, 1), (-1, 1, *w.shape[2:]))
    return _convolution(x, w, 2, stride, pad, dilation, x.shape[1], pad_mode, data_format)


@operator
def Conv3D(x, w, *, strides=1, dilations=1, pad=0, pad_mode="valid", group=1, data_format="NCDHW"):
    return _convolution(x, w, 3, strides, pad, dilations, group, pad_mode, data_format)


def _convolution_with_bias(name: str, function: str, rank: int, padding_mode: bool) -> None:
    def convolution(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        mode, pads = (_pad_mode(padding), 0) if padding_mode else ("pad", _last_two(padding, rank))
        arguments = (_last_two(stride, rank), mode, pads, _last_two(dilation, rank), groups)
        return getattr(ops, function)(x, weight, bias, *arguments)

    operator(convolution, name)


for _rank in (1, 2, 3):
    _convolution_with_bias(f"Conv{_rank}DExt", f"conv{_rank}d", _rank, False)
    _convolution_with_bias(f"Conv{_rank}DPadding", f"conv{_rank}d", _rank, True)


@operator
def Conv2DTranspose(dy, w, input_sizes=None, *, stride=1, dilation=1, pad_list=0, pad_mode="valid", group=1):
    """The gradient of a convolution in its input: what `nn.Conv2dTranspose` computes."""
    strides, dilations, kernel = _last_two(stride), _last_two(dilation), w.shape[2:]
    mode = _pad_mode(pad_mode)
    spans = [(n - 1) * s + (k - 1) * d + 1 for n, s, k, d in zip(dy.shape[2:], strides, kernel, dilations)]
    if input_sizes is not None:
        size = _ints(input_sizes)[-2:]
    elif mode == "same":
        size = tuple(n * s for n, s in zip(dy.shape[2:], strides))
    else:
        pads = _explicit_pads(mode, pad_list, (), kernel, strides, dilations)
        size = tuple(span - b - e for span, b, e in zip(spans, pads[:2], pads[2:]))
    pads = _explicit_pads(mode, pad_list, size, kernel, strides, dilations)
    return _conv._conv_input_grad(dy, w, size=size, stride=strides, pad=pads, dilation=dilations, group=group)


operator(Conv2DTranspose, "Conv2DBackpropInput")


@operator
def ConvTranspose2D(x, w, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    two = _last_two
    return ops.conv_transpose2d(
        x, w, bias, two(stride), two(padding), two(output_padding), groups, two(dilation)
    )


# ---------------------------------------------------------------------------------------------------- pooling
def _pool(function: Callable, rank: int, x, kernel_size, strides, pad_mode, data_format, **options):
    kernel, steps, mode = _last_two(kernel_size, rank), _last_two(strides, rank), _pad_mode(pad_mode)

    def apply(data):
        pads = _explicit_pads(mode, 0, data.shape[2:], kernel, steps, (1,) * rank)
        return function(data, kernel=kernel, stride=steps, pad=pads, **options)

    return _channels_first(apply, x, data_format)


@operator
def MaxPool(x, *, kernel_size=1, strides=1, pad_mode="valid", data_format="NCHW"):
    return _pool(_pooling._max_pool, 2, x, kernel_size, strides, pad_mode, data_format)


@operator
def AvgPool(x, *, kernel_size=1, strides=1, pad_mode="valid", data_format="NCHW"):
    return _pool(
        _pooling._avg_pool, 2, x, kernel_size, strides, pad_mode, data_format, count_include_pad=False
    )


@operator
def MaxPool3D(x, *, kernel_size=1, strides=1, pad_mode="valid", data_format="NCDHW"):
    return _pool(_pooling._max_pool, 3, x, kernel_size, strides, pad_mode, data_format)


@operator
def AvgPool3D(x, *, kernel_size=1, strides=1, pad_mode="valid", data_format="NCDHW"):
    return _pool(
        _pooling._avg_pool, 3, x, kernel_size, strides, pad_mode, data_format, count_include_pad=False
    )


@operator
def AvgPool2D(
    x, kernel_size, stride, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
):
    size = _last_two(kernel_size), _last_two(stride), _last_two(padding)
    return ops.avg_pool2d(x, *size, ceil_mode, count_include_pad, divisor_override or 0)


@operator
def AdaptiveAvgPool2D(x, *, output_size):
    return ops.adaptive_avg_pool2d(x, output_size)


operator(lambda x, output_size: ops.adaptive_avg_pool2d(x, output_size), "AdaptiveAvgPool2DExt")
operator(lambda x, output_size: ops.adaptive_avg_pool1d(x, _axis(output_size)), "AdaptiveAvgPool1D")
operator(lambda x, *, output_size: ops.adaptive_avg_pool3d(x, output_size), "AdaptiveAvgPool3D")


@operator
def AdaptiveMaxPool2D(x, *, output_size):
    return ops.adaptive_max_pool2d(x, output_size, True)


# ----------------------------------------------------------------------------------------------------
# normalization
@operator
def BatchNorm(
    x, scale, bias, mean, variance, *, is_training=False, epsilon=1e-5, momentum=0.1, data_format="NCHW"
):
    layout = dict(epsilon=epsilon, data_format="NHWC" if _is_channels_last(data_format) else "NCHW")
    if not is_training:
        return _norm._batch_norm_infer(x, scale, bias, mean, variance, **layout), scale, bias, mean, variance
    y, batch_mean, inv_std = _norm._batch_norm_train(
        mean, variance, x, scale, bias, momentum=momentum, **layout
    )
    return y, batch_mean, inv_std, batch_mean, inv_std


@operator
def BatchNormExt(x, weight=None, bias=None, mean=None, variance=None, training=False, momentum=0.1, eps=1e-5):
    y = ops.batch_norm(x, mean, variance, weight, bias, training, momentum, eps)
    return y, mean, variance


@operator
def LayerNorm(x, gamma, beta, *, begin_norm_axis=1, begin_params_axis=1, epsilon=1e-7):
    axes = dict(begin_norm_axis=begin_norm_axis, begin_params_axis=begin_params_axis)
    return _norm._layer_norm(x, gamma, beta, **axes, epsilon=epsilon)


@operator
def LayerNormExt(x, normalized_shape, weight=None, bias=None, eps=1e-5):
    return (ops.layer_norm(x, _ints(normalized_shape), weight, bias, eps),)


@operator
def GroupNorm(x, num_groups, weight=None, bias=None, eps=1e-5):
    return (ops.group_norm(x, num_groups, weight, bias, eps),)


@operator
def RmsNorm(x, gamma, *, epsilon=1e-6):
    return ops.rms_norm(x, gamma, epsilon)


# ---------------------------------------------------------------------------------------------------- shapes
@operator
def Reshape(x, shape):
    return ops.reshape(x, _ints(shape))


@operator
def Flatten(x):
    return ops.flatten(x)


@operator
def FlattenExt(x, start_dim=0, end_dim=-1):
    return ops.flatten(x, start_dim=start_dim, end_dim=end_dim)


@operator
def Transpose(x, dims):
    return ops.transpose(x, _ints(dims))


@operator
def TExt(x):
    return ops.swapaxes(x, 0, 1) if x.ndim > 1 else x


@operator
def ExpandDims(x, axis):
    return ops.expand_dims(x, _axis(axis))


@operator
def Squeeze(x, *, axis=()):
    return ops.squeeze(x, _axes(axis))


@operator
def BroadcastTo(x, shape):
    return ops.broadcast_to(x, _ints(shape))


@operator
def Tile(x, dims):
    return ops.tile(x, _ints(dims))


@operator
def Concat(items, *, axis=0):
    return ops.concat(items, axis)


operator(Concat, "SequenceConcat")


@operator
def Stack(items, *, axis=0):
    return ops.stack(items, axis)


operator(lambda items, *, dim=0: ops.stack(items, dim), "StackExt")


@operator
def Unstack(x, *, axis=0):
    return ops.unstack(x, axis)


operator(Unstack, "Unpack")
operator(Stack, "Pack")


@operator
def Split(x, *, axis=0, output_num=1):
    axis = axis % x.ndim
    return ops.split(x, x.shape[axis] // output_num, axis)


@operator
def SplitTensor(x, split_size, dim=0):
    return ops.split(x, split_size, dim)


@operator
def SplitWithSize(x, split_size, dim=0):
    return ops.split(x, list(split_size), dim)


@operator
def SplitV(x, *, size_splits, split_dim, num_split=None):
    return ops.split(x, list(size_splits), split_dim)


@operator
def Chunk(x, chunks, dim=0):
    return ops.chunk(x, chunks, dim)


@operator
def ReverseV2(x, *, axis):
    return ops.flip(x, _ints(axis))


@operator
def Roll(x, *, shifts, dims=None):
    return ops.roll(x, shifts, dims)


@operator
def RepeatInterleaveInt(x, repeats, dim=None, output_size=None):
    return ops.repeat_interleave(x, repeats, dim)


operator(RepeatInterleaveInt, "RepeatInterleaveTensor")


@operator
def Meshgrid(items, *, indexing="xy"):
    return ops.meshgrid(*items, indexing=_text(indexing, ("ij", "xy")))


@operator
def Pad(x, *, paddings):
    return ops.pad(x, [n for pair in reversed(paddings) for n in pair])


@operator
def PadV3(x, paddings, value=None, *, mode="constant", paddings_contiguous=True):
    pads = _ints(paddings)
    if not paddings_contiguous:
        pads = tuple(n for pair in zip(pads[: len(pads) // 2], pads[len(pads) // 2 :]) for n in pair)
    return _padded(x, pads, _text(mode, ("constant", "reflect", "symmetric", "edge")), value)


def _padded(x: Tensor, pads: tuple[int, ...], mode: str, value: Any) -> Tensor:
    names = {"edge": "replicate", "wrap": "circular"}
    if mode == "constant":
        return ops.pad(x, pads, "constant", 0 if value is None else _number(value))
    return ops.pad(x, pads, names.get(mode, mode))


@operator
def MirrorPad(x, paddings, *, mode="REFLECT"):
    pairs = paddings.asnumpy().tolist() if isinstance(paddings, Tensor) else paddings
    return ops.pad(x, [n for pair in reversed(pairs) for n in pair], mode.lower())


@operator
def ConstantPadND(x, padding, value=0.0):
    return ops.pad(x, _ints(padding), "constant", value)


for _rank in (1, 2, 3):
    operator(lambda x, padding: ops.pad(x, _ints(padding), "reflect"), f"ReflectionPad{_rank}D")
    operator(lambda x, padding: ops.pad(x, _ints(padding), "replicate"), f"ReplicationPad{_rank}D")


@operator
def DepthToSpace(x, *, block_size):
    n, c, h, w = x.shape
    y = ops.reshape(x, (n, block_size, block_size, c // block_size**2, h, w))
    return ops.reshape(
        ops.transpose(y, (0, 3, 4, 1, 5, 2)), (n, c // block_size**2, h * block_size, w * block_size)
    )


@operator
def SpaceToDepth(x, *, block_size):
    n, c, h, w = x.shape
    y = ops.reshape(x, (n, c, h // block_size, block_size, w // block_size, block_size))
    return ops.reshape(
        ops.transpose(y, (0, 3, 5, 1, 2, 4)), (n, c * block_size**2, h // block_size, w // block_size)
    )


# ----------------------------------------------------------------------------------------------------
# indexing
@operator
def StridedSlice(
    x, begin, end, strides, *, begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0, shrink_axis_mask=0
):
    masks = (begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    return ops.strided_slice(x, _ints(begin), _ints(end), _ints(strides), *masks)


@operator
def Slice(x, begin, size):
    return ops.slice(x, _ints(begin), _ints(size))


@operator
def SliceExt(x, dim, start, end, step):
    key = [slice(None)] * x.ndim
    key[dim] = slice(start, end, step)
    return x[tuple(key)]


@operator
def Narrow(x, dim, start, length):
    return ops.narrow(x, dim, start, length)


@operator
def Gather(x, indices, axis, *, batch_dims=0):
    return ops.gather(x, indices, _axis(axis), batch_dims)


@operator
def EmbeddingLookup(x, indices, offset):
    return ops.gather(x, ops.sub(indices, offset), 0)


@operator
def Embedding(ids, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False):
    return ops.embedding(ids, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq)


@operator
def IndexSelect(x, dim, index):
    return ops.index_select(x, dim, index)


@operator
def Index(x, indices):
    return x[tuple(indices)]


@operator
def GatherD(x, dim, index):
    return ops.gather_d(x, _axis(dim), index)


operator(GatherD, "GatherDExt")


@operator
def OneHot(ids, depth, on_value=1, off_value=0, *, axis=-1):
    return ops.one_hot(ids, depth, on_value, off_value, axis)


operator(OneHot, "OneHotExt")


@operator
def ScatterNd(indices, updates, shape):
    return ops.scatter_nd(indices, updates, _ints(shape))


@operator
def TensorScatterUpdate(x, indices, updates):
    return ops.tensor_scatter_update(x, indices, updates)


for _name in ("Add", "Sub", "Mul", "Div", "Max", "Min"):
    _simple(**{f"TensorScatter{_name}": f"tensor_scatter_{_name.lower()}"})


@operator
def TensorScatterElements(x, indices, updates, *, axis=0, reduce=0):
    return ops.tensor_scatter_elements(
        x, indices, updates, axis, _text(reduce, ("none", "add", "mul", "update"))
    )


@operator
def NonZero(x):
    return ops.nonzero(x)


@operator
def NonZeroTuple(x):
    return ops.nonzero(x, as_tuple=True)


@operator
def TopK(x, k, *, sorted=True):
    return ops.topk(x, int(_number(k)), sorted=sorted)


@operator
def TopkExt(x, k, dim=-1, largest=True, sorted=True):
    return ops.topk(x, int(_number(k)), dim, largest, sorted)


@operator
def Sort(x, *, axis=-1, descending=False):
    return ops.sort(x, axis, descending)


@operator
def SortExt(x, dim=-1, descending=False, stable=False):
    return ops.sort(x, dim, descending)


@operator
def ArgSort(x, dim=-1, descending=False, stable=False):
    return ops.argsort(x, dim, descending)


@operator
def Unique(x):
    return ops.unique(x)


# ----------------------------------------------------------------------------------------------------
# creation
@operator
def Zeros(size, dtype=None):
    return ops.zeros(_ints(size), _dtype(dtype) or dtypes.float32)


@operator
def Ones(size, dtype=None):
    return ops.ones(_ints(size), _dtype(dtype) or dtypes.float32)


@operator
def FillScalar(size, value, dtype=None):
    return ops.full(_ints(size), _number(value), dtype=_dtype(dtype))


operator(FillScalar, "FillTensor")


@operator
def Fill(dtype, size, value):
    return ops.full(_ints(size), _number(value), dtype=_dtype(dtype))


@operator
def FillV2(size, value):
    return ops.broadcast_to(value, _ints(size))


@operator
def FullLike(x, value, dtype=None):
    return ops.full_like(x, value, dtype=_dtype(dtype))


@operator
def ZerosLikeExt(x, dtype=None):
    return ops.zeros_like(x, dtype=_dtype(dtype))


@operator
def OnesLikeExt(x, dtype=None):
    return ops.ones_like(x, dtype=_dtype(dtype))


@operator
def Eye(n, m, dtype):
    return ops.eye(n, m, _dtype(dtype))


@operator
def Range(start, end, step, *, maxlen=1000000):
    return ops.arange(_number(start), _number(end), _number(step))


@operator
def Arange(start, end, step, dtype=None):
    return ops.arange(_number(start), _number(end), _number(step), dtype=_dtype(dtype))


@operator
def LinSpace(start, stop, num):
    return ops.linspace(_number(start), _number(stop), num)


operator(LinSpace, "LinSpaceExt")


# ---------------------------------------------------------------------------------------------------- images
@operator
def ResizeBilinearV2(x, size, *, align_corners=False, half_pixel_centers=False):
    return ops.interpolate(x, _ints(size), None, "bilinear", align_corners)


@operator
def ResizeNearestNeighbor(x, *, size, align_corners=False, half_pixel_centers=False):
    return ops.interpolate(x, _ints(size), None, "nearest")


operator(ResizeNearestNeighbor, "ResizeNearestNeighborV2")
operator(ResizeNearestNeighbor, "UpsampleNearest2D")


# ----------------------------------------------------------------------------------------------------
# recurrent
@operator
def LSTM(
    x, h0, c0, weights, *, input_size, hidden_size, num_layers=1, has_bias=True, bidirectional=False, dropout=0.0,
    proj_size=0
):  # fmt: skip
    """One layer, one direction: x [T, B, I], states [1, B, H], weights [n, 1, 1] packed as W_ih, W_hh, b_ih +
    b_hh.
    """
    if num_layers != 1 or bidirectional or proj_size:
        raise ValueError("LSTM with several layers, two directions or a projection is not supported")
    flat = ops.reshape(weights, (-1,))
    rows = 4 * hidden_size
    w_ih = ops.reshape(ops.narrow(flat, 0, 0, rows * input_size), (rows, input_size))
    w_hh = ops.reshape(ops.narrow(flat, 0, rows * input_size, rows * hidden_size), (rows, hidden_size))
    bias = ops.narrow(flat, 0, rows * (input_size + hidden_size), rows) if has_bias else None
    y, h, c, *_ = _rnn._lstm_layer(x, ops.squeeze(h0, 0), ops.squeeze(c0, 0), w_ih, w_hh, bias)
    scratch = ops.zeros((1, 1), x.dtype)  # two outputs that only MindSpore's gradient uses
    return y, ops.expand_dims(h, 0), ops.expand_dims(c, 0), scratch, scratch


# ---------------------------------------------------------------------------------------------------- losses
@operator
def MSELossExt(x, target, reduction=1):
    return ops.mse_loss(x, target, _text(reduction, _REDUCTIONS))


@operator
def L1LossExt(x, target, reduction=1):
    return ops.l1_loss(x, target, _text(reduction, _REDUCTIONS))


@operator
def SmoothL1Loss(x, target, *, beta=1.0, reduction=2):
    return ops.smooth_l1_loss(x, target, beta, _text(reduction, _REDUCTIONS))


@operator
def BinaryCrossEntropy(x, target, weight=None, *, reduction=1):
    return ops.binary_cross_entropy(x, target, weight, _text(reduction, _REDUCTIONS))


@operator
def BCEWithLogitsLoss(x, target, weight=None, pos_weight=None, *, reduction=1):
    return ops.binary_cross_entropy_with_logits(x, target, weight, pos_weight, _text(reduction, _REDUCTIONS))


@operator
def SoftmaxCrossEntropyWithLogits(logits, labels):
    loss = ops.neg(ops.sum(labels * ops.log_softmax(logits, -1), -1))
    return loss, ops.softmax(logits, -1) - labels


@operator
def SparseSoftmaxCrossEntropyWithLogits(logits, labels, *, is_grad=False):
    if is_grad:
        depth = logits.shape[-1]
        return (ops.softmax(logits, -1) - ops.cast(ops.one_hot(labels, depth), logits.dtype)) / labels.size
    return ops.cross_entropy(logits, labels)


@operator
def NLLLoss(log_probabilities, labels, weight, *, reduction=1, ignore_index=-100):
    loss = ops.nll_loss(log_probabilities, labels, weight, ignore_index, _text(reduction, _REDUCTIONS))
    return loss, ops.sum(ops.gather(weight, labels, 0))


# ---------------------------------------------------------------------------------------------------- effects
def _target(variable: Any, operator_name: str) -> Parameter:
    if not isinstance(variable, Tensor):
        raise TypeError(f"{operator_name} needs a parameter, but got {type(variable).__name__}")
    return variable


@writes
def Assign(variable, value):
    return _target(variable, "Assign").set_data(value)


@writes
def AssignAdd(variable, value):
    return _target(variable, "AssignAdd").set_data(ops.add(variable.value(), value))


@writes
def AssignSub(variable, value):
    return _target(variable, "AssignSub").set_data(ops.sub(variable.value(), value))


@writes
def ApplyMomentum(
    variable, moment, rate, gradient, momentum, *, use_nesterov=False, use_locking=False, gradient_scale=1.0
):
    scaled = ops.mul(gradient, gradient_scale)
    moment.set_data(ops.add(ops.mul(moment.value(), momentum), scaled))
    step = ops.add(scaled, ops.mul(moment.value(), momentum)) if use_nesterov else moment.value()
    return variable.set_data(ops.sub(variable.value(), ops.mul(step, rate)))


@writes
def Print(*items):
    for item in items:
        print(item)
    return 0


def _summary(*items):
    """Summaries are for training; a loaded model only keeps their place."""
    return items[-1]


for _name in ("ScalarSummary", "ImageSummary", "TensorSummary", "HistogramSummary"):
    operator(_summary, _name)
