"""Scores made into probabilities along an axis: softmax, softmin, log_softmax.

The gradient ops take ``dy``, the gradient of the result, and the result ``y``.
"""

import numpy as np

from mycelia.engine.ops import batch_rules as _batch
from mycelia.engine.ops import layout_rules as _layout
from mycelia.engine.ops.define import op
from mycelia.engine.ops.elementwise import powers as _powers
from mycelia.engine.ops.elementwise.cast import cast
from mycelia.engine.ops.infer import normalize_axis
from mycelia.engine.ops.reductions import reduce as _reduce


def _infer_axis(x, *, axis):
    """Shape rule of the softmax family: same type, `axis` in range."""
    if not -x.rank <= axis < max(x.rank, 1):
        raise ValueError(f"axis {axis} is out of range for shape {x.shape}")
    return x


def _infer_grad_axis(dy, y, *, axis):
    normalize_axis(axis, dy.rank)
    return dy


def _np_log_softmax(x, axis):
    if x.size == 0:
        return x
    shifted = x - x.max(axis, keepdims=True)  # the largest exponent is 0: exp() stays finite
    return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))


@op(
    infer=_infer_axis,
    mindir="Softmax",
    onnx="Softmax",
    float_result=True,
    batch=_batch.along("axis"),
    cost=4,
    layout=_layout.along("axis"),
    precision="wide",
)
def _softmax(input, *, axis: "int" = -1):
    """Normalized exponentials along `axis`: ``exp(input) / sum(exp(input))``.

    Shapes: input [..., n, ...] -> same.  dtypes: floating.  Errors: ValueError if `axis` is out of range.
    """
    if input.size == 0:
        return input
    e = np.exp(input - input.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


@_softmax.vjp
def _softmax(ct, out, *, axis):
    return _softmax_grad(ct, out, axis=axis)


@_softmax.samples
def _softmax(rand):
    yield rand(3, 4)
    yield rand(2, 3, 4), dict(axis=1)
    yield rand(2, 3, 4), dict(axis=0)
    yield rand(0, 4)
    yield rand(5, 1)
    yield rand(2, 131, low=-300, high=300), dict(_grad=False)


@op(infer=_infer_grad_axis, batch=_batch.along("axis"), cost=4, layout=_layout.along("axis"))
def _softmax_grad(dy, y, *, axis: "int" = -1):
    """Gradient of softmax from its result: ``(dy - sum(dy * y)) * y``.

    Shapes: dy, y equal -> same.  dtypes: floating.
    """
    return (dy - (dy * y).sum(axis, keepdims=True)) * y


@_softmax_grad.vjp
def _softmax_grad(ct, dy, y, *, axis):
    weighted = _reduce.sum(ct * y, axis, True)
    return _softmax_grad(ct, y, axis=axis), ct * (dy - _reduce.sum(dy * y, axis, True)) - dy * weighted


@_softmax_grad.samples
def _softmax_grad(rand):
    yield rand(3, 4), rand(3, 4)
    yield rand(2, 3, 4), rand(2, 3, 4), dict(axis=1)
    yield rand(2, 37), rand(2, 37)


def softmax(input, axis=-1, *, dtype=None):
    """Normalized exponentials along `axis`: ``exp(input) / sum(exp(input))``.

    Shapes: input [..., n, ...] -> same.  dtypes: floating; `dtype` casts first.
    """
    if dtype is not None:
        input = cast(input, dtype)
    return _softmax(input, axis=axis)


def softmin(x, axis=-1, *, dtype=None):
    """Softmax of the negative: ``exp(-x) / sum(exp(-x))``.

    Shapes: x [..., n, ...] -> same.  dtypes: floating; `dtype` casts first.
    """
    return softmax(-x, axis, dtype=dtype)


@op(
    infer=_infer_axis,
    mindir="LogSoftmax",
    onnx="LogSoftmax",
    float_result=True,
    batch=_batch.along("axis"),
    cost=4,
    layout=_layout.along("axis"),
    precision="wide",
)
def log_softmax(logits, *, axis: "int" = -1):
    """Logarithm of softmax: ``logits - log(sum(exp(logits)))`` along `axis`.

    Shapes: logits [..., n, ...] -> same.  dtypes: floating.  Errors: ValueError if `axis` is out of range.
    """
    return _np_log_softmax(logits, axis)


@log_softmax.vjp
def log_softmax(ct, out, *, axis):
    return _log_softmax_grad(ct, out, axis=axis)


@log_softmax.samples
def log_softmax(rand):
    yield rand(3, 4)
    yield rand(2, 3, 4), dict(axis=1)
    yield rand(0, 4)
    yield rand(2, 131, low=-300, high=300), dict(_grad=False)


@op(infer=_infer_grad_axis, batch=_batch.along("axis"), cost=4, layout=_layout.along("axis"))
def _log_softmax_grad(dy, y, *, axis: "int" = -1):
    """Gradient of log_softmax from its result: ``dy - exp(y) * sum(dy)``.

    Shapes: dy, y equal -> same.  dtypes: floating.
    """
    return dy - np.exp(y) * dy.sum(axis, keepdims=True)


@_log_softmax_grad.vjp
def _log_softmax_grad(ct, dy, y, *, axis):
    p = _powers.exp(y)
    return ct - _reduce.sum(ct * p, axis, True), -ct * p * _reduce.sum(dy, axis, True)


@_log_softmax_grad.samples
def _log_softmax_grad(rand):
    yield rand(3, 4), rand(3, 4)
    yield rand(2, 3, 4), rand(2, 3, 4), dict(axis=1)
    yield rand(2, 37), rand(2, 37)


__all__ = [
    "log_softmax", "softmax", "softmin",
]  # fmt: skip
