"""Channels that are made smaller where they are computed and larger where they are read: the model computes
the same, and its channels are easier to round.

What makes channels is a layer with weights, without an activation or with a ReLU, or a normalization with a
factor and a shift of each channel; between it and the layers that read them may be pools and ReLUs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mycelia_lite.format import Table
from mycelia_lite.quant.calibration import Data
from mycelia_lite.quant.measure import values
from mycelia_lite.quant.roles import LAYERS, Graph, Role

_ROUNDS = 20  # of equalization, until ranges hardly move
_LARGEST = 1e4  # factor between neighbouring channels


@dataclass
class Joint:
    """Channels between what makes them and all layers that read them.

    maker: the node. made: its constants whose first (of layers: of the results) axis is that of the channels.
    tensor: what the readers read.
    """

    maker: Table
    made: list[tuple[int, int]]  # (constant, axis)
    tensor: int
    readers: list[Role]


def joints(graph: Graph, layers: Sequence[Role]) -> list[Joint]:
    """Where channels may be scaled: nobody else reads them, nor the constants."""
    maker = {int(o): n for n in graph.nodes for o in n.outputIndex}
    by_data: dict[int, list[Role]] = {}
    for role in layers:
        by_data.setdefault(role.data[0], []).append(role)
    found = []
    for tensor, readers in by_data.items():
        start = _start(graph, tensor, {id(r.node) for r in readers}, maker)
        made = _constants(graph, start) if start is not None else None
        if made is None or any(not _has_channels_last(r) for r in readers):
            continue
        constants = {r.weights for r in readers} | {c for c, _ in made}
        if all(_is_own(graph, c, [r.node for r in readers] + [start]) for c in constants):
            found.append(Joint(start, made, tensor, readers))
    return found


def _start(graph: Graph, tensor: int, readers: set[int], maker: Mapping[int, Table]) -> Table | None:
    """The node that makes the channels of a tensor; None if others read them."""
    while tensor not in graph.edge and tensor not in graph.outside:
        if any(id(n) not in readers for n, _ in graph.uses[tensor]) or tensor not in maker:
            return None
        node = maker[tensor]
        kind, operator = node.primitive.kind, node.primitive
        if kind in LAYERS or kind == "LayerNormFusion":
            return node
        is_relu = kind == "Activation" and operator.activation_type.name == "RELU"
        is_pool = kind in ("MaxPoolFusion", "AvgPoolFusion") and operator.activation_type.name in (
            "NO_ACTIVATION", "RELU",
        )  # fmt: skip
        if not is_relu and not is_pool:
            return None
        readers, tensor = {id(node)}, int(node.inputIndex[0])
    return None


def _constants(graph: Graph, node: Table) -> list[tuple[int, int]] | None:
    """The constants of float32 that make a node's channels; None if they cannot be scaled."""
    kind, operator = node.primitive.kind, node.primitive
    inputs = [int(i) for i in node.inputIndex]
    if kind == "LayerNormFusion":
        made = [(i, 0) for i in inputs[1:3]]
        fits = len(made) == 2 and all(len(graph.model.allTensors[i].dims) == 1 for i, _ in made)
    else:
        if operator.activation_type.name not in ("NO_ACTIVATION", "RELU"):
            return None
        axis = 0
        if kind == "MatMulFusion":
            axis = 0 if operator.transpose_b else 1
        made = [(inputs[1], axis), *((i, 0) for i in inputs[2:3])]
        fits = kind == "Conv2DFusion" or len(graph.model.allTensors[inputs[1]].dims) == 2
    return made if fits and all(graph.is_constant(i) and graph.is_float(i) for i, _ in made) else None


def _has_channels_last(role: Role) -> bool:
    """Whether what a layer sums over is the last axis of its data."""
    operator = role.node.primitive
    return role.kind != "FullConnection" or not operator.use_axis or int(operator.axis) in (1, -1)


def _is_own(graph: Graph, constant: int, nodes: Sequence[Table]) -> bool:
    own = {id(n) for n in nodes}
    return constant not in graph.edge and all(id(n) in own for n, _ in graph.uses[constant])


def read_axis(role: Role) -> int:
    """The axis of a layer's weights along which it reads channels."""
    if role.kind == "Conv2DFusion":
        return 0 if int(role.node.primitive.group) > 1 else 3
    return 1 - role.axis


def scale(graph: Graph, joint: Joint, factors: np.ndarray) -> None:
    """Divide the channels by `factors` where they are made, and multiply them where they are read."""
    for constant, axis in joint.made:
        _multiply(graph, constant, axis, 1 / factors)
    for weights, axis in {(r.weights, read_axis(r)) for r in joint.readers}:
        _multiply(graph, weights, axis, factors)


def _multiply(graph: Graph, constant: int, axis: int, factors: np.ndarray) -> None:
    array = graph.floats(constant)
    spread = [1] * array.ndim
    spread[axis] = -1
    made = (array.astype(np.float64) * factors.reshape(spread)).astype(np.float32)
    graph.model.allTensors[constant].data = memoryview(np.ascontiguousarray(made).reshape(-1)).cast("B")


def sizes(graph: Graph, constant: int, axis: int) -> np.ndarray:
    """The largest magnitude of each channel of a constant."""
    array = np.moveaxis(np.abs(graph.floats(constant).astype(np.float64)), axis, 0)
    return array.reshape(len(array), -1).max(1)


def read_sizes(graph: Graph, joint: Joint) -> np.ndarray:
    """The largest weight of all that read each channel."""
    return np.max([sizes(graph, r.weights, read_axis(r)) for r in joint.readers], 0)


def fits(graph: Graph, joint: Joint) -> bool:
    """Whether as many channels are read as are made."""
    counts = {graph.floats(c).shape[a] for c, a in joint.made}
    counts |= {graph.floats(r.weights).shape[read_axis(r)] for r in joint.readers}
    return len(counts) == 1


def equalize(graph: Graph, layers: Sequence[Role]) -> int:
    """Let neighbouring layers have weights of equal ranges in each channel; how many places there were."""
    places = [j for j in joints(graph, layers) if j.maker.primitive.kind in LAYERS and fits(graph, j)]
    for _ in range(_ROUNDS if places else 0):
        largest = 1.0
        for joint in places:
            (weights, axis), *_ = joint.made
            first, second = sizes(graph, weights, axis), read_sizes(graph, joint)
            alive = (first > 0) & (second > 0)
            factors = np.sqrt(np.where(alive, first, 1) / np.where(alive, second, 1))
            factors = np.clip(factors, 1 / _LARGEST, _LARGEST)
            scale(graph, joint, factors)
            largest = max(largest, factors.max(), (1 / factors).max())
        if largest < 1.01:
            break
    return len(places)


def channel_sizes(
    model: Table, tensors: Iterable[int], data: Data, of: Callable[[np.ndarray], np.ndarray]
) -> dict[int, np.ndarray]:
    """Of each tensor what `of` gives for [elements, channels] of a run: the largest of all runs."""
    tensors = list(tensors)
    found: dict[int, np.ndarray] = {}
    for arrays in values(model, tensors, data) if tensors else ():
        for tensor, array in zip(tensors, arrays, strict=True):
            seen = of(np.abs(array).reshape(-1, array.shape[-1]))
            found[tensor] = np.maximum(found.get(tensor, 0), seen)
    return found


def smooth(graph: Graph, layers: Sequence[Role], share: float, data: Data) -> int:
    """Shift ranges from data to weights; how many places there were.

    share: of the logarithm of a channel's range that weights take, 0 to 1.
    """
    places = [
        j
        for j in joints(graph, layers)
        if all(r.kind != "Conv2DFusion" for r in j.readers) and fits(graph, j)
    ]
    largest = channel_sizes(graph.model, {j.tensor for j in places}, data, lambda a: a.max(0))
    for joint in places:
        seen, weights = largest[joint.tensor].astype(np.float64), read_sizes(graph, joint)
        alive = (seen > 0) & (weights > 0)
        factors = np.where(alive, seen, 1) ** share / np.where(alive, weights, 1) ** (1 - share)
        scale(graph, joint, np.clip(factors, 1 / _LARGEST, _LARGEST))
    return len(places)
