"""ONNX's losses."""

from __future__ import annotations

from typing import Any

import mycelia as ms
from mycelia import ops
from mycelia_lite.converter.importers.onnx.calls import (
    Call,
    cast,
    operator,
    scalar,
    shape_of,
)


def _likelihood_loss(call: Call, scores: Any, target: Any, weight: Any) -> Any:
    """- weight[target] * scores[target] along axis 1, reduced; targets `ignore_index` count nothing."""
    reduction = call.choice("reduction", "mean", ("none", "sum", "mean"))
    ignored = call.get("ignore_index")
    target = cast(target, ms.int64)
    classes = shape_of(scores)[1]
    count = None
    if ignored is not None:
        counts = ops.not_equal(target, scalar(ignored, target))
        count = cast(counts, scores.dtype)
        target = ops.where(counts, target, scalar(0, target))
    shape = shape_of(target)
    index = ops.reshape(target, (shape[0], 1, *shape[1:]))
    picked = ops.reshape(ops.gather_elements(scores, 1, index), shape)
    loss = ops.neg(picked)
    if weight is not None:
        if shape_of(weight) != (classes,):
            raise call.fail(f"weights of shape {list(shape_of(weight))} for {classes} classes")
        each = ops.gather(weight, target, 0)
        count = each if count is None else ops.mul(count, each)
    if count is not None:
        loss = ops.mul(loss, count)
    if reduction == "none":
        return loss
    axes = tuple(range(len(shape)))
    total = ops.sum(loss, axes)
    if reduction == "sum":
        return total
    return ops.mean(loss, axes) if count is None else ops.div(total, ops.sum(count, axes))


@operator("NegativeLogLikelihoodLoss")
def _nll_loss(call, scores, target, weight=None):
    return _likelihood_loss(call, scores, target, weight)


@operator("SoftmaxCrossEntropyLoss")
def _cross_entropy(call, scores, target, weight=None):
    """The loss, and the logarithms of the probabilities."""
    scores = ops.log_softmax(scores, 1)
    return _likelihood_loss(call, scores, target, weight), scores
