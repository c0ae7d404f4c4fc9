"""Losses. Public functions take `reduction`: "none" gives one value an element or sample,
"mean" and "sum" a scalar.

The cross entropies of a softmax are fused: one pass over the logits gives the loss and its gradient.
"""

import math

import numpy as np

from mycelia import errors
from mycelia.ir.types import TensorType
from mycelia.ops.arrays import index as _index
from mycelia.ops.arrays import masks as _masks
from mycelia.ops.arrays.shape import reshape, transpose
from mycelia.ops.define import op
from mycelia.ops.elementwise import activation as _activation
from mycelia.ops.elementwise import clipping as _clipping
from mycelia.ops.elementwise import math as _math
from mycelia.ops.elementwise.cast import cast
from mycelia.ops.infer import same
from mycelia.ops.reductions import reduce as _reduce
from mycelia.ops.reductions import softmaxes as _softmaxes

_REDUCTIONS = ("mean", "sum", "none")


def _check_reduction(name, reduction, allowed=_REDUCTIONS):
    if reduction not in allowed:
        raise errors.value_error(f"{name}: reduction must be one of {', '.join(allowed)}, got {reduction!r}")


def _reduced(name, loss, reduction):
    """The elementwise `loss` as `reduction` wants it."""
    _check_reduction(name, reduction)
    if reduction == "none":
        return loss
    total = _reduce.sum(loss)
    return total * (1.0 / max(1, loss.size)) if reduction == "mean" else total


def _check_same_shape(name, x, y):
    if tuple(x.shape) != tuple(y.shape):
        raise errors.value_error(
            f"{name}: both shapes must be equal, got {tuple(x.shape)} and {tuple(y.shape)}"
        )


# ------------------------------------------------------------------------ softmax cross entropy


def _np_softmax_and_log(logits):
    """Softmax and its logarithm over axis 1 of a matrix."""
    if logits.size == 0:
        return logits, logits
    shifted = logits - logits.max(1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    return np.exp(log_p), log_p


def _check_matrix(logits):
    if logits.rank != 2:
        raise errors.value_error(f"logits must be [N, C], got shape {logits.shape}")


@op(name="softmax_cross_entropy_with_logits", outputs=2, mindir="SoftmaxCrossEntropyWithLogits")
def _softmax_cross_entropy(logits, labels):
    """Cross entropy of class probabilities and its gradient: ``-sum(labels * log_softmax(logits))`` a sample.

    Shapes: logits, labels [N, C] -> loss [N], gradient with respect to logits [N, C].  dtypes: floating.
    Errors: ValueError if the shapes differ.
    """
    p, log_p = _np_softmax_and_log(logits)
    return -(labels * log_p).sum(1), p * labels.sum(1, keepdims=True) - labels


@_softmax_cross_entropy.infer
def _softmax_cross_entropy(logits, labels):
    _check_matrix(logits)
    if labels.shape != logits.shape and -1 not in labels.shape + logits.shape:
        raise ValueError(f"labels must have the shape of logits {logits.shape}, got {labels.shape}")
    return TensorType(logits.dtype, logits.shape[:1]), logits


@_softmax_cross_entropy.vjp
def _softmax_cross_entropy(cts, logits, labels):
    # MindSpore's rule: labels are constant distributions, and the second result has no gradient.
    if cts[0] is None:
        return None, None
    return reshape(cts[0], (-1, 1)) * (_softmaxes.softmax(logits, 1) - labels), None


@_softmax_cross_entropy.samples
def _softmax_cross_entropy(rand):
    # The gradient treats labels as constant distributions, which these are not.
    yield rand(3, 5), rand.positive(3, 5), dict(_grad=False)
    yield rand(2, 37, low=-9, high=9), rand.positive(2, 37), dict(_grad=False)
    yield rand(1, 1), rand(1, 1), dict(_grad=False)
    yield rand(0, 4), rand(0, 4), dict(_grad=False)
    yield rand(2, 9, low=-200, high=200), rand.positive(2, 9), dict(_grad=False)


@op(name="sparse_softmax_cross_entropy_with_logits", outputs=2)
def _sparse_cross_entropy(logits, labels, *, reduction: "mean|sum|none" = "mean", ignore_index: "int" = -100):
    """Cross entropy of class indices and its gradient: ``-log_softmax(logits)[labels]``.

    Samples whose label is `ignore_index` give 0 and do not count in the mean.
    Shapes: logits [N, C], labels [N] integer -> loss [N] or [], gradient with respect to logits [N, C].
    dtypes: floating.  Errors: ValueError if a label is neither `ignore_index` nor in [0, C).
    """
    p, log_p = _np_softmax_and_log(logits)
    rows = np.flatnonzero(labels != ignore_index)
    picked = _np_class_indices(labels[rows], logits.shape[1])
    loss = np.zeros(len(labels), logits.dtype)
    loss[rows] = -log_p[rows, picked]
    gradient = np.zeros_like(logits)
    gradient[rows] = p[rows]
    gradient[rows, picked] -= 1
    if reduction == "none":
        return loss, gradient
    scale = logits.dtype.type(1 / max(1, len(rows)) if reduction == "mean" else 1)
    return loss.sum() * scale, gradient * scale


def _np_class_indices(labels, classes):
    if labels.size and not (0 <= labels.min() and labels.max() < classes):
        wrong = labels[(labels < 0) | (labels >= classes)][0]
        raise errors.value_error(f"label {wrong} is not in [0, {classes})")
    return labels.astype(np.int64)


@_sparse_cross_entropy.infer
def _sparse_cross_entropy(logits, labels, *, reduction, ignore_index):
    _check_matrix(logits)
    _check_labels(logits, labels)
    return TensorType(logits.dtype, logits.shape[:1] if reduction == "none" else ()), logits


def _check_labels(x, labels):
    if not labels.dtype.is_integer:
        raise errors.type_error(f"labels must be integers, got {labels.dtype.name}")
    if labels.rank != 1 or (labels.shape[0] != x.shape[0] and -1 not in (labels.shape[0], x.shape[0])):
        raise errors.value_error(f"labels must be [{x.shape[0]}] for shape {x.shape}, got {labels.shape}")


@_sparse_cross_entropy.vjp
def _sparse_cross_entropy(cts, outs, logits, labels, *, reduction, ignore_index):
    d_logits = None
    if cts[0] is not None:
        d_logits = (reshape(cts[0], (-1, 1)) if reduction == "none" else cts[0]) * outs[1]
    if cts[1] is not None:  # second order
        counted = cast(labels != ignore_index, logits.dtype)
        bent = _softmaxes._softmax_grad(cts[1], _softmaxes.softmax(logits, 1), axis=1) * reshape(
            counted, (-1, 1)
        )
        if reduction == "mean":
            bent = bent / _clipping.maximum(_reduce.sum(counted), 1.0)
        d_logits = bent if d_logits is None else d_logits + bent
    return d_logits, None


@_sparse_cross_entropy.samples
def _sparse_cross_entropy(rand):
    yield rand(3, 5), rand.ints(0, 5, (3,))
    yield rand(4, 3), np.array([0, 2, -100, 1], np.int32)
    yield rand(4, 3), np.array([0, 2, 7, 7], np.int64), dict(ignore_index=7, reduction="sum")
    yield rand(3, 37, low=-9, high=9), rand.ints(0, 37, (3,), "int64"), dict(reduction="none")
    yield rand(2, 3), np.array([-100, -100], np.int32)
    yield rand(0, 4), rand.ints(0, 4, (0,))


@op(name="pick_class")
def _pick_class(x, labels, *, ignore_index: "int" = -100):
    """One element of each row: ``x[i, labels[i]]``, 0 where the label is `ignore_index`.

    Shapes: x [N, C], labels [N] integer -> [N].  dtypes: any.  Errors: ValueError if a label is out of range.
    """
    rows = np.flatnonzero(labels != ignore_index)
    picked = np.zeros(len(labels), x.dtype)
    picked[rows] = x[rows, _np_class_indices(labels[rows], x.shape[1])]
    return picked


@_pick_class.infer
def _pick_class(x, labels, *, ignore_index):
    _check_matrix(x)
    _check_labels(x, labels)
    return TensorType(x.dtype, x.shape[:1])


@_pick_class.vjp
def _pick_class(ct, x_shape, labels, *, ignore_index):
    return _place_class(ct, labels, classes=x_shape[1], ignore_index=ignore_index), None


@_pick_class.samples
def _pick_class(rand):
    yield rand(3, 5), rand.ints(0, 5, (3,))
    yield rand(4, 3), np.array([0, 2, -100, 1], np.int64)
    yield rand(0, 4), rand.ints(0, 4, (0,))


@op(name="place_class")
def _place_class(values, labels, *, classes: "int", ignore_index: "int" = -100):
    """Rows of zeros with `values` at the labels: the transpose of pick_class.

    Shapes: values, labels [N] -> [N, classes].  dtypes: any.
    """
    placed = np.zeros((len(labels), classes), values.dtype)
    rows = np.flatnonzero(labels != ignore_index)
    placed[rows, _np_class_indices(labels[rows], classes)] = values[rows]
    return placed


@_place_class.infer
def _place_class(values, labels, *, classes, ignore_index):
    _check_labels(values, labels)
    return TensorType(values.dtype, (values.shape[0], classes))


@_place_class.vjp
def _place_class(ct, labels, *, ignore_index):
    return _pick_class(ct, labels, ignore_index=ignore_index), None


@_place_class.samples
def _place_class(rand):
    yield rand(3), rand.ints(0, 5, (3,)), dict(classes=5)
    yield rand(2), np.array([-100, 1], np.int32), dict(classes=2)


def _rows_of_classes(name, x, target):
    """Logits as [M, C], class indices as [M], and the shape of the loss of one element."""
    if x.ndim == 1:
        return reshape(x, (1, -1)), reshape(target, (1,)), ()
    if target.ndim != x.ndim - 1 or tuple(target.shape) != (x.shape[0], *x.shape[2:]):
        raise errors.value_error(
            f"{name}: target must have shape {(x.shape[0], *x.shape[2:])}"
            f" for an input of shape {tuple(x.shape)}, got {tuple(target.shape)}"
        )
    if x.ndim > 2:
        x = transpose(x, (0, *range(2, x.ndim), 1))
    return reshape(x, (-1, x.shape[-1])), reshape(target, (-1,)), tuple(target.shape)


def _nll_rows(name, log_p, labels, shape, weight, ignore_index, reduction, label_smoothing):
    """Negative log likelihood of rows of log-probabilities; the common end of cross_entropy and nll_loss."""
    counted = cast(labels != ignore_index, log_p.dtype)
    if weight is not None:
        safe = _masks.where(labels == ignore_index, 0, labels)
        sample_weight = _index.gather(weight, safe, 0) * counted
    else:
        sample_weight = counted
    loss = -_pick_class(log_p, labels, ignore_index=ignore_index) * sample_weight
    if label_smoothing:
        spread = log_p if weight is None else log_p * weight
        smooth = -_reduce.sum(spread, 1) * counted * (1.0 / log_p.shape[1])
        loss = loss * (1.0 - label_smoothing) + smooth * label_smoothing
    if reduction == "none":
        return reshape(loss, shape)
    total = _reduce.sum(loss)
    return total / _reduce.sum(sample_weight) if reduction == "mean" else total


def cross_entropy(input, target, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0):
    """Cross entropy of logits with class indices (integer `target`) or class
    probabilities (floating `target`).

    Shapes: input [C], [N, C] or [N, C, ...]; target without C for indices, input's for probabilities; weight
    [C] -> target's without C, or [].  Samples of class `ignore_index` count nothing; "mean" divides by the
    weights of the samples that count, for probabilities by their number.
    dtypes: floating input.  Errors: ValueError if shapes disagree or a label is out of range.
    """
    _check_reduction("cross_entropy", reduction)
    if not 0.0 <= label_smoothing <= 1.0:
        raise errors.value_error(f"cross_entropy: label_smoothing must be in [0, 1], got {label_smoothing}")
    if target.dtype.is_floating:
        return _cross_entropy_of_probabilities(input, target, weight, reduction, label_smoothing)
    rows, labels, shape = _rows_of_classes("cross_entropy", input, target)
    if weight is None and not label_smoothing:
        loss = _sparse_cross_entropy(rows, labels, reduction=reduction, ignore_index=ignore_index)[0]
        return reshape(loss, shape) if reduction == "none" else loss
    log_p = _softmaxes.log_softmax(rows, axis=1)
    return _nll_rows("cross_entropy", log_p, labels, shape, weight, ignore_index, reduction, label_smoothing)


def _cross_entropy_of_probabilities(input, target, weight, reduction, label_smoothing):
    _check_same_shape("cross_entropy", input, target)
    axis = 0 if input.ndim == 1 else 1
    if label_smoothing:
        target = target * (1.0 - label_smoothing) + label_smoothing / input.shape[axis]
    if weight is not None:
        target = target * reshape(weight, (-1,) + (1,) * (input.ndim - 1 - axis))
    loss = -_reduce.sum(_softmaxes.log_softmax(input, axis=axis) * target, axis)
    return _reduced("cross_entropy", loss, reduction)


def nll_loss(inputs, target, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0):
    """Negative log likelihood of class indices: ``-weight[target] * inputs[target]`` of log-probabilities.

    Shapes: inputs [C], [N, C] or [N, C, ...], target without C, weight [C] -> target's or [].
    dtypes: floating.
    Errors: ValueError if shapes disagree or a label is out of range.
    """
    _check_reduction("nll_loss", reduction)
    rows, labels, shape = _rows_of_classes("nll_loss", inputs, target)
    return _nll_rows("nll_loss", rows, labels, shape, weight, ignore_index, reduction, label_smoothing)


# ------------------------------------------------------------------------ regression


@op(name="squared_error")
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
    input, target = _floating_pair(input, target)
    if tuple(input.shape) != tuple(target.shape):
        return _reduced("mse_loss", _math.square(input - target), reduction)
    return _squared_error(input, target, reduction=reduction)


def _floating_pair(x, y):
    """Both operands in their common floating dtype."""
    from mycelia import dtypes

    dtype = dtypes.promote(x.dtype, y.dtype)
    dtype = dtype if dtype.is_floating else dtypes.float32
    return tuple(v if v.dtype is dtype else cast(v, dtype) for v in (x, y))


def l1_loss(input, target, reduction="mean"):
    """Mean absolute error: ``|input - target|``, reduced.

    Shapes: input and target equal or broadcastable -> [] or theirs.  dtypes: real, integers count as float32.
    """
    input, target = _floating_pair(input, target)
    return _reduced("l1_loss", _math.abs(input - target), reduction)


@op(infer=same(), name="smooth_l1")
def _smooth_l1(d, *, beta: "float" = 1.0):
    """``d^2 / (2 * beta)`` where ``|d| < beta``, else ``|d| - beta / 2``.

    Shapes: any -> same.  dtypes: floating.
    """
    a = np.abs(d)
    return np.where(a < beta, 0.5 * d * d / beta, a - 0.5 * beta).astype(d.dtype)


@_smooth_l1.vjp
def _smooth_l1(ct, d, *, beta):
    return ct * _activation._hardtanh(d * (1.0 / beta))


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
    return _reduced("huber_loss", delta * _smooth_l1(input - target, beta=float(delta)), reduction)


# ------------------------------------------------------------------------ binary cross entropy

_TINY = 1e-12  # keeps the logarithm finite at probabilities of 0 and 1


@op(infer=same(), name="binary_cross_entropy")
def _binary_cross_entropy(logits, labels):
    """``-(labels * log(p) + (1 - labels) * log(1 - p))`` of probabilities p = `logits`,
    logarithms cut at log(1e-12).

    Shapes: logits, labels equal -> same.  dtypes: floating.
    """
    return -(
        labels * np.log(np.maximum(logits, _TINY)) + (1 - labels) * np.log(np.maximum(1 - logits, _TINY))
    )


@_binary_cross_entropy.vjp
def _binary_cross_entropy(ct, logits, labels, needs):
    d_logits = ct * (logits - labels) / _clipping.maximum(logits * (1.0 - logits), _TINY)
    if not needs[1]:
        return d_logits, None
    ratio = _math.log(_clipping.maximum(1.0 - logits, _TINY)) - _math.log(_clipping.maximum(logits, _TINY))
    return d_logits, ct * ratio


@_binary_cross_entropy.samples
def _binary_cross_entropy(rand):
    yield rand(3, 5, low=0.1, high=0.9), rand(3, 5, low=0, high=1)
    yield rand(0), rand(0)


def binary_cross_entropy(logits, labels, weight=None, reduction="mean"):
    """Cross entropy of two classes from probabilities:
    ``-w * (labels * log(p) + (1 - labels) * log(1 - p))``.

    Shapes: logits (probabilities), labels and weight equal -> theirs or [].  dtypes: floating.
    """
    _check_same_shape("binary_cross_entropy", logits, labels)
    loss = _binary_cross_entropy(logits, labels)
    return _reduced("binary_cross_entropy", loss if weight is None else loss * weight, reduction)


@op(infer=same(), name="sigmoid_cross_entropy_with_logits", mindir="SigmoidCrossEntropyWithLogits")
def _sigmoid_cross_entropy(logits, label):
    """Cross entropy of two classes from logits: ``max(x, 0) - x * label + log(1 + exp(-|x|))``.

    Shapes: logits, label equal -> same.  dtypes: floating.
    """
    return np.maximum(logits, 0) - logits * label + np.log1p(np.exp(-np.abs(logits)))


@_sigmoid_cross_entropy.vjp
def _sigmoid_cross_entropy(ct, logits, label):
    return ct * (_activation.sigmoid(logits) - label), -ct * logits


@_sigmoid_cross_entropy.samples
def _sigmoid_cross_entropy(rand):
    yield rand(3, 5), rand(3, 5)
    yield rand(7, low=-200, high=200), rand(7), dict(_grad=False)
    yield rand(0), rand(0)


def binary_cross_entropy_with_logits(input, target, weight=None, pos_weight=None, reduction="mean"):
    """Cross entropy of two classes from logits, `pos_weight` multiplying the term of the positive class.

    Shapes: input, target equal; weight and pos_weight broadcast to them -> theirs or [].  dtypes: floating.
    """
    _check_same_shape("binary_cross_entropy_with_logits", input, target)
    if pos_weight is None:
        loss = _sigmoid_cross_entropy(input, target)
    else:
        factor = (pos_weight - 1.0) * target + 1.0
        loss = (1.0 - target) * input + factor * _activation.softplus(-input)
    return _reduced("binary_cross_entropy_with_logits", loss if weight is None else loss * weight, reduction)


# ------------------------------------------------------------------------ divergence, likelihood


@op(infer=same(), name="kl_div")
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
        _math.log(_masks.where(positive, labels, 1.0)) + 1.0 - logits
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
        return _reduce.sum(loss) * (1.0 / max(1, logits.shape[0]))
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
    variance = _clipping.maximum(var, eps)
    loss = 0.5 * (_math.log(variance) + _math.square(x - target) / variance)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return _reduced("gaussian_nll_loss", loss, reduction)


def _poisson_nll_loss(input, target, log_input=True, full=False, eps=1e-8, reduction="mean"):
    """Negative log likelihood of a Poisson distribution: ``exp(x) - target * x``, or
    ``x - target * log(x + eps)``.

    `full` adds Stirling's formula for ``log(target!)`` where target exceeds 1.
    Shapes: input and target broadcast -> theirs or [].  dtypes: floating.
    """
    loss = _math.exp(input) - target * input if log_input else input - target * _math.log(input + eps)
    if full:
        safe = _clipping.maximum(target, 1.0)
        stirling = safe * _math.log(safe) - safe + 0.5 * _math.log(2 * math.pi * safe)
        loss = loss + stirling * (target > 1.0)
    return _reduced("poisson_nll_loss", loss, reduction)


# ------------------------------------------------------------------------ margins


def _hinge(x):
    return _clipping.maximum(x, 0.0)


def cosine_similarity(x1, x2, dim=1, eps=1e-08):
    """Cosine of the angle along `dim`: ``sum(x1 * x2) / max(|x1| * |x2|, eps)``.

    Shapes: x1 and x2 broadcast -> theirs without `dim`.  dtypes: floating.
    """
    squares = _reduce.sum(x1 * x1, dim) * _reduce.sum(x2 * x2, dim)
    return _reduce.sum(x1 * x2, dim) * _math.rsqrt(_clipping.maximum(squares, eps * eps))


def cosine_embedding_loss(input1, input2, target, margin=0.0, reduction="mean"):
    """``1 - cos(input1, input2)`` for pairs with target 1, ``max(0, cos - margin)`` for -1.

    Shapes: input1, input2 [N, D], target [N] -> [N] or [].  dtypes: floating.
    Errors: ValueError if `margin` is outside [-1, 1].
    """
    if not -1.0 <= margin <= 1.0:
        raise errors.value_error(f"cosine_embedding_loss: margin must be in [-1, 1], got {margin}")
    _check_same_shape("cosine_embedding_loss", input1, input2)
    cosine = cosine_similarity(input1, input2, input1.ndim - 1 if input1.ndim < 2 else 1, 1e-12)
    loss = _masks.where(target == 1, 1.0 - cosine, _hinge(cosine - margin) * (target == -1))
    return _reduced("cosine_embedding_loss", loss, reduction)


def margin_ranking_loss(input1, input2, target, margin=0.0, reduction="mean"):
    """``max(0, -target * (input1 - input2) + margin)``: target 1 wants input1 larger, -1 smaller.

    Shapes: equal -> theirs or [].  dtypes: floating.
    """
    _check_same_shape("margin_ranking_loss", input1, input2)
    return _reduced("margin_ranking_loss", _hinge(target * (input2 - input1) + margin), reduction)


def hinge_embedding_loss(inputs, targets, margin=1.0, reduction="mean"):
    """``inputs`` where the target is 1, ``max(0, margin - inputs)`` where it is -1.

    Shapes: inputs and targets broadcast -> theirs or [].  dtypes: floating.
    """
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
        return _math.sqrt(_reduce.sum(difference * difference, -1))
    if p == 1:
        return _reduce.sum(difference, -1)
    return _math.pow(_reduce.sum(_math.pow(difference, float(p)), -1), 1.0 / p)


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
        loss = loss * _index.gather(weight, labels, 0)
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
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss", "cosine_similarity",
    "cross_entropy", "gaussian_nll_loss", "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss",
    "margin_ranking_loss", "mse_loss", "multi_margin_loss", "multilabel_soft_margin_loss", "nll_loss",
    "smooth_l1_loss", "soft_margin_loss", "triplet_margin_loss",
]  # fmt: skip
