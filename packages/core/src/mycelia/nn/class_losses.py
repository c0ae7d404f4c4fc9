"""Losses over several classes: Dice of each class, sampled softmax, margins between labels."""

from __future__ import annotations

from mycelia.engine import ops
from mycelia.engine.base import errors
from mycelia.engine.base.dtypes import int32, int64
from mycelia.engine.tensors.tensor import Tensor
from mycelia.nn.activation import get_activation
from mycelia.nn.cell import Cell
from mycelia.nn.loss import DiceLoss, LossBase


class MultiClassDiceLoss(LossBase):
    """The mean of the Dice losses of each class. Shapes: logits, label [N, C, ...] -> [].

    `weights`: [C, n], a factor per class; `ignore_indiex`: a class that does not count; `activation`: of the
    logits, a name or a Cell.
    """

    _names = ("softmax", "logsoftmax", "relu", "relu6", "tanh", "sigmoid")

    def __init__(self, weights=None, ignore_indiex=None, activation="softmax"):
        super().__init__()
        owner = "MultiClassDiceLoss"
        if weights is not None and not isinstance(weights, Tensor):
            raise errors.type_error(owner, f"weights must be a Tensor, but got {type(weights).__name__}")
        if weights is not None and weights.ndim != 2:
            raise errors.value_error(owner, f"weights must have rank 2, but have {weights.ndim}")
        if ignore_indiex is not None and not isinstance(ignore_indiex, int):
            raise errors.type_error(owner, f"ignore_indiex must be an int, but got {ignore_indiex!r}")
        if isinstance(activation, str) and activation not in self._names:
            raise errors.one_of(activation, list(self._names), subject=owner, what="activation")
        self.binarydiceloss = DiceLoss(smooth=1e-5)
        self.weights, self.ignore_indiex = weights, ignore_indiex
        self.activation = get_activation(activation) if isinstance(activation, str) else activation
        if self.activation is not None and not isinstance(self.activation, Cell):
            raise errors.type_error(owner, f"activation must be a name or a Cell, but got {activation!r}")

    def construct(self, logits, label):
        for name, x in (("logits", logits), ("labels", label)):
            if not isinstance(x, Tensor):
                raise errors.type_error(self.cls_name, f"{name} must be a Tensor, but got {type(x).__name__}")
        if logits.shape != label.shape or logits.ndim < 2:
            raise errors.shape_error(
                self.cls_name, f"logits {logits.shape} and label {label.shape} must be one [N, C, ...]"
            )
        classes = label.shape[1]
        if self.weights is not None and self.weights.shape[0] != classes:
            raise errors.value_error(
                self.cls_name, f"weights must have {classes} rows, but have {self.weights.shape[0]}"
            )
        if self.activation is not None:
            logits = self.activation(logits)
        total = 0
        for i in range(classes):
            if i != self.ignore_indiex:
                loss = self.binarydiceloss(logits[:, i], label[:, i])
                total = total + (loss if self.weights is None else loss * self.weights[i])
        return total / classes


class SampledSoftmaxLoss(LossBase):
    """Cross entropy against the true and some sampled classes only (Jean et al. 2015).

    Shapes: weights [classes, dim], biases [classes], labels [N, num_true] of int, logits [N, dim] -> [N],
    then reduced.  `sampled_values`: (classes, expected count of the true ones, of the sampled ones) in place
    of draws.
    """

    def __init__(
        self,
        num_sampled,
        num_classes,
        num_true=1,
        sampled_values=None,
        remove_accidental_hits=True,
        seed=0,
        reduction="none",
    ):
        super().__init__(reduction)
        owner = "SampledSoftmaxLoss"
        if num_true < 1 or seed < 0:
            raise errors.value_error(
                owner, f"num_true must be positive and seed at least 0, but got {num_true}, {seed}"
            )
        if num_sampled > num_classes or num_true > num_classes:
            raise errors.value_error(
                owner, f"num_sampled {num_sampled} and num_true {num_true} must be at most {num_classes}"
            )
        if sampled_values is not None:
            if not isinstance(sampled_values, (list, tuple)):
                raise errors.type_error(owner, f"sampled_values must be a tuple, but got {sampled_values!r}")
            if len(sampled_values) != 3:
                raise errors.value_error(
                    owner, f"sampled_values has 3 members, but got {len(sampled_values)}"
                )
        self.num_sampled, self.num_classes, self.num_true = num_sampled, num_classes, num_true
        self.sampled_values, self.seed = sampled_values, seed
        self.remove_accidental_hits = remove_accidental_hits

    def construct(self, weights, biases, labels, logits):
        if labels.dtype not in (int32, int64):
            raise errors.type_error(self.cls_name, f"labels must be int32 or int64, but are {labels.dtype}")
        labels = labels.reshape((-1, self.num_true))
        sampled, true_count, sampled_count = self.sampled_values or ops.uniform_candidate_sampler(
            labels.astype(int64),
            self.num_true,
            self.num_sampled,
            True,
            self.num_classes,
            self.seed,
            self.remove_accidental_hits,
        )
        sampled = sampled.astype(labels.dtype)
        own = ops.gather(weights, labels, 0)
        true_logits = ops.sum(own * ops.expand_dims(logits, 1), -1) + ops.gather(biases, labels, 0)
        others = ops.matmul(logits, ops.swapaxes(ops.gather(weights, sampled, 0), 0, 1))
        others = others + ops.gather(biases, sampled, 0)
        # Subtracting the logarithm of the expected counts undoes that some classes are drawn more often.
        true_logits = true_logits - ops.log(true_count).reshape((-1, self.num_true))
        others = others - ops.log(sampled_count)
        scores = ops.cat([true_logits, others], 1)
        return self.get_loss(-ops.sum(ops.log_softmax(scores, 1)[:, : self.num_true], 1) / self.num_true)


class MultilabelMarginLoss(LossBase):
    """Hinge between each target class and each other one; targets end at the first -1.

    Shapes: logits and target [C] or [N, C].
    """

    def construct(self, input, target):
        return ops.multilabel_margin_loss(input, target, self.reduction)
