"""`Schema`: names, dtypes and shapes of the columns of a file."""

from __future__ import annotations

import json
import os
from pathlib import Path

from mycelia.dataset import nodes
from mycelia.engine.base import errors
from mycelia.io.reading import of_file

TYPES = (
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32",
    "float64", "string", "bytes",
)  # fmt: skip


_BYTES = ("uint8", "int8", "string", "bytes")  # a list of bytes or texts, even of rank 0


class Schema:
    """Columns in order: from a JSON file, or by `add_column`.

    Errors: TypeError for no path, ValueError for a missing file, RuntimeError for contents that do not fit.
    """

    def __init__(self, schema_file=None):
        self.columns: list[dict] = []
        self.dataset_type, self.num_rows = "", 0
        if schema_file is None:
            return
        if not isinstance(schema_file, (str, os.PathLike)):
            raise errors.type_error("Schema", f"path: {schema_file} is not string")
        path = Path(schema_file)
        if not path.is_file():
            raise errors.value_error("Schema", f"schema_file {str(path)!r} is no file that can be read")
        with of_file(path, "Schema"):
            self.from_json(json.loads(path.read_text(encoding="utf-8")))

    def add_column(self, name: str, de_type, shape=None) -> None:
        """One more column. `de_type`: a dtype or its name, also 'string' and 'bytes'; no `shape`: any."""
        owner = "Schema.add_column"
        nodes.of_type(owner, "name", name, str)
        if shape is not None:
            nodes.of_type(owner, "shape", shape, list, tuple)
            for size in shape:
                nodes.of_type(owner, "every size of shape", size, int)
        self.columns.append({"name": name, "type": _type_name(owner, de_type)} | _shape(shape))

    def parse_columns(self, columns) -> None:
        """Columns of a list of dicts (name, type, shape) or of a dict name -> dict, replacing all."""
        owner = "Schema.parse_columns"
        if isinstance(columns, dict):
            columns = [{"name": name, **entry} for name, entry in sorted(columns.items())]
        if not isinstance(columns, list) or not columns:
            raise errors.runtime_error(
                owner, f"columns must be a list or dict of columns, but got {columns!r}"
            )
        parsed = []
        for entry in columns:
            for key in ("name", "type"):
                if not isinstance(entry, dict) or key not in entry:
                    raise errors.runtime_error(owner, f"Column's {key} is missing in {entry!r}")
            if entry["type"] not in TYPES:
                raise errors.runtime_error(
                    owner, f"type {entry['type']!r} of column {entry['name']!r} is unknown"
                )
            shape = entry.get("shape")
            if shape is None and entry.get("rank") == 0 and entry["type"] not in _BYTES:
                shape = []
            parsed.append({"name": entry["name"], "type": entry["type"]} | _shape(shape))
        self.columns = parsed

    def from_json(self, json_obj: dict) -> None:
        """Columns of a dict with 'columns', and 'datasetType' and 'numRows' if they are there."""
        if not isinstance(json_obj, dict) or "columns" not in json_obj:
            raise errors.runtime_error(
                "Schema.from_json", f"a dict with 'columns' is needed, but got {json_obj!r}"
            )
        self.parse_columns(json_obj["columns"])
        self.dataset_type = json_obj.get("datasetType", "")
        self.num_rows = json_obj.get("numRows", 0)

    def to_json(self) -> str:
        """The schema as JSON text, keys in order."""
        table: dict = {"columns": self.columns}
        if self.dataset_type:
            table["datasetType"] = self.dataset_type
        if self.num_rows:
            table["numRows"] = self.num_rows
        return json.dumps(table, indent=2, sort_keys=True)

    def __str__(self) -> str:
        return self.to_json()


def _shape(shape) -> dict:
    return {} if shape is None else {"rank": len(shape), "shape": list(shape)}


def _type_name(owner: str, value) -> str:
    if isinstance(value, str) and value in TYPES:
        return value
    from mycelia.engine.base.dtypes import as_dtype

    name = str(value).lower().rpartition(".")[2]
    if name not in TYPES:
        try:
            name = as_dtype(value).np.name
        except (TypeError, ValueError, KeyError):
            name = ""
    if name not in TYPES:
        raise errors.type_error(owner, f"de_type must be a dtype, but got {value!r}")
    return name
