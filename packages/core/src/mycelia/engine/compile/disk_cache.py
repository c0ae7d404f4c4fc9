"""What was captured, kept on disk for later processes: setting `enable_compile_cache`.

A file holds one optimized graph with what a call needs: which Parameters it reads and changes, by their place
in the walk of `compile/fingerprint.py`, how the result is put together, which Cells it depends on. Its name
is the hash of all that the capture depended on, so that a file is right or is not found. After a capture the
hash is computed again: code that changed Python objects is not kept, since a loaded graph would not.

Layout: the mark, 32 bytes of SHA-256 over the rest, the length of a JSON text (8 bytes, little endian), the
text, the bytes of constants. Nothing in a file is executed, and the graph is verified.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mycelia.engine import _C
from mycelia.engine.base import config, dtypes, errors, log, plugins
from mycelia.engine.base.errors import Place
from mycelia.engine.base.origins import Numbered, Origin
from mycelia.engine.communication import world
from mycelia.engine.compile import fingerprint
from mycelia.engine.compile.fingerprint import Walk
from mycelia.engine.compile.passes import choice
from mycelia.engine.compile.purity import NotKept
from mycelia.engine.ir.graph import Graph, Value
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ir.verify import verify
from mycelia.engine.ops.define import find
from mycelia.engine.ops.random import generator
from mycelia.engine.tensors.tensor import Tensor

MARK = b"mycelia graph 2\n"
FOLDER = "graph_cache"
LARGEST = 1 << 30  # bytes of all files in the folder; the least recently used go
_HEAD = len(MARK) + 32 + 8
_WITHOUT_EFFECT = frozenset(  # settings that change no graph
    ("enable_compile_cache", "compile_cache_path", "save_graphs", "save_graphs_path", "print_file_path")
    + ("save_graphs_interval", "save_graphs_passes", "save_graphs_format")
    + ("communicator", "communication_timeout_s", "job_token")
    + ("debug", "submodule_log_level", "env_config_path", "dump_config", "trace_plugins", "strict_plugins")
)


class _Enabled:
    """The setting, as a plain attribute."""

    on = False


def _follow(value: Any) -> None:
    _Enabled.on = bool(value)


config.on_change("enable_compile_cache", _follow)


def entry(function: Callable, name: str, args: tuple, kwargs: dict, variables: Sequence[int]) -> Entry | None:
    """The place on disk of a function called with arguments like these; None if it cannot have one.

    `variables`: ids of the Parameters that are inputs of the graph whatever they hold.
    """
    try:
        return Entry(function, name, args, kwargs, variables)
    except Exception as error:  # an attribute of the user's that raises, a file that cannot be read
        _tell(name, error)
        return None


def is_on() -> bool:
    return _Enabled.on


def _tell(name: str, why: Exception) -> None:
    log.logger(__name__).debug("%s is not kept on disk: %s", name, why)


class Entry:
    """One function for one signature."""

    def __init__(self, function: Callable, name: str, args: tuple, kwargs: dict, variables: Sequence[int]):
        self.name = name
        self.call = function, args, kwargs, variables
        self.walk = Walk(*self.call)
        text = f"{self.walk.hexdigest} {environment()}"
        self.key = hashlib.blake2b(text.encode(), digest_size=20).hexdigest()
        folder = os.path.join(config.get("compile_cache_path"), FOLDER)
        self.path = os.path.join(folder, f"{self.key}.graph")

    def load(self) -> tuple[Graph, list[Tensor], list[Tensor], Any, list[Any]] | None:
        """The graph, tensors from outside that it reads, those it changes, the form of the result and the
        Cells it depends on; None if there is no file, or none that can be used."""
        try:
            with open(self.path, "rb") as file:
                data = file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            _warn("cannot read", self.path, error)
            return None
        try:
            found = self.decoded(data)
        except Exception as error:  # whatever a file that is none of ours leads to
            _warn("compiles anew instead of using", self.path, error)
            return None
        with contextlib.suppress(OSError):
            os.utime(self.path)  # used now
        log.logger(__name__).info("%s is loaded from %s", self.name, self.path)
        return found

    def save(
        self, graph: Graph, inputs: list[Tensor], targets: list[Tensor], form: Any, cells: list[Any]
    ) -> None:
        """Writes what a capture found, if it can be found again in another process. Never raises."""
        try:
            if Walk(*self.call).hexdigest != self.walk.hexdigest:
                raise NotKept("the code changes Python objects while it is captured")
            data = self.encoded(graph, inputs, targets, form, cells)
        except Exception as error:
            _tell(self.name, error)
            return
        try:
            _write(self.path, data)
        except OSError as error:
            _warn("cannot write", self.path, error)
            return
        log.logger(__name__).info("%s is kept in %s", self.name, self.path)

    # -- bytes

    def encoded(
        self, graph: Graph, inputs: list[Tensor], targets: list[Tensor], form: Any, cells: list[Any]
    ) -> bytes:
        writer = _Writer()
        content = {
            "key": self.key,
            "graph": writer.graph(graph),
            "inputs": [self.place(t) for t in inputs],
            "targets": [self.place(t) for t in targets],
            "form": writer.form(form),
            "cells": [self.number(c) for c in cells],
            "types": list(writer.types),
            "files": list(writer.files),
            "constants": [[dtype, shape, len(raw)] for dtype, shape, raw in writer.constants],
        }
        text = json.dumps(content, separators=(",", ":")).encode()
        rest = b"".join((len(text).to_bytes(8, "little"), text, *(raw for _, _, raw in writer.constants)))
        return MARK + hashlib.sha256(rest).digest() + rest

    def decoded(self, data: bytes) -> tuple[Graph, list[Tensor], list[Tensor], Any, list[Any]]:
        if data[: len(MARK)] != MARK or len(data) < _HEAD:
            raise ValueError("it is no compiled graph of this version")
        if hashlib.sha256(memoryview(data)[len(MARK) + 32 :]).digest() != data[len(MARK) : len(MARK) + 32]:
            raise ValueError("it is damaged")
        end = _HEAD + int.from_bytes(data[_HEAD - 8 : _HEAD], "little")
        content = json.loads(data[_HEAD:end])
        if content["key"] != self.key:
            raise ValueError("it belongs to another function")
        reader = _Reader(content["types"], content["files"], content["constants"], data, end)
        graph = reader.graph(content["graph"])
        verify(graph)
        inputs = [self.at(p) for p in content["inputs"]]
        targets = [self.at(p) for p in content["targets"]]
        form = reader.form(content["form"])
        first = len(graph.parameters) - len(inputs)
        last = len(graph.outputs) - len(targets)
        pairs = [*zip(inputs, graph.parameters[first:]), *zip(targets, graph.outputs[last:])]
        if first < 0 or last < 0 or any((t.dtype, t.shape) != (v.type.dtype, v.type.shape) for t, v in pairs):
            raise ValueError("its Parameters are others")
        return graph, inputs, targets, form, [self.walk.objects[n] for n in content["cells"]]

    # -- tensors from outside

    def place(self, tensor: Tensor) -> Any:
        """Where the walk met a tensor, or which stream of random numbers it is the state of."""
        number = self.walk.numbers.get(id(tensor))
        if number is not None:
            return number
        streams = generator._streams
        if tensor is streams.default._tensor:
            return ["stream"]
        for seed, stream in streams.by_seed.items():
            if tensor is stream._tensor:
                return ["stream", seed]
        raise NotKept(f"it uses {getattr(tensor, 'name', 'a tensor')}, which no path leads to")

    def at(self, place: Any) -> Tensor:
        if type(place) is int:
            found = self.walk.objects[place]
            if not isinstance(found, Tensor):
                raise ValueError("a place of a tensor holds none")
            return found
        streams = generator._streams
        return (streams.default_generator() if len(place) == 1 else streams.generator(int(place[1])))._state

    def number(self, cell: Any) -> int:
        number = self.walk.numbers.get(id(cell))
        if number is None:
            raise NotKept(f"it uses a {type(cell).__name__} that no path leads to")
        return number


def environment() -> str:
    """What all functions of this process depend on: versions, settings, passes of plugins."""
    settings = {
        key: repr(config.get(key))
        for key, setting in sorted(config.SETTINGS.items())
        if setting.in_effect and key not in _WITHOUT_EFFECT and not key.startswith(("log_", "debugger"))
    }
    passes = [
        fingerprint.tree(os.path.dirname(step.function.__code__.co_filename))
        for step in plugins.manager().hook.mycelia_passes.get_hookimpls()
        if not step.function.__code__.co_filename.startswith(errors.PACKAGE_ROOT)
    ]
    off, *others = choice()
    return repr((
        MARK, fingerprint.tree(errors.PACKAGE_ROOT),
        platform.python_version(), platform.python_implementation(),
        np.__version__, __debug__, settings, sorted(off), others, sorted(passes),
        [(p.name, p.version) for p in plugins.found()], world.description(),
    ))  # fmt: skip


# ---- graphs as JSON ----------------------------------------------------------------------------------------


class _Writer:
    """Graphs as lists; types, files and constants in tables that they share."""

    def __init__(self) -> None:
        self.types: dict[tuple, int] = {}  # insertion order is the order of the table
        self.files: dict[str, int] = {}
        self.constants: list[tuple[str, tuple[int, ...], bytes]] = []
        self.known: dict[Value, int] = {}

    def graph(self, graph: Graph) -> list:
        numbers: dict[Value, int] = {}
        parameters = [[self.type(v.type), v.name] for v in graph.parameters]
        numbers.update((v, i) for i, v in enumerate(graph.parameters))
        nodes = []
        for node in graph.nodes:
            definition = node.op.definition
            if not definition.module.startswith("mycelia."):
                raise NotKept(f"the op {node.op.name} belongs to another package")
            if list(node.attrs) != [a.name for a in definition.attrs]:
                raise NotKept(f"the op {node.op.name} has attributes of its own")
            inputs = [None if v is None else self.use(v, numbers) for v in node.inputs]
            place = node.location
            where = place and self.origin(place)
            attrs = [self.attribute(a) for a in node.attrs.values()]
            outputs = [[self.type(v.type), v.name] for v in node.outputs]
            for value in node.outputs:
                numbers[value] = len(numbers)
            nodes.append([node.op.name, inputs, attrs, outputs, where])
        return [graph.name, parameters, nodes, [self.use(v, numbers) for v in graph.outputs]]

    def origin(self, place: Place) -> list:
        """Its lines, the innermost first, its scope, what `set_dump` said, which operator it is."""
        stack = place.stack if isinstance(place, Origin) else ((place.file, place.line, place.function),)
        lines = [[self.files.setdefault(file, len(self.files)), *rest] for file, *rest in stack]
        if not isinstance(place, Origin):
            return [lines]
        return [lines, place.scope, place.dumped, list(place.dumped_kinds), place.numbered]

    def use(self, value: Value, numbers: dict[Value, int]) -> int:
        """The number of a value; of a constant -1 - its row in the table."""
        if value.constant is None:
            return numbers[value]
        found = self.known.get(value)
        if found is None:
            if value.constant.traced is not None or not value.constant._has_value:
                raise NotKept("a constant without data")
            found = self.known[value] = -1 - len(self.constants)
            raw = fingerprint.content(value.constant)
            self.constants.append((value.type.dtype.name, value.type.shape, raw))
        return found

    def type(self, type_: TensorType) -> int:
        if any(type(n) is not int for n in type_.shape):
            raise NotKept("its sizes are open")
        row = type_.dtype.name, type_.shape
        return self.types.setdefault(row, len(self.types))

    def attribute(self, value: Any) -> Any:
        """Tuples are lists; what JSON has no form for is a dict with one entry."""
        kind = type(value)
        if value is None or kind in (bool, int, float, str):
            return value
        if kind is tuple:
            return [self.attribute(v) for v in value]
        if kind is list:
            return {"list": [self.attribute(v) for v in value]}
        if isinstance(value, dtypes.DType):
            return {"dtype": value.name}
        if kind is complex:
            return {"complex": [value.real, value.imag]}
        if kind is Graph:
            return {"graph": self.graph(value)}
        raise NotKept(f"an attribute or result of type {kind.__name__}")

    def form(self, form: Any) -> Any:
        """How a result is put together, see `captured.py`."""
        kind, content = form
        if kind == "sequence":
            if content[0] not in (tuple, list):
                raise NotKept(f"it returns a {content[0].__name__}")
            return [content[0].__name__, [self.form(part) for part in content[1]]]
        if kind == "sparse":
            raise NotKept(f"it returns a {content[0].__name__}")
        if kind == "dict":
            return [kind, [[self.attribute(k), self.form(part)] for k, part in content.items()]]
        return [kind, self.attribute(content)]


class _Reader:
    """The way back. Errors: any; a file is not trusted to have the right structure."""

    def __init__(self, types: list, files: list, constants: list, data: bytes, start: int) -> None:
        self.types = [TensorType(dtypes.as_dtype(d), tuple(map(_size, s))) for d, s in types]
        self.files = files
        self.constants: list[Value] = []
        for name, shape, length in constants:
            type_ = TensorType(dtypes.as_dtype(name), tuple(map(_size, shape)))
            raw = memoryview(data)[start : start + length]
            start += length
            self.constants.append(Value(type_, constant=_tensor(type_, raw)))
        if start != len(data):
            raise ValueError("its length is wrong")

    def graph(self, content: list) -> Graph:
        name, parameters, nodes, outputs = content
        graph = Graph(name)
        values = [graph.add_parameter(self.types[t], n) for t, n in parameters]
        for op_name, inputs, attrs, results, where in nodes:
            op = find(op_name)
            schema = op.definition.attrs
            read = {
                a.name: a.canonical(self.attribute(given)) for a, given in zip(schema, attrs, strict=True)
            }
            place = where and self.origin(*where)
            types = [self.types[t] for t, _ in results]
            node = graph.append(op, [self.use(n, values) for n in inputs], read, types, place)
            for value, (_, own) in zip(node.outputs, results):
                value.name = own
            values += node.outputs
        graph.outputs = [self.use(n, values) for n in outputs]
        return graph

    def origin(
        self,
        lines: list,
        scope: str = "",
        dumped: bool | None = None,
        kinds: Sequence[str] = (),
        numbered: Sequence[Any] | None = None,
    ) -> Place:
        stack = tuple((self.files[file], line, function) for file, line, function in lines)
        if not scope:
            return Place(*stack[0])
        operator = None if numbered is None else Numbered(*numbered)
        return Origin(stack, scope, dumped, "", tuple(kinds), operator)

    def use(self, number: int | None, values: list[Value]) -> Value | None:
        if number is None:
            return None
        return values[number] if number >= 0 else self.constants[-1 - number]

    def attribute(self, value: Any) -> Any:
        if type(value) is list:
            return tuple(self.attribute(v) for v in value)
        if type(value) is not dict:
            return value
        ((kind, content),) = value.items()
        if kind == "list":
            return [self.attribute(v) for v in content]
        if kind == "graph":
            return self.graph(content)
        return dtypes.as_dtype(content) if kind == "dtype" else complex(*content)

    def form(self, form: list) -> Any:
        kind, content = form
        if kind in ("tuple", "list"):
            return "sequence", (tuple if kind == "tuple" else list, [self.form(part) for part in content])
        if kind == "dict":
            return kind, {self.attribute(k): self.form(part) for k, part in content}
        if kind not in ("tensor", "number", "value"):
            raise ValueError("a result of unknown form")
        return kind, self.attribute(content)


def _size(n: Any) -> int:
    if type(n) is not int or n < -1:
        raise ValueError(f"{n!r} is no size")
    return n


def _tensor(type_: TensorType, raw: memoryview) -> Tensor:
    if type_.dtype is dtypes.bfloat16:
        wide = np.frombuffer(raw, np.float32).reshape(type_.shape)
        return _C.from_array(dtypes.to_bfloat16_bits(wide), type_.dtype, False)
    return _C.from_array(np.frombuffer(raw, type_.dtype.np).reshape(type_.shape).copy(), type_.dtype, False)


# ---- files -------------------------------------------------------------------------------------------------


def _write(path: str, data: bytes) -> None:
    """The file appears as a whole or not at all; a crash of the machine is what the checksum is for."""
    folder = os.path.dirname(path)
    os.makedirs(folder, exist_ok=True)
    handle, temporary = tempfile.mkstemp(suffix=".tmp", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _trim(folder, path)


def _trim(folder: str, newest: str) -> None:
    """Removes what was not used for longest, and what a killed process left behind."""
    with contextlib.suppress(OSError):
        found = []
        for item in os.scandir(folder):
            with contextlib.suppress(FileNotFoundError):
                found.append((item.stat().st_mtime, item.stat().st_size, item.path))
        room = LARGEST
        for changed, size, path in sorted(found, reverse=True):
            if path.endswith(".tmp"):
                old = time.time() - changed > 3600
            elif path.endswith(".graph"):
                room -= size
                old = room < 0 and path != newest
            else:
                continue
            if old:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)


_warned: set[str] = set()


def _warn(what: str, path: str, error: Exception) -> None:
    """Once for each folder and kind of error: a full disk would fill the log as well."""
    key = f"{what} {os.path.dirname(path)} {type(error).__name__}"
    if key not in _warned:
        _warned.add(key)
        log.logger(__name__).warning("the compile cache %s %s: %s", what, path, error)
