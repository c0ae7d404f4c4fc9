"""mint functions that work element by element."""

from __future__ import annotations

from mycelia import ops
from mycelia.engine.base import errors
from mycelia.engine.ops.elementwise.cast import cast
from mycelia.engine.tensors.tensor import is_tensor
from mycelia.faces.mint.signature_adapters import faces

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


_NUMBERS = (bool, int, float, complex)


def _kind(value) -> int:
    """The place in `_NUMBERS` of what a Tensor or number holds."""
    if not is_tensor(value):
        return next((i for i, kind in enumerate(_NUMBERS) if isinstance(value, kind)), 2)
    dtype = value.dtype
    return 3 if dtype.is_complex else 2 if dtype.is_floating else 0 if dtype.is_bool else 1


def _scaled(name: str, input, other, alpha):
    """``alpha * other``; a fraction scales only if there is a fraction already, a bool only bools."""
    if not isinstance(alpha, bool) and alpha == 1:
        return other
    kind = max(_kind(input), _kind(other))
    if kind > 0 if isinstance(alpha, bool) else _kind(alpha) > max(kind, 1):
        raise errors.type_error(name, f"alpha is {alpha!r}, but input and other hold no such numbers")
    product = ops.mul(other, alpha) if is_tensor(other) else other * alpha
    return cast(product, other.dtype) if kind == 0 and is_tensor(other) else product


def add(input, other, *, alpha=1):
    """``input + alpha * other``.

    Shapes: broadcast.  dtypes: promoted.  Errors: TypeError if `alpha` is a fraction and the others are not.
    """
    return ops.add(input, _scaled("add", input, other, alpha))


def sub(input, other, *, alpha=1):
    """``input - alpha * other``.

    Shapes: broadcast.  dtypes: promoted.  Errors: TypeError if `alpha` is a fraction and the others are not.
    """
    return ops.sub(input, _scaled("sub", input, other, alpha))


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


def _answer(flag):
    """A Python bool; a Tensor while a graph is captured, which has no value yet."""
    return bool(flag.asnumpy()) if flag.traced is None else flag


def allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether all elements are close: ``|input - other| <= atol + rtol * |other|``; a Python bool."""
    return _answer(ops.all(ops.isclose(input, other, rtol, atol, equal_nan)))


def equal(input, other):
    """Whether both tensors have one shape and equal elements; a Python bool.

    Errors: TypeError if one is no Tensor.
    """
    for name, x in (("input", input), ("other", other)):
        if not is_tensor(x):
            raise errors.type_error("equal", f"{name} must be a Tensor, but got {type(x).__name__}")
    return input.shape == other.shape and _answer(ops.all(ops.equal(input, other)))
