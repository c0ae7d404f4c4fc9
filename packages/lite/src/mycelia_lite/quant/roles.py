"""Which nodes of a model compute with integers of 8 bits: layers with weights, and what lies between them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import numpy as np

from mycelia_lite.enums import DataType
from mycelia_lite.format import Table
from mycelia_lite.quant.readers import borders, common_axis, readers

LAYERS = ("Conv2DFusion", "MatMulFusion", "FullConnection")
PRODUCTS = ("MatMulFusion", "FullConnection")
_POOLS = ("MaxPoolFusion", "AvgPoolFusion")
_PAIRS = ("AddFusion", "SubFusion", "MulFusion")
_MOVES = (
    "DepthToSpace", "ExpandDims", "Flatten", "Reshape", "SliceFusion", "SpaceToDepth", "Split", "Squeeze",
    "StridedSlice", "Transpose", "Unsqueeze",
)  # fmt: skip
_ELEMENTS = ("Activation", "Abs", "Elu", "Erf", "ExpFusion", "LeakyRelu", "Neg", "Sqrt", "Square")
_DEEPEST = 1 << 16  # terms of a sum in 32 bits
_LIMITS = ("NO_ACTIVATION", "RELU", "RELU6")


@dataclass
class Role:
    """A node that may compute with integers.

    data: tensors that it reads and that are computed or fed. constants: numbers that it reads beside them.
    results: what it writes. weights, bias: tensors of a layer, bias -1 for none. axis: of weights' scales.
    shares: whether data and results have one scale.
    """

    node: Table
    data: list[int]
    results: list[int]
    constants: list[int] = field(default_factory=list)
    weights: int = -1
    bias: int = -1
    axis: int = 0
    shares: bool = False

    @property
    def is_layer(self) -> bool:
        return self.weights >= 0

    @property
    def kind(self) -> str:
        return self.node.primitive.kind


@dataclass
class Limits:
    """What layers must have: more elements, more channels; names that are left out; kinds of nodes."""

    min_size: int = 0
    min_channels: int = 0
    skip: Collection[str] = ()
    kinds: Collection[str] = LAYERS


class Graph:
    """The first subgraph of a model, whose nodes may be quantized: `nodes` in the order of execution."""

    def __init__(self, model: Table) -> None:
        self.model = model
        order = model.subGraph[0].nodeIndices if model.subGraph else range(len(model.nodes))
        self.nodes = [model.nodes[int(i)] for i in order]
        own = {id(n) for n in self.nodes}
        self.uses = readers(model)
        self.edge = borders(model)
        self.outside = {
            int(i) for n in model.nodes if id(n) not in own for i in (*n.inputIndex, *n.outputIndex)
        }

    def is_constant(self, tensor: int) -> bool:
        return bool(len(self.model.allTensors[tensor].data))

    def is_float(self, tensor: int) -> bool:
        return self.model.allTensors[tensor].dataType == int(DataType.FLOAT32)

    def floats(self, tensor: int) -> np.ndarray:
        table = self.model.allTensors[tensor]
        return np.frombuffer(table.data, np.float32).reshape([int(n) for n in table.dims])


def find(graph: Graph, limits: Limits) -> tuple[list[Role], dict[int, tuple[Table, str]]]:
    """Nodes that may compute with integers; why layers may not, by their weights, with the node."""
    roles: list[Role] = []
    left: dict[int, tuple[Table, str]] = {}
    for node in graph.nodes:
        kind = node.primitive.kind
        role: Role | str | None
        if kind in LAYERS:
            weights = int(node.inputIndex[1]) if len(node.inputIndex) > 1 else -1
            role = _layer(graph, node, limits) if weights >= 0 else None
            if isinstance(role, str):
                if graph.is_constant(weights):
                    left[weights] = (node, role)
                role = None
        else:
            role = _follower(graph, node) if node.name not in limits.skip else None
        if role is not None:
            roles.append(role)
    return roles, left


def _layer(graph: Graph, node: Table, limits: Limits) -> Role | str:
    """A layer, or why it is none."""
    operator = node.primitive
    inputs = [int(i) for i in node.inputIndex]
    weights = inputs[1]
    if operator.kind not in limits.kinds:
        return f"{operator.kind} stays"
    if node.name in limits.skip:
        return f"'{node.name}' is skipped"
    if not graph.is_constant(weights) or graph.is_constant(inputs[0]):
        return "its weights are no constant, or its data are one"
    table = graph.model.allTensors[weights]
    if not graph.is_float(weights) or len(table.quantParams) or table.weightQuantCompressType:
        return "they are not float32"
    shape = [int(n) for n in table.dims]
    if weights in graph.edge or weights in graph.outside:
        return "they are an output, or read in another subgraph"
    if min(shape, default=0) < 1 or len(shape) != (4 if operator.kind == "Conv2DFusion" else 2):
        return "they are no matrix" if operator.kind in PRODUCTS else "they are no images' weights"
    if operator.kind == "Conv2DFusion":
        group = int(operator.group) or 1
        if group != 1 and not (shape[3] == 1 and shape[0] == group):
            return f"they are of {group} groups of several channels"
    if operator.kind == "MatMulFusion" and operator.transpose_a:
        return "its data are transposed"
    if np.prod(shape) <= limits.min_size:
        return f"of at most {limits.min_size} elements"
    axis = common_axis(graph.uses[weights], len(shape))
    if any(place != 1 or n.primitive.kind not in LAYERS for n, place in graph.uses[weights]) or axis is None:
        return "they are read as data, too, or along several axes"
    if np.prod(shape) // shape[axis] >= _DEEPEST:
        return f"of at least {_DEEPEST} for a channel, whose sums do not fit 32 bits"
    if shape[axis] <= limits.min_channels and len(shape) > 2:
        return f"of at most {limits.min_channels} channels"
    bias = -1
    if len(inputs) > 2 and (operator.kind != "FullConnection" or operator.has_bias):
        bias = inputs[2]
        if not graph.is_constant(bias) or not graph.is_float(bias):
            return "the bias is no constant of float32"
    return Role(node, inputs[:1], [int(node.outputIndex[0])], weights=weights, bias=bias, axis=axis)


def _follower(graph: Graph, node: Table) -> Role | None:
    operator = node.primitive
    kind = operator.kind
    inputs, results = [int(i) for i in node.inputIndex], [int(i) for i in node.outputIndex]
    if not inputs or graph.is_constant(inputs[0]) and kind not in _PAIRS:
        return None
    if kind in _MOVES:
        return Role(node, inputs[:1], results, shares=True)
    if kind in _ELEMENTS:
        return Role(node, inputs[:1], results) if len(inputs) == 1 else None
    if kind in _POOLS and operator.activation_type.name in _LIMITS:
        return Role(node, inputs[:1], results, shares=kind == "MaxPoolFusion")
    if kind == "ReduceFusion":
        return Role(node, inputs[:1], results) if _is_pixel_mean(graph, node) else None
    if kind == "Concat":
        return None if any(map(graph.is_constant, inputs)) else Role(node, inputs, results)
    if kind in _PAIRS and len(inputs) == 2 and operator.activation_type.name in _LIMITS:
        numbers = [i for i in inputs if graph.is_constant(i)]
        if len(numbers) == 2 or not all(graph.is_float(i) and i not in graph.edge for i in numbers):
            return None
        if any(not graph.floats(i).size or not np.isfinite(graph.floats(i)).all() for i in numbers):
            return None
        return Role(node, [i for i in inputs if i not in numbers], results, numbers)
    return None


def _is_pixel_mean(graph: Graph, node: Table) -> bool:
    operator = node.primitive
    if operator.mode.name != "ReduceMean" or operator.reduce_to_end or len(node.inputIndex) != 2:
        return False
    axes = graph.model.allTensors[int(node.inputIndex[1])]
    if axes.dataType != int(DataType.INT32) or not len(axes.data):
        return False
    rank = len(graph.model.allTensors[int(node.inputIndex[0])].dims)
    named = {int(a) % 4 for a in np.frombuffer(axes.data, np.int32)}
    return rank == 4 and named == {1, 2} and float(operator.coeff or 1) == 1


# ---- the choice


class Choice:
    """Which of the roles are taken: with the fewest casts between numbers and integers."""

    def __init__(
        self, graph: Graph, roles: Iterable[Role], floats: Collection[int], integer_results: bool = False
    ) -> None:
        """floats: tensors that are float32. integer_results: a layer gives no numbers, whoever reads them."""
        self._graph = graph
        self._integer_results = integer_results
        self._floats = floats
        roles = [r for r in roles if all(t in floats for t in (*r.data, *r.results))]
        self._readers: dict[int, list[int]] = {}  # nodes by what they read
        for node in graph.nodes:
            for tensor in {int(i) for i in node.inputIndex}:
                self._readers.setdefault(tensor, []).append(id(node))
        self._maker = {int(o): id(n) for n in graph.nodes for o in n.outputIndex}
        self.taken: dict[int, Role] = {}
        narrow: set[int] = set()
        for role in roles:
            if role.is_layer or all(t in narrow for t in role.data):
                self.taken[id(role.node)] = role
                narrow.update(role.results)
        followers = [r for r in roles if not r.is_layer]
        changes = True
        while changes:
            changes = False
            for role in [*reversed(followers), *followers]:
                changes = self._flip(role) or changes

    def _flip(self, role: Role) -> bool:
        """Take it, or no longer, if there are fewer casts then."""
        touched = {*role.data, *role.results}
        before = sum(map(self._casts, touched))
        key = id(role.node)
        was = self.taken.pop(key, None)
        if was is None:
            self.taken[key] = role
        if sum(map(self._casts, touched)) < before:
            return True
        if was is None:
            del self.taken[key]
        else:
            self.taken[key] = was
        return False

    def is_narrow(self, tensor: int) -> bool:
        """Whether there are integers of it."""
        maker = self.taken.get(self._maker.get(tensor, 0))
        if maker is not None and (self._integer_results or not maker.is_layer):
            return True
        return any(self._reads_integers(n, tensor) for n in self._readers.get(tensor, ()))

    def is_wide(self, tensor: int) -> bool:
        """Whether numbers of it are read, or it is made of numbers."""
        maker = self._maker.get(tensor, 0)
        return maker not in self.taken or self.is_read_wide(tensor) or not self.is_narrow(tensor)

    def is_read_wide(self, tensor: int) -> bool:
        """Whether someone reads numbers of it."""
        if tensor in self._graph.edge or tensor in self._graph.outside:
            return True
        return any(not self._reads_integers(n, tensor) for n in self._readers.get(tensor, ()))

    def _reads_integers(self, node: int, tensor: int) -> bool:
        role = self.taken.get(node)
        return role is not None and tensor in role.data

    def _casts(self, tensor: int) -> int:
        """Casts that the tensor takes: of a layer both forms come without one."""
        if not self.is_narrow(tensor):
            return 0
        if self._maker.get(tensor, 0) not in self.taken:
            return 1
        return int(self.is_read_wide(tensor))
