"""A run as an event file of TensorBoard."""

from __future__ import annotations

import os

from mycelia.engine.base.wire import field
from mycelia.train.summary import tensorboard
from mycelia.train.summary.events import double, framed, text
from mycelia.train.summary.values import value
from mycelia_insight.exchange import scalar_events
from mycelia_insight.exchange.export import Writer
from mycelia_insight.exchange.output import begin
from mycelia_insight.records.histograms import Distribution
from mycelia_insight.records.images import Picture
from mycelia_insight.records.lineage import Value
from mycelia_insight.records.tensors import Tensor
from mycelia_insight.runs.kinds import Dialect
from mycelia_insight.runs.run import Entry, Moment, Points

_COLOURS = 3  # channels of images; a PNG tells its own


class TensorBoardWriter(Writer):
    """Writes `events.out.tfevents.*` to a folder; `seconds`, since 1970: when the run began."""

    def __init__(self, folder: str, seconds: float):
        self._seconds = begin(seconds)
        self._file = open(os.path.join(folder, f"events.out.tfevents.{int(self._seconds)}.mycelia"), "wb")
        self._file.write(framed(double(1, self._seconds) + tensorboard.VERSION))

    def scalars(self, tag: str, points: Points) -> bool:
        content = tensorboard.scalar(0.0)
        self._file.write(
            scalar_events.records(
                tag.encode("utf-8", "replace"), content, points.steps, points.times, points.values
            )
        )
        return True

    def image(self, tag: str, at: Moment, sample: int, picture: Picture) -> bool:
        head = field(1, picture.height) + field(2, picture.width) + field(3, _COLOURS)
        name = f"{tag}/{sample}" if sample else tag
        return self._put(name, at, tensorboard.image(head + field(4, picture.data)))

    def histogram(self, tag: str, at: Moment, found: Distribution) -> bool:
        return self._put(tag, at, tensorboard.histogram(found.left, found.right, found.counts))

    def tensor(self, tag: str, at: Moment, found: Tensor) -> bool:
        return self._put(tag, at, tensorboard.tensor(found.values))

    def text(self, tag: str, at: Moment, rows: list[list[str]]) -> bool:
        is_table = len(rows) > 1 or any(len(row) != 1 for row in rows)
        sizes = [len(rows), len(rows[0]) if rows else 0] if is_table else [1]
        shape = b"".join(field(2, field(1, n)) for n in sizes)
        cells = b"".join(text(8, cell) for row in rows for cell in row)
        return self._put(tag, at, tensorboard.plugin("text", field(1, 7) + field(2, shape) + cells))

    def sound(self, tag: str, at: Moment, sample: int, data: bytes) -> bool:
        # Number of the sample and an empty label: [1, 2] texts.
        shape = field(2, field(1, 1)) + field(2, field(1, 2))
        name = f"{tag}/{sample}" if sample else tag
        return self._put(
            name,
            at,
            tensorboard.plugin("audio", field(1, 7) + field(2, shape) + field(8, data) + text(8, "")),
        )

    def graph(self, entry: Entry, data: bytes) -> bool:
        made = data if entry.dialect == Dialect.TENSORBOARD else tensorboard.graph_def(data)
        self._file.write(framed(double(1, entry.time) + field(4, made)))
        return True

    def hyperparameters(self, values: dict[str, Value]) -> bool:
        made = b"".join(tensorboard.hyperparameters(values, self._seconds))
        self._file.write(framed(double(1, self._seconds) + field(5, made)))
        return True

    def close(self) -> None:
        self._file.close()

    def _put(self, tag: str, at: Moment, content: bytes) -> bool:
        event = double(1, at.time) + field(2, at.step) + field(5, value(tag, content))
        self._file.write(framed(event))
        return True
