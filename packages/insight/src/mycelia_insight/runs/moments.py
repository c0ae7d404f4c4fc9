"""Times of files as people read them."""

from __future__ import annotations

import datetime


def when(seconds: float) -> str:
    """A time, in seconds since 1970, in the zone of this machine."""
    try:
        return datetime.datetime.fromtimestamp(seconds).isoformat(" ", "seconds")
    except (ValueError, OverflowError, OSError):
        return "a time that no calendar has"
