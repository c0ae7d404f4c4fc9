"""Metrics of classifiers: Accuracy, Precision, Recall, Fbeta, F1, top-k accuracy."""

from __future__ import annotations

import numpy as np

from mycelia.engine.base import errors
from mycelia.nn.metrics.base import EPS, Metric, one_hot_pair, rearrange_inputs


class _Typed(Metric):
    """Metrics with `eval_type` 'classification' or 'multilabel'."""

    def __init__(self, eval_type: str = "classification"):
        super().__init__()
        if eval_type not in ("classification", "multilabel"):
            raise errors.type_error(
                type(self).__name__,
                f"eval_type must be 'classification' or 'multilabel', but got {eval_type!r}",
            )
        self._type = eval_type
        self.clear()

    def _multilabel(self, predictions, labels):
        if predictions.shape != labels.shape:
            raise errors.value_error(
                type(self).__name__,
                f"multilabel inputs must have one shape, but have {predictions.shape} and {labels.shape}",
            )
        return predictions.reshape(len(predictions), -1), labels.reshape(len(labels), -1)


class Accuracy(_Typed):
    """Share of rows whose largest score is at the label; 'multilabel': of rows that agree in every element.

    Shapes: predictions [N, C], labels [N] or one-hot [N, C].
    """

    _added = ("_correct_num", "_total_num")

    def clear(self):
        self._correct_num, self._total_num = 0, 0

    @rearrange_inputs
    def update(self, *inputs):
        predictions, labels = self._arrays(inputs, 2)
        if self._type == "multilabel":
            predictions, labels = self._multilabel(predictions, labels)
            self._correct_num += int((predictions == labels).all(1).sum())
        else:
            got, want, _ = one_hot_pair("Accuracy", predictions, labels)
            self._correct_num += int((got * want).sum())
        self._total_num += len(labels)

    def eval(self):
        self._require_updates(self._total_num)
        return self._correct_num / self._total_num


class _Counted(_Typed):
    """Keeps true positives, predicted and actual counts per class."""

    _added = ("_hits", "_predicted", "_actual")

    def clear(self):
        self._hits = self._predicted = self._actual = None

    @rearrange_inputs
    def update(self, *inputs):
        predictions, labels = self._arrays(inputs, 2)
        if self._type == "multilabel":
            got, want = self._multilabel(predictions, labels)
            axis = 1  # over samples: each row counts for itself
        else:
            got, want, _ = one_hot_pair(type(self).__name__, predictions, labels)
            axis = 0
        # EPS is nothing in float32, and would leave 0 / 0.
        counts = tuple(x.sum(axis, dtype=np.float64) for x in (got * want, got, want))
        if self._hits is None:
            self._hits, self._predicted, self._actual = counts
        elif self._type == "multilabel":
            old = self._hits, self._predicted, self._actual
            self._hits, self._predicted, self._actual = (np.concatenate(pair) for pair in zip(old, counts))
        else:
            if len(counts[0]) != len(self._hits):
                raise errors.value_error(
                    type(self).__name__,
                    f"the number of classes changed from {len(self._hits)} to {len(counts[0])}",
                )
            self._hits, self._predicted, self._actual = (
                self._hits + counts[0],
                self._predicted + counts[1],
                self._actual + counts[2],
            )

    def merge(self, other):
        if self._type == "classification":
            return super().merge(other)
        self._require_same(other)
        for name in self._added:  # counts of rows, which follow one another
            parts = [one for one in (getattr(self, name), getattr(other, name)) if one is not None]
            setattr(self, name, np.concatenate(parts) if parts else None)
        return self

    def _result(self, value: np.ndarray, average: bool):
        if not isinstance(average, bool):
            raise errors.type_error(type(self).__name__, f"average must be a bool, but got {average!r}")
        return value.mean() if average else value


class Precision(_Counted):
    """True positives over predicted positives, per class ('multilabel': per row); `eval(average=True)`:
    their mean."""

    def eval(self, average: bool = False):
        self._require_updates(self._hits is not None)
        return self._result(self._hits / (self._predicted + EPS), average)


class Recall(_Counted):
    """True positives over actual positives, per class ('multilabel': per row);
    `eval(average=True)`: their mean.
    """

    def eval(self, average: bool = False):
        self._require_updates(self._hits is not None)
        return self._result(self._hits / (self._actual + EPS), average)


class Fbeta(_Counted):
    """``(1 + beta^2) * TP / (beta^2 * actual + predicted)`` per class; `eval(average=True)`: their mean."""

    def __init__(self, beta: float):
        super().__init__()
        if not beta > 0:
            raise errors.value_error("Fbeta", f"beta must be positive, but got {beta}")
        self.beta = beta

    def eval(self, average: bool = False):
        self._require_updates(self._hits is not None)
        square = self.beta**2
        return self._result(
            (1 + square) * self._hits / (square * self._actual + self._predicted + EPS), average
        )


class F1(Fbeta):
    """The harmonic mean of precision and recall, per class."""

    def __init__(self):
        super().__init__(1.0)


class TopKCategoricalAccuracy(Metric):
    """Share of rows whose label is among the k largest scores."""

    _added = ("_correct", "_total")

    def __init__(self, k: int):
        super().__init__()
        if isinstance(k, bool) or not isinstance(k, int):
            raise errors.type_error("TopKCategoricalAccuracy", f"k must be an int, but got {k!r}")
        if k < 1:
            raise errors.value_error("TopKCategoricalAccuracy", f"k must be positive, but got {k}")
        self.k = k
        self.clear()

    def clear(self):
        self._correct, self._total = 0, 0

    @rearrange_inputs
    def update(self, *inputs):
        predictions, labels = self._arrays(inputs, 2)
        labels = labels.argmax(1) if labels.ndim == 2 else labels
        best = (-predictions).argsort(-1, kind="stable")[:, : self.k]
        self._correct += int((best == labels.reshape(-1, 1)).any(1).sum())
        self._total += len(labels)

    def eval(self):
        self._require_updates(self._total)
        return self._correct / self._total


class Top1CategoricalAccuracy(TopKCategoricalAccuracy):
    """Share of rows whose label has the largest score."""

    def __init__(self):
        super().__init__(1)


class Top5CategoricalAccuracy(TopKCategoricalAccuracy):
    """Share of rows whose label is among the five largest scores."""

    def __init__(self):
        super().__init__(5)
