"""Comparing two dumps: a row for each tensor, and where they part first."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from mycelia.debug.precision import measures
from mycelia.debug.precision.across import OTHER
from mycelia.debug.precision.matching import BY_NAME, Names, Pair, pairs
from mycelia.debug.precision.sums import Sums, alike_kinds, extremes, flat, sums
from mycelia.debug.reading.folders import Dump, Record, short_name
from mycelia.debug.reading.ir import GraphNode, SourceLine, read_graphs
from mycelia.debug.statistics import Statistics
from mycelia.engine.base import errors

HEAD = ("Index", "LeftOp", "RightOp", "TensorIndex", "Shape", "DataType(L)", "DataType(R)", "OverFlow")
FAIL = "CompareFailReason"
ALIKE = 0.98  # cosine similarity from which tensors are alike, unless another is given


@dataclass(slots=True)
class Row:
    """A tensor and its reference. `values`: by column, empty if there are none for `reason`; `known`: whether
    it is known to be `alike` or not, by its elements, shape or statistics.
    """

    index: int
    pair: Pair
    iteration: int
    shape: tuple[int, ...]
    dtypes: tuple[str, str]
    overflow: str
    values: dict[str, float | str] = field(default_factory=dict)
    reason: str = ""
    alike: bool = False
    known: bool = False
    rank: int = 0

    @property
    def differs(self) -> bool:
        """Whether it is known not to be alike."""
        return self.known and not self.alike

    @property
    def why(self) -> str:
        """What says that it is not alike."""
        if not self.values:
            return self.reason
        cosine = float(self.values["CosineSimilarity"])
        distance = float(self.values["RelativeEuclideanDistance"])
        return f"cosine {cosine:.6f}" + (f", relative distance {distance:.6f}" if cosine >= ALIKE else "")

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
    """What departs first, in order of execution: an output of an operator whose inputs are alike, or an input
    (`io`) that no operator made which was compared; `maker` is that operator where the graph tells, "" for
    constants of the code. `why`: what says that it is not alike.
    """

    operator: str
    kind: str
    iteration: int
    io: str
    slot: int
    why: str
    stack: tuple[SourceLine, ...]
    maker: str = ""

    @property
    def lines(self) -> list[str]:
        """For people: where it is, what made an input, the lines of the code."""
        found = [f"iteration {self.iteration}, {self.io} {self.slot}, {self.why}"]
        if self.io == "input":
            made = f"made by {self.maker}" if self.maker else "a constant"
            found.append(f"what it reads is {made}, which was not compared")
        return [*found, *map(str, self.stack)]


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
        self.unlike = self.compared = self.unmatched = 0
        self.unlike_rows: set[int] = set()
        # By rank, graph, iteration and operator: whether all that it read, or made, is alike, if known.
        self._inputs: dict[tuple[int, int, int, str], bool] = {}
        self._made: dict[tuple[int, int, int, str], bool] = {}
        self._nodes: dict[tuple[int, int], dict[str, GraphNode]] = {}  # of graphs, by all their names

    def rows(self) -> Iterator[Row]:
        """A row for each tensor of `left`; `divergence` and `growth` are known at the end."""
        index = 0
        for step, pair in pairs(self.left, self.right, self.graph, self.by, self.names):
            row = _best(_row(index, pair, step.iteration, self.strict, self.threshold), self)
            row.rank = step.rank
            index += 1
            if row.differs and self._is_elsewhere(row, step.graph):
                row.values, row.reason, row.known = {}, OTHER, False
            self._note(row, step.rank, step.graph)
            yield row

    def _note(self, row: Row, rank: int, graph: int) -> None:
        record, is_first = row.pair.left, not self.unlike
        self.unmatched += row.pair.right is None
        if row.known:
            self.compared += 1
            self.unlike += row.differs
        if row.differs:
            self.unlike_rows.add(row.index)
        if row.values and (record.io, record.slot) == ("output", 0):
            self.growth.append((record.name, float(row.values["RelativeEuclideanDistance"])))
        key = rank, graph, row.iteration, record.name
        if row.pair.io == "input":
            self._inputs[key] = self._inputs.get(key, True) and not row.differs
        elif record.kind != "Parameter":  # what a step made of a Parameter follows from what it read
            is_first = self._inputs.get(key, True)
        if row.pair.io == "output" and row.known:
            self._made[key] = self._made.get(key, True) and row.alike
        if self.divergence is None and row.differs and is_first:
            self.divergence = self._divergence(row, rank, graph)

    def _is_elsewhere(self, row: Row, graph: int) -> bool:
        """Whether an input that differs was made by an operator that makes what is alike: MindSpore's
        operator reads something else there.
        """
        if not row.pair.across or row.pair.io == "output":
            return False
        _, maker = self._source(row.pair.left, row.rank, graph)
        keys = [(row.rank, graph, row.iteration, name) for name in short_name(maker) | {maker}]
        return any(self._made.get(key, False) for key in keys)

    def _source(self, record: Record, rank: int, graph: int) -> tuple[GraphNode | None, str]:
        """The node of a tensor's operator, and of an input the name of what made it, "" if unknown."""
        if (rank, graph) not in self._nodes:
            nodes = read_graphs(self.left.ranks[rank]).get(graph, {}).values()
            self._nodes[rank, graph] = {name: n for n in nodes for name in short_name(n.name) | {n.name}}
        node = self._nodes[rank, graph].get(record.name)
        if node is None or record.io == "output" or record.slot >= len(node.inputs):
            return node, ""
        return node, node.inputs[record.slot]

    def _divergence(self, row: Row, rank: int, graph: int) -> Divergence:
        record = row.pair.left
        node, maker = self._source(record, rank, graph)
        return Divergence(
            node.name if node else record.name, record.kind, row.iteration, row.pair.io, record.slot, row.why,
            tuple(node.stack) if node else (), maker,
        )  # fmt: skip

    def write(self, file: IO[str], each: Callable[[Row], None] | None = None) -> None:
        """All rows as CSV; `each` is called with each of them."""
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*HEAD, *self.columns, FAIL])
        for row in self.rows():
            writer.writerow(row.cells(self.columns))
            if each is not None:
                each(row)


def alike(left: np.ndarray, right: np.ndarray, threshold: float) -> bool:
    """Whether two arrays of one size say the same: not finite at the same places, and the rest within the
    angle of which `threshold` is the cosine, in direction and in size, which a cosine alone does not see;
    equal if that is 1.
    """
    x, y = (measures.wide(v) for v in alike_kinds(left, right))
    if not measures.same_pattern(x, y):
        return False
    finite = np.isfinite(y)
    return _near(sums(x[finite], y[finite]), threshold)


def _near(s: Sums, threshold: float) -> bool:
    if not s.max_error or threshold >= 1:
        return not s.max_error
    cosine = float(measures.COLUMNS["CosineSimilarity"](s))
    return s.distance <= s.norm * math.sqrt(2 - 2 * threshold) and cosine >= threshold


def _best(row: Row, of: Comparison) -> Row:
    """`row`, or where its tensors differ that of another one that is alike."""
    for other in row.pair.others if row.differs else ():
        pair = Pair(row.pair.left, other)
        found = _row(row.index, pair, row.iteration, of.strict, of.threshold)
        if found.alike:
            return found
    return row


def _row(index: int, pair: Pair, iteration: int, strict: bool, threshold: float) -> Row:
    left = pair.left.array(mapped=True)
    right = None if pair.right is None else pair.right.array(mapped=True)
    shape = left.shape if left is not None else pair.left.shape()
    dtypes = _dtype(left, pair.left.row), _dtype(right, pair.right.row if pair.right else None)
    numbers = pair.left.statistics() if left is None else None
    row = Row(index, pair, iteration, shape, dtypes, _overflow(left, numbers))
    if pair.right is None:
        row.reason = pair.why
    elif left is None or right is None:
        _compare_statistics(row, threshold)
    elif left.size != right.size:
        row.reason, row.known = "shape unmatched", True
    else:
        found = measures.measure(left, right, strict)
        row.values, row.reason = found.values, "; ".join(found.messages)
        is_finite = found.sums.nonfinite is None
        row.known = True
        row.alike = _near(found.sums, threshold) if is_finite else alike(left, right, threshold)
    return row


def _compare_statistics(row: Row, threshold: float) -> None:
    """Where there are statistics alone. What they tell of the distance is in the reason; extremes, means and
    norms differ by no more than the tensors are apart, so that those which do are of tensors not alike.
    """
    assert row.pair.right is not None
    a, b = row.pair.left.statistics(), row.pair.right.statistics()
    if a is None or b is None:
        row.reason = "no data"
        return
    parts, apart = [], 0.0
    for name, x, y in zip(("max", "min", "mean", "l2norm"), four(a), four(b)):
        relative = abs(x - y) / abs(y) if y else (0.0 if x == y else math.inf)
        parts.append(f"{name} diff {x - y:.6g} relative {relative:.6g}")
        weight = math.sqrt(b.count) if name == "mean" else 1.0
        apart = max(apart, weight * abs(x - y) if math.isfinite(x - y) else 0.0)
    row.reason = "statistics: " + ", ".join(parts)
    row.known = math.isfinite(b.l2norm) and a.count == b.count
    counts = [(s.nan, s.negative_inf, s.positive_inf) for s in (a, b)]
    row.alike = counts[0] == counts[1] and apart <= b.l2norm * math.sqrt(2 - 2 * threshold)


def four(s: Statistics) -> tuple[float, float, float, float]:
    """Maximum, minimum, mean, and Euclidean norm."""
    return s.max, s.min, s.mean, s.l2norm


def _overflow(array: np.ndarray | None, numbers: Statistics | None) -> str:
    """YES for NaN or infinities among the tensor under test, NaN where nothing tells."""
    if array is not None:
        finite = array.dtype.kind not in "fc" or all(map(math.isfinite, extremes(flat(array))))
        return "NO" if finite else "YES"
    return "NaN" if numbers is None else "NO" if numbers.is_finite else "YES"


def _dtype(array: np.ndarray | None, row: dict[str, str] | None) -> str:
    return str(array.dtype) if array is not None else (row or {}).get("Data Type", "")


def save(comparison: Comparison, path: str | os.PathLike, each: Callable[[Row], None] | None = None) -> None:
    """The table as a file that appears whole; `each` is called with each row.  Errors: OSError."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.partial")
    try:
        with open(partial, "w", encoding="utf-8", newline="") as file:
            comparison.write(file, each)
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
