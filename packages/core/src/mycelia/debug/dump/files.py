"""The files of a dump: their names, by the rule of MindSpore 2.10 and by the old one, and how they are
written.

A file is written under a temporary name and renamed: a reader sees it whole or not at all. What is lost when
the machine, not the process, stops is not worth a wait for the disk in each of thousands of files.
"""

from __future__ import annotations

import csv
import functools
import io
import os
import sys
import threading
import time
from array import array
from collections.abc import Iterable
from contextlib import suppress

import numpy as np

from mycelia.engine.base.dtypes import DType
from mycelia.engine.base.files import write, write_all

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

PLAIN = "DefaultFormat"  # the layout of tensors as the network has them
MAPPING = "mapping.csv"  # short names of files, and their full ones
_LONGEST = 255  # bytes of a name that file systems take

# Of linux/fs.h: the attribute "T" of chattr, and how it is read and set, as for 64 bits.
_TOP_OF_HIERARCHY, _GET_FLAGS, _SET_FLAGS = 0x20000, 0x80086601, 0x40086602

_DTYPES = {"bool": "Bool", "bfloat16": "Float32"}  # others are their own names with a capital


class Clock:
    """Microseconds of the wall clock as 16 digits, each later than the one before."""

    def __init__(self) -> None:
        self.last = 0
        self.lock = threading.Lock()

    def stamp(self) -> str:
        return f"{self.take(1):016d}"

    def take(self, count: int) -> int:
        """The first of `count` stamps, of which each is one later than the one before."""
        with self.lock:
            first = max(self.last + 1, time.time_ns() // 1000)
            self.last = first + count - 1
            return first


#: The one of this process: names of all its dumps are in order.
CLOCK = Clock()


def dtype_name(dtype: DType) -> str:
    """`Float32`, `Int8`, `Bool`...; bfloat16 is saved as float32."""
    name = dtype.name
    return _DTYPES.get(name) or name[:1].upper() + name[1:]


@functools.lru_cache(maxsize=4096)
def op_name(full_name: str) -> str:
    """A full name with scope as a part of a file name."""
    return full_name.replace("/", "_").replace(".", "_")


def stem(kind: str, full_name: str) -> str:
    """What the names of an operator's files begin with: type, name, task and stream."""
    return f"{kind}.{op_name(full_name)}.0.0."


def ending(dtype: str, layout: str = PLAIN) -> str:
    return f".{layout}.{dtype}.npy"


def file_name(
    kind: str, full_name: str, stamp: str, io: str, slot: int, dtype: str, layout: str = PLAIN
) -> str:
    """``{op_type}.{op_name}.{task_id}.{stream_id}.{timestamp}.{io}.{slot}.{format}.{dtype}.npy``"""
    return f"{stem(kind, full_name)}{stamp}.{io}.{slot}{ending(dtype, layout)}"


def short_op_name(full_name: str) -> str:
    """The last part of a full name, as MindSpore 2.0 has it in file names; dots stay."""
    return full_name.rpartition("/")[2]


def short_stem(kind: str, full_name: str) -> str:
    """What names of MindSpore 2.0 begin with,
    ``{op_type}.{op_name}.{task_id}.{stream_id}.{timestamp}.{io}.{slot}.{format}.npy``.
    """
    return f"{kind}.{short_op_name(full_name)}.0.0."


def short_ending(layout: str) -> str:
    """What they end in."""
    return f".{layout}.npy"


def old_stem(full_name: str) -> str:
    """What names begin with by the rule of MindSpore 1.1,
    ``{op name with / -> --}_{io}_{slot}_shape_{d0}_{d1}_..._{Dtype}_{Format}.bin``.
    """
    return full_name.replace("/", "--")


def old_ending(shape: Iterable[int], dtype: str, layout: str) -> str:
    """What they end in, from ``_shape`` on."""
    return f"_shape_{'_'.join(map(str, shape))}_{dtype}_{layout}.bin"


def fitting(name: str) -> str:
    """`name`, or what stands for it where it is too long: a row of ``mapping.csv`` then tells both."""
    if len(name) <= _LONGEST // 4 or len(name.encode()) <= _LONGEST:  # UTF-8 takes 4 bytes at most
        return name
    head, ending = os.path.splitext(name)
    stamp = CLOCK.stamp()
    room = _LONGEST - len(stamp) - len(ending) - 1
    return f"{head.encode()[:room].decode(errors='ignore')}.{stamp}{ending}"


@functools.lru_cache(maxsize=4096)
def header(dtype: np.dtype, shape: tuple[int, ...]) -> bytes:
    """What the .npy file of such an array begins with."""
    buffer = io.BytesIO()
    descr = np.lib.format.dtype_to_descr(dtype)
    np.lib.format.write_array_header_1_0(buffer, {"descr": descr, "fortran_order": False, "shape": shape})
    return buffer.getvalue()


def make_apart(path: str) -> None:
    """A folder whose folders the file system may place far from each other.  Errors: OSError.

    ext4 puts files near those of the folders around. Where many of these were deleted lately, as in a folder
    for temporary files, it looks at each of their inodes before it makes a file: 0.1 to 0.7 ms each instead
    of 0.02. It chooses the place by a hash of the name, which is another one for each step as long as its
    folder is hidden.
    """
    os.makedirs(path, exist_ok=True)
    if sys.platform != "linux":
        return
    flags = array("l", [0])
    with suppress(OSError):  # what has no such attribute does without
        folder = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.ioctl(folder, _GET_FLAGS, flags)
            flags[0] |= _TOP_OF_HIERARCHY
            fcntl.ioctl(folder, _SET_FLAGS, flags)
        finally:
            os.close(folder)


def append(path: str, text: str) -> None:
    """`text` at the end of a file, by one call of the system; its folder is made.  Errors: OSError."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    try:
        file = os.open(path, flags, 0o666)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        file = os.open(path, flags, 0o666)
    try:
        write_all(file, text.encode())
    finally:
        os.close(file)


def write_array(folder: str, name: str, array: np.ndarray) -> None:
    """A .npy of its own in `folder`, which appears whole.  Errors: OSError."""
    parts: list[bytes | memoryview] = [header(array.dtype, array.shape)]
    if array.size:
        parts.append(memoryview(np.ascontiguousarray(array)).cast("B"))
    write_named(folder, name, parts)


def write_named(folder: str, name: str, parts: Iterable[bytes | memoryview]) -> None:
    """A file of these parts in `folder`, which appears whole; under a short name, and a row of the folder's
    ``mapping.csv`` where that is too long.  Errors: OSError.
    """
    short = fitting(name)
    write(os.path.join(folder, short), parts)
    if short != name:
        with open(os.path.join(folder, MAPPING), "a", encoding="utf-8", newline="") as file:
            csv.writer(file).writerow([short, name])


def write_new(path: str, parts: Iterable[bytes | memoryview]) -> None:
    """A file of these parts, where none has its name.  Errors: OSError; nothing is left behind then."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        try:
            for part in parts:
                write_all(file, part)
        finally:
            os.close(file)
    except BaseException:
        os.unlink(path)
        raise
