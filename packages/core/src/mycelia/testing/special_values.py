"""NaN, infinities, signed zeros, subnormal, huge and tiny numbers at random places of arrays."""

from __future__ import annotations

import numpy as np

SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40, -1e-40, 1e-30, 1e30, -1e30)
MODES = ("ends", "whole", "scattered", "row", "nan", "infinity")


def plant(value, rng: np.random.Generator, mode: str):
    """A copy of an array (or a list of them) with special values; only floating arrays change.

    `mode`: at both "ends" and one place between, the "whole" array one value, "scattered" over a sixth of it,
    one "row" of the first axis, or a single "nan" or "infinity".
    """
    if isinstance(value, (list, tuple)):
        return type(value)(plant(v, rng, mode) for v in value)
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f" or not value.size:
        return value
    planted = value.copy()
    flat, size = planted.reshape(-1), planted.size
    with np.errstate(over="ignore"):
        if mode == "whole":
            flat[:] = rng.choice(SPECIAL)
        elif mode == "row" and value.ndim:
            planted[rng.integers(len(planted))] = rng.choice(SPECIAL)
        elif mode in ("nan", "infinity"):
            flat[rng.integers(size)] = np.nan if mode == "nan" else rng.choice((np.inf, -np.inf))
        else:
            places = (
                {0, size - 1, int(rng.integers(size))}
                if mode != "scattered"
                else rng.integers(size, size=size // 6 + 1)
            )
            for place in places:
                flat[place] = rng.choice(SPECIAL)
    return planted


def pattern(array: np.ndarray) -> np.ndarray:
    """0 for what is finite, 1 and 2 for the infinities, 3 for NaN; other numbers as they are."""
    if array.dtype.kind == "c":
        return np.stack([pattern(array.real), pattern(array.imag)])
    if array.dtype.kind != "f":
        return array
    return np.select([np.isposinf(array), np.isneginf(array), np.isnan(array)], [1, 2, 3], 0)


def assert_same_pattern(found: np.ndarray, expected: np.ndarray, what: str = "") -> None:
    """Raises AssertionError that names the first place where only one is NaN or infinite."""
    assert found.shape == expected.shape, f"{what}: shape {found.shape}, expected {expected.shape}"
    differ = pattern(found) != pattern(expected)
    if differ.any():
        place = tuple(int(i) for i in np.argwhere(differ)[0])[-found.ndim or differ.ndim :]
        raise AssertionError(
            f"{what}: {differ.sum()} of {differ.size} elements, first at {place}: "
            f"{found[place]} instead of {expected[place]}"
        )
