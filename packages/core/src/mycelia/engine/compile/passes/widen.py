"""float16 and bfloat16 in float32: ops of 16-bit floats become ops of float32 whose results are rounded.

A backend that computes 16-bit floats in float32 would convert to and fro in every op. Here a value is kept as
float32 from the op that makes it to those that read it, rounded to what 16 bits hold by `round_f16` or
`round_bf16` exactly where the single op would round its result: the numbers are the same, and layouts, packed
weights and fusion serve these types as they serve float32. Values come in, and leave, by casts, which lose
nothing.
"""

from __future__ import annotations

from typing import Any

from mycelia.engine.backends.registry import LoadedBackend, shorts_of
from mycelia.engine.base import dtypes
from mycelia.engine.ir.graph import Builder, Graph, Node, Value, group_inputs
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops.define import find
from mycelia.engine.ops.fusion import ROUNDING

_PRODUCTS = ("mat_mul", "batch_matmul", "dense")
_HEAVY = (
    *_PRODUCTS,
    "conv",
    "conv_input_grad",
    "conv_weight_grad",
    "attention",
)  # with forms of their own in float32


def run(graph: Graph, backend: LoadedBackend) -> int:
    """Returns how many nodes changed."""
    if not backend.narrow or not any(_is_narrow(v) for node in graph.nodes for v in node.outputs):
        return 0
    return _Widening(graph, backend).run()


def _is_narrow(value: Value | None) -> bool:
    return value is not None and value.type.dtype in ROUNDING


class _Widening:
    def __init__(self, graph: Graph, backend: LoadedBackend) -> None:
        self.graph, self.backend = graph, backend
        self.wide: dict[Value, Value] = {}  # a value of 16 bits -> its numbers as float32
        self.narrow: dict[Value, Value] = {}  # a value of 16 bits that was widened -> it again
        self.readers: dict[Value, list[Node]] = {}
        for node in graph.nodes:
            for value in node.inputs:
                if _is_narrow(value):
                    self.readers.setdefault(value, []).append(node)
        self.nodes: list[Node] = []
        self.builder = Builder(graph)
        self.builder.added = self.nodes

    def run(self) -> int:
        changed = 0
        for node in self.graph.nodes:
            self.builder.location = node.location
            if self.widened(node):
                changed += 1
            else:
                node.inputs = [self.as_narrow(v) for v in node.inputs]
                self.nodes.append(node)
        self.builder.location = None
        self.graph.outputs = [self.as_narrow(v) for v in self.graph.outputs]
        self.graph.nodes = self.nodes
        return changed

    def widened(self, node: Node) -> bool:
        """Puts the form in float32 in the place of `node`; False if it stays."""
        if not any(map(_is_narrow, (*node.inputs, *node.outputs))) or not self.gains(node):
            return False
        if node.op.name == "cast":
            return self.cast(node)
        inputs = [self.type_of(v) for v in node.inputs]
        definition = node.op.definition
        kernel = self.backend.kernel(node.op.name, shorts_of(tuple(inputs)))
        if kernel is None or kernel.function is not None:
            if not definition.view:
                return False
        elif kernel.dtypes == ("*",) and not definition.moves:  # it has its own ways with 16 bits
            return False
        if any(a in ROUNDING for a in node.attrs.values() if isinstance(a, dtypes.DType)):
            return False
        types = definition.infer_types(tuple(group_inputs(node.op, inputs)), node.attrs)
        wanted = [self.type_of(v) for v in node.outputs]
        if [t.dtype for t in types] != [t.dtype for t in wanted]:
            return False
        made = Node(node.op, [self.as_wide(v) for v in node.inputs], node.attrs, wanted, node.location)
        self.nodes.append(made)
        for old, new in zip(node.outputs, made.outputs):
            new.name = old.name
            if _is_narrow(old):
                exact = definition.exact or definition.only_moves  # what others put in is rounded
                self.keep(old, new if exact else self.rounded(new, old.type.dtype))
            else:
                self.narrow[old] = new
        return True

    def gains(self, node: Node) -> bool:
        """Whether `node` is better done in float32."""
        definition = node.op.definition
        if node.has_effect or node.regions or definition.updates or definition.dynamic or definition.composed:
            return False
        if any(v in self.wide for v in node.inputs):
            return True
        if self.reads_short(node):
            return False
        readers = [r for v in node.outputs for r in self.readers.get(v, ())]
        if not definition.moves:
            return node.op.name in _HEAVY or not all(map(self.reads_short, readers))
        return node.op.name == "transpose" and bool(readers) and all(r.op.name in _PRODUCTS for r in readers)

    def reads_short(self, node: Node) -> bool:
        """Whether the kernel reads 16 bits faster than float32: a widened copy for it alone is no gain."""
        kernel = self.backend.kernel(node.op.name, shorts_of(tuple(v and v.type for v in node.inputs)))
        return kernel is not None and kernel.reads_short

    def cast(self, node: Node) -> bool:
        """Between 16 bits and float32 nothing is left but the rounding; other casts stay."""
        (x,), (y,) = node.inputs, node.outputs
        if _is_narrow(x) and y.type.dtype is dtypes.float32:
            self.narrow[y] = self.as_wide(x)
            return True
        if not _is_narrow(y):
            return False
        if _is_narrow(x):
            source = self.as_wide(x)
        elif x.type.dtype is dtypes.float32:
            source = self.narrow.get(x, x)
        else:
            return False
        self.keep(y, self.rounded(source, y.type.dtype))
        return True

    def keep(self, value: Value, wide: Value) -> None:
        self.wide[value] = wide
        wide.name = wide.name or value.name

    def rounded(self, value: Value, dtype: dtypes.DType) -> Value:
        return self.emit(ROUNDING[dtype], value)

    def emit(self, op: str, value: Value, **attrs: Any) -> Value:
        return self.builder.emit(find(op), [value], attrs)[0]

    @staticmethod
    def type_of(value: Value | None) -> TensorType | None:
        if value is None or not _is_narrow(value):
            return value and value.type
        return TensorType(dtypes.float32, value.type.shape)

    def as_wide(self, value: Value | None) -> Value | None:
        if not _is_narrow(value):
            return self.as_narrow(value)
        found = self.wide.get(value)
        if found is None:
            if value.is_constant:
                found = self.builder.constant(value.constant.astype(dtypes.float32))
            else:
                found = self.emit("cast", value, dtype=dtypes.float32)
            self.wide[value] = found
            self.narrow[value] = value
        return found

    def as_narrow(self, value: Value | None) -> Value | None:
        """`value` in its own type."""
        found = self.narrow.get(value, value)
        if found is value and value in self.wide and self.narrow.get(value) is not value:
            found = self.narrow[value] = self.emit("cast", self.wide[value], dtype=value.type.dtype)
        return found
