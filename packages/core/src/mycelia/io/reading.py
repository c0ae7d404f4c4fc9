"""Files as bytes at any place: read, not mapped, so that a file which another process cuts short meanwhile
gives an error and not the end of the process.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np

from mycelia.engine import _data
from mycelia.engine.base import errors

STEP = 1 << 20  # bytes of files that are read from their beginning, at a time


class DamagedFileError(errors.MyceliaRuntimeError, errors.FileFormatError):
    """A file is cut off, changed, or of another kind than its name says."""

    code = errors.FileFormatError.code


def damaged(path, message: str, hint: str = "") -> DamagedFileError:
    """The error for a file whose bytes are not what they should be."""
    return errors.error(DamagedFileError, str(path), message, hint=hint)


@contextlib.contextmanager
def of_file(path, owner: str = "") -> Iterator[None]:
    """What goes wrong inside is about this file: errors of ours get its name, others become ours.

    Errors: OSError as it is, if it names a file; else DamagedFileError about `owner` or the file.
    """
    try:
        yield
    except errors.MyceliaError as e:
        if os.path.basename(path) not in str(e):
            e.message = f"{path}: {e.message}"
        raise
    except Exception as e:
        if isinstance(e, OSError) and e.filename is not None:
            raise
        what = "Failed to cast to Unicode string" if isinstance(e, UnicodeDecodeError) else type(e).__name__
        text = f"{path} is damaged, or of another kind: {what}: {e}" if owner else f"{what}: {e}"
        raise errors.error(DamagedFileError, owner or str(path), text) from None


class Bytes(Protocol):
    """What `FileBytes` and `MemoryBytes` have in common."""

    def __len__(self) -> int: ...
    def piece(self, begin: int, end: int) -> bytes: ...
    def pieces(self, begins: np.ndarray, sizes: np.ndarray) -> np.ndarray: ...
    def close(self) -> None: ...


class FileBytes:
    """An open file. `cut_off` makes the error for a file that ends inside of what is read.

    Errors: OSError with the file's name.
    """

    def __init__(self, path: str, cut_off: Callable[[str, str], BaseException]):
        self.path, self._cut_off = path, cut_off
        self._fd = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | os.O_CLOEXEC)
        self._size = os.fstat(self._fd).st_size

    def __len__(self) -> int:
        """The size when the file was opened."""
        return self._size

    @property
    def state(self) -> tuple:
        """Changes when the file does."""
        now = os.fstat(self._fd)
        return now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns

    def piece(self, begin: int, end: int) -> bytes:
        """The bytes from `begin` to `end`."""
        data = os.pread(self._fd, end - begin, begin) if end <= self._size else b""
        if len(data) == end - begin:
            return data
        return self.pieces(np.array([begin], np.int64), np.array([end - begin], np.int64)).tobytes()

    def into(self, out: np.ndarray, begin: int) -> np.ndarray:
        """`out` (uint8 [n], contiguous), filled with the bytes from `begin` on."""
        return self._read(np.array([begin], np.int64), np.array([out.size], np.int64), out)

    def pieces(self, begins: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Many pieces, one behind the other: uint8 [bytes]."""
        begins, sizes = np.ascontiguousarray(begins, np.int64), np.ascontiguousarray(sizes, np.int64)
        outside = np.flatnonzero(begins > self._size - sizes)
        if len(outside):  # before memory is taken for what cannot be there
            raise self._ends_before(int(begins[outside[0]]), int(sizes[outside[0]]))
        return self._read(begins, sizes, np.empty(int(sizes.sum()), np.uint8))

    def _read(self, begins: np.ndarray, sizes: np.ndarray, out: np.ndarray) -> np.ndarray:
        whole = _data.read_pieces(self._fd, begins, sizes, out)
        if whole < len(begins):
            raise self._ends_before(int(begins[whole]), int(sizes[whole]))
        return out

    def _ends_before(self, begin: int, size: int) -> BaseException:
        now = os.fstat(self._fd).st_size
        was = f", when it was opened it had {self._size}" if now != self._size else ""
        message = f"the file is cut off: it has {now} bytes{was}; {size} from byte {begin} are needed"
        return self._cut_off(self.path, message)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        if hasattr(self, "_fd"):
            self.close()


class MemoryBytes:
    """Bytes that are in memory already, such as a decrypted file."""

    def __init__(self, data: bytes | bytearray | memoryview):
        self._data = np.frombuffer(data, np.uint8)

    def __len__(self) -> int:
        return self._data.size

    def piece(self, begin: int, end: int) -> bytes:
        return self._data[begin:end].tobytes()

    def into(self, out: np.ndarray, begin: int) -> np.ndarray:
        out[...] = self._data[begin : begin + out.size]
        return out

    def pieces(self, begins: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        if len(begins) and (begins[1:] == (begins + sizes)[:-1]).all():
            return self._data[int(begins[0]) : int(begins[-1] + sizes[-1])]
        return np.concatenate([self._data[:0], *(self._data[b : b + n] for b, n in zip(begins, sizes))])

    def close(self) -> None:
        pass
