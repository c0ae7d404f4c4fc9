"""An ONNX file as messages, its tensors as Tensors, its attributes as Python values."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

import mycelia as ms
from mycelia.io.onnx import onnx_pb2
from mycelia.io.onnx.types import DTYPES
from mycelia_lite.converter.errors import Code, ConversionError

OLDEST, NEWEST = 6, 26  # versions of the operators that are read

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


def read_model(path: str) -> Any:
    """The ModelProto of a file. Errors: ConversionError for what is no ONNX model."""
    try:
        with open(path, "rb") as file:
            model = onnx_pb2.ModelProto.FromString(file.read())
    except (OSError, DecodeError) as error:
        raise ConversionError(Code.GRAPH_FILE_ERROR, f"{path}: {error}") from error
    if not model.HasField("graph") or not model.opset_import:
        raise ConversionError(Code.GRAPH_FILE_ERROR, f"{path} is no ONNX model: it has no graph or no opset")
    return model


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


def tensor_of(message: Any, folder: str) -> ms.Tensor:
    """A TensorProto with its data, which may lie in a file below `folder`.

    Errors: ConversionError for types that are not read, and where the data is not of the declared size.
    """
    what = f"the tensor '{message.name}'"
    dtype = dtype_of(message.data_type, what)
    stored = np.dtype(_STORED[message.data_type])
    dims = tuple(message.dims)
    count = math.prod(dims)
    if any(n < 0 for n in dims) or count > 2**62:
        raise ConversionError(Code.GRAPH_FILE_ERROR, f"{what} has the impossible shape {list(dims)}")
    if message.data_location == 1:
        array = _external(message, folder, stored, count * stored.itemsize, what)
    elif message.HasField("raw_data"):
        raw = message.raw_data
        if len(raw) != count * stored.itemsize:
            raise _wrong_size(what, dims, count * stored.itemsize, len(raw), "bytes")
        array = np.frombuffer(raw, stored.newbyteorder("<")).astype(stored, copy=False)
    else:
        field, kind = _TYPED[message.data_type]
        values = getattr(message, field)
        if len(values) != count:
            raise _wrong_size(what, dims, count, len(values), "values")
        array = np.array(values, {"int32_data": np.int32, "uint64_data": np.uint64}.get(field, kind))
        array = array.astype(kind).view(stored) if kind is not np.bool_ else array != 0
    array = array.reshape(dims)
    if dtype is ms.bfloat16:
        return ms.Tensor((array.astype(np.uint32) << 16).view(np.float32)).astype(ms.bfloat16)
    return ms.Tensor.from_numpy(array)


def _wrong_size(what: str, dims: tuple, expected: int, found: int, unit: str) -> ConversionError:
    return ConversionError(
        Code.GRAPH_FILE_ERROR,
        f"{what} of shape {list(dims)} needs {expected} {unit}, but the file has {found}",
    )


def _external(message: Any, folder: str, stored: np.dtype, size: int, what: str) -> np.ndarray:
    entries = {entry.key: entry.value for entry in message.external_data}
    place = entries.get("location", "")
    root = os.path.realpath(folder)
    path = os.path.realpath(os.path.join(root, place))
    if not place or os.path.commonpath([root, path]) != root:
        raise ConversionError(
            Code.GRAPH_FILE_ERROR, f"{what} lies in {place!r}, which is no file in the model's folder"
        )
    try:
        offset = int(entries.get("offset", 0))
        length = int(entries.get("length", size))
        if offset < 0 or length != size:
            raise ValueError(f"{length} bytes from {offset} on are declared, {size} are needed")
        with open(path, "rb") as file:
            file.seek(offset)
            data = file.read(size)
    except (OSError, ValueError) as error:
        raise ConversionError(Code.GRAPH_FILE_ERROR, f"{what} in {place}: {error}") from error
    if len(data) != size:
        raise ConversionError(
            Code.GRAPH_FILE_ERROR, f"{what} needs {size} bytes of {place}, but {len(data)} are there"
        )
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
