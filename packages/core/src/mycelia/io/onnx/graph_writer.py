"""One graph of an ONNX model under construction: what rules use.

Numbers that follow from open sizes are computed by operators on the results of Shape; regions of control flow
are graphs that see the values around them.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from mycelia.engine.base import dtypes
from mycelia.engine.base.dtypes import DType
from mycelia.engine.capture.trace import UnknownSize
from mycelia.engine.ir import Graph, Node, Value
from mycelia.engine.ir.symint import Symbol, SymInt
from mycelia.engine.tensors.tensor import Tensor
from mycelia.io.compositions import Unsupported, composed
from mycelia.io.onnx import onnx_pb2 as pb
from mycelia.io.onnx import rules
from mycelia.io.onnx.model_writer import ModelWriter, Ref, write_attribute, write_info
from mycelia.io.onnx.types import SINCE, computed_in, number_of

_SIZES = {  # what a formula applies -> the operator
    operator.add: "Add", operator.sub: "Sub", operator.mul: "Mul", operator.mod: "Mod", operator.pow: "Pow",
    min: "Min", max: "Max", math.log: "Log", math.sqrt: "Sqrt",
}  # fmt: skip
_ROUNDED = {math.trunc: None, math.floor: "Floor", math.ceil: "Ceil", round: "Round"}


class GraphWriter:
    """One graph of the model under construction. Rules call `op` and what follows it here."""

    def __init__(self, model: ModelWriter, proto: Any, outer: GraphWriter | None = None) -> None:
        self.model, self.proto = model, proto
        self.refs: dict[Value, Any] = {}  # Ref, function that writes it, or None if nothing gives it
        self.symbols: dict[int, tuple[Ref, int]] = {}  # of the node's attributes: a tensor, an axis of it
        self.numbers: dict[tuple, Ref] = dict(outer.numbers) if outer is not None else {}  # made from sizes

    # -- what rules use

    def op(self, kind: str, *inputs: Any, dtype: DType | None = None, **attributes: Any) -> Ref:
        """One use of an operator with one result.

        inputs: Refs, arrays (constants), None for one that is left out. The first that is a tensor of numbers
        decides the type in which it is computed, see `types.computed_in`; others of its dtype are cast too.
        dtype: of the result; by default, that of this input.
        """
        return self.ops(kind, inputs, (dtype,), **attributes)[0]

    def ops(self, kind: str, inputs: Sequence[Any], out: Sequence[Any], **attributes: Any) -> list[Ref]:
        """One use of an operator with `len(out)` results, each of the dtype `out` says (None: as `op`)."""
        if SINCE.get(kind, 0) > self.model.opset:
            raise Unsupported(f"{kind}, which came with version {SINCE[kind]} of the operators")
        refs = [x if x is None or isinstance(x, Ref) else self.constant(x) for x in inputs]
        first = 1 if kind == "Where" else 0  # behind the condition
        leading = refs[first].dtype if refs[first] is not None else dtypes.float32
        wide = computed_in(kind, leading)
        if wide is not leading:
            refs[first:] = [
                self.cast(x, wide) if x is not None and x.dtype is leading else x for x in refs[first:]
            ]
        made = [Ref(self.model.name(kind), wide if dtype is None else dtype) for dtype in out]
        self.node(kind, [x.name if x is not None else "" for x in refs], [m.name for m in made], attributes)
        return [self.cast(m, leading) if dtype is None else m for m, dtype in zip(made, out)]

    def node(self, kind: str, inputs: Sequence[str], outputs: Sequence[str], attributes: dict) -> None:
        """A node as it is, from names."""
        while inputs and not inputs[-1]:
            inputs = inputs[:-1]
        node = self.proto.node.add(op_type=kind, name=self.model.name(f"{kind}_node"))
        node.input.extend(inputs)
        node.output.extend(outputs)
        for name, value in attributes.items():
            if value is not None:
                write_attribute(node.attribute.add(name=name), value, f"{kind}.{name}")

    def constant(self, value: Any, dtype: DType | None = None) -> Ref:
        """A constant: a Tensor, or an array or a number in `dtype`."""
        if not isinstance(value, Tensor):
            value = Tensor(np.asarray(value), dtype)
        return self.model.constant(value)

    def fresh(self, label: str, dtype: DType, shape: tuple[int, ...] | None = None) -> Ref:
        """An input of a graph inside of a node."""
        return Ref(self.model.name(label), dtype, shape)

    def like(self, x: Ref, shape: tuple[int, ...]) -> Ref:
        """`x`, of which these sizes are known."""
        return Ref(x.name, x.dtype, shape)

    def scalar(self, value: Any, like: Ref) -> Ref:
        """A constant without axes, of the dtype of `like`."""
        return self.constant(np.asarray(value), like.dtype)

    def cast(self, x: Ref, dtype: DType) -> Ref:
        """`x` in another dtype."""
        if x.dtype is dtype:
            return x
        made = Ref(self.model.name("Cast"), dtype, x.shape)
        self.node("Cast", [x.name], [made.name], {"to": number_of(dtype)})
        return made

    def ints(self, values: Sequence[Any]) -> Ref:
        """Numbers, some of which may follow from open sizes, as a tensor of int64."""
        if not any(type(n) is SymInt for n in values):
            return self.constant(np.array([int(n) for n in values], np.int64))
        parts: list[Ref] = []
        run: list[int] = []
        for n in (*values, None):
            if n is not None and type(n) is not SymInt:
                run.append(int(n))
                continue
            if run:
                parts.append(self.constant(np.array(run, np.int64)))
                run = []
            if n is not None:
                parts.append(self.cast(self.size(n), dtypes.int64))
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=0)

    def size(self, n: Any) -> Ref:
        """A number that may follow from open sizes, of shape [1]: int64, or float64 if it has a fraction."""
        if type(n) is not SymInt:
            return self.constant(np.array([n], np.float64 if isinstance(n, float) else np.int64))
        function, *operands = n.made_of()
        if function is None:
            return self.size(operands[0])
        if function is Symbol:
            return self.size_of(*self.symbols[operands[0]])
        made = [self.size(o) for o in operands]
        key = (function, *(m.name for m in made))
        if key not in self.numbers:
            self.numbers[key] = self._applied(function, made, n)
        return self.numbers[key]

    def _applied(self, function: Any, made: list[Ref], n: SymInt) -> Ref:
        if function in _ROUNDED:
            kind = _ROUNDED[function]
            return self.cast(made[0] if kind is None else self.op(kind, made[0]), dtypes.int64)
        if function is float:
            return self.cast(made[0], dtypes.float64)
        fraction = function in (operator.truediv, math.log, math.sqrt)
        if fraction or any(m.dtype is dtypes.float64 for m in made):
            made = [self.cast(m, dtypes.float64) for m in made]
        if function is operator.truediv:
            return self.op("Div", *made)
        if function is operator.floordiv and made[0].dtype is dtypes.float64:
            return self.op("Floor", self.op("Div", *made))
        if function is operator.floordiv:  # Div of integers rounds to zero
            rest = self.op("Mod", *made)
            return self.op("Div", self.op("Sub", made[0], rest), made[1])
        if function not in _SIZES or (function is operator.mod and made[0].dtype is dtypes.float64):
            raise Unsupported(f"{n.formula()}, where a size is left open")
        return self.op(_SIZES[function], *made)

    @contextmanager
    def sizes_of(self, tensors: Sequence[Ref], places: Sequence[tuple[int, int]]) -> Iterator[None]:
        """Meanwhile symbols stand for sizes of these tensors: (symbol, axis) for each."""
        outer = self.symbols
        self.symbols = {symbol: (x, axis) for x, (symbol, axis) in zip(tensors, places)}
        try:
            yield
        finally:
            self.symbols = outer

    def size_of(self, x: Ref, axis: int) -> Ref:
        """The size of an axis, of shape [1]."""
        axis %= x.rank
        if x.shape is not None and x.shape[axis] != -1:
            return self.size(int(x.shape[axis]))
        key = ("Shape", x.name, axis)
        if key not in self.numbers:
            self.numbers[key] = self.op("Shape", x, dtype=dtypes.int64, start=axis, end=axis + 1)
        return self.numbers[key]

    def shape_of(self, x: Ref) -> Ref:
        """The sizes of all axes."""
        if x.shape is not None and -1 not in x.shape:
            return self.ints(x.shape)
        key = ("Shape", x.name)
        if key not in self.numbers:
            self.numbers[key] = self.op("Shape", x, dtype=dtypes.int64)
        return self.numbers[key]

    def reshape(self, x: Ref, shape: Sequence[Any]) -> Ref:
        """`x` in another shape; one size may be -1. Sizes that stay are copied from `x`."""
        shape = list(shape)
        if any(type(n) is SymInt for n in shape) and not any(_is(n, 0) for n in shape):
            kept = [0 if self._stays(n, x, axis) else n for axis, n in enumerate(shape)]
            rest = [axis for axis, n in enumerate(kept) if type(n) is SymInt]
            if not rest:
                return self.op("Reshape", x, self.ints(kept))
            if len(rest) == 1 and all(
                type(n) is not SymInt and n > 0 for i, n in enumerate(shape) if i != rest[0]
            ):
                return self.op("Reshape", x, self.ints([-1 if i in rest else n for i, n in enumerate(shape)]))
        zeros = any(type(n) is SymInt or n == 0 for n in shape)
        inferred = any(_is(n, -1) for n in shape)
        return self.op("Reshape", x, self.ints(shape), allowzero=1 if zeros and not inferred else None)

    def _stays(self, n: Any, x: Ref, axis: int) -> bool:
        """Whether a size is that of the same axis of `x`."""
        if type(n) is not SymInt:
            return False
        function, position, *_ = n.made_of()
        if function is not Symbol:
            return False
        tensor, place = self.symbols[position]
        return tensor.name == x.name and place == axis

    def reshape_as(self, x: Ref, like: Ref) -> Ref:
        """`x` in the shape of `like`."""
        zeros = like.shape is None or not {0, -1}.isdisjoint(like.shape)
        return self.op("Reshape", x, self.shape_of(like), allowzero=1 if zeros else None)

    def reduce(self, kind: str, x: Ref, axes: Sequence[int] | None, keep: bool) -> Ref:
        """A reduction over `axes`; None: over all of them."""
        keep_dims = int(keep)
        if axes is None:
            return self.op(kind, x, keepdims=keep_dims)
        if not axes:
            return x
        if kind == "ReduceSum" or self.model.opset >= 18:
            return self.op(kind, x, self.ints(axes), keepdims=keep_dims)
        return self.op(kind, x, axes=list(axes), keepdims=keep_dims)

    def unsqueeze(self, x: Ref, axes: Sequence[int]) -> Ref:
        """`x` with axes of size 1 at these places of the result."""
        return self.op("Unsqueeze", x, self.ints(axes)) if axes else x

    def squeeze(self, x: Ref, axes: Sequence[int]) -> Ref:
        """`x` without these axes of size 1."""
        return self.op("Squeeze", x, self.ints(axes)) if axes else x

    def slice(self, x: Ref, begins: Sequence, ends: Sequence, axes: Sequence, steps: Sequence) -> Ref:
        """Parts of axes, as Slice takes them."""
        return self.op("Slice", x, self.ints(begins), self.ints(ends), self.ints(axes), self.ints(steps))

    def inline(self, graph: Graph, inputs: Sequence[Any]) -> list[Ref]:
        """Writes the nodes of an IR graph here, applied to `inputs`; the Refs of its outputs."""
        present = [x for x in inputs if x is not None]
        outer, self.refs = self.refs, dict(zip(graph.parameters, present, strict=True))
        try:
            for node in graph.nodes:
                self.write(node)
            return [self.value(v) for v in graph.outputs]
        finally:
            self.refs = outer

    def composed(self, node: Node, inputs: Sequence[Any]) -> list[Ref]:
        """What a node gives for `inputs`, from the other ops that it is composed of. Errors: Unsupported."""
        graph = composed(node)
        if graph is None:
            raise Unsupported(f"{node.op.name}{_place(node)}")
        return self.inline(graph, inputs)

    def region(self, label: str) -> GraphWriter:
        """The writer of a graph inside of a node."""
        return GraphWriter(self.model, pb.GraphProto(name=self.model.name(label)), self)

    def add_input(self, x: Ref) -> None:
        """Declares an input of this graph."""
        write_info(self.proto.input.add(name=x.name), x.dtype, x.shape)

    def add_output(self, x: Ref, shape: Sequence[int] | None) -> None:
        """Declares an output of a graph inside of a node, whose value may come from around it."""
        name = self.model.name("Result")
        self.node("Identity", [x.name], [name], {})
        write_info(self.proto.output.add(name=name), x.dtype, shape)

    # -- nodes

    def value(self, value: Value) -> Ref:
        """The Ref of a value of the graph that is written."""
        if value.is_constant:
            return self.constant(value.constant)
        found = self.refs[value]
        if found is None:
            raise Unsupported(f"a further result of {value.producer.op.name}")
        if not isinstance(found, Ref):  # what nobody may use is written when somebody does
            found = self.refs[value] = self._declared(value, found())
        return found

    def _declared(self, value: Value, ref: Ref) -> Ref:
        if ref.dtype is not value.type.dtype:
            raise AssertionError(f"{value} is written as {ref.dtype}")
        return Ref(ref.name, ref.dtype, tuple(int(n) for n in value.type.shape))

    def write(self, node: Node) -> None:
        """Writes an IR node by its rule."""
        try:
            results = self.applied(node, [None if v is None else self.value(v) for v in node.inputs])
        except UnknownSize as e:
            raise Unsupported(f"{node.op.name}{_place(node)}: {e.message}") from None
        except Unsupported as e:
            where = _place(node)
            raise Unsupported(f"{e}" if where in str(e) else f"{e}{where}") from None
        results = [results] if isinstance(results, Ref) else results
        for value, ref in zip(node.outputs, results, strict=True):
            self.refs[value] = self._declared(value, ref) if isinstance(ref, Ref) else ref

    def applied(self, node: Node, inputs: list) -> Any:
        """What an IR node gives for `inputs`, as rules return it."""
        found = rules.find(node.op, self.model.opset)
        if found is None:
            return self.composed(node, inputs)
        for v in (*node.inputs, *node.outputs):
            if v is not None:
                number_of(v.type.dtype)
        return found(self, node, *inputs)


def _is(n: Any, number: int) -> bool:
    """Whether a size is this number whatever open sizes are."""
    return type(n) is not SymInt and n == number


def _place(node: Node) -> str:
    return f" ({node.location})" if node.location else ""
