"""A frozen graph of TensorFlow as messages, its constants as Tensors, its attributes as Python values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

import mycelia as ms
from mycelia_lite.converter.errors import Code, ConversionError
from mycelia_lite.converter.importers.tensorflow import graph_pb2

_LARGEST = 1 << 32  # elements of a constant

#: Number of a data type -> core's dtype, the field of a tensor with its numbers, how they are given there.
_KINDS = {
    graph_pb2.DT_FLOAT: (ms.float32, "float_val", np.float32),
    graph_pb2.DT_DOUBLE: (ms.float64, "double_val", np.float64),
    graph_pb2.DT_INT32: (ms.int32, "int_val", np.int32),
    graph_pb2.DT_UINT8: (ms.uint8, "int_val", np.uint8),
    graph_pb2.DT_INT16: (ms.int16, "int_val", np.int16),
    graph_pb2.DT_INT8: (ms.int8, "int_val", np.int8),
    graph_pb2.DT_INT64: (ms.int64, "int64_val", np.int64),
    graph_pb2.DT_BOOL: (ms.bool_, "bool_val", np.bool_),
    graph_pb2.DT_BFLOAT16: (ms.bfloat16, "half_val", np.uint16),
    graph_pb2.DT_UINT16: (ms.uint16, "int_val", np.uint16),
    graph_pb2.DT_HALF: (ms.float16, "half_val", np.uint16),
    graph_pb2.DT_UINT32: (ms.uint32, "uint32_val", np.uint32),
    graph_pb2.DT_UINT64: (ms.uint64, "uint64_val", np.uint64),
}


def read_graph(path: str) -> Any:
    """The GraphDef of a file. Errors: ConversionError for what is no frozen graph."""
    try:
        with open(path, "rb") as file:
            graph = graph_pb2.Graph.FromString(file.read())
    except (OSError, DecodeError) as error:
        raise broken(path, f"it is no GraphDef of TensorFlow: {error}") from error
    if not graph.node or not all(node.name and node.op for node in graph.node):
        raise broken(path, "it is no frozen graph of TensorFlow: it has no nodes, or such without a name")
    names = [node.name for node in graph.node]
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise broken(path, f"several nodes are called '{twice}'")
    return graph


def broken(path: str, why: str) -> ConversionError:
    return ConversionError(Code.GRAPH_FILE_ERROR, f"{path}: {why}")


def dtype_of(number: int, what: str) -> Any:
    """The dtype with this number. Errors: ConversionError that names `what` if there is none."""
    if number not in _KINDS:
        raise ConversionError(
            Code.NOT_SUPPORT, f"{what} has the data type {name_of(number)}, which is not read"
        )
    return _KINDS[number][0]


def name_of(number: int) -> str:
    """What TensorFlow calls a data type."""
    known = graph_pb2.Tensor.DESCRIPTOR.fields_by_name["dtype"].enum_type.values_by_number
    return known[number].name.removeprefix("DT_").lower() if number in known else f"number {number}"


def shape_of_message(message: Any, what: str) -> tuple[int, ...] | None:
    """Sizes with -1 for open ones; None where not even their number is known."""
    if not isinstance(message, graph_pb2.TensorShape):
        raise ConversionError(Code.GRAPH_FILE_ERROR, f"{what} has a shape that is {message!r}")
    if message.unknown_rank:
        return None
    shape = tuple(d.size for d in message.dim)
    if any(n < -1 for n in shape) or math.prod(n for n in shape if n > 0) > _LARGEST:
        raise ConversionError(Code.GRAPH_FILE_ERROR, f"{what} has the impossible shape {list(shape)}")
    return shape


def tensor_of(message: Any, what: str) -> ms.Tensor:
    """A constant. Fewer numbers than elements: the last one stands for the rest; without any all are 0.

    Errors: ConversionError for types that are not read, and where the data is not of the declared size.
    """
    dtype = dtype_of(message.dtype, what)
    _, field, kind = _KINDS[message.dtype]
    shape = shape_of_message(message.tensor_shape, what)
    if shape is None or any(n < 0 for n in shape):
        raise ConversionError(Code.GRAPH_FILE_ERROR, f"{what} is a constant without a shape")
    count, values = math.prod(shape), getattr(message, field)
    stored = np.dtype(kind).newbyteorder("<")
    if len(message.tensor_content):
        array = np.frombuffer(message.tensor_content, np.uint8)
        if array.size != count * stored.itemsize:
            raise ConversionError(
                Code.GRAPH_FILE_ERROR,
                f"{what} of shape {list(shape)} needs {count * stored.itemsize} bytes, but has {array.size}",
            )
        array = array.astype(bool) if stored.kind == "b" else array.view(stored)
    else:
        if len(values) > count:
            raise ConversionError(
                Code.GRAPH_FILE_ERROR, f"{what} of shape {list(shape)} has {len(values)} values"
            )
        array = np.array(values, np.int64 if stored.kind in "iu" and stored.itemsize < 8 else kind)
        last = array[-1] if array.size else 0
        array = np.concatenate([array, np.full(count - array.size, last, array.dtype)]).astype(kind)
    array = np.ascontiguousarray(array).reshape(shape)
    if dtype is ms.bfloat16:
        return ms.Tensor((array.astype(np.uint32) << 16).view(np.float32)).astype(ms.bfloat16)
    return ms.Tensor(np.array(array.view(np.float16) if dtype is ms.float16 else array))


def attribute_of(message: Any) -> Any:
    """The value of an attribute: bytes as text, lists as lists; messages stay what they are."""
    kind = message.WhichOneof("value")
    if kind == "s":
        return message.s.decode("utf-8", "replace")
    if kind != "list":
        return getattr(message, kind) if kind else None
    fields = message.list.ListFields()
    values = list(fields[0][1]) if fields else []
    return [v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in values]
