"""Datasets written to files."""

from __future__ import annotations

import re

import numpy as np

from mycelia.dataset import nodes
from mycelia.dataset.pipeline import dataset_methods
from mycelia.engine.base import errors

_AS = {  # the types of MindRecord that hold each dtype
    "bool": "int32", "int8": "int32", "uint8": "int32", "int16": "int32", "uint16": "int32", "int32": "int32",
    "uint32": "int64", "int64": "int64", "uint64": "int64",
    "float16": "float32", "float32": "float32", "float64": "float64",
}  # fmt: skip
_ROWS = 1024  # written at a time


def _entry(name: str, value) -> dict:
    array = np.asarray(value)
    if array.dtype.kind == "U" and array.ndim == 0:
        return {"type": "string"}
    if array.dtype.kind == "S" or (array.dtype == np.uint8 and array.ndim == 1):
        return {"type": "bytes"}
    if array.dtype.name not in _AS:
        raise errors.runtime_error(
            "Dataset.save", f"column '{name}' of dtype {array.dtype} and rank {array.ndim} cannot be saved"
        )
    kind = _AS[array.dtype.name]
    # Rows may differ in the first axis.
    return {"type": kind} if array.ndim == 0 else {"type": kind, "shape": [-1, *array.shape[1:]]}


def _field(name: str) -> str:
    """The column's name as MindRecord allows it."""
    return re.sub(r"[^0-9a-zA-Z_]", "_", name)


def _value(value, entry: dict):
    if entry["type"] == "bytes":
        return np.asarray(value).tobytes()
    if entry["type"] == "string":
        return str(value)
    array = np.asarray(value)
    if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        raise errors.runtime_error("Dataset.save", f"{array.max()} of uint64 does not fit MindRecord's int64")
    array = array.astype(entry["type"])
    if array.ndim and list(array.shape[1:]) != entry["shape"][1:]:
        raise errors.runtime_error(
            "Dataset.save",
            "Tensor with dynamic shape do not currently support saving. Except for the shape of "
            "dimension 0, the other dimension shapes must be fixed. You can reshape the Tensor to a "
            f"fixed shape before saving. Here {list(array.shape)} follows {entry['shape']}",
        )
    return array if "shape" in entry else array.item()


def to_mindrecord(dataset, file_name: str, num_files: int) -> None:
    """All rows of one epoch to `num_files` MindRecord files, in order; types and shapes of the first row hold
    for all. RuntimeError for an empty dataset or a column that MindRecord cannot hold.
    """
    from mycelia.mindrecord import FileWriter

    writer, schema, pending = None, {}, []
    for row in dataset.create_dict_iterator(num_epochs=1, output_numpy=True):
        if writer is None:
            schema = {_field(name): _entry(name, value) for name, value in row.items()}
            writer = FileWriter(file_name, num_files)
            writer.add_schema(schema, "")
        row = {_field(name): value for name, value in row.items()}
        pending.append({name: _value(value, schema[name]) for name, value in row.items()})
        if len(pending) == _ROWS:
            writer.write_raw_data(pending)
            pending = []
    if writer is None:
        raise errors.runtime_error("Dataset.save", "the dataset is empty")
    if pending:
        writer.write_raw_data(pending)
    writer.commit()


@dataset_methods
class Export:
    """The method that writes rows to files."""

    def save(self, file_name: str, num_files: int = 1, file_type: str = "mindrecord") -> None:
        """Write all rows to MindRecord files. TypeError, ValueError; RuntimeError for what cannot be."""
        nodes.of_type("Dataset.save", "file_name", file_name, str)
        if not 0 < nodes.of_type("Dataset.save", "num_files", num_files, int) <= 1000:
            raise errors.value_error(
                "Dataset.save", f"num_files should between 0 and 1000. It is {num_files}"
            )
        if nodes.of_type("Dataset.save", "file_type", file_type, str) != "mindrecord":
            raise errors.value_error("Dataset.save", f"{file_type} dataset format is not supported.")
        to_mindrecord(self, file_name, num_files)
