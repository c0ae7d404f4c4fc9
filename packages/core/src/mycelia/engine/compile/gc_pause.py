"""Python's collector of cycles rests while a graph is captured and compiled.

A capture makes hundreds of thousands of objects that live on, which the collector would look at again and
again: a fifth of the time.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_paused() -> Iterator[None]:
    """No collection by itself inside; who switched it off keeps it off."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
