"""Strategy files: how the Parameters of a network lie on its ranks, and the strategies of its operators.

Protobuf in the wire format of MindSpore, or JSON of the same content where the name ends in ".json".
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mycelia.engine.base import errors
from mycelia.engine.base.parallel_settings import get_auto_parallel_context
from mycelia.engine.communication.share import GridShare
from mycelia.io.files import atomic_write

Layouts = dict[
    str, GridShare
]  # by name; each of rank 0 and of axes of size 0: which sizes they have is not said


def layout_of(matrix: Sequence[int], places: Sequence[Sequence[int]]) -> GridShare:
    """Where a Parameter lies, of which axis i is cut by the axes ``places[i]`` of a grid, counted from the
    last one.
    """
    axes = tuple(tuple(len(matrix) - 1 - p for p in group) for group in places)
    return GridShare(0, tuple(matrix), axes, (0,) * len(axes))


def places_of(share: GridShare) -> list[list[int]]:
    """The same as files say it."""
    return [[len(share.matrix) - 1 - a for a in group] for group in share.axes]


def message_of(path: Any, subject: str):
    """The content of a strategy file of either format, as a message.

    Errors: TypeError unless a text, ValueError for a file that is not there, is empty, or is none.
    """
    from mycelia.parallel import strategy_pb2

    if not isinstance(path, str):
        raise errors.type_error(
            subject, f"the name of a strategy file must be a str, but got {type(path).__name__}"
        )
    if not os.path.isfile(path):
        raise errors.value_error(subject, f"there is no strategy file {path!r}")
    with open(path, "rb") as file:
        content = file.read()
    if not content:
        raise errors.value_error(subject, f"the strategy file {path!r} is empty")
    try:
        if not path.endswith(".json"):
            return strategy_pb2.ParallelStrategyMap.FromString(content)
        return _of_json(json.loads(content), strategy_pb2)
    except Exception as cause:  # of protobuf, of JSON, of what stands in it
        raise errors.value_error(
            subject, f"{path!r} is no strategy file: {cause}",
            hint="names that end in .json are of JSON, all others of protobuf",
        ) from None  # fmt: skip


def _of_json(content: Mapping[str, Any], pb: Any):
    made = pb.ParallelStrategyMap(current_stage=int(content.get("current_stage", 0)))
    for name, item in content.get("parallel_strategy_item", {}).items():
        added = made.parallel_strategy_item.add(node_name=name)
        added.parallel_strategys.stage = item.get("stage", 0)
        for counts in item.get("parallel_strategy", ()):
            added.parallel_strategys.parallel_strategy.add(dim=counts)
    for name, item in content.get("parallel_layout_item", {}).items():
        added = made.parallel_layout_item.add(param_name=name)
        layouts = added.parallel_layouts
        for key in ("field", "opt_weight_shard_step", "opt_weight_shard_size"):
            setattr(layouts, key, item[key])
        layouts.dev_matrix.add(dim=item["dev_matrix"])
        for places in _nested(item["tensor_map"]):
            layouts.tensor_map.add(dim=places)
        layouts.param_split_shape.add(dim=item.get("param_split_shape", ()))
        layouts.indices_offset.add(dim=item.get("indices_offset", ()))
    return made


def _nested(places: Sequence[Any]) -> list[Any]:
    """The entries of `tensor_map`: one of all axes, or one for each."""
    return list(places) if any(isinstance(p, list) for p in places) else [places]


def read(path: Any, subject: str) -> Layouts:
    """Where the Parameters lie, by name. Errors: as `message_of`; NotImplementedError for parts that are not
    equal, and for weights cut by optimizers.
    """
    return {
        item.param_name: share_of(item.param_name, item.parallel_layouts, subject)
        for item in message_of(path, subject).parallel_layout_item
    }


def share_of(name: str, layouts: Any, subject: str) -> GridShare:
    """Where a Parameter lies, of a message."""
    uneven = bool(layouts.param_split_shape) and bool(layouts.param_split_shape[0].dim)
    if layouts.field or uneven or layouts.opt_weight_shard_size > 0:
        what = "in columns" if layouts.field else "unequally" if uneven else "further by an optimizer"
        raise errors.error(errors.NotSupportedError, subject, f"the strategy cuts {name!r} {what}")
    matrix = list(layouts.dev_matrix[0].dim)
    maps = [list(one.dim) for one in layouts.tensor_map]
    if len(maps) > 1:
        groups = [[p for p in one if p != -1] for one in maps if one]
    else:
        groups = [[p] if p != -1 else [] for p in (maps[0] if maps else [])]
    return layout_of(matrix, groups)


def write(path: str, stage: int, operators: Mapping[str, Sequence[Sequence[int]]], layouts: Layouts) -> None:
    """Writes a strategy file; it takes its place when it is whole. Errors: OSError."""
    folder = os.path.dirname(os.path.abspath(path))
    os.makedirs(folder, exist_ok=True)
    if path.endswith(".json"):
        content = json.dumps(_as_json(stage, operators, layouts)).encode()
    else:
        content = _as_message(stage, operators, layouts).SerializeToString()
    with atomic_write(path) as file:
        file.write(content)


def _as_message(stage: int, operators: Mapping[str, Sequence[Sequence[int]]], layouts: Layouts):
    from mycelia.parallel import strategy_pb2 as pb

    made = pb.ParallelStrategyMap(current_stage=stage)
    for name, strategy in operators.items():
        item = made.parallel_strategy_item.add(node_name=name)
        item.parallel_strategys.stage = stage
        for counts in strategy:
            item.parallel_strategys.parallel_strategy.add(dim=counts)
    for name, share in layouts.items():
        item = made.parallel_layout_item.add(param_name=name)
        found = item.parallel_layouts
        found.field = found.opt_weight_shard_step = found.opt_weight_shard_size = 0
        found.dev_matrix.add(dim=share.matrix)
        places = places_of(share)
        if all(len(group) < 2 for group in places):
            found.tensor_map.add(dim=[group[0] if group else -1 for group in places])
        else:
            for group in places:
                found.tensor_map.add(dim=group or [-1])
            if len(places) == 1:  # one alone would be that of all axes
                found.tensor_map.add()
        found.param_split_shape.add()
        found.indices_offset.add()
    return made


def _as_json(
    stage: int, operators: Mapping[str, Sequence[Sequence[int]]], layouts: Layouts
) -> dict[str, Any]:
    found: dict[str, Any] = {"current_stage": stage, "parallel_strategy_item": {}, "parallel_layout_item": {}}
    for name, strategy in operators.items():
        item = {"stage": stage, "parallel_strategy": [list(counts) for counts in strategy]}
        found["parallel_strategy_item"][name] = item
    for name, share in layouts.items():
        places = places_of(share)
        is_flat = all(len(group) < 2 for group in places)
        found["parallel_layout_item"][name] = {
            "dev_matrix": list(share.matrix),
            "tensor_map": [(group or [-1])[0] if is_flat else group or [-1] for group in places],
            "param_split_shape": [], "indices_offset": [],
            "field": 0, "opt_weight_shard_step": 0, "opt_weight_shard_size": 0,
        }  # fmt: skip
    return found


_said: dict[
    str, tuple[dict[str, list[list[int]]], Layouts]
] = {}  # by file: what was written, all graphs together


def save(operators: dict[str, list[list[int]]], layouts: Layouts) -> None:
    """Writes how a graph was divided into the file that the settings name, with what graphs of before have
    said: an evaluation knows of no states of the optimizer.
    """
    config = get_auto_parallel_context("strategy_ckpt_config")
    path = config.get("save_file") or get_auto_parallel_context("strategy_ckpt_save_file")
    if not path:
        return
    known = _said.setdefault(path, ({}, {}))
    if any(share.size != next(iter(layouts.values())).size for share in known[1].values()):
        known = _said[path] = {}, {}  # of other ranks
    known[0].update(operators)
    known[1].update({name: replace(share, rank=0) for name, share in layouts.items()})
    write(path, 0, *known)
