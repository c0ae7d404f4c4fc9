"""Compiled graphs and the tape: a run of a graph is one tape node whose gradient is a compiled graph too.

The forward graph also returns the intermediates that the backward graph needs,
so nothing is computed twice. If the gradient itself is recorded (higher orders), the gradient of the graph
runs as a graph in its own right.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from mycelia.engine import _C
from mycelia.engine.autodiff.reverse import zeros_of
from mycelia.engine.capture.gradients import carries_gradient, gradient_graph, is_differentiable, joint_graph
from mycelia.engine.compile.executable import program
from mycelia.engine.compile.passes import asked, optimize, with_asked
from mycelia.engine.ir.graph import Graph, Value
from mycelia.engine.ir.types import TensorType


class Derivative(NamedTuple):
    """The two programs of a graph with its gradient. `forward` takes what the graph takes, `numbers` behind
    it, and gives the graph's outputs and `kept`, which `backward` takes before the cotangents."""

    forward: _C.Program
    backward: Callable[[], _C.Program]
    parameters: list[Value]  # of the graph, in `forward`
    kept: list[Value]
    numbers: list[Any]


class Differentiable:
    """A graph as `run` needs it. The arguments are those of `executable.program`."""

    def __init__(
        self,
        graph: Graph,
        frozen: Collection[int] = (),
        updates: Sequence[tuple[int, int]] = (),
        tensors: Mapping[int, Any] | None = None,
    ) -> None:
        self.graph, self.frozen, self.updates, self.tensors = graph, frozen, tuple(updates), tensors

    def derivative(self, wanted: tuple[bool, ...], given: tuple[bool, ...]) -> Derivative | None:
        """Gradients of the `wanted` inputs for cotangents of the `given` outputs; None if there are none."""
        forward, backward = split(self.graph, wanted, given)
        frozen = tuple(i for i in self.frozen if not wanted[i])
        return Derivative(
            program(forward, frozen, self.updates, self.tensors),
            lambda: program(backward),
            forward.parameters,
            forward.outputs[len(self.graph.outputs) :],
            [],
        )

    def output_type(self, position: int) -> TensorType:
        return self.graph.outputs[position].type

    def whole_graph(self) -> Graph:
        """The graph with all its sizes."""
        return self.graph


def run(function: Differentiable, inputs: Sequence[Any]) -> tuple | None:
    """The outputs of an optimized graph, recorded as one step, without those that `updates` gives to inputs
    (see `executable.program`); None, and nothing has run, if no active tape follows an input.
    """
    wanted = tuple(t._node is not None for t in inputs)
    if not any(wanted):
        return None
    graph, updates = function.graph, function.updates
    updated = {position for position, _ in updates}
    given = _given(graph, wanted, updated)
    if not any(given):
        return None
    found = function.derivative(wanted, given)
    if found is None:
        return None
    overwritten = [(inputs[i], inputs[i]._tape_place) for _, i in updates if inputs[i]._is_parameter]
    before = {found.parameters[i]: inputs[i]._detach() for _, i in updates}
    results = found.forward(*inputs, *found.numbers)
    for parameter, place in overwritten:  # the tape follows a Parameter, whatever is assigned to it
        parameter._tape_place = place
    count = len(graph.outputs) - len(updated)
    # An output may be an input itself, which has a tape node of its own.
    outputs = tuple(t._detach() for t in results[:count])
    # The backward graph reads Parameters as they were.
    kept = [before.get(v, t) for v, t in zip(found.kept, results[count:], strict=True)]
    returned = [i for i in range(len(graph.outputs)) if i not in updated]
    differentiable = [k for k, i in enumerate(returned) if given[i]]

    own = asked()

    def pull(*cts: Any) -> list:
        with with_asked(own):
            return pulled(*cts)

    def pulled(*cts: Any) -> list:
        flowing = [
            zeros_of(function.output_type(returned[k])) if ct is None else ct
            for k, ct in zip(differentiable, cts)
        ]
        if _C.tape_level() == 0:
            gradients = iter(found.backward()(*kept, *flowing))
        else:
            whole = function.whole_graph()
            arguments = (*inputs[: len(whole.parameters)], *flowing)
            gradient = _gradient(whole, wanted[: len(whole.parameters)], given)
            gradients = iter(run(Differentiable(gradient), arguments) or program(gradient)(*arguments))
        return [next(gradients) if want else None for want in wanted]

    _C.custom(graph.name, tuple(inputs), tuple(outputs[k] for k in differentiable), pull)
    return outputs


def _given(graph: Graph, wanted: tuple[bool, ...], updated: set[int]) -> tuple[bool, ...]:
    """The outputs that get cotangents: floating ones, and what else a gradient flows through."""
    key = ("given", wanted, frozenset(updated))
    found = graph.cache.get(key)
    if found is None:
        reached = carries_gradient(graph, wanted)
        found = graph.cache[key] = tuple(
            i not in updated and (is_differentiable(v.type) or reached[i])
            for i, v in enumerate(graph.outputs)
        )
    return found


def _gradient(graph: Graph, wanted: tuple[bool, ...], given: tuple[bool, ...]) -> Graph:
    found = gradient_graph(graph, wanted, given)
    if not found.cache.get("optimized"):
        optimize(found)
        found.cache["optimized"] = True
    return found


def split(graph: Graph, wanted: tuple[bool, ...], given: tuple[bool, ...]) -> tuple[Graph, Graph]:
    """(forward: inputs -> outputs, kept) and (backward: kept, cotangents -> gradients)."""
    key = ("split", wanted, given)
    found = graph.cache.get(key)
    if found is None:
        found = graph.cache[key] = parted(joint_graph(graph, wanted, given), graph, sum(given))
    return found


def parted(joint: Graph, graph: Graph, cotangent_count: int) -> tuple[Graph, Graph]:
    """The two graphs of `split` from one for both."""
    optimize(joint)
    count = len(graph.outputs)
    first = len(graph.parameters)
    cotangents = joint.parameters[first : first + cotangent_count]
    inputs = joint.parameters[:first] + joint.parameters[first + cotangent_count :]
    late: set[Value] = set(cotangents)  # depends on a cotangent
    forward, backward = Graph(f"{graph.name}.forward"), Graph(f"{graph.name}.backward")
    needed_early = _needed(joint, joint.outputs[:count])
    for node in joint.nodes:
        if any(v in late for v in node.inputs):
            late.update(node.outputs)
            backward.nodes.append(node)
        elif node in needed_early or not _is_cheap(node):
            forward.nodes.append(node)
        else:
            backward.nodes.append(node)
            late.update(node.outputs)
    crossing: dict[Value, None] = {}
    for value in [v for node in backward.nodes for v in node.inputs if v is not None] + joint.outputs[count:]:
        if value not in late and not value.is_constant:
            crossing[value] = None
    forward.parameters = inputs
    forward.outputs = [*joint.outputs[:count], *crossing]
    # The backward graph gets parameters of its own for what crosses over.
    mapping = {value: backward.add_parameter(value.type, value.name) for value in crossing}
    backward.parameters += cotangents
    for node in backward.nodes:
        node.inputs = [v if v is None else mapping.get(v, v) for v in node.inputs]
    backward.outputs = [mapping.get(v, v) for v in joint.outputs[count:]]
    return forward, backward


def _needed(graph: Graph, outputs: Sequence[Value]) -> set:
    live = set(outputs)
    nodes = set()
    for node in reversed(graph.nodes):
        if node.has_effect or any(v in live for v in node.outputs):
            nodes.add(node)
            live.update(v for v in node.inputs if v is not None)
    return nodes


def _is_cheap(node: Any) -> bool:
    """Views and the like cost nothing when made again from what is kept anyway."""
    return node.op.definition.view or not node.inputs
