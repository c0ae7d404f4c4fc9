"""Batch normalization in training takes in what follows it, and its gradient the gradient of that.

* A residual and `relu` or `relu6` join `batch_norm_train` where nothing else reads what is between.
* Without a residual the gradient of the activation joins the `batch_norm_grad` that reads it, which computes
  the argument of the activation again from what was normalized. With one it stays: others read it as well.

All of it is elementwise, so what goes are passes over memory; numbers stay as they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mycelia.engine.backends.registry import LoadedBackend
from mycelia.engine.base import dtypes
from mycelia.engine.ir.graph import Graph, Node, Value, flat_parts
from mycelia.engine.ir.walk import substitute, users
from mycelia.engine.ops.define import find
from mycelia.engine.ops.elementwise.rectifiers import ABOVE_SIX

_TRAIN, _GRAD = "batch_norm_act_train", "batch_norm_act_grad"
_RESULT = 2  # position of the normalized tensor among the results of batch_norm_train


def run(graph: Graph, backend: LoadedBackend) -> int:
    """Rewrites in place where `backend` has the kernels; returns how many nodes joined another."""
    if not any(node.op.name in ("batch_norm_train", "batch_norm_grad") for node in graph.nodes):
        return 0
    if any(backend.kernel(name, ["f32"]) is None for name in (_TRAIN, _GRAD)):
        return 0
    _argument_to_result(graph)
    return _join(graph, _forward) + _join(graph, _backward)


def _join(graph: Graph, rule: Any) -> int:
    found = _Found(graph)
    for node in graph.nodes:
        rule(found, node)
    graph.nodes = [found.forms.get(node, node) for node in graph.nodes if node not in found.gone]
    substitute(graph, found.renamed)
    return len(found.gone)


class _Found:
    """What joins what, found in one go through a graph."""

    def __init__(self, graph: Graph) -> None:
        self.readers = {value: [node for node, _ in found] for value, found in users(graph).items()}
        self.outputs = set(graph.outputs)
        self.place = {node: i for i, node in enumerate(graph.nodes)}
        self.forms: dict[Node, Node] = {}  # node -> the one that takes its place
        self.gone: set[Node] = set()
        self.renamed: dict[Value, Value] = {}

    def only_reader(self, value: Value) -> Node | None:
        readers = self.readers.get(value, ())
        return readers[0] if len(readers) == 1 and value not in self.outputs else None

    def is_before(self, value: Value, node: Node) -> bool:
        return value.producer is None or self.place[value.producer] < self.place[node]

    def replace(
        self, place: Node, gone: Sequence[Node], op: str, inputs: list, attrs: dict, results: Sequence[Value]
    ) -> None:
        """Puts a new node where `place` is; `results` are the values that its own stand for."""
        node = Node(find(op), inputs, attrs, [v.type for v in results], place.location)
        node.parts = flat_parts(sorted({place, *gone}, key=self.place.__getitem__))
        self.forms[place] = node
        self.gone.update(gone)
        for old, new in zip(results, node.outputs, strict=True):
            new.name = old.name
            self.renamed[old] = new


def _argument_to_result(graph: Graph) -> None:
    """The gradient of relu6 reads its argument, but its result lies inside the interval where that does.

    An argument of exactly six then has the slope of those above.
    """
    results: dict[Value, Value] = {}
    for node in graph.nodes:
        if node.op.name == "relu6":
            results.setdefault(node.inputs[0], node.outputs[0])
        elif _gradient_of(node) == "relu6" and node.inputs[1] in results:
            node.inputs = [node.inputs[0], results[node.inputs[1]]]
            node.attrs = {**node.attrs, "max_val": 6.0}


def _gradient_of(node: Node) -> str | None:
    """The activation that `node` is the gradient of."""
    if node.op.name == "relu_grad":
        return "relu"
    is_six = node.op.name == "hardtanh_grad" and node.attrs["min_val"] == 0.0
    return "relu6" if is_six and node.attrs["max_val"] in (6.0, ABOVE_SIX) else None


def _forward(found: _Found, node: Node) -> None:
    if node.op.name != "batch_norm_train" or not _are_float(node.inputs):
        return
    results, gone = list(node.outputs), []
    residual, activation = None, "none"
    reader = found.only_reader(results[_RESULT])
    if reader is not None and reader.op.name == "add":
        first, second = reader.inputs
        other = second if first is results[_RESULT] else first
        if other.type != results[_RESULT].type or not found.is_before(other, node):
            return
        residual = other
        gone.append(reader)
        results[_RESULT] = reader.outputs[0]
        reader = found.only_reader(results[_RESULT])
    if reader is not None and reader.op.name in ("relu", "relu6"):
        activation = reader.op.name
        gone.append(reader)
        results[_RESULT] = reader.outputs[0]
    if gone:
        attrs = {**node.attrs, "activation": activation}
        found.replace(node, gone, _TRAIN, [*node.inputs, residual], attrs, results)


def _backward(found: _Found, node: Node) -> None:
    activation = _gradient_of(node)
    host = None if activation is None else found.only_reader(node.outputs[0])
    if host is None or host.op.name != "batch_norm_grad" or not _are_float(node.inputs + host.inputs):
        return
    dy, y = node.inputs
    bias = _bias_behind(y, host, activation)
    if bias is not None:
        _, x, scale, mean, inv_std = host.inputs
        attrs = {**host.attrs, "activation": activation}
        found.replace(host, [node], _GRAD, [dy, x, scale, bias, mean, inv_std], attrs, host.outputs)


def _bias_behind(y: Value, host: Node, activation: str | None) -> Value | None:
    """The bias of the normalization whose gradient `host` is,
    if `y` is nothing but its activated result.
    """
    source = y.producer
    if source is None or source.op.name != _TRAIN or y is not source.outputs[_RESULT]:
        return None
    _, _, x, scale, bias, residual = source.inputs
    mean, inv_std = source.outputs[_RESULT + 1 :]
    same = (
        residual is None
        and all(a is b for a, b in zip(host.inputs[1:], (x, scale, mean, inv_std), strict=True))
        and source.attrs["activation"] == activation
        and source.attrs["data_format"] == host.attrs["data_format"]
    )
    return bias if same else None


def _are_float(values: Sequence[Value | None]) -> bool:
    return all(v is not None and v.type.dtype is dtypes.float32 for v in values)
