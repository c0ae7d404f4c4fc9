"""An ONNX file as messages, its tensors as Tensors, its attributes as Python values."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

import mycelia as ms
from mycelia.io.onnx import onnx_pb2
from mycelia.io.onnx.types import DTYPES
from mycelia.io.proto import without_data
from mycelia.io.reading import FileBytes
from mycelia_lite.converter.errors import Code, ConversionError
from mycelia_lite.converter.importers.onnx import small

OLDEST, NEWEST = 1, 26  # versions of the operators that are read
_FILE = Code.GRAPH_FILE_ERROR

_OTHER_DTYPES = {
    8: "string", 14: "complex64", 15: "complex128", 17: "float8e4m3fn", 18: "float8e4m3fnuz",
    19: "float8e5m2", 20: "float8e5m2fnuz", 21: "uint4", 22: "int4", 23: "float4e2m1", 24: "float8e8m0",
    25: "uint2", 26: "int2",
}  # fmt: skip
_TYPED = {  # where values lie that are not raw: field, and the type in which they are given there
    1: ("float_data", np.float32), 2: ("int32_data", np.uint8), 3: ("int32_data", np.int8),
    4: ("int32_data", np.uint16), 5: ("int32_data", np.int16), 6: ("int32_data", np.int32),
    7: ("int64_data", np.int64), 9: ("int32_data", np.bool_), 10: ("int32_data", np.uint16),
    11: ("double_data", np.float64), 12: ("uint64_data", np.uint32), 13: ("uint64_data", np.uint64),
    16: ("int32_data", np.uint16),
}  # fmt: skip
_STORED = {**{number: kind for number, (_, kind) in _TYPED.items()}, 10: np.float16}


class ModelFile:
    """An ONNX file that is open: `message`, its ModelProto without raw_data of the main graph's initializers.

    Errors: ConversionError for what is no ONNX model.
    """

    def __init__(self, path: str) -> None:
        self._folder = os.path.dirname(os.path.abspath(path))
        try:
            self._bytes = FileBytes(path, lambda path, why: ConversionError(_FILE, f"{path}: {why}"))
            text, self._places = without_data(self._bytes, "initializer")
            self.message = onnx_pb2.ModelProto.FromString(text)
        except (OSError, ValueError, DecodeError) as error:
            raise ConversionError(_FILE, f"{path}: {error}") from error
        if not self.message.HasField("graph") or not self.message.opset_import:
            raise ConversionError(_FILE, f"{path} is no ONNX model: it has no graph or no opset")

    def initializer(self, index: int) -> ms.Tensor:
        """An initializer of the main graph. Errors: those of `tensor_of`."""
        message, place = self.message.graph.initializer[index], self._places[index]
        if place is None:
            return tensor_of(message, self._folder)
        return tensor_of(message, self._folder, Piece(self._bytes, *place))


@dataclass(frozen=True)
class Piece:
    """Bytes of a file that are not read yet."""

    file: FileBytes
    begin: int
    end: int

    def __len__(self) -> int:
        return self.end - self.begin

    def read(self) -> np.ndarray:
        """They, in memory that is aligned for all types and may be kept."""
        return self.file.into(np.empty(len(self), np.uint8), self.begin)


def versions(path: str, imports: Any) -> Mapping[str, int]:
    """Version of the operators by domain. Errors: ConversionError for one that is not read."""
    found = {"" if i.domain == "ai.onnx" else i.domain: i.version for i in imports}
    version = found.get("", NEWEST)
    if not OLDEST <= version <= NEWEST:
        raise ConversionError(
            Code.NOT_SUPPORT, f"{path}: opset {version} is not read, only {OLDEST} to {NEWEST} are"
        )
    return found


def dtype_of(number: int, what: str) -> Any:
    """The dtype with this number. Errors: ConversionError that names `what` if there is none."""
    if number not in DTYPES:
        name = _OTHER_DTYPES.get(number, f"number {number}")
        raise ConversionError(Code.NOT_SUPPORT, f"{what} has the data type {name}, which is not read")
    return DTYPES[number]


def tensor_of(message: Any, folder: str, raw: Piece | None = None) -> ms.Tensor:
    """A TensorProto with its data, which may lie in a file below `folder`. `raw`: where its raw_data lies.

    Types of 8 bits and fewer that core lacks become the next one with the same numbers (see `small`).
    Errors: ConversionError for types that are not read, and where the data is not of the declared size.
    """
    what = f"the tensor '{message.name}'"
    narrow = message.data_type in small.KINDS
    dtype = None if narrow else dtype_of(message.data_type, what)
    stored = np.dtype(np.uint8 if narrow else _STORED[message.data_type])
    dims = tuple(message.dims)
    elements = count = math.prod(dims)
    if any(n < 0 for n in dims) or count > 2**62:
        raise ConversionError(_FILE, f"{what} has the impossible shape {list(dims)}")
    if narrow:
        count = small.bytes_of(message.data_type, elements)
    if message.data_location == 1:
        array = _external(message, folder, stored, count * stored.itemsize, what)
    elif raw is not None or message.HasField("raw_data"):
        data = message.raw_data if raw is None else raw
        if len(data) != count * stored.itemsize:
            raise _wrong_size(what, dims, count * stored.itemsize, len(data), "bytes")
        data = data if raw is None else raw.read()
        array = np.frombuffer(data, stored.newbyteorder("<")).astype(stored, copy=False)
    else:
        field, kind = ("int32_data", np.uint8) if narrow else _TYPED[message.data_type]
        values = getattr(message, field)
        if len(values) != count:
            raise _wrong_size(what, dims, count, len(values), "values")
        array = np.array(values, {"int32_data": np.int32, "uint64_data": np.uint64}.get(field, kind))
        array = array.astype(kind).view(stored) if kind is not np.bool_ else array != 0
    if narrow:
        array = small.numbers(message.data_type, array, elements)
    array = array.reshape(dims)
    if dtype is ms.bfloat16:
        return ms.Tensor((array.astype(np.uint32) << 16).view(np.float32)).astype(ms.bfloat16)
    return ms.Tensor.from_numpy(array)


def _wrong_size(what: str, dims: tuple, expected: int, found: int, unit: str) -> ConversionError:
    return ConversionError(
        _FILE,
        f"{what} of shape {list(dims)} needs {expected} {unit}, but the file has {found}",
    )


def _external(message: Any, folder: str, stored: np.dtype, size: int, what: str) -> np.ndarray:
    entries = {entry.key: entry.value for entry in message.external_data}
    place = entries.get("location", "")
    root = os.path.realpath(folder)
    path = os.path.realpath(os.path.join(root, place))
    if not place or os.path.commonpath([root, path]) != root:
        raise ConversionError(_FILE, f"{what} lies in {place!r}, which is no file in the model's folder")
    try:
        offset = int(entries.get("offset", 0))
        length = int(entries.get("length", size))
        if offset < 0 or length != size:
            raise ValueError(f"{length} bytes from {offset} on are declared, {size} are needed")
        file = FileBytes(path, lambda path, why: ValueError(why))
        with contextlib.closing(file):
            there = max(0, min(size, len(file) - offset))
            if there != size:
                raise ConversionError(_FILE, f"{what} needs {size} bytes of {place}, but {there} are there")
            data = Piece(file, offset, offset + size).read()
    except (OSError, ValueError) as error:
        raise ConversionError(_FILE, f"{what} in {place}: {error}") from error
    return np.frombuffer(data, stored.newbyteorder("<")).astype(stored, copy=False)


def attribute_of(message: Any, folder: str) -> Any:
    """The value of an AttributeProto: a number, text, Tensor, graph, or a list of them; None for other kinds.

    Files of the first versions do not say the kind; there it is the field that is set.
    """
    kind = message.type
    if not kind:
        kind = next(
            (number for number, name in enumerate(("f", "i", "s", "t", "g"), 1) if message.HasField(name)), 0
        ) or next(
            (n for n, name in enumerate(("floats", "ints", "strings"), 6) if len(getattr(message, name))), 0
        )
    readers = {
        1: lambda: message.f,
        2: lambda: message.i,
        3: lambda: message.s.decode("utf-8", "replace"),
        4: lambda: tensor_of(message.t, folder),
        5: lambda: message.g,
        6: lambda: list(message.floats),
        7: lambda: list(message.ints),
        8: lambda: [s.decode("utf-8", "replace") for s in message.strings],
    }
    return readers[kind]() if kind in readers else None
