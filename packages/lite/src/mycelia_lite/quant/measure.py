"""What models compute for calibration data: ranges, and how integers depart from the numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from mycelia_lite import running
from mycelia_lite.format import Table
from mycelia_lite.quant.calibration import Data, samples
from mycelia_lite.quant.ranges import Grid, Range


def exposed(model: Table, tensors: Sequence[int]) -> Table:
    """A copy whose outputs are these tensors."""
    made = model.copy()
    made.outputIndex = list(tensors)
    if made.subGraph:
        made.subGraph[0].outputIndices = list(tensors)
    return made


def values(
    model: Table, tensors: Sequence[int], data: Data, most: int | None = None
) -> Iterator[list[np.ndarray]]:
    """The elements of tensors, run by run, of at most `most` runs. Errors: ValueError for unfit data."""
    loaded = running.loaded(exposed(model, tensors))
    for arrays in islice(samples(data, loaded), most):
        try:
            yield running.answers(loaded, arrays)
        except RuntimeError as error:
            raise ValueError(f"calibration: the model does not run on the data: {error}") from error


def ranges(model: Table, tensors: Sequence[int], data: Data, method: str) -> dict[int, Range]:
    """Of each tensor that is float32. Errors: ValueError for unfit data, and numbers that are not finite."""
    found: dict[int, Range] = {}
    for arrays in values(model, tensors, data):
        for tensor, array in zip(tensors, arrays, strict=True):
            if array.dtype != np.float32:
                continue
            try:
                found.setdefault(tensor, Range()).see(array)
            except ValueError as error:
                name = model.allTensors[tensor].name
                raise ValueError(f"calibration: '{name}' has elements that are {error}") from error
    if method != "MAX_MIN":
        for arrays in values(model, tensors, data):
            for tensor, array in zip(tensors, arrays, strict=True):
                if tensor in found:
                    found[tensor].count(array)
    return found


@dataclass
class Departure:
    """How a tensor's integers depart from its numbers: sums over all elements of all runs."""

    dot: float = 0.0
    squares: float = 0.0
    others: float = 0.0
    off: float = 0.0
    clipped: int = 0
    count: int = 0

    def see(self, numbers: np.ndarray, others: np.ndarray, grid: Grid | None = None) -> None:
        """Add the elements of a run; beyond the grid they are clipped."""
        a, b = numbers.astype(np.float64).ravel(), others.astype(np.float64).ravel()
        self.dot += float(a @ b)
        self.squares += float(a @ a)
        self.others += float(b @ b)
        self.off += float(np.square(a - b).sum())
        self.count += a.size
        if grid is not None:
            low, high = grid.limits
            half = grid.scale / 2
            self.clipped += int(np.count_nonzero((a < low - half) | (a > high + half)))

    @property
    def cosine(self) -> float:
        """Between numbers and integers; 1 if both are 0."""
        if not self.squares or not self.others:
            return float(self.squares == self.others)
        return self.dot / float(np.sqrt(self.squares) * np.sqrt(self.others))

    @property
    def error(self) -> float:
        """Root of the mean square, relative to the numbers'."""
        return float(np.sqrt(self.off / self.squares)) if self.squares else float(self.off > 0)

    @property
    def clip_rate(self) -> float:
        """Share of the numbers beyond the grid."""
        return self.clipped / self.count if self.count else 0.0


def pairs(
    numbers: Table,
    integers: Table,
    places: Mapping[int, int],
    grids: Mapping[int, Grid],
    data: Data,
    most: int,
) -> Iterator[dict[int, tuple[np.ndarray, np.ndarray]]]:
    """Run by run, for tensors of `numbers` what they are there and in `integers`, both float32.

    places: the tensor in `integers` by that in `numbers`.
    """
    tensors = list(places)
    runs = zip(
        values(numbers, tensors, data, most),
        values(integers, [places[t] for t in tensors], data, most),
        strict=True,
    )
    for first, second in runs:
        yield {
            t: (a, grids[t].numbers(b) if b.dtype == np.int8 else b)
            for t, a, b in zip(tensors, first, second, strict=True)
        }
