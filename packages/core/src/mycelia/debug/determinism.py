"""Runs that can be repeated: one seed for everything that draws random numbers, and kernels whose results do
not depend on the order of threads.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

from mycelia.engine.base import config


def seed_all(seed: int) -> None:
    """Seed Python's `random`, NumPy's global generator, and all random ops, initializers and shuffles.

    Errors: TypeError, ValueError, as of `mycelia.set_seed`.
    """
    config.set_seed(seed)
    random.seed(seed)


@contextmanager
def deterministic(seed: int | None = None) -> Iterator[None]:
    """In this block the setting `deterministic` is on, and all is seeded by `seed` if one is given.

    Errors: as of `seed_all`.
    """
    with config.context(deterministic="ON"):
        if seed is not None:
            seed_all(seed)
        yield
