"""A TensorFlow Lite file as tables, its tensors as what the importer works with.

The schema is that of TensorFlow (lite/schema/schema.fbs); the reader is the one of `.ms` files.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import mycelia as ms
from mycelia_lite.converter.errors import Code, ConversionError
from mycelia_lite.converter.importers.tflite.sparse import dense
from mycelia_lite.format import FormatError, decode
from mycelia_lite.format.schema import Schema
from mycelia_lite.format.tensors import mapped

TFL3 = Schema(Path(__file__).with_name("tfl3.schema"), "TensorFlow Lite file")
LARGEST = 1 << 40  # elements of a tensor

DTYPES = {
    "FLOAT32": ms.float32, "FLOAT16": ms.float16, "INT32": ms.int32, "UINT8": ms.uint8, "INT64": ms.int64,
    "BOOL": ms.bool_, "INT16": ms.int16, "INT8": ms.int8, "FLOAT64": ms.float64, "UINT64": ms.uint64,
    "UINT32": ms.uint32, "UINT16": ms.uint16, "BFLOAT16": ms.bfloat16, "INT4": ms.int8,
}  # fmt: skip
_RESOURCES = ("RESOURCE", "VARIANT")


@dataclass(frozen=True)
class Quantization:
    """Numbers are (q - zero) * scale; one scale, or one for each index along `axis`."""

    scale: np.ndarray
    zero: np.ndarray
    axis: int

    @property
    def is_one(self) -> bool:
        return self.scale.size == 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantization) and (
            np.array_equal(self.scale, other.scale) and np.array_equal(self.zero, other.zero)
        )


@dataclass
class TensorInfo:
    """A tensor of a subgraph: `shape` has -1 where the file leaves a size open."""

    name: str
    kind: str  # as the file calls the dtype
    shape: tuple[int, ...]
    quantization: Quantization | None
    is_variable: bool
    table: Any

    @property
    def dtype(self) -> Any:
        """Errors: ConversionError for a data type that is not imported."""
        if self.kind not in DTYPES:
            raise ConversionError(
                Code.NOT_SUPPORT, f"the tensor '{self.name}' has the data type {self.kind}, which is not read"
            )
        return DTYPES[self.kind]

    @property
    def is_resource(self) -> bool:
        return self.kind in _RESOURCES


@dataclass(frozen=True)
class Entry:
    """Where a run begins: a graph's number, its inputs and outputs as tensors with names, "" for theirs."""

    graph: int
    inputs: Sequence[tuple[int, str]]
    outputs: Sequence[tuple[int, str]]


class File:
    """The tables of a file. Errors: ConversionError for what is no such file."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self.data = mapped(path)
            self.model = decode(self.data, schema=TFL3)
        except (FormatError, OSError) as error:
            raise self.broken(str(error)) from error
        if self.model.version != 3:
            raise ConversionError(
                Code.NOT_SUPPORT,
                f"{path}: version {self.model.version} of the format is not read, only 3 is",
            )
        if not self.model.subgraphs:
            raise self.broken("it has no graph")

    def broken(self, why: str) -> ConversionError:
        return ConversionError(Code.GRAPH_FILE_ERROR, f"{self.path}: {why}")

    def at(self, entries: Sequence[Any], index: int, what: str) -> Any:
        """An entry of a list of the file. Errors: ConversionError if the file does not have it."""
        if not 0 <= index < len(entries):
            raise self.broken(f"{what} {index} does not exist: there are {len(entries)}")
        return entries[index]

    def entry(self, signature: str) -> Entry:
        """Where a signature begins, "" for the primary graph, in the order of the graph's inputs and outputs.

        Errors: ConversionError if there is no such signature, or it leaves out an input.
        """
        if not signature:
            first = self.model.subgraphs[0]
            return Entry(0, [(i, "") for i in first.inputs], [(i, "") for i in first.outputs])
        keys = [s.signature_key for s in self.model.signature_defs]
        if signature not in keys:
            raise ConversionError(
                Code.INPUT_PARAM_INVALID, f"signature names '{signature}', but the file has {sorted(keys)}"
            )
        found = self.model.signature_defs[keys.index(signature)]
        graph = self.at(self.model.subgraphs, found.subgraph_index, "graph")
        inputs = {entry.tensor_index: entry.name for entry in found.inputs}
        if set(inputs) != set(graph.inputs) or len(inputs) != len(graph.inputs):
            raise self.broken(f"the signature '{signature}' names other inputs than its graph has")
        order = {index: place for place, index in enumerate(graph.outputs)}
        outputs = sorted(found.outputs, key=lambda entry: order.get(entry.tensor_index, len(order)))
        return Entry(
            found.subgraph_index,
            [(i, inputs[i]) for i in graph.inputs],
            [(entry.tensor_index, entry.name) for entry in outputs],
        )

    def kind_of(self, operator: Any) -> str:
        """The name of an operator; of a custom one `CUSTOM.` and its code."""
        code = self.at(self.model.operator_codes, operator.opcode_index, "operator code")
        number = max(code.builtin_code, code.deprecated_builtin_code)
        member = TFL3.enums["BuiltinOperator"].member(number)
        name = getattr(member, "name", f"number {number}")
        return f"CUSTOM.{code.custom_code}" if name == "CUSTOM" else name

    def info(self, table: Any) -> TensorInfo:
        kind = getattr(table.type, "name", f"number {table.type}")
        shape = tuple(table.shape)
        signature = tuple(table.shape_signature)
        if len(signature) == len(shape):
            shape = tuple(-1 if s < 0 else n for s, n in zip(signature, shape))
        if any(n < -1 for n in shape) or math.prod(n for n in shape if n > 0) > LARGEST:
            raise self.broken(f"the tensor '{table.name}' has the impossible shape {list(shape)}")
        return TensorInfo(table.name, kind, shape, self._quantization(table), table.is_variable, table)

    def _quantization(self, table: Any) -> Quantization | None:
        given = table.quantization
        if given is None or not len(given.scale):
            return None
        what = f"the tensor '{table.name}'"
        scale = np.asarray(given.scale, np.float32)
        zero = np.asarray(given.zero_point if len(given.zero_point) else [0], np.int64)
        if given.details is not None:
            raise ConversionError(Code.NOT_SUPPORT, f"{what} has a quantization of a kind of its own")
        axis, shape = given.quantized_dimension, table.shape
        if zero.size not in (1, scale.size) or not np.isfinite(scale).all() or (scale <= 0).any():
            raise self.broken(f"{what} has scales {scale[:4]} and zero points {zero[:4]} that are impossible")
        if scale.size > 1 and not (0 <= axis < len(shape) and shape[axis] == scale.size):
            raise self.broken(f"{what} of shape {list(shape)} has {scale.size} scales along axis {axis}")
        return Quantization(scale, np.broadcast_to(zero, scale.shape), axis)

    # ---- constants

    def bytes_of(self, index: int) -> memoryview:
        """What a buffer holds; large ones lie behind the tables."""
        buffer = self.at(self.model.buffers, index, "buffer")
        if buffer.offset > 1:  # 0 and 1 stand for none
            end = buffer.offset + buffer.size
            if end > len(self.data):
                raise self.broken(
                    f"buffer {index} at {buffer.offset} of {buffer.size} bytes goes on behind the end"
                )
            return self.data[buffer.offset : end]
        return memoryview(buffer.data)

    def constant(self, info: TensorInfo) -> ms.Tensor | None:
        """The values of a tensor that the file holds, None for one that is computed."""
        table = info.table
        if table.external_buffer:
            raise ConversionError(
                Code.NOT_SUPPORT, f"the tensor '{info.name}' lies in another file, which is not read"
            )
        data = self.bytes_of(table.buffer)
        shape = tuple(table.shape)
        count = math.prod(shape)
        if info.is_variable or info.is_resource or (count and not len(data)):
            return None
        dtype = info.dtype
        if table.sparsity is not None:
            if info.kind == "INT4":
                raise ConversionError(
                    Code.NOT_SUPPORT, f"the tensor '{info.name}' is sparse with elements of 4 bits"
                )
            if count > 1 << 31:
                raise self.broken(f"the sparse tensor '{info.name}' has the shape {list(shape)}")
            try:
                array = dense(table.sparsity, shape, np.frombuffer(data, _stored(dtype)))
            except ValueError as error:
                raise self.broken(f"the sparse tensor '{info.name}': {error}") from None
        elif info.kind == "INT4":
            self._need(info, len(data), (count + 1) // 2)
            pairs = np.frombuffer(data, np.uint8)
            nibbles = np.stack([pairs & 15, pairs >> 4], 1).reshape(-1)[:count].astype(np.int8)
            array = np.where(nibbles > 7, nibbles - 16, nibbles).astype(np.int8)
        else:
            self._need(info, len(data), count * _stored(dtype).itemsize)
            array = np.frombuffer(data, _stored(dtype))
        if info.kind == "BOOL":
            array = array != 0
        array = array.reshape(shape)
        if dtype is ms.bfloat16:
            return ms.Tensor((array.astype(np.uint32) << 16).view(np.float32)).astype(ms.bfloat16)
        return ms.Tensor(np.array(array))

    def _need(self, info: TensorInfo, found: int, wanted: int) -> None:
        if found != wanted:
            raise self.broken(
                f"the tensor '{info.name}' of shape {list(info.table.shape)} needs {wanted} bytes, "
                f"but has {found}"
            )


def _stored(dtype: Any) -> np.dtype:
    if dtype is ms.bfloat16:
        return np.dtype("<u2")
    return np.dtype(np.uint8) if dtype is ms.bool_ else np.dtype(dtype.np).newbyteorder("<")
