"""Sizes of tensors and where their bytes lie."""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Any

from mycelia_lite.format.table import FormatError, Table

_BITS = {"BOOL": 8, "COMPLEX64": 64, "COMPLEX128": 128} | {
    f"{kind}{bits}": bits
    for kind, widths in {"INT": (8, 16, 32, 64), "UINT": (8, 16, 32, 64), "FLOAT": (16, 32, 64)}.items()
    for bits in widths
}


def element_bits(data_type: Any) -> int:
    """Bits of an element of a `DataType`; 0 for what has no fixed size or is not known."""
    return _BITS.get(getattr(data_type, "name", ""), 0)


def stored_bytes(tensor: Table) -> int | None:
    """How many bytes of a `Tensor` the model holds; None for a tensor that is computed or fed."""
    if len(tensor.data):
        return len(tensor.data)
    if tensor.externalData:
        return max(0, tensor.externalData[0].length)
    return None


def mapped(path: str | os.PathLike) -> memoryview:
    """The content of a file, which the system reads when it is used. Errors: OSError."""
    with open(path, "rb") as file:
        if not os.fstat(file.fileno()).st_size:  # nothing can be mapped
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def data_of(tensor: Table, folder: str | os.PathLike = ".") -> memoryview:
    """The bytes of a `Tensor`, mapped from the file in `folder` that `externalData` names if they lie there.

    `folder`: of the model. Nothing outside of it is read. Errors: `FormatError`, OSError.
    """
    if len(tensor.data) or not tensor.externalData:
        return memoryview(tensor.data)
    about = f"Tensor {tensor.name!r}"
    if len(tensor.externalData) != 1:
        raise FormatError(f"{about}: its data lie in {len(tensor.externalData)} files, only one is possible")
    place = tensor.externalData[0]
    folder = Path(folder).resolve()
    path = _inside(folder, place.location)
    if path is None:
        raise FormatError(
            f"{about}: its data lie at {place.location!r}, which is not inside the model's folder"
        )
    content = mapped(path)
    end = len(content) if place.length == -1 else place.offset + place.length
    if not 0 <= place.offset <= end <= len(content):
        what = f"its data lie at {place.offset} to {end} in a file of {len(content)} bytes"
        raise FormatError(f"{about}: {what}", subject=str(path))
    data = content[place.offset : end]
    if place.checkSum and data and place.checkSum not in _check_sums(data[0]):
        raise FormatError(f"{about}: the check sum of its data is not {place.checkSum!r}", subject=str(path))
    return data


def _inside(folder: Path, location: str) -> Path | None:
    """The file at `location`, if that is one in `folder`."""
    try:
        path = (folder / location).resolve()
    except (ValueError, RuntimeError):  # a zero byte, a loop of links
        return None
    return path if location and path != folder and path.is_relative_to(folder) else None


def _check_sums(first: int) -> tuple[str, str]:
    """MindSpore Lite's sum: the first byte as the hash of a char, which is signed on some machines."""
    signed = first - 256 if first > 127 else first
    return str(first), str(signed % 2**64)
