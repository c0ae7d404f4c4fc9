"""What a summary folder holds of a training: curves of numbers, histograms over steps, how it was set up.

Reads the event files of MindSpore and of `SummaryRecord`, also while a run still writes them: a record that
is not whole yet ends its file. Other records (images, graphs, tensors) are passed over.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mycelia.engine.base import errors, wire
from mycelia.io import tfrecord
from mycelia.io.reading import DamagedFileError

_EVENTS, _LINEAGE = ".out.events.summary.", "_lineage"  # parts of the files' names
_TRAIN = 6  # field of an Event with the lineage of a training


@dataclass(slots=True)
class Histogram:
    """Values of a tensor at one step. `edges`, `counts`: buckets of the finite ones; `low`, `high`, `total`:
    their extremes and sum; `nan`, `infinite`: how many others there are; `count`: all.
    """

    edges: np.ndarray
    counts: np.ndarray
    low: float = 0.0
    high: float = 0.0
    total: float = 0.0
    nan: int = 0
    infinite: int = 0
    count: int = 0

    @property
    def mean(self) -> float:
        """Of the finite values, 0 if there are none."""
        return self.total / max(1, self.count - self.nan - self.infinite)

    @property
    def root_mean_square(self) -> float:
        """Of the finite values, as exact as their buckets are narrow."""
        finite = max(1, int(self.counts.sum()))
        middles = (self.edges[:-1] + self.edges[1:]) / 2 if len(self.counts) else self.edges[:0]
        return float(np.sqrt((self.counts * np.square(middles)).sum() / finite))

    @property
    def is_zero(self) -> bool:
        """Whether all values are 0."""
        return self.count > 0 and self.low == self.high == 0.0 and not (self.nan or self.infinite)

    def same(self, other: Histogram) -> bool:
        """Whether the two cannot be told apart."""
        return (
            (self.low, self.high, self.total, self.count) == (other.low, other.high, other.total, other.count)
            and np.array_equal(self.edges, other.edges) and np.array_equal(self.counts, other.counts)
        )  # fmt: skip


@dataclass(slots=True)
class Curve:
    """Numbers of one tag, in order of their steps; a step that was recorded anew has its last number."""

    tag: str
    steps: np.ndarray
    values: np.ndarray

    @property
    def finite(self) -> Curve:
        """Without what is not finite."""
        kept = np.isfinite(self.values)
        return Curve(self.tag, self.steps[kept], self.values[kept])

    def __len__(self) -> int:
        return len(self.values)


@dataclass(slots=True)
class Summaries:
    """`curves` and `histograms`, (step, histogram) in order, by tag; `facts`: optimizer, learning rate, loss,
    epochs and batch size where the run recorded its lineage; `notes`: what could not be read.
    """

    folder: Path
    curves: dict[str, Curve] = field(default_factory=dict)
    histograms: dict[str, list[tuple[int, Histogram]]] = field(default_factory=dict)
    facts: dict[str, float | str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def read_summaries(folder: Path) -> Summaries:
    """Everything of a folder. Errors: ValueError if it has no event file; OSError."""
    files = sorted(p for p in folder.iterdir() if _EVENTS in p.name and p.is_file() and not p.is_symlink())
    if not files:
        raise errors.value_error("--summary-dir", f"{folder} has no event file, NAME{_EVENTS}TIME...")
    found = Summaries(folder)
    numbers: dict[str, dict[int, float]] = {}
    histograms: dict[str, dict[int, Histogram]] = {}
    for path in files:
        try:
            for record in tfrecord.records(str(path)):
                _take(record, path.name.endswith(_LINEAGE), numbers, histograms, found)
        except DamagedFileError as cause:
            # The end of a file that is being written; what was before it has been taken.
            if "cut off" not in str(cause):
                found.notes.append(f"{path.name}: {cause}")
        except (ValueError, KeyError, TypeError, struct.error) as cause:
            found.notes.append(f"{path.name}: a record is no event: {cause}")
    for tag, by_step in sorted(numbers.items()):
        steps = sorted(by_step)
        found.curves[tag] = Curve(tag, np.asarray(steps), np.asarray([by_step[s] for s in steps]))
    found.histograms = {tag: sorted(by_step.items()) for tag, by_step in sorted(histograms.items())}
    return found


def _take(record: bytes, is_lineage: bool, numbers: dict, histograms: dict, found: Summaries) -> None:
    """One Event, of `summary.proto`."""
    step, summary = 0, None
    for number, value in wire.fields(memoryview(record)):
        if is_lineage and number == _TRAIN and not isinstance(value, int):
            _take_lineage(value, found.facts)
        elif number == 2:
            step = wire.signed(value) if isinstance(value, int) else 0
        elif number == 5:
            summary = value
    if is_lineage or summary is None:
        return
    for number, entry in wire.fields(_message(summary)):
        if number != 1:
            continue
        content = dict(wire.fields(_message(entry)))
        tag = _text(content.get(1, b""))
        if 3 in content:
            numbers.setdefault(tag, {})[step] = struct.unpack("<f", content[3])[0]
        elif 9 in content:
            histograms.setdefault(tag, {})[step] = _histogram(content[9])


def _take_lineage(message: memoryview, facts: dict) -> None:
    """Hyper-parameters of a TrainLineage."""
    for number, hyper in wire.fields(message):
        if number != 1 or isinstance(hyper, int):
            continue
        for name, value in wire.fields(hyper):
            if name == 1:
                facts["optimizer"] = _text(value)
            elif name == 2:
                facts["learning_rate"] = struct.unpack("<f", value)[0]
            elif name == 3:
                facts["loss_function"] = _text(value)
            elif name in (4, 8):
                facts["epoch" if name == 4 else "batch_size"] = wire.signed(value)


def _message(value: int | memoryview | bytes) -> memoryview | bytes:
    """Errors: ValueError."""
    if isinstance(value, int):
        raise ValueError("a number stands where a message is expected")
    return value


def _text(value: int | memoryview | bytes) -> str:
    return bytes(_message(value)).decode("utf-8", "replace")


_COUNTS = {2: "nan", 3: "infinite", 4: "infinite", 8: "count"}
_NUMBERS = {5: "high", 6: "low", 7: "total"}


def _histogram(message: memoryview) -> Histogram:
    lefts, widths, counts = [], [], []
    found = Histogram(np.zeros(0), np.zeros(0))
    for number, value in wire.fields(message):
        if number == 1:
            bucket = dict(wire.fields(_message(value)))
            lefts.append(struct.unpack("<d", bucket[1])[0])
            widths.append(struct.unpack("<d", bucket[2])[0])
            counts.append(bucket.get(3, 0))
        elif number in _COUNTS:
            name = _COUNTS[number]
            setattr(found, name, getattr(found, name) + wire.signed(value))
        elif number in _NUMBERS:
            setattr(found, _NUMBERS[number], struct.unpack("<d", value)[0])
    if lefts:
        found.edges = np.append(np.asarray(lefts), lefts[-1] + widths[-1])
        found.counts = np.asarray(counts, np.float64)
    return found
