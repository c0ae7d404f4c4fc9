"""A run in the files of MindSpore's summaries, as MindInsight and Mycelia Insight read them."""

from __future__ import annotations

import os

import numpy as np

from mycelia.engine.base.wire import field
from mycelia.train.summary import values as messages
from mycelia.train.summary.events import double, framed, single, text
from mycelia.train.summary.lineage import FIELDS, UserDefinedInfo
from mycelia_insight.exchange import scalar_events
from mycelia_insight.exchange.export import Writer
from mycelia_insight.exchange.output import begin
from mycelia_insight.exchange.to_tensorboard import TensorBoardWriter
from mycelia_insight.records.histograms import Distribution
from mycelia_insight.records.images import Picture
from mycelia_insight.records.lineage import Value
from mycelia_insight.records.tensors import Tensor
from mycelia_insight.runs.run import Entry, Moment, Points

_COLOURS = 3  # channels of images; a PNG tells its own
_DTYPES = {name.lower(): name for name in messages.DATA_TYPES}
# Names of hyper-parameters that stand for a field of MindSpore's TrainLineage: part, number in it, type.
_FIELDS = {
    "optimizer": (1, 1, str), "learning_rate": (1, 2, float), "lr": (1, 2, float),
    "loss_function": (1, 3, str), "epoch": (1, 4, int), "epochs": (1, 4, int), "batch_size": (1, 8, int),
    "network": (3, 1, str), "model": (3, 1, str),
}  # fmt: skip


class RunWriter(Writer):
    """Writes `*.summary.*_MS` and `*_lineage` to a folder; `seconds`, since 1970: when the run began.

    Texts, sounds and graphs of TensorBoard have no place in MindSpore's files: they go to a file of
    TensorBoard beside, which Mycelia Insight reads as a part of the run.
    """

    def __init__(self, folder: str, seconds: float):
        self._folder = folder
        self._seconds = begin(seconds)
        stem = os.path.join(folder, f"events.out.events.summary.{int(self._seconds)}.0.imported")
        self._file = open(f"{stem}_MS", "wb")
        self._file.write(framed(double(1, self._seconds) + text(3, "MindSpore.Event:1")))
        self._lineage_path = f"{stem}_lineage"
        self._beside: TensorBoardWriter | None = None
        #: Numbers that became infinite, since single precision has none so great.
        self.overflowed = 0

    def single(self, values: np.ndarray) -> np.ndarray:
        """Numbers of scalars, in the precision that files have."""
        with np.errstate(over="ignore"):
            found = values.astype(np.float32)
        self.overflowed += int((np.isinf(found) & np.isfinite(values)).sum())
        return found

    def scalars(self, tag: str, points: Points) -> bool:
        content = single(3, 0.0)
        name = tag.encode("utf-8", "replace")
        self._file.write(scalar_events.records(name, content, points.steps, points.times, points.values))
        return True

    def row(self, at: Moment, values: dict[str, float]) -> None:
        """Scalars of one step, in one event."""
        singles = self.single(np.array(list(values.values()), np.float64)).tolist()
        found = b"".join(
            messages.value(tag, single(3, value)) for tag, value in zip(values, singles, strict=True)
        )
        self._put(at, found)

    def image(self, tag: str, at: Moment, sample: int, picture: Picture) -> bool:
        head = field(1, picture.height) + field(2, picture.width) + field(3, _COLOURS)
        name = f"{tag}/{sample}" if sample else tag
        self._put(at, messages.value(name, field(4, head + field(4, picture.data))))
        return True

    def histogram(self, tag: str, at: Moment, found: Distribution) -> bool:
        self._put(at, messages.value(tag, field(9, _histogram(found))))
        return True

    def tensor(self, tag: str, at: Moment, found: Tensor) -> bool:
        with np.errstate(over="ignore"):
            self._put(at, messages.value(tag, messages.tensor(found.values, _DTYPES.get(found.dtype, ""))))
        return True

    def text(self, tag: str, at: Moment, rows: list[list[str]]) -> bool:
        return self._other().text(tag, at, rows)

    def sound(self, tag: str, at: Moment, sample: int, data: bytes) -> bool:
        return self._other().sound(tag, at, sample, data)

    def graph(self, entry: Entry, data: bytes) -> bool:
        return self._other().graph(entry, data)

    def hyperparameters(self, values: dict[str, Value]) -> bool:
        with open(self._lineage_path, "wb") as file:
            now = double(1, self._seconds)
            if lineage := _train_lineage(values):
                file.write(framed(now + field(FIELDS["train_lineage"], lineage)))
            own = UserDefinedInfo({name: _small(value) for name, value in values.items()}).SerializeToString()
            file.write(framed(now + field(FIELDS["custom_lineage_data"], own)))
        return True

    def close(self) -> None:
        self._file.close()
        if self._beside is not None:
            self._beside.close()

    def _other(self) -> TensorBoardWriter:
        if self._beside is None:
            self._beside = TensorBoardWriter(self._folder, self._seconds)
        return self._beside

    def _put(self, at: Moment, values: bytes) -> None:
        self._file.write(framed(double(1, at.time) + field(2, at.step) + field(5, values)))


def _histogram(found: Distribution) -> bytes:
    """Buckets as MindSpore has them; the sum is that of the buckets' centres."""
    counts = found.counts.clip(0, 2**53).round()
    buckets = b"".join(
        field(1, double(1, left) + double(2, right - left) + field(3, int(count)))
        for left, right, count in zip(found.left.tolist(), found.right.tolist(), counts.tolist(), strict=True)
    )
    odd = (found.nan, found.positive, found.negative)
    low, high = (float(found.left[0]), float(found.right.max())) if len(counts) else (0.0, 0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(((found.left + found.right) / 2 * counts).sum())
    rest = b"".join(field(2 + i, n) for i, n in enumerate(odd))
    ends = double(5, high) + double(6, low) + double(7, total)
    return buckets + rest + ends + field(8, int(counts.sum()) + sum(odd))


def _train_lineage(values: dict[str, Value]) -> bytes:
    """The message, with those of its fields that are known alone."""
    parts: dict[int, bytes] = {}
    seen = set()
    for name, (part, place, kind) in _FIELDS.items():
        value = values.get(name)
        made = b""
        if isinstance(value, bool) or (part, place) in seen:
            continue
        if kind is str and isinstance(value, str):
            made = text(place, value)
        elif kind is float and isinstance(value, (int, float)) and abs(value) < 1e38:
            made = single(place, float(value))
        elif kind is int and isinstance(value, int) and 0 <= value < 2**31:
            made = field(place, value)
        if made:
            seen.add((part, place))
            parts[part] = parts.get(part, b"") + made
    return b"".join(field(part, made) for part, made in parts.items())


def _small(value: Value) -> int | float | str:
    """As lineage has it: whole numbers of 32 bits, numbers of double precision, texts."""
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, int) and not -(2**31) <= value < 2**31:
        return float(value) if abs(value) < 2**1023 else str(value)[:100]
    return value
