"""Metrics of texts: `BleuScore` and `Perplexity`."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from mycelia.engine.base import errors
from mycelia.nn.metrics.base import Metric, rearrange_inputs


class BleuScore(Metric):
    """How much of a translation's n-grams, up to `n_gram`, its references hold (Papineni et
    al. 2002), over a corpus.

    update(candidates, references): a list of sentences, and for each a list of reference sentences; a
    sentence is a list of words. The length of the nearest reference counts, the first of equally near ones.
    `smooth` adds one to hits and totals.
    Errors: ValueError for n_gram outside [1, 4] or lists of different lengths.
    """

    _added = ("_hits", "_totals", "_length", "_reference_length", "_updated")

    def __init__(self, n_gram: int = 4, smooth: bool = False):
        super().__init__()
        if isinstance(n_gram, bool) or not isinstance(n_gram, int):
            raise errors.type_error("BleuScore", f"n_gram must be an int, but got {n_gram!r}")
        if not 1 <= n_gram <= 4:
            raise errors.value_error("BleuScore", f"n_gram must be in [1, 4], but got {n_gram}")
        if not isinstance(smooth, bool):
            raise errors.type_error("BleuScore", f"smooth must be a bool, but got {smooth!r}")
        self.n_gram, self.smooth = n_gram, smooth
        self.clear()

    def clear(self):
        self._hits, self._totals = np.zeros(self.n_gram), np.zeros(self.n_gram)
        self._length = self._reference_length = 0
        self._updated = False

    @rearrange_inputs
    def update(self, *inputs):
        if len(inputs) != 2:
            raise errors.value_error("BleuScore", f"update() takes 2 inputs, but got {len(inputs)}")
        candidates, references = inputs
        if len(candidates) != len(references):
            raise errors.value_error(
                "BleuScore",
                f"{len(candidates)} candidates need as many lists of references, but got {len(references)}",
            )
        for candidate, known in zip(candidates, references):
            if not known:
                raise errors.value_error("BleuScore", "every candidate needs at least one reference")
            self._length += len(candidate)
            self._reference_length += min((len(r) for r in known), key=lambda n: abs(n - len(candidate)))
            for n in range(1, self.n_gram + 1):
                grams = _grams(candidate, n)
                most: Counter = Counter()
                for reference in known:
                    most |= _grams(reference, n)
                self._hits[n - 1] += sum((grams & most).values())
                self._totals[n - 1] += sum(grams.values())
        self._updated = True

    def eval(self):
        self._require_updates(self._updated)
        if not self._hits.all():
            return np.float64(0.0)
        extra = 1 if self.smooth else 0
        precision = np.log((self._hits + extra) / (self._totals + extra)).mean()
        brevity = 0.0 if self._length > self._reference_length else 1 - self._reference_length / self._length
        return np.exp(precision + brevity)


def _grams(words, n: int) -> Counter:
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


class Perplexity(Metric):
    """``exp(-mean(log p))`` of the probabilities p that were given to the labels.

    Shapes: probabilities [..., C], labels [...]. Labels equal to `ignore_label` are left out. Probabilities
    below 1e-10 count as 1e-10. Errors: RuntimeError for shapes that do not fit, or when nothing was counted.
    """

    _added = ("_sum", "_count")

    def __init__(self, ignore_label: int | None = None):
        super().__init__()
        if ignore_label is not None and (isinstance(ignore_label, bool) or not isinstance(ignore_label, int)):
            raise errors.type_error(
                "Perplexity", f"ignore_label must be an int or None, but got {ignore_label!r}"
            )
        self.ignore_label = ignore_label
        self.clear()

    def clear(self):
        self._sum, self._count = 0.0, 0

    @rearrange_inputs
    def update(self, *inputs):
        probabilities, labels = self._arrays(inputs, 2)
        if probabilities.shape[:-1] != labels.shape or not probabilities.ndim:
            raise errors.runtime_error(
                "Perplexity",
                "probabilities must be [..., C] and labels [...], but the shapes are "
                f"{probabilities.shape} and {labels.shape}",
            )
        rows, labels = probabilities.reshape(-1, probabilities.shape[-1]), labels.reshape(-1).astype(np.int64)
        if self.ignore_label is not None:
            kept = labels != self.ignore_label
            rows, labels = rows[kept], labels[kept]
        if labels.size and (labels.min() < 0 or labels.max() >= rows.shape[1]):
            raise errors.value_error(
                "Perplexity",
                f"labels must be in [0, {rows.shape[1]}), but got {int(labels.min())} to {int(labels.max())}",
            )
        given = rows[np.arange(len(labels)), labels].astype(np.float64)
        self._sum -= float(np.log(np.maximum(given, 1e-10)).sum())
        self._count += len(labels)

    def eval(self):
        self._require_updates(self._count)
        return math.exp(self._sum / self._count)
