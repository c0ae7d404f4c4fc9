"""Loss landscapes: the loss on a grid in a plane of weights, and the way that a training took over it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mycelia_insight.records import tensors
from mycelia_insight.records.wire import BYTES, VARINT, Broken, fields, signed, varints
from mycelia_insight.runs.kinds import Dialect

_MOST_SIDE = 4096  # places along an axis


@dataclass(frozen=True)
class About:
    """What there is to know of a landscape without its points.

    steps: of the path, none for a landscape around the trained weights; they count `unit`s, steps or epochs.
    """

    steps: list[int]
    decomposition: str
    unit: str
    steps_per_epoch: int

    @property
    def is_final(self) -> bool:
        """Whether it lies around the trained weights, and has no path."""
        return not self.steps


@dataclass(frozen=True)
class Points:
    """Coordinates, and losses: of a grid x [n], y [m], z [m, n]; of a path and of a point [n] each."""

    x: np.ndarray
    y: np.ndarray
    z: np.ndarray


@dataclass(frozen=True)
class Landscape:
    """A grid, the path if there is one, and where the trained weights are."""

    about: About
    grid: Points
    path: Points | None
    end: Points | None


def about(message: bytes) -> About:
    """What a message says in front and behind of its points.  Errors: Broken."""
    steps: list[int] = []
    found = {1: "", 2: "", 3: 0}
    for number, kind, value in fields(message):
        if number == 2 and kind == BYTES:
            steps += _steps(value)
        elif number == 3 and kind == BYTES:
            for part, part_kind, content in fields(value):
                if part in (1, 2) and part_kind == BYTES:
                    found[part] = bytes(content).decode("utf-8", "backslashreplace")
                elif part == 3 and part_kind == VARINT:
                    found[3] = signed(content)
    return About(steps, found[1], found[2], found[3])


def decode(message: bytes) -> Landscape:
    """A whole landscape.  Errors: Broken."""
    grid = path = end = None
    said = about(message)
    for number, kind, value in fields(message):
        if kind != BYTES:
            continue
        if number == 1:
            grid = _points(value)
        elif number == 2:
            path = next((_points(content) for part, _, content in fields(value) if part == 2), None)
        elif number == 4:
            end = _points(value)
    if grid is None:
        raise Broken("a landscape has no grid")
    wanted = (grid.y.size, grid.x.size)
    if grid.x.ndim != 1 or grid.y.ndim != 1 or grid.z.shape != wanted or 0 in wanted:
        raise Broken(f"a landscape of {grid.x.shape} by {grid.y.shape} has losses of {grid.z.shape}")
    if max(wanted) > _MOST_SIDE:
        raise Broken(f"a landscape of {wanted} places; at most {_MOST_SIDE} along an axis are read")
    if path is not None and not path.x.shape == path.y.shape == path.z.shape == (len(said.steps),):
        raise Broken(
            f"a path of {len(said.steps)} steps has {path.x.size}, {path.y.size}, {path.z.size} points"
        )
    if end is not None and not end.x.size == end.y.size == end.z.size == 1:
        end = None  # MindInsight takes such a point for the origin
    return Landscape(said, grid, path if said.steps else None, end)


def _steps(message: memoryview) -> list[int]:
    parts = [value for number, _, value in fields(message) if number == 1]
    return varints(parts).tolist()


def _points(message: memoryview | int) -> Points:
    axes = [np.empty(0, np.float32)] * 3
    for number, kind, value in fields(message):
        if 1 <= number <= 3 and kind == BYTES:
            axes[number - 1] = tensors.decode(value, Dialect.MINDSPORE).values
    return Points(*axes)
