"""Random numbers with seeds, as TensorFlow Lite draws them in its first run."""

from __future__ import annotations

import math

import numpy as np

from mycelia_lite.converter.meanings.table import meaning


def _uniform(shape: np.ndarray, seed: int, seed2: int) -> np.ndarray:
    """Numbers from [0, 1) by the lower 23 bits of each word."""
    from mycelia_lite.converter.importers.tflite.bit_generator import philox

    if not seed and not seed2:
        raise NotImplementedError("random numbers without a seed are others in each run")
    count = math.prod(map(int, shape))
    words = philox(np.uint64(seed % 2**64), np.uint64(seed2 % 2**64), -(-count // 4) * 4)
    return ((words & 0x7FFFFF) / 2.0**23).astype(np.float32)


def _shaped(numbers: np.ndarray, shape: np.ndarray) -> np.ndarray:
    shape = tuple(map(int, shape))
    return numbers[: math.prod(shape)].reshape(shape)


@meaning("UniformReal")
def uniform(shape, *, seed, seed2):
    return _shaped(_uniform(shape, seed, seed2), shape)


@meaning("RandomStandardNormal")
def normal(shape, *, seed, seed2):
    """Two of each two uniform ones (Box and Muller 1958)."""
    numbers = _uniform(shape, seed, seed2).reshape(-1, 2)
    radius = np.sqrt(-2 * np.log(np.maximum(numbers[:, 0], np.float32(1e-7))))
    angle = np.float32(2 * math.pi) * numbers[:, 1]
    return _shaped(np.stack((radius * np.sin(angle), radius * np.cos(angle)), 1).reshape(-1), shape)
