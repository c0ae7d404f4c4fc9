"""The table of compositions, and what makes graphs of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mycelia.engine.capture import control  # noqa: F401  (gives traces their rules)
from mycelia.engine.capture.open_sizes import OpenSizes, forget_sizes
from mycelia.engine.capture.trace import Trace
from mycelia.engine.ir import Graph, Node, TensorType

_compositions: dict[str, Callable] = {}


class Unsupported(Exception):
    """An op that a format cannot express; the message names it and its place."""


def traced(name: str, function: Callable, types: Sequence[TensorType | None], more: Sequence = ()) -> Graph:
    """`function(*tensors, *more)` as a graph; a type of None stands for an absent tensor."""
    trace = Trace(name, sizes=OpenSizes())
    with trace:
        inputs = [None if t is None else trace.parameter(t) for t in types]
        results = function(*inputs, *more)
        results = results if isinstance(results, (tuple, list)) else (results,)
        trace.graph.outputs = [trace.value_of(r) for r in results]
    trace.close()
    forget_sizes(trace.graph)
    return trace.graph


def composed(node: Node) -> Graph | None:
    """A node's op as a graph of other ops, if it has such a form."""
    definition = node.op.definition
    if definition.effect and not definition.updates:
        return None  # an effect would take place while the file is written
    types = [None if v is None else v.type for v in node.inputs]
    counts = (len(types) - len(definition.params) + 1, *(1 for _ in definition.params[1:]))
    function = definition.decomposition or _compositions.get(node.op.name)
    if function is None:
        return None
    return traced(node.op.name, lambda *x: function(*definition.group(x, counts), **node.attrs), types)


def composition(function: Callable) -> Callable:
    """Decorator: the op of this name is `function(*tensors, **attributes)`."""
    _compositions[function.__name__] = function
    return function
