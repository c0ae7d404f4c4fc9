"""Statistics of many tensors of a dump, in the forms of MindInsight's `DumpAnalyzer`."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mycelia.debug.dump import files
from mycelia.debug.reading.folders import Record
from mycelia.debug.statistics import COLUMNS
from mycelia.engine.base import errors

#: rank -> iteration -> "name:io:slot" -> a row for each time that the tensor was dumped.
Rows = Mapping[int, Mapping[int, Mapping[str, list[dict[str, Any]]]]]


def chosen(given: Any, name: str, known: Collection[int] | None = None) -> set[int] | None:
    """A number or several as MindInsight takes them, as a set; None: all.

    Errors: TypeError; ValueError for one that is not `known`, if that is given.
    """
    if given is None:
        return None
    numbers = [given] if isinstance(given, int) else given
    if isinstance(numbers, str) or not isinstance(numbers, Iterable):
        raise errors.type_error("dump", f"{name} must be an int, several or None, but got {given!r}")
    found = set(numbers)
    for number in found:
        if isinstance(number, bool) or not isinstance(number, int):
            raise errors.type_error("dump", f"{name} must be ints, but one is {number!r}")
        if known is not None and number not in known:
            raise errors.value_error("dump", f"{name} must be of {sorted(known)}, but one is {number}")
    return found


def rows_of(records: Mapping[tuple[int, int, int], list[Record]], steps: Any, ranks: Any) -> Rows:
    """The statistics of all records, which are given by rank, graph and iteration; without tensors that the
    dump has neither the elements nor a row of.
    """
    found: dict[int, dict[int, dict[str, list[dict[str, Any]]]]] = {}
    for (rank, _, iteration), of_step in sorted(records.items()):
        if (steps is not None and iteration not in steps) or (ranks is not None and rank not in ranks):
            continue
        by_name = found.setdefault(rank, {}).setdefault(iteration, {})
        for record in of_step:
            numbers = record.statistics()
            if numbers is None:
                continue
            row = {"Op Type": record.kind, "Op Name": record.name, "Timestamp": record.stamp}
            row |= {"IO": record.io, "Slot": record.slot}
            row |= {column: getattr(numbers, name) for column, name in COLUMNS.items()}
            by_name.setdefault(f"{record.name}:{record.io}:{record.slot}", []).append(row)
    return found


@dataclass(slots=True)
class _Sum:
    """What is known of a tensor over all rows."""

    op_type: str
    op_name: str
    inf: int = 0
    nan: int = 0
    beyond: int = 0
    good: int = 0
    total: int = 0
    steps: set[tuple[int, int]] = field(default_factory=set)
    max: float = float("-inf")
    min: float = float("inf")

    def add(self, row: Mapping[str, Any], overflow_value: float) -> None:
        high, low = float(row["Max Value"]), float(row["Min Value"])
        inf = int(row["Positive Inf Count"]) > 0 or int(row["Negative Inf Count"]) > 0
        nan, beyond = int(row["NaN Count"]) > 0, max(abs(high), abs(low)) > overflow_value
        self.inf, self.nan, self.beyond = self.inf + inf, self.nan + nan, self.beyond + beyond
        self.good += not (inf or nan or beyond)
        self.total += 1
        self.max, self.min = max(self.max, high), min(self.min, low)


def write_summary(rows: Rows, overflow_value: float, folder: str | os.PathLike) -> Path:
    """``statistics_summary.csv`` in `folder`, which is made: a line for each tensor.  Errors: OSError."""
    sums: dict[str, _Sum] = {}
    for rank, of_rank in rows.items():
        for iteration, by_name in of_rank.items():
            for name, of_name in by_name.items():
                for row in of_name:
                    known = sums.setdefault(name, _Sum(row["Op Type"], row["Op Name"]))
                    known.add(row, overflow_value)
                    known.steps.add((rank, iteration))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_SUMMARY)
    for name, s in sums.items():
        counts = (s.inf, s.nan, s.beyond, s.total, s.good, len(s.steps))
        writer.writerow([s.op_type, s.op_name, name, *counts, s.max, s.min])
    path = Path(folder) / "statistics_summary.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write(os.fspath(path), [text.getvalue()])
    return path


_SUMMARY = (
    "op_type", "op_name", "tensor_name", "inf_number", "nan_number", "out_of_range_number", "total_number",
    "none_overflow_number", "total_iterations", "max", "min",
)  # fmt: skip
