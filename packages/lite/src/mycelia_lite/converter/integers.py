"""Weights that were integers of 8 bits with scales in the source are stored so again, where nothing changes.

Importers compute with the numbers that such integers stand for and note the scales (`Source.scales`). A
weight of float32 whose every element is an integer times one of these scales becomes the integers with
`QuantParam`s, in MindSpore Lite's form: the node that reads it has the `quantType` QUANT_WEIGHT, scales
belong to the axis of the node's results. One of int32, of the exact products, gets a Cast in front.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from mycelia_lite.enums import DataType
from mycelia_lite.format import Table
from mycelia_lite.quant.readers import PLACES, WEIGHT_QUANT, axis_of, borders, common_axis, readers
from mycelia_lite.quant.stored import quant_params

_FEWEST = 64  # elements that are worth it
_PARAM = 28  # bytes of a QuantParam in the file
_CONSTANT, _VARIABLE = 0, 2  # Tensor.nodeType
_EXACT = (*PLACES, "Custom")  # nodes with products of int32


def store(model: Table, scales: Sequence[np.ndarray]) -> int:
    """Store weights as integers of 8 bits, in place; how many were.

    `scales`: vectors and single ones; if there are none the source had no such weights.
    """
    if not scales:
        return 0
    vectors: dict[int, list[np.ndarray]] = defaultdict(list)
    for scale in [np.ones(1), *scales]:
        vector = np.asarray(scale, np.float32).reshape(-1)
        if vector.size and not any(np.array_equal(vector, v) for v in vectors[vector.size]):
            vectors[vector.size].append(vector)
    used, edge = readers(model), borders(model)
    count = 0
    for index in range(len(model.allTensors)):
        tensor, uses = model.allTensors[index], used.get(index, [])
        if not uses or index in edge or len(tensor.quantParams):
            continue
        if tensor.dataType == int(DataType.FLOAT32) and len(tensor.data) >= 4 * _FEWEST:
            count += _store_floats(tensor, uses, vectors)
        elif tensor.dataType == int(DataType.INT32) and len(tensor.data) >= 4 * _FEWEST:
            count += _store_exact(model, index, uses)
    return count


def restore(model: Table) -> list[np.ndarray]:
    """Let stored integers be the float32 they stand for, in place; their scales. Other forms are left."""
    found: list[np.ndarray] = []
    for index, uses in readers(model).items():
        tensor = model.allTensors[index]
        params = tensor.quantParams
        kind = {int(DataType.INT8): np.int8, int(DataType.UINT8): np.uint8}.get(int(tensor.dataType))
        if not len(params) or kind is None or not len(tensor.data) or int(tensor.weightQuantCompressType):
            continue
        axes = {axis_of(node, place, len(tensor.dims)) for node, place in uses}
        several = len(params) > 1 and (len(axes) > 1 or None in axes)
        if several or any(int(node.quantType) != WEIGHT_QUANT for node, _ in uses):
            continue
        shape = [1] * len(tensor.dims)
        if len(params) > 1:
            shape[axes.pop()] = len(params)
        change = [p.varCorr if 0 <= p.varCorr <= 10 else 1 for p in params]
        scale = np.array([p.scale * c for p, c in zip(params, change)], np.float32)
        zero = np.array([p.zeroPoint for p in params], np.float32).reshape(shape)
        numbers = np.frombuffer(tensor.data, kind).reshape(tensor.dims).astype(np.float32)
        numbers = (numbers - zero) * scale.reshape(shape)
        shift = np.array([p.meanCorr for p in params], np.float32).reshape(shape)
        numbers = numbers + shift if shift.any() else numbers
        tensor.data = memoryview(np.ascontiguousarray(numbers).reshape(-1)).cast("B")
        tensor.dataType, tensor.quantParams = int(DataType.FLOAT32), []
        found.append(scale)
    for node in model.nodes:
        if int(node.quantType) == WEIGHT_QUANT and not any(
            len(model.allTensors[i].quantParams) for i in node.inputIndex
        ):
            node.quantType = 0
    return found


# ---- floats


def _store_floats(tensor: Table, uses: list[tuple[Table, int]], vectors: dict[int, list[np.ndarray]]) -> bool:
    if any(place not in PLACES.get(node.primitive.kind, ()) for node, place in uses):
        return False
    shape = [int(n) for n in tensor.dims]
    array = np.frombuffer(tensor.data, np.float32).reshape(shape)
    if not np.isfinite(array).all():
        return False
    axis = common_axis(uses, len(shape))
    kinds = [(None, v) for v in vectors[1]]
    if axis is not None and shape[axis] > 1 and _PARAM * shape[axis] < 3 * array.size:
        kinds += [(axis, v) for v in vectors[shape[axis]]]
    for where, scale in kinds:
        if (found := _integers(array, scale, where)) is None:
            continue
        integers, zeros = found
        tensor.data = memoryview(integers.reshape(-1)).cast("B")
        tensor.dataType = int(DataType.INT8)
        tensor.quantParams = quant_params(scale, zeros)
        for node, _ in uses:
            node.quantType = WEIGHT_QUANT
        return True
    return False


def _integers(array: np.ndarray, scale: np.ndarray, axis: int | None) -> tuple[np.ndarray, np.ndarray] | None:
    """Integers of 8 bits and zero points that give exactly `array` in float32; None if there are none."""
    rows = array.reshape(1, -1) if axis is None else np.moveaxis(array, axis, 0).reshape(len(scale), -1)
    column = scale.reshape(-1, 1)
    for part in (rows[:, :8], rows):  # most scales are not the one, which a few elements tell
        with np.errstate(all="ignore"):
            steps = np.round(part / column)
            if not np.array_equal(steps * column, part) or not (np.abs(steps) <= 255).all():
                return None
    low, high = steps.min(1), steps.max(1)
    zeros = np.where((low >= -128) & (high <= 127), 0, -128 - low)
    if ((low + zeros < -128) | (high + zeros > 127)).any():
        return None
    integers = (steps + zeros[:, None]).astype(np.int8)
    if axis is None:
        return integers.reshape(array.shape), zeros
    moved = [array.shape[axis], *np.delete(array.shape, axis)]
    return np.ascontiguousarray(np.moveaxis(integers.reshape(moved), 0, axis)), zeros


# ---- exact products


def _store_exact(model: Table, index: int, uses: list[tuple[Table, int]]) -> bool:
    tensor = model.allTensors[index]
    if any(place != 1 or node.primitive.kind not in _EXACT for node, place in uses):
        return False
    array = np.frombuffer(tensor.data, np.int32)
    kind = next((k for k in (np.int8, np.uint8) if np.array_equal(array.astype(k), array)), None)
    if kind is None:
        return False
    home = {int(n): graph for graph in model.subGraph for n in graph.nodeIndices}
    number = {id(node): i for i, node in enumerate(model.nodes)}
    homes = {id(home.get(number[id(node)])): home.get(number[id(node)]) for node, _ in uses}
    if len(homes) != 1 or None in homes.values():
        return False
    (graph,) = homes.values()
    name = f"{uses[0][0].name}/widened"
    narrow = Table(
        "Tensor", nodeType=_CONSTANT, dataType=int(DataType.of(np.dtype(kind))), dims=list(tensor.dims),
        format=tensor.format, name=tensor.name, data=memoryview(array.astype(kind)).cast("B"),
    )  # fmt: skip
    wanted = Table(
        "Tensor", nodeType=_CONSTANT, dataType=int(DataType.INT32), name=f"{name}:dtype",
        data=np.array([int(DataType.INT32)], np.int32).tobytes(),
    )  # fmt: skip
    tensor.name, tensor.nodeType, tensor.data = name, _VARIABLE, b""
    first = len(model.allTensors)
    model.allTensors.extend([narrow, wanted])
    node = Table(
        "CNode", name=name, primitive=Table("Cast"), inputIndex=[first, first + 1], outputIndex=[index]
    )
    graph.nodeIndices = [len(model.nodes), *graph.nodeIndices]
    graph.tensorIndices = [*graph.tensorIndices, first, first + 1]
    model.nodes.append(node)
    return True
