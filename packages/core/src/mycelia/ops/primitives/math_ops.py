"""Elementwise arithmetic, comparison, logic and bits."""

import functools

from mycelia import ops
from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.control_flow.guards import check_numerics
from mycelia.engine.ops.elementwise.complex_numbers import _complex
from mycelia.engine.tensors.tensor import Tensor
from mycelia.ops.primitives.checks import boolean, integer, number, optional, real, text
from mycelia.ops.primitives.define import primitive, renamed, table

# ---- one input -------------------------------------------------------------------------------------------

table(ops, {"Angle": "angle", "Conj": "conj", "Imag": "imag", "Real": "real"})

table(ops, {"Log": "log"}, extra={"cust_aicpu": "Log", "base": -1.0, "scale": 1.0, "shift": 0.0})


@primitive
def Round(input, decimals=0):
    """Round to `decimals` digits, halves to even."""
    return ops.round(input, decimals=decimals)


@primitive
def NanToNum(
    input, *, nan: optional(number) = None, posinf: optional(number) = None, neginf: optional(number) = None
):
    """Replace NaN and the infinities by numbers; by default 0 and the dtype's limits."""
    return ops.nan_to_num(input, nan, posinf, neginf)


@primitive
def CheckNumerics(x):
    """`x`, after a check that all its elements are finite: RuntimeError otherwise."""
    return check_numerics(x)


@primitive
def Complex(real, imag):
    """Complex numbers of real and imaginary parts."""
    return _complex(real, imag)


@primitive
def ComplexAbs(x):
    """Absolute values of complex numbers, as real ones."""
    return ops.sqrt(ops.square(ops.real(x)) + ops.square(ops.imag(x)))


@primitive
def Rint(input_x):
    """Round to whole numbers, halves to even."""
    return ops.round(input_x)


@primitive
def Inv(x):
    """``1 / x``; of integers its whole part."""
    return _whole(ops.inv(x), x)


def _whole(quotient, *inputs):
    """The quotient; of integers cut to the integer type that they have together."""
    kinds = [i.dtype for i in inputs if isinstance(i, Tensor)]
    numbers = [i for i in inputs if not isinstance(i, Tensor)]
    if not all(k.is_integer for k in kinds) or any(n.__class__ is not int for n in numbers):
        return quotient
    return ops.cast(ops.trunc(quotient), functools.reduce(dtypes.promote, kinds) if kinds else dtypes.int64)


# ---- two inputs ------------------------------------------------------------------------------------------

table(ops, {
    "Heaviside": "heaviside", "Lerp": "lerp", "Mod": "truncate_mod", "Polar": "polar",
    "Addcdiv": "addcdiv", "Addcmul": "addcmul", "LerpScalar": "lerp",
})  # fmt: skip

table(ops, {"Fmax": "fmax", "Fmin": "fmin"}, extra={"ignore_nan": True})


@primitive
def RealDiv(x, y):
    """``x / y``; of integers its whole part."""
    return _whole(ops.tensor_div(x, y), x, y)


@primitive
def DivNoNan(x1, x2):
    """``x1 / x2``, and 0 where `x2` is 0."""
    zero = ops.equal(x2, 0)
    return ops.where(zero, 0, ops.tensor_div(x1, ops.where(zero, 1, x2)))


@primitive
def MulNoNan(x, y):
    """``x * y``, and 0 where `y` is 0, whatever `x` is."""
    zero = ops.equal(y, 0)
    return ops.mul(ops.where(zero, ops.zeros_like(x), x), y)


@primitive
def SquaredDifference(x, y):
    """``(x - y) ** 2``."""
    return ops.square(ops.sub(x, y))


@primitive
def CompareAndBitpack(x, threshold):
    """``x > threshold``, eight along the last axis packed into one uint8, the first as its highest bit."""
    bits = ops.cast(ops.greater(x, threshold), dtypes.int32).reshape((*x.shape[:-1], -1, 8))
    places = Tensor([128, 64, 32, 16, 8, 4, 2, 1], dtypes.int32)
    return ops.cast(ops.sum(bits * places, -1), dtypes.uint8)


@primitive
def ApproximateEqual(x, y, *, tolerance: real = 1e-5):
    """Whether ``abs(x - y) < tolerance``. Errors: ValueError if the shapes differ."""
    if x.shape != y.shape:
        raise errors.value_error(
            "ApproximateEqual", f"'x1' must have the same shape as 'x2', but got {x.shape} and {y.shape}"
        )
    return ops.less(ops.abs(ops.sub(x, y)), tolerance)


@primitive
def IsClose(input, other, *, rtol: number = 1e-5, atol: number = 1e-8, equal_nan: boolean = False):
    """Whether ``abs(input - other) <= atol + rtol * abs(other)``."""
    return ops.isclose(input, other, rtol, atol, equal_nan)


@primitive
def Cross(input, other, *, dim: integer = -65530):
    """Product of vectors of three along `dim`; by default the first axis of size 3."""
    return ops.cross(input, other, None if dim == -65530 else dim)


@primitive
def Ger(x1, x2):
    """Outer product of two vectors."""
    return ops.ger(x1, x2)


@primitive
def Logit(input, *, eps: real = -1.0):
    """``log(x / (1 - x))``, of inputs cut to [eps, 1 - eps] if `eps` is not negative."""
    return ops.logit(input, None if eps < 0 else eps)


@primitive
def Cdist(x1, x2, *, p: real = 2.0):
    """Distances of the rows of one matrix to those of the other."""
    return ops.cdist(x1, x2, p)


@primitive
def Pdist(x, *, p: real = 2.0):
    """Distances of all pairs of rows."""
    return ops.pdist(x, p)


@primitive
def Einsum(x, *, equation: text):
    """Sums of products by Einstein's convention."""
    return ops.einsum(equation, *x)


# ---- sums ------------------------------------------------------------------------------------------------


@primitive
def AddN(x):
    """Sum of tensors of one shape."""
    return ops.addn(x)


@primitive
def AccumulateNV2(x):
    """Sum of tensors of one shape."""
    return ops.accumulate_n(x)


@primitive
def EqualCount(x, y):
    """How many elements are equal, as one element in the dtype of `x`."""
    return ops.sum(ops.cast(ops.equal(x, y), x.dtype), dtype=x.dtype).reshape((1,))


@primitive
def SquareSumAll(x, y):
    """Sums of squares of both inputs.

    Errors: TypeError unless both are float16 or both float32, ValueError if their shapes differ.
    """
    if x.dtype is not y.dtype or x.dtype not in (dtypes.float16, dtypes.float32):
        raise errors.type_error(
            "SquareSumAll", f"both inputs must be float16 or both float32, but got {x.dtype} and {y.dtype}"
        )
    if x.shape != y.shape:
        raise errors.value_error(
            "SquareSumAll", f"both inputs must have one shape, but got {x.shape} and {y.shape}"
        )
    return ops.square(x).sum(), ops.square(y).sum()


renamed({"TensorAdd": "Add", "AddV2": "Add"})
