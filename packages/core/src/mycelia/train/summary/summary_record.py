"""`SummaryRecord`: writes what a training shows of itself to event files."""

from __future__ import annotations

import atexit
import os
import re
import sys
import time
from collections import defaultdict
from pathlib import Path
from urllib.parse import quote

import numpy as np

from mycelia.engine.base import errors, ignored, log
from mycelia.engine.base.wire import field
from mycelia.engine.ops.control_flow import summary_sink
from mycelia.engine.tensors.tensor import Tensor
from mycelia.io.files import atomic_write
from mycelia.nn.cell import Cell
from mycelia.train.summary import tensorboard as tensorboard_messages
from mycelia.train.summary import values
from mycelia.train.summary.alive import AliveFile
from mycelia.train.summary.annotations import annotated
from mycelia.train.summary.artifacts import Artifacts
from mycelia.train.summary.events import EventFile, begin_event_file, double, event_file_name, text
from mycelia.train.summary.graph import graph_message, graph_of
from mycelia.train.summary.lineage import FIELDS, Message

_VALUES = ("scalar", "image", "tensor", "histogram")
#: Option -> its values.
EXPORT_OPTIONS = {"tensor_format": {"npy", None}}
_OTHERS = (*FIELDS, "graph", "landscape")


def make_directory(path, name: str) -> str:
    """The directory `path`, made if needed, as an absolute path. Errors: TypeError, ValueError when empty."""
    if not isinstance(path, str):
        raise errors.type_error("SummaryRecord", f"{name} must be a str, but got {type(path).__name__}")
    if not path.strip():
        raise errors.value_error("SummaryRecord", f"{name} must not be empty")
    found = Path(path).absolute()
    found.mkdir(parents=True, exist_ok=True)
    return os.path.realpath(found)


def check_export_options(options) -> dict | None:
    """``{"tensor_format": "npy"}``, a None there, or None. Errors: TypeError, ValueError."""
    if options is None:
        return None
    if not isinstance(options, dict):
        raise errors.type_error(
            "SummaryRecord", f"export_options must be a dict, but got {type(options).__name__}"
        )
    for name, kind in options.items():
        if not isinstance(name, str) or not isinstance(kind, (str, type(None))):
            raise errors.type_error("SummaryRecord", "export_options must map texts to texts or None")
        if name not in EXPORT_OPTIONS:
            raise errors.value_error(
                "SummaryRecord",
                f'the keys {{{name!r}}} of "export_options" are unsupported',
                hint=f"there are {', '.join(EXPORT_OPTIONS)}",
            )
        if kind not in EXPORT_OPTIONS[name]:
            raise errors.one_of(kind, ["npy", None], subject="SummaryRecord", what=name)
    return options


class SummaryRecord:
    """Collects values with `add_value` and writes them with `record`.

    `log_dir`: directory of the run; `file_prefix`, `file_suffix`: of the file's name; `network`: a Cell whose
    graph is recorded once, when it was compiled; `max_file_size`: bytes after which a file ends;
    `raise_exception`: whether errors of the disk are raised; `export_options`: ``{"tensor_format": "npy"}``
    saves tensors as files too; `num_process` has no effect: records are written where they are made;
    `tensorboard`: whether TensorBoard's file, `events.out.tfevents.*`, is written beside, without landscapes
    and pipelines, with hyper-parameters at the end; `artifacts`: whether checkpoints and exports that are
    written meanwhile are listed in `mycelia-artifacts.jsonl`, with what they were made of. One open
    instance a process; usable as a context manager.
    Errors: TypeError and ValueError for bad arguments, RuntimeError for a second instance.
    """

    count = 0

    @ignored.arguments(num_process="records are written where they are made")
    def __init__(
        self,
        log_dir,
        file_prefix="events",
        file_suffix="_MS",
        num_process=32,
        network=None,
        max_file_size=None,
        raise_exception=False,
        export_options=None,
        tensorboard=False,
        artifacts=True,
    ):
        if SummaryRecord.count > 0:
            raise errors.runtime_error(
                "SummaryRecord", "another one is open", hint="close() it first: one a process is open"
            )
        directory = make_directory(log_dir, "log_dir")
        if not isinstance(max_file_size, (int, type(None))):
            raise errors.type_error(
                "SummaryRecord", f"max_file_size must be an int, but got {type(max_file_size).__name__}"
            )
        for name, flag in (
            ("raise_exception", raise_exception),
            ("tensorboard", tensorboard),
            ("artifacts", artifacts),
        ):
            if not isinstance(flag, bool):
                raise errors.type_error("SummaryRecord", f"{name} must be a bool, but got {flag!r}")
        if not isinstance(network, (Cell, type(None))):
            raise errors.type_error(
                "SummaryRecord", f"network must be a Cell or None, but got {type(network).__name__}"
            )
        for name, part in (("file_prefix", file_prefix), ("file_suffix", file_suffix)):
            if not isinstance(part, str):
                raise errors.type_error("SummaryRecord", f"{name} must be a str, but got {part!r}")
            if not re.fullmatch(r"[0-9a-zA-Z_.-]+", part):
                raise errors.value_error("SummaryRecord", f"{name} {part!r} is no part of a file name")
        if max_file_size is not None and max_file_size < 0:
            log.logger(__name__).warning("max_file_size %d is ignored: it is negative", max_file_size)
            max_file_size = None
        self._export = check_export_options(export_options)
        self.network, self._has_graph = network, False
        self._mode, self._closed = "train", False
        self._pool: dict[str, list[tuple]] = defaultdict(list)
        self._taken: dict[tuple[str, str], tuple[np.ndarray, str]] = {}  # of operators, since the last record
        self._rooms: dict[tuple[str, str], np.ndarray] = {}  # where their values lie: new memory is dear
        seconds = begin_event_file(directory, file_prefix, file_suffix, int(time.time()))
        self._directory, self._seconds = directory, seconds
        version = double(1, time.time()) + text(3, "MindSpore.Event:1")
        self._path = os.path.join(directory, event_file_name(file_prefix, file_suffix, seconds))
        lineage = os.path.join(directory, event_file_name(file_prefix, "_lineage", seconds))
        self._events = EventFile(self._path, max_file_size, raise_exception, version)
        self._lineage = EventFile(lineage, max_file_size, raise_exception)
        self._twin: EventFile | None = None  # TensorBoard's
        self._setup: dict[str, int | float | str] = {}  # hyper-parameters, for TensorBoard
        if tensorboard:
            twin = os.path.join(directory, event_file_name(file_prefix, file_suffix, seconds, "tfevents"))
            first = double(1, time.time()) + tensorboard_messages.VERSION
            self._twin = EventFile(twin, max_file_size, raise_exception, first)
        self._alive = AliveFile(directory)
        self._artifacts = Artifacts(directory) if artifacts else None
        SummaryRecord.count += 1
        summary_sink.active.append(self)
        atexit.register(self._end)

    def __enter__(self) -> SummaryRecord:
        if self._closed:
            raise errors.value_error("SummaryRecord", "it is closed already")
        return self

    def __exit__(self, *err) -> None:
        self.close(err[0] if err else None)

    @property
    def log_dir(self) -> str:
        """The path of the event file."""
        return self._path

    @property
    def artifacts(self) -> Artifacts | None:
        """What lists the run's files, None if they are not listed."""
        return self._artifacts

    def set_mode(self, mode: str) -> None:
        """ "train" or "eval": only in training values of operators are recorded. Errors: ValueError."""
        if mode not in ("train", "eval"):
            raise errors.one_of(mode, ["train", "eval"], subject="SummaryRecord.set_mode", what="mode")
        self._mode = mode

    def take(self, kind: str, name: str, tensor) -> None:
        """A value of a summary operator; the newest of a name counts.

        Errors: as of `add_value`.
        """
        if isinstance(tensor, np.ndarray):
            tensor = Tensor(tensor)
        _check_form(kind, tensor)
        array, key = tensor.asnumpy(), (kind, name)
        room = self._rooms.get(key)
        if room is None or room.shape != array.shape or room.dtype != array.dtype:
            room = self._rooms[key] = array.copy()
        else:
            np.copyto(room, array)
        self._taken[key] = room, str(tensor.dtype)

    def add_value(self, plugin: str, name: str, value, *, boxes=None, masks=None) -> None:
        """Keep a value for the next `record`.

        `plugin`: "scalar", "image", "tensor" or "histogram" with a Tensor, "graph" with the bytes of a graph
        pb, a lineage kind or "landscape" with a message. `boxes`, over one image [1, C, H, W]: by the name of
        a layer an array [n, 4] of x0, y0, x1, y1 in pixels, or ``{"boxes": array, "labels": n texts,
        "scores": n numbers}``; `masks`: an array [H, W] of classes, 0 (nothing) to 255, or ``{"mask": array,
        "labels": {class: text}}``. Mycelia Insight shows them, other readers the image alone.

        Errors: ValueError for another plugin, an empty name or a Tensor of another form, boxes and masks that
        do not fit; TypeError when it is no Tensor.
        """
        if plugin != "image" and not (boxes is None and masks is None):
            raise errors.value_error("SummaryRecord.add_value", f"a {plugin} has no boxes and masks")
        if plugin in _VALUES:
            self._add(plugin, name, value, boxes, masks)
        elif plugin in _OTHERS:
            data = value if isinstance(value, bytes) else value.SerializeToString()
            if isinstance(value, Message):
                self._setup |= value.hyperparameters()
            self._pool[plugin].append((name, data, ""))
        else:
            raise errors.one_of(
                plugin, [*_VALUES, *_OTHERS], subject="SummaryRecord.add_value", what="plugin"
            )

    def _add(self, plugin: str, name: str, value: Tensor, boxes=None, masks=None) -> None:
        if not name or not isinstance(name, str):
            raise errors.value_error("SummaryRecord.add_value", f"name must be a text, but got {name!r}")
        _check_form(plugin, value)
        if self._pool and any(tag == name for tag, *_ in self._pool.get(plugin, ())):
            log.logger(__name__).warning("%s/%s is added twice: the newest is recorded", name, plugin)
        array = value.asnumpy()
        if plugin == "tensor":  # as large as its message, and may be left out
            self._pool[plugin].append((name, array.copy(), str(value.dtype)))
        # Messages of the others are short, and made at once: the value may change before it is recorded.
        elif (message := _message(name, plugin, array.item() if plugin == "scalar" else array)) is not None:
            if not (boxes is None and masks is None):
                message = annotated(message, name, value.shape, boxes, masks)
            self._pool[plugin].append((name, message, ""))

    def record(self, step: int, train_network=None, plugin_filter=None) -> bool:
        """Write all that was added, and what operators left, as values of `step`; False when closed.

        `plugin_filter(plugin)`: whether this kind is written.  Errors: TypeError.
        """
        if isinstance(step, bool) or not isinstance(step, int):
            raise errors.type_error("SummaryRecord.record", f"step must be an int, but got {step!r}")
        if not isinstance(train_network, (Cell, type(None))):
            raise errors.type_error(
                "SummaryRecord.record",
                f"train_network must be a Cell, but got {type(train_network).__name__}",
            )
        if self._closed:
            log.logger(__name__).error("SummaryRecord is closed and records nothing")
            return False
        self._add_graph(train_network)
        pool, self._pool = self._pool, defaultdict(list)
        if self._mode == "train":
            for (kind, name), (array, dtype) in self._taken.items():
                pool[kind].append((name, array, dtype))
            self._taken = {}
        now = double(1, time.time())
        summary = b""
        for plugin, items in pool.items():
            if plugin_filter is not None and not plugin_filter(plugin):
                continue
            newest = {name: item for item in items for name in (item[0],)} if plugin in _VALUES else None
            for name, data, dtype in items if newest is None else newest.values():
                if plugin in FIELDS:
                    self._lineage.write(now + field(FIELDS[plugin], data))
                elif plugin == "graph":
                    self._write(now + field(4, data))
                elif plugin == "landscape":
                    summary += values.value(name, field(10, data))
                else:
                    summary += self._value(plugin, name, data, dtype, step)
        if summary:
            self._write(now + field(2, step) + field(5, summary))
        return True

    def record_values(
        self, step: int, items: list[tuple[str, str, float | np.ndarray]], plugin_filter=None
    ) -> None:
        """Write values, what was added and what operators left, as one event of `step`.

        `items`: (tag, plugin, content) of "scalar" with a number, "image" with an array [N, 1 or 3, H, W] and
        "histogram" with an array of numbers, all written; `plugin_filter`: for the others, as in `record`.
        Errors: ValueError for other images.
        """
        if not self._pool and not self._taken and self.network is None:
            if items and not self._closed:
                self._write_values(step, items)
            return
        for name, plugin, content in items:
            self._pool[plugin].append((name, _message(name, plugin, content), ""))
        kinds = {plugin for _, plugin, _ in items}
        self.record(step, None, plugin_filter and (lambda one: one in kinds or plugin_filter(one)))

    def record_scalars(self, step: int, scalars: dict[str, float]) -> None:
        """Write numbers by tag at once; what was added stays for the next `record`."""
        if scalars and not self._closed:
            self._write_values(step, [(tag, "scalar", number) for tag, number in scalars.items()])

    def _write_values(self, step: int, items: list[tuple[str, str, float | np.ndarray]]) -> None:
        if self._twin is None:
            self._events.write_values(step, items)
        else:
            found = b"".join(filter(None, values.encoded(items)))
            self._write(double(1, time.time()) + field(2, step) + field(5, found))

    def _write(self, event: bytes) -> None:
        self._events.write(event)
        if self._twin is None:
            return
        try:
            translated = tensorboard_messages.event(event)
        except ValueError as error:  # a graph that was given as bytes, say
            log.logger(__name__).warning("TensorBoard's file lacks an event: %s", error)
        else:
            if translated:
                self._twin.write(translated)

    def _add_graph(self, train_network) -> None:
        """The graph of the network that was named, or else of the one that trains, once."""
        if self.network is None or self._has_graph:
            return
        cells = [cell for cell in (self.network, train_network) if isinstance(cell, Cell)]
        graph = next((graph for graph in map(graph_of, cells) if graph is not None), None)
        if graph is not None:
            self._has_graph = True
            self.add_value("graph", "network", graph_message(graph))

    def _value(self, plugin: str, name: str, array: np.ndarray | bytes, dtype: str, step: int) -> bytes:
        if isinstance(array, bytes):
            return array
        if plugin == "tensor":
            if self._export and self._export.get("tensor_format") == "npy":
                self._export_npy(name, array, step)
            return values.value(name, values.tensor(array, dtype))
        return _message(name, plugin, array.item() if plugin == "scalar" else array) or b""

    def _export_npy(self, name: str, array: np.ndarray, step: int) -> None:
        folder = os.path.join(self._directory, f"export_{self._seconds}", "tensor")
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, f"{quote(name, safe='')}_{step}.npy")
        with atomic_write(path, 0o400) as file:
            np.save(file, array)

    def flush(self) -> None:
        """Hand all records to the system."""
        if self._closed:
            log.logger(__name__).error("SummaryRecord is closed and flushes nothing")
            return
        for file in self._files():
            file.flush()

    def close(self, error: type[BaseException] | None = None) -> None:
        """Close the files. A second call does nothing.

        `error`: what ended the training, so that the run counts as failed.
        """
        if self._closed:
            return
        self._closed = True
        SummaryRecord.count -= 1
        if self in summary_sink.active:
            summary_sink.active.remove(self)
        atexit.unregister(self._end)
        if self._twin is not None and self._setup:
            made = tensorboard_messages.hyperparameters(self._setup, self._seconds)
            self._twin.write(double(1, time.time()) + field(5, b"".join(made)))
        for file in self._files():
            file.close()
        if self._artifacts is not None:
            self._artifacts.close()
        failed = error is not None and issubclass(error, Exception)  # who interrupts it wants its end
        self._alive.close(error.__name__ if failed else None)

    def _end(self) -> None:
        """At the end of the process: an error that nobody caught has ended the training, if there is one."""
        is_interactive = hasattr(sys, "ps1")  # there it may be an error of long ago
        self.close(None if is_interactive else getattr(sys, "last_type", None))

    def _files(self) -> list[EventFile]:
        return [file for file in (self._events, self._lineage, self._twin) if file is not None]


def _message(name: str, plugin: str, content: float | np.ndarray) -> bytes | None:
    """A Summary with this one value; None, with a warning, for what cannot be shown as images."""
    (message,) = values.encoded([(name, plugin, content)])
    if message is None:
        log.logger(__name__).warning("%s is no batch of images [N, 1 or 3, H, W]", name)
    return message


def _check_form(plugin: str, value) -> None:
    if not isinstance(value, Tensor):
        raise errors.type_error("SummaryRecord", f"value must be a Tensor, but got {type(value).__name__}")
    if plugin == "scalar" and value.size != 1:
        raise errors.value_error("SummaryRecord", f"a scalar has one element, but the shape is {value.shape}")
    if plugin == "image" and value.ndim != 4:
        raise errors.value_error("SummaryRecord", f"images have rank 4, but the shape is {value.shape}")
    if plugin in ("tensor", "histogram") and value.ndim == 0:
        raise errors.value_error("SummaryRecord", f"a {plugin} needs a rank of at least 1")
