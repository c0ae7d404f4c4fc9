"""How far two segmentations agree: `Dice`, and the distances between the surfaces of a label."""

from __future__ import annotations

import numpy as np

from mycelia.engine.base import errors
from mycelia.nn.metrics.base import Metric, rearrange_inputs


class Dice(Metric):
    """``2 sum(p y) / (sum p^2 + sum y^2 + smooth)``, summed over updates and divided by the number of rows
    of all, as in MindSpore; with `per_sample` that of each row, and their mean.

    Errors: ValueError for different shapes, RuntimeError without updates.
    """

    _added = ("_sum", "_rows")

    def __init__(self, smooth: float = 1e-5, per_sample: bool = False):
        super().__init__()
        if not isinstance(per_sample, bool):
            raise errors.type_error("Dice", f"per_sample must be a bool, but got {per_sample!r}")
        if not isinstance(smooth, float):
            raise errors.type_error("Dice", f"smooth must be a float, but got {smooth!r}")
        if not smooth > 0:
            raise errors.value_error("Dice", f"smooth must be positive, but got {smooth}")
        self.smooth, self.per_sample = smooth, per_sample
        self.clear()

    def clear(self):
        self._sum, self._rows = 0.0, 0

    @rearrange_inputs
    def update(self, *inputs):
        predictions, labels = (a.astype(np.float64) for a in self._arrays(inputs, 2))
        if predictions.shape != labels.shape or not predictions.ndim:
            raise errors.value_error(
                "Dice",
                f"predictions and labels must have one shape, but have {predictions.shape} and "
                f"{labels.shape}",
            )
        axes = tuple(range(1, predictions.ndim)) if self.per_sample else None
        overlap = 2 * (predictions * labels).sum(axes)
        area = np.square(predictions).sum(axes) + np.square(labels).sum(axes) + self.smooth
        self._sum += float((overlap / area).sum())
        self._rows += len(predictions)

    def eval(self):
        self._require_updates(self._rows)
        return self._sum / self._rows


_METRICS = ["euclidean", "chessboard", "taxicab"]


class _Surface(Metric):
    """Distances between the surfaces of one label in two images; an update replaces the one before."""

    _replaced = ("_prediction", "_truth")

    def __init__(self, distance_metric: str):
        super().__init__()
        if distance_metric not in _METRICS:
            raise errors.one_of(
                distance_metric, _METRICS, subject=type(self).__name__, what="distance_metric"
            )
        self.distance_metric = distance_metric
        self.clear()

    def clear(self):
        self._prediction = self._truth = None

    @rearrange_inputs
    def update(self, *inputs):
        """Take ``(y_pred, y, label_idx)``:
        two images of one shape and the label whose surfaces are compared.
        """
        owner = type(self).__name__
        if len(inputs) != 3:
            raise errors.value_error(owner, f"update() takes 3 inputs, but got {len(inputs)}")
        prediction, truth = self._arrays(inputs[:2], 2)
        label = inputs[2]
        if not isinstance(label, (int, float, np.number)):
            raise errors.type_error(
                owner, f"label_idx must be an int or a float, but got {type(label).__name__}"
            )
        if prediction.shape != truth.shape or not prediction.size or not prediction.ndim:
            raise errors.value_error(
                owner,
                f"y_pred and y must have one shape and hold data, but the shapes are {prediction.shape} "
                f"and {truth.shape}",
            )
        prediction, truth = prediction == label, truth == label
        if not prediction.any() and not truth.any():
            raise errors.value_error(owner, f"label_idx {label} is neither in y_pred nor in y")
        self._prediction, self._truth = _surface(prediction), _surface(truth)

    def _there(self) -> np.ndarray:
        """From each surface point of the prediction to the nearest of the truth."""
        return _nearest(self._truth, self.distance_metric)[self._prediction]

    def _back(self) -> np.ndarray:
        """From each surface point of the truth to the nearest of the prediction."""
        return _nearest(self._prediction, self.distance_metric)[self._truth]


class HausdorffDistance(_Surface):
    """The largest distance from a surface point to the nearest point of the other surface;
    infinite when one is empty.

    `directed`: from y_pred to y only. `percentile` in [0, 100], a float: that percentile instead of the
    largest. `crop` is accepted: the value does not depend on it. Errors: TypeError for an int percentile.
    """

    def __init__(
        self,
        distance_metric: str = "euclidean",
        percentile: float | None = None,
        directed: bool = False,
        crop: bool = True,
    ):
        super().__init__(distance_metric)
        if percentile is not None and not isinstance(percentile, float):
            raise errors.type_error(
                "HausdorffDistance", f"percentile must be a float, but got {percentile!r}"
            )
        if percentile is not None and not 0 <= percentile <= 100:
            raise errors.value_error(
                "HausdorffDistance", f"percentile must be in [0, 100], but got {percentile}"
            )
        for name, value in (("directed", directed), ("crop", crop)):
            if not isinstance(value, bool):
                raise errors.type_error("HausdorffDistance", f"{name} must be a bool, but got {value!r}")
        self.percentile, self.directed, self.crop = percentile, directed, crop

    def _farthest(self, distances: np.ndarray) -> float:
        if not distances.size or np.isinf(distances).any():
            return float("inf")
        return float(
            distances.max() if self.percentile is None else np.percentile(distances, self.percentile)
        )

    def eval(self):
        self._require_updates(self._prediction is not None)
        there = self._farthest(self._there())
        return there if self.directed else max(there, self._farthest(self._back()))


class MeanSurfaceDistance(_Surface):
    """The mean distance from the surface of y_pred to that of y; `symmetric`: the mean of both directions."""

    def __init__(self, symmetric: bool = False, distance_metric: str = "euclidean"):
        super().__init__(distance_metric)
        if not isinstance(symmetric, bool):
            raise errors.type_error("MeanSurfaceDistance", f"symmetric must be a bool, but got {symmetric!r}")
        self.symmetric = symmetric

    def eval(self):
        if self._prediction is None:
            return float("inf")
        there = _mean(self._there())
        return (there + _mean(self._back())) / 2 if self.symmetric else there


class RootMeanSquareDistance(_Surface):
    """The mean squared distance from the surface of y_pred to that of y, without root,
    as MindSpore computes it.

    `symmetric`: the root of the mean of both directions.
    """

    def __init__(self, symmetric: bool = False, distance_metric: str = "euclidean"):
        super().__init__(distance_metric)
        if not isinstance(symmetric, bool):
            raise errors.type_error(
                "RootMeanSquareDistance", f"symmetric must be a bool, but got {symmetric!r}"
            )
        self.symmetric = symmetric

    def eval(self):
        if self._prediction is None:
            return float("inf")
        there = _mean(np.square(self._there()))
        return float(np.sqrt((there + _mean(np.square(self._back()))) / 2)) if self.symmetric else there


def _mean(distances: np.ndarray) -> float:
    return float(distances.mean()) if distances.size else float("inf")


def _surface(mask: np.ndarray) -> np.ndarray:
    """The points of a mask that have a neighbour along an axis outside of it; beyond the image is outside."""
    inside = mask.copy()
    padded = np.pad(mask, 1)
    middle = (slice(1, -1),) * mask.ndim
    for axis in range(mask.ndim):
        for part in (slice(None, -2), slice(2, None)):
            inside &= padded[(*middle[:axis], part, *middle[axis + 1 :])]
    return mask & ~inside


def _nearest(points: np.ndarray, metric: str) -> np.ndarray:
    """The distance of every place of an image to the nearest of `points`; infinite when there are none.

    One pass per axis: the best over an axis is the least of (best so far at an offset, combined with the
    offset). Adding squares, adding absolute values and taking the larger are all exact that way.
    """
    best = np.where(points, 0.0, np.inf)
    for axis in range(points.ndim):
        lines = np.moveaxis(best, axis, 0)
        result = lines.copy()
        for offset in range(1, len(lines)):
            cost = float(offset**2 if metric == "euclidean" else offset)
            join = np.maximum if metric == "chessboard" else np.add
            result[offset:] = np.minimum(result[offset:], join(lines[:-offset], cost))
            result[:-offset] = np.minimum(result[:-offset], join(lines[offset:], cost))
        best = np.moveaxis(result, 0, axis)
    return np.sqrt(best) if metric == "euclidean" else best
