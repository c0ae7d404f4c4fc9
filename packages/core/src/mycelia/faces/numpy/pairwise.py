"""Functions of two arguments, element by element, in their common dtype."""

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
from mycelia.faces.numpy.elementwise import named, real_floating, refused, trigonometric, truth

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
        raise refused(name, x1)
    return x1, x2


def _bits_pair(name, x1, x2):
    x1, x2 = _pair(name, x1, x2)
    if not (x1.dtype.is_integer or x1.dtype.is_bool):
        raise refused(name, x1)
    return x1, x2


def _float_pair(name, x1, x2):
    x1, x2 = as_tensor(name, x1, "x1"), as_tensor(name, x2, "x2")
    if not (x1.dtype.is_floating or x2.dtype.is_floating):
        x1, x2 = as_float(x1), as_float(x2)
    return _pair(name, x1, x2)


def _trigonometric_pair(name, x1, x2):
    return _pair(name, *(trigonometric(name, x) for x in (x1, x2)))


def _single_pair(name, x1, x2):
    return tuple(to_dtype(only_tensor(name, x), dtypes.float32) for x in (x1, x2))


def _floating_pair(name, x1, x2):
    """As `_pair`; both have to be floating."""
    x1, x2 = (as_tensor(name, x) for x in (x1, x2))
    for x in (x1, x2):
        real_floating(name, x)
    return _pair(name, x1, x2)


def _floating_tensors(name, x1, x2):
    x1, x2 = _tensors(name, x1, x2)
    return real_floating(name, x1), x2


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
        return op(truth(x1), truth(x2))

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

    return named(function, name, op)


globals().update(
    faces(
        {f"{n}(x1, x2, dtype=None)": _binary(n, op, prepare) for n, (op, prepare) in _BINARY.items()},
        __name__,
    )
)


def copysign(x1, x2, dtype=None):
    """The size of `x1` with the sign of `x2`.

    Shapes: broadcast.  dtypes: integer or floating; the result has that of `x1`.
    Errors: TypeError for bools and complex numbers.
    """
    x1, x2 = (as_tensor("copysign", x) for x in (x1, x2))
    if not (x1.dtype.is_integer or x1.dtype.is_floating) or x2.dtype.is_complex:
        raise refused("copysign", x1)
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
