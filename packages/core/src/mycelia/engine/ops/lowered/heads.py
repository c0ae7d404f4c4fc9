"""Products of the heads of an attention where they lie side by side, as a projection makes them."""

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops import cost as _cost
from mycelia.engine.ops.define import op
from mycelia.engine.ops.lowered.packed import need_float32


def _heads_first(t, beside):
    return np.swapaxes(t, 1, 2) if beside else t


@op(name="head_matmul", nondiff=True)
def head_matmul(
    x, y, *, transpose_y: "bool" = False, x_beside: "bool" = False, y_beside: "bool" = False,
    beside: "bool" = False,
):  # fmt: skip
    """``batch_matmul`` of each head of each batch, without a copy of heads that lie side by side.

    Shapes: x [B, H, m, k], y [B, H, k, n] (or [B, H, n, k]) -> [B, H, m, n]; axes 1 and 2 are
    the other way round in x with `x_beside`, in y with `y_beside`, in the result with `beside`.
    dtypes: float32.
    Errors: ValueError for sizes that do not fit.
    """
    y = _heads_first(y, y_beside)
    product = _heads_first(x, x_beside) @ (np.swapaxes(y, 2, 3) if transpose_y else y)
    return np.ascontiguousarray(_heads_first(product, beside))


@head_matmul.infer
def head_matmul(x, y, *, transpose_y, x_beside, y_beside, beside):
    need_float32(x=x, y=y)
    if x.rank != 4 or y.rank != 4:
        raise errors.value_error(f"x and y must have 4 axes, got {x} and {y}")
    (b, *first), (b_y, *second) = x.shape, y.shape
    h, m, k = (first[1], first[0], first[2]) if x_beside else first
    h_y, *rest = (second[1], second[0], second[2]) if y_beside else second
    k_y, n = rest[::-1] if transpose_y else rest
    if (b, h, k) != (b_y, h_y, k_y):
        raise errors.value_error(f"batches, heads or inner sizes of {x} and {y} differ")
    return TensorType(x.dtype, (b, m, h, n) if beside else (b, h, m, n))


@head_matmul.samples
def head_matmul(rand):
    yield rand(2, 5, 3, 4), rand(2, 6, 3, 4), dict(transpose_y=True, x_beside=True, y_beside=True)
    yield rand(2, 3, 5, 6), rand(2, 6, 3, 4), dict(y_beside=True, beside=True)
    yield rand(1, 3, 5, 6), rand(1, 3, 6, 4), dict(beside=True)
    yield rand(1, 40, 2, 33), rand(1, 2, 35, 33), dict(transpose_y=True, x_beside=True)
    yield rand(1, 2, 37, 130), rand(1, 130, 2, 64), dict(y_beside=True, beside=True)
    yield rand(2, 0, 3, 4), rand(2, 6, 3, 4), dict(transpose_y=True, x_beside=True, y_beside=True)
    yield rand(2, 3, 5, 0), rand(2, 0, 3, 4), dict(y_beside=True)


@head_matmul.cost
def head_matmul(inputs, outputs, **_):
    return _cost.product(outputs, inputs[0].shape[-1])
