"""Watchpoints that the service set, checked in the training at the end of a step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mycelia.debug.conditions import (
    CATALOGUE,
    NO_VALUE,
    OUT_OF_MEMORY,
    Around,
    Condition,
    Hit,
    Memory,
    check,
)
from mycelia.debug.messages import debugger_pb2 as messages
from mycelia.debug.messages.graphs import graph_name
from mycelia.debug.online.steps import GraphValues, Steps
from mycelia.debug.statistics import array_of
from mycelia.engine.tensors.tensor import Tensor

#: Numbers of MindSpore's enum -> a condition with the formula; which nodes it is for the service decided.
CONDITIONS = {
    2: "operator_overflow", 13: "tensor_overflow", 14: "weight_initialization", 15: "tensor_too_large",
    16: "tensor_too_small", 17: "tensor_all_zero", 18: "weight_change_too_large",
    19: "weight_change_too_small", 20: "weight_not_changed", 21: "tensor_range",
    # beyond MindSpore's
    101: "dead_relu", 102: "saturated_activation", 103: "loss_not_decreasing", 104: "gradient_norm",
    105: "update_ratio", 106: "nan_born", 107: "expression",
    108: "rank_mismatch",
}  # fmt: skip
_SAME = {
    "weight_overflow": 13, "gradient_exploding": 13, "weight_too_large": 15, "gradient_too_large": 15,
    "weight_too_small": 16, "gradient_vanishing": 16, "activation_range": 21,
}  # fmt: skip


def number_of(condition: Condition) -> int:
    """The number of a condition: MindSpore's enum, and ours beyond it."""
    return _SAME.get(condition.id) or next(n for n, name in CONDITIONS.items() if name == condition.id)


@dataclass(slots=True)
class Watch:
    """A condition on nodes, each (graph, full name). `memory`: values of steps that may be kept no more."""

    number: int
    condition: Condition
    given: dict[str, Any]
    nodes: dict[tuple[str, str], None]  # a set in its order
    sent: Any  # the condition as the service sent it
    memory: Memory

    def looks_at(self, graph: str, name: str) -> bool:
        return (graph, name) in self.nodes or ("", name) in self.nodes


def read(command: Any) -> Watch:
    """The watchpoint of a SetCMD.  Errors: ValueError, TypeError for a condition that is none."""
    sent = command.watch_condition
    found = CATALOGUE.get(CONDITIONS.get(sent.condition, ""))
    if found is None:
        raise ValueError(f"condition {sent.condition} is not known")
    known = {p.name: p for p in found.parameters}
    given = {
        p.name: _value(known[p.name].type if p.name in known else "", p)
        for p in sent.params
        if not p.disabled
    }
    found.values(given)
    nodes = dict.fromkeys(
        (n.graph_name, n.node_name.rpartition("/")[2] if n.node_type == "Parameter" else n.node_name)
        for n in command.watch_nodes
    )
    return Watch(command.id, found, given, nodes, sent, Memory(found, given))


def _value(kind: str, sent: Any) -> Any:
    return sent.text if kind == "STRING" else bool(sent.value) if kind == "BOOL" else sent.value


def hits(watches: list[Watch], steps: Steps, iteration: int, is_over: bool = True) -> Iterator[Any]:
    """The messages `WatchpointHit` of a step, but of conditions that compare ranks: see `ranks`.

    `is_over`: it has run to its end, so that later steps look back at it.
    """
    watches = [w for w in watches if not w.condition.compares_ranks]
    for number, values in steps.get(iteration, {}).items():
        graph = graph_name(number)
        for watch in watches if is_over else ():
            _forget_missing(watch, values, number, graph)
        for name in values.names():
            for watch in watches:
                if watch.looks_at(graph, name):
                    for slot, tensor in enumerate(values.outputs(name)):
                        found = _checked(watch, steps, iteration, (number, name, slot), tensor, is_over)
                        if found.hit or found.error_code:
                            yield _message(watch, graph, name, slot, found)
        for watch in watches if steps.is_full else ():
            for where, name in watch.nodes:
                if where == graph and not values.outputs(name):
                    yield _message(watch, graph, name, 0, Hit(False, NO_VALUE | OUT_OF_MEMORY))


def _forget_missing(watch: Watch, values: GraphValues, number: int, graph: str) -> None:
    """Of what a step of its graph lacks there is no step before for those that come."""
    for where, name in watch.nodes if watch.memory.depth else ():
        if where in ("", graph) and not values.outputs(name):
            slot = 0
            while watch.memory.forget((number, name, slot)):
                slot += 1


def _checked(
    watch: Watch, steps: Steps, iteration: int, key: tuple[int, str, int], tensor: Tensor, is_over: bool
) -> Hit:
    number, name, slot = key

    def kept(step: int) -> Iterator[np.ndarray]:
        return map(array_of, steps.before(step, number, name, str(slot)))

    array = array_of(tensor)
    earlier = watch.memory.earlier(key, iteration, kept)
    if is_over:
        watch.memory.add(key, iteration, array)
    operator, inputs, _ = steps[iteration][number].calls.get(name, (None, (), ()))
    read = None
    if watch.condition.reads_inputs and all(t is not None for t in inputs):
        read = [array_of(t) for t in inputs]
    around = Around(earlier, operator.type if operator else "Parameter", read)
    return check(watch.condition, watch.given, array, around, iteration)


def _message(watch: Watch, graph: str, name: str, slot: int, found: Hit) -> Any:
    actual = {p.name: p for p in found.parameters}
    sent = messages.WatchCondition(
        condition=watch.sent.condition, value=watch.sent.value, reason=found.reason
    )
    for parameter in watch.sent.params:
        copy = sent.params.add()
        copy.CopyFrom(parameter)
        if parameter.name in actual:
            copy.hit, copy.actual_value = actual[parameter.name].hit, actual[parameter.name].actual
    tensor = messages.TensorProto(node_name=name, slot=str(slot), graph_name=graph, finished=True)
    return messages.WatchpointHit(
        tensor=tensor, watch_condition=sent, id=watch.number, error_code=found.error_code
    )
