"""A model whose chosen nodes compute with integers of 8 bits, as MindSpore Lite's files have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mycelia_lite.enums import DataType
from mycelia_lite.format import Table
from mycelia_lite.quant.ranges import Grid
from mycelia_lite.quant.roles import Choice, Graph, Role
from mycelia_lite.quant.stored import quant_params

#: CNode.quantType of a node that computes with integers, and of one whose data get their scale as it runs.
QUANT_ALL, QUANT_DYNAMIC = 5, 6
_LARGEST = 127  # of a weight: both signs have as many
_MOST_BIAS = 1 << 24  # steps of a bias: what float32 has exactly


@dataclass
class Weights:
    """A layer's weights as integers: q in the order of the elements, a scale for each row along the axis."""

    q: np.ndarray
    scale: np.ndarray


@dataclass
class Integers:
    """What stands for the numbers of a model: `grids` of data and `weights` by their tensors, `biases` in
    float64 by the layers' results."""

    grids: Mapping[int, Grid]
    weights: Mapping[int, Weights]
    biases: dict[int, np.ndarray]


def rounded_weights(
    graph: Graph, layers: Sequence[Role], grids: Mapping[int, Grid], per_channel: bool
) -> dict[int, Weights]:
    """The weights of all layers, symmetric; a scale is so large that the bias fits, too."""
    found: dict[int, Weights] = {}
    for tensor in dict.fromkeys(role.weights for role in layers):
        readers = [role for role in layers if role.weights == tensor]
        array, axis = graph.floats(tensor), readers[0].axis
        rows = np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1)
        most = np.abs(rows).max(1).astype(np.float64) / _LARGEST
        for role in readers:
            if role.bias >= 0 and grids:
                bias = np.abs(graph.floats(role.bias).astype(np.float64))
                most = np.maximum(most, bias / (grids[role.data[0]].scale * _MOST_BIAS))
        if not per_channel:
            most = np.full_like(most, most.max())
        scale = np.maximum(most, np.finfo(np.float32).tiny).astype(np.float32)
        scale[most == 0] = 1
        q = np.clip(np.rint(rows / scale[:, None]), -_LARGEST, _LARGEST).astype(np.int8)
        shape = [array.shape[axis], *np.delete(array.shape, axis)]
        q = np.ascontiguousarray(np.moveaxis(q.reshape(shape), 0, axis))
        found[tensor] = Weights(q, scale if per_channel else scale[:1])
    return found


def float_biases(graph: Graph, layers: Sequence[Role]) -> dict[int, np.ndarray]:
    """The bias of each layer by its result, zeros where there is none."""
    found = {}
    for role in layers:
        channels = int(graph.model.allTensors[role.weights].dims[role.axis])
        bias = graph.floats(role.bias).astype(np.float64) if role.bias >= 0 else np.zeros(channels)
        found[role.results[0]] = np.array(bias, np.float64)
    return found


class Writer:
    """Nodes and tensors that are added to a model's."""

    def __init__(self, graph: Graph, integers: Integers) -> None:
        self.graph, self.integers = graph, integers
        self.tensors = list(graph.model.allTensors)
        self._made: dict[tuple, int] = {}

    def tensor(self, name: str, kind: DataType, like: Table | None = None, **fields) -> int:
        fields.setdefault("nodeType", 2)
        if like is not None:
            fields = {"dims": list(like.dims), "format": like.format} | fields
        self.tensors.append(Table("Tensor", name=name, dataType=int(kind), **fields))
        return len(self.tensors) - 1

    def constant(self, name: str, array: np.ndarray, **fields) -> int:
        kind = DataType.of(array.dtype)
        data = memoryview(np.ascontiguousarray(array).reshape(-1)).cast("B")
        return self.tensor(name, kind, nodeType=0, dims=list(array.shape), data=data, **fields)

    def cast(self, source: int, target: int) -> Table:
        """A node between numbers and integers; types are those of the tensors."""
        kinds = {"src_t": int(self.tensors[source].dataType), "dst_t": int(self.tensors[target].dataType)}
        name = f"{self.tensors[target].name}/QuantDTypeCast"
        node = Table("CNode", name=name, primitive=Table("QuantDTypeCast", **kinds))
        node.inputIndex, node.outputIndex, node.quantType = [source], [target], QUANT_ALL
        return node

    def grid(self, tensor: int) -> list[Table]:
        grid = self.integers.grids[tensor]
        return quant_params([grid.scale], [grid.zero])

    def weights(self, tensor: int) -> int:
        """The integers of weights, beside the numbers."""
        if ("w", tensor) not in self._made:
            weights, like = self.integers.weights[tensor], self.tensors[tensor]
            params = quant_params(weights.scale, np.zeros(len(weights.scale)))
            self._made["w", tensor] = self.constant(
                f"{like.name}/int8", weights.q, format=like.format, quantParams=params
            )
        return self._made["w", tensor]

    def bias(self, role: Role) -> int:
        """The bias in steps of the sums; -1 if it is nothing."""
        numbers = self.integers.biases[role.results[0]]
        weights = self.integers.weights[role.weights].scale.astype(np.float64)
        q = np.rint(numbers / (self.integers.grids[role.data[0]].scale * weights))
        q = np.clip(q, -(2**30), 2**30).astype(np.int32)
        if role.bias < 0 and not q.any():
            return -1
        return self.constant(f"{role.node.name}/bias", np.broadcast_to(q, numbers.shape))

    def number(self, tensor: int) -> int:
        """A constant that is read beside data, as integers."""
        if ("n", tensor) not in self._made:
            array, like = self.graph.floats(tensor), self.tensors[tensor]
            grid = Grid.of(float(array.min()), float(array.max()))
            self._made["n", tensor] = self.constant(
                f"{like.name}/int8", grid.integers(array), quantParams=quant_params([grid.scale], [grid.zero])
            )
        return self._made["n", tensor]

    def layer(self, node: Table, role: Role, data: int, result: int) -> None:
        """Let a layer's node read integers."""
        bias = self.bias(role)
        node.inputIndex = [data, self.weights(role.weights), *([bias] if bias >= 0 else [])]
        if role.kind == "FullConnection":
            node.primitive.has_bias = bias >= 0
        node.outputIndex, node.quantType = [result], QUANT_ALL


def store(graph: Graph, choice: Choice, integers: Integers) -> dict[int, int]:
    """Let the chosen nodes compute with integers, in place; tensors of integers by those of numbers."""
    writer = Writer(graph, integers)
    narrow: dict[int, int] = {}

    def made(tensor: int) -> int:
        """The integers of a tensor."""
        if tensor not in narrow:
            table = writer.tensors[tensor]
            if choice.is_wide(tensor):
                params = writer.grid(tensor)
                narrow[tensor] = writer.tensor(f"{table.name}/int8", DataType.INT8, table, quantParams=params)
            else:
                table.dataType, table.quantParams = int(DataType.INT8), writer.grid(tensor)
                narrow[tensor] = tensor
        return narrow[tensor]

    fed = graph.model.subGraph[0].inputIndices if graph.model.subGraph else graph.model.inputIndex
    makers = {int(o) for n in graph.nodes for o in n.outputIndex}
    begins = dict.fromkeys([*map(int, fed), *(t for r in choice.taken.values() for t in r.data)])
    nodes = [writer.cast(t, made(t)) for t in begins if t not in makers and choice.is_narrow(t)]
    for node in graph.nodes:
        role = choice.taken.get(id(node))
        nodes.append(node)
        for tensor in map(int, node.outputIndex):
            if not choice.is_narrow(tensor):
                continue
            if role is None:
                nodes.append(writer.cast(tensor, made(tensor)))
            elif choice.is_read_wide(tensor):
                nodes.append(writer.cast(made(tensor), tensor))
        if role is None:
            continue
        results = [made(t) if choice.is_narrow(t) else t for t in map(int, node.outputIndex)]
        if role.is_layer:
            writer.layer(node, role, made(role.data[0]), results[0])
            continue
        given = {**{t: made(t) for t in role.data}, **{t: writer.number(t) for t in role.constants}}
        node.inputIndex = [given.get(int(i), int(i)) for i in node.inputIndex]
        node.outputIndex, node.quantType = results, QUANT_ALL
    replace(graph.model, nodes, writer.tensors)
    return narrow


def replace(model: Table, nodes: Sequence[Table], tensors: Sequence[Table]) -> None:
    """Let the first subgraph have these nodes, in the order of execution."""
    before = len(model.allTensors)
    model.allTensors = list(tensors)
    if not model.subGraph:
        model.nodes = list(nodes)
    else:
        first = model.subGraph[0]
        others = {int(i) for graph in model.subGraph[1:] for i in graph.nodeIndices}
        kept = [n for i, n in enumerate(model.nodes) if i in others]
        places = {old: i for i, old in enumerate(sorted(others))}
        for graph in model.subGraph[1:]:
            graph.nodeIndices = [places[int(i)] for i in graph.nodeIndices]
        first.nodeIndices = list(range(len(kept), len(kept) + len(nodes)))
        first.tensorIndices = [*first.tensorIndices, *range(before, len(tensors))]
        model.nodes = [*kept, *nodes]


def drop_unread(model: Table) -> None:
    """Take tensors away that nothing names, and count the others anew."""
    lists = [(node, name) for node in model.nodes for name in ("inputIndex", "outputIndex")]
    lists += [(model, name) for name in ("inputIndex", "outputIndex")]
    lists += [(graph, name) for graph in model.subGraph for name in ("inputIndices", "outputIndices")]
    read = sorted({int(i) for table, name in lists for i in getattr(table, name)})
    places = {old: new for new, old in enumerate(read)}
    for table, name in lists:
        setattr(table, name, [places[int(i)] for i in getattr(table, name)])
    for graph in model.subGraph:
        graph.tensorIndices = [places[int(i)] for i in graph.tensorIndices if int(i) in places]
    model.allTensors = [model.allTensors[i] for i in read]
