"""Metrics of how far predictions agree with labels: IoU, Kappa, Matthews' and Spearman's coefficients, R2."""

from __future__ import annotations

import numpy as np

from mycelia.engine.base import errors
from mycelia.nn.metrics.base import Metric, rearrange_inputs
from mycelia.nn.metrics.confusion import ConfusionMatrix


class IoU(ConfusionMatrix):
    """``TP / (TP + FP + FN)`` of each class; NaN of a class that is neither predicted nor there.

    Shapes: as of ConfusionMatrix -> [num_classes].
    """

    def __init__(self, num_classes: int, threshold: float = 0.5):
        super().__init__(num_classes, threshold=threshold)

    def eval(self):
        self._require_updates(self._updated)
        counts = self.confusion_matrix
        hits = np.diag(counts)
        union = counts.sum(0) + counts.sum(1) - hits
        return np.divide(hits, union, out=np.full(len(hits), np.nan), where=union != 0)


class MeanIoU(IoU):
    """The mean of `IoU` over the classes that are predicted or there."""

    def eval(self):
        return float(np.nanmean(super().eval()))


class MatthewsCorrelation(ConfusionMatrix):
    """Matthews' coefficient, of any number of classes (Gorodkin 2004): 1 for what agrees, 0 for chance, and
    where all are of one class.

    Shapes: as of ConfusionMatrix -> a float.
    """

    def __init__(self, num_classes: int, threshold: float = 0.5):
        super().__init__(num_classes, threshold=threshold)

    def eval(self):
        self._require_updates(self._updated)
        counts = self.confusion_matrix
        total, there, said = counts.sum(), counts.sum(1), counts.sum(0)
        above = np.trace(counts) * total - there @ said
        below = np.sqrt(total**2 - there @ there) * np.sqrt(total**2 - said @ said)
        return float(above / below) if below else 0.0


class CohenKappa(ConfusionMatrix):
    """Cohen's kappa: agreement beyond chance. `weights`: how far two classes are apart counts not (None),
    "linear"-ly or "quadratic"-ally.

    Shapes: as of ConfusionMatrix -> a float, NaN where all are of one class.
    """

    def __init__(self, num_classes: int, weights: str | None = None, threshold: float = 0.5):
        if weights not in (None, "linear", "quadratic"):
            raise errors.one_of(weights, [None, "linear", "quadratic"], subject="CohenKappa", what="weights")
        self.weights = weights
        super().__init__(num_classes, threshold=threshold)

    def eval(self):
        self._require_updates(self._updated)
        counts, place = self.confusion_matrix, np.arange(self.num_classes)
        apart = np.abs(place[:, None] - place).astype(np.float64)
        if self.weights is None:
            apart = (apart > 0).astype(np.float64)
        elif self.weights == "quadratic":
            apart = apart**2
        expected = np.outer(counts.sum(1), counts.sum(0)) / counts.sum()
        chance = (apart * expected).sum()
        return float(1 - (apart * counts).sum() / chance) if chance else float("nan")


class _Pairs(Metric):
    """Keeps all predictions with their labels, of one shape."""

    _collected = ("_predictions", "_labels")

    def __init__(self):
        super().__init__()
        self.clear()

    def clear(self):
        self._predictions: list[np.ndarray] = []
        self._labels: list[np.ndarray] = []

    @rearrange_inputs
    def update(self, *inputs):
        predictions, labels = self._arrays(inputs, 2)
        if predictions.shape != labels.shape:
            raise errors.value_error(
                type(self).__name__,
                f"predictions and labels must have one shape, but have {predictions.shape} and "
                f"{labels.shape}",
            )
        self._predictions.append(predictions.astype(np.float64).reshape(-1))
        self._labels.append(labels.astype(np.float64).reshape(-1))

    def _all(self) -> tuple[np.ndarray, np.ndarray]:
        self._require_updates(sum(map(len, self._labels)))
        return np.concatenate(self._predictions), np.concatenate(self._labels)


class R2Score(_Pairs):
    """``1 - sum((y - p)^2) / sum((y - mean y)^2)`` over all elements; NaN for labels that are all alike.

    Shapes: predictions and labels of one shape -> a float.
    """

    def eval(self):
        predictions, labels = self._all()
        spread = np.square(labels - labels.mean()).sum()
        return float(1 - np.square(labels - predictions).sum() / spread) if spread else float("nan")


class SpearmanCorrelation(_Pairs):
    """Correlation of the ranks of all elements, equal ones sharing the mean of theirs; NaN if one side is
    constant or has a NaN.

    Shapes: predictions and labels of one shape -> a float.
    """

    def eval(self):
        both = self._all()
        if any(np.isnan(side).any() for side in both):
            return float("nan")
        a, b = (ranks - ranks.mean() for ranks in map(_ranks, both))
        lengths = np.sqrt((a @ a) * (b @ b))
        return float(a @ b / lengths) if lengths else float("nan")


def _ranks(values: np.ndarray) -> np.ndarray:
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[which]
