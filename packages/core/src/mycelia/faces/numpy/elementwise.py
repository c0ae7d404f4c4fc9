"""Functions of each element; most can be given the dtype of their result.

A table says for each function what takes the elements and how the arguments are brought to it.
"""

from __future__ import annotations

from mycelia import ops
from mycelia.engine.base import dtypes, errors
from mycelia.engine.tensors.tensor import is_tensor
from mycelia.faces.mint.signature_adapters import faces
from mycelia.faces.numpy._arguments import (
    as_float,
    as_tensor,
    only_tensor,
    promoted,
    result_dtype,
    same_dtype,
    to_dtype,
)

# ------------------------------------------------------------------ how one argument is brought to its op


def _refused(name: str, x):
    return errors.type_error(name, f"elements of dtype {x.dtype} are not taken")


def _half_or_single(x):
    """Integers of 8 bits and bools as float16, wider ones as float32."""
    if x.dtype.is_floating:
        return x
    return to_dtype(x, dtypes.float16 if x.dtype.itemsize == 1 else dtypes.float32)


def _tensor(name, x):
    return only_tensor(name, x)


def _attribute(name, x):
    if not is_tensor(x):
        raise errors.error(errors.MyceliaAttributeError, name, f"{type(x).__name__} is no Tensor")
    return x


def _real_tensor(name, x):
    if only_tensor(name, x).dtype.is_complex:
        raise _refused(name, x)
    return x


def _trigonometric(name, x):
    return _half_or_single(_real_tensor(name, x))


def _real(name, x):
    x = as_tensor(name, x)
    if x.dtype.is_complex:
        raise _refused(name, x)
    return x


def _integers(name, x):
    x = as_tensor(name, x)
    if not x.dtype.is_integer:
        raise _refused(name, x)
    return x


def _single(name, x):
    """Everything as float32: how the real function computes them."""
    return to_dtype(as_tensor(name, x), dtypes.float32)


def _single_but_half(name, x):
    return x if is_tensor(x) and x.dtype is dtypes.float16 else _single(name, x)


def _single_but_half_tensor(name, x):
    return _single_but_half(name, only_tensor(name, x))


def _single_or_double(name, x):
    x = _real(name, x)
    return x if x.dtype is dtypes.float64 else to_dtype(x, dtypes.float32)


def _floating(name, x):
    x = as_tensor(name, x)
    if not (x.dtype.is_floating or x.dtype.is_complex):
        raise _refused(name, x)
    return x


def _real_floating(name, x):
    x = _floating(name, x)
    if x.dtype.is_complex:
        raise _refused(name, x)
    return x


def _floating_attribute(name, x):
    return _floating(name, _attribute(name, x))


def _no_bool(name, x):
    x = as_tensor(name, x)
    if x.dtype.is_bool:
        raise _refused(name, x)
    return x


def _no_bool_tensor(name, x):
    return _no_bool(name, only_tensor(name, x))


def _as_float(name, x):
    return as_float(as_tensor(name, x))


def _as_float_tensor(name, x):
    return as_float(only_tensor(name, x))


# ------------------------------------------------------------------------------------- ops that are missing


def _exp2(x):
    """2 to the x; integers are rounded towards zero."""
    if x.dtype.is_bool:
        x = to_dtype(x, dtypes.int64)
    return to_dtype(ops.exp2(x), x.dtype) if x.dtype.is_integer else ops.exp2(x)


def _reciprocal(x):
    """1 / x; integers are rounded towards zero."""
    if x.dtype.is_bool:
        x = to_dtype(x, dtypes.int64)
    return to_dtype(ops.reciprocal(as_float(x)), x.dtype)


def _cbrt(x):
    return ops.sign(x) * ops.pow(ops.abs(x), 1 / 3)


def _sign(x):
    return ops.sign(x)


def _positive(x):
    return ops.reshape(x, x.shape)


def _signbit(x):
    return ops.less(x, 0) if not x.dtype.is_bool else ops.logical_and(x, ops.logical_not(x))


def _truth(x):
    return x if x.dtype.is_bool else ops.not_equal(x, 0)


def _logical_not(x):
    return ops.logical_not(_truth(x))


def _finite(op, otherwise: bool):
    """`op` of floats; integers are always finite."""

    def finite(x):
        return op(x) if x.dtype.is_floating else op(to_dtype(x, dtypes.float32))

    finite.__doc__ = f"{op.definition.doc} Integers give {otherwise}."
    return finite


_UNARY = {
    "abs(x, dtype=None)": (ops.abs, _attribute),
    "absolute(x, dtype=None)": (ops.abs, _attribute),
    "fabs(x, dtype=None)": (ops.abs, _attribute),
    "arccos(input, dtype=None)": (ops.acos, _trigonometric),
    "arccosh(x, dtype=None)": (ops.acosh, _trigonometric),
    "arcsin(x, dtype=None)": (ops.asin, _trigonometric),
    "arcsinh(x, dtype=None)": (ops.asinh, _trigonometric),
    "arctan(x, dtype=None)": (ops.atan, _trigonometric),
    "arctanh(x, dtype=None)": (ops.atanh, _trigonometric),
    "cos(x, dtype=None)": (ops.cos, _trigonometric),
    "cosh(x, dtype=None)": (ops.cosh, _trigonometric),
    "sin(x, dtype=None)": (ops.sin, _trigonometric),
    "sinh(x, dtype=None)": (ops.sinh, _trigonometric),
    "tan(x, dtype=None)": (ops.tan, _trigonometric),
    "tanh(x, dtype=None)": (ops.tanh, _trigonometric),
    "bitwise_not(x, dtype=None)": (ops.bitwise_not, _integers),
    "invert(x, dtype=None)": (ops.bitwise_not, _integers),
    "cbrt(x, dtype=None)": (_cbrt, _single_or_double),
    "ceil(x, dtype=None)": (ops.ceil, _single),
    "trunc(x, dtype=None)": (ops.trunc, _single_but_half),
    "fix(x)": (ops.trunc, _single_but_half_tensor),
    "deg2rad(x, dtype=None)": (ops.deg2rad, _as_float_tensor),
    "radians(x, dtype=None)": (ops.deg2rad, _as_float_tensor),
    "rad2deg(x, dtype=None)": (ops.rad2deg, _as_float_tensor),
    "exp(x, dtype=None)": (ops.exp, _floating),
    "expm1(x, dtype=None)": (ops.expm1, _floating),
    "log(x, dtype=None)": (ops.log, _floating),
    "log1p(x, dtype=None)": (ops.log1p, _floating),
    "log10(x, dtype=None)": (ops.log10, _floating_attribute),
    "log2(x, dtype=None)": (ops.log2, _floating_attribute),
    "exp2(x, dtype=None)": (_exp2, as_tensor),
    "reciprocal(x, dtype=None)": (_reciprocal, as_tensor),
    "floor(x, dtype=None)": (ops.floor, _real_floating),
    "rint(x, dtype=None)": (ops.round, _real_floating),
    "isfinite(x, dtype=None)": (_finite(ops.isfinite, True), _real),
    "isinf(x, dtype=None)": (_finite(ops.isinf, False), _real),
    "isnan(x, dtype=None)": (_finite(ops.isnan, False), _real),
    "isneginf(x)": (_finite(ops.isneginf, False), _real_tensor),
    "isposinf(x)": (_finite(ops.isposinf, False), _real_tensor),
    "logical_not(a, dtype=None)": (_logical_not, as_tensor),
    "negative(a, dtype=None)": (ops.neg, _no_bool),
    "square(x, dtype=None)": (ops.square, _no_bool),
    "positive(a, dtype=None)": (_positive, _no_bool_tensor),
    "sign(x, dtype=None)": (_sign, lambda name, x: as_float(_no_bool(name, x))),
    "sqrt(x, dtype=None)": (ops.sqrt, _as_float),
}


def _unary(text: str, op, prepare):
    name = text.split("(")[0]

    def function(x, dtype=None):
        result = op(prepare(name, x))
        return result if dtype is None else to_dtype(result, result_dtype(name, dtype))

    return _named(function, name, op)


def _named(function, name: str, op):
    definition = getattr(op, "definition", None)
    function.__name__ = name
    function.__doc__ = (definition.doc if definition else op.__doc__) or f"`{name}` of each element."
    return function


def signbit(x, dtype=None):
    """Whether each element is less than zero.

    Shapes: any -> same.  dtypes: real -> bool.  Errors: TypeError for complex numbers and another `dtype`.
    """
    if dtype not in (None, dtypes.bool_):
        raise errors.type_error("signbit", f"dtype must be bool, but got {dtype!r}")
    return _signbit(_real("signbit", x))


def around(a, decimals=0):
    """`a` rounded to `decimals` places, halves to even.

    Shapes: any -> same.  dtypes: int32, int64 and floating -> same; Python's ints give int64.
    Errors: RuntimeError for other dtypes.
    """
    x = as_tensor("around", a)
    if x is not a and x.dtype is dtypes.int32:
        x = to_dtype(x, dtypes.int64)
    if not (x.dtype.is_floating or x.dtype in (dtypes.int32, dtypes.int64)):
        raise errors.runtime_error("around", f"elements of dtype {x.dtype} are not taken")
    if decimals == 0:
        return ops.round(x)
    return ops.round(x, decimals)


round = around


# ------------------------------------------------------------------ how two arguments are brought to their op


def _pair(name, x1, x2):
    """Both in their common dtype, which Python's numbers take part in."""
    return same_dtype([as_tensor(name, x1, "x1"), as_tensor(name, x2, "x2")], name)


def _tensors(name, x1, x2):
    return _pair(name, only_tensor(name, x1, "x1"), only_tensor(name, x2, "x2"))


def _sum_pair(name, x1, x2):
    """As `_pair`; bools cannot be added."""
    for x in (x1, x2):
        if isinstance(x, bool) or is_tensor(x) and x is x2 and x.dtype.is_bool:
            raise errors.type_error(name, "bools are not taken")
    return _pair(name, x1, x2)


def _number_pair(name, x1, x2):
    """As `_pair`; two bools are refused."""
    x1, x2 = _pair(name, x1, x2)
    if x1.dtype.is_bool:
        raise _refused(name, x1)
    return x1, x2


def _bits_pair(name, x1, x2):
    x1, x2 = _pair(name, x1, x2)
    if not (x1.dtype.is_integer or x1.dtype.is_bool):
        raise _refused(name, x1)
    return x1, x2


def _float_pair(name, x1, x2):
    x1, x2 = as_tensor(name, x1, "x1"), as_tensor(name, x2, "x2")
    if not (x1.dtype.is_floating or x2.dtype.is_floating):
        x1, x2 = as_float(x1), as_float(x2)
    return _pair(name, x1, x2)


def _trigonometric_pair(name, x1, x2):
    return _pair(name, *(_trigonometric(name, x) for x in (x1, x2)))


def _single_pair(name, x1, x2):
    return tuple(to_dtype(only_tensor(name, x), dtypes.float32) for x in (x1, x2))


def _floating_pair(name, x1, x2):
    """As `_pair`; both have to be floating."""
    x1, x2 = (as_tensor(name, x) for x in (x1, x2))
    for x in (x1, x2):
        _real_floating(name, x)
    return _pair(name, x1, x2)


def _floating_tensors(name, x1, x2):
    x1, x2 = _tensors(name, x1, x2)
    return _real_floating(name, x1), x2


def _hypot_pair(name, x1, x2):
    x1, x2 = (as_tensor(name, x) for x in (x1, x2))
    if x1.dtype.is_bool or x2.dtype.is_bool:
        raise errors.type_error(name, "bools are not taken")
    return _float_pair(name, x1, x2)


def _weak_pair(name, x1, x2):
    """A Python number takes the dtype of the Tensor that it meets."""
    if is_tensor(x1) and isinstance(x2, (bool, int, float)):
        return x1, to_dtype(as_tensor(name, x2), x1.dtype)
    if is_tensor(x2) and isinstance(x1, (bool, int, float)):
        return to_dtype(as_tensor(name, x1), x2.dtype), x2
    return _pair(name, x1, x2)


def _wide_pair(name, x1, x2):
    """As `_pair`; unsigned integers of different sizes meet in the wider."""
    x1, x2 = (as_tensor(name, x) for x in (x1, x2))
    if x1.dtype.kind == x2.dtype.kind == "u":
        wider = max(x1.dtype, x2.dtype, key=lambda d: d.itemsize)
        return to_dtype(x1, wider), to_dtype(x2, wider)
    return _pair(name, x1, x2)


# --------------------------------------------------------------------------------- functions of two arguments


def _of_integers(op):
    """`op` of bools as of numbers."""

    def of_numbers(x1, x2):
        if x1.dtype.is_bool:
            return to_dtype(op(to_dtype(x1, dtypes.int32), to_dtype(x2, dtypes.int32)), dtypes.bool_)
        return op(x1, x2)

    of_numbers.__doc__ = op.definition.doc if hasattr(op, "definition") else op.__doc__
    return of_numbers


def _remainder(x1, x2):
    """What is left of x1 after floor division by x2; it has the sign of x2."""
    return _by_zero(x2, ops.floor_mod(x1, x2))


def _fmod(x1, x2):
    """What is left of x1 after division by x2; it has the sign of x1."""
    return _by_zero(x2, ops.sub(x1, ops.mul(_truncated(x1, x2), x2)))


def _by_zero(x2, rest):
    """`rest` with 0 where integers are divided by 0."""
    if x2.dtype.is_floating:
        return rest
    return ops.where(ops.equal(x2, 0), ops.zeros_like(rest), rest)


def _truncated(x1, x2):
    if x1.dtype.is_floating:
        return ops.trunc(ops.div(x1, x2))
    return ops.truncate_div(x1, x2)


def _floats(op):
    """`op` of integers in float32, as integers again."""

    def of_floats(x1, x2):
        result = op(as_float(x1), as_float(x2))
        return to_dtype(result, x1.dtype)

    of_floats.__doc__ = op.definition.doc if hasattr(op, "definition") else op.__doc__
    return of_floats


def _heaviside(x1, x2):
    """0 where x1 is negative, x2 where it is zero, 1 where it is positive."""
    one = ops.ones_like(x2)
    return ops.where(ops.less(x1, 0), ops.zeros_like(x2), ops.where(ops.equal(x1, 0), x2, one))


def _common_multiple(x1, x2):
    """The least common multiple."""
    x1, x2 = (ops.abs(x) for x in (x1, x2))
    divisor = _gcd(x1, x2)
    return ops.where(ops.equal(divisor, 0), divisor, _divided(x1, ops.maximum(divisor, 1)) * x2)


def _gcd(x1, x2):
    """The greatest common divisor."""
    wide = dtypes.int64 if x1.dtype is dtypes.int64 else dtypes.int32
    return to_dtype(ops.gcd(to_dtype(x1, wide), to_dtype(x2, wide)), x1.dtype)


def _divided(x1, x2):
    return ops.floor_div(x1, x2)


def _log_sum_2(x1, x2):
    """The logarithm to base 2 of the sum of two powers of 2."""
    high = ops.maximum(x1, x2)
    total = high + ops.log2(ops.exp2(x1 - high) + ops.exp2(x2 - high))
    return ops.where(ops.isinf(high), high, total)


def _logical(op):
    def logical(x1, x2):
        return op(_truth(x1), _truth(x2))

    logical.__doc__ = op.definition.doc
    return logical


_BINARY = {
    "add": (ops.add, _sum_pair),
    "subtract": (ops.sub, _number_pair),
    "multiply": (_of_integers(ops.mul), _tensors),
    "divide": (ops.div, _float_pair),
    "true_divide": (ops.div, _float_pair),
    "power": (ops.pow, _number_pair),
    "float_power": (ops.pow, _single_pair),
    "floor_divide": (_of_integers(ops.floor_div), _pair),
    "mod": (_of_integers(_remainder), _wide_pair),
    "remainder": (_of_integers(_remainder), _wide_pair),
    "fmod": (_of_integers(_fmod), _wide_pair),
    "maximum": (_of_integers(ops.maximum), _weak_pair),
    "minimum": (ops.minimum, _weak_pair),
    "arctan2": (ops.atan2, _trigonometric_pair),
    "hypot": (ops.hypot, _hypot_pair),
    "heaviside": (_of_integers(_heaviside), _pair),
    "gcd": (_gcd, _wide_pair),
    "lcm": (_of_integers(_common_multiple), _pair),
    "logaddexp": (ops.logaddexp, _floating_pair),
    "logaddexp2": (_log_sum_2, _floating_tensors),
    "bitwise_and": (ops.bitwise_and, _bits_pair),
    "bitwise_or": (ops.bitwise_or, _bits_pair),
    "bitwise_xor": (ops.bitwise_xor, _bits_pair),
    "equal": (ops.equal, _pair),
    "greater": (ops.greater, _pair),
    "greater_equal": (ops.greater_equal, _pair),
    "less": (ops.less, _pair),
    "less_equal": (ops.less_equal, _tensors),
    "not_equal": (ops.not_equal, _tensors),
    "logical_and": (_logical(ops.logical_and), _pair),
    "logical_or": (_logical(ops.logical_or), _pair),
    "logical_xor": (_logical(ops.logical_xor), _tensors),
}


def _binary(name: str, op, prepare):
    def function(x1, x2, dtype=None):
        result = op(*prepare(name, x1, x2))
        return result if dtype is None else to_dtype(result, result_dtype(name, dtype))

    return _named(function, name, op)


_FACES = {text: _unary(text, op, prepare) for text, (op, prepare) in _UNARY.items()}
_FACES |= {f"{n}(x1, x2, dtype=None)": _binary(n, op, prepare) for n, (op, prepare) in _BINARY.items()}
globals().update(faces(_FACES, __name__))


def copysign(x1, x2, dtype=None):
    """The size of `x1` with the sign of `x2`.

    Shapes: broadcast.  dtypes: integer or floating; the result has that of `x1`.
    Errors: TypeError for bools and complex numbers.
    """
    x1, x2 = (as_tensor("copysign", x) for x in (x1, x2))
    if not (x1.dtype.is_integer or x1.dtype.is_floating) or x2.dtype.is_complex:
        raise _refused("copysign", x1)
    promoted("copysign", x1.dtype, x2.dtype)
    size = ops.abs(x1)
    result = ops.where(ops.less(x2, 0), ops.neg(size), size)
    return to_dtype(result, result_dtype("copysign", dtype) or x1.dtype)


def divmod(x1, x2, dtype=None):
    """The floor of x1 / x2, and what is left.

    Shapes: broadcast.  dtypes: promoted.  Errors: TypeError for lists.
    """
    for x in (x1, x2):
        if isinstance(x, (list, tuple)):
            raise errors.type_error("divmod", "x1 and x2 must be Tensors or numbers")
    dtype = result_dtype("divmod", dtype)
    a, b = _pair("divmod", x1, x2)
    quotient, rest = _of_integers(ops.floor_div)(a, b), _of_integers(_remainder)(a, b)
    if dtype is None and not is_tensor(x2) and isinstance(x2, int) and not a.dtype.is_floating:
        wide = not is_tensor(x1) or x1.dtype.is_bool  # here Python's ints have 64 bits
        quotient = to_dtype(quotient, dtypes.int64 if wide and not a.dtype.is_bool else quotient.dtype)
    return to_dtype(quotient, dtype), to_dtype(rest, dtype)


def clip(x, xmin, xmax, dtype=None):
    """`x`, at least `xmin` and at most `xmax`; None is no bound.

    Shapes: broadcast.  dtypes: promoted; numbers take that of `x`.  Errors: ValueError without any bound.
    """
    if xmin is None and xmax is None:
        raise errors.value_error("clip", "one of xmin and xmax must be given")
    result = as_tensor("clip", x)
    for bound, op in ((xmin, ops.maximum), (xmax, ops.minimum)):
        if bound is not None:
            result = op(*_weak_pair("clip", result, bound))
    result_dtype("clip", dtype)  # named for the sake of NumPy; the result keeps its own
    return result
