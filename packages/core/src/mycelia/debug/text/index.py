"""The command `index`: all tensors of a dump as one table, which other programs read."""

from __future__ import annotations

import csv
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mycelia.debug.dump import files
from mycelia.debug.reading.folders import Dump
from mycelia.debug.reading.ir import read_graphs
from mycelia.debug.statistics import Statistics
from mycelia.debug.text.commands import command
from mycelia.debug.text.place import Place
from mycelia.debug.text.screen import Screen
from mycelia.engine.base import errors

_OF_TENSOR: dict[str, type] = {
    "rank": int, "net": str, "graph": int, "iteration": int, "timestamp": int, "op_type": str,
    "op_name": str, "source": str, "io": str, "slot": int, "dtype": str, "shape": str, "file": str,
}  # fmt: skip
_WHOLE = {"count", "negative", "positive", "nan", "negative_inf", "positive_inf", "zero"}
COLUMNS = _OF_TENSOR | {name: int if name in _WHOLE else float for name in Statistics._fields}
_AT_ONCE = 4096  # rows of a group


@command("index", "FILE.parquet or FILE.csv", least=1, most=1)
def _index(place: Place, screen: Screen, words: list[str]) -> None:
    """Write a table of all tensors of the dump: where each comes from, what it is, its statistics and its
    file.
    """
    target = Path(words[0]).expanduser()
    if target.suffix not in (".parquet", ".csv"):
        raise errors.value_error("index", f"FILE must end in .parquet or .csv, but is {words[0]!r}")
    count = write_index(place.source.dump_folder(), target)
    screen.line(f"{target}: {count} tensors")


def write_index(dump: Dump, target: Path) -> int:
    """How many rows were written into `target`, which appears whole.

    Errors: ValueError if it cannot be written; ImportError without pyarrow for ``.parquet``.
    """
    write = _parquet if target.suffix == ".parquet" else _csv
    temporary = ""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(suffix=target.suffix, dir=target.parent)
        os.close(handle)
        count = write(temporary, rows(dump))
        os.replace(temporary, target)
        return count
    except OSError as cause:
        raise errors.value_error("index", f"{target} cannot be written: {cause}") from None
    finally:
        if temporary:
            Path(temporary).unlink(missing_ok=True)


def rows(dump: Dump) -> Iterator[tuple[Any, ...]]:
    """A row of `COLUMNS` for each tensor, by rank, iteration and order of execution. `shape`: as NumPy writes
    it; `file`: below the folder of the dump, "" where statistics alone were dumped.

    Errors: ValueError for files that are damaged.
    """
    graphs = {rank: read_graphs(folder) for rank, folder in dump.ranks.items()}
    for step in dump.steps:
        graph = graphs[step.rank].get(step.graph, {})
        nodes = {files.op_name(node.name): node for node in graph.values()}
        nodes |= {node.name.rpartition("/")[2]: node for node in graph.values()}
        for record in step.records():
            node = nodes.get(record.name)
            line = node.stack[0] if node is not None and node.stack else None
            array = record.array(mapped=True)
            dtype = str(array.dtype) if array is not None else (record.row or {}).get("Data Type", "")
            place = "" if record.path is None else os.path.relpath(record.path, dump.folder)
            numbers = record.statistics()
            yield (
                step.rank, step.net, step.graph, step.iteration, record.microseconds, record.kind,
                node.name if node is not None else record.name, f"{line.file}:{line.line}" if line else "",
                record.io, record.slot, dtype, str(tuple(record.shape())), place,
                *([None] * len(Statistics._fields) if numbers is None else numbers),
            )  # fmt: skip


def _csv(path: str, found: Iterator[tuple[Any, ...]]) -> int:
    count = 0
    with open(path, "w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in found:
            writer.writerow(row)
            count += 1
    return count


def _parquet(path: str, found: Iterator[tuple[Any, ...]]) -> int:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise errors.MyceliaImportError("index: Parquet files need pyarrow: pip install pyarrow") from None
    kinds = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64()}
    schema = pyarrow.schema([(name, kinds[kind]) for name, kind in COLUMNS.items()])
    count = 0
    with parquet.ParquetWriter(path, schema, compression="zstd") as file:
        waiting: list[tuple[Any, ...]] = []
        for row in found:
            waiting.append(row)
            count += 1
            if len(waiting) >= _AT_ONCE:
                file.write_table(_table(pyarrow, schema, waiting))
                waiting = []
        file.write_table(_table(pyarrow, schema, waiting))
    return count


def _table(pyarrow: Any, schema: Any, waiting: list[tuple[Any, ...]]) -> Any:
    columns = zip(*waiting) if waiting else [()] * len(COLUMNS)
    typed = [
        [None if v is None else int(v) if kind is int else float(v) if kind is float else v for v in column]
        for column, kind in zip(columns, COLUMNS.values(), strict=True)
    ]
    return pyarrow.table(typed, schema=schema)
