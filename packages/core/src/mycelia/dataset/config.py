"""Settings of the dataset pipeline."""

from __future__ import annotations

import numpy as np

from mycelia import errors

_state: dict = {"seed": None, "num_parallel_workers": 8, "prefetch_size": 16}


def _positive(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise errors.type_error(f"dataset.config.set_{name}", f"{name} must be an int, but got {value!r}")
    if value < 1:
        raise errors.value_error(f"dataset.config.set_{name}", f"{name} must be positive, but got {value}")
    return value


def set_seed(seed: int) -> None:
    """Seed of shuffles and random transforms."""
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise errors.type_error("dataset.config.set_seed", f"seed must be an int, but got {seed!r}")
    if not 0 <= seed < 2**32:
        raise errors.value_error("dataset.config.set_seed", f"seed must be in [0, 2**32), but got {seed}")
    _state["seed"] = seed


def get_seed() -> int | None:
    """The seed given to `set_seed`, or to `mycelia.set_seed`, or None."""
    if _state["seed"] is not None:
        return _state["seed"]
    from mycelia.config import get_seed as global_seed

    return global_seed()


def set_num_parallel_workers(num: int) -> None:
    """Workers per operation."""
    _state["num_parallel_workers"] = _positive("num_parallel_workers", num)


def get_num_parallel_workers() -> int:
    """Workers per operation."""
    return _state["num_parallel_workers"]


def set_prefetch_size(size: int) -> None:
    """Rows an operation may run ahead."""
    _state["prefetch_size"] = _positive("prefetch_size", size)


def get_prefetch_size() -> int:
    """Rows an operation may run ahead."""
    return _state["prefetch_size"]


def generator(epoch: int, salt: int) -> np.random.Generator:
    """Random numbers of one operation in one epoch: the same for the same seed."""
    seed = get_seed()
    return np.random.default_rng(None if seed is None else (seed, epoch, salt))
