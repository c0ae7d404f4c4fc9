"""Arrays of numbers from ``.npy`` files, whoever wrote them."""

from __future__ import annotations

import tokenize
from pathlib import Path

import numpy as np

from mycelia.debug import compressed
from mycelia.engine.base import errors

_MAPPED = 1 << 20  # bytes of a file from which a map of it costs less than its read
#: What NumPy raises for heads that are no heads: it parses them as Python.
_DAMAGED = (ValueError, EOFError, TypeError, SyntaxError, tokenize.TokenError, OverflowError, RecursionError)


def read_array(path: Path, subject: str, mapped: bool = False) -> np.ndarray:
    """The elements, in this machine's order of bytes; extended precision becomes float64.

    `subject`: what an error begins with. `mapped`: of a large file that is not compressed a view that reads
    what is looked at.

    Errors: ValueError for a file that is damaged, or holds no numbers; ImportError for one that is
    compressed, where the library for that is not installed.
    """
    try:
        if path.suffix == compressed.ENDING:
            with compressed.opened(path, subject) as file:
                found = np.lib.format.read_array(file, allow_pickle=False)
        elif mapped and path.stat().st_size > _MAPPED:
            found = np.lib.format.open_memmap(path, mode="r")
        else:
            with open(path, "rb") as file:
                found = np.lib.format.read_array(file, allow_pickle=False)
    except (*_DAMAGED, OSError, MemoryError) as cause:
        raise errors.value_error(subject, f"{path} cannot be read: {cause}") from None
    if found.dtype.kind not in "fciub":
        raise errors.value_error(subject, f"{path} holds {found.dtype}, expected numbers")
    return native(found)


def native(array: np.ndarray) -> np.ndarray:
    """Numbers in this machine's order of bytes, none in extended precision; no copy of what is so."""
    if array.dtype.char in "gG":
        return array.astype(np.float64 if array.dtype.kind == "f" else np.complex128)
    return array.astype(array.dtype.newbyteorder("="), copy=False)
