"""Files of an asynchronous dump: all inputs and outputs of one task of a device, as they lie there.

::

    uint64, little-endian: bytes of the header
    header: a message of protobuf
    the data of each tensor in the header's order, back to back

==== ============ ==================================================================
field of the header
------------------------------------------------------------------------------------
1    string       version of this layout, "1.0"
2    uint64       time in microseconds since 1970
3    Tensor*      outputs
4    Tensor*      inputs
6    string       full name of the operator
7    string       its type
8    uint64       number of the task
9    uint64       number of the stream
10   uint64       status word of the device: 1 AI core, 2 atomic additions overflowed
==== ============ ==================================================================

A Tensor has 1 dtype, as `str(np.dtype)` or "bfloat16"; 2 format, "DefaultFormat" or one of `device_formats`;
3 shape in memory; 6 bytes; 7 shape of the tensor, where it is another one. Shapes are messages of repeated
field 1.  Unknown fields are skipped.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mycelia.engine.base import dtypes, errors
from mycelia.engine.base.dtypes import DType
from mycelia.engine.base.wire import field as wire_field
from mycelia.engine.base.wire import fields
from mycelia.io import device_formats, reading
from mycelia.io.files import atomic_write

VERSION = "1.0"
PLAIN = "DefaultFormat"
_NAME = re.compile(r"\w+\.[^.]+\.\d+(?:\.\d+)?\.\d+")
_LENGTH = struct.Struct("<Q")
_LONGEST_NAME = 255  # bytes that file systems take
_LONGEST_HEADER = 1 << 28  # bytes; a header has some hundred


@dataclass(frozen=True, slots=True)
class DumpTensor:
    """One tensor of a dump: `data` as it lies in memory (bfloat16 as uint16), in `format`, of a tensor of
    `dtype` and `shape`.
    """

    dtype: DType
    data: np.ndarray
    format: str = PLAIN
    shape: tuple[int, ...] | None = None  # None: that of data

    def plain(self) -> np.ndarray:
        """The tensor itself, row-major; bfloat16 as float32. Errors: ValueError if the data do not fit."""
        x = self.data
        if self.format != PLAIN:
            x = device_formats.from_device(x, self.format, self.shape or ())
        return dtypes.from_bfloat16_bits(x) if self.dtype is dtypes.bfloat16 else x


@dataclass(frozen=True, slots=True)
class DumpRecord:
    """What one file holds."""

    op_name: str
    op_type: str
    task_id: int = 0
    stream_id: int = 0
    time_us: int = 0
    status: int = 0
    inputs: Sequence[DumpTensor] = field(default_factory=tuple)
    outputs: Sequence[DumpTensor] = field(default_factory=tuple)

    @property
    def file_name(self) -> str:
        """``{op_type}.{op_name}.{task_id}.{stream_id}.{timestamp}``, ``/`` and ``.`` of names as ``_``."""
        name = self.op_name.replace("/", "_").replace(".", "_")
        return f"{self.op_type}.{name}.{self.task_id}.{self.stream_id}.{self.time_us}"


def is_named_as_dump(path: Path) -> bool:
    """Whether a file has the name of a record, ``TYPE.NAME.TASK.STREAM.TIME``, the stream or not."""
    return path.is_file() and _NAME.fullmatch(path.name) is not None


def _shape(number: int, shape: Sequence[int]) -> bytes:
    return wire_field(number, b"".join(wire_field(1, int(n)) for n in shape))


def _tensor(number: int, tensor: DumpTensor) -> bytes:
    content = [
        wire_field(1, tensor.dtype.name.encode()),
        wire_field(2, tensor.format.encode()),
        _shape(3, tensor.data.shape),
        wire_field(6, tensor.data.nbytes),
    ]
    if tensor.shape is not None and tuple(tensor.shape) != tensor.data.shape:
        content.append(_shape(7, tensor.shape))
    return wire_field(number, b"".join(content))


def to_bytes(record: DumpRecord) -> bytes:
    """The file of `record`."""
    header = b"".join(
        [
            wire_field(1, VERSION.encode()),
            wire_field(2, record.time_us),
            *(_tensor(3, t) for t in record.outputs),
            *(_tensor(4, t) for t in record.inputs),
            wire_field(6, record.op_name.encode()),
            wire_field(7, record.op_type.encode()),
            wire_field(8, record.task_id),
            wire_field(9, record.stream_id),
            wire_field(10, record.status),
        ]
    )
    data = (np.ascontiguousarray(t.data).tobytes() for t in (*record.outputs, *record.inputs))
    return b"".join([_LENGTH.pack(len(header)), header, *data])


def write(folder: str | os.PathLike, record: DumpRecord) -> str:
    """Write `record` under its name below `folder`, which exists; the path. Errors: OSError."""
    path = os.path.join(folder, record.file_name)
    with atomic_write(path) as file:
        file.write(to_bytes(record))
    return path


def arrays(record: DumpRecord) -> Iterator[tuple[str, np.ndarray]]:
    """The tensors of `record`, row-major, bfloat16 as float32, each with the name of a file of its own:
    ``NAME.{input|output}.{slot}.DefaultFormat.{dtype}.npy``.
    """
    for io, tensors in (("input", record.inputs), ("output", record.outputs)):
        for slot, tensor in enumerate(tensors):
            array = tensor.plain()
            yield f"{record.file_name}.{io}.{slot}.{PLAIN}.{str(array.dtype).capitalize()}.npy", array


def _number(value: int | memoryview) -> int:
    if not isinstance(value, int):
        raise ValueError("a number is expected, but a text stands there")
    return value


def _text(value: int | memoryview) -> str:
    if isinstance(value, int):
        raise ValueError("a text is expected, but a number stands there")
    return bytes(value).decode()


def _read_shape(value: int | memoryview) -> tuple[int, ...]:
    if isinstance(value, int):
        raise ValueError("a shape is expected, but a number stands there")
    return tuple(_number(v) for number, v in fields(value) if number == 1)


def _read_tensor(value: int | memoryview, data: memoryview, at: int) -> tuple[DumpTensor, int]:
    """A tensor whose data begin at `at`, and where the next ones begin."""
    if isinstance(value, int):
        raise ValueError("a tensor is expected, but a number stands there")
    found = {number: v for number, v in fields(value)}
    missing = {1: "dtype", 2: "format", 3: "shape", 6: "size"}.keys() - found.keys()
    if missing:
        raise ValueError(f"a tensor has no field {min(missing)}")
    dtype = dtypes.as_dtype(_text(found[1]))
    shape, size = _read_shape(found[3]), _number(found[6])
    count = 1
    for n in shape:
        count *= n
    if count * dtype.itemsize != size:
        raise ValueError(f"a tensor of {dtype.name}{list(shape)} cannot have {size} bytes")
    if size > len(data) - at:
        raise ValueError(f"a tensor wants {size} bytes, {len(data) - at} are left")
    array = np.frombuffer(data[at : at + size], dtype.np).reshape(shape)
    original = _read_shape(found[7]) if 7 in found else None
    return DumpTensor(dtype, array, _text(found[2]), original), at + size


def read(path: str | os.PathLike) -> DumpRecord:
    """The record in a file. Errors: OSError; DamagedFileError, which names the file."""
    with open(path, "rb") as file:
        content = memoryview(file.read())
    try:
        if len(content) < _LENGTH.size:
            raise ValueError(f"it has {len(content)} bytes")
        (length,) = _LENGTH.unpack(content[: _LENGTH.size])
        if length > min(_LONGEST_HEADER, len(content) - _LENGTH.size):
            raise ValueError(f"its header wants {length} bytes, {len(content) - _LENGTH.size} are left")
        at = _LENGTH.size + length
        header = list(fields(content[_LENGTH.size : at]))
        single = {number: value for number, value in header if number not in (3, 4)}
        if _text(single.get(1, 0)) != VERSION:
            raise ValueError(f"its version is {_text(single[1])!r}, {VERSION!r} can be read")
        tensors: dict[int, list[DumpTensor]] = {3: [], 4: []}
        for kind in (3, 4):
            for number, value in header:
                if number == kind:
                    tensor, at = _read_tensor(value, content, at)
                    tensors[kind].append(tensor)
        if at != len(content):
            raise ValueError(f"{len(content) - at} bytes are left behind the last tensor")
        numbers = {name: _number(single.get(i, 0)) for i, name in _NUMBERS.items()}
        return DumpRecord(
            _text(single[6]) if 6 in single else "", _text(single[7]) if 7 in single else "",
            **numbers, inputs=tuple(tensors[4]), outputs=tuple(tensors[3]),
        )  # fmt: skip
    except (ValueError, TypeError, UnicodeDecodeError) as error:
        raise reading.damaged(
            os.fspath(path), str(error), "a file of an asynchronous dump was expected"
        ) from None


_NUMBERS = {2: "time_us", 8: "task_id", 9: "stream_id", 10: "status"}


def convert(
    path: str | os.PathLike, folder: str | os.PathLike, kind: str = "npy", keep_layout: bool = False
) -> list[str]:
    """Write each tensor of a file as ``NAME.{input|output}.{i}.{shape}.{dtype}.{kind}`` below `folder`, which
    is made; the paths.

    `kind`: "npy", or "bin" for bare bytes. `keep_layout`: as it lies in the device, not as the tensor.
    bfloat16 becomes float32. Errors: ValueError for another `kind`; as `read`.
    """
    if kind not in ("npy", "bin"):
        raise errors.one_of(kind, ("npy", "bin"), subject="convert", what="'kind'")
    record = read(path)
    os.makedirs(folder, exist_ok=True)
    written = []
    for io, tensors in (("input", record.inputs), ("output", record.outputs)):
        for i, tensor in enumerate(tensors):
            plain = DumpTensor(tensor.dtype, tensor.data) if keep_layout else tensor
            array = plain.plain()
            shape = "_".join(map(str, array.shape))
            ending = f".{io}.{i}.{shape}.{array.dtype}.{kind}"
            start = os.fsencode(os.path.basename(path))[: _LONGEST_NAME - len(ending)]
            written.append(os.path.join(folder, start.decode(errors="ignore") + ending))
            with atomic_write(written[-1]) as file:
                if kind == "npy":
                    np.save(file, array)
                else:
                    file.write(array.tobytes())
    return written
