"""Comparing two dumps: a row for each tensor, and where they part first."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from mycelia.debug.dump import files
from mycelia.debug.precision import measures
from mycelia.debug.precision.matching import BY_NAME, Names, Pair, pairs
from mycelia.debug.precision.sums import Sums, alike_kinds, extremes, flat, sums
from mycelia.debug.reading.folders import Dump
from mycelia.debug.reading.ir import SourceLine, read_graphs
from mycelia.debug.reading.statistic_files import shape_of
from mycelia.debug.statistics import Statistics
from mycelia.engine.base import errors

HEAD = ("Index", "LeftOp", "RightOp", "TensorIndex", "Shape", "DataType(L)", "DataType(R)", "OverFlow")
FAIL = "CompareFailReason"
ALIKE = 0.98  # cosine similarity from which tensors are alike, unless another is given


@dataclass(slots=True)
class Row:
    """A compared tensor. `values`: by column, empty if it could not be compared for `reason`."""

    index: int
    pair: Pair
    iteration: int
    shape: tuple[int, ...]
    dtypes: tuple[str, str]
    overflow: str
    values: dict[str, float | str] = field(default_factory=dict)
    reason: str = ""
    alike: bool = False

    @property
    def cosine(self) -> float:
        """NaN if there is none."""
        return float(self.values.get("CosineSimilarity", math.nan))

    def cells(self, columns: tuple[str, ...]) -> list[str]:
        """As the CSV has them; numbers with 6 decimals."""
        right = self.pair.right
        head = [
            str(self.index), self.pair.left.name, "" if right is None else right.name, self.pair.label,
            "[" + ",".join(map(str, self.shape)) + "]", *self.dtypes, self.overflow,
        ]  # fmt: skip
        return [*head, *(_cell(self.values.get(c, math.nan)) for c in columns), self.reason]


def _cell(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return "NaN" if math.isnan(value) else f"{value:.6f}" if math.isfinite(value) else str(value)


@dataclass(slots=True)
class Divergence:
    """The first operator, in order of execution, with inputs alike and an output that is not."""

    operator: str
    kind: str
    iteration: int
    slot: int
    cosine: float
    stack: tuple[SourceLine, ...]


class Comparison:
    """Two dumps side by side; `rows` reads them tensor by tensor, so memory does not grow with them.

    `graph`: one graph alone; `by`: "name", or "order" for references of other frameworks; `names`: a map of
    names; `threshold`: the cosine similarity from which tensors are alike.
    """

    def __init__(
        self, left: Dump, right: Dump, *, graph: int | None = None, by: str = BY_NAME,
        names: Names | None = None, strict: bool = False, threshold: float = ALIKE,
    ) -> None:  # fmt: skip
        self.left, self.right, self.graph, self.by, self.names = left, right, graph, by, names
        self.strict, self.threshold = strict, threshold
        self.columns = (*measures.COLUMNS, *(measures.STRICT_COLUMNS if strict else ()))
        self.divergence: Divergence | None = None
        self.growth: list[tuple[str, float]] = []  # relative distance of each first output, in order
        self.unlike = self.compared = 0
        self._inputs: dict[tuple[int, str], bool] = {}

    def rows(self) -> Iterator[Row]:
        """A row for each tensor of `left`; `divergence` and `growth` are known at the end."""
        index = 0
        for step, pair in pairs(self.left, self.right, self.graph, self.by, self.names):
            row = _row(index, pair, step.iteration, self.strict, self.threshold)
            index += 1
            self._note(row, step.rank, step.graph)
            yield row

    def _note(self, row: Row, rank: int, graph: int) -> None:
        record, alike = row.pair.left, row.alike
        if row.values:
            self.compared += 1
            self.unlike += not alike
        key = row.iteration, record.name
        if record.io == "input":
            self._inputs[key] = self._inputs.get(key, True) and (alike or not row.values)
            return
        if record.slot == 0 and row.values:
            self.growth.append((record.name, float(row.values["RelativeEuclideanDistance"])))
        if self.divergence is None and row.values and not alike and self._inputs.get(key, True):
            node = next(
                (n for n in read_graphs(self.left.ranks[rank]).get(graph, {}).values()
                 if files.op_name(n.name) == record.name or n.name == record.name),
                None,
            )  # fmt: skip
            stack = tuple(node.stack) if node else ()
            self.divergence = Divergence(
                node.name if node else record.name, record.kind, row.iteration, record.slot, row.cosine, stack
            )

    def write(self, file: IO[str]) -> None:
        """All rows as CSV."""
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*HEAD, *self.columns, FAIL])
        for row in self.rows():
            writer.writerow(row.cells(self.columns))


def alike(left: np.ndarray, right: np.ndarray, threshold: float) -> bool:
    """Whether two arrays of one size say the same: not finite at the same places, and the rest within the
    angle of which `threshold` is the cosine, in direction and in size, which a cosine alone does not see.
    """
    x, y = (measures.wide(v) for v in alike_kinds(left, right))
    if not measures.same_pattern(x, y):
        return False
    finite = np.isfinite(y)
    return _near(sums(x[finite], y[finite]), threshold)


def _near(s: Sums, threshold: float) -> bool:
    if not s.max_error:
        return True
    cosine = float(measures.COLUMNS["CosineSimilarity"](s))
    return s.distance <= s.norm * math.sqrt(2 - 2 * threshold) and cosine >= threshold


def _row(index: int, pair: Pair, iteration: int, strict: bool, threshold: float) -> Row:
    left = pair.left.array(mapped=True)
    right = None if pair.right is None else pair.right.array(mapped=True)
    shape = left.shape if left is not None else shape_of(pair.left.row or {})
    dtypes = _dtype(left, pair.left.row), _dtype(right, pair.right.row if pair.right else None)
    numbers = pair.left.statistics() if left is None else None
    row = Row(index, pair, iteration, shape, dtypes, _overflow(left, numbers))
    if pair.right is None:
        row.reason = "No bench data matched."
    elif left is None or right is None:
        row.reason = _of_statistics(row)
    elif left.size != right.size:
        row.reason = "shape unmatched"
    else:
        found = measures.measure(left, right, strict)
        row.values, row.reason = found.values, "; ".join(found.messages)
        is_finite = found.sums.nonfinite is None
        row.alike = _near(found.sums, threshold) if is_finite else alike(left, right, threshold)
    return row


def _of_statistics(row: Row) -> str:
    """Numbers of dumps of statistics alone: what they tell of the distance is in the reason."""
    assert row.pair.right is not None
    a, b = row.pair.left.statistics(), row.pair.right.statistics()
    if a is None or b is None:
        return "no data"
    parts = []
    for name, x, y in zip(("max", "min", "mean", "l2norm"), _four(a), _four(b)):
        relative = abs(x - y) / abs(y) if y else (0.0 if x == y else math.inf)
        parts.append(f"{name} diff {x - y:.6g} relative {relative:.6g}")
    return "statistics: " + ", ".join(parts)


def _four(s: Statistics) -> tuple[float, float, float, float]:
    return s.max, s.min, s.mean, s.l2norm


def _overflow(array: np.ndarray | None, numbers: Statistics | None) -> str:
    """YES for NaN or infinities among the tensor under test, NaN where nothing tells."""
    if array is not None:
        finite = array.dtype.kind not in "fc" or all(map(math.isfinite, extremes(flat(array))))
        return "NO" if finite else "YES"
    return "NaN" if numbers is None else "NO" if numbers.is_finite else "YES"


def _dtype(array: np.ndarray | None, row: dict[str, str] | None) -> str:
    return str(array.dtype) if array is not None else (row or {}).get("Data Type", "")


def save(comparison: Comparison, path: str | os.PathLike) -> None:
    """The table as a file that appears whole.  Errors: OSError."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.partial")
    try:
        with open(partial, "w", encoding="utf-8", newline="") as file:
            comparison.write(file)
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)


def read_table(path: str | os.PathLike, needed: Collection[str] = HEAD) -> list[dict[str, Any]]:
    """The rows of a saved table.  Errors: OSError; ValueError for a file that lacks columns that are needed,
    in its head or in a row.
    """
    try:
        with open(path, encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            rows = list(reader)
    except (UnicodeDecodeError, csv.Error) as cause:
        raise errors.value_error("table", f"{os.fspath(path)} is no CSV: {cause}") from None
    missing = [name for name in needed if name not in (reader.fieldnames or ())]
    if missing:
        raise errors.value_error("table", f"{os.fspath(path)} has no columns {', '.join(missing)}")
    for number, row in enumerate(rows, 2):
        if any(row[name] is None for name in needed):
            raise errors.value_error("table", f"{os.fspath(path)}: row {number} is cut off")
    return rows
