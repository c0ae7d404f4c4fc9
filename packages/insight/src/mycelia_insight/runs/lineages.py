"""What runs were made of: their lineage events and parameters as one table."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from mycelia_insight.records import lineage
from mycelia_insight.runs.kinds import Kind
from mycelia_insight.runs.notes import Note
from mycelia_insight.runs.run import Run, Tag

_log = logging.getLogger(__name__)
#: Fields of MindInsight's table, in its order.
FIELDS = (
    "loss", "network", "optimizer", "train_dataset_count", "test_dataset_count", "learning_rate", "epoch",
    "batch_size", "device_num", "model_size", "loss_function", "train_dataset_path", "test_dataset_path",
)  # fmt: skip
METRIC, USER = "metric/", "user_defined/"
_KINDS = {
    Kind.TRAIN_LINEAGE, Kind.EVALUATION_LINEAGE, Kind.DATASET_GRAPH, Kind.USER_DEFINED, Kind.PARAMETERS,
}  # fmt: skip


@dataclass(frozen=True)
class Lineage:
    """Of a run: the fields, metrics and what the user defined, by name; the pipeline of its data.

    is_whole: whether it was trained or evaluated; else only the user's values are known.
    ending: "finished" or "failed" where TensorBoard's file says how it ended, else "".
    """

    fields: dict[str, lineage.Value] = field(default_factory=dict)
    metrics: dict[str, lineage.Value] = field(default_factory=dict)
    user: dict[str, lineage.Value] = field(default_factory=dict)
    dataset: dict[str, Any] = field(default_factory=dict)
    is_whole: bool = False
    ending: str = ""

    def values(self) -> dict[str, lineage.Value]:
        """All values by the names of columns."""
        return {
            **{name: value for name, value in self.fields.items() if value is not None},
            **{METRIC + name: value for name, value in self.metrics.items()},
            **{USER + name: value for name, value in self.user.items()},
        }


class Lineages:
    """Lineages of runs, read again when a run has new events of theirs."""

    def __init__(self) -> None:
        self._cache: dict[str, tuple[tuple, Lineage]] = {}
        self._lock = threading.Lock()

    def of(self, run: Run, tags: list[Tag]) -> Lineage:
        """`tags`: those of the run."""
        state = tuple((t.kind, t.name, t.count, t.last_time) for t in tags if t.kind in _KINDS)
        with self._lock:
            known = self._cache.get(run.folder)
        if known is None or known[0] != state:
            known = state, _read(run, tags)
            with self._lock:
                self._cache[run.folder] = known
        return known[1]


def lookup(run: str, tags: list[Tag], found: Lineage, note: Note) -> Callable[[str], Any]:
    """How a query finds a run's values by name.

    Names stand for, in this order: a field, a metric, the user's value, the last value of a scalar; `run`,
    `step`, `updated`, `remark`, `tag`, `labels` and `archived` are the run's own.
    """
    scalars = {tag.name: tag for tag in tags if tag.kind == Kind.SCALAR}
    own = {
        "run": lambda: run,
        "step": lambda: max((tag.last_step for tag in scalars.values()), default=None),
        "updated": lambda: max((tag.last_time for tag in tags), default=None),
        "remark": lambda: note.remark,
        "tag": lambda: note.tag,
        "labels": lambda: ", ".join(note.labels) or None,
        "archived": lambda: note.archived,
    }

    def look(name: str) -> Any:
        if name in own:
            return own[name]()
        values = found.fields, found.metrics, found.user
        if name.startswith((METRIC, USER)):
            prefix, _, name = name.partition("/")
            return (found.metrics if prefix == "metric" else found.user).get(name)
        for part in values:
            if part.get(name) is not None:
                return part[name]
        tag = scalars.get(name) or scalars.get(f"{name}/auto")
        return tag.last_value if tag else None

    return look


def columns(rows: Iterable[dict[str, Any]]) -> list[dict[str, str]]:
    """Columns of a table of values: MindInsight's fields, metrics, the user's; numbers, texts or mixed."""
    kinds: dict[str, set[str]] = {}
    for row in rows:
        for name, value in row.items():
            if value is not None:
                is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
                kinds.setdefault(name, set()).add("number" if is_number else "text")
    fields = [name for name in FIELDS if name in kinds]
    others = sorted(kinds.keys() - set(FIELDS), key=lambda name: (not name.startswith(METRIC), name))
    metrics = [name for name in others if name.startswith(METRIC)]
    ordered = metrics + fields + [name for name in others if not name.startswith(METRIC)]
    return [
        {"name": name, "type": kinds[name].pop() if len(kinds[name]) == 1 else "mixed"} for name in ordered
    ]


def _read(run: Run, tags: list[Tag]) -> Lineage:
    found = Lineage()
    fields, metrics, user, dataset = found.fields, found.metrics, found.user, found.dataset
    last = {tag.name: tag.last_value for tag in tags if tag.kind == Kind.SCALAR}
    whole, ending = False, ""
    for tag in tags:
        if tag.kind not in _KINDS:
            continue
        for entry in run.entries(tag.kind, tag.name) or ():
            try:
                data = run.read(entry)
                if tag.kind == Kind.TRAIN_LINEAGE:
                    fields |= lineage.train(data)
                elif tag.kind == Kind.EVALUATION_LINEAGE:
                    more, measured = lineage.evaluation(data)
                    fields |= more
                    metrics |= measured
                elif tag.kind == Kind.DATASET_GRAPH:
                    dataset.clear()
                    dataset |= lineage.dataset_graph(data)
                elif tag.kind == Kind.USER_DEFINED:
                    user |= lineage.user_defined(data)
                else:
                    given, measured_by = lineage.hparams(data)
                    user |= given
                    ending = lineage.session_end(data) or ending
                    metrics |= {name: last[name] for name in measured_by if name in last}
            except (OSError, ValueError, RecursionError) as error:
                _log.warning("lineage of %s at %d of %s: %s", run.id, entry.offset, entry.source, error)
                continue
            whole |= tag.kind not in (Kind.USER_DEFINED, Kind.PARAMETERS)
    return Lineage(fields, metrics, user, dataset, whole, ending)
