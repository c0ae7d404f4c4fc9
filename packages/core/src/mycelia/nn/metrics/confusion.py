"""Confusion matrices and the rates that are made of them."""

from __future__ import annotations

import numpy as np

from mycelia.engine.base import errors
from mycelia.nn.metrics.base import Metric, rearrange_inputs


class ConfusionMatrix(Metric):
    """Counts by true class (rows) and predicted class (columns).

    Shapes: predictions [N, ...] of class numbers, or of probabilities of class 1 that are compared with
    `threshold`, or [N, C, ...] of scores whose largest counts; labels [N, ...]. -> float64 [num_classes,
    num_classes]. `normalize`: "target" (rows sum to 1), "prediction" (columns), "all", "no_norm". Errors:
    ValueError for classes outside [0, num_classes).
    """

    _added = ("confusion_matrix", "_updated")

    def __init__(self, num_classes: int, normalize: str = "no_norm", threshold: float = 0.5):
        super().__init__()
        if isinstance(num_classes, bool) or not isinstance(num_classes, int):
            raise errors.type_error("ConfusionMatrix", f"num_classes must be an int, but got {num_classes!r}")
        if num_classes < 1:
            raise errors.value_error(
                "ConfusionMatrix", f"num_classes must be positive, but got {num_classes}"
            )
        if normalize not in ("no_norm", "target", "prediction", "all", None):
            names = ["no_norm", "target", "prediction", "all"]
            raise errors.one_of(normalize, names, subject="ConfusionMatrix", what="normalize")
        if isinstance(threshold, bool) or not isinstance(threshold, (int, float)):
            raise errors.type_error("ConfusionMatrix", f"threshold must be a float, but got {threshold!r}")
        self.num_classes, self.normalize, self.threshold = num_classes, normalize, threshold
        self.clear()

    def clear(self):
        self.confusion_matrix = np.zeros((self.num_classes, self.num_classes))
        self._updated = False

    @rearrange_inputs
    def update(self, *inputs):
        predictions, labels = self._arrays(inputs, 2)
        if predictions.ndim == labels.ndim + 1:
            predictions = predictions.argmax(1)
        elif predictions.dtype.kind == "f":
            predictions = predictions >= self.threshold
        if predictions.shape != labels.shape:
            raise errors.value_error(
                "ConfusionMatrix",
                f"predictions {list(inputs[0].shape)} and labels {list(labels.shape)} do not fit together",
            )
        rows, columns = labels.reshape(-1).astype(np.int64), predictions.reshape(-1).astype(np.int64)
        for what, values in (("labels", rows), ("predictions", columns)):
            if values.size and (values.min() < 0 or values.max() >= self.num_classes):
                raise errors.value_error(
                    "ConfusionMatrix",
                    f"{what} must be in [0, {self.num_classes}), but got {int(values.min())} to "
                    f"{int(values.max())}",
                )
        np.add.at(self.confusion_matrix, (rows, columns), 1)
        self._updated = True

    def eval(self):
        self._require_updates(self._updated)
        counts = self.confusion_matrix
        if self.normalize == "target":
            return _ratio(counts, counts.sum(1, keepdims=True))
        if self.normalize == "prediction":
            return _ratio(counts, counts.sum(0, keepdims=True))
        if self.normalize == "all":
            return _ratio(counts, counts.sum())
        return counts.copy()


def _ratio(counts: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """counts / totals, 0 where there is nothing to count."""
    return np.divide(counts, totals, out=np.zeros_like(counts), where=totals != 0)


# Every rate from true positives, false positives, true negatives, false negatives. A rate without cases is
# NaN.
_RATES = {
    "sensitivity": lambda tp, fp, tn, fn: tp / (tp + fn),
    "specificity": lambda tp, fp, tn, fn: tn / (fp + tn),
    "precision": lambda tp, fp, tn, fn: tp / (tp + fp),
    "negative predictive value": lambda tp, fp, tn, fn: tn / (tn + fn),
    "miss rate": lambda tp, fp, tn, fn: fn / (tp + fn),
    "fall out": lambda tp, fp, tn, fn: fp / (fp + tn),
    "false discovery rate": lambda tp, fp, tn, fn: fp / (tp + fp),
    "false omission rate": lambda tp, fp, tn, fn: fn / (tn + fn),
    "prevalence threshold": lambda tp, fp, tn, fn: _prevalence_threshold(tp / (tp + fn), tn / (fp + tn)),
    "threat score": lambda tp, fp, tn, fn: tp / (tp + fn + fp),
    "accuracy": lambda tp, fp, tn, fn: (tp + tn) / (tp + fp + tn + fn),
    "balanced accuracy": lambda tp, fp, tn, fn: (tp / (tp + fn) + tn / (fp + tn)) / 2,
    "f1 score": lambda tp, fp, tn, fn: 2 * tp / (2 * tp + fn + fp),
    "matthews correlation coefficient": lambda tp, fp, tn, fn: (
        (tp * tn - fp * fn) / np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    ),
    "fowlkes mallows index": lambda tp, fp, tn, fn: np.sqrt(tp / (tp + fp) * (tp / (tp + fn))),
    "informedness": lambda tp, fp, tn, fn: tp / (tp + fn) + tn / (fp + tn) - 1,
    "markedness": lambda tp, fp, tn, fn: tp / (tp + fp) + tn / (tn + fn) - 1,
}

_ALIASES = {
    "sensitivity": "recall hit_rate true_positive_rate tpr",
    "specificity": "selectivity true_negative_rate tnr",
    "precision": "positive_predictive_value ppv",
    "negative predictive value": "npv",
    "miss rate": "false_negative_rate fnr",
    "fall out": "false_positive_rate fpr",
    "false discovery rate": "fdr",
    "false omission rate": "for",
    "prevalence threshold": "pt",
    "threat score": "critical_success_index ts csi",
    "accuracy": "acc",
    "balanced accuracy": "ba",
    "f1 score": "f1",
    "matthews correlation coefficient": "mcc",
    "fowlkes mallows index": "fm",
    "informedness": "bookmaker_informedness bm",
    "markedness": "deltap mk",
}
_NAMES = {
    alias.replace("_", " "): name
    for name, aliases in _ALIASES.items()
    for alias in (name.replace(" ", "_"), *aliases.split())
}
_DECREASES = ["none", "mean", "sum", "mean_batch", "sum_batch", "mean_channel", "sum_channel"]


def _prevalence_threshold(sensitivity, specificity):
    return (np.sqrt(sensitivity * (1 - specificity)) + specificity - 1) / (sensitivity + specificity - 1)


class ConfusionMatrixMetric(Metric):
    """A rate of true and false positives and negatives, such as "sensitivity", "f1 score" or "accuracy".

    Shapes: predictions and labels [N, C, ...], both one-hot. MindSpore leaves the first of several channels
    out when `skip_channel` is False, not when it is True; so do we, that the values agree.
    `calculation_method` False: all counts are added first -> [1]. True: the rate of each sample and
    channel, reduced by `decrease`: "mean" and "sum" -> a float (of several updates: weighted by what was
    not NaN), "mean_batch" and "sum_batch" -> [C], "mean_channel" and "sum_channel" -> [N], "none" -> [N, C]
    over all updates. A rate without cases is NaN and left out of means and sums. Errors:
    NotImplementedError for an unknown rate, ValueError for inputs other than 0 and 1.
    """

    _collected = ("_counts",)

    def __init__(
        self,
        skip_channel: bool = True,
        metric_name: str = "sensitivity",
        calculation_method: bool = False,
        decrease: str = "mean",
    ):
        super().__init__()
        for name, value in (("skip_channel", skip_channel), ("calculation_method", calculation_method)):
            if not isinstance(value, bool):
                raise errors.type_error("ConfusionMatrixMetric", f"{name} must be a bool, but got {value!r}")
        if decrease not in _DECREASES:
            raise errors.one_of(decrease, _DECREASES, subject="ConfusionMatrixMetric", what="decrease")
        if not isinstance(metric_name, str):
            raise errors.type_error(
                "ConfusionMatrixMetric", f"metric_name must be a str, but got {metric_name!r}"
            )
        wanted = _NAMES.get(metric_name.lower().replace("_", " "))
        if wanted is None:
            raise errors.error(
                errors.NotSupportedError,
                "ConfusionMatrixMetric",
                f"metric_name {metric_name!r} is not known; known are {sorted(_RATES)}",
            )
        self.skip_channel, self.metric_name, self.calculation_method, self.decrease = (
            skip_channel,
            wanted,
            calculation_method,
            decrease,
        )
        self.clear()

    def clear(self):
        self._counts: list[np.ndarray] = []

    @rearrange_inputs
    def update(self, *inputs):
        predictions, labels = self._arrays(inputs, 2)
        if predictions.ndim < 2 or predictions.shape != labels.shape:
            raise errors.value_error(
                "ConfusionMatrixMetric",
                f"predictions and labels must both be [N, C, ...], but the shapes are {predictions.shape} "
                f"and {labels.shape}",
            )
        for what, values in (("predictions", predictions), ("labels", labels)):
            if not np.isin(values, (0, 1)).all():
                raise errors.value_error("ConfusionMatrixMetric", f"{what} must be one-hot: 0 and 1 only")
        if not self.skip_channel and predictions.shape[1] > 1:
            predictions, labels = predictions[:, 1:], labels[:, 1:]
        shape = (*predictions.shape[:2], -1)
        got, want = predictions.reshape(shape).astype(bool), labels.reshape(shape).astype(bool)
        parts = (got & want, got & ~want, ~got & ~want, ~got & want)
        self._counts.append(np.stack([p.sum(-1, dtype=np.float64) for p in parts]))  # [4, N, C]

    def _rate(self, counts: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            return _RATES[self.metric_name](*counts)

    def eval(self):
        self._require_updates(len(self._counts))
        if not self.calculation_method:
            return self._rate(sum(c.sum((1, 2)) for c in self._counts).reshape(4, 1))
        if self.decrease in ("mean", "sum"):
            pairs = [self._scalar(self._rate(c)) for c in self._counts]
            total = sum(weight for _, weight in pairs)
            return float(sum(value * weight for value, weight in pairs) / total) if total else float("nan")
        rates = self._rate(np.concatenate(self._counts, 1))
        if self.decrease == "none":
            return rates
        axis = 0 if self.decrease.endswith("batch") else 1
        return _nan_mean(rates, axis) if self.decrease.startswith("mean") else np.nansum(rates, axis)

    def _scalar(self, rates: np.ndarray) -> tuple[float, int]:
        """One update's value and how many values it stands for."""
        known = ~np.isnan(rates)
        if self.decrease == "sum":
            return float(np.nansum(rates)), int(known.sum())
        samples = known.any(1)
        means = _nan_mean(rates, 1)[samples]
        return (float(means.mean()) if samples.any() else 0.0), int(samples.sum())


def _nan_mean(values: np.ndarray, axis: int) -> np.ndarray:
    """The mean of what is not NaN; NaN where nothing is."""
    known = (~np.isnan(values)).sum(axis)
    with np.errstate(invalid="ignore"):
        return np.where(known > 0, np.nansum(values, axis) / np.maximum(known, 1), np.nan)
