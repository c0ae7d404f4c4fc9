"""The safetensors layout: u64 header size, JSON header, data. As MindSpore writes it:
names, `format: ms`, CRC.

Layout: https://github.com/huggingface/safetensors (format section of its README).
"""

from __future__ import annotations

import contextlib
import json
import math
import struct
import zlib
from collections.abc import Callable, Mapping
from typing import BinaryIO

import numpy as np

from mycelia.io.raw import Raw, empty, storage
from mycelia.io.reading import STEP, Bytes, FileBytes, MemoryBytes

_TYPES = {  # in the order of the layout's enumeration: later ones come first, so all are aligned
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "int16": "I16",
    "uint16": "U16",
    "float16": "F16",
    "bfloat16": "BF16",
    "int32": "I32",
    "uint32": "U32",
    "float32": "F32",
    "complex64": "C64",
    "float64": "F64",
    "int64": "I64",
    "uint64": "U64",
}
_DTYPES = {name: dtype for dtype, name in _TYPES.items()}
_RANK = {dtype: -i for i, dtype in enumerate(_TYPES)}
_MAX_HEADER = 100 << 20  # the layout's own limit: guards against garbage taken for a size


def write(file: BinaryIO, entries: Mapping[str, Raw], *, crc_check: bool = False) -> None:
    """Writes the entries, ordered by type and name. Errors: TypeError for a dtype that the layout lacks."""
    for name, raw in entries.items():
        if raw.dtype not in _TYPES:
            raise TypeError(f"'{name}' is {raw.dtype}, which safetensors cannot hold")
    metadata = {"format": "ms"}
    if crc_check:
        metadata["crc_num"] = str(_crc(entries))
    header: dict = {"__metadata__": dict(sorted(metadata.items()))}
    order = sorted(entries, key=lambda name: (_RANK[entries[name].dtype], name))
    at = 0
    for name in order:
        raw = entries[name]
        end = at + len(raw.data)
        header[name] = {"dtype": _TYPES[raw.dtype], "shape": list(raw.shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    file.write(struct.pack("<Q", len(text)) + text)
    for name in order:
        file.write(entries[name].data)


def read(
    path: str | BinaryIO, *, crc_check: bool = False, chosen: Callable[[str], bool] = lambda name: True
) -> tuple[dict[str, Raw | None], dict[str, str]]:
    """(name -> value in the order of the names, metadata); None for names that are not `chosen`.

    path: of a file, or a binary stream with its content.

    Errors: ValueError, with the reason, when the file is damaged, cut off, or its CRC is not right.
    """
    if isinstance(path, str):
        data: Bytes = FileBytes(path, lambda path, why: ValueError(why))
    else:
        data = MemoryBytes(path.read())
    with contextlib.closing(data):
        items, metadata, start = _header(data)
        stored = metadata.get("crc_num")
        if crc_check and stored is not None:
            crc = _crc_of_file(data, items, start)
            if stored != str(crc):
                raise ValueError(f"its CRC is {crc}, the file says {stored}: the content was changed")
        entries = {}
        for name, dtype, shape, begin, _ in items:
            entries[name] = value = empty(dtype, shape) if chosen(name) else None
            if value is not None and value.array.size:
                data.into(value.array.reshape(-1).view(np.uint8), start + begin)
    return entries, metadata


def _header(data: Bytes) -> tuple[list[tuple], dict[str, str], int]:
    """(name, dtype, shape, begin, end) of each value by name, the metadata, where the data begins."""
    size = len(data)
    if size < 8:
        raise ValueError("the file is shorter than its header")
    (header_size,) = struct.unpack("<Q", data.piece(0, 8))
    if header_size > min(_MAX_HEADER, size - 8):
        raise ValueError(f"the header would have {header_size} bytes, the file has {size}")
    try:
        header = json.loads(data.piece(8, 8 + header_size))
        metadata = header.pop("__metadata__", {})
        items = sorted(
            (name, item["dtype"], tuple(item["shape"]), *item["data_offsets"])
            for name, item in header.items()
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
        raise ValueError(f"the header cannot be read: {e!r}") from None
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise ValueError("the metadata of the header is no table of texts")
    items = [_checked(*item, limit=size - 8 - header_size) for item in items]
    at = 0
    for name, *_, begin, end in sorted(items, key=lambda item: item[3:]):
        if begin != at:  # as the layout demands: no holes, and nothing twice
            raise ValueError(f"'{name}' lies at byte {begin} of the data, where {at} was expected")
        at = end
    if at != size - 8 - header_size:
        raise ValueError(f"the data has {size - 8 - header_size} bytes, the header describes {at}")
    return items, metadata, 8 + header_size


def _checked(name: str, kind: str, shape: tuple, *places, limit: int) -> tuple:
    if not isinstance(kind, str) or kind not in _DTYPES:
        raise ValueError(f"'{name}' has the type {kind}, which is not supported")
    if len(places) != 2 or any(type(n) is not int or n < 0 for n in (*shape, *places)):
        raise ValueError(f"'{name}' has the shape {list(shape)} and lies at {list(places)}")
    begin, end = places
    if not begin <= end <= limit:
        raise ValueError(f"'{name}' lies at bytes {begin} to {end}, the data has {limit}")
    dtype = _DTYPES[kind]
    needed = math.prod(shape) * storage(dtype).itemsize
    if needed != end - begin:
        raise ValueError(f"'{name}': {dtype}{list(shape)} takes {needed} bytes, the file has {end - begin}")
    try:
        name.encode()
    except UnicodeEncodeError as e:
        raise ValueError(f"a name of the header is no text: {e}") from None
    return name, dtype, shape, begin, end


def _crc_of_file(data: Bytes, items: list[tuple], start: int) -> int:
    crc = 0
    for name, *_, begin, end in items:
        crc = zlib.crc32(name.encode(), crc)
        for at in range(start + begin, start + end, STEP):
            crc = zlib.crc32(data.piece(at, min(at + STEP, start + end)), crc)
    return crc


def _crc(entries: Mapping[str, Raw]) -> int:
    crc = 0
    for name in sorted(entries):
        crc = zlib.crc32(entries[name].data, zlib.crc32(name.encode(), crc))
    return crc
