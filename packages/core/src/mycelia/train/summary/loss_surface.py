"""Planes through trained weights, and what of a training's path lies in them: NumPy alone.

Source: Li et al. 2018, "Visualizing the Loss Landscape of Neural Nets", sections 4 (directions that are as
long as the weights) and 7 (the principal axes of a path).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

_MARGIN = 0.2  # of the path's extent, at each side: it does not touch the edge
_RADIUS = 1.0  # of a plane without a path; 1 changes each parameter by as much as its own norm

Weights = Mapping[str, np.ndarray]


def moving(weights: Weights) -> list[str]:
    """Names of the parameters that a plane moves: weights and biases, as MindSpore has it.

    Other names, and the moments of optimizers, stay what they are. If none is so called all of floating dtype
    move.
    """
    named = [n for n in weights if ("weight" in n or "bias" in n) and "moment" not in n]
    return named or [n for n, value in weights.items() if value.dtype.kind == "f" and "moment" not in n]


@dataclass(frozen=True)
class Plane:
    """Weights `center + x * first + y * second`; the directions have float32 arrays of what moves."""

    center: Weights
    first: Weights
    second: Weights

    def at(self, x: float, y: float) -> dict[str, np.ndarray]:
        """All parameters at a point."""
        return {
            name: (value + x * self.first[name] + y * self.second[name]).astype(value.dtype)
            if name in self.first
            else value
            for name, value in self.center.items()
        }

    def project(self, weights: Weights) -> np.ndarray:
        """(x, y) of the point of the plane that is nearest to `weights`."""
        names = list(self.first)
        axes = np.stack([_flat(self.first, names), _flat(self.second, names)], 1)
        away = _flat(weights, names) - _flat(self.center, names)
        return np.linalg.lstsq(axes, away, rcond=None)[0]


def principal_plane(points: Sequence[Weights]) -> Plane:
    """The plane through the last of at least three points, along the two principal axes of the ways to it."""
    last = points[-1]
    names = moving(last)
    center = _flat(last, names)
    ways = np.stack([_flat(point, names) - center for point in points[:-1]], 1)
    ways -= ways.mean(axis=0)
    axes, lengths, _ = np.linalg.svd(ways, full_matrices=False)
    axes = axes[:, :2]
    # The sign is free: the element with the greatest magnitude is positive.
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), [0, 1]])
    first, second = (axes * np.maximum(lengths[:2], 1e-19)).T  # a path on a line has one axis alone
    return _plane(last, names, first, second)


def random_plane(center: Weights, generator: np.random.Generator) -> Plane:
    """The plane through a point along two directions that are drawn from a normal distribution."""
    names = moving(center)
    size = sum(center[name].size for name in names)
    return _plane(center, names, generator.standard_normal(size), generator.standard_normal(size))


def grid_of_path(path: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Places [size] along both axes that hold a path [n, 2]."""
    low, high = path.min(axis=0), path.max(axis=0)
    margin = _MARGIN * (high - low)
    x, y = (np.linspace(low[i] - margin[i], high[i] + margin[i], size, dtype=np.float64) for i in (0, 1))
    return x, y


def grid_around(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Places [size] along both axes of a plane without a path."""
    axis = np.linspace(-_RADIUS, _RADIUS, size)
    return axis, axis.copy()


def _plane(center: Weights, names: list[str], first: np.ndarray, second: np.ndarray) -> Plane:
    return Plane(center, _as_long(center, names, first), _as_long(center, names, second))


def _as_long(center: Weights, names: list[str], direction: np.ndarray) -> dict[str, np.ndarray]:
    """Parts of a direction, each as long as its parameter; zeros where it has no length."""
    parts, at = {}, 0
    for name in names:
        value = center[name]
        part = direction[at : at + value.size].reshape(value.shape).astype(np.float32)
        at += value.size
        length = np.linalg.norm(part)
        parts[name] = part * np.float32(np.linalg.norm(value) / length if length > 0 else 0.0)
    return parts


def _flat(weights: Weights, names: list[str]) -> np.ndarray:
    return np.concatenate([np.asarray(weights[name], np.float64).ravel() for name in names])
