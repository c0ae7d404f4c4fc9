"""Losses; several of them return their gradient too."""

from mycelia import ops
from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.nn_ops.cross_entropy import (
    _sigmoid_cross_entropy,
    _softmax_cross_entropy,
    _sparse_cross_entropy,
)
from mycelia.engine.ops.nn_ops.ctc import _ctc_loss, _ctc_loss_of_logits
from mycelia.engine.ops.nn_ops.loss_reduction import _check_same_shape
from mycelia.ops.primitives.checks import anything, boolean, choice, integer, natural, real, within
from mycelia.ops.primitives.define import primitive

_reduction = choice("none", "mean", "sum")


@primitive
def SoftmaxCrossEntropyWithLogits(logits, labels):
    """Cross entropy of class probabilities and its gradient. Shapes: [N, C] twice -> [N], [N, C]."""
    return _softmax_cross_entropy(logits, labels)


@primitive
def SparseSoftmaxCrossEntropyWithLogits(logits, labels, *, is_grad: boolean = False):
    """Mean cross entropy of class indices, or with `is_grad` its gradient. Shapes: [N, C], [N]."""
    return _sparse_cross_entropy(logits, labels)[int(is_grad)]


@primitive
def SparseSoftmaxCrossEntropyWithLogitsV2(logits, labels):
    """Cross entropy of class indices and its gradient. Shapes: [N, C], [N] -> [N], [N, C]."""
    classes = ops.cast(ops.arange(logits.shape[-1]), labels.dtype)
    return _softmax_cross_entropy(logits, ops.cast(ops.expand_dims(labels, -1) == classes, logits.dtype))


@primitive
def SigmoidCrossEntropyWithLogits(logits, label):
    """Cross entropy of two classes from logits, elementwise. Shapes: equal. Errors: ValueError otherwise."""
    _check_same_shape("SigmoidCrossEntropyWithLogits", logits, label)
    return _sigmoid_cross_entropy(logits, label)


@primitive
def BCEWithLogitsLoss(input, target, weight=None, posWeight=None, *, reduction: _reduction = "mean"):
    """Cross entropy of two classes from logits, see `ops.binary_cross_entropy_with_logits`."""
    return ops.binary_cross_entropy_with_logits(input, target, weight, posWeight, reduction)


@primitive
def BinaryCrossEntropy(input, target, weight=None, *, reduction: _reduction = "mean"):
    """Cross entropy of two classes from probabilities, see `ops.binary_cross_entropy`."""
    return ops.binary_cross_entropy(input, target, weight, reduction)


@primitive
def KLDivLoss(
    logits, labels, *, reduction: choice("none", "mean", "batchmean", "sum", other=ValueError) = "mean"
):
    """Kullback-Leibler divergence from log-probabilities, see `ops.kl_div`."""
    return ops.kl_div(logits, labels, reduction)


@primitive
def NLLLoss(logits, labels, weight, *, reduction: _reduction = "mean", ignore_index: anything = -100):
    """Negative log likelihood and the weight of all samples that count.

    Shapes: logits (log-probabilities) [N, C], labels [N], weight [C] -> [] or [N], [].
    """
    loss = ops.nll_loss(logits, labels, weight, ignore_index, reduction)
    counted = labels != ignore_index
    weights = ops.gather(weight, ops.where(counted, labels, 0), 0)
    return loss, ops.sum(weights * ops.cast(counted, weight.dtype))


@primitive
def SmoothL1Loss(prediction, target, *, beta: anything = 1.0, reduction: _reduction = "none"):
    """Squared error near zero, absolute error beyond `beta`."""
    return ops.smooth_l1_loss(prediction, target, beta, reduction)


@primitive
def SoftMarginLoss(input, target, *, reduction: _reduction = "mean"):
    """``log(1 + exp(-target * input))``."""
    return ops.soft_margin_loss(input, target, reduction)


@primitive
def MultiMarginLoss(
    x,
    target,
    weight=None,
    *,
    p: within(integer, 1, 2) = 1,
    margin: real = 1.0,
    reduction: _reduction = "mean",
):
    """Hinge over all wrong classes, see `ops.multi_margin_loss`."""
    return ops.multi_margin_loss(x, target, p, margin, weight, reduction)


@primitive
def MultilabelMarginLoss(x, target, *, reduction: _reduction = "mean"):
    """Hinge between each true class and each other one; also which classes are true.

    `target` lists the true classes of a row up to the first -1.
    Shapes: x [N, C] or [C], target the same -> [N] or [], target's. dtypes: target int32.
    """
    if x.shape != target.shape or x.ndim not in (1, 2):
        raise errors.value_error(
            "MultilabelMarginLoss", f"x and target must be [C] or [N, C], got {x.shape} and {target.shape}"
        )
    rows, listed = (ops.reshape(t, (-1, x.shape[-1])) for t in (x, target))
    classes = rows.shape[1]
    valid = ops.cumsum(ops.cast(listed < 0, dtypes.int32), 1) == 0
    safe = ops.where(valid, listed, 0)
    hot = ops.cast(ops.expand_dims(safe, -1) == ops.arange(classes), rows.dtype)
    hot = hot * ops.cast(ops.expand_dims(valid, -1), rows.dtype)
    is_target = ops.amax(hot, 1)
    picked = ops.expand_dims(ops.gather_elements(rows, 1, ops.cast(safe, dtypes.int64)), -1)
    left = ops.relu(1.0 - picked + ops.expand_dims(rows, 1))
    pairs = ops.expand_dims(ops.cast(valid, rows.dtype), -1) * ops.expand_dims(1.0 - is_target, 1)
    loss = ops.sum(left * pairs, (1, 2)) / classes
    if reduction == "none":
        loss = ops.reshape(loss, x.shape[:-1])
    else:
        loss = ops.mean(loss) if reduction == "mean" else ops.sum(loss)
    return loss, ops.cast(ops.reshape(is_target, x.shape), dtypes.int32)


@primitive
def TripletMarginLoss(
    x, positive, negative, margin,
    *, p: integer = 2, swap: boolean = False, eps: real = 1e-6, reduction: _reduction = "mean",
):  # fmt: skip
    """How much farther the negative sample is than the positive, up to `margin`."""
    return ops.triplet_margin_loss(x, positive, negative, margin, p, eps, swap, reduction)


@primitive
def CTCLoss(
    inputs, labels_indices, labels_values, sequence_length,
    *, preprocess_collapse_repeated: boolean = False, ctc_merge_repeated: boolean = True,
    ignore_longer_outputs_than_inputs: boolean = False,
):  # fmt: skip
    """Loss of label sequences without alignment, and its gradient; the last class is the blank.

    Shapes: inputs [T, N, C], labels_indices [K, 2], labels_values [K], sequence_length [N] -> [N], [T, N, C].
    Errors: RuntimeError for more labels than steps.
    """
    return _ctc_loss_of_logits(
        inputs, labels_indices, labels_values, sequence_length, collapse=preprocess_collapse_repeated,
        merged=ctc_merge_repeated, skip_longer=ignore_longer_outputs_than_inputs,
    )  # fmt: skip


@primitive
def CTCLossV2(
    log_probs, targets, input_lengths, target_lengths,
    *, blank: natural = 0, reduction: choice("none") = "none", zero_infinity: boolean = False,
):  # fmt: skip
    """Loss of label sequences without alignment, and the logarithms of the forward probabilities."""
    loss, alpha = _ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=blank)
    return ops.where(loss == float("inf"), 0.0, loss) if zero_infinity else loss, alpha


@primitive
def CTCGreedyDecoder(inputs, sequence_length, *, merge_repeated: boolean = True):
    """The best path, see `ops.ctc_greedy_decoder`."""
    return ops.ctc_greedy_decoder(inputs, sequence_length, merge_repeated)
