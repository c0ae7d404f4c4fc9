"""Embeddings of a run: tensors of rank 2 and TensorBoard's projector folders; axes, neighbours, labels."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np

from mycelia_insight.records import projector, tensors, texts
from mycelia_insight.records.reading import MOST_BYTES, at_step, message
from mycelia_insight.records.wire import Broken
from mycelia_insight.runs.kinds import Kind
from mycelia_insight.runs.run import Run

CONFIG = "projector_config.pbtxt"
MOST_COMPONENTS = 50
MOST_GRAPH = 20_000  # rows of which all neighbours are told
_KEPT = 2
_HEAD = 4096  # bytes of a message that its shape is read from
_MOST_CONFIG = 1 << 20
_BLOCK = 4 << 20  # distances at once
_LABELS = "metadata.tsv"
METRICS = ("euclidean", "cosine")


@dataclass(frozen=True)
class Source:
    """What can be asked for. id: `tensor:TAG`, or `projector:NAME` of a projector's configuration."""

    id: str
    name: str
    steps: list[int]
    shape: tuple[int, ...]  # of the last step; () where only the file tells


class Embedding:
    """Vectors float32 [rows, dimensions], those with values that are not finite left out.

    rows: places of the vectors in what was recorded, of `count`. labels: a row of texts for each vector, by
    `columns`. trouble: why there are no labels, if there were to be some.
    """

    def __init__(
        self,
        values: np.ndarray,
        columns: list[str] | None = None,
        labels: list[list[str]] | None = None,
        trouble: str = "",
    ):
        """`labels`: of all rows of `values`."""
        with np.errstate(invalid="ignore", over="ignore"):
            narrow = np.ascontiguousarray(values, np.float32)
        self.rows, self.count = np.flatnonzero(np.isfinite(narrow).all(1)), len(values)
        self.values = narrow[self.rows]
        self.columns, self.trouble = columns or [], trouble
        self.labels = [labels[i] for i in self.rows.tolist()] if labels else []
        self._lock = threading.Lock()
        self._axes: tuple[np.ndarray, np.ndarray] | None = None
        self._graph: tuple[int, tuple[np.ndarray, np.ndarray]] | None = None

    def components(self) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates float32 [rows, k] on the first principal axes, and the share of variance of each."""
        with self._lock:
            if self._axes is None:
                self._axes = _principal(self.values)
            return self._axes

    def neighbours(self, place: int, count: int, metric: str) -> tuple[np.ndarray, np.ndarray]:
        """Places and distances of the vectors nearest to one, itself left out, the nearest first."""
        distances = _distances(self.values, self.values[place : place + 1], metric)[0]
        distances[place] = np.inf
        count = min(count, len(distances) - 1)
        nearest = np.argpartition(distances, count - 1)[:count] if count else np.empty(0, np.int64)
        nearest = nearest[np.lexsort((nearest, distances[nearest]))]
        return nearest, distances[nearest]

    def graph(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Of each vector the places int32 [rows, count] and distances float32 of its nearest ones.

        Errors: ValueError, of more than MOST_GRAPH rows.
        """
        if len(self.values) > MOST_GRAPH:
            raise ValueError(
                f"neighbours of {len(self.values)} vectors are not computed; at most {MOST_GRAPH}"
            )
        count = max(0, min(count, len(self.values) - 1))
        with self._lock:
            if self._graph is None or self._graph[0] != count:
                self._graph = count, _nearest(self.values, count)
            return self._graph[1]


class Embeddings:
    """Decoded embeddings, the last ones asked for; requests for the same one wait for each other."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple, Embedding] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, run: Run, id: str, step: int | None) -> Embedding | None:
        """None: there is no such embedding.  Errors: Missing, Broken, OSError."""
        kind, _, name = id.partition(":")
        if kind == "tensor":
            entries = run.entries(Kind.TENSOR, name)
            if not entries:
                return None
            entry = at_step(entries, step)
            return self._made(
                (run.id, entry), lambda: _of_tensor(run, name, message(run, entry), entry.dialect)
            )
        config = (
            next((one for one in configs(run) if one.name == name), None) if kind == "projector" else None
        )
        if config is None:
            return None
        state = os.stat(inside(run.folder, config.tensor_path))
        key = (run.id, config, state.st_mtime_ns, state.st_size)
        return self._made(key, lambda: _of_files(run, config))

    def _made(self, key: tuple, make) -> Embedding:
        with self._lock:
            if key not in self._kept:
                self._kept[key] = make()
                while len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(key)
            return self._kept[key]


def sources(run: Run) -> list[Source]:
    """Tensors that were of rank 2 at their last step, then those of the projector's configuration."""
    found = []
    for tag in run.tags():
        if tag.kind != Kind.TENSOR:
            continue
        entries = run.entries(Kind.TENSOR, tag.name) or []
        try:
            shape = tensors.shape_of(run.read(entries[-1], _HEAD), entries[-1].dialect) if entries else ()
        except (OSError, ValueError):
            continue
        if len(shape) == 2 and min(shape) > 0:
            found.append(Source(f"tensor:{tag.name}", tag.name, [entry.step for entry in entries], shape))
    try:
        given = configs(run)
    except (OSError, Broken):
        given = []
    return found + [Source(f"projector:{one.name}", one.name, [], ()) for one in given]


def has_projector(run: Run) -> bool:
    """Whether there is a configuration of TensorBoard's projector."""
    return os.path.isfile(os.path.join(run.folder, CONFIG))


def configs(run: Run) -> list[projector.Config]:
    """Embeddings in files, as the projector's configuration names them.  Errors: Broken, OSError."""
    if not has_projector(run):
        return []
    listed = projector.configs(_text(run.folder, CONFIG, _MOST_CONFIG))
    return [one for one in listed if one.tensor_path.endswith(".tsv")]


def inside(folder: str, path: str) -> str:
    """A path below a folder, wherever links lead.  Errors: Broken, if it is outside."""
    root = os.path.realpath(folder)
    found = os.path.realpath(os.path.join(root, path))
    if "\0" in path or os.path.commonpath([root, found]) != root:
        raise Broken(f"{path!r} is not in the folder of the run")
    return found


def _text(folder: str, path: str, most: int = MOST_BYTES) -> str:
    with open(inside(folder, path), "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise Broken(f"{path} has more than {most} bytes")
    return data.decode("utf-8", "replace")


def _of_tensor(run: Run, name: str, data: bytes, dialect) -> Embedding:
    values = tensors.decode(data, dialect).values
    if values.ndim != 2 or not values.size:
        raise Broken(f"an embedding is a tensor of rank 2, got the shape {list(values.shape)}")
    told = run.entries(Kind.TEXT, f"{name}/metadata")
    if told:
        try:
            lines = texts.decode(message(run, told[-1], texts.MOST_BYTES))
        except Broken as error:
            return Embedding(values, trouble=f"{name}/metadata: {error}")
        # One text is a table as in a file; a tensor of texts is its cells.
        rows = "\n".join("\t".join(row) for row in lines)
        return _labelled(values, rows, f"{name}/metadata")
    if os.path.isfile(os.path.join(run.folder, _LABELS)):
        return _with_file(run, values, _LABELS)
    return Embedding(values)


def _of_files(run: Run, config: projector.Config) -> Embedding:
    values = projector.vectors(_text(run.folder, config.tensor_path))
    if not values.size:
        raise Broken(f"{config.tensor_path} has no vectors")
    return _with_file(run, values, config.metadata_path) if config.metadata_path else Embedding(values)


def _with_file(run: Run, values: np.ndarray, path: str) -> Embedding:
    try:
        text = _text(run.folder, path)
    except (OSError, Broken) as error:
        return Embedding(values, trouble=f"{path}: {error}")
    return _labelled(values, text, path)


def _labelled(values: np.ndarray, text: str, path: str) -> Embedding:
    try:
        columns, rows = projector.labels(text, len(values))
    except Broken as error:
        return Embedding(values, trouble=f"{path}: {error}")
    return Embedding(values, columns, rows)


def _principal(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Exact: eigenvectors of the covariance, or of the products of rows where there are fewer rows."""
    count, width = values.shape
    if not count:
        return np.empty((0, 0), np.float32), np.empty(0)
    centred = values.astype(np.float64)
    centred -= centred.mean(0)
    kept = min(MOST_COMPONENTS, count, width)
    if width <= count:
        weights, vectors = np.linalg.eigh(centred.T @ centred)
        found = centred @ vectors[:, ::-1][:, :kept]
    else:
        weights, vectors = np.linalg.eigh(centred @ centred.T)
        found = vectors[:, ::-1][:, :kept] * np.sqrt(np.maximum(weights[::-1][:kept], 0))
    total = max(float(np.maximum(weights, 0).sum()), np.finfo(float).tiny)
    # An axis has no direction of its own: the point farthest along it lies on the positive side.
    farthest = found[np.abs(found).argmax(0), np.arange(kept)]
    found *= np.where(farthest < 0, -1, 1)
    return found.astype(np.float32), np.maximum(weights[::-1][:kept], 0) / total


def _distances(values: np.ndarray, to: np.ndarray, metric: str) -> np.ndarray:
    """float64 [len(to), len(values)]."""
    wide, few = values.astype(np.float64), to.astype(np.float64)
    if metric == "cosine":
        lengths = np.sqrt(np.einsum("ij,ij->i", few, few))[:, None] * np.sqrt(
            np.einsum("ij,ij->i", wide, wide)
        )
        return 1 - few @ wide.T / np.maximum(lengths, np.finfo(float).tiny)
    if len(few) == 1:
        return np.sqrt(np.square(wide - few).sum(1))[None]
    squares = np.einsum("ij,ij->i", few, few)[:, None] + np.einsum("ij,ij->i", wide, wide) - 2 * few @ wide.T
    return np.sqrt(np.maximum(squares, 0))


def _nearest(values: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    rows = len(values)
    places, found = np.empty((rows, count), np.int32), np.empty((rows, count), np.float32)
    centred = values - values.mean(0, dtype=np.float64).astype(np.float32) if rows else values
    block = max(1, _BLOCK // max(1, rows))
    for begin in range(0, rows if count else 0, block):
        distances = _distances(centred, centred[begin : begin + block], "euclidean")
        own = np.arange(len(distances))
        distances[own, own + begin] = np.inf
        nearest = np.argpartition(distances, count - 1, 1)[:, :count]
        order = np.take_along_axis(distances, nearest, 1).argsort(1, kind="stable")
        nearest = np.take_along_axis(nearest, order, 1)
        places[begin : begin + block] = nearest
        found[begin : begin + block] = np.take_along_axis(distances, nearest, 1)
    return places, found
