"""Small JSON files in the workspace, which are replaced as a whole."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from typing import Any


def place_of(workspace: str, kind: str, folder: str) -> str:
    """The file of a kind that belongs to a folder, whatever links lead to that."""
    digest = hashlib.sha256(os.fsencode(os.path.realpath(folder))).hexdigest()[:32]
    return os.path.join(workspace, kind, f"{digest}.json")


def read(path: str) -> Any:
    """What a file holds.  Errors: OSError; ValueError: someone else's hand, halves are never there."""
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def write(path: str, value: Any) -> None:
    """Errors: OSError; what was there before stays then."""
    folder = os.path.dirname(path)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=folder, suffix=".new")
    try:
        with open(handle, "w", encoding="utf-8") as file:
            json.dump(value, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
