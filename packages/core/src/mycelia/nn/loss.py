"""Loss cells: each calls the function of its formula in `mycelia.ops`."""

from __future__ import annotations

from mycelia import errors
from mycelia.nn.cell import Cell
from mycelia.ops import loss as _loss
from mycelia.ops import math as _math
from mycelia.ops import reduce as _reduce


class LossBase(Cell):
    """Base of losses: `get_loss` weights and reduces ('mean', 'sum', 'none') the elements."""

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
        return _math.sqrt(_loss.mse_loss(logits, label))


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
        return _loss.cross_entropy(
            logits, labels, self.weight, self.ignore_index, self.reduction, self.label_smoothing
        )


class NLLLoss(LossBase):
    """Negative log likelihood of log probabilities; see `ops.nll_loss`."""

    def __init__(self, weight=None, ignore_index: int = -100, reduction: str = "mean"):
        super().__init__(reduction)
        self.weight, self.ignore_index = weight, ignore_index

    def construct(self, logits, labels):
        return _loss.nll_loss(logits, labels, self.weight, self.ignore_index, self.reduction)


class SoftmaxCrossEntropyWithLogits(LossBase):
    """Softmax cross entropy a row.

    Shapes: logits [N, C]; labels [N] of class indices with `sparse`, else [N, C] of probabilities -> [N] or [].
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
            return _loss._sparse_cross_entropy(logits, labels, reduction=self.reduction)[0]
        return self.get_loss(_loss._softmax_cross_entropy(logits, labels)[0])


class BCELoss(LossBase):
    """Binary cross entropy of probabilities, reduced."""

    def __init__(self, weight=None, reduction: str = "mean"):
        super().__init__(reduction)
        self.weight = weight

    def construct(self, logits, labels):
        return _loss.binary_cross_entropy(logits, labels, self.weight, self.reduction)


class BCEWithLogitsLoss(LossBase):
    """Binary cross entropy of logits, reduced."""

    def __init__(self, reduction: str = "mean", weight=None, pos_weight=None):
        super().__init__(reduction)
        self.weight, self.pos_weight = weight, pos_weight

    def construct(self, logits, labels):
        return _loss.binary_cross_entropy_with_logits(
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
