"""Metrics of sentences: error rates of words and characters, ROUGE."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from mycelia.engine.base import errors
from mycelia.nn.metrics.base import Metric, rearrange_inputs

_KINDS = ["rouge1", "rouge2", "rouge3", "rouge4", "rougeL"]


class _Texts(Metric):
    """update(candidates, references): as many texts, or lists of words."""

    @rearrange_inputs
    def update(self, *inputs):
        owner = type(self).__name__
        if len(inputs) != 2:
            raise errors.value_error(owner, f"update() takes 2 inputs, but got {len(inputs)}")
        candidates, references = ([one] if isinstance(one, str) else list(one) for one in inputs)
        if len(candidates) != len(references):
            raise errors.value_error(
                owner, f"{len(candidates)} candidates need as many references, but got {len(references)}"
            )
        for candidate, reference in zip(candidates, references):
            self._take(self._parts(candidate), self._parts(reference))

    @staticmethod
    def _parts(text) -> Sequence:
        return text.split() if isinstance(text, str) else text

    def _take(self, candidate: Sequence, reference: Sequence) -> None:
        raise errors.error(errors.NotSupportedError, type(self).__name__, "_take() is not defined")


class WordErrorRate(_Texts):
    """Words to put in, take out or replace, per word of the references, over a corpus.

    update(candidates, references): as many texts, or lists of words. Errors: ValueError for other counts,
    RuntimeError if no reference has a word.
    """

    _added = ("_wrong", "_total")

    def __init__(self):
        super().__init__()
        self.clear()

    def clear(self):
        self._wrong = self._total = 0

    def _take(self, candidate, reference):
        row = list(range(len(candidate) + 1))
        for i, wanted in enumerate(reference, 1):  # edit distance, a row for each word of the reference
            above, row[0] = row[0], i
            for j, got in enumerate(candidate, 1):
                above, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, above + (got != wanted))
        self._wrong += row[-1]
        self._total += len(reference)

    def eval(self):
        self._require_updates(self._total)
        return self._wrong / self._total


class CharacterErrorRate(WordErrorRate):
    """As `WordErrorRate`, of characters, spaces included. update(candidates, references): as many texts."""

    @staticmethod
    def _parts(text):
        return text if isinstance(text, str) else " ".join(text)


class RougeScore(_Texts):
    """The F1 of what a summary shares with its reference (Lin 2004), as a mean over the corpus.

    `kind`: "rouge1" to "rouge4" of n-grams, "rougeL" of the longest common subsequence. Words are taken as
    they are, neither stemmed nor in lower case.
    update(candidates, references): as many texts, or lists of words. Errors: ValueError.
    """

    _added = ("_sum", "_count")

    def __init__(self, kind: str = "rougeL"):
        super().__init__()
        if kind not in _KINDS:
            raise errors.one_of(kind, _KINDS, subject="RougeScore", what="kind")
        self.kind = kind
        self.clear()

    def clear(self):
        self._sum, self._count = 0.0, 0

    def _take(self, candidate, reference):
        if self.kind == "rougeL":
            shared, got, wanted = _common(candidate, reference), len(candidate), len(reference)
        else:
            n = int(self.kind[-1])
            mine, its = (
                Counter(tuple(text[i : i + n]) for i in range(len(text) - n + 1))
                for text in (candidate, reference)
            )
            shared, got, wanted = (sum(one.values()) for one in (mine & its, mine, its))
        self._sum += 2 * shared / (got + wanted) if shared else 0.0
        self._count += 1

    def eval(self):
        self._require_updates(self._count)
        return self._sum / self._count


def _common(a: Sequence, b: Sequence) -> int:
    """The length of the longest common subsequence."""
    row = [0] * (len(b) + 1)
    for one in a:
        above = 0
        for j, other in enumerate(b, 1):
            above, row[j] = row[j], above + 1 if one == other else max(row[j], row[j - 1])
    return row[-1]
