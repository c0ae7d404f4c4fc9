"""Losses of probabilities and scores: cross-entropy of classes, dense and sparse, and of two outcomes.

Those of a softmax are fused: one pass over the logits gives the loss and its gradient.
"""

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops import batch_rules as _batch
from mycelia.engine.ops.arrays import gathering as _gathering
from mycelia.engine.ops.arrays import masks as _masks
from mycelia.engine.ops.arrays.axes import transpose
from mycelia.engine.ops.arrays.shape import reshape
from mycelia.engine.ops.define import op
from mycelia.engine.ops.elementwise import activation as _activation
from mycelia.engine.ops.elementwise import clipping as _clipping
from mycelia.engine.ops.elementwise import logarithms as _logarithms
from mycelia.engine.ops.elementwise.cast import cast
from mycelia.engine.ops.infer import same
from mycelia.engine.ops.nn_ops.loss_reduction import _check_reduction, _check_same_shape, _reduced
from mycelia.engine.ops.reductions import reduce as _reduce
from mycelia.engine.ops.reductions import softmaxes as _softmaxes

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


@op(
    name="softmax_cross_entropy_with_logits",
    outputs=2,
    mindir="SoftmaxCrossEntropyWithLogits",
    mindir_attributes=True,
    batch=_batch.joined(0, 1),
)
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


@op(name="pick_class", batch=_batch.joined(0, 1))
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


@op(name="place_class", batch=_batch.joined(0, 1))
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
        sample_weight = _gathering.gather(weight, safe, 0) * counted
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


# ------------------------------------------------------------------------ binary cross entropy

_TINY = 1e-12  # keeps the logarithm finite at probabilities of 0 and 1


@op(elementwise="same", infer=same(), name="binary_cross_entropy")
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
    ratio = _logarithms.log(_clipping.maximum(1.0 - logits, _TINY)) - _logarithms.log(
        _clipping.maximum(logits, _TINY)
    )
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


@op(
    elementwise="same",
    infer=same(),
    name="sigmoid_cross_entropy_with_logits",
    mindir="SigmoidCrossEntropyWithLogits",
    mindir_attributes=True,
)
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


__all__ = ["binary_cross_entropy", "binary_cross_entropy_with_logits", "cross_entropy", "nll_loss"]
