"""What follows a convolution or a product of weights joins it: normalization, bias, residual, activation.

* `batch_norm_infer` becomes part of the weights and the bias of the convolution before it, where all of them
  seldom change (inference): `batch_norm_fold` computes them when they do. The sums round a little differently
  than with the factor behind them. Weights that would not be finite are refused when the prologue runs, and
  the function is built without this (`without_folding`), since the two steps give other values then.
* A per-channel vector, then a residual, then an activation join `conv_last` and `linear`, in this order and
  one of each: exact.
* A `batch_norm_infer` before elementwise ops becomes a difference, a product and a sum, for `fuse`.

Only what has a single reader joins, so nothing is computed twice; what a gradient reads too stays.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

from mycelia.engine.backends.registry import LoadedBackend
from mycelia.engine.base import errors
from mycelia.engine.compile import hoist
from mycelia.engine.compile.passes.selection import FOLD, is_off
from mycelia.engine.ir.graph import Builder, Graph, Node, Value, flat_parts
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ir.walk import users
from mycelia.engine.ops.define import find
from mycelia.engine.ops.lowered.packed import ACTIVATIONS
from mycelia.engine.tensors.tensor import Tensor

_HOSTS = {"conv_last": True, "linear": True, "conv": False}  # whether residual and activation may join, too
_BIAS, _RESIDUAL = 2, 3  # positions among the inputs of the hosts
_NAMES: dict[str, dict[tuple, str]] = {}  # op -> its attributes -> value of the attribute `activation`
for _activation, (_name, _attrs) in ACTIVATIONS.items():
    if _name:
        _NAMES.setdefault(_name, {})[tuple(_attrs.items())] = _activation


def run(graph: Graph, backend: LoadedBackend, frozen: Collection[int] = ()) -> int:
    """Returns how many nodes joined another. Hosts other than `conv` are there only where the backend has
    kernels for them, and these take every epilogue. `frozen`: positions of parameters that seldom change.
    """
    if not any(node.op.name in _HOSTS for node in graph.nodes):
        return 0
    return _Epilogues(graph, backend, frozen).run()


class _Epilogues:
    def __init__(self, graph: Graph, backend: LoadedBackend, frozen: Collection[int]) -> None:
        self.graph, self.backend = graph, backend
        self.prologues = bool(frozen)
        self.frozen, _, _ = hoist.frozen_part(graph, frozen)
        self.readers = users(graph)
        self.uses = {value: len(found) for value, found in self.readers.items()}
        for value in graph.outputs:
            self.uses[value] = self.uses.get(value, 0) + 1
        self.renamed: dict[Value, Value] = {}
        self.open: dict[Value, Node] = {}  # results of hosts that something may still join
        self.gone: set[Node] = set()
        self.nodes: list[Node] = []
        self.builder = Builder(graph)
        self.builder.added = self.nodes

    def run(self) -> int:
        for node in self.graph.nodes:
            node.inputs = [self.renamed.get(v, v) for v in node.inputs]
            if not self.join(node) and not self.spread(node):
                self.nodes.append(node)
                self.watch(node)
        if self.gone:
            self.graph.nodes = [node for node in self.nodes if node not in self.gone]
            self.graph.outputs = [self.renamed.get(v, v) for v in self.graph.outputs]
        return len(self.gone)

    def watch(self, node: Node) -> None:
        if node.op.name in _HOSTS and self.uses.get(node.outputs[0], 0) == 1:
            if not _HOSTS[node.op.name] or node.attrs["activation"] == "none":
                self.open[node.outputs[0]] = node

    def join(self, node: Node) -> bool:
        """Takes `node` into the host that it follows, if it can be."""
        if not any(v in self.open for v in node.inputs):
            return False
        rule = _RULES.get(node.op.name)
        self.builder.location = node.location
        changed = None if rule is None else rule(self, node)
        if changed is None:
            return False
        host, inputs, attrs = changed
        # It takes the place of `node`: there all it reads exists.
        new = Node(host.op, inputs, attrs, [v.type for v in node.outputs], host.location)
        new.parts = flat_parts((host, node))
        self.gone.add(host)
        self.nodes.append(new)
        self.renamed[node.outputs[0]] = new.outputs[0]
        new.outputs[0].name = node.outputs[0].name
        self.uses[new.outputs[0]] = self.uses.get(node.outputs[0], 0)
        self.watch(new)
        return True

    def spread(self, node: Node) -> bool:
        """A normalization that no convolution takes, in front of elementwise ops: a factor and an offset for
        each channel are elementwise too, and all of it takes one pass over memory.
        """
        if node.op.name != "batch_norm_infer" or node.attrs["data_format"] != "NHWC" or is_off("fuse"):
            return False
        found = self.readers.get(node.outputs[0], ())
        if len(found) != self.uses.get(node.outputs[0]) or any(
            not n.op.definition.elementwise for n, _ in found
        ):
            return False
        value, scale, shift, mean, variance = node.inputs
        if any(v.type.dtype is not value.type.dtype for v in (scale, shift, mean, variance)):
            return False
        self.builder.location = node.location
        factor = self.factor(scale, variance, node.attrs["epsilon"])
        result = self.emit("add", [self.emit("mul", [self.emit("sub", [value, mean]), factor]), shift])
        self.gone.add(node)
        self.renamed[node.outputs[0]] = result
        return True

    def factor(self, scale: Value, variance: Value, epsilon: float) -> Value:
        """``scale / sqrt(variance + epsilon)``."""
        dtype = scale.type.dtype
        constant = Value(TensorType(dtype, ()), constant=Tensor(epsilon, dtype=dtype))
        return self.emit("div", [scale, self.emit("sqrt", [self.emit("add", [variance, constant])])])

    def emit(self, op: str, inputs: list[Value | None], **attrs: Any) -> Value:
        made = self.builder.emit(find(op), inputs, attrs)[0]
        if all(self.is_frozen(v) for v in inputs):
            self.frozen.add(made)
        return made

    def is_frozen(self, value: Value | None) -> bool:
        return value is None or value.is_constant or value in self.frozen

    def folds(self, inputs: Sequence[Value | None], attrs: dict[str, Any]) -> bool:
        """Whether weights of these values may be computed once, by a kernel of the backend."""
        shorts = [None if v is None else v.type.dtype.short for v in inputs]
        if self.backend.kernel(FOLD, shorts) is None:
            return False
        if all(v is None or v.is_constant for v in inputs):
            try:
                find(FOLD).definition.body(*(v and v.constant.asnumpy() for v in inputs), **attrs)
            except errors.MyceliaValueError:
                return False
            return True
        return self.prologues and not is_off(FOLD) and all(map(self.is_frozen, inputs))


def _activation(passes: _Epilogues, node: Node):
    host = passes.open[node.inputs[0]]
    if not _HOSTS[host.op.name]:
        return None
    name = _NAMES[node.op.name].get(tuple(node.attrs.items()))
    return None if name is None else (host, host.inputs, {**host.attrs, "activation": name})


def _vector(value: Value, like: TensorType) -> tuple[int, ...] | None:
    """The shape of `value` if it holds one number for each entry of the last axis of `like`."""
    shape = value.type.shape
    channels = like.shape[-1]
    fits = value.type.dtype is like.dtype and 1 <= len(shape) <= len(like.shape) and shape[-1] == channels
    return shape if fits and math.prod(shape[:-1]) == 1 else None


def _add(passes: _Epilogues, node: Node):
    out = node.outputs[0].type
    for value, other in (node.inputs, node.inputs[::-1]):
        host = passes.open.get(value)
        if host is None or not _HOSTS[host.op.name] or value.type != out or value is other:
            continue
        inputs = list(host.inputs)
        shape = _vector(other, out)
        if shape is not None and shape != out.shape:
            if inputs[_BIAS] is not None or inputs[_RESIDUAL] is not None:
                return None
            vector = other if len(shape) == 1 else passes.emit("reshape", [other], shape=(shape[-1],))
            inputs[_BIAS] = vector
            return host, inputs, host.attrs
        if other.type == out and inputs[_RESIDUAL] is None:
            inputs[_RESIDUAL] = other
            return host, inputs, host.attrs
    return None


def _bias_add(passes: _Epilogues, node: Node):
    value, vector = node.inputs
    host = passes.open.get(value)
    last = host is not None and (node.attrs["data_format"] == "NHWC" or len(value.type.shape) == 2)
    if not last or not _HOSTS[host.op.name]:
        return None
    inputs = list(host.inputs)
    if inputs[_BIAS] is not None or inputs[_RESIDUAL] is not None:
        return None
    inputs[_BIAS] = vector
    return host, inputs, host.attrs


def _batch_norm(passes: _Epilogues, node: Node):
    value, scale, shift, mean, variance = node.inputs
    host = passes.open.get(value)
    if host is None or host.op.name == "linear":
        return None
    inputs, pack = list(host.inputs), None
    axis = 0
    if host.op.name == "conv_last":
        if inputs[_RESIDUAL] is not None or node.attrs["data_format"] != "NHWC":
            return None
        pack = inputs[1].producer
        if pack is None or pack.op.name != "conv_pack":
            return None
        if pack.attrs["transposed"]:
            if pack.attrs["group"] != 1:
                return None
            axis = 1
        weight = pack.inputs[0]
    else:
        if node.attrs["data_format"] != "NCHW":
            return None
        weight = inputs[1]
    if any(v.type.dtype is not weight.type.dtype for v in (scale, shift, mean, variance)):
        return None
    taken = [weight, scale, shift, mean, variance, inputs[_BIAS]]
    attrs = {"epsilon": node.attrs["epsilon"], "axis": axis}
    if not passes.folds(taken, attrs):
        return None
    weight, inputs[_BIAS] = passes.builder.emit(find(FOLD), taken, attrs)
    inputs[1] = weight if pack is None else passes.builder.emit(pack.op, [weight], pack.attrs)[0]
    return host, inputs, host.attrs


_RULES = {
    "add": _add,
    "bias_add": _bias_add,
    "batch_norm_infer": _batch_norm,
    **dict.fromkeys(_NAMES, _activation),
}
