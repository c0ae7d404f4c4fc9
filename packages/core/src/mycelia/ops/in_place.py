"""Functions that write into their first argument."""

from __future__ import annotations

from mycelia import ops


def zero_(input):
    """Fill with zeros in place."""
    return input.zero_()


def put_(input, index, source, accumulate=False):
    """Write `source` to the places `index` of the flat tensor, in place; `accumulate`: add."""
    return input.put_(index, source, accumulate)


def bernoulli_(input, p=0.5, *, generator=None):
    """Fill with ones of probability `p` and zeros, in place."""
    return input.bernoulli_(p, generator=generator)


def inplace_sigmoid(input):
    """Sigmoid in place."""
    return input.sigmoid_()


def reshape_(input, shape):
    """The same memory under another shape."""
    return ops.reshape(input, shape)


def stop_gradient_(input):
    """No gradient flows into this tensor from now on."""
    input.assign_value(ops.stop_gradient(input))


__all__ = ["bernoulli_", "inplace_sigmoid", "put_", "reshape_", "stop_gradient_", "zero_"]
