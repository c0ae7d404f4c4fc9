"""Reading MindRecord files row by row, and by the classes of a field."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

from mycelia.engine.base import errors
from mycelia.mindrecord import exceptions
from mycelia.mindrecord.shard import Shards
from mycelia.mindrecord.writer import checked_name


def _open(file_name, num_consumer) -> Shards:
    if isinstance(file_name, list):
        for name in file_name:
            checked_name(name)
        if not file_name:
            raise exceptions.ParamValueError("File path is not allowed None or empty!")
    else:
        checked_name(file_name)
    if num_consumer is not None:
        if not isinstance(num_consumer, int):
            raise exceptions.ParamValueError("Parameter num_consumer is not int.")
        most = max(os.cpu_count() or 1, 4)  # 4 is the default
        if not 1 <= num_consumer <= most:
            raise exceptions.ParamValueError(
                f"Parameter num_consumer: {num_consumer} should between 1 and {most}."
            )
    return Shards.open(file_name)


def _plain(row: dict) -> dict:
    """Scalars first; whole numbers as ints, as MindSpore gives them."""
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in row.items()
    }


class FileReader:
    """Rows of MindRecord files as dicts: texts, numbers, bytes and arrays.

    `file_name`: a list of files, or one file of a data set, of which all are read. `columns`: only these.
    Errors: ParamValueError, ParamTypeError for arguments; RuntimeError for missing and damaged files.
    """

    def __init__(self, file_name, num_consumer: int = 4, columns: list[str] | None = None, operator=None):
        if columns is not None and not isinstance(columns, list):
            raise exceptions.ParamTypeError("columns", "list")
        if operator is not None:
            raise errors.type_error("FileReader", f"operator must be None, but got {operator!r}")
        self._shards = _open(file_name, num_consumer)
        unknown = [name for name in columns or () if name not in self._shards.schema.fields]
        if unknown:
            self._shards.close()
            raise errors.runtime_error(
                "FileReader",
                f"column name: {unknown[0]} can not found in schema, "
                f"which has {sorted(self._shards.schema.fields)}",
            )
        self._wanted = set(columns) if columns else None
        self._next, self._closed = 0, False

    def get_next(self) -> Iterator[dict]:
        """The rows that are left, one by one."""
        while not self._closed and self._next < len(self._shards):
            self._next += 1
            yield _plain(self._shards.row(self._next - 1, self._wanted))

    def len(self) -> int:
        """Number of rows."""
        return len(self._shards)

    def schema(self) -> dict:
        """The fields, as they were given to `FileWriter.add_schema`."""
        return self._shards.schema.fields

    def close(self) -> None:
        """Let the files go."""
        self._closed = True
        self._shards.close()


class MindPage:
    """Rows by the classes of an index field, a page of them at a time.

    Errors: ParamValueError, ParamTypeError, MRMDefineCategoryError for arguments; RuntimeError for missing
    and damaged files, unknown classes and pages without rows.
    """

    def __init__(self, file_name, num_consumer: int = 4):
        self._shards = _open(file_name, num_consumer)
        fields = self._shards.files[0].header["index_fields"] or ()
        self._candidates = [field["index_field"] for field in fields]
        self._field: str | None = None
        self._classes: list[tuple[str, list[int]]] = []

    @property
    def candidate_fields(self) -> list[str]:
        """The index fields."""
        return list(self._candidates)

    @property
    def category_field(self) -> str | None:
        """The field whose values are the classes."""
        return self._field

    @category_field.setter
    def category_field(self, category_field: str) -> None:
        if not category_field or not isinstance(category_field, str):
            raise exceptions.ParamTypeError("category_fields", "str")
        if category_field not in self._candidates:
            raise exceptions.MRMDefineCategoryError(
                f"Field '{category_field}' is not a candidate category field."
            )
        rows: dict[str, list[int]] = {}
        for number, value in enumerate(self._shards.column(category_field)):
            rows.setdefault(str(value), []).append(number)
        self._classes = sorted(rows.items())
        self._field = category_field

    def read_category_info(self) -> str:
        """The classes with number, name and count of rows, as JSON text."""
        self._need_field()
        info = [{"count": len(rows), "id": k, "name": name} for k, (name, rows) in enumerate(self._classes)]
        made = {"categories": info, "key": f"{self._field}_0"}
        return json.dumps(made, separators=(",", ":"), ensure_ascii=False)

    def _need_field(self) -> None:
        if self._field is None:
            raise errors.runtime_error("MindPage", "no category_field is set")

    def read_at_page_by_id(self, category_id: int, page: int, num_row: int) -> list[dict]:
        """Rows ``page * num_row`` to ``(page + 1) * num_row`` of the class with this number."""
        if not isinstance(category_id, int) or category_id < 0:
            raise exceptions.ParamValueError("Category id should be int and greater than or equal to 0.")
        self._check_page(page, num_row)
        self._need_field()
        if category_id >= len(self._classes):
            raise errors.runtime_error(
                "MindPage",
                f"Invalid data, category_id: {category_id} must be in the range [0, {len(self._classes)}].",
            )
        return self._page(self._classes[category_id][1], page, num_row)

    def read_at_page_by_name(self, category_name: str, page: int, num_row: int) -> list[dict]:
        """Rows ``page * num_row`` to ``(page + 1) * num_row`` of the class with this name."""
        if not isinstance(category_name, str):
            raise exceptions.ParamValueError("Category name should be str.")
        self._check_page(page, num_row)
        self._need_field()
        rows = dict(self._classes).get(category_name)
        if rows is None:
            raise errors.runtime_error("MindPage", f"category_name: {category_name} could not found.")
        return self._page(rows, page, num_row)

    @staticmethod
    def _check_page(page, num_row) -> None:
        if not isinstance(page, int) or page < 0:
            raise exceptions.ParamValueError("Page should be int and greater than or equal to 0.")
        if not isinstance(num_row, int) or num_row < 1:
            raise exceptions.ParamValueError("num_row should be int and greater than 0.")

    def _page(self, rows: list[int], page: int, num_row: int) -> list[dict]:
        if page * num_row >= len(rows):
            raise errors.runtime_error(
                "MindPage",
                f"page no: {page} or page size: {num_row} is invalid: the class has {len(rows)} rows",
            )
        return [_plain(self._shards.row(k)) for k in rows[page * num_row : (page + 1) * num_row]]
