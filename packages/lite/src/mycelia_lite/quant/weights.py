"""Weights of fewer bits in the tables of a model; data, inputs and outputs stay what they are."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np

from mycelia_lite.enums import DataType
from mycelia_lite.format import Table
from mycelia_lite.quant import widths
from mycelia_lite.quant.readers import PLACES, WEIGHT_QUANT, Homes, Uses, borders, common_axis, readers
from mycelia_lite.quant.rounding import Rounded, round_rows
from mycelia_lite.quant.settings import WeightQuantization
from mycelia_lite.quant.stored import quant_params, shortened, store, store_compact


@dataclass(frozen=True)
class Layer:
    """What became of weights that a node reads.

    node, kind, tensor: names, and the operator's. shape: of the weights. bits: 0 if they were left as they
    are, and then why. scales: how many. bytes: of the integers. error: root of the mean square of what they
    depart by, relative to their own. cosine: between what they were and are. meaning: (scales, zeros,
    shifts), with which integers stand for (q - zero) * scale + shift. after: what they stand for, if data are
    quantized, too.
    """

    node: str
    kind: str
    tensor: str
    shape: tuple[int, ...]
    bits: int = 0
    why: str = ""
    scales: int = 0
    bytes: int = 0
    error: float = 0.0
    cosine: float = 1.0
    meaning: tuple[np.ndarray, ...] = field(default=((), (), ()), repr=False, compare=False)
    after: np.ndarray | None = field(default=None, repr=False, compare=False)


def check_names(model: Table, skip: Collection[str]) -> None:
    """Errors: ValueError for a name that no node has."""
    if unknown := sorted(set(skip) - {node.name for node in model.nodes}):
        raise ValueError(f"skip: no node is called '{unknown[0]}'")


def quantize_weights(model: Table, how: WeightQuantization) -> list[Layer]:
    """Store weights of convolutions, products, tables and recurrent layers in fewer bits, in place.

    Errors: ValueError if a weight is NaN or infinite, a name in `skip` is that of no node, or nothing is left
    to be quantized; the model is then as it was.
    """
    check_names(model, how.skip)
    layers: dict[int, Layer] = {}
    found: list[_Found] = []
    used, edge, homes = readers(model), borders(model), Homes(model)
    for index, uses in used.items():
        tensor = model.allTensors[index]
        if not any(place in PLACES.get(node.primitive.kind, ()) for node, place in uses) or not len(
            tensor.data
        ):
            continue
        node = next(node for node, place in uses if place in PLACES.get(node.primitive.kind, ()))
        shape = [int(n) for n in tensor.dims]
        if why := _left(tensor, uses, how, index in edge):
            layers[index] = Layer(node.name, node.primitive.kind, tensor.name, tuple(shape), why=why)
            continue
        array = np.frombuffer(tensor.data, np.float32).reshape(shape)
        if not np.isfinite(array).all():
            kind = "NaN" if np.isnan(array).any() else "infinite"
            raise ValueError(
                f"the weights '{tensor.name}' of node '{node.name}' have elements that are {kind}"
            )
        axis = common_axis(uses, len(shape)) if how.per_channel else None
        rows = array.reshape(1, -1) if axis is None else np.moveaxis(array, axis, 0).reshape(shape[axis], -1)
        fits = len(shape) == 2 and axis is not None and how.group and rows.shape[1] % how.group == 0
        group = how.group if fits else 0
        rows = rows.reshape(-1, group) if group else rows
        is_compact = (how.compact or group > 0) and axis in (0, len(shape) - 1) and homes.are_one(uses)
        found.append(_Found(node, index, uses, rows, axis, group, is_compact))
    if not found:
        reasons = "; ".join(f"'{layer.node}': {layer.why}" for layer in list(layers.values())[:5])
        raise ValueError(f"the model has no weights to quantize{': ' if reasons else ''}{reasons}")
    makers = []
    for one, bits in zip(found, _widths([one.rows for one in found], how), strict=True):
        rounded = round_rows(one.rows, bits, how.bias_correction)
        rounded = shortened(rounded) if one.is_compact else rounded
        layers[one.index] = _measured(one, model.allTensors[one.index], rounded, bits)
        if (node := _store(model, one, rounded, bits)) is not None:
            makers.append((node, one.uses))
    homes.prepend(makers)
    return [layers[index] for index in used if index in layers]


def _widths(rows: list[np.ndarray], how: WeightQuantization) -> list[int]:
    if how.bits:
        return [how.bits] * len(rows)
    if how.most_bytes:
        return widths.by_size(rows, how.most_bytes, how.bias_correction)
    return widths.by_error(rows, how.most_error, how.bias_correction)


@dataclass(frozen=True)
class _Found:
    """Weights that are to be quantized, by rows along `axis`, or by groups of these."""

    node: Table
    index: int
    uses: Uses
    rows: np.ndarray
    axis: int | None
    group: int
    is_compact: bool


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


def _measured(found: _Found, tensor: Table, rounded: Rounded, bits: int) -> Layer:
    was, now = found.rows.astype(np.float64).ravel(), rounded.numbers().astype(np.float64).ravel()
    size, other = np.linalg.norm(was), np.linalg.norm(now)
    error = float(np.linalg.norm(now - was) / size) if size else 0.0
    cosine = float(was @ now / (size * other)) if size and other else float(size == other)
    return Layer(
        found.node.name, found.node.primitive.kind, tensor.name, tuple(int(n) for n in tensor.dims), bits, "",
        len(rounded.scale), -(-was.size * bits // 8), error, cosine,
        (rounded.scale, rounded.zero, rounded.shift),
    )  # fmt: skip


def _store(model: Table, found: _Found, rounded: Rounded, bits: int) -> Table | None:
    """Store integers; the node that makes weights of them if there is one."""
    tensor, axis = model.allTensors[found.index], found.axis
    shape = [int(n) for n in tensor.dims]
    q = rounded.q
    if axis is not None:
        moved = [shape[axis], *(n for i, n in enumerate(shape) if i != axis)]
        q = np.moveaxis(q.reshape(moved), 0, axis)
    for node, _ in found.uses:
        node.quantType = WEIGHT_QUANT
    if found.is_compact:
        return store_compact(model, found.index, q, bits, axis, rounded, found.group)
    store(tensor, q, bits, quant_params(rounded.scale, rounded.zero, rounded.shift, bits))
    return None
