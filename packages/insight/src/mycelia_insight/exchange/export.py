"""A run's values, one after the other, to a writer of another format."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from mycelia_insight.records import histograms, images, layers, sounds, tensors, texts
from mycelia_insight.records.lineage import Value
from mycelia_insight.records.reading import message
from mycelia_insight.records.wire import Broken
from mycelia_insight.runs.kinds import Kind
from mycelia_insight.runs.lineages import METRIC, USER, Lineages
from mycelia_insight.runs.run import Entry, Moment, Points, Run, Tag

_ALL = 1 << 30  # boxes of a layer
_LINEAGE = {
    Kind.TRAIN_LINEAGE, Kind.EVALUATION_LINEAGE, Kind.DATASET_GRAPH, Kind.USER_DEFINED, Kind.PARAMETERS,
}  # fmt: skip


class Writer:
    """A run in another format; what it has no place for returns False."""

    def scalars(self, tag: str, points: Points) -> bool:
        """Some points of a scalar, in their order."""
        return False

    def image(self, tag: str, at: Moment, sample: int, picture: images.Picture) -> bool:
        return False

    def layer(self, tag: str, at: Moment, found: layers.Layer, mask: images.Picture | None) -> bool:
        """Boxes and a mask over the first image of a tag at a step."""
        return False

    def histogram(self, tag: str, at: Moment, found: histograms.Distribution) -> bool:
        return False

    def tensor(self, tag: str, at: Moment, found: tensors.Tensor) -> bool:
        return False

    def text(self, tag: str, at: Moment, rows: list[list[str]]) -> bool:
        return False

    def sound(self, tag: str, at: Moment, sample: int, data: bytes) -> bool:
        return False

    def graph(self, entry: Entry, data: bytes) -> bool:
        return False

    def hyperparameters(self, values: dict[str, Value]) -> bool:
        return False

    def close(self) -> None:
        """What is left to be written."""


@dataclass
class Counts:
    """How many values there were of each kind, and how many of them the format has no place for."""

    kept: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)

    def told(self, runs: int, place: str) -> str:
        """`2 runs in PLACE: 3 images, 1 text`."""
        return (
            f"{runs} run{'s' * (runs != 1)} in {os.path.abspath(place)}: {_listed(self.kept) or 'no values'}"
        )

    def told_left(self) -> str:
        """What there was no place for; "" if there was for all."""
        return _listed(self.left)


def copy(
    run: Run, tags: re.Pattern[str], writer: Writer, warn: Callable[[str], None], counts: Counts
) -> None:
    """Hand all values of a run to a writer, and count them.

    tags: which tags; graphs and hyper-parameters go along whatever it says. A value that cannot be read is
    named to `warn` and passed over.  Errors: OSError of what is written.
    """
    known = run.tags()
    for tag in known:
        name = tag.kind.name.lower()
        if tag.kind in _LINEAGE or (tag.name and not tags.search(tag.name)):
            continue
        if tag.kind == Kind.SCALAR:
            for points in run.walk(tag.name):
                counts.kept[name] += len(points.steps)
                writer.scalars(tag.name, points)
            continue
        for entry in run.entries(tag.kind, tag.name) or ():
            try:
                for kind, put in list(_given(run, tag, entry, writer)):
                    (counts.kept if put() else counts.left)[kind] += 1
            except (Broken, ValueError, IndexError, RecursionError) as error:
                warn(f"{run.id}: {name} {tag.name!r} at step {entry.step} is left out: {error}")
    values = parameters_of(run, known)
    if values:
        (counts.kept if writer.hyperparameters(values) else counts.left)["hyper-parameter"] += len(values)


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{n} {name}{'s' * (n != 1)}" for name, n in sorted(counts.items()))


def parameters_of(run: Run, known: list[Tag]) -> dict[str, Value]:
    """What a run was made of, by name; a user's value goes before a field of the same name."""
    found = Lineages().of(run, known)
    metrics = {METRIC + name: value for name, value in found.metrics.items()}
    own = {name.removeprefix(USER): value for name, value in found.user.items()}
    values = {**found.fields, **metrics, **own}
    return {name: value for name, value in values.items() if value is not None}


def _given(run: Run, tag: Tag, entry: Entry, writer: Writer) -> Iterator[tuple[str, Callable[[], bool]]]:
    """(kind, how to write it) of each value of an entry, read before anything of it is written."""
    data, name, kind = message(run, entry), tag.name, tag.kind.name.lower()
    if tag.kind == Kind.IMAGE:
        _, count = images.decode(data, entry.dialect)
        for sample in range(count):
            picture, _ = images.decode(data, entry.dialect, sample)
            yield kind, lambda sample=sample, picture=picture: writer.image(name, entry, sample, picture)
        for layer in layers.layers(data, _ALL):
            mask = images.picture(layer.mask) if layer.mask else None
            yield "layer", lambda layer=layer, mask=mask: writer.layer(name, entry, layer, mask)
    elif tag.kind == Kind.HISTOGRAM:
        distribution = histograms.decode(data, entry.dialect)
        yield kind, lambda: writer.histogram(name, entry, distribution)
    elif tag.kind == Kind.TENSOR:
        tensor = tensors.decode(data, entry.dialect)
        yield kind, lambda: writer.tensor(name, entry, tensor)
    elif tag.kind == Kind.TEXT:
        rows = texts.decode(data)
        yield kind, lambda: writer.text(name, entry, rows)
    elif tag.kind == Kind.AUDIO:
        _, count = sounds.decode(data)
        for sample in range(count):
            sound, _ = sounds.decode(data, sample)
            yield kind, lambda sample=sample, sound=sound: writer.sound(name, entry, sample, sound)
    elif tag.kind == Kind.GRAPH:
        yield kind, lambda: writer.graph(entry, data)
    else:
        yield kind, lambda: False


def finite_or_word(value: float) -> float | str:
    """JSON has no numbers that are not finite: "NaN", "Infinity" and "-Infinity" stand for them."""
    return value if np.isfinite(value) else {np.inf: "Infinity", -np.inf: "-Infinity"}.get(value, "NaN")
