"""Core's IR as the tables of a `.ms` file.

MindSpore Lite's operators take images with the channels last. A value of rank 4 may be written in two
layouts: as it is, and with the channels last; each is made when an operator asks for it, by a Transpose if
need be, so that a chain of image operators has one at either end and none between. What an op of core becomes
is in `rules`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mycelia import bfloat16
from mycelia.ir import Graph, Node, TensorType, Value
from mycelia_lite.converter import obstacles
from mycelia_lite.converter.decompose import expand
from mycelia_lite.converter.errors import Code, ConversionError
from mycelia_lite.converter.options import LARGEST_SIZE
from mycelia_lite.converter.sizes import OpenSizes
from mycelia_lite.converter.source import Source
from mycelia_lite.enums import DataType
from mycelia_lite.format import Table
from mycelia_lite.quant.stored import quant_params

_CONSTANT, _VARIABLE = 0, 2  # Tensor.nodeType
_NCHW, _NHWC, KHWC = 0, 1, 7  # Tensor.format
TO_LAST, TO_FIRST = (0, 2, 3, 1), (0, 3, 1, 2)
_LOOKED_AT = 4096  # bytes by which constants are told apart before they are compared
LAST_AXIS = {0: 0, 1: 3, 2: 1, 3: 2}  # axis of an image -> the same with the channels last


@dataclass(frozen=True)
class State:
    """A variable of a graph. `first`: its elements in the first run, None in graphs beside the model, where
    `of` is its number there; `role`: what a training has it for.
    """

    first: np.ndarray | None
    name: str = ""
    role: int = 0
    of: int = 0


class Writer:
    """The file under construction. Rules call `first`, `last`, `constant` and `emit`."""

    def __init__(self, source: Source, keeps_layout: bool = False) -> None:
        self.source = source
        self.keeps_layout = keeps_layout  # images stay as core has them: their weights are data
        self.tensors: list[Table] = []
        self.nodes: list[Table] = []
        self._first: dict[Value, int] = {}  # value -> its tensor, as core has it
        self._last: dict[Value, int] = {}  # value -> its tensor with the channels last
        self._constants: dict[tuple, list[int]] = {}  # (dtype, shape, first bytes) -> tensors
        self.sizes = OpenSizes(self)
        self._order: list[int] = []  # the nodes of the subgraph at work
        self._subgraphs: list[Table | None] = [None]  # the first one is the model
        self._rules: Mapping[str, Callable] = {}
        self._node: Node | None = None
        self._uses: dict[str, int] = {}
        self._taken: set[str] = set()  # names of nodes
        self._ends: set[Node] = set()  # the last of the nodes that each node of the source became
        self._border = {*source.input_names, *source.output_names}

    # ---- what rules use

    def first(self, value: Value) -> int:
        """The tensor of a value as core has it."""
        if value is None:
            raise self.fail("an input is missing")
        if value in self._first:
            return self._first[value]
        if value.is_constant:
            made = self.constant(value.constant.asnumpy(), value.name)
        elif value not in self._last:
            raise self.fail("it reads a result of another op that Lite does not compute")
        else:
            made = self._turned(self._last[value], value, TO_FIRST, value.type.shape, _NCHW)
        self._first[value] = made
        return made

    def last(self, value: Value) -> int:
        """The tensor of an image value with the channels last."""
        if value not in self._last:
            if len(value.type.shape) != 4:
                raise self.fail(f"an image [N, C, H, W] is expected, not {value.type}")
            n, c, h, w = value.type.shape
            if value.is_constant:
                array = np.ascontiguousarray(value.constant.asnumpy().transpose(TO_LAST))
                self._last[value] = self.constant(array, f"{value.name}_nhwc")
            else:
                self._last[value] = self._turned(self._first[value], value, TO_LAST, (n, h, w, c), _NHWC)
        return self._last[value]

    def is_last(self, value: Value) -> bool:
        """Whether an image value exists with the channels last: what follows elementwise should stay so."""
        return value in self._last

    def constant(self, array: np.ndarray, name: str = "", format: int = _NHWC) -> int:
        """A tensor that holds `array`; equal ones are written once."""
        array = np.asarray(array, order="C")  # 0 dimensions stay 0
        data = memoryview(array.reshape(-1)).cast("B") if array.size else memoryview(b"")
        alike = self._constants.setdefault((array.dtype.str, array.shape, bytes(data[:_LOOKED_AT])), [])
        for made in alike:
            if self.tensors[made].data == data:
                return made
        table = self._tensor(name or f"constant_{len(self.tensors)}", array.dtype, array.shape, format)
        table.nodeType = _CONSTANT
        table.data = data
        alike.append(self._added(table))
        return alike[-1]

    def emit(self, value: Value, primitive: Table, inputs: Sequence[int], last: bool = False) -> int:
        """A node that makes `value`, with the channels last or as core has it; its tensor."""
        return self.emit_all([value], primitive, inputs, last)[0]

    def emit_all(
        self, values: Sequence[Value], primitive: Table, inputs: Sequence[int], last: bool = False
    ) -> list[int]:
        """The same for a node with several results."""
        made = []
        name = self._name(primitive.kind, self._node in self._ends)
        for i, value in enumerate(values):
            shape = value.type.shape
            if last:
                n, c, h, w = shape
                shape = (n, h, w, c)
            format = _NHWC if last else _NCHW
            table = self._tensor(self._inner(name, i), _numpy(value.type), shape, format)
            made.append(self._added(table))
            (self._last if last else self._first)[value] = made[-1]
        self._append(primitive, inputs, made, name)
        return made

    def step(self, primitive: Table, inputs: Sequence[int], dtype, shape: Sequence[int]) -> int:
        """A node between those of the source; its tensor.  `dtype`: NumPy's, or a type that has it."""
        return self.step_all(primitive, inputs, dtype, [shape])[0]

    def step_all(self, primitive: Table, inputs: Sequence[int], dtype, shapes: Sequence) -> list[int]:
        """The same for a node with several results of one dtype."""
        dtype = _numpy(dtype) if isinstance(dtype, TensorType) else np.dtype(dtype)
        name = self._name(primitive.kind)
        made = [
            self._added(self._tensor(self._inner(name, i), dtype, shape, _NHWC))
            for i, shape in enumerate(shapes)
        ]
        self._append(primitive, inputs, made, name)
        return made

    def step_cast(self, tensor: int, type: TensorType, shape: Sequence[int]) -> int:
        """A tensor in the dtype of `type`."""
        return self.step(Table("Cast"), [tensor, self.dtype_of(type)], type, shape)

    def step_to(self, tensor: int, dtype: np.dtype, shape: Sequence[int]) -> int:
        """A tensor in a dtype of NumPy."""
        kind = self.constant(np.asarray(_kind(np.dtype(dtype)), np.int32))
        return self.step(Table("Cast"), [tensor, kind], dtype, shape)

    def anyhow(self, value: Value, axis: int) -> tuple[int, int]:
        """The tensor of a value in a layout that it has, and where `axis` is there."""
        if value not in self._first and value in self._last:
            return self._last[value], LAST_AXIS[axis]
        return self.first(value), axis

    def cast(self, value: Value, tensor: int) -> None:
        """Let `value` be what `tensor` holds, in its own dtype."""
        if self.tensors[tensor].dataType == _kind(_numpy(value.type)):
            self.alias(value, tensor)
        else:
            self.emit(value, Table("Cast"), [tensor, self.dtype_of(value.type)])

    def numbers(self) -> dict[Value, tuple[int, bool]]:
        """The number of the tensor of each value, and whether its channels are last."""
        return {v: (i, True) for v, i in self._last.items()} | {v: (i, False) for v, i in self._first.items()}

    def rank(self, tensor: int) -> int:
        return len(self.tensors[tensor].dims)

    def dtype_of(self, type: TensorType) -> int:
        """The number of a dtype, as Cast takes it."""
        return self.constant(np.asarray(_kind(_numpy(type)), np.int32))

    def alias(self, value: Value, tensor: int, last: bool = False) -> None:
        """Let `value` be what `tensor` holds, with the channels last or as core has it."""
        (self._last if last else self._first)[value] = tensor

    def fail(self, why: str, code: Code = Code.NOT_SUPPORT) -> ConversionError:
        """An error that names the node at work."""
        node = self._node
        if node is None:
            return ConversionError(code, why)
        place = f" at {node.location}" if node.location else ""
        return ConversionError(code, f"op '{node.op.name}'{place}: {why}")

    def fix(self) -> None:
        """The node at work holds for the known sizes of the inputs alone; open ones may be any."""
        if self._node is not None and not self.source.fixed:
            kind = getattr(self._node.location, "function", "") or f"op '{self._node.op.name}'"
            self.source.fixed = f"node {kind}" if kind.startswith("'") else kind

    # ---- the whole

    def run(self, rules) -> Table:
        """The file's root table. Errors: ConversionError that lists all ops without a rule."""
        graph, self._rules = self.source.graph, rules
        missing = expand(graph, rules)
        if missing and not obstacles.are_collected():
            raise ConversionError(
                Code.NOT_FIND_OP, f"ops that Lite has no operator for yet: {', '.join(missing)}"
            )
        states = [s if isinstance(s, State) else State(s) for s in self.source.states]
        inputs = self._write(graph, self.source.input_names, states)
        outputs = []
        for value, name in zip(graph.outputs, self.source.output_names):
            outputs.append(self._named_output(value, name, inputs + outputs))
        for value, entering in zip(graph.outputs[len(outputs) :], graph.parameters[len(inputs) :]):
            self._set_state(value, self.first(entering), inputs + outputs)
        for number in {*inputs, *outputs}:
            if (meaning := self.source.meaning.get(self.tensors[number].name)) is not None:
                self.tensors[number].quantParams = quant_params(*meaning)
        self._subgraphs[0] = self._described("subgraph_0_main", inputs, outputs)
        return Table(
            "MetaGraph",
            name="",
            version="",
            fmkType=int(self.source.framework),
            inputIndex=inputs,
            outputIndex=outputs,
            nodes=self.nodes,
            allTensors=self.tensors,
            subGraph=self._subgraphs,
            fixedBy=self.source.fixed,
        )

    def subgraph(
        self,
        graph: Graph,
        leading: Sequence[TensorType] = (),
        end: Callable[[list[int], list[int]], list[int]] = lambda inputs, outputs: outputs,
    ) -> int:
        """Writes a region as a subgraph of the file; its number.

        `leading`: of inputs before its own, which it does not read. `end`: the outputs, from its own inputs
        and outputs, by nodes that stand behind those of the region.
        """
        kept = self._first, self._last, self.sizes, self._order, self._node
        self._first, self._last, self.sizes, self._order = {}, {}, OpenSizes(self), []
        number = len(self._subgraphs)
        self._subgraphs.append(None)
        unread = [
            self._added(self._tensor(f"{graph.name}_{number}_leading{i}", _numpy(type), type.shape, _NCHW))
            for i, type in enumerate(leading)
        ]
        inputs = self._write(graph, [f"{graph.name}_{number}_input{i}" for i in range(len(graph.parameters))])
        outputs = end(inputs, [self.first(value) for value in graph.outputs])
        inputs = [*unread, *inputs]
        self._subgraphs[number] = self._described(f"subgraph_{number}_{graph.name}", inputs, outputs)
        self._first, self._last, self.sizes, self._order, self._node = kept
        return number

    def beside(
        self, graph: Graph, names: Sequence[str], results: Sequence[str], states: Sequence[State]
    ) -> int:
        """Writes a graph that is a whole of its own on the model's variables; its number.

        `names`, `results`: of its inputs and outputs, which those of variables follow.
        Errors: ConversionError as for `run`.
        """
        kept = self._first, self._last, self.sizes, self._order, self._node
        self._first, self._last, self.sizes, self._order = {}, {}, OpenSizes(self), []
        if missing := expand(graph, self._rules):
            raise ConversionError(
                Code.NOT_FIND_OP, f"ops that Lite has no operator for yet: {', '.join(missing)}"
            )
        inputs = self._write(graph, names, states)
        outputs: list[int] = []
        for value, name in zip(graph.outputs, results):
            outputs.append(self._named_output(value, name, inputs + outputs))
        for value, entering in zip(graph.outputs[len(outputs) :], graph.parameters[len(inputs) :]):
            self._set_state(value, self.first(entering), inputs + outputs)
        self._subgraphs.append(
            self._described(f"subgraph_{len(self._subgraphs)}_{graph.name}", inputs, outputs)
        )
        self._first, self._last, self.sizes, self._order, self._node = kept
        return len(self._subgraphs) - 1

    def _write(self, graph: Graph, names: Sequence[str], states: Sequence[State] = ()) -> list[int]:
        """Writes all nodes; the tensors of the inputs. Parameters behind these are variables."""
        inputs = []
        for value, given in zip(graph.parameters, (*names, *states), strict=True):
            if isinstance(given, State):
                self._state(value, given)
                continue
            inputs.append(self._added(self._tensor(given, _numpy(value.type), value.type.shape, _NCHW)))
            self._first[value] = inputs[-1]
        self._ends.update({n.location: n for n in graph.nodes}.values())
        for node in graph.nodes:
            self._node = node
            if obstacles.are_collected():
                self._try(node, self._rules)
            else:
                self._write_node(node, self._rules)
        return inputs

    def _write_node(self, node: Node, rules) -> None:
        """Write a node by its op's rule. Errors: ConversionError, also for numbers that no file can hold."""
        try:
            rules[node.op.name](self, node)
        except OverflowError as error:  # a file has sizes, places and axes of 32 bits
            raise self.fail(f"a size or attribute is too large for a .ms file: {error}") from error

    def _described(self, name: str, inputs: list[int], outputs: list[int]) -> Table:
        """The table of the subgraph that was written last."""
        used = {*inputs, *outputs}
        for number in self._order:
            used.update(self.nodes[number].inputIndex, self.nodes[number].outputIndex)
        return Table(
            "SubGraph",
            name=name,
            inputIndices=inputs,
            outputIndices=outputs,
            nodeIndices=self._order,
            tensorIndices=sorted(used),
        )

    def _state(self, value: Value, state: State) -> int:
        """A variable's value when a run begins; the node of the model has the one of the first run."""
        name = self._name("State")
        shape, dtype = value.type.shape, _numpy(value.type)
        made = self._added(self._tensor(state.name or self._inner(name, 0), dtype, shape, _NCHW))
        if state.first is None:
            attr = [_attribute("of", np.asarray(state.of, "<i8"))]
        else:
            attr = [_attribute("first", state.first)]
            attr += [_attribute("role", np.asarray(state.role, "<i8"))] if state.role else []
        self._append(Table("Custom", type="State", attr=attr), [], [made], name)
        self._first[value] = made
        return made

    def _set_state(self, value: Value, state: int, taken: Sequence[int]) -> None:
        """What a variable is after a run."""
        made = self._named_output(value, f"{self.tensors[state].name}_next", [*taken, state])
        self._append(Table("Custom", type="SetState"), [made, state], [], self._name("SetState"))

    def _try(self, node: Node, rules) -> None:
        """Write a node; what hinders it is noted, unless it reads a result that is not there for that."""
        inputs = [v for v in node.inputs if v is not None and not v.is_constant]
        if any(v not in self._first and v not in self._last for v in inputs):
            return
        try:
            if node.op.name not in rules:
                raise self.fail("Lite has no operator for it yet", Code.NOT_FIND_OP)
            self._write_node(node, rules)
        except ConversionError as error:
            obstacles.note(error)

    def _named_output(self, value: Value, name: str, taken: Sequence[int]) -> int:
        """The tensor of an output, under its name; an input, a constant or another output is copied."""
        tensor = self.first(value)
        if tensor in taken or self.tensors[tensor].nodeType == _CONSTANT:
            shape = value.type.shape
            made = self._added(self._tensor(name, _numpy(value.type), shape, _NCHW))
            if shape:
                if all(type(n) is int and n > 0 for n in shape):
                    target = self.constant(np.asarray(shape, np.int32))
                else:
                    target = self.step(Table("Shape"), [tensor], np.int32, [len(shape)])
                self._append(Table("Reshape"), [tensor, target], [made], name)
            else:
                self._append(Table("Squeeze"), [tensor], [made], name)
            return made
        self.tensors[tensor].name = name
        return tensor

    def _turned(
        self, tensor: int, value: Value, order: Sequence[int], shape: Sequence[int], format: int
    ) -> int:
        name = self._name("Transpose")
        made = self._added(self._tensor(self._inner(name, 0), _numpy(value.type), shape, format))
        self._append(Table("Transpose"), [tensor, self.constant(np.asarray(order, np.int32))], [made], name)
        return made

    def _append(self, primitive: Table, inputs: Sequence[int], outputs: Sequence[int], name: str) -> None:
        self._order.append(len(self.nodes))
        self.nodes.append(
            Table("CNode", name=name, primitive=primitive, inputIndex=list(inputs), outputIndex=list(outputs))
        )

    def _tensor(self, name: str, dtype: np.dtype, shape: Sequence[int], format: int) -> Table:
        dims = [-1 if type(n) is not int else n for n in shape]
        if any(n > LARGEST_SIZE for n in dims):
            raise self.fail(
                f"'{name}' has the shape {dims}, but sizes are {LARGEST_SIZE} at most in .ms files"
            )
        return Table("Tensor", nodeType=_VARIABLE, dataType=_kind(dtype), dims=dims, format=format, name=name)

    def _added(self, table: Table) -> int:
        self.tensors.append(table)
        return len(self.tensors) - 1

    def _name(self, kind: str, is_last: bool = False) -> str:
        """A name for a node: that of the source's node, to which those on the way to it add their kind."""
        source = getattr(self._node.location, "name", "") if self._node else ""
        base = (source if is_last else f"{source}/{kind}") if source else f"{kind}-op"
        name = "" if not source else base
        while not name or name in self._taken:
            count = self._uses[base] = self._uses.get(base, -1) + 1
            name = f"{base}_{count + 1}" if source else f"{base}{count}"
        self._taken.add(name)
        return name

    def _inner(self, node: str, result: int) -> str:
        """A name for the tensor of a node's result; those of the border are taken."""
        name = f"{node}:{result}" if result else node
        return f"{name}:inner" if name in self._border else name


def _attribute(name: str, array: np.ndarray) -> Table:
    return Table("Attribute", name=name, data=np.ascontiguousarray(array).reshape(-1).view(np.uint8))


def _kind(dtype: np.dtype) -> int:
    """The file's number of a dtype.  Errors: ConversionError if it has none."""
    try:
        return int(DataType.of(dtype))
    except TypeError:
        raise ConversionError(
            Code.NOT_SUPPORT, f"values of {dtype} cannot be written to a .ms file"
        ) from None


def _numpy(type: TensorType) -> np.dtype:
    """Errors: ConversionError for bfloat16, which NumPy has only as the integers of its bits."""
    if type.dtype == bfloat16:
        raise ConversionError(Code.NOT_SUPPORT, "values of bfloat16 cannot be written to a .ms file")
    return np.dtype(type.dtype.np)


def write_khwc(writer: Writer, value: Value) -> int:
    """Weights [O, I / group, kh, kw] of a convolution as the file has them: [O, kh, kw, I / group]."""
    if not value.is_constant:
        raise writer.fail("the weights of a convolution must be constants")
    return writer.constant(value.constant.asnumpy().transpose(TO_LAST), value.name, KHWC)
