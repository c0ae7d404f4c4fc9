"""Files that appear whole, without a wait for the disk: what is lost when the machine, not the process, stops
is not worth one in each of hundreds of files. `mycelia.io.files` waits.
"""

from __future__ import annotations

import os
from collections.abc import Iterable


def write(path: str, parts: Iterable[bytes | memoryview | str]) -> None:
    """A file of these parts, text in UTF-8, which appears whole.  Errors: OSError; nothing is left behind
    then.
    """
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name[:200]}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb", buffering=0) as file:
            for part in parts:
                write_all(file.fileno(), part.encode() if isinstance(part, str) else part)
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise


def write_all(file: int, part: bytes | memoryview) -> None:
    """All of `part` to a descriptor, whatever the system takes at once.  Errors: OSError."""
    view = memoryview(part)
    while len(view):
        view = view[os.write(file, view) :]
