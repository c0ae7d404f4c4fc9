"""Loss cells: each calls the function of its formula in `mycelia.ops`."""

from __future__ import annotations

import math

from mycelia.engine.base import errors
from mycelia.engine.base.dtypes import int32
from mycelia.engine.ops.arrays import gathering as _gathering
from mycelia.engine.ops.arrays import masks as _masks
from mycelia.engine.ops.elementwise import clipping as _clipping
from mycelia.engine.ops.elementwise import logarithms as _logarithms
from mycelia.engine.ops.elementwise import math as _math
from mycelia.engine.ops.elementwise import powers as _powers
from mycelia.engine.ops.nn_ops import cross_entropy as _cross_entropy
from mycelia.engine.ops.nn_ops import loss as _loss
from mycelia.engine.ops.nn_ops.loss_reduction import _warn_of_broadcasting
from mycelia.engine.ops.reductions import reduce as _reduce
from mycelia.engine.tensors.tensor import Tensor
from mycelia.nn.cell import Cell
from mycelia.nn.parts import operator


class LossBase(Cell):
    """Base of losses: `get_loss` weights and reduces ('mean', 'sum', 'none') the elements."""

    reduce_mean, reduce_sum = operator("ReduceMean"), operator("ReduceSum")
    mul, cast = operator("Mul"), operator("Cast")

    def __init__(self, reduction: str = "mean"):
        super().__init__()
        if reduction not in ("mean", "sum", "none"):
            raise errors.one_of(
                reduction, ["mean", "sum", "none"], subject=type(self).__name__, what="reduction"
            )
        self.reduction = reduction
        self.reduce = reduction != "none"
        self.average = reduction == "mean"

    def get_axis(self, x) -> tuple[int, ...]:
        """All axes of x."""
        return tuple(range(x.ndim))

    def get_loss(self, x, weights=1.0):
        """``reduce(x * weights)``."""
        if not (isinstance(weights, (int, float)) and weights == 1):
            x = _math.mul(x, weights)
        if not self.reduce:
            return x
        return _reduce.mean(x) if self.average else _reduce.sum(x)


def _simple(name: str, function, doc: str) -> type[LossBase]:
    """A loss of (logits, labels) with `reduction` only."""

    def construct(self, logits, labels):
        return function(logits, labels, reduction=self.reduction)

    return type(
        name,
        (LossBase,),
        {"construct": construct, "__doc__": doc, "__module__": __name__, "__qualname__": name},
    )


MSELoss = _simple("MSELoss", _loss.mse_loss, "``(logits - labels)^2``, reduced.")
L1Loss = _simple("L1Loss", _loss.l1_loss, "``|logits - labels|``, reduced.")
MAELoss = _simple("MAELoss", _loss.l1_loss, "``|logits - labels|``, reduced.")
KLDivLoss = _simple(
    "KLDivLoss", _loss.kl_div, "``labels * (log labels - logits)`` with logits in the log domain, reduced."
)
SoftMarginLoss = _simple(
    "SoftMarginLoss", _loss.soft_margin_loss, "``log(1 + exp(-labels * logits))``, reduced."
)


class RMSELoss(LossBase):
    """Root of the mean squared difference."""

    def __init__(self):
        super().__init__()

    def construct(self, logits, label):
        return _powers.sqrt(_loss.mse_loss(logits, label))


class SmoothL1Loss(LossBase):
    """``0.5 d^2 / beta`` where |d| < beta, else ``|d| - 0.5 beta``, reduced."""

    def __init__(self, beta: float = 1.0, reduction: str = "none"):
        super().__init__(reduction)
        self.beta = beta

    def construct(self, logits, labels):
        return _loss.smooth_l1_loss(logits, labels, self.beta, self.reduction)


class HuberLoss(LossBase):
    """``0.5 d^2`` where |d| <= delta, else ``delta * (|d| - 0.5 delta)``, reduced."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0):
        super().__init__(reduction)
        self.delta = delta

    def construct(self, logits, labels):
        return _loss.huber_loss(logits, labels, self.reduction, self.delta)


class CrossEntropyLoss(LossBase):
    """Cross entropy of logits with class indices or class probabilities; see `ops.cross_entropy`."""

    def __init__(
        self, weight=None, ignore_index: int = -100, reduction: str = "mean", label_smoothing: float = 0.0
    ):
        super().__init__(reduction)
        self.weight, self.ignore_index, self.label_smoothing = weight, ignore_index, label_smoothing

    def construct(self, logits, labels):
        return _cross_entropy.cross_entropy(
            logits, labels, self.weight, self.ignore_index, self.reduction, self.label_smoothing
        )


class NLLLoss(LossBase):
    """Negative log likelihood of log probabilities; see `ops.nll_loss`."""

    def __init__(self, weight=None, ignore_index: int = -100, reduction: str = "mean"):
        super().__init__(reduction)
        self.weight, self.ignore_index = weight, ignore_index

    def construct(self, logits, labels):
        return _cross_entropy.nll_loss(logits, labels, self.weight, self.ignore_index, self.reduction)


class SoftmaxCrossEntropyWithLogits(LossBase):
    """Softmax cross entropy a row.

    Shapes: logits [N, C]; labels [N] of class indices with `sparse`,
    else [N, C] of probabilities -> [N] or [].
    """

    def __init__(self, sparse: bool = False, reduction: str = "none"):
        super().__init__(reduction)
        if not isinstance(sparse, bool):
            raise errors.type_error(
                "SoftmaxCrossEntropyWithLogits", f"sparse must be a bool, but got {sparse!r}"
            )
        self.sparse = sparse

    def construct(self, logits, labels):
        if logits.ndim != 2:
            raise errors.shape_error(
                "SoftmaxCrossEntropyWithLogits",
                f"logits must be [N, C], but the shape is {list(logits.shape)}",
            )
        if self.sparse:
            return _cross_entropy._sparse_cross_entropy(logits, labels, reduction=self.reduction)[0]
        return self.get_loss(_cross_entropy._softmax_cross_entropy(logits, labels)[0])


class BCELoss(LossBase):
    """Binary cross entropy of probabilities, reduced."""

    def __init__(self, weight=None, reduction: str = "mean"):
        super().__init__(reduction)
        self.weight = weight

    def construct(self, logits, labels):
        return _cross_entropy.binary_cross_entropy(logits, labels, self.weight, self.reduction)


class BCEWithLogitsLoss(LossBase):
    """Binary cross entropy of logits, reduced."""

    def __init__(self, reduction: str = "mean", weight=None, pos_weight=None):
        super().__init__(reduction)
        self.weight, self.pos_weight = weight, pos_weight

    def construct(self, logits, labels):
        return _cross_entropy.binary_cross_entropy_with_logits(
            logits, labels, self.weight, self.pos_weight, self.reduction
        )


class CosineEmbeddingLoss(LossBase):
    """``1 - cos`` for labels of 1, ``max(0, cos - margin)`` for -1, reduced."""

    def __init__(self, margin: float = 0.0, reduction: str = "mean"):
        super().__init__(reduction)
        self.margin = margin

    def construct(self, logits_x1, logits_x2, labels):
        return _loss.cosine_embedding_loss(logits_x1, logits_x2, labels, self.margin, self.reduction)


class MarginRankingLoss(LossBase):
    """``max(0, -target * (x1 - x2) + margin)``, reduced."""

    def __init__(self, margin: float = 0.0, reduction: str = "mean"):
        super().__init__(reduction)
        self.margin = margin

    def construct(self, input1, input2, target):
        return _loss.margin_ranking_loss(input1, input2, target, self.margin, self.reduction)


class HingeEmbeddingLoss(LossBase):
    """``x`` for labels of 1, ``max(0, margin - x)`` for -1, reduced."""

    def __init__(self, margin: float = 1.0, reduction: str = "mean"):
        super().__init__(reduction)
        self.margin = margin

    def construct(self, logits, labels):
        return _loss.hinge_embedding_loss(logits, labels, self.margin, self.reduction)


class TripletMarginLoss(LossBase):
    """``max(0, d(anchor, positive) - d(anchor, negative) + margin)``, reduced."""

    def __init__(
        self, p: int = 2, swap: bool = False, eps: float = 1e-6, reduction: str = "mean", margin: float = 1.0
    ):
        super().__init__(reduction)
        self.p, self.swap, self.eps, self.margin = p, swap, eps, margin

    def construct(self, x, positive, negative, margin=None):
        margin = self.margin if margin is None else margin
        return _loss.triplet_margin_loss(
            x, positive, negative, margin, self.p, self.eps, self.swap, self.reduction
        )


class MultiMarginLoss(LossBase):
    """Multi-class hinge loss; see `ops.multi_margin_loss`."""

    def __init__(self, p: int = 1, margin: float = 1.0, reduction: str = "mean", weight=None):
        super().__init__(reduction)
        self.p, self.margin, self.weight = p, margin, weight

    def construct(self, x, target, weight=None):
        return _loss.multi_margin_loss(
            x, target, self.p, self.margin, self.weight if weight is None else weight, self.reduction
        )


class MultiLabelSoftMarginLoss(LossBase):
    """Mean of binary cross entropies over classes; see `ops.multilabel_soft_margin_loss`."""

    def __init__(self, weight=None, reduction: str = "mean"):
        super().__init__(reduction)
        self.weight = weight

    def construct(self, x, target):
        return _loss.multilabel_soft_margin_loss(x, target, self.weight, self.reduction)


class GaussianNLLLoss(LossBase):
    """Negative log likelihood of a normal distribution; see `ops.gaussian_nll_loss`."""

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean"):
        super().__init__(reduction)
        self.full, self.eps = full, eps

    def construct(self, logits, labels, var):
        return _loss.gaussian_nll_loss(logits, labels, var, self.full, self.eps, self.reduction)


class PoissonNLLLoss(LossBase):
    """``exp(x) - target * x`` (`log_input`) or ``x - target * log(x + eps)``, reduced.

    `full` adds Stirling's approximation ``target log target - target + 0.5 log(2 pi target)``
    where target > 1.
    """

    def __init__(
        self, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean"
    ):
        super().__init__(reduction)
        self.log_input, self.full, self.eps = log_input, full, eps

    def construct(self, input, target):
        if input.ndim == 0 or target.ndim == 0:
            raise errors.value_error("PoissonNLLLoss", "input and target must have at least one dimension")
        _warn_of_broadcasting("poisson_nll_loss", input, target)
        if self.log_input:
            loss = _powers.exp(input) - target * input
        else:
            loss = input - target * _logarithms.log(input + self.eps)
        if self.full:
            large = target > 1
            safe = _masks.where(large, target, 1.0)  # the logarithm of what is not used must be finite too
            stirling = safe * _logarithms.log(safe) - safe + 0.5 * _logarithms.log(2 * math.pi * safe)
            loss = loss + _masks.where(large, stirling, 0.0)
        return self.get_loss(loss)


class TripletMarginWithDistanceLoss(LossBase):
    """``max(0, d(x, positive) - d(x, negative) + margin)`` for any `distance_function`, reduced.

    The default distance is ``|a - b|_2`` with 1e-6 added to the difference. `swap` takes the smaller of
    d(x, negative) and d(positive, negative).
    """

    def __init__(
        self, distance_function=None, swap: bool = False, reduction: str = "mean", margin: float = 1.0
    ):
        super().__init__(reduction)
        if not isinstance(margin, float):
            raise errors.type_error(
                "TripletMarginWithDistanceLoss", f"margin must be a float, but got {margin!r}"
            )
        if margin <= 0:
            raise errors.value_error(
                "TripletMarginWithDistanceLoss", f"margin must be positive, but got {margin}"
            )
        if not isinstance(swap, bool):
            raise errors.type_error("TripletMarginWithDistanceLoss", f"swap must be a bool, but got {swap!r}")
        if distance_function is not None and not callable(distance_function):
            raise errors.type_error(
                "TripletMarginWithDistanceLoss", "distance_function must be callable or None"
            )
        self.distance_function = distance_function or _euclidean
        self.swap, self.margin = swap, margin

    def construct(self, x, positive, negative):
        near = self.distance_function(x, positive)
        far = self.distance_function(x, negative)
        if self.swap:
            far = _clipping.minimum(far, self.distance_function(positive, negative))
        return self.get_loss(_clipping.maximum(near - far + self.margin, 0.0))


def _euclidean(a, b):
    difference = a - b + 1e-6
    return _powers.sqrt(_reduce.sum(difference * difference, -1))


class CTCLoss(LossBase):
    """Loss of label sequences without alignment; see `ops.ctc_loss`.

    Shapes: log_probs [T, N, C], targets [N, S], lengths [N] -> [] or [N]; without batch [T, C], [S] -> [].
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False):
        super().__init__(reduction)
        self.blank, self.zero_infinity = blank, zero_infinity

    def construct(self, log_probs, targets, input_lengths, target_lengths):
        from mycelia.engine.ops.nn_ops.ctc import ctc_loss

        single = log_probs.ndim == 2
        if single:
            log_probs, targets = log_probs.expand_dims(1), targets.reshape((1, -1))
        loss, _ = ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )
        return loss.reshape(()) if single else loss


class DiceLoss(LossBase):
    """``1 - 2 sum(p y) / (sum p^2 + sum y^2 + smooth)`` over all elements -> []."""

    def __init__(self, smooth: float = 1e-5):
        super().__init__()
        if not isinstance(smooth, float) or smooth <= 0:
            raise errors.value_error("DiceLoss", f"smooth must be a positive float, but got {smooth!r}")
        self.smooth = smooth

    def construct(self, logits, label):
        if logits.shape != label.shape:
            raise errors.shape_error(
                "DiceLoss", f"logits {list(logits.shape)} and label {list(label.shape)} must have one shape"
            )
        overlap = _reduce.sum(logits * label)
        area = _reduce.sum(logits * logits) + _reduce.sum(label * label)
        return 1 - 2 * overlap / (area + self.smooth)


class FocalLoss(LossBase):
    """``-(1 - p)^gamma log p`` of the true class, which hard samples dominate (Lin et al. 2017).

    Shapes: logits [N, C, ...]; labels [N, 1, ...] of classes or [N, C, ...] one-hot -> [N] means, then
    reduced. `weight`: a factor per class.
    """

    def __init__(self, weight=None, gamma: float = 2.0, reduction: str = "mean"):
        super().__init__(reduction)
        if isinstance(gamma, bool) or not isinstance(gamma, (int, float)):
            raise errors.type_error("FocalLoss", f"gamma must be a float, but got {gamma!r}")
        if weight is not None and not isinstance(weight, Tensor):
            raise errors.type_error(
                "FocalLoss", f"weight must be a Tensor or None, but got {type(weight).__name__}"
            )
        self.weight, self.gamma = weight, float(gamma)

    def construct(self, logits, labels):
        from mycelia.engine.ops.arrays.shape import reshape
        from mycelia.engine.ops.elementwise.cast import cast
        from mycelia.engine.ops.reductions.softmaxes import log_softmax

        if logits.ndim < 2 or labels.ndim != logits.ndim or labels.shape[1] not in (1, logits.shape[1]):
            raise errors.shape_error(
                "FocalLoss",
                "logits must be [N, C, ...] and labels [N, 1, ...] or [N, C, ...], but the shapes are "
                f"{logits.shape} and {labels.shape}",
            )
        batch, classes = logits.shape[:2]
        known = log_softmax(reshape(logits, (batch, classes, -1)), 1)
        labels = reshape(labels, (batch, labels.shape[1], -1))
        weight = None if self.weight is None else reshape(cast(self.weight, logits.dtype), (1, classes, 1))
        if labels.shape[1] == 1:
            labels = cast(labels, int32)
            if weight is not None:
                weight = _gathering.gather_elements(_math.mul(known * 0.0 + 1.0, weight), 1, labels)
            known = _gathering.gather_elements(known, 1, labels)
            loss = known
        else:
            loss = known * cast(labels, logits.dtype)
        if weight is not None:
            loss = loss * weight
        rest = _powers.pow(1.0 - _powers.exp(known), self.gamma)
        return self.get_loss(_reduce.mean(-rest * loss, (1, 2)))
