"""Losses of distances, margins and rankings; those of probabilities are in `cross_entropy.py`.

Public functions take `reduction`: "none" gives one value an element or sample, "mean" and "sum" a scalar.
"""

import math

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.ir.symint import applied
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops import batch_rules as _batch
from mycelia.engine.ops.arrays import gathering as _gathering
from mycelia.engine.ops.arrays import masks as _masks
from mycelia.engine.ops.arrays.shape import reshape
from mycelia.engine.ops.define import find, op
from mycelia.engine.ops.elementwise import activation as _activation
from mycelia.engine.ops.elementwise import clipping as _clipping
from mycelia.engine.ops.elementwise import logarithms as _logarithms
from mycelia.engine.ops.elementwise import math as _math
from mycelia.engine.ops.elementwise import powers as _powers
from mycelia.engine.ops.elementwise import rectifiers as _rectifiers
from mycelia.engine.ops.elementwise.cast import cast
from mycelia.engine.ops.infer import same
from mycelia.engine.ops.nn_ops.cross_entropy import (
    _pick_class,
    _place_class,
    _rows_of_classes,
    _sigmoid_cross_entropy,
)
from mycelia.engine.ops.nn_ops.loss_reduction import (
    _REDUCTIONS,
    _check_reduction,
    _check_same_shape,
    _reduced,
    _warn_of_broadcasting,
)
from mycelia.engine.ops.reductions import reduce as _reduce

# ------------------------------------------------------------------------ regression


@op(name="squared_error", precision="wide")
def _squared_error(x, y, *, reduction: "mean|sum|none" = "mean"):
    """Squared difference, reduced: ``(x - y)^2``.

    Shapes: x, y equal -> [] or x's.  dtypes: floating.  Errors: ValueError if the shapes differ.
    """
    d = x - y
    if reduction == "none":
        return d * d
    total = (d * d).sum()
    return total / max(1, d.size) if reduction == "mean" else total


@_squared_error.infer
def _squared_error(x, y, *, reduction):
    if x.shape != y.shape and -1 not in x.shape + y.shape:
        raise ValueError(f"both shapes must be equal, got {x.shape} and {y.shape}")
    return x if reduction == "none" else TensorType(x.dtype, ())


@_squared_error.vjp
def _squared_error(ct, x, y, *, reduction):
    d_x = _squared_error_grad(ct, x, y, reduction=reduction)
    return d_x, -d_x


@_squared_error.samples
def _squared_error(rand):
    yield rand(3, 5), rand(3, 5)
    yield rand(37), rand(37), dict(reduction="sum")
    yield rand(3, 5), rand(3, 5), dict(reduction="none")
    yield rand(), rand()


@_squared_error.batch
def _squared_error(call):
    difference = find("square")(call.whole(0) - call.whole(1))
    if call.attrs["reduction"] == "none":
        return [difference]
    kind = "mean" if call.attrs["reduction"] == "mean" else "sum"
    rows = _batch.reshaped(difference, (call.size, -1))
    return call.shaped((find(kind)(rows, (1,)),))


@op(name="squared_error_grad")
def _squared_error_grad(dy, x, y, *, reduction: "mean|sum|none" = "mean"):
    """Gradient of squared_error with respect to `x`: ``2 * dy * (x - y)``, divided by the count for the mean.

    Shapes: x, y equal, dy [] or x's -> x's.  dtypes: floating.
    """
    return dy * (x - y) * x.dtype.type(2 / max(1, x.size) if reduction == "mean" else 2)


@_squared_error_grad.infer
def _squared_error_grad(dy, x, y, *, reduction):
    return x


@_squared_error_grad.vjp
def _squared_error_grad(ct, dy, x, y, *, reduction):
    scale = 2.0 / max(1, x.size) if reduction == "mean" else 2.0
    d_x = ct * dy * scale
    d_dy = ct * (x - y) * scale
    return d_dy if reduction == "none" else _reduce.sum(d_dy), d_x, -d_x


@_squared_error_grad.samples
def _squared_error_grad(rand):
    yield rand(), rand(3, 5), rand(3, 5)
    yield rand(37), rand(37), rand(37), dict(reduction="none")


def mse_loss(input, target, reduction="mean"):
    """Mean squared error: ``(input - target)^2``, reduced.

    Shapes: input and target equal or broadcastable -> [] or theirs.  dtypes: real, integers count as float32.
    """
    _check_reduction("mse_loss", reduction)
    _warn_of_broadcasting("mse_loss", input, target)
    input, target = _floating_pair(input, target)
    if tuple(input.shape) != tuple(target.shape):
        return _reduced("mse_loss", _math.square(input - target), reduction)
    return _squared_error(input, target, reduction=reduction)


def _floating_pair(x, y):
    """Both operands in their common floating dtype."""
    from mycelia.engine.base import dtypes

    dtype = dtypes.promote(x.dtype, y.dtype)
    dtype = dtype if dtype.is_floating else dtypes.float32
    return tuple(v if v.dtype is dtype else cast(v, dtype) for v in (x, y))


def l1_loss(input, target, reduction="mean"):
    """Mean absolute error: ``|input - target|``, reduced.

    Shapes: input and target equal or broadcastable -> [] or theirs.  dtypes: real, integers count as float32.
    """
    _warn_of_broadcasting("l1_loss", input, target)
    input, target = _floating_pair(input, target)
    return _reduced("l1_loss", _math.abs(input - target), reduction)


@op(elementwise="same", infer=same(), name="smooth_l1", precision="wide")
def _smooth_l1(d, *, beta: "float" = 1.0):
    """``d^2 / (2 * beta)`` where ``|d| < beta``, else ``|d| - beta / 2``.

    Shapes: any -> same.  dtypes: floating.
    """
    a = np.abs(d)
    return np.where(a < beta, 0.5 * d * d / beta, a - 0.5 * beta).astype(d.dtype)


@_smooth_l1.vjp
def _smooth_l1(ct, d, *, beta):
    return ct * _rectifiers._hardtanh(d * (1.0 / beta))


@_smooth_l1.samples
def _smooth_l1(rand):
    yield rand(3, 5, low=-3, high=3)
    yield rand(7), dict(beta=0.3)
    yield rand(0)


def smooth_l1_loss(input, target, beta=1.0, reduction="none"):
    """Squared error near zero, absolute error beyond `beta`: ``d^2 / (2 beta)`` if ``|d| < beta``,
    ``|d| - beta / 2``.

    Shapes: input, target equal -> theirs or [].  dtypes: floating.  Errors: ValueError if `beta` is negative.
    """
    _check_same_shape("smooth_l1_loss", input, target)
    if beta < 0:
        raise errors.value_error(f"smooth_l1_loss: beta must be 0 or more, got {beta}")
    if beta == 0:
        return l1_loss(input, target, reduction)
    return _reduced("smooth_l1_loss", _smooth_l1(input - target, beta=float(beta)), reduction)


def huber_loss(input, target, reduction="mean", delta=1.0):
    """Squared error up to `delta`, linear beyond: ``d^2 / 2`` if ``|d| <= delta``, else
    ``delta * (|d| - delta / 2)``.

    Shapes: input and target equal or broadcastable -> theirs or [].  dtypes: floating.
    Errors: ValueError if `delta` is not positive.
    """
    if delta <= 0:
        raise errors.value_error(f"huber_loss: delta must be positive, got {delta}")
    _warn_of_broadcasting("huber_loss", input, target)
    return _reduced("huber_loss", delta * _smooth_l1(input - target, beta=float(delta)), reduction)


# ------------------------------------------------------------------------ divergence, likelihood


@op(elementwise="same", infer=same(), name="kl_div", precision="wide")
def _kl_div(logits, labels):
    """``labels * (log(labels) - logits)``, 0 where a label is not positive.

    Shapes: logits, labels equal -> same.  dtypes: floating.
    """
    safe = np.where(labels > 0, labels, 1)
    return np.where(labels > 0, labels * (np.log(safe) - logits), 0).astype(logits.dtype)


@_kl_div.vjp
def _kl_div(ct, logits, labels, needs):
    positive = labels > 0
    if not needs[1]:
        return -ct * labels * positive, None
    return -ct * labels * positive, ct * (
        _logarithms.log(_masks.where(positive, labels, 1.0)) + 1.0 - logits
    ) * positive


@_kl_div.samples
def _kl_div(rand):
    yield rand(3, 5), rand.positive(3, 5)
    yield rand(0), rand(0)


def kl_div(logits, labels, reduction="mean"):
    """Kullback-Leibler divergence from log-probabilities: ``labels * (log(labels) - logits)``.

    `reduction` may also be "batchmean": the sum over the first extent.
    Shapes: logits, labels equal -> theirs or [].  dtypes: floating.
    """
    _check_reduction("kl_div", reduction, (*_REDUCTIONS, "batchmean"))
    _check_same_shape("kl_div", logits, labels)
    loss = _kl_div(logits, labels)
    if reduction == "batchmean":
        return _reduce.sum(loss) * (1.0 / applied(max, logits.shape[0], 1))
    return _reduced("kl_div", loss, reduction)


def gaussian_nll_loss(x, target, var, full=False, eps=1e-6, reduction="mean"):
    """Negative log likelihood of a normal distribution:
    ``(log(v) + (x - target)^2 / v) / 2``, v = max(var, eps).

    `full` adds the constant ``log(2 pi) / 2``.  Shapes: x, target, var broadcast -> theirs or [].
    dtypes: floating.
    Errors: ValueError if `eps` is not positive.
    """
    if eps <= 0:
        raise errors.value_error(f"gaussian_nll_loss: eps must be positive, got {eps}")
    _warn_of_broadcasting("gaussian_nll_loss", x, target)
    variance = _clipping.maximum(var, eps)
    loss = 0.5 * (_logarithms.log(variance) + _math.square(x - target) / variance)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return _reduced("gaussian_nll_loss", loss, reduction)


# ------------------------------------------------------------------------ margins


def _hinge(x):
    return _clipping.maximum(x, 0.0)


def cosine_similarity(x1, x2, dim=1, eps=1e-08):
    """Cosine of the angle along `dim`: ``sum(x1 * x2) / max(|x1| * |x2|, eps)``.

    Shapes: x1 and x2 broadcast -> theirs without `dim`.  dtypes: floating.
    """
    squares = _reduce.sum(x1 * x1, dim) * _reduce.sum(x2 * x2, dim)
    return _reduce.sum(x1 * x2, dim) * _powers.rsqrt(_clipping.maximum(squares, eps * eps))


def cosine_embedding_loss(input1, input2, target, margin=0.0, reduction="mean"):
    """``1 - cos(input1, input2)`` for pairs with target 1, ``max(0, cos - margin)`` for -1.

    Shapes: input1, input2 [N, D], target [N] -> [N] or [].  dtypes: floating.
    Errors: ValueError if `margin` is outside [-1, 1].
    """
    if not -1.0 <= margin <= 1.0:
        raise errors.value_error(f"cosine_embedding_loss: margin must be in [-1, 1], got {margin}")
    _check_same_shape("cosine_embedding_loss", input1, input2)
    cosine = cosine_similarity(input1, input2, input1.ndim - 1 if input1.ndim < 2 else 1, 1e-12)
    _warn_of_broadcasting("cosine_embedding_loss", cosine, target)
    loss = _masks.where(target == 1, 1.0 - cosine, _hinge(cosine - margin) * (target == -1))
    return _reduced("cosine_embedding_loss", loss, reduction)


def margin_ranking_loss(input1, input2, target, margin=0.0, reduction="mean"):
    """``max(0, -target * (input1 - input2) + margin)``: target 1 wants input1 larger, -1 smaller.

    Shapes: equal -> theirs or [].  dtypes: floating.
    """
    _check_same_shape("margin_ranking_loss", input1, input2)
    _warn_of_broadcasting("margin_ranking_loss", input1, target)
    return _reduced("margin_ranking_loss", _hinge(target * (input2 - input1) + margin), reduction)


def hinge_embedding_loss(inputs, targets, margin=1.0, reduction="mean"):
    """``inputs`` where the target is 1, ``max(0, margin - inputs)`` where it is -1.

    Shapes: inputs and targets broadcast -> theirs or [].  dtypes: floating.
    """
    _warn_of_broadcasting("hinge_embedding_loss", inputs, targets)
    near = inputs * (targets == 1)
    return _reduced("hinge_embedding_loss", near + _hinge(margin - inputs) * (targets == -1), reduction)


def soft_margin_loss(input, target, reduction="mean"):
    """``log(1 + exp(-target * input))`` for targets 1 and -1.

    Shapes: input, target equal -> theirs or [].  dtypes: floating.
    """
    _check_same_shape("soft_margin_loss", input, target)
    return _reduced("soft_margin_loss", _activation.softplus(-target * input), reduction)


def _distance(x, y, p, eps):
    difference = _math.abs(x - y + eps)
    if p == 2:
        return _powers.sqrt(_reduce.sum(difference * difference, -1))
    if p == 1:
        return _reduce.sum(difference, -1)
    return _powers.pow(_reduce.sum(_powers.pow(difference, float(p)), -1), 1.0 / p)


def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-06, swap=False, reduction="mean"):
    """``max(0, d(anchor, positive) - d(anchor, negative) + margin)`` with the distance ``|x - y + eps|_p``.

    `swap` takes the distance of positive and negative instead where that is smaller.
    Shapes: [..., D] equal -> [...] or [].  dtypes: floating.  Source: Balntas et al. 2016.
    """
    far = _distance(anchor, negative, p, eps)
    if swap:
        far = _clipping.minimum(far, _distance(positive, negative, p, eps))
    margin_left = _distance(anchor, positive, p, eps) - far + margin
    return _reduced("triplet_margin_loss", _hinge(margin_left), reduction)


def multi_margin_loss(input, target, p=1, margin=1, weight=None, reduction="mean"):
    """Hinge over all wrong classes: ``sum(w * max(0, margin - x[target] + x[j])^p, j != target) / C``.

    Shapes: input [N, C] or [C], target [N] or [], weight [C] -> [N] or [].  dtypes: floating.
    Errors: ValueError if `p` is neither 1 nor 2.
    """
    if p not in (1, 2):
        raise errors.value_error(f"multi_margin_loss: p must be 1 or 2, got {p}")
    rows, labels, shape = _rows_of_classes("multi_margin_loss", input, target)
    left = _hinge(margin - reshape(_pick_class(rows, labels), (-1, 1)) + rows)
    left = left * left if p == 2 else left
    wrong = 1.0 - _place_class(_pick_class(rows * 0.0 + 1.0, labels), labels, classes=rows.shape[1])
    loss = _reduce.sum(left * wrong, 1) * (1.0 / rows.shape[1])
    if weight is not None:
        loss = loss * _gathering.gather(weight, labels, 0)
    return _reduced("multi_margin_loss", reshape(loss, shape), reduction)


def multilabel_soft_margin_loss(input, target, weight=None, reduction="mean"):
    """Mean over the classes of the two-class cross entropy of each: labels 1 and 0, logits `input`.

    Shapes: input, target [N, C], weight [C] -> [N] or [].  dtypes: floating.
    """
    _check_same_shape("multilabel_soft_margin_loss", input, target)
    loss = _sigmoid_cross_entropy(input, target)
    loss = loss if weight is None else loss * weight
    mean = _reduce.sum(loss, -1) * (1.0 / max(1, input.shape[-1]))
    return _reduced("multilabel_soft_margin_loss", mean, reduction)


__all__ = [
    "cosine_embedding_loss", "cosine_similarity", "gaussian_nll_loss", "hinge_embedding_loss", "huber_loss",
    "kl_div", "l1_loss", "margin_ranking_loss", "mse_loss", "multi_margin_loss",
    "multilabel_soft_margin_loss", "smooth_l1_loss", "soft_margin_loss", "triplet_margin_loss",
]  # fmt: skip
