"""The kernels: functions from arrays and attributes to an array, listed by op and dtypes of the inputs.

A kernel takes the op's tensors by position and its attributes by keyword, under the names of the op's
signature. Checking is the op's own: what arrives here is valid.
"""

from __future__ import annotations

import numpy as np

BLOCK = 64  # rows and columns that fit the device's fast memory


def add(input, other):
    """Elementwise sum."""
    return input + other


def mul(input, other):
    """Elementwise product."""
    return input * other


def relu(input):
    """The positive part. `maximum` hands a NaN on, as the op does."""
    return np.maximum(input, 0)


def relu_grad(dy, y):
    """`dy` where the result was positive."""
    return dy * (y > 0)


def mat_mul(x, y, *, transpose_a, transpose_b):
    """Product of two matrices, block by block of the result."""
    x = x.T if transpose_a else x
    y = y.T if transpose_b else y
    result = np.empty((x.shape[0], y.shape[1]), np.float32)
    for i in range(0, x.shape[0], BLOCK):
        for j in range(0, y.shape[1], BLOCK):
            result[i : i + BLOCK, j : j + BLOCK] = x[i : i + BLOCK] @ y[:, j : j + BLOCK]
    return result


def softmax(input, *, axis):
    """Normalized exponentials in place: one array of scratch memory besides the result."""
    if input.size == 0:
        return input
    result = input - input.max(axis, keepdims=True)
    np.exp(result, out=result)
    result /= result.sum(axis, keepdims=True)
    return result


#: (op, dtypes): "f32" means that all inputs are float32, "f32,i64" names them one by one, "*" takes anything.
TABLE = {
    ("add", "f32"): add,
    ("mul", "f32"): mul,
    ("relu", "f32"): relu,
    ("relu_grad", "f32"): relu_grad,
    ("mat_mul", "f32"): mat_mul,
    ("softmax", "f32"): softmax,
}
