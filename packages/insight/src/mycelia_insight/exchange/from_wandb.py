"""Runs that W&B recorded offline: folders with `run-ID.wandb` and, below `files`, images.

Fields: wandb/proto/wandb_internal.proto. Values of history, settings and statistics are JSON texts by key; a
key may be a path of keys.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from mycelia_insight.exchange.export import Counts
from mycelia_insight.exchange.run_writer import RunWriter
from mycelia_insight.exchange.sources import Source, Warn, files, flattened, number, opened_file, readable
from mycelia_insight.exchange.wandb_log import records
from mycelia_insight.records.histograms import Distribution
from mycelia_insight.records.images import picture
from mycelia_insight.records.lineage import Value
from mycelia_insight.records.wire import BYTES, VARINT, WIDE, Broken, fields, numbers, signed
from mycelia_insight.runs.run import Moment

_HISTORY, _SUMMARY, _CONFIG, _STATISTICS, _RUN = 2, 3, 5, 7, 17  # of a Record
_MOST_IMAGE = 64 << 20  # bytes of a file
_MOST_BUCKETS = 1 << 16
_DEEPEST = 20  # keys of a path
_MESSAGES = (Broken, ValueError, TypeError, RecursionError)


def sources(folder: str, warn: Warn) -> list[Source]:
    """Runs below a folder."""
    found = []
    for path in files(folder):
        if not path.endswith(".wandb"):
            continue
        place = os.path.join(folder, path)
        try:
            about = next((one for kind, one in _read(place, lambda _: None) if kind == _RUN), b"")
            title, seconds = _about(about)
        except (OSError, *_MESSAGES) as error:
            warn(f"{place} is left out: {error}")
            continue
        id = title.get("wandb.id") or os.path.basename(path).removesuffix(".wandb").removeprefix("run-")
        name = readable(title.get("wandb.name", ""), id)
        if project := title.get("wandb.project"):
            name = os.path.join(readable(project), name)
        found.append(Source(name, seconds, partial(_write, place, seconds)))
    return found


def _write(path: str, began: float, writer: RunWriter, counts: Counts, warn: Warn) -> None:
    values: dict[str, Value] = {}
    results: dict[str, Any] = {}
    run = _Run(path, began, writer, counts, warn)
    readers: dict[int, Callable[[bytes], None]] = {_HISTORY: run.history, _STATISTICS: run.statistics}
    for kind, message in _read(path, lambda what: warn(f"{path}: {what}")):
        try:
            if kind == _CONFIG:
                values |= _settings(message)
            elif kind == _SUMMARY:
                results |= _items(message)
            elif kind == _RUN:
                values |= _about(message)[0]
                for field_, wire, value in fields(message):
                    if field_ == 4 and wire == BYTES:
                        values |= _settings(bytes(value))
            elif kind in readers:
                readers[kind](message)
        except _MESSAGES as error:
            warn(f"{path}: a record is left out: {error}")
    # W&B notes there the last value of what the history has, too, and by `_` what it notes of itself.
    own = {key: one for key, one in results.items() if key not in run.recorded and not key.startswith("_")}
    values |= {f"summary.{key}": one for key, one in flattened(own)}
    writer.hyperparameters(values)
    counts.kept["hyper-parameter"] += len(values)


def _read(path: str, warn: Warn) -> Iterator[tuple[int, bytes]]:
    """(field of what a record is, its message)."""
    with opened_file(path) as file:
        for record in records(file, warn):
            try:
                yield from [(n, bytes(one)) for n, kind, one in fields(record) if kind == BYTES]
            except Broken as error:
                warn(f"a record is left out: {error}")


class _Run:
    def __init__(self, path: str, began: float, writer: RunWriter, counts: Counts, warn: Warn):
        self._path, self._writer, self._counts, self._warn = path, writer, counts, warn
        self._files = os.path.join(os.path.dirname(path), "files")
        self._next, self._time, self._began = 0, 0.0, began
        self.recorded: set[str] = set()  # keys of the history

    def history(self, message: bytes) -> None:
        """What one call of `wandb.log` recorded."""
        found, step = _items(message), self._next
        for number_, kind, value in fields(message):
            if number_ == 2 and kind == BYTES:
                step = next((signed(n) for i, k, n in fields(value) if i == 1 and k == VARINT), 0)
        told = found.pop("_step", None)
        if isinstance(told, int) and -(2**63) <= told < 2**63:
            step = told
        time = number(found.pop("_timestamp", None))
        if time is not None and np.isfinite(time):
            self._time = time
        found.pop("_runtime", None)
        self.recorded |= found.keys()
        at, self._next = Moment(step, self._time), step + 1
        scalars: dict[str, float] = {}
        for key, value in found.items():
            self._value(key, value, at, scalars)
        if scalars:
            self._writer.row(at, scalars)
            self._counts.kept["scalar"] += len(scalars)

    def statistics(self, message: bytes) -> None:
        """Use of the machine, as scalars `system/...`; steps are seconds since the begin."""
        time = next((_time(v) for n, k, v in fields(message) if n == 2 and k == BYTES), self._time)
        values = {f"system/{key}": value for key, value in flattened(_items(message, 3))}
        scalars = {key: n for key, value in values.items() if (n := number(value)) is not None}
        if scalars:
            self._writer.row(Moment(int(time - self._began), time), scalars)
            self._counts.kept["scalar"] += len(scalars)

    def _value(self, key: str, value: Any, at: Moment, scalars: dict[str, float]) -> None:
        if (found := number(value)) is not None:
            scalars[key] = found
        elif isinstance(value, dict) and "_type" not in value:
            for name, one in value.items():
                self._value(f"{key}.{name}", one, at, scalars)
        elif isinstance(value, dict) and value["_type"] in _MEDIA:
            kind, read = _MEDIA[value["_type"]]
            try:
                read(self, key, value, at)
            except (OSError, OverflowError, KeyError, *_MESSAGES) as error:
                self._warn(f"{self._path}: {kind} {key!r} at step {at.step} is left out: {error}")
        elif isinstance(value, str):
            self._writer.text(key, at, [[value]])
            self._counts.kept["text"] += 1
        elif value is not None:
            what = value.get("_type", "") if isinstance(value, dict) else ""
            self._counts.left[what if isinstance(what, str) and what else "list"] += 1

    def _image(self, key: str, value: dict, at: Moment, sample: int = 0) -> None:
        self._put_image(key, str(value["path"]), at, sample)

    def _images(self, key: str, value: dict, at: Moment) -> None:
        names = value.get("filenames")
        if not isinstance(names, list):
            raise ValueError("it names no files")
        for sample, name in enumerate(names):
            self._put_image(key, str(name), at, sample)

    def _put_image(self, key: str, path: str, at: Moment, sample: int) -> None:
        parts = path.split("/")
        place = os.path.join(self._files, *parts)
        if os.path.realpath(place) != os.path.join(os.path.realpath(self._files), *parts):
            raise ValueError(f"{path[:100]!r} is no path below the run's files, or goes through a link")
        with opened_file(place) as file:
            data = file.read(_MOST_IMAGE + 1)
        if len(data) > _MOST_IMAGE:
            raise ValueError(f"{path[:100]!r} has more than {_MOST_IMAGE} bytes")
        self._writer.image(key, at, sample, picture(data))
        self._counts.kept["image"] += 1

    def _histogram(self, key: str, value: dict, at: Moment) -> None:
        counts = _listed(value["values"])
        if packed := value.get("packedBins"):
            edges = float(packed["min"]) + float(packed["size"]) * np.arange(len(counts) + 1)
        else:
            edges = _listed(value["bins"])
        if len(edges) != len(counts) + 1 or (np.diff(edges) < 0).any() or (counts < 0).any():
            raise ValueError(f"{len(edges)} ends of {len(counts)} buckets are no histogram")
        self._writer.histogram(key, at, Distribution(edges[:-1], edges[1:], counts))
        self._counts.kept["histogram"] += 1


_MEDIA = {
    "image-file": ("image", _Run._image),
    "images/separated": ("images", _Run._images),
    "histogram": ("histogram", _Run._histogram),
}


def _listed(value: Any) -> np.ndarray:
    if not isinstance(value, list) or len(value) > _MOST_BUCKETS:
        raise ValueError(f"buckets are a list of at most {_MOST_BUCKETS} numbers")
    found = np.array(value, np.float64)
    if found.ndim != 1 or not np.isfinite(found).all():
        raise ValueError("buckets of a histogram are not finite")
    return found


def _items(message: bytes, place: int = 1) -> dict[str, Any]:
    """Values by key; a path of keys becomes objects in objects.  Errors: Broken, ValueError."""
    found: dict[str, Any] = {}
    for number_, kind, item in fields(message):
        if number_ != place or kind != BYTES:
            continue
        keys, value = [], None
        for part, its, content in fields(item):
            if part in (1, 2) and its == BYTES:
                keys.append(_text(content))
            elif part == 4 and its == VARINT:
                value = float(bool(content))
            elif part == 5 and its == VARINT:
                value = signed(content)
            elif part == 6 and its == WIDE:
                value = float(numbers([content], "<f8")[0])
            elif part == 7 and its == BYTES:
                value = _text(content)
            elif part in (8, 16) and its == BYTES:
                value = json.loads(_text(content))
        if not keys or len(keys) > _DEEPEST:
            raise ValueError(f"a value has {len(keys)} keys")
        inside = found
        for key in keys[:-1]:
            below = inside.get(key)
            inside[key] = below if isinstance(below, dict) else {}
            inside = inside[key]
        inside[keys[-1]] = value
    return found


def _settings(message: bytes) -> dict[str, Value]:
    """Of a ConfigRecord, without what W&B notes of itself; older ones wrap values: `{"value": ...}`."""
    found = {}
    for key, value in _items(message).items():
        if key in ("_wandb", "wandb_version"):
            continue
        is_wrapped = isinstance(value, dict) and "value" in value and value.keys() <= {"value", "desc"}
        found[key] = value["value"] if is_wrapped else value
    return dict(flattened(found))


def _about(message: bytes) -> tuple[dict[str, str], float]:
    """Of a RunRecord: id, project, name, notes and tags as settings `wandb.*`; when it began."""
    names = {1: "id", 3: "project", 8: "name", 9: "notes", 10: "tags"}
    found: dict[str, str] = {}
    seconds = 0.0
    for number_, kind, value in fields(message):
        if number_ in names and kind == BYTES and (text := _text(value)[:500]):
            name = f"wandb.{names[number_]}"
            found[name] = f"{found[name]}, {text}" if name in found and number_ == 10 else text
        elif number_ == 17 and kind == BYTES:
            seconds = _time(value)
    return found, seconds


def _time(message: memoryview) -> float:
    """google.protobuf.Timestamp in seconds since 1970."""
    parts = {n: signed(value) for n, kind, value in fields(message) if kind == VARINT}
    return parts.get(1, 0) + parts.get(2, 0) / 1e9


def _text(value: memoryview) -> str:
    return bytes(value).decode("utf-8", "replace")
