"""A training step taken apart: what it learns, what it answers, and the two halves of a step.

A step is a graph of inputs and variables whose outputs are losses and the next values of variables. `forward`
goes from the inputs without labels to what the loss compares with them, with normalization by the running
statistics. `gradients` and `update` are the step up to the gradients, and from them on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from mycelia.ir import Builder, Graph, Node, Value
from mycelia.ir.walk import copy_nodes, substitute
from mycelia.ops.define import find
from mycelia_lite.converter.errors import NotAvailable

#: Op of an optimizer -> how many inputs it changes; where the gradient, the rate and the momentum are.
OPTIMIZERS: dict[str, tuple[int, int, int, int | None]] = {
    "apply_gradient_descent": (1, 2, 1, None),
    "sgd": (3, 3, 4, 5),
    "apply_momentum": (2, 3, 2, 4),
    "adam": (3, 9, 5, None),
    "adam_weight_decay": (3, 8, 3, None),
    "adamw": (3, 9, 4, None),
}
_VIEWS = ("reshape", "cast", "squeeze", "expand_dims")  # through which a rate may reach an optimizer
_ANSWERING = {"batch_norm_train": "batch_norm_infer"}  # ops that are others while nothing is learned


class Role(IntEnum):
    """What a variable is for, as files say it (FileState of the runtime)."""

    TRAINED = 1
    STATISTIC = 2
    OPTIMIZER = 3
    RATE = 4
    MOMENTUM = 5


@dataclass
class Variable:
    """A Parameter of the step. `value`: what the step reads; `following`: its value after a step, or None."""

    name: str
    first: np.ndarray
    value: Value
    following: Value | None = None
    role: Role = Role.OPTIMIZER


@dataclass
class Part:
    """A graph of its own. `inputs`: names of its parameters, variables behind; `reads` and `sets`: numbers of
    variables that are its last parameters, and whose next values are its last outputs.
    """

    graph: Graph
    inputs: list[str]
    outputs: list[str]
    reads: list[int] = field(default_factory=list)
    sets: list[int] = field(default_factory=list)


@dataclass
class Step:
    """A training step. `variables` that it changes come first; `losses`: its own outputs."""

    graph: Graph
    inputs: list[str]
    variables: list[Variable]
    forward: Part | None = None
    gradients: Part | None = None
    update: Part | None = None

    @property
    def losses(self) -> list[Value]:
        return self.graph.outputs[: len(self.graph.outputs) - self.changed]

    @property
    def changed(self) -> int:
        """How many variables a step changes."""
        return sum(v.following is not None for v in self.variables)


def _producers(graph: Graph, values: Iterable[Value], stop: Iterable[Value] = ()) -> list[Node]:
    """The nodes that `values` follow from, in order, but not what `stop` follows from."""
    wanted, ends, found = set(values), set(stop), []
    for node in reversed(graph.nodes):
        if any(v in wanted and v not in ends for v in node.outputs):
            found.append(node)
            wanted.update(v for v in node.inputs if v is not None)
    return found[::-1]


def take_apart(step: Step) -> None:
    """Fill in the roles of variables and the parts of a step, None for those that it does not have.

    Errors: NotAvailable for other optimizers, and statistics that other ops than normalizations keep.
    """
    _join_biases(step.graph)
    if not _optimizers(step):
        raise NotAvailable(
            "trainModel: the model has no step of an optimizer that can be converted: there are SGD, "
            "Momentum without nesterov, and Adam"
        )
    _give_roles(step)
    _check_statistics(step)
    step.forward = _forward(step)
    replaced = _join_activations(step.graph)
    for variable in step.variables:
        variable.following = replaced.get(variable.following, variable.following)
    step.gradients, step.update = _halves(step)


def _join_biases(graph: Graph) -> None:
    """Biases behind convolutions become theirs, where nothing else reads the sums without them."""
    readers = Counter(v for node in graph.nodes for v in node.inputs if v is not None)
    readers.update(graph.outputs)
    joined: dict[Value, Value] = {}
    for node in graph.nodes:
        if node.op.name != "bias_add" or node.attrs["data_format"] != "NCHW":
            continue
        x, bias = node.inputs
        conv = x.producer
        if conv is not None and conv.op.name == "conv" and conv.inputs[2] is None and readers[x] == 1:
            if bias.producer is None:  # it is there before the convolution
                conv.inputs[2] = bias
                joined[node.outputs[0]] = x
    graph.nodes = [node for node in graph.nodes if node.outputs[0] not in joined]
    substitute(graph, joined)


def _join_activations(graph: Graph) -> dict[Value, Value]:
    """A ReLU or ReLU6 behind a batch normalization is done with it, and its gradient computes again what it
    was given: one tensor less of each layer is kept for the way back. What stands for which value now.
    """
    readers: dict[Value, list[Node]] = {}
    for node in graph.nodes:
        for value in filter(None, node.inputs):
            readers.setdefault(value, []).append(node)
    replaced: dict[Value, Value] = {}
    instead: dict[Node, Node | None] = {}
    for norm in graph.nodes:
        found = (
            _activation_behind(norm, readers, graph.outputs) if norm.op.name == "batch_norm_train" else None
        )
        if found is None:
            continue
        activation, gate, grad = found
        how = dict(norm.attrs, activation=activation.op.name)
        made = _like(norm, "batch_norm_act_train", [*norm.inputs, None], how)
        instead[norm], instead[activation] = made, None
        replaced.update(zip(norm.outputs, made.outputs))
        replaced[activation.outputs[0]] = made.outputs[2]
        dy, x, scale, mean, inverse = grad.inputs
        how = dict(grad.attrs, activation=activation.op.name)
        inputs = [gate.inputs[0], x, scale, norm.inputs[4], mean, inverse]
        instead[gate], instead[grad] = None, _like(grad, "batch_norm_act_grad", inputs, how)
        replaced.update(zip(grad.outputs, instead[grad].outputs))
    graph.nodes = [made for node in graph.nodes if (made := instead.get(node, node)) is not None]
    substitute(graph, replaced)
    return replaced


_GATES = {"relu": "relu_grad", "relu6": "hardtanh_grad"}


def _activation_behind(
    norm: Node, readers: dict[Value, list[Node]], outputs: Sequence[Value]
) -> tuple[Node, Node, Node] | None:
    """The activation behind a normalization, its gradient and that of the normalization, if nothing else
    reads what lies between them.
    """
    y = norm.outputs[2]
    behind = [n for n in readers.get(y, ()) if n.op.name in _GATES]
    if len(behind) != 1 or y in outputs:
        return None
    (activation,) = behind
    kept = activation.outputs[0] if activation.op.name == "relu" else y  # what the gradient reads
    gates = [
        n for n in readers.get(kept, ()) if n.op.name == _GATES[activation.op.name] and n.inputs[1] is kept
    ]
    if len(gates) != 1 or set(readers[y]) - {activation, gates[0]}:
        return None
    (gate,) = gates
    grads = readers.get(gate.outputs[0], ())
    if len(grads) != 1 or grads[0].op.name != "batch_norm_grad" or gate.outputs[0] in outputs:
        return None
    grad = grads[0]
    if grad.inputs[0] is not gate.outputs[0] or grad.inputs[3] is not norm.outputs[3]:
        return None
    if activation.op.name == "relu6" and (
        gate.attrs["min_val"] != 0 or not 6 <= gate.attrs["max_val"] < 6.01
    ):
        return None
    return activation, gate, grad


def _like(node: Node, op: str, inputs: list[Value | None], attrs: dict) -> Node:
    """A node of another op with results of the same types."""
    return Node(find(op), inputs, attrs, [v.type for v in node.outputs], node.location)


def _optimizers(step: Step) -> list[Node]:
    return [node for node in step.graph.nodes if node.op.name in OPTIMIZERS]


def _give_roles(step: Step) -> None:
    variables = {v.value: v for v in step.variables}
    for node in _producers(step.graph, step.losses):
        for value in node.inputs:
            if value in variables and not _keeps_statistics(node, value):
                changed = variables[value].following is not None
                variables[value].role = Role.TRAINED if changed else Role.STATISTIC
    for node in step.graph.nodes:
        for value in node.inputs:
            if value in variables and _keeps_statistics(node, value):
                variables[value].role = Role.STATISTIC
    for node in _optimizers(step):
        _, _, rate, momentum = OPTIMIZERS[node.op.name]
        for place, role in ((rate, Role.RATE), (momentum, Role.MOMENTUM)):
            value = None if place is None else node.inputs[place]
            while value is not None and value.producer is not None and value.producer.op.name in _VIEWS:
                value = value.producer.inputs[0]
            variable = variables.get(value)
            is_number = variable is not None and variable.first.size == 1 and variable.following is None
            if is_number and variable.first.dtype == np.float32:
                variable.role = role


def _keeps_statistics(node: Node, value: Value) -> bool:
    return node.op.name == "batch_norm_train" and value in node.inputs[:2]


def _check_statistics(step: Step) -> None:
    """Variables that follow from the data are changed by normalizations and optimizers alone: what else
    changes them would have to stand still while the model answers, and nothing here knows how.
    """
    inputs = set(step.graph.parameters[: len(step.inputs)])
    gradients = _gradients(step)
    for variable in step.variables:
        made = variable.following
        if made is None or variable.role is Role.TRAINED:
            continue
        if made.producer is not None and made.producer.op.name in _ANSWERING:
            continue
        nodes = _producers(step.graph, [made], gradients)
        if made in inputs or any(v in inputs for node in nodes for v in node.inputs):
            raise NotAvailable(
                f"trainModel: '{variable.name}' changes with the data, but is no state of an optimizer and "
                "no statistic of a batch normalization of [N, C] or [N, C, H, W]"
            )


def _gradients(step: Step) -> list[Value]:
    return [node.inputs[OPTIMIZERS[node.op.name][1]] for node in _optimizers(step)]


# ---- what the model answers --------------------------------------------------------------------------------


def _forward(step: Step) -> Part | None:
    answers, labels = _answers(step)
    if not answers:
        return None
    data = [p for i, p in enumerate(step.graph.parameters[: len(step.inputs)]) if not labels >> i & 1]
    nodes = _producers(step.graph, answers)
    graph = Graph("forward")
    mapping: dict[Value, Value] = {}
    names = []
    used = {v for node in nodes for v in node.inputs}
    for p, name in zip(step.graph.parameters, step.inputs):
        if p in data and p in used:
            mapping[p] = graph.add_parameter(p.type, p.name)
            names.append(name)
    nodes = [_answering(node) for node in nodes]
    replaced = {old: new for _, pairs in nodes for old, new in pairs}
    answering = [node for node, _ in nodes]
    for node in answering:
        node.inputs = [replaced.get(v, v) for v in node.inputs]
    reads = _read(step, answering)
    for i in reads:
        value = step.variables[i].value
        mapping[value] = graph.add_parameter(value.type, value.name)
    graph.nodes = copy_nodes(answering, mapping)
    graph.outputs = [mapping[replaced.get(v, v)] for v in answers]
    return Part(graph, names, [f"output{i}" for i in range(len(answers))], reads)


def _answering(node: Node) -> tuple[Node, list[tuple[Value, Value]]]:
    """The node as it is while nothing is learned, and which of its results stand for which."""
    if node.op.name not in _ANSWERING:
        copy = Node(node.op, node.inputs, node.attrs, [v.type for v in node.outputs], node.location)
        return copy, list(zip(node.outputs, copy.outputs))
    mean, variance, x, scale, bias = node.inputs
    builder = Builder(Graph(), node.location)
    attrs = {name: node.attrs[name] for name in ("epsilon", "data_format")}
    builder.emit(find(_ANSWERING[node.op.name]), [x, scale, bias, mean, variance], attrs)
    made = builder.added[0]
    return made, [(node.outputs[2], made.outputs[0])]


def _answers(step: Step) -> tuple[list[Value], int]:
    """What the loss compares with labels, and the inputs that are labels, as bits.

    An input that meets a trained weight is data, the others are labels; what follows from data and weights
    and meets a label is an answer. Without labels the answers are what the loss is the loss of.
    """
    trained = {v.value for v in step.variables if v.role is Role.TRAINED}
    bits = {p: 1 << i for i, p in enumerate(step.graph.parameters[: len(step.inputs)])}
    learned = dict.fromkeys(trained, True)
    nodes = _producers(step.graph, step.losses)
    data = 0
    for node in nodes:
        read = [v for v in node.inputs if v is not None]
        mask = 0
        for v in read:
            mask |= bits.get(v, 0)
        for v in node.outputs:
            bits[v], learned[v] = mask, any(learned.get(u) for u in read)
        if any(learned.get(v) and not bits.get(v) and v.type.rank for v in read):
            data |= mask
    labels = (1 << len(step.inputs)) - 1 & ~data
    answers: dict[Value, None] = {}
    for node in nodes:
        read = [v for v in node.inputs if v is not None]
        if any(bits.get(v, 0) & labels for v in read):
            answers.update(
                (v, None)
                for v in read
                if learned.get(v) and bits.get(v, 0) & data and not bits.get(v, 0) & labels
            )
    if not labels or not answers:
        answers = dict.fromkeys(_compared(step.losses, learned))
    return [_logits(step, v, nodes) for v in answers], labels


def _compared(losses: Sequence[Value], learned: dict[Value, bool]) -> list[Value]:
    """The learned values with axes from which losses, numbers, are computed."""
    found, waiting, seen = [], list(losses), set()
    while waiting:
        value = waiting.pop()
        if value in seen or not learned.get(value):
            continue
        seen.add(value)
        if value.type.rank and value.producer is not None:
            found.append(value)
        elif value.producer is not None:
            waiting += [v for v in value.producer.inputs if v is not None]
    return found


def _logits(step: Step, value: Value, forward: Sequence[Node]) -> Value:
    """Of a cross entropy that is written as a logarithm of softmax, whose gradient is a softmax, what both
    are of: that is what the network gives.
    """
    node = value.producer
    if node is None or node.op.name != "log_softmax":
        return value
    given = node.inputs[0]
    backward = {*step.graph.nodes} - {*forward}
    is_loss = any(n.op.name == "softmax" and n.inputs[0] is given for n in backward)
    return given if is_loss else value


# ---- the halves of a step ----------------------------------------------------------------------------------


def _halves(step: Step) -> tuple[Part | None, Part | None]:
    graph, optimizers = step.graph, _optimizers(step)
    named = {v.value: v.name for v in step.variables}
    gradients = _gradients(step)
    if any(v is None or v.is_constant or v in graph.parameters for v in gradients):
        return None, None
    if len(set(gradients)) != len(gradients) or any(node.inputs[0] not in named for node in optimizers):
        return None, None
    names = [named[node.inputs[0]] for node in optimizers]
    inputs = set(graph.parameters[: len(step.inputs)])
    early, late = [], []
    for i, variable in enumerate(step.variables):
        if variable.following is None:
            continue
        nodes = _producers(graph, [variable.following], gradients)
        from_data = any(v in inputs for node in nodes for v in node.inputs) or variable.following in inputs
        (early if from_data else late).append(i)
    if any(step.variables[i].role is Role.TRAINED for i in early):
        return None, None
    first = _part(step, "gradients", [*step.losses, *gradients], early, ())
    second = _part(step, "update", [], late, gradients)
    outputs = [*(f"loss{i}" for i in range(len(step.losses))), *names]
    first.outputs, second.inputs = outputs, names
    return first, second


def _part(step: Step, name: str, outputs: Sequence[Value], sets: list[int], begins: Sequence[Value]) -> Part:
    """The nodes of a step from `begins`, or its inputs, to `outputs` and the next values of variables."""
    ends = [*outputs, *(step.variables[i].following for i in sets)]
    nodes = _producers(step.graph, ends, begins)
    graph = Graph(name)
    mapping: dict[Value, Value] = {}
    names = []
    if begins:
        mapping.update((v, graph.add_parameter(v.type)) for v in begins)
    else:
        for p, given in zip(step.graph.parameters, step.inputs):
            mapping[p] = graph.add_parameter(p.type, p.name)
            names.append(given)
    reads = _read(step, nodes)
    reads = [*sets, *(i for i in reads if i not in sets)]  # those that are set come first, in the same order
    for i in reads:
        value = step.variables[i].value
        mapping[value] = graph.add_parameter(value.type, value.name)
    graph.nodes = copy_nodes(nodes, mapping)
    graph.outputs = [mapping.get(v, v) for v in ends]
    return Part(graph, names, [], reads, list(sets))


def _read(step: Step, nodes: Sequence[Node]) -> list[int]:
    """Numbers of the variables that nodes read."""
    used = {v for node in nodes for v in node.inputs}
    return [i for i, variable in enumerate(step.variables) if variable.value in used]
