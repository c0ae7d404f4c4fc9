"""mint functions that work element by element."""

from __future__ import annotations

from mycelia import errors, ops
from mycelia.mint._faces import faces
from mycelia.tensor import is_tensor

_FACES = {
    "arcsin(x)": ops.asin,
    "bitwise_not(input)": ops.bitwise_not,
    "frac(input)": ops.frac,
    "isnan(tensor)": ops.isnan,
    "sqrt(input)": ops.sqrt,
    "fix(input)": ops.trunc,
    "nan_to_num(input, nan=None, posinf=None, neginf=None)": ops.nan_to_num,
}
globals().update(faces(_FACES, __name__))


def _kind(value) -> int:
    """0 for bool, 1 for integers, 2 for floating numbers, 3 for complex ones; of a Tensor or a number."""
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        return (bool, int, float, complex).index(type(value)) if type(value) in _NUMBERS else 2
    return 3 if dtype.is_complex else 2 if dtype.is_floating else 0 if dtype.is_bool else 1


_NUMBERS = (bool, int, float, complex)


def _scaled(name: str, other, alpha, input):
    """``alpha * other``; a fraction cannot scale integers."""
    if alpha == 1 and not isinstance(alpha, bool):
        return other
    if _kind(alpha) > max(_kind(input), _kind(other)):
        raise errors.type_error(name, f"alpha is {alpha!r}, but input and other hold no such numbers")
    return ops.mul(other, alpha) if hasattr(other, "dtype") else other * alpha


def add(input, other, *, alpha=1):
    """``input + alpha * other``.

    Shapes: broadcast.  dtypes: promoted.  Errors: TypeError if `alpha` is a fraction and the others are not.
    """
    return ops.add(input, _scaled("add", other, alpha, input))


def sub(input, other, *, alpha=1):
    """``input - alpha * other``.

    Shapes: broadcast.  dtypes: promoted.  Errors: TypeError if `alpha` is a fraction and the others are not.
    """
    return ops.sub(input, _scaled("sub", other, alpha, input))


def addcdiv(input, tensor1, tensor2, *, value=1):
    """``input + value * tensor1 / tensor2``.

    Shapes: broadcast.  dtypes: floating.
    """
    return ops.addcdiv(input, tensor1, tensor2, value)


def clone(input):
    """`input` as a Tensor of its own; gradients flow through it.

    Shapes: any -> same.  dtypes: any.  Errors: TypeError if `input` is no Tensor.
    """
    if not is_tensor(input):
        raise errors.type_error("clone", f"input must be a Tensor, but got {type(input).__name__}")
    return ops.reshape(input, input.shape)  # shared memory is copied by whoever writes first


def npu_gelu(input, approximate="none"):
    """`nn.functional.gelu` under the name that the Ascend extension gives it.

    Shapes: any -> same.  dtypes: floating.
    """
    return ops.gelu(input, approximate)


def allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether all elements are close: ``|input - other| <= atol + rtol * |other|``; a Python bool."""
    return bool(ops.all(ops.isclose(input, other, rtol, atol, equal_nan)).asnumpy())


def equal(input, other):
    """Whether both tensors have one shape and equal elements; a Python bool.

    Errors: TypeError if one is no Tensor.
    """
    for name, x in (("input", input), ("other", other)):
        if not is_tensor(x):
            raise errors.type_error("equal", f"{name} must be a Tensor, but got {type(x).__name__}")
    return input.shape == other.shape and bool(ops.all(ops.equal(input, other)).asnumpy())
