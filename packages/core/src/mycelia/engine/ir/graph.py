"""The graph: values, nodes, and graphs made of them.

A graph is a pure function in static single assignment form: its nodes are listed in the order
in which they may run. Control flow is structured: `cond`, `while_loop`, `while_history` and `scan`
are ordinary ops whose regions are Graphs held as attributes. A region is closed: it uses only its own
parameters, nodes and constants.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from mycelia.engine.base.errors import Place
from mycelia.engine.ir.types import TensorType

_LIST = 2  # kind of a parameter that takes a tuple of tensors; see ops.define


class Value:
    """One tensor in a graph: a parameter, an output of a node, or a constant. Equal only to itself."""

    __slots__ = ("type", "name", "producer", "constant", "is_number", "__weakref__")

    def __init__(
        self, type: TensorType, name: str = "", producer: Node | None = None, constant: Any = None
    ) -> None:
        self.type = type
        self.name = name
        self.producer = producer
        self.constant = constant  # a Tensor: the value is this tensor in every run
        self.is_number = False  # the captured code has a Python number here

    @property
    def is_constant(self) -> bool:
        return self.constant is not None

    def __repr__(self) -> str:
        return f"Value({self.name or hex(id(self))}: {self.type})"


class Node:
    """One use of an op. `inputs` is flat: a list parameter of the op takes as many entries as it has members,
    an optional parameter that is not given is None. `attrs` holds every attribute of the op's schema.
    """

    __slots__ = ("op", "inputs", "attrs", "outputs", "location", "parts", "made_by", "__weakref__")

    def __init__(
        self,
        op: Any,
        inputs: Iterable[Value | None],
        attrs: dict[str, Any],
        output_types: Iterable[TensorType],
        location: Place | None = None,
    ) -> None:
        self.op = op
        self.inputs = list(inputs)
        self.attrs = attrs
        self.location = location
        self.parts: tuple[Node, ...] = ()  # what a pass made it of, in order, if that is more than one node
        self.made_by = ""  # which pass that was
        self.outputs = [Value(t, producer=self) for t in output_types]

    @property
    def has_effect(self) -> bool:
        """True if it must run, in order, even when nobody uses its results. (An op that updates its inputs
        gives new values in a graph: it has none.)"""
        definition = self.op.definition
        if definition.effect and not definition.updates:
            return True
        return any(node.has_effect for region in self.regions for node in region.nodes)

    @property
    def regions(self) -> list[Graph]:
        """The graphs among the attributes."""
        names = self.op.definition.any_attrs  # only these may hold a graph
        return [a for a in map(self.attrs.get, names) if isinstance(a, Graph)] if names else []

    def __repr__(self) -> str:
        return f"Node({self.op.name}, {len(self.inputs)} in, {len(self.outputs)} out)"


def flat_parts(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """The nodes, those that were made of others taken apart."""
    return tuple(part for node in nodes for part in (node.parts or (node,)))


class Graph:
    """A function of tensors: parameters, nodes in order of execution, outputs. Equal only to itself."""

    __slots__ = ("name", "parameters", "nodes", "outputs", "cache", "__weakref__")

    def __init__(self, name: str = "main") -> None:
        self.name = name
        self.parameters: list[Value] = []
        self.nodes: list[Node] = []
        self.outputs: list[Value] = []
        # What others derived from this graph (its program, its gradient), by a key of theirs. A graph that
        # has entries
        # here is not changed any more.
        self.cache: dict[Any, Any] = {}

    def add_parameter(self, type: TensorType, name: str = "") -> Value:
        value = Value(type, name)
        self.parameters.append(value)
        return value

    def append(
        self,
        op: Any,
        inputs: Iterable[Value | None],
        attrs: dict[str, Any],
        output_types: Iterable[TensorType],
        location: Place | None = None,
    ) -> Node:
        node = Node(op, inputs, attrs, output_types, location)
        self.nodes.append(node)
        return node

    @property
    def parameter_types(self) -> tuple[TensorType, ...]:
        return tuple(v.type for v in self.parameters)

    @property
    def output_types(self) -> tuple[TensorType, ...]:
        return tuple(v.type for v in self.outputs)

    def __repr__(self) -> str:
        sizes = f"{len(self.parameters)} parameters, {len(self.nodes)} nodes, {len(self.outputs)} outputs"
        return f"Graph({self.name}: {sizes})"


def group_inputs(op: Any, flat: Sequence[Any]) -> list[Any]:
    """Flat inputs of a node as the op's parameters take them:
    a list parameter (always the first) gets a tuple.
    """
    params = op.definition.params
    if not params or params[0][1] != _LIST:
        return list(flat)
    members = len(flat) - (len(params) - 1)
    return [tuple(flat[:members]), *flat[members:]]


class Builder:
    """Appends nodes to `graph` (or inserts them before `position`) and infers their output types."""

    def __init__(self, graph: Graph, location: Place | None = None) -> None:
        self.graph = graph
        self.location = location
        self.added: list[Node] = graph.nodes

    def emit(
        self,
        op: Any,
        inputs: Sequence[Value | None],
        attrs: dict[str, Any] | None = None,
        known: Sequence[TensorType] | None = None,
    ) -> list[Value]:
        """One use of `op` on flat `inputs`; attributes that are not given take their defaults. `known`: the
        types of the results, where they follow from those of another node.
        """
        definition = op.definition
        given = attrs or {}
        complete = definition.canonical_attrs(tuple(given.get(a.name, a.default) for a in definition.attrs))
        if known is None:
            types = group_inputs(op, [v and v.type for v in inputs])
            known = definition.infer_types(tuple(types), complete)
        node = Node(op, inputs, complete, known, self.location)
        self.added.append(node)
        return node.outputs

    def constant(self, tensor: Any) -> Value:
        return Value(TensorType(tensor.dtype, tensor.shape), constant=tensor)
