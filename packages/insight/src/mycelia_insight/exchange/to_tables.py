"""A run as tables (CSV, JSON lines or Parquet), with images, tensors and sounds as files beside them."""

from __future__ import annotations

import csv
import os
from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
import orjson

from mycelia_insight.exchange.export import Writer, finite_or_word
from mycelia_insight.exchange.output import file_name
from mycelia_insight.records.histograms import Distribution
from mycelia_insight.records.images import Picture
from mycelia_insight.records.layers import Layer
from mycelia_insight.records.lineage import Value
from mycelia_insight.records.tensors import Tensor
from mycelia_insight.runs.run import Moment, Points

_ENDINGS = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif"}
# Columns of each table and their types; `wall_time` is in seconds since 1970.
_POINT: dict[str, type] = {"tag": str, "step": int, "wall_time": float}
TABLES: dict[str, dict[str, type]] = {
    "scalars": {**_POINT, "value": np.float32},
    "histograms": {**_POINT, "left": float, "right": float, "count": float},
    "images": {**_POINT, "sample": int, "width": int, "height": int, "file": str},
    "boxes": {
        **_POINT, "layer": str, "label": str, "score": float, "x": float, "y": float, "width": float,
        "height": float,
    },
    "masks": {**_POINT, "layer": str, "classes": str, "file": str},
    "tensors": {**_POINT, "dtype": str, "shape": str, "file": str},
    "texts": {**_POINT, "row": int, "column": int, "text": str},
    "sounds": {**_POINT, "sample": int, "file": str},
    "hyperparameters": {"name": str, "value": str},
}  # fmt: skip


class Table(ABC):
    """A table that grows column by column, some rows at a time."""

    @abstractmethod
    def __init__(self, path: str, columns: dict[str, type]):
        """`path`: of its file without the ending."""

    @abstractmethod
    def add(self, *columns: list | np.ndarray) -> None:
        """Rows: values of each column."""

    @abstractmethod
    def close(self) -> None:
        """No row comes any more."""


class CsvTable(Table):
    """Comma separated, a line with the names in front; `nan`, `inf` and `-inf` are what is not finite."""

    def __init__(self, path: str, columns: dict[str, type]):
        self._file = open(f"{path}.csv", "w", newline="", encoding="utf-8", errors="backslashreplace")
        self._rows = csv.writer(self._file)
        self._rows.writerow(columns)

    def add(self, *columns: list | np.ndarray) -> None:
        self._rows.writerows(zip(*map(_listed, columns), strict=True))

    def close(self) -> None:
        self._file.close()


class JsonTable(Table):
    """An object a line; "NaN", "Infinity" and "-Infinity" are what is not finite."""

    def __init__(self, path: str, columns: dict[str, type]):
        self._file = open(f"{path}.jsonl", "wb")
        self._names = list(columns)

    def add(self, *columns: list | np.ndarray) -> None:
        lists = [
            [finite_or_word(one) if isinstance(one, float) else one for one in _listed(column)]
            for column in columns
        ]
        for row in zip(*lists, strict=True):
            self._file.write(
                orjson.dumps(dict(zip(self._names, row, strict=True)), option=orjson.OPT_APPEND_NEWLINE)
            )

    def close(self) -> None:
        self._file.close()


class ParquetTable(Table):
    """A Parquet file; needs pyarrow."""

    _AT_ONCE = 1 << 16  # rows of a group

    def __init__(self, path: str, columns: dict[str, type]):
        import pyarrow
        from pyarrow import parquet

        self._arrow = pyarrow
        kinds = {
            str: pyarrow.dictionary(pyarrow.int32(), pyarrow.string()), int: pyarrow.int64(),
            float: pyarrow.float64(), np.float32: pyarrow.float32(),
        }  # fmt: skip
        plain = {"text", "value", "file"}
        self._types = [
            pyarrow.string() if kind is str and name in plain else kinds[kind]
            for name, kind in columns.items()
        ]
        schema = pyarrow.schema(list(zip(columns, self._types, strict=True)))
        self._schema, self._file = schema, parquet.ParquetWriter(f"{path}.parquet", schema)
        self._waiting: list[list] = [[] for _ in columns]

    def add(self, *columns: list | np.ndarray) -> None:
        if len(columns[0]) >= self._AT_ONCE // 2:
            self._flush()
            self._write(columns)
            return
        for held, column in zip(self._waiting, columns, strict=True):
            held += _listed(column)
        if len(self._waiting[0]) >= self._AT_ONCE:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._file.close()

    def _flush(self) -> None:
        if self._waiting[0]:
            self._write(self._waiting)
            self._waiting = [[] for _ in self._waiting]

    def _write(self, columns) -> None:
        arrays = [self._arrow.array(one).cast(kind) for one, kind in zip(columns, self._types, strict=True)]
        self._file.write_table(self._arrow.Table.from_arrays(arrays, schema=self._schema))


class TablesWriter(Writer):
    """Writes tables and files to a folder; `make`: a Table."""

    def __init__(self, folder: str, make: Callable[[str, dict[str, type]], Table]):
        self._folder, self._make = folder, make
        self._tables: dict[str, Table] = {}

    def scalars(self, tag: str, points: Points) -> bool:
        tags = [_clean(tag)] * len(points.steps)
        self._table("scalars").add(tags, points.steps, points.times, points.values)
        return True

    def image(self, tag: str, at: Moment, sample: int, picture: Picture) -> bool:
        part = f"_{sample}" if sample else ""
        path = self._file(
            "images", f"{file_name(tag)}_{at.step}{part}", _ENDINGS[picture.media_type], picture.data
        )
        return self._row("images", tag, at, sample, picture.width, picture.height, path)

    def layer(self, tag: str, at: Moment, found: Layer, mask: Picture | None) -> bool:
        for box in found.boxes:
            score = np.nan if box.score is None else box.score
            self._row("boxes", tag, at, found.name, box.label, score, box.x, box.y, box.width, box.height)
        if mask is not None:
            stem = f"{file_name(tag)}_{at.step}_{file_name(found.name)}"
            path = self._file("masks", stem, _ENDINGS[mask.media_type], mask.data)
            classes = orjson.dumps({str(number): _clean(name) for number, name in found.classes.items()})
            self._row("masks", tag, at, found.name, classes.decode(), path)
        return True

    def histogram(self, tag: str, at: Moment, found: Distribution) -> bool:
        n = len(found.left)
        ends = [at.step] * n, [at.time] * n
        self._table("histograms").add([_clean(tag)] * n, *ends, found.left, found.right, found.counts)
        return True

    def tensor(self, tag: str, at: Moment, found: Tensor) -> bool:
        path = self._file("tensors", f"{file_name(tag)}_{at.step}", "npy", None)
        with open(os.path.join(self._folder, path), "wb") as file:
            np.save(file, found.values, allow_pickle=False)
        shape = "x".join(map(str, found.values.shape))
        return self._row("tensors", tag, at, found.dtype, shape, path)

    def text(self, tag: str, at: Moment, rows: list[list[str]]) -> bool:
        for row, cells in enumerate(rows):
            for column, cell in enumerate(cells):
                self._row("texts", tag, at, row, column, cell)
        return True

    def sound(self, tag: str, at: Moment, sample: int, data: bytes) -> bool:
        part = f"_{sample}" if sample else ""
        path = self._file("sounds", f"{file_name(tag)}_{at.step}{part}", "wav", data)
        return self._row("sounds", tag, at, sample, path)

    def hyperparameters(self, values: dict[str, Value]) -> bool:
        self._table("hyperparameters").add(
            list(map(_clean, values)), [_clean(str(v)) for v in values.values()]
        )
        return True

    def close(self) -> None:
        for table in self._tables.values():
            table.close()

    def _table(self, name: str) -> Table:
        if name not in self._tables:
            self._tables[name] = self._make(os.path.join(self._folder, name), TABLES[name])
        return self._tables[name]

    def _row(self, table: str, tag: str, at: Moment, *values: str | float) -> bool:
        rest = [[_clean(one) if isinstance(one, str) else one] for one in values]
        self._table(table).add([_clean(tag)], [at.step], [at.time], *rest)
        return True

    def _file(self, kind: str, name: str, ending: str, data: bytes | None) -> str:
        """The path of a new file below the folder; a second value of a tag and step gets a number."""
        os.makedirs(os.path.join(self._folder, kind), exist_ok=True)
        path, count = f"{kind}/{name}.{ending}", 1
        while os.path.lexists(os.path.join(self._folder, path)):
            count += 1
            path = f"{kind}/{name}_again{count}.{ending}"
        with open(os.path.join(self._folder, path), "wb") as file:
            file.write(data or b"")
        return path


def _listed(column: list | np.ndarray) -> list:
    return column.tolist() if isinstance(column, np.ndarray) else column


def _clean(text: str) -> str:
    """A text that UTF-8 has."""
    return text.encode("utf-8", "backslashreplace").decode()
