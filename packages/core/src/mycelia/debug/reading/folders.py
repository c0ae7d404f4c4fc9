"""What lies in a dump folder: ranks, graphs, iterations, and the files of tensors with what their names
say.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from mycelia.debug.dump import files
from mycelia.debug.reading.arrays import read_array
from mycelia.debug.reading.statistic_files import read_rows, shape_of, statistics_of
from mycelia.debug.statistics import Statistics, statistics
from mycelia.engine.base import errors

#: A name by MindSpore's rule: 2.10 has the dtype, 2.0 has not, and leaves dots in names of parameters.
_NAME = re.compile(
    r"(?P<kind>[A-Za-z0-9]+)\.(?P<name>.+)\.(?P<task>\d+)\.(?P<stream>\d+)\.(?P<stamp>\d+)\.(?P<io>input|output)\."
    r"(?P<slot>\d+)\.(?P<layout>[A-Za-z0-9_]+?)(?:\.(?P<dtype>[A-Za-z0-9]+))?\.npy(?:\.zst)?"
)


@dataclass(frozen=True, slots=True)
class Record:
    """A dumped tensor. `name`: the operator's as the file has it; `path` None: only its statistics are
    there; `folder`: of its step.
    """

    kind: str
    name: str
    stamp: str
    io: str
    slot: int
    path: Path | None = None
    row: dict[str, str] | None = None
    folder: Path | None = None

    @property
    def microseconds(self) -> int | None:
        """When it was dumped; None for a stamp that no clock gives."""
        is_time = len(self.stamp) <= 18 and self.stamp.isascii() and self.stamp.isdecimal()
        return int(self.stamp) if is_time else None

    def array(self, mapped: bool = False) -> np.ndarray | None:
        """The elements; None if only statistics were dumped. `mapped`: of a large file a view that reads what
        is looked at.  Errors: ValueError for a file that is damaged.
        """
        if self.path is None:
            return None
        return read_array(self.path, "dump", mapped)

    def shape(self) -> tuple[int, ...]:
        """Of the elements, or what the statistics say.  Errors: ValueError for a file that is damaged."""
        array = self.array(mapped=True)
        return shape_of(self.row or {}) if array is None else array.shape

    def nonfinite(self) -> dict[str, int] | None:
        """How many elements are "nan", "inf" and "-inf", without the kinds that there are none of; None:
        unknown.
        """
        if self.path is not None:
            array = self.array()
            return {} if array is None else nonfinite(array)
        columns = {"nan": "NaN Count", "inf": "Positive Inf Count", "-inf": "Negative Inf Count"}
        if self.row is None or any(column not in self.row for column in columns.values()):
            return None
        numbers = statistics_of(self.row)
        counts = (numbers.nan, numbers.positive_inf, numbers.negative_inf)
        return {kind: count for kind, count in zip(columns, counts) if count}

    def statistics(self) -> Statistics | None:
        """Computed from the elements, or what the dump says of them."""
        array = self.array()
        if array is not None:
            return statistics(array)
        return None if self.row is None else statistics_of(self.row)


def nonfinite(array: np.ndarray) -> dict[str, int]:
    """How many elements are "nan", "inf" and "-inf", without the kinds that there are none of."""
    if array.dtype.kind not in "fc":
        return {}
    found = {"nan": np.isnan(array).sum(), "inf": _infinite(array, 1), "-inf": _infinite(array, -1)}
    return {kind: int(count) for kind, count in found.items() if count}


def _infinite(array: np.ndarray, sign: int) -> int:
    infinite = np.isinf(array)
    if array.dtype.kind == "c":
        return int(infinite.sum()) if sign > 0 else 0
    return int((infinite & (array * sign > 0)).sum())


@dataclass(frozen=True, slots=True)
class Step:
    """A dumped run of a graph."""

    rank: int
    net: str
    graph: int
    iteration: int
    folder: Path

    def records(self) -> list[Record]:
        """All tensors, in order of execution.  Errors: ValueError for a `statistic.csv` that is damaged."""
        full = _mapping(self.folder)
        found: dict[tuple, Record] = {}
        for row in read_rows(self.folder / "statistic.csv"):
            record = Record(
                row["Op Type"], row["Op Name"], row["Timestamp"], row["IO"], int(row["Slot"]), row=row,
                folder=self.folder,
            )  # fmt: skip
            found[record.kind, record.name, record.io, record.slot, record.stamp] = record
        for entry in os.scandir(self.folder):
            match = _NAME.fullmatch(full.get(entry.name, entry.name))
            if match is None or not entry.is_file(follow_symlinks=False):
                continue
            kind, name, stamp, io, slot = match.group("kind", "name", "stamp", "io", "slot")
            key = kind, name, io, int(slot), stamp
            known = found.get(key)
            row = known and known.row
            found[key] = Record(kind, name, stamp, io, int(slot), Path(entry.path), row, self.folder)
        return sorted(found.values(), key=lambda r: r.stamp)


def _mapping(folder: Path) -> dict[str, str]:
    """Short names of files -> their full ones."""
    path = folder / "mapping.csv"
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return {row[0]: row[1] for row in csv.reader(file) if len(row) == 2}
    except FileNotFoundError:
        return {}
    except (UnicodeDecodeError, csv.Error) as cause:
        raise errors.value_error("dump", f"{path} cannot be read: {cause}") from None


def _numbers(path: Path) -> Iterator[int]:
    """The whole numbers of a file that has one a line; others say nothing."""
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.strip().isdecimal():
                yield int(line)


class Dump:
    """A dump on disk. `folder`: that of the configuration, or one of its ``rank_N``.

    Errors: ValueError if no dump lies there.
    """

    def __init__(self, folder: str | os.PathLike) -> None:
        self.folder = Path(folder)
        ranks = (
            [self.folder]
            if re.fullmatch(r"rank_\d+", self.folder.name)
            else sorted(self.folder.glob("rank_*"))
        )
        self.ranks = {int(r.name[5:]): r for r in ranks if r.is_dir() and r.name[5:].isdigit()}
        self.steps = [step for rank, place in self.ranks.items() for step in _steps(rank, place)]
        if not self.steps:
            name, is_begun = os.fspath(folder), any((r / ".dump_metadata").is_dir() for r in ranks)
            why = "no operator was one to write" if is_begun else "no rank_N/NET/GRAPH/ITERATION is in it"
            raise errors.value_error(
                "dump", f"{name!r} holds {'no tensors' if is_begun else 'no dump'}: {why}"
            )
        self.steps.sort(key=lambda s: (s.rank, s.iteration, s.graph))

    def iterations(self, ranks: list[int] | None = None) -> list[int]:
        return sorted({s.iteration for s in self.steps if ranks is None or s.rank in ranks})

    def steps_before(self, rank: int, graph: int, iteration: int, count: int) -> list[int]:
        """The last `count` steps of a graph before an iteration, the last first, as far as it is known that
        the steps between were those of other graphs.
        """
        found: list[int] = []
        runs = self._runs.get(rank, {})
        while len(found) < count and (iteration := iteration - 1) in runs:
            if graph in runs[iteration]:
                found.append(iteration)
        return found

    @cached_property
    def _runs(self) -> dict[int, dict[int, set[int]]]:
        """The graphs that ran in each iteration of a rank, those that left no tensor among them."""
        found: dict[int, dict[int, set[int]]] = {}
        for step in self.steps:
            found.setdefault(step.rank, {}).setdefault(step.iteration, set()).add(step.graph)
        for rank, place in self.ranks.items():
            for path in place.glob("execution_order/ms_global_execution_order_graph_*.csv"):
                graph = path.stem.rpartition("_")[2]
                if graph.isdecimal():
                    for iteration in _numbers(path):
                        found.setdefault(rank, {}).setdefault(iteration, set()).add(int(graph))
        return found


def _steps(rank: int, place: Path) -> Iterator[Step]:
    for folder in place.glob("*/*/*"):
        net, graph, iteration = folder.parts[-3:]
        if graph.isdigit() and iteration.isdigit() and folder.is_dir() and not net.startswith("."):
            yield Step(rank, net, int(graph), int(iteration), folder)


def short_name(full_name: str) -> set[str]:
    """What an operator with this full name may be called in names of files: by the rule of 2.10, and of
    2.0.
    """
    return {files.op_name(full_name), full_name.rpartition("/")[2]}
