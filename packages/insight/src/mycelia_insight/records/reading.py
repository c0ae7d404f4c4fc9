"""The message of a value of a run, found by kind, tag and step."""

from __future__ import annotations

import threading

from mycelia_insight.records.wire import Broken
from mycelia_insight.runs.kinds import Kind
from mycelia_insight.runs.run import Entry, Run

MOST_BYTES = 64 << 20  # of one value that is decoded: 16 million float32

#: Held while values are decoded that may be large, so that memory does not grow with the number of requests.
turn = threading.BoundedSemaphore(2)


class Missing(LookupError):
    """No such tag, or no value of it at a step."""


def entries(run: Run, kind: Kind, tag: str) -> list[Entry]:
    """Values of a tag.  Errors: Missing."""
    found = run.entries(kind, tag)
    if not found:
        raise Missing(f"run {run.id!r} has no {kind.name.lower()} {tag!r}")
    return found


def at_step(found: list[Entry], step: int | None) -> Entry:
    """The last value at a step; of all if that is None.  Errors: Missing."""
    if step is None:
        return found[-1]
    for entry in reversed(found):
        if entry.step == step:
            return entry
    raise Missing(f"there is no value at step {step}")


def message(run: Run, entry: Entry, most: int = MOST_BYTES) -> bytes:
    """A value's message.  Errors: Broken, also if it has more than `most` bytes or its file has gone."""
    if entry.size > most:
        raise Broken(f"the value at step {entry.step} has {entry.size} bytes; at most {most} are read")
    try:
        return run.read(entry)
    except (OSError, ValueError) as error:
        raise Broken(f"the value at step {entry.step} cannot be read: {error}") from error


def spread(found: list[Entry], most: int) -> list[Entry]:
    """At most `most` values, evenly over all, the first and the last among them; of one the last."""
    if len(found) <= most:
        return found
    if most == 1:
        return found[-1:]
    return [found[i * (len(found) - 1) // (most - 1)] for i in range(most)]
