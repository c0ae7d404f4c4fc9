"""Pipelines as dicts and JSON: written, shown and compared; `deserialize.py` reads them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from mycelia.dataset import config, nodes
from mycelia.dataset.pipeline import Dataset, dataset_methods
from mycelia.dataset.samplers import BuiltinSampler, Shuffle
from mycelia.engine.base import errors, log
from mycelia.io.files import write_text

# Attributes of a node that say what it does, by the name of its class.
FIELDS = {
    "BatchDataset": ("Batch", ["batch_size", "drop_remainder", "input_columns", "output_columns"]),
    "PaddedBatchDataset": (
        "Batch",
        ["batch_size", "drop_remainder", "input_columns", "output_columns", "pad_info"],
    ),
    "BucketBatchDataset": ("BucketBatchByLength", []),
    "SyncWaitDataset": ("SyncWait", []),
    "ConcatDataset": ("Concat", []),
    "FilterDataset": ("Filter", ["input_columns"]),
    "MapDataset": ("Map", ["input_columns", "output_columns"]),
    "ProjectDataset": ("Project", ["columns"]),
    "RenameDataset": ("Rename", ["input_columns", "output_columns"]),
    "RepeatDataset": ("Repeat", ["count"]),
    "ShuffleDataset": ("Shuffle", ["buffer_size"]),
    "SkipDataset": ("Skip", ["count"]),
    "TakeDataset": ("Take", ["count"]),
    "ZipDataset": ("Zip", []),
    "NumpySlicesDataset": ("GeneratorDataset", []),
    "PaddedDataset": ("GeneratorDataset", []),
    "GeneratorDataset": ("GeneratorDataset", []),
}
SOURCE_FIELDS = (
    "dataset_dir", "usage", "decode", "class_indexing", "extensions", "dataset_files",
    "num_samples", "num_shards", "shard_id", "field_delim", "task", "columns_list",
    "shard_equal_rows", "compression_type", "name", "compat", "column_names", "column_defaults",
)  # fmt: skip
_WITHOUT_WORKERS = ("Concat", "Project", "Rename", "Repeat", "Skip", "Take", "Shuffle")
SHUFFLES = {Shuffle.FALSE: 0, Shuffle.FILES: 1, Shuffle.GLOBAL: 2, Shuffle.INFILE: 3}
# What stands for None in a dict of a source.
_NOT_GIVEN = {"num_samples": 0, "num_shards": 1, "shard_id": 0, "class_indexing": {}, "extensions": []}


def describe(node: Dataset) -> dict:
    """A node and all below it as a dict."""
    kind = type(node).__name__
    name, fields = FIELDS.get(kind, (kind, getattr(node, "source_fields", SOURCE_FIELDS)))
    workers = getattr(node, "num_parallel_workers", None) or (
        1 if name == "GeneratorDataset" else config.get_num_parallel_workers()
    )
    table: dict = {"op_type": name, "children": [describe(child) for child in node.children]}
    if name not in _WITHOUT_WORKERS:
        table["num_parallel_workers"] = workers
        if name != "Filter":
            ahead = config.get_prefetch_size() if node._run is None else node._run.prefetch
            table["connector_queue_size"] = ahead
    for field in fields:
        if not hasattr(node, field):
            continue
        value = getattr(node, field)
        value = _NOT_GIVEN.get(field) if value is None else value
        if value is not None and not callable(value):
            table[field] = str(value) if isinstance(value, Path) else value
    if name == "Shuffle":
        table["reset_each_epoch"] = True
    for function in ("predicate", "per_batch_map"):
        if getattr(node, function, None) is not None:
            table[function] = "pyfunc"
    if name == "Map":
        table["output_columns"] = table["output_columns"] or table["input_columns"]
        table["operations"] = [_operation(op) for op in node.operations]
        table["callback"] = [type(c).__name__ for c in node.callbacks]
    if name != "GeneratorDataset" and isinstance(getattr(node, "sampler", None), BuiltinSampler):
        table["sampler"] = node.sampler.describe()
    if node.cache is not None:
        table["cache"] = node.cache.describe()
    if hasattr(node, "shuffle_mode"):
        table["shuffle"] = SHUFFLES.get(node.shuffle_mode, node.shuffle_mode.value)
    return dict(sorted(table.items()))


def _operation(op) -> dict:
    kind = type(op)
    name = getattr(op, "__name__", kind.__name__)
    module = getattr(op, "__module__", None) or kind.__module__
    table: dict = {"python_module": module, "tensor_op_name": name}
    fields = {k: v.name if isinstance(v, np.dtype) else v for k, v in getattr(op, "__dict__", {}).items()}
    fields = {k: v for k, v in fields.items() if not k.startswith("_") and _plain(v)}
    if fields and not hasattr(op, "__code__"):
        table["tensor_op_params"] = fields
    return table


def _plain(value) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_plain, value))
    return isinstance(value, (str, int, float, bool, type(None)))


def serialize(dataset: Dataset, json_filepath: str = "") -> dict:
    """The pipeline as a dict, also written to the file if one is named."""
    nodes.of_type("serialize", "dataset", dataset, Dataset)
    table = describe(dataset)
    if json_filepath:
        try:
            write_text(json_filepath, json.dumps(table, indent=2))
        except OSError as e:
            raise errors.runtime_error("serialize", f"{json_filepath} cannot be written: {e}") from None
    return table


def show(dataset: Dataset, indentation: int = 2) -> None:
    """Write the pipeline as JSON to the log, at level info."""
    nodes.of_type("show", "dataset", dataset, Dataset)
    log.logger("mycelia.dataset").info(json.dumps(describe(dataset), indent=indentation))


def compare(pipeline1: Dataset, pipeline2: Dataset) -> bool:
    """Whether two pipelines do the same, as far as their dicts tell."""
    return describe(pipeline1) == describe(pipeline2)


@dataset_methods
class Serialization:
    """The method that tells of the nodes as a dict."""

    def to_json(self, filename: str = "") -> dict:
        """The pipeline as a dict, also written to the file if one is named."""
        return serialize(self, filename)
