"""Pipelines read back from dicts and JSON, as `serialize.py` writes them."""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path

from mycelia.dataset import nodes, samplers, sources
from mycelia.dataset.combining import zip_datasets
from mycelia.dataset.pipeline import Dataset
from mycelia.dataset.samplers import BuiltinSampler, Shuffle
from mycelia.dataset.serialize import FIELDS, SHUFFLES, SOURCE_FIELDS
from mycelia.engine.base import errors
from mycelia.io.reading import of_file

# What a dict of a sampler tells besides its arguments.
_DERIVED = ("sampler_name", "child_sampler", "reshuffle_each_epoch", "shuffle_mode", "even_dist", "seed")
_BY_FUNCTIONS = ("FilterDataset", "BucketBatchDataset", "SyncWaitDataset")  # no dict holds functions


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
    children = [_made(child, tuned) for child in table.get("children", [])]
    name = table.get("op_type", "")
    workers = min(table.get("num_parallel_workers", 1), os.cpu_count() or 1) if tuned else None
    if name == "Map":
        operations = [_made_operation(op) for op in table["operations"]]
        columns = table["input_columns"] or None, table["output_columns"] or None
        return children[0].map(operations, *columns, num_parallel_workers=workers)
    if name in ("Zip", "Concat"):
        return zip_datasets(tuple(children)) if name == "Zip" else children[0].concat(children[1:])
    for kind, (short, fields) in FIELDS.items():
        if name == short and children and kind not in _BY_FUNCTIONS and "pyfunc" not in table.values():
            arguments = {f: table[f] for f in fields if f in table}
            if name == "Batch":
                arguments = {f: arguments[f] for f in ("batch_size", "drop_remainder")}
                if "pad_info" in table:
                    return children[0].padded_batch(**arguments, pad_info=table["pad_info"])
            return getattr(children[0], short.lower())(**arguments)
    source = getattr(sources, name, None)
    if (
        children
        or name == "GeneratorDataset"
        or not isinstance(source, type)
        or not issubclass(source, Dataset)
    ):
        raise errors.error(
            errors.NotSupportedError, "deserialize", f"a node {name!r} cannot be made from a dict"
        )
    fields = getattr(source, "source_fields", SOURCE_FIELDS)
    arguments = {f: table[f] for f in fields if f in table and table[f] not in ({}, [])}
    if "sampler" not in table and table.get("num_shards") == 1:
        del arguments["num_shards"], arguments["shard_id"]
    if "sampler" in table:
        for field in ("num_samples", "num_shards", "shard_id"):
            arguments.pop(field, None)
        arguments["sampler"] = _made_sampler(table["sampler"])
    elif "shuffle" in table:
        modes = {number: mode for mode, number in SHUFFLES.items()}
        arguments["shuffle"] = modes.get(table["shuffle"]) or Shuffle(table["shuffle"])
    if workers is not None:
        arguments["num_parallel_workers"] = workers
    return source(**arguments)


def _made_sampler(table: dict) -> BuiltinSampler:
    arguments = {k: v for k, v in table.items() if k not in _DERIVED}
    if table["sampler_name"] == "DistributedSampler":
        arguments["shuffle"] = bool(table["shuffle_mode"])
    arguments["num_samples"] = arguments.get("num_samples") or None
    kind = getattr(samplers, table["sampler_name"], None)
    if not (isinstance(kind, type) and issubclass(kind, BuiltinSampler)):
        raise errors.error(
            errors.NotSupportedError,
            "deserialize",
            f"a sampler {table['sampler_name']!r} cannot be made from a dict",
        )
    sampler = kind(**arguments)
    for child in table.get("child_sampler", []):
        sampler.add_child(_made_sampler(child))
    return sampler


def _made_operation(table: dict):
    name, module = table["tensor_op_name"], table.get("python_module", "")
    if not module.startswith("mycelia.dataset.") or not name.isidentifier():
        raise errors.error(
            errors.NotSupportedError, "deserialize", f"the function {name!r} cannot be made from a dict"
        )
    public = importlib.import_module(".".join(module.split(".")[:3]))  # whatever file it is in by now
    kind = getattr(public, name, None) or getattr(importlib.import_module(module), name)
    return kind(**table.get("tensor_op_params", {}))
