"""Runs of a folder for a command: read to the end, their columns in a temporary place."""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Iterator

from mycelia_insight.runs.library import Library


@contextlib.contextmanager
def opened(folder: str) -> Iterator[Library]:
    """All runs below a folder, read once."""
    with tempfile.TemporaryDirectory(prefix="mycelia-insight-") as workspace:
        library = Library(folder, workspace)
        library.look()
        while library.read():
            pass
        yield library


def pattern(text: str, what: str) -> re.Pattern[str]:
    """A regular expression that is looked for anywhere in names.  Errors: ValueError, `what` in it."""
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{what} must be a regular expression, got {text[:80]!r}: {error}") from None
