"""Several operations in one call: weighted sums, interpolation, steps."""

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.ops.define import op
from mycelia.engine.ops.elementwise import comparison as _comparison
from mycelia.engine.ops.elementwise.cast import cast
from mycelia.engine.ops.elementwise.math import add, mul, sub, true_div
from mycelia.engine.ops.infer import broadcast, unbroadcast
from mycelia.engine.ops.late import ops


def lerp(input, end, weight):
    """Linear interpolation: ``input + weight * (end - input)``; `weight` is a number or a tensor.

    Shapes: broadcast.  dtypes: floating.
    """
    return add(input, mul(weight, sub(end, input)))


def addcmul(input, tensor1, tensor2, value=1):
    """``input + value * tensor1 * tensor2``.

    Shapes: broadcast.  dtypes: real, promoted.
    """
    return add(input, _scaled(mul(tensor1, tensor2), value))


def addcdiv(input, tensor1, tensor2, value=1):
    """``input + value * tensor1 / tensor2``.

    Shapes: broadcast.  dtypes: floating.
    """
    return add(input, _scaled(true_div(tensor1, tensor2), value))


def _scaled(x, factor):
    return x if isinstance(factor, (int, float)) and factor == 1 else mul(x, factor)


def heaviside(input, values):
    """Step function: 0 below zero, 1 above, `values` at zero.

    Shapes: broadcast.  dtypes: real, promoted.
    """
    step = cast(_comparison.greater(input, 0), input.dtype)
    return ops.where(_comparison.equal(input, 0), values, step)


@op(mindir="NextAfter", method=True, primitive=True)
def nextafter(input, other):
    """Neighbouring floating number of `input` in the direction of `other`.

    Shapes: broadcast.  dtypes: floating, both the same.  Errors: TypeError if they differ.
    """
    return np.nextafter(input, other)


@nextafter.infer
def nextafter(input, other):
    if input.dtype is not other.dtype:
        raise TypeError(f"input and other must have one dtype, but they are {input} and {other}")
    return broadcast()(input, other)


@nextafter.vjp
def nextafter(ct, input_shape):
    return unbroadcast(ct, input_shape), None


@nextafter.samples
def nextafter(rand):
    yield rand(3, 4), rand(3, 4)
    yield (
        np.array([0.0, -0.0, 1.0, -2.0], np.float32)[:, None],
        np.array([1.0, -1.0, 0.0], np.float32),
    )
    yield rand(0), rand(0)


def addn(x):
    """Sum of all tensors of the list `x`.

    Shapes: all equal -> same.  dtypes: real.  Errors: ValueError for an empty list.
    """
    if not x:
        raise errors.value_error("addn: the list of tensors is empty")
    total = x[0]
    for term in x[1:]:
        total = add(total, term)
    return total


def accumulate_n(x):
    """Sum of all tensors of the list `x`.

    Shapes: all equal -> same.  dtypes: real.  Errors: ValueError for an empty list.
    """
    return addn(x)


__all__ = ["accumulate_n", "addcdiv", "addcmul", "addn", "heaviside", "lerp", "nextafter"]
