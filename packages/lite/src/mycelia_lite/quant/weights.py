"""Weights of fewer bits in the tables of a model; data, inputs and outputs stay what they are."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from mycelia_lite.enums import DataType
from mycelia_lite.format import Table
from mycelia_lite.quant import feedback, search, widths
from mycelia_lite.quant.feedback import round_fed_back
from mycelia_lite.quant.readers import PLACES, WEIGHT_QUANT, Homes, Uses, borders, common_axis, readers
from mycelia_lite.quant.roles import Graph, Limits, Role, find
from mycelia_lite.quant.rounding import Rounded, round_for_code, round_rows
from mycelia_lite.quant.settings import WeightQuantization
from mycelia_lite.quant.stored import quant_params, shortened, store, store_compact


@dataclass(frozen=True)
class Layer:
    """What became of weights that a node reads.

    node, kind, tensor: names, and the operator's. shape: of the weights. bits: 0 if they were left as they
    are, and then why. scales: how many. bytes: of the integers. error: root of the mean square of what they
    depart by, relative to their own. cosine: between what they were and are. meaning: (scales, zeros,
    shifts), with which integers stand for (q - zero) * scale + shift. after: what they stand for, if data are
    quantized, too. of_results: if there are data, the root of the mean square of what results depart by,
    relative to their own.
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
    of_results: float | None = None


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
        fits = len(shape) == 2 and axis is not None and how.group and shape[1 - axis] % how.group == 0
        group = how.group if fits else 0
        is_compact = (
            (how.compact or how.encode or group > 0) and axis in (0, len(shape) - 1) and homes.are_one(uses)
        )
        found.append(_Found(node, index, uses, array, axis, group, is_compact))
    if not found:
        reasons = "; ".join(f"'{layer.node}': {layer.why}" for layer in list(layers.values())[:5])
        raise ValueError(f"the model has no weights to quantize{': ' if reasons else ''}{reasons}")
    makers = []
    products: Mapping[int, np.ndarray] = {}
    if how.error_feedback or how.scale_search:
        found, products = _with_data(model, how, found)
    for one, bits in zip(found, _widths([one.rows for one in found], how), strict=True):
        known = products.get(one.index) if one.axis is not None else None
        if known is not None and how.error_feedback:
            rounded = round_fed_back(one.channels, known, bits, how.bias_correction, one.group)
        elif how.encode and one.is_compact:
            most = how.most_error if not how.bits and not how.most_bytes else 0.0
            bits = min(bits + 1, 8) if most else bits  # levels that are not used take nothing
            rounded = round_for_code(one.rows, bits, how.bias_correction, how.code_slack, most)
        else:
            rounded = round_rows(one.rows, bits, how.bias_correction)
        rounded = shortened(rounded) if one.is_compact else rounded
        layers[one.index] = _measured(one, model.allTensors[one.index], rounded, bits, known)
        if (node := _store(model, one, rounded, bits, how.encode)) is not None:
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
    """Weights that are to be quantized: with a scale for each index of `axis`, or `group` of its weights."""

    node: Table
    index: int
    uses: Uses
    array: np.ndarray
    axis: int | None
    group: int
    is_compact: bool

    @property
    def channels(self) -> np.ndarray:
        """A row for each index of the axis."""
        if self.axis is None:
            return self.array.reshape(1, -1)
        return np.moveaxis(self.array, self.axis, 0).reshape(self.array.shape[self.axis], -1)

    @property
    def rows(self) -> np.ndarray:
        """A row for each scale."""
        return self.channels.reshape(-1, self.group) if self.group else self.channels


def _with_data(
    model: Table, how: WeightQuantization, found: list[_Found]
) -> tuple[list[_Found], Mapping[int, np.ndarray]]:
    """The weights, after a search for factors if that is asked for, and products of what they multiply."""
    graph = Graph(model.copy())
    chosen = {one.index: one for one in found}
    roles = [r for r in find(graph, Limits())[0] if r.is_layer and r.weights in chosen]
    products = feedback.products(graph, roles, how.calibration)
    if not how.scale_search:
        return found, products
    widths_of = dict(zip(chosen, _widths([one.rows for one in found], how), strict=True))

    def rounded(role: Role, channels: np.ndarray) -> np.ndarray:
        rows = channels.reshape(-1, chosen[role.weights].group or channels.shape[1])
        made = round_rows(rows, widths_of[role.weights], how.bias_correction)
        return made.numbers().reshape(channels.shape)

    if search.scale_channels(graph, roles, products, how.calibration, rounded):
        products = feedback.products(graph, roles, how.calibration)
        for tensor, scaled in zip(model.allTensors, graph.model.allTensors, strict=True):
            tensor.data = scaled.data
        found = [replace(one, array=graph.floats(one.index)) for one in found]
    return found, products


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


def _measured(
    found: _Found, tensor: Table, rounded: Rounded, bits: int, products: np.ndarray | None
) -> Layer:
    was, now = found.rows.astype(np.float64).ravel(), rounded.numbers().astype(np.float64).ravel()
    size, other = np.linalg.norm(was), np.linalg.norm(now)
    error = float(np.linalg.norm(now - was) / size) if size else 0.0
    cosine = float(was @ now / (size * other)) if size and other else float(size == other)
    results = None
    if products is not None:
        after = rounded.numbers().reshape(found.channels.shape)
        results = float(np.sqrt(max(feedback.lost(found.channels, after, products), 0)))
    return Layer(
        found.node.name, found.node.primitive.kind, tensor.name, tuple(int(n) for n in tensor.dims), bits, "",
        len(rounded.scale), -(-was.size * bits // 8), error, cosine,
        (rounded.scale, rounded.zero, rounded.shift), of_results=results,
    )  # fmt: skip


def _store(model: Table, found: _Found, rounded: Rounded, bits: int, encode: bool) -> Table | None:
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
        return store_compact(model, found.index, q, bits, axis, rounded, found.group, encode)
    store(tensor, q, bits, quant_params(rounded.scale, rounded.zero, rounded.shift, bits))
    return None
