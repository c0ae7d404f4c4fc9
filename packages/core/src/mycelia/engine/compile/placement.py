"""Which device runs each node, and the copies between devices.

For a target with memory of its own: a node that the target does not support runs on the host, as `dispatch`
decided when it made its plan. Between them stand `device_copy` nodes; each value is copied once to each
device that reads it. Parameters and results of a graph lie on the target.
"""

from __future__ import annotations

from collections.abc import Mapping

from mycelia.engine import _C
from mycelia.engine.backends import registry
from mycelia.engine.ir.graph import Graph, Node, Value
from mycelia.engine.ops.control_flow.device import device_copy

_VIEW, _COPY = 1, 5  # kinds of Plan


def place(graph: Graph, plans: Mapping[Node, _C.Plan | None], home: int) -> dict[Value, int]:
    """Inserts copies into `graph`, which nobody else has, and gives the number of the device of each value
    that does not lie on device `home`. `plans`: what runs each node; None for Python code and inner
    programs, which find their inputs at home.
    """
    placing = _Placing(home)
    for node in graph.nodes:
        placing.add(node, plans[node])
    outputs = [placing.on(v, home) for v in graph.outputs]
    graph.nodes, graph.outputs = placing.nodes, outputs
    return placing.devices


class _Placing:
    def __init__(self, home: int) -> None:
        self.home = home
        self.nodes: list[Node] = []
        self.devices: dict[Value, int] = {}
        self.copies: dict[tuple[Value, int], Value] = {}

    def add(self, node: Node, plan: _C.Plan | None) -> None:
        if plan is not None and plan.kind == _VIEW:
            device = self.devices.get(node.inputs[0], self.home)
        else:
            device = self.home if plan is None else plan.device
            if plan is None or plan.kind != _COPY:
                node.inputs = [v if v is None else self.on(v, device) for v in node.inputs]
        self.nodes.append(node)
        self.put(node, device)

    def put(self, node: Node, device: int) -> None:
        if device != self.home:
            self.devices.update((v, device) for v in node.outputs)

    def on(self, value: Value, device: int) -> Value:
        """`value` on `device`: itself, or a copy."""
        if self.devices.get(value, self.home) == device:
            return value
        found = self.copies.get((value, device))
        if found is None:
            found = self.copies[value, device] = self.copy(value, device)
        return found

    def copy(self, value: Value, device: int) -> Value:
        if value.is_constant:  # the program has it there from the start
            made = Value(value.type, value.name, constant=value.constant)
            self.devices[made] = device
            return made
        attrs = {"device": registry.device_name(device)}
        node = Node(device_copy, [value], attrs, [value.type])
        self.nodes.append(node)
        self.put(node, device)
        return node.outputs[0]
