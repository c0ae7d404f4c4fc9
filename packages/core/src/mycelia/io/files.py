"""Writing files so that a reader sees the old content or the whole new one, never a part."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from typing import BinaryIO


@contextlib.contextmanager
def atomic_write(path: str, mode: int = 0o644) -> Iterator[BinaryIO]:
    """A binary file that takes the place of `path` when the block ends without an error.

    The bytes go to a temporary file in the same directory, are forced to disk, and are renamed over `path`;
    the file then has the permissions `mode`. When anything fails (full disk, exception in the block) the
    temporary file is removed and an existing `path` stays as it was.
    Errors: OSError of the file system, with the path in it.
    """
    directory, name = os.path.split(os.path.abspath(path))
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{name}.", suffix=".tmp", dir=directory)
    except OSError as e:
        e.filename = os.fspath(path)  # not the temporary name, which nobody knows
        raise
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException as e:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        if isinstance(e, OSError) and e.filename is None:  # a full disk: the write itself knows no name
            e.filename = os.fspath(path)
        raise
    _sync_directory(directory)


def _sync_directory(directory: str) -> None:
    """Makes the rename itself durable where directories can be opened (not on Windows)."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
