"""The safetensors layout: u64 header size, JSON header, data. As MindSpore writes it:
names, `format: ms`, CRC.

Layout: https://github.com/huggingface/safetensors (format section of its README).
"""

from __future__ import annotations

import json
import mmap
import struct
import zlib
from collections.abc import Mapping
from typing import BinaryIO

from mycelia.io.raw import Raw, from_bytes

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


def read(path: str | BinaryIO, *, crc_check: bool = False) -> tuple[dict[str, Raw], dict[str, str]]:
    """(name -> value in the order of the names, metadata); the values are views of the mapped file.

    path: of a file, or a binary stream with its content.

    Errors: ValueError, with the reason, when the file is damaged, cut off, or its CRC is not right.
    """
    data = _mapped(path) if isinstance(path, str) else memoryview(path.read())
    size = len(data)
    if size < 8:
        raise ValueError("the file is shorter than its header")
    (header_size,) = struct.unpack_from("<Q", data)
    if header_size > min(_MAX_HEADER, size - 8):
        raise ValueError(f"the header would have {header_size} bytes, the file has {size}")
    try:
        header = json.loads(bytes(data[8 : 8 + header_size]))
        metadata = header.pop("__metadata__", {})
        items = [
            (name, item["dtype"], tuple(item["shape"]), *item["data_offsets"])
            for name, item in header.items()
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise ValueError(f"the header cannot be read: {e!r}") from None
    body = data[8 + header_size :]
    entries = {
        name: _entry(name, kind, shape, start, end, body) for name, kind, shape, start, end in sorted(items)
    }
    if max((end for *_, end in items), default=0) != len(body):
        raise ValueError(
            f"the data has {len(body)} bytes, the header describes {max((e for *_, e in items), default=0)}"
        )
    if crc_check and "crc_num" in metadata and int(metadata["crc_num"]) != _crc(entries):
        raise ValueError(
            f"its CRC is {_crc(entries)}, the file says {metadata['crc_num']}: the content was changed"
        )
    return entries, metadata


def _mapped(path: str) -> memoryview:
    with open(path, "rb") as file:
        if file.seek(0, 2) == 0:  # nothing that could be mapped
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _entry(name: str, kind: str, shape: tuple[int, ...], start: int, end: int, body: memoryview) -> Raw:
    if kind not in _DTYPES:
        raise ValueError(f"'{name}' has the type {kind}, which is not supported")
    if not 0 <= start <= end <= len(body):
        raise ValueError(f"'{name}' lies at bytes {start} to {end}, the data has {len(body)}")
    try:
        return from_bytes(_DTYPES[kind], shape, body[start:end])
    except (ValueError, TypeError) as e:
        raise ValueError(f"'{name}': {e}") from None


def _crc(entries: Mapping[str, Raw]) -> int:
    crc = 0
    for name in sorted(entries):
        crc = zlib.crc32(entries[name].data, zlib.crc32(name.encode(), crc))
    return crc
