"""Functions of one number, compiled and eager: what tests of control flow share."""

import numpy as np

import mycelia as ms
from mycelia import Tensor

VALUES = (-3.0, -1.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.5, 7.0, 12.0)


def scalar(value, dtype=np.float32):
    return Tensor(np.asarray(value, dtype))


def number(value):
    return np.asarray(value.asnumpy() if isinstance(value, Tensor) else value, np.float64)


def cases(namespace, helpers=()):
    """The functions that a module has defined so far, but for those that they call."""
    return [
        value
        for name, value in list(namespace.items())
        if callable(value)
        and getattr(value, "__module__", None) == namespace["__name__"]
        and name not in helpers
    ]


def assert_compiled_equals_eager(function):
    compiled = ms.jit(function)
    for value in VALUES:
        expected = number(function(scalar(value)))
        np.testing.assert_allclose(
            number(compiled(scalar(value))), expected, rtol=1e-6, err_msg=f"x = {value}"
        )
