"""What the commands print: statistics of one tensor, elements of two that differ, operators of a dump."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.table import Table

from mycelia.debug.precision import measures
from mycelia.debug.precision.sums import alike_kinds
from mycelia.debug.reading.arrays import read_array
from mycelia.debug.statistics import statistics
from mycelia.engine.base import errors


class Elements(NamedTuple):
    """The comparison of two arrays element by element; `wrong`: (index, left, right, difference) of each that
    is not within atol + rtol * abs(right).
    """

    count: int
    wrong: list[tuple[tuple[int, ...], float, float, float]]
    wrong_count: int
    cosine: float

    @property
    def all_close(self) -> bool:
        return not self.wrong_count

    @property
    def error_share(self) -> float:
        """The share of wrong elements, 0 to 1."""
        return self.wrong_count / self.count if self.count else 0.0


def load(path: Path) -> np.ndarray:
    """A ``.npy`` file; a raw ``.bin`` of the old rule by what its name says of type and shape.

    Errors: ValueError for a file that is neither.
    """
    return _raw(path) if path.suffix == ".bin" else read_array(path, "file")


def _raw(path: Path) -> np.ndarray:
    head, _, rest = path.stem.partition("_shape_")
    try:
        *sizes, dtype, _ = rest.split("_")
        shape = [int(d) for d in sizes if d]
        return np.fromfile(path, np.dtype(dtype.lower())).reshape(shape)
    except (TypeError, ValueError, OSError) as cause:
        raise errors.value_error(
            "file", f"{path} is no dump NAME_shape_D0_D1_Dtype_Format.bin ({head}): {cause}"
        ) from None


def compare_elements(
    left: np.ndarray, right: np.ndarray, atol: float = 0.001, rtol: float = 0.001, limit: int = 20
) -> Elements:
    """Errors: ValueError for other numbers of elements; `limit` wrong ones are kept."""
    if left.size != right.size:
        raise errors.value_error("cp", f"shapes {left.shape} and {right.shape} do not match")
    left, right = alike_kinds(left, right)
    x, y = measures.wide(left), measures.wide(right)
    with np.errstate(all="ignore"):
        close = np.abs(x - y) <= atol + rtol * np.abs(y)
    close |= (x == y) | (np.isnan(x) & np.isnan(y))
    places = np.flatnonzero(~close)
    shape = right.shape if x.size == right.size else (*right.shape, 2)  # real and imaginary parts
    wrong = [
        (tuple(int(i) for i in np.unravel_index(p, shape)), float(x[p]), float(y[p]), float(x[p] - y[p]))
        for p in places[:limit]
    ]
    with np.errstate(all="ignore"):
        cosine = measures.cosine(x, y) if np.isfinite(x).all() and np.isfinite(y).all() else math.nan
    return Elements(x.size, wrong, len(places), cosine)


def summary(array: np.ndarray, path: str) -> Iterator[tuple[str, str]]:
    """Shape, dtype, extremes, mean and path, as `pt` prints them."""
    numbers = statistics(array)
    yield "Shape", str(tuple(array.shape))
    yield "Dtype", str(array.dtype)
    for name, value in (("Max", numbers.max), ("Min", numbers.min), ("Mean", numbers.mean)):
        yield name, f"{value:.9g}"
    counts = {"NaN": numbers.nan, "Inf": numbers.positive_inf, "-Inf": numbers.negative_inf}
    if any(counts.values()):
        yield "Not finite", ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
    yield "Path", path


def element_table(found: Elements) -> Table:
    """The wrong elements that were kept."""
    table = Table("Index", "Left", "Right", "Diff", box=None, pad_edge=False)
    for index, x, y, difference in found.wrong:
        table.add_row(str(index), f"{x:.9g}", f"{y:.9g}", f"{difference:.6g}")
    return table


def first_table(left: np.ndarray, right: np.ndarray, limit: int) -> Table:
    """The first elements of both."""
    table = Table("Index", "Left", "Right", "Diff", box=None, pad_edge=False)
    x, y = (measures.wide(v) for v in alike_kinds(left, right))
    for i in range(min(limit, x.size)):
        table.add_row(str(i), f"{x[i]:.9g}", f"{y[i]:.9g}", f"{x[i] - y[i]:.6g}")
    return table


def text_of(array: np.ndarray) -> str:
    """All elements, a line for each row of the last axis."""
    if not array.size:
        return ""
    rows = array.reshape(-1, array.shape[-1]) if array.ndim else array.reshape(1, 1)
    return "\n".join(" ".join(str(v) for v in row) for row in rows) + "\n"
