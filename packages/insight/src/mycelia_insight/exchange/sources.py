"""Where runs are imported from: what all kinds of sources share."""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from mycelia_insight.exchange.export import Counts
from mycelia_insight.exchange.run_writer import RunWriter
from mycelia_insight.records.lineage import Value

Warn = Callable[[str], None]
_DEEPEST = 20  # levels of settings in settings
_LONGEST = 500  # characters of a parameter that is a text


@dataclass(frozen=True)
class Source:
    """A run that can be imported.

    name: the path that it gets below the output; seconds: when it began, since 1970; write: hands its values
    over and counts them; what cannot be read is warned of.
    """

    name: str
    seconds: float
    write: Callable[[RunWriter, Counts, Warn], None]


def opened_file(path: str) -> BinaryIO:
    """A file to be read.  Errors: OSError, also for links and what is no plain file: pipes do not end."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(None, "it is no plain file", path)
    return os.fdopen(handle, "rb")


def files(folder: str) -> Iterator[str]:
    """Paths of the files below a folder, relative to it, sorted; links are not followed."""
    for place, below, names in os.walk(folder):
        below.sort()
        for name in sorted(names):
            yield os.path.relpath(os.path.join(place, name), folder)


def readable(*parts: str) -> str:
    """A name of a folder of others' texts: letters, digits, spaces and `.+=@,()-`; never hidden or long."""
    text = "-".join(part for part in parts if part)
    return re.sub(r"[^\w .+=@,()-]", "_", text, flags=re.ASCII).strip(". ")[:100] or "run"


def flattened(settings: Any, name: str = "", level: int = 0) -> Iterator[tuple[str, Value]]:
    """Names and values of settings in settings: `{"a": {"b": 1}}` is `a.b`; lists are texts."""
    if isinstance(settings, dict) and level < _DEEPEST:
        for key, value in settings.items():
            yield from flattened(value, f"{name}.{key}" if name else str(key), level + 1)
    elif isinstance(settings, (str, int, float)):
        yield name, settings[:_LONGEST] if isinstance(settings, str) else settings
    elif settings is not None:
        yield name, str(settings)[:_LONGEST]


def number(value: Any) -> float | None:
    """A number, also one of the words for what is not finite; None for others."""
    if isinstance(value, str):
        return {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}.get(value)
    if not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
