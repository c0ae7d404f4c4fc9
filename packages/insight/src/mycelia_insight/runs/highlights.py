"""What of a run is told in one line: its last loss, and the best value of a metric."""

from __future__ import annotations

import math
import re
import threading
from dataclasses import dataclass
from functools import lru_cache

from mycelia_insight.runs.kinds import Kind
from mycelia_insight.runs.lineages import Lineage
from mycelia_insight.runs.run import Run, Tag

#: Words in names of metrics, those that tell most first; whether the greatest value is the best one.
_METRICS = (
    (re.compile("acc(uracy)?|top[15]|precision|recall|f1|auc|m?iou|m?ap|dice|bleu|psnr|ssim|r2"), True),
    (re.compile(r"perplexity|ppl|wer|cer|mae|r?mse|error|err"), False),
)  # fmt: skip
_FAR = 2.0**63  # beyond all steps
_LOSS = re.compile(r"loss")
_EVALUATED = re.compile(r"(^|[/_.-])(val(id(ation)?)?|eval|test|dev)([/_.-]|$)")


@dataclass(frozen=True)
class Best:
    """The best value of a metric; `step` is None where only the value at the end is known."""

    name: str
    value: float
    step: int | None
    is_greatest: bool


class Highlights:
    """Last losses and best metrics; what was read of a scalar is kept until it has new points."""

    def __init__(self) -> None:
        self._cache: dict[tuple[str, str], tuple[tuple, tuple[int, float] | None]] = {}
        self._lock = threading.Lock()

    def loss(self, tags: list[Tag], lineage: Lineage) -> float | None:
        """The last value of the scalar whose name tells most of a loss, else the lineage's."""
        found = [tag for tag in _scalars(tags) if _LOSS.search(tag.name.lower())]
        if found:
            return min(
                found, key=lambda tag: (_bare(tag.name) != "loss", _is_evaluated(tag), tag.name)
            ).last_value
        value = lineage.fields.get("loss")
        return float(value) if isinstance(value, (int, float)) else None

    def best(self, run: Run, tags: list[Tag], lineage: Lineage) -> Best | None:
        """The best value of the scalar whose name tells most of a metric, else the lineage's metric."""
        scalars = {tag.name: tag for tag in _scalars(tags)}
        for expression, is_greatest in (*_METRICS, (_LOSS, False)):
            found = [tag for tag in scalars.values() if _has_word(expression, tag.name)]
            if expression is _LOSS:  # of a training's own loss the last value says more
                found = [tag for tag in found if _is_evaluated(tag)]
            if found:
                chosen = min(found, key=lambda tag: (not _is_evaluated(tag), tag.name))
                known = self._extreme(run, chosen, is_greatest)
                return Best(chosen.name, known[1], known[0], is_greatest) if known else None
            for name, value in sorted(lineage.metrics.items()):
                if isinstance(value, (int, float)) and _has_word(expression, name):
                    return Best(name, float(value), None, is_greatest)
        return None

    def _extreme(self, run: Run, tag: Tag, is_greatest: bool) -> tuple[int, float] | None:
        """(step, value) of the first of the greatest, or least, finite points."""
        key, state = (run.folder, tag.name), (tag.count, tag.last_step, tag.last_time, is_greatest)
        with self._lock:
            known = self._cache.get(key)
        if known is None or known[0] != state:
            points = run.points(tag.name, low=-_FAR, high=_FAR, columns=1)
            found = None
            for step, value in (
                zip(points.steps.tolist(), points.values.tolist(), strict=True) if points else ()
            ):
                if math.isfinite(value) and (
                    found is None or (value > found[1] if is_greatest else value < found[1])
                ):
                    found = step, value
            known = state, found
            with self._lock:
                self._cache[key] = known
        return known[1]


def _scalars(tags: list[Tag]) -> list[Tag]:
    return [tag for tag in tags if tag.kind == Kind.SCALAR]


def _bare(name: str) -> str:
    """A tag without what SummaryCollector and folders of tags add."""
    return name.removesuffix("/auto").rpartition("/")[2].lower()


def _is_evaluated(tag: Tag) -> bool:
    return _EVALUATED.search(tag.name.lower()) is not None


@lru_cache(maxsize=10_000)  # many runs have the same tags
def _has_word(expression: re.Pattern, name: str) -> bool:
    return any(expression.fullmatch(word) for word in re.split(r"[^a-z0-9]+", name.lower()))
