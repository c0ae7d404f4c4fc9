"""Helpers for building networks."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def no_init_parameters() -> Iterator[None]:
    """Taken for networks whose values come from a checkpoint: Parameters have values from the start here."""
    yield


__all__ = ["no_init_parameters"]
