"""Events as TensorBoard's messages: what MindSpore's events say, in the fields that TensorBoard reads.

Field numbers: tensorboard/compat/proto/{event,summary,tensor,graph,node_def,attr_value}.proto and
tensorboard/plugins/hparams/plugin_data.proto.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

import numpy as np

from mycelia.engine import _data
from mycelia.engine.base.wire import field, fields, signed
from mycelia.train.summary.events import double, single, text
from mycelia.train.summary.values import value

#: Of the first record of a file.
VERSION = text(3, "brain.Event:2")
_SCALAR, _TENSOR = 1, 2  # DataClass
_FLOAT, _DOUBLE = 1, 2  # DataType of TensorFlow
# DataType of MindSpore's graphs -> of TensorFlow.
_TYPES = {1: 10, 2: 6, 3: 5, 4: 3, 5: 9, 6: 4, 7: 17, 8: 22, 9: 23, 10: 19, 11: 1, 12: 2, 46: 14}
_SESSION = "_hparams_/session_start_info"


def event(message: bytes) -> bytes:
    """An Event of MindSpore's as one of TensorBoard's, b"" if nothing of it has a place there.

    Scalars, images, histograms, tensors and graphs have; landscapes do not.  Errors: ValueError.
    """
    head, body = b"", b""
    for number, content in fields(memoryview(message)):
        if number == 1:
            head += double(1, _double(content))
        elif number == 2:
            head += field(2, content)
        elif number == 4:
            body += field(4, graph_def(bytes(content)))
        elif number == 5:
            found = b"".join(_value(one) for part, one in fields(content) if part == 1)
            body += field(5, found) if found else b""
    return head + body if body else b""


def scalar(number: float) -> bytes:
    """What a Value of a Summary has beside its tag: a number of single precision."""
    return single(2, number) + _metadata("scalars", _SCALAR)


def image(message: bytes) -> bytes:
    """The same of an image: `message` is MindSpore's, whose fields are the same."""
    return field(4, message)


def histogram(left: np.ndarray, right: np.ndarray, counts: np.ndarray) -> bytes:
    """The same of a distribution: ends and counts of its buckets, float [n] each."""
    return _histogram(np.stack([left, right, counts], axis=1).astype("<f8").tobytes())


def tensor(values: np.ndarray) -> bytes:
    """The same of a tensor, as float32."""
    return field(8, _tensor(values))


def plugin(name: str, message: bytes) -> bytes:
    """The same of a tensor, its message, that a plugin of TensorBoard shows: "text", "audio"."""
    return field(8, message) + _metadata(name, _TENSOR)


def hyperparameters(values: Mapping[str, object], seconds: float) -> Iterator[bytes]:
    """Values that tell what a training was made of: numbers, texts and truths by name; when it began."""
    entries = b"".join(
        field(1, text(1, name) + field(2, _struct(one))) for name, one in values.items() if one is not None
    )
    start = field(3, entries + double(5, seconds))
    end = field(4, field(1, 1))  # success
    for tag, content in ((_SESSION, start), ("_hparams_/session_end_info", end)):
        yield value(tag, tensor(np.zeros(())) + _metadata("hparams", _TENSOR, content))


def graph_def(message: bytes) -> bytes:
    """A GraphProto of MindSpore's as a GraphDef.

    A node is called by its full name; parameters lie in the scope that takes them first. Of the attributes
    numbers, truths and texts are kept.  Errors: ValueError.
    """
    nodes: list[tuple[str, str, list[tuple[str, bool]], bytes, bytes]] = []
    full: dict[str, str] = {}
    outside: dict[str, tuple[str, bytes]] = {}
    for number, content in fields(memoryview(message)):
        if number == 1:
            key, *rest = _node(content)
            full.setdefault(key, rest[0])
            nodes.append(tuple(rest))
        elif number in (3, 5):
            name, kind = _named(content)
            attributes = _type(kind) if number == 3 else b""
            outside[name] = ("Placeholder" if number == 3 else "Const", attributes)
    out = []
    for name, kind, inputs, attributes, result in nodes:
        scope = name.rpartition("/")[0]
        ends = b""
        for key, is_control in inputs:
            if key in outside and key not in full:
                full[key] = f"{scope}/{key}" if scope else key
                operator, its = outside[key]
                out.append(field(1, text(1, full[key]) + text(2, operator) + its))
            if key in full:
                ends += text(3, ("^" if is_control else "") + full[key])
        out.append(field(1, text(1, name) + text(2, kind) + ends + attributes + result))
    return b"".join(out) + field(4, field(1, 22))  # versions.producer


def _value(message: int | memoryview) -> bytes:
    tag, content = "", b""
    for number, one in fields(_message(message)):
        if number == 1:
            tag = _text(one)
        elif number == 3:
            content = scalar(_single(one))
        elif number == 4:
            content = image(bytes(_message(one)))
        elif number == 8:
            content = tensor(_floats(_message(one)))
        elif number == 9:
            content = _histogram(_data.bucket_table(_message(one)))
    return value(tag, content) if content else b""


def _floats(message: memoryview) -> np.ndarray:
    dims, parts = [], []
    for number, one in fields(message):
        if number == 1 and isinstance(one, int):
            dims.append(signed(one))
        elif number == 3 and not isinstance(one, int):
            parts.append(bytes(one))
    data = b"".join(parts)
    if len(data) % 4:
        raise ValueError("numbers of single precision are cut off")
    return np.frombuffer(data, "<f4").reshape(dims)


def _histogram(table: bytes) -> bytes:
    """`table`: float64 [n, 3], ends and counts of the buckets."""
    shape = field(2, field(1, len(table) // 24)) + field(2, field(1, 3))
    content = field(1, _DOUBLE) + field(2, shape) + field(4, table)
    return field(8, content) + _metadata("histograms", _TENSOR)


def _tensor(values: np.ndarray) -> bytes:
    """As float32."""
    shape = b"".join(field(2, field(1, n)) for n in values.shape)
    return field(1, _FLOAT) + field(2, shape) + field(4, values.astype("<f4").tobytes())


def _metadata(plugin: str, data_class: int, content: bytes = b"") -> bytes:
    inner = text(1, plugin) + (field(2, content) if content else b"")
    return field(9, field(1, inner) + field(4, data_class))


def _struct(one: object) -> bytes:
    """google.protobuf.Value."""
    if isinstance(one, bool):
        return field(4, int(one))
    if isinstance(one, (int, float)):
        return double(2, float(one))
    return text(3, str(one))


def _node(message: int | memoryview) -> tuple[str, str, str, list[tuple[str, bool]], bytes, bytes]:
    key = kind = scope = name = ""
    inputs, attributes, result = [], b"", b""
    for number, one in fields(_message(message)):
        if number == 1:
            source, edge = "", 0
            for part, content in fields(_message(one)):
                if part == 1:
                    source = _text(content)
                elif part == 2 and isinstance(content, int):
                    edge = content
            inputs.append((source, edge == 1))
        elif number in (2, 3, 4, 8):
            found = _text(one)
            key = found if number == 2 else key
            kind = found if number == 3 else kind
            scope = found if number == 4 else scope
            name = found if number == 8 else name
        elif number == 5:
            title, content = _named(one)
            if made := _attribute(content):
                attributes += field(5, text(1, title) + field(2, made))
        elif number == 6:
            result = _type(_message(one))
    return key, name or f"{scope}/{kind}-op{key}".lstrip("/"), kind, inputs, attributes, result


def _named(message: int | memoryview) -> tuple[str, memoryview]:
    name, content = "", memoryview(b"")
    for number, one in fields(_message(message)):
        if number == 1:
            name = _text(one)
        elif number == 2:
            content = _message(one)
    return name, content


def _attribute(message: memoryview) -> bytes:
    """A ValueProto as an AttrValue, b"" for lists, types and tensors."""
    for number, one in fields(message):
        if number == 2 and isinstance(one, int):
            return field(5, one)
        if number in (3, 4) and isinstance(one, int):
            return field(3, one)
        if number == 5:
            return single(4, _single(one))
        if number == 7:
            return field(2, bytes(_message(one)))
    return b""


def _type(message: memoryview) -> bytes:
    """Attributes with the dtype and the shape of a TypeProto that is a tensor."""
    out = b""
    for number, one in fields(message):
        if number != 2:
            continue
        dims = b""
        for part, content in fields(_message(one)):
            if part == 1 and content in _TYPES:
                out += field(5, text(1, "dtype") + field(2, field(6, _TYPES[content])))
            elif part == 2:
                dims = b"".join(field(2, bytes(_message(d))) for n, d in fields(_message(content)) if n == 1)
        out += field(5, text(1, "_output_shapes") + field(2, field(1, field(7, dims))))
    return out


def _message(one: int | memoryview) -> memoryview:
    if isinstance(one, int):
        raise ValueError("a number stands where a message is expected")
    return one


def _text(one: int | memoryview) -> str:
    return bytes(_message(one)).decode("utf-8", "replace")


def _double(one: int | memoryview) -> float:
    if len(_message(one)) != 8:
        raise ValueError("a number of double precision has 8 bytes")
    return struct.unpack("<d", one)[0]


def _single(one: int | memoryview) -> float:
    if len(_message(one)) != 4:
        raise ValueError("a number of single precision has 4 bytes")
    return struct.unpack("<f", one)[0]
