"""Metrics of probabilities: areas under curves, log loss, calibration."""

from __future__ import annotations

import numpy as np

from mycelia.engine.base import errors
from mycelia.nn.metrics.base import Metric, rearrange_inputs
from mycelia.nn.metrics.curve import ranked

_AVERAGES = ["macro", "micro", "none"]


class _Scored(Metric):
    """Keeps all scores with their labels.

    Shapes: scores [N] with labels [N] of 0 and 1, or scores [N, C] with labels [N] of classes.
    Errors: ValueError for other shapes, scores that are NaN, and labels that are no classes.
    """

    _collected = ("_scores", "_labels")

    def clear(self):
        self._scores: list[np.ndarray] = []
        self._labels: list[np.ndarray] = []

    @rearrange_inputs
    def update(self, *inputs):
        scores, labels = self._arrays(inputs, 2)
        owner = type(self).__name__
        if scores.ndim not in (1, 2) or labels.shape != scores.shape[:1]:
            raise errors.value_error(
                owner,
                f"scores must be [N] or [N, C] and labels [N], but are {scores.shape} and {labels.shape}",
            )
        if self._scores and self._scores[0].shape[1:] != scores.shape[1:]:
            raise errors.value_error(
                owner, f"scores were {self._scores[0].shape} before, but now are {scores.shape}"
            )
        if np.isnan(scores).any():
            raise errors.value_error(owner, "scores must be numbers, but some are NaN")
        classes = 2 if scores.ndim == 1 else scores.shape[1]
        broken = labels != np.floor(labels)
        if broken.any():  # scores in the place of labels, say
            raise errors.value_error(owner, f"labels must be whole numbers, but one is {labels[broken][0]}")
        if labels.size and not 0 <= labels.min() <= labels.max() < classes:
            raise errors.value_error(
                owner, f"labels must be in [0, {classes}), but got {labels.min()} to {labels.max()}"
            )
        self._scores.append(scores.astype(np.float64))
        self._labels.append(labels.astype(np.int64))

    def _all(self) -> tuple[np.ndarray, np.ndarray]:
        self._require_updates(sum(map(len, self._labels)))
        return np.concatenate(self._scores), np.concatenate(self._labels)


class _Area(_Scored):
    """An area per class, one against the others.

    `average`: "macro", the mean over classes, "micro", all classes as one, or "none". A class that has no
    area, for want of positives or negatives, has NaN, and is no part of the mean.
    """

    def __init__(self, average: str = "macro"):
        super().__init__()
        if average not in _AVERAGES:
            raise errors.one_of(average, _AVERAGES, subject=type(self).__name__, what="average")
        self.average = average
        self.clear()

    @staticmethod
    def _area(scores: np.ndarray, positive: np.ndarray) -> float:
        raise errors.error(errors.NotSupportedError, "_Area", "_area() is not defined")

    def eval(self):
        scores, labels = self._all()
        if scores.ndim == 1:
            return self._area(scores, labels == 1)
        of_class = labels[:, None] == np.arange(scores.shape[1])
        if self.average == "micro":
            return self._area(scores.reshape(-1), of_class.reshape(-1))
        areas = np.array([self._area(scores[:, c], of_class[:, c]) for c in range(scores.shape[1])])
        if self.average == "none":
            return areas
        return float(np.nanmean(areas)) if np.isfinite(areas).any() else float("nan")


class AUROC(_Area):
    """Area under the ROC curve: the chance that a positive sample has a greater score than a negative one,
    ties counting half. `average`: over classes, "macro", "micro" or "none".

    Shapes: scores [N] with labels [N], or [N, C] with classes [N]; a float, or [C] for average="none".
    Errors: ValueError for other shapes or labels.
    """

    @staticmethod
    def _area(scores, positive):
        true, false, _ = ranked(scores, positive)
        if not true[-1] or not false[-1]:
            return float("nan")
        return float((np.diff(false) * (true[1:] + true[:-1])).sum() / (2 * true[-1] * false[-1]))


class AveragePrecision(_Area):
    """``sum((recall_i - recall_{i-1}) precision_i)`` over the distinct scores, descending. `average`: over
    classes, "macro", "micro" or "none".

    Shapes: scores [N] with labels [N], or [N, C] with classes [N]; a float, or [C] for average="none".
    Errors: ValueError for other shapes or labels.
    """

    @staticmethod
    def _area(scores, positive):
        true, false, _ = ranked(scores, positive)
        if not true[-1]:
            return float("nan")
        return float((np.diff(true) * true[1:] / (true + false)[1:]).sum() / true[-1])


class LogLoss(_Scored):
    """``-mean(log p)`` of the probabilities of the labels; probabilities are kept `eps` away from 0 and 1.

    Shapes: probabilities of class 1 [N] or of all classes [N, C], which are divided by their sum; labels [N].
    Errors: ValueError for other shapes or labels, or a negative or NaN probability.
    """

    def __init__(self, eps: float = 1e-15):
        super().__init__()
        if not isinstance(eps, float) or not 0 < eps < 0.5:
            raise errors.value_error("LogLoss", f"eps must be a float in (0, 0.5), but got {eps!r}")
        self.eps = eps
        self.clear()

    def eval(self):
        scores, labels = self._all()
        chosen = _of_label(type(self).__name__, scores, labels)
        return float(-np.log(np.clip(chosen, self.eps, 1 - self.eps)).mean())


class CalibrationError(_Scored):
    """How far confidence, the greatest probability, is from accuracy: their difference in each of `n_bins`
    bins of confidence of equal width, weighted by the samples in it (Guo et al. 2017, eq. 3).

    Shapes: probabilities of class 1 [N] or of all classes [N, C], labels [N]. Errors: ValueError for other
    shapes, labels or probabilities.
    """

    def __init__(self, n_bins: int = 15):
        super().__init__()
        if isinstance(n_bins, bool) or not isinstance(n_bins, int) or n_bins < 1:
            raise errors.value_error("CalibrationError", f"n_bins must be a positive int, but got {n_bins!r}")
        self.n_bins = n_bins
        self.clear()

    def eval(self):
        scores, labels = self._all()
        if scores.ndim == 1:
            scores = np.stack([1 - scores, scores], 1)
        _of_label("CalibrationError", scores, labels)
        confidence, right = scores.max(1), scores.argmax(1) == labels
        bins = np.clip(np.ceil(confidence * self.n_bins).astype(np.int64) - 1, 0, self.n_bins - 1)
        gaps = np.bincount(bins, confidence - right, self.n_bins)
        return float(np.abs(gaps).sum() / len(labels))


def _of_label(owner: str, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The probability of each label. ValueError for what is no probability."""
    if not ((scores >= 0).all() and (scores.ndim == 2 or (scores <= 1).all())):
        raise errors.value_error(owner, "probabilities must be in [0, 1]")
    if scores.ndim == 1:
        return np.where(labels == 1, scores, 1 - scores)
    return np.take_along_axis(scores / scores.sum(1, keepdims=True), labels[:, None], 1)[:, 0]
