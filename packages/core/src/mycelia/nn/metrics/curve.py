"""Curves over all thresholds: `ROC`, and `auc`, the area under a curve."""

from __future__ import annotations

import numpy as np

from mycelia.engine.base import errors
from mycelia.nn.metrics.base import Metric, rearrange_inputs


class ROC(Metric):
    """False and true positive rates at every distinct score, descending,
    after one threshold above the largest.

    Shapes: scores [N] with labels [N] (`pos_label`, 1 by default, is the positive class) -> three arrays;
    scores [N, class_num] with labels [N] -> three lists of arrays, one per class against the rest.
    As in MindSpore an update replaces the one before. Errors: ValueError for labels without
    positives or without negatives.
    """

    def __init__(self, class_num: int | None = None, pos_label: int | None = None):
        super().__init__()
        for name, value in (("class_num", class_num), ("pos_label", pos_label)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
                raise errors.type_error("ROC", f"{name} must be an int or None, but got {value!r}")
        if class_num is not None and class_num < 1:
            raise errors.value_error("ROC", f"class_num must be positive, but got {class_num}")
        self.class_num, self.pos_label = class_num, pos_label
        self.clear()

    _replaced = ("_scores", "_labels")

    def clear(self):
        self._scores = self._labels = None

    @rearrange_inputs
    def update(self, *inputs):
        scores, labels = self._arrays(inputs, 2)
        if scores.shape == labels.shape:
            if self.class_num not in (None, 1):
                raise errors.value_error(
                    "ROC", f"class_num must be 1 for scores and labels of one shape, but is {self.class_num}"
                )
            scores, labels = scores.reshape(-1), labels.reshape(-1)
        elif (
            scores.ndim == labels.ndim + 1
            and scores.shape[:1] == labels.shape[:1]
            and scores.shape[2:] == labels.shape[1:]
        ):
            if self.pos_label is not None:
                raise errors.value_error(
                    "ROC", f"pos_label must be None for scores of several classes, but is {self.pos_label}"
                )
            if self.class_num is None or self.class_num != scores.shape[1]:
                raise errors.value_error(
                    "ROC",
                    f"class_num must be {scores.shape[1]}, the number of classes of the scores, but is "
                    f"{self.class_num}",
                )
            scores, labels = np.moveaxis(scores, 1, -1).reshape(-1, self.class_num), labels.reshape(-1)
        else:
            raise errors.value_error(
                "ROC",
                f"scores must be [N] or [N, C] and labels [N], but the shapes are {scores.shape} and "
                f"{labels.shape}",
            )
        self._scores, self._labels = scores, labels

    def eval(self):
        self._require_updates(self._scores is not None)
        if self._scores.ndim == 1:
            return _curve(self._scores, self._labels == (1 if self.pos_label is None else self.pos_label))
        curves = [_curve(self._scores[:, c], self._labels == c) for c in range(self.class_num)]
        return tuple(list(part) for part in zip(*curves))


def _curve(scores: np.ndarray, positive: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    positives = int(positive.sum())
    if positives == positive.size:
        raise errors.value_error(
            "ROC", "the labels hold no negative sample, so false positive rates have no meaning"
        )
    if not positives:
        raise errors.value_error(
            "ROC", "the labels hold no positive sample, so true positive rates have no meaning"
        )
    true, false, distinct = ranked(scores, positive)
    thresholds = np.append(distinct[0] + 1, distinct)
    return false / (positive.size - positives), true / positives, thresholds


def ranked(scores: np.ndarray, positive: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(true positives, false positives, the score) at each distinct score, descending.

    The counts have a 0 in front, of no score.
    """
    order = np.argsort(-scores, kind="stable")
    scores, hits = scores[order], np.cumsum(positive[order])
    last = np.append(np.flatnonzero(np.diff(scores)), scores.size - 1)  # where each run of equal scores ends
    return np.append(0, hits[last]), np.append(0, last + 1 - hits[last]), scores[last]


def auc(x, y, reorder: bool = False) -> float:
    """Area under the curve through the points (x, y), by trapezoids; `reorder` sorts the points by x first.

    Lists of curves give a list of areas. Errors: ValueError when x neither rises nor falls, or for
    different lengths.
    """
    if isinstance(x, (list, tuple)) and x and all(isinstance(c, np.ndarray) for c in x):
        if not isinstance(y, (list, tuple)) or len(y) != len(x):
            raise errors.value_error("auc", "x and y must hold as many curves")
        return [auc(a, b, reorder) for a, b in zip(x, y)]
    x, y = np.asarray(x), np.asarray(y)
    if x.ndim != 1 or x.shape != y.shape or x.dtype.kind not in "biuf" or y.dtype.kind not in "biuf":
        raise errors.value_error(
            "auc", f"x and y must be numbers of one rank-1 shape, but the shapes are {x.shape} and {y.shape}"
        )
    if x.size < 2:
        raise errors.value_error("auc", f"a curve needs at least 2 points, but got {x.size}")
    if reorder:
        order = np.argsort(x, kind="stable")
        x, y = x[order], y[order]
    steps = np.diff(x.astype(np.float64))
    if (steps < 0).any():
        if (steps > 0).any():
            raise errors.value_error(
                "auc", "x must rise or fall monotonically", hint="reorder=True sorts the points by x"
            )
        steps = -steps
    return float((steps * (y[1:] + y[:-1]) / 2).sum())
