"""Files of tensors compressed by zstd, ``NAME.npy.zst``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from mycelia.engine.base import errors

ENDING = ".zst"


def library(subject: str) -> Any:
    """The package zstandard.  Errors: ImportError if it is not installed."""
    try:
        import zstandard
    except ImportError:
        raise errors.MyceliaImportError(
            f"{subject}: files compressed by zstd need the package 'zstandard': "
            "pip install 'mycelia-core[compression]'"
        ) from None
    return zstandard


@contextmanager
def opened(path: str | os.PathLike, subject: str) -> Iterator[BinaryIO]:
    """What the file holds, to be read from its beginning on.

    Errors: ValueError, while it is read, for a file that is damaged; OSError; ImportError without the
    library.
    """
    zstandard = library(subject)
    with open(path, "rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as stream:
        try:
            yield stream
            stream.read(1)  # behind the elements stands what tells whether they are right
        except zstandard.ZstdError as cause:
            raise ValueError(f"it is no whole file of zstd: {cause}") from None
