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
    result_dtype,
    to_dtype,
)

# ------------------------------------------------------------------ how one argument is brought to its op


def refused(name: str, x):
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
        raise refused(name, x)
    return x


def trigonometric(name, x):
    return _half_or_single(_real_tensor(name, x))


def _real(name, x):
    x = as_tensor(name, x)
    if x.dtype.is_complex:
        raise refused(name, x)
    return x


def _integers(name, x):
    x = as_tensor(name, x)
    if not x.dtype.is_integer:
        raise refused(name, x)
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
        raise refused(name, x)
    return x


def real_floating(name, x):
    x = _floating(name, x)
    if x.dtype.is_complex:
        raise refused(name, x)
    return x


def _floating_attribute(name, x):
    return _floating(name, _attribute(name, x))


def _no_bool(name, x):
    x = as_tensor(name, x)
    if x.dtype.is_bool:
        raise refused(name, x)
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


def truth(x):
    return x if x.dtype.is_bool else ops.not_equal(x, 0)


def _logical_not(x):
    return ops.logical_not(truth(x))


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
    "arccos(input, dtype=None)": (ops.acos, trigonometric),
    "arccosh(x, dtype=None)": (ops.acosh, trigonometric),
    "arcsin(x, dtype=None)": (ops.asin, trigonometric),
    "arcsinh(x, dtype=None)": (ops.asinh, trigonometric),
    "arctan(x, dtype=None)": (ops.atan, trigonometric),
    "arctanh(x, dtype=None)": (ops.atanh, trigonometric),
    "cos(x, dtype=None)": (ops.cos, trigonometric),
    "cosh(x, dtype=None)": (ops.cosh, trigonometric),
    "sin(x, dtype=None)": (ops.sin, trigonometric),
    "sinh(x, dtype=None)": (ops.sinh, trigonometric),
    "tan(x, dtype=None)": (ops.tan, trigonometric),
    "tanh(x, dtype=None)": (ops.tanh, trigonometric),
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
    "floor(x, dtype=None)": (ops.floor, real_floating),
    "rint(x, dtype=None)": (ops.round, real_floating),
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

    return named(function, name, op)


def named(function, name: str, op):
    definition = getattr(op, "definition", None)
    function.__name__ = name
    function.__doc__ = (definition.doc if definition else op.__doc__) or f"`{name}` of each element."
    return function


globals().update(faces({text: _unary(text, op, prepare) for text, (op, prepare) in _UNARY.items()}, __name__))


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
