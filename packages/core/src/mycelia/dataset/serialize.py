"""Pipelines as dicts and JSON: written, shown, compared, and read back."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np

from mycelia.dataset import config, nodes
from mycelia.dataset.pipeline import Dataset
from mycelia.dataset.samplers import BuiltinSampler, Shuffle
from mycelia.engine.base import errors, log
from mycelia.io.files import write_text
from mycelia.io.reading import of_file

# Attributes of a node that say what it does, by the name of its class.
_FIELDS = {
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
_SOURCE_FIELDS = (
    "dataset_dir", "usage", "decode", "class_indexing", "extensions", "dataset_files",
    "num_samples", "num_shards", "shard_id", "field_delim", "task", "columns_list",
    "shard_equal_rows", "compression_type", "name", "compat", "column_names", "column_defaults",
)  # fmt: skip
# What a dict of a sampler tells besides its arguments.
_DERIVED = ("sampler_name", "child_sampler", "reshuffle_each_epoch", "shuffle_mode", "even_dist", "seed")
_WITHOUT_WORKERS = ("Concat", "Project", "Rename", "Repeat", "Skip", "Take", "Shuffle")
_SHUFFLES = {Shuffle.FALSE: 0, Shuffle.FILES: 1, Shuffle.GLOBAL: 2, Shuffle.INFILE: 3}
_BY_FUNCTIONS = ("FilterDataset", "BucketBatchDataset", "SyncWaitDataset")  # no dict holds functions
# What stands for None in a dict of a source.
_NOT_GIVEN = {"num_samples": 0, "num_shards": 1, "shard_id": 0, "class_indexing": {}, "extensions": []}


def describe(node: Dataset) -> dict:
    """A node and all below it as a dict."""
    kind = type(node).__name__
    name, fields = _FIELDS.get(kind, (kind, getattr(node, "source_fields", _SOURCE_FIELDS)))
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
        table["shuffle"] = _SHUFFLES.get(node.shuffle_mode, node.shuffle_mode.value)
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


def deserialize(input_dict: dict | str | None = None, json_filepath: str | None = None) -> Dataset | None:
    """The pipeline of a dict or of a JSON file, whose name may also come first; None without either.

    Errors: NotSupportedError for nodes made of Python objects (generators, functions): no dict holds them.
    """
    if input_dict is None and json_filepath is None:
        return None
    if isinstance(input_dict, str):
        input_dict, json_filepath = None, input_dict
    if input_dict is None:
        path = Path(nodes.of_type("deserialize", "json_filepath", json_filepath, str))
        try:
            with of_file(path, "deserialize"):
                return deserialize(json.loads(path.read_text(encoding="utf-8")))
        except OSError as e:
            raise errors.runtime_error("deserialize", f"{path} cannot be read as JSON: {e}") from None
    nodes.of_type("deserialize", "input_dict", input_dict, dict)
    if "tree" in input_dict:  # what autotune has written: its numbers of workers hold
        return _made(input_dict["tree"], tuned=True)
    return _made(input_dict) if input_dict else None


def _made(table: dict, tuned: bool = False) -> Dataset:
    import mycelia.dataset as ds

    children = [_made(child, tuned) for child in table.get("children", [])]
    name = table.get("op_type", "")
    workers = min(table.get("num_parallel_workers", 1), os.cpu_count() or 1) if tuned else None
    if name == "Map":
        operations = [_made_operation(op) for op in table["operations"]]
        columns = table["input_columns"] or None, table["output_columns"] or None
        return children[0].map(operations, *columns, num_parallel_workers=workers)
    if name in ("Zip", "Concat"):
        return ds.zip(tuple(children)) if name == "Zip" else children[0].concat(children[1:])
    for kind, (short, fields) in _FIELDS.items():
        if name == short and children and kind not in _BY_FUNCTIONS and "pyfunc" not in table.values():
            arguments = {f: table[f] for f in fields if f in table}
            if name == "Batch":
                arguments = {f: arguments[f] for f in ("batch_size", "drop_remainder")}
                if "pad_info" in table:
                    return children[0].padded_batch(**arguments, pad_info=table["pad_info"])
            return getattr(children[0], short.lower())(**arguments)
    source = getattr(ds, name, None)
    if (
        children
        or name == "GeneratorDataset"
        or not isinstance(source, type)
        or not issubclass(source, Dataset)
    ):
        raise errors.error(
            errors.NotSupportedError, "deserialize", f"a node {name!r} cannot be made from a dict"
        )
    fields = getattr(source, "source_fields", _SOURCE_FIELDS)
    arguments = {f: table[f] for f in fields if f in table and table[f] not in ({}, [])}
    if "sampler" not in table and table.get("num_shards") == 1:
        del arguments["num_shards"], arguments["shard_id"]
    if "sampler" in table:
        for field in ("num_samples", "num_shards", "shard_id"):
            arguments.pop(field, None)
        arguments["sampler"] = _made_sampler(table["sampler"])
    elif "shuffle" in table:
        modes = {number: mode for mode, number in _SHUFFLES.items()}
        arguments["shuffle"] = modes.get(table["shuffle"]) or ds.Shuffle(table["shuffle"])
    if workers is not None:
        arguments["num_parallel_workers"] = workers
    return source(**arguments)


def _made_sampler(table: dict) -> BuiltinSampler:
    import mycelia.dataset as ds

    arguments = {k: v for k, v in table.items() if k not in _DERIVED}
    if table["sampler_name"] == "DistributedSampler":
        arguments["shuffle"] = bool(table["shuffle_mode"])
    arguments["num_samples"] = arguments.get("num_samples") or None
    sampler = getattr(ds, table["sampler_name"])(**arguments)
    for child in table.get("child_sampler", []):
        sampler.add_child(_made_sampler(child))
    return sampler


def _made_operation(table: dict):
    import importlib

    name, module = table["tensor_op_name"], table.get("python_module", "")
    if not module.startswith("mycelia.dataset.") or not name.isidentifier():
        raise errors.error(
            errors.NotSupportedError, "deserialize", f"the function {name!r} cannot be made from a dict"
        )
    return getattr(importlib.import_module(module), name)(**table.get("tensor_op_params", {}))
