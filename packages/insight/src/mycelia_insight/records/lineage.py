"""Lineage messages and parameters of TensorBoard's experiments.

Field numbers: MindSpore's lineage events (core's mycelia/train/summary/lineage.py writes the same) and
tensorboard/plugins/hparams/{plugin_data,api}.proto. All functions raise ValueError for bytes that are no such
message. Values of single precision are given as the shortest decimal that names them: 0.02, not 0.0199999996.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Iterator
from typing import Any

from mycelia_insight.records.wire import Broken, fields, numbers, signed, varints

Value = str | int | float | bool | None
_DEEPEST = 100  # children of children of a dataset graph
_TRAIN = {
    1: {1: ("optimizer", "text"), 2: ("learning_rate", "single"), 3: ("loss_function", "text"),
        4: ("epoch", "int"), 5: ("parallel_mode", "text"), 6: ("device_num", "int"),
        8: ("batch_size", "int")},
    2: {1: ("train_dataset_path", "text"), 2: ("train_dataset_count", "int")},
    3: {1: ("network", "text"), 2: ("loss", "single")},
    4: {3: ("model_path", "text"), 4: ("model_size", "int")},
}  # fmt: skip
_EVALUATION = {3: {1: ("test_dataset_path", "text"), 2: ("test_dataset_count", "int")}}
_HPARAMS_EXPERIMENT, _HPARAMS_START, _HPARAMS_END = 2, 3, 4


def train(data: bytes) -> dict[str, Value]:
    """Of a training: optimizer, learning_rate, loss, ... as MindInsight calls them, and `model_path`."""
    return _parts(data, _TRAIN)


def evaluation(data: bytes) -> tuple[dict[str, Value], dict[str, Value]]:
    """Of an evaluation: its data, and its metrics by name."""
    metrics: dict[str, Value] = {}
    for number, value in _fields(data):
        if number == 2 and isinstance(value, memoryview):
            found = json.loads(_text(value) or "{}")
            if not isinstance(found, dict):
                raise Broken(f"metrics must be an object of JSON, got {type(found).__name__}")
            metrics = {str(name): _plain(one) for name, one in found.items()}
    return _parts(data, _EVALUATION), metrics


def user_defined(data: bytes) -> dict[str, Value]:
    """What a user has added, by name."""
    readers = {2: _text, 3: _int, 4: _text, 5: _double}
    found: dict[str, Value] = {}
    for number, entry in _fields(data):
        if number != 1:
            continue
        for kind, content in _fields(entry):
            if kind in readers:
                _entry(content, readers[kind], found)
    return found


def dataset_graph(data: bytes, _depth: int = 0) -> dict[str, Any]:
    """A pipeline: parameters of its last operator, `operations`, `sampler`, `children` of the same form."""
    if _depth > _DEEPEST:
        raise Broken(f"a dataset graph is deeper than {_DEEPEST} operators")
    found: dict[str, Any] = {}
    operations, children = [], []
    for number, value in _fields(data):
        if number == 1:
            children.append(dataset_graph(value, _depth + 1))
        elif number == 2:
            found |= _parameters(value)
        elif number == 3:
            operations.append(_operation(value))
        elif number == 4 and (sampler := _operation(value)):
            found["sampler"] = sampler
    if operations:
        found["operations"] = operations
    return {**found, "children": children}


def hparams(data: bytes) -> tuple[dict[str, Value], list[str]]:
    """Of a value of TensorBoard's `hparams` plugin: parameters by name, and tags of the metrics."""
    values: dict[str, Value] = {}
    tags: list[str] = []
    for content in _inside(data, 9, 1, 2):
        for entry in _inside(content, _HPARAMS_START, 1):
            _entry(entry, _of_struct, values)
        tags += [_text(tag) for tag in _inside(content, _HPARAMS_EXPERIMENT, 5, 1, 2)]
    return values, tags


def session_end(data: bytes) -> str:
    """Of a value of TensorBoard's `hparams` plugin: "finished" or "failed"; "" if it does not say."""
    statuses = [
        _int(status)
        for content in _inside(data, 9, 1, 2)
        for end in _inside(content, _HPARAMS_END)
        for number, status in _fields(end)
        if number == 1
    ]
    return {1: "finished", 2: "failed"}.get(statuses[-1], "") if statuses else ""


def _fields(data: bytes | memoryview | int) -> Iterator[tuple[int, int | memoryview]]:
    if isinstance(data, int):
        raise Broken("a number stands where a message is expected")
    return ((number, value) for number, _, value in fields(data))


def _inside(data: bytes | memoryview | int, *path: int) -> Iterator[memoryview]:
    """All fields at a path of numbers."""
    for number, value in _fields(data):
        if number == path[0]:
            if len(path) > 1:
                yield from _inside(value, *path[1:])
            elif isinstance(value, memoryview):
                yield value


def _entry(data: memoryview | int, read: Callable[[Any], Any], into: dict) -> None:
    """An entry of a map: name and value; what is not there is the type's zero."""
    name, value = "", None
    for number, content in _fields(data):
        if number == 1:
            name = _text(content)
        elif number == 2:
            value = read(content)
    into[name] = value


def _parts(data: bytes, layout: dict[int, dict[int, tuple[str, str]]]) -> dict[str, Value]:
    readers = {"text": _text, "int": _int, "single": _single}
    found: dict[str, Value] = {}
    for part, value in _fields(data):
        for number, content in _fields(value) if part in layout else ():
            if number in layout[part]:
                name, kind = layout[part][number]
                found[name] = readers[kind](content)
    return found


def _operation(data: memoryview | int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    rows, weights = [], []
    for number, value in _fields(data):
        if number == 1:
            found |= _parameters(value)
        elif number == 2:
            rows += varints([value]).tolist()
        elif number == 3:
            weights += numbers([value], "<f4").tolist()
    return {**found, **({"size": rows} if rows else {}), **({"weights": weights} if weights else {})}


def _parameters(data: memoryview | int) -> dict[str, Any]:
    readers = {1: _none_or_text, 2: _texts, 3: lambda value: bool(_int(value)), 4: _int, 5: _double}
    found: dict[str, Any] = {}
    for number, value in _fields(data):
        if number in readers:
            _entry(value, readers[number], found)
    return found


def _text(value: memoryview | int) -> str:
    if isinstance(value, int):
        raise Broken("a number stands where a text is expected")
    return bytes(value).decode("utf-8", "replace")


def _none_or_text(value: memoryview | int) -> str | None:
    found = _text(value)
    return None if found == "None" else found


def _texts(value: memoryview | int) -> list[str | None]:
    return [_text(one) or None for number, one in _fields(value) if number == 1]


def _int(value: memoryview | int) -> int:
    if not isinstance(value, int):
        raise Broken("bytes stand where a number is expected")
    return signed(value)


def _single(value: memoryview | int) -> float:
    if isinstance(value, int) or len(value) != 4:
        raise Broken("a number of single precision has 4 bytes")
    return float(str(numbers([value], "<f4")[0]))


def _double(value: memoryview | int) -> float:
    if isinstance(value, int) or len(value) != 8:
        raise Broken("a number of double precision has 8 bytes")
    return struct.unpack("<d", value)[0]


def _of_struct(data: memoryview | int) -> Value:
    """google.protobuf.Value: a number (2), a text (3) or a truth (4)."""
    found: Value = None
    for number, value in _fields(data):
        if number == 2:
            found = _double(value)
            found = (
                int(found) if math.isfinite(found) and found == int(found) and abs(found) < 2**53 else found
            )
        elif number == 3:
            found = _text(value)
        elif number == 4:
            found = bool(_int(value))
    return found


def _plain(value: Any) -> Value:
    """A metric: what is neither number nor text, as JSON."""
    return value if isinstance(value, Value) else json.dumps(value)
