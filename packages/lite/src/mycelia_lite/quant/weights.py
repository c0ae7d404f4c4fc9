"""Weights of fewer bits in the tables of a model; data, inputs and outputs stay what they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mycelia_lite.enums import DataType
from mycelia_lite.format import Table
from mycelia_lite.quant.readers import PLACES, WEIGHT_QUANT, Uses, borders, common_axis, readers
from mycelia_lite.quant.rounding import Rounded, round_rows
from mycelia_lite.quant.settings import WeightQuantization
from mycelia_lite.quant.stored import quant_params, store


@dataclass(frozen=True)
class Layer:
    """What became of weights that a node reads.

    node, tensor: names. bits: 0 if they were left as they are, and then why. scales: how many. bytes: of them
    and the integers. error: root of the mean square of what they depart by, relative to their own. cosine:
    between what they were and are.
    """

    node: str
    tensor: str
    bits: int = 0
    why: str = ""
    scales: int = 0
    bytes: int = 0
    error: float = 0.0
    cosine: float = 1.0


def quantize_weights(model: Table, how: WeightQuantization) -> list[Layer]:
    """Store weights of convolutions, products, tables and recurrent layers in fewer bits, in place.

    Errors: ValueError if a weight is NaN or infinite, a name in `skip` is that of no node, or nothing is left
    to be quantized; the model is then as it was.
    """
    names = {node.name for node in model.nodes}
    if unknown := sorted(set(how.skip) - names):
        raise ValueError(f"skip: no node is called '{unknown[0]}'")
    layers: list[Layer] = []
    found: list[tuple[Table, Uses, Rounded, int | None]] = []
    edge = borders(model)
    for index, uses in readers(model).items():
        tensor = model.allTensors[index]
        if not any(place in PLACES.get(node.primitive.kind, ()) for node, place in uses) or not len(
            tensor.data
        ):
            continue
        node = next(node.name for node, place in uses if place in PLACES.get(node.primitive.kind, ()))
        if why := _left(tensor, uses, how, index in edge):
            layers.append(Layer(node, tensor.name, why=why))
            continue
        shape = [int(n) for n in tensor.dims]
        array = np.frombuffer(tensor.data, np.float32).reshape(shape)
        if not np.isfinite(array).all():
            kind = "NaN" if np.isnan(array).any() else "infinite"
            raise ValueError(f"the weights '{tensor.name}' of node '{node}' have elements that are {kind}")
        axis = common_axis(uses, len(shape)) if how.per_channel else None
        rows = array.reshape(1, -1) if axis is None else np.moveaxis(array, axis, 0).reshape(shape[axis], -1)
        rounded = round_rows(rows, how.bits, how.bias_correction)
        found.append((tensor, uses, rounded, axis))
        layers.append(_measured(node, tensor, rows, rounded, how.bits))
    if not found:
        reasons = "; ".join(f"'{layer.node}': {layer.why}" for layer in layers[:5])
        raise ValueError(f"the model has no weights to quantize{': ' if reasons else ''}{reasons}")
    for tensor, uses, rounded, axis in found:
        _store(tensor, uses, rounded, axis, how.bits)
    return layers


def _left(tensor: Table, uses: Uses, how: WeightQuantization, is_border: bool) -> str:
    """Why weights stay as they are; "" if they do not."""
    if tensor.dataType != int(DataType.FLOAT32) or len(tensor.quantParams) or tensor.weightQuantCompressType:
        return "they are not float32"
    if is_border:
        return "they are an output"
    if any(place not in PLACES.get(node.primitive.kind, ()) for node, place in uses):
        return "they are read as data, too"
    if skipped := [node.name for node, _ in uses if node.name in how.skip]:
        return f"'{skipped[0]}' is skipped"
    shape = [int(n) for n in tensor.dims]
    if len(shape) < 2 or min(shape) < 1:
        return "they are no matrix"
    if np.prod(shape) <= how.min_size:
        return f"of at most {how.min_size} elements"
    axis = common_axis(uses, len(shape))
    if len(shape) > 2 and shape[axis or 0] <= how.min_channels:
        return f"of at most {how.min_channels} channels"
    return ""


def _measured(node: str, tensor: Table, rows: np.ndarray, rounded: Rounded, bits: int) -> Layer:
    was, now = rows.astype(np.float64).ravel(), rounded.numbers().astype(np.float64).ravel()
    size, other = np.linalg.norm(was), np.linalg.norm(now)
    error = float(np.linalg.norm(now - was) / size) if size else 0.0
    cosine = float(was @ now / (size * other)) if size and other else float(size == other)
    scales = len(rounded.scale)
    return Layer(node, tensor.name, bits, "", scales, -(-was.size * bits // 8) + 4 * scales, error, cosine)


def _store(tensor: Table, uses: Uses, rounded: Rounded, axis: int | None, bits: int) -> None:
    shape = [int(n) for n in tensor.dims]
    q = rounded.q
    if axis is not None:
        moved = [shape[axis], *(n for i, n in enumerate(shape) if i != axis)]
        q = np.moveaxis(q.reshape(moved), 0, axis)
    store(tensor, q, bits, quant_params(rounded.scale, rounded.zero, rounded.shift, bits))
    for node, _ in uses:
        node.quantType = WEIGHT_QUANT
