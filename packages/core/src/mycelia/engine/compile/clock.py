"""Seconds that this process spent on capturing and compiling."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_total = 0.0
_lock = threading.Lock()
_thread = threading.local()


def spent() -> float:
    """Seconds until now, of all threads together."""
    return _total


@contextmanager
def compiling() -> Iterator[None]:
    """The block counts; blocks inside of others count once."""
    global _total
    if getattr(_thread, "inside", False):
        yield
        return
    _thread.inside = True
    start = time.perf_counter()
    try:
        yield
    finally:
        _thread.inside = False
        with _lock:
            _total += time.perf_counter() - start
