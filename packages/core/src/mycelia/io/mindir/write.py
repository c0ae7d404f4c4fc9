"""Writing MindIR: an IR graph becomes a ModelProto that MindSpore 2.10 loads.

Values have names, and names are global to the model. Operators come in two kinds: of functions every argument
is an input (numbers as Constant nodes), of the others the arguments that are no tensors are attributes;
`primitives` in the file says which is which. What each op turns into is in `rules`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mycelia.engine.capture.open_sizes import OpenSize, unopened
from mycelia.engine.capture.trace import UnknownSize
from mycelia.engine.ir import Graph, Node, TensorType, Value
from mycelia.engine.ir.sizes import is_symbolic
from mycelia.engine.ir.symint import Symbol, SymInt
from mycelia.io.compositions import composed
from mycelia.io.mindir import mindir_pb2 as pb
from mycelia.io.mindir import rules
from mycelia.io.mindir.changes import Changes
from mycelia.io.mindir.rules.sizes import SCALAR_OPERATORS
from mycelia.io.mindir.values import (
    DATA,
    IO_MONAD,
    MONAD,
    TYPE,
    data_type,
    id_of_dtype,
    write_tensor,
    write_value,
)
from mycelia.io.raw import of_tensor

MODEL_VERSION = "2.10.0"  # the framework whose form of MindIR this is
_IR_VERSION = "1.1"


class Name(str):
    """The name of a value in the model, as opposed to a text that is a constant."""


class ScalarName(Name):
    """The name of a number that is no tensor."""


class GraphWriter:
    """One graph of the model under construction. Rules call `op`, `primitive`, `item` and `tuple`."""

    def __init__(self, model: ModelWriter, proto: Any) -> None:
        self.model, self.proto = model, proto
        self.names: dict[Value, Name] = {}
        self.counts: dict[str, int] = {}  # label -> how often this graph uses it, for the display path
        self.symbols: dict[int, tuple[Name, int]] = {}  # of the node's attributes: a tensor, an axis of it
        self.scalars: dict[tuple, Name] = {}  # operator and operands -> a number made from sizes
        self.printed: Name | None = None  # the state after what was printed last

    # -- what rules use

    def op(self, operator: str, *arguments: Any, out: Any = None) -> Name:
        """A call of a function operator: every argument is an input; what is no Name becomes a constant.

        out: TensorType of the result, or a tuple of them; None leaves it to the reader to infer.
        """
        return self.call(operator, self.model.primitive_key(operator, {}, function=True), arguments, out)

    def primitive(self, operator: str, *inputs: Any, out: Any = None, **attributes: Any) -> Name:
        """A call of an operator whose arguments beyond tensors are attributes."""
        if is_symbolic(attributes):
            raise rules.Unsupported(
                f"{operator} with an attribute that follows from an open size: {attributes}"
            )
        return self.call(
            operator, self.model.primitive_key(operator, attributes, function=False), inputs, out
        )

    def item(self, sequence: Name, index: int, out: Any = None) -> Name:
        """An element of a tuple."""
        return self.primitive("TupleGetItem", sequence, index, out=out)

    def tuple(self, items: Sequence[Any], out: Any = None) -> Name:
        """A tuple of values."""
        return self.primitive("MakeTuple", *items, out=out)

    def constant(self, value: Any) -> Name:
        """The name of a constant."""
        return self.model.constant(self.proto, value)

    def print(self, *items: Any) -> None:
        """Prints each item on a line, after what was printed before."""
        if self.proto is not self.model.proto.graph:
            raise rules.Unsupported("print under a condition or in a loop")
        state = self.constant(IO_MONAD) if self.printed is None else self.printed
        line = self.primitive("Print", *items, state, side_effect_io=True)
        self.printed = self.primitive("UpdateState", state, line)

    def choose(self, condition: Name, if_true: tuple, if_false: tuple, out: Any) -> Name:
        """Calls one of two graphs, each given as (its name, its inputs)."""
        branches = [
            self.primitive("Partial", graph, *inputs, side_effect_propagate=1)
            for graph, inputs in (if_true, if_false)
        ]
        chosen = self.primitive("Switch", condition, *branches)
        return self.call("CNode", chosen, (), out)

    def inline(self, graph: Graph, inputs: Sequence[Any]) -> list[Name]:
        """Writes the nodes of an IR graph here, applied to `inputs`; the names of its outputs."""
        present = [name for name in inputs if name is not None]
        outer, self.names = self.names, dict(zip(graph.parameters, present, strict=True))
        try:
            for node in graph.nodes:
                self.node(node)
            return [self.value(v) for v in graph.outputs]
        finally:
            self.names = outer

    def result(self, names: Sequence[Any], types: Sequence[TensorType]) -> Name:
        """What a graph returns for several outputs: the value itself, or a tuple."""
        return names[0] if len(names) == 1 else self.tuple(names, out=tuple(types))

    def results(self, name: Name, types: Sequence[TensorType]) -> list[Name]:
        """The outputs in what a call returned (see `result`)."""
        return [name] if len(types) == 1 else [self.item(name, i, t) for i, t in enumerate(types)]

    # -- nodes

    def call(self, label: str, target: str, arguments: Iterable[Any], out: Any = None) -> Name:
        """A node that calls a primitive, a graph, or a function value."""
        inputs = [self.argument(a, derives=label == "Reshape") for a in arguments]
        name = Name(f"{self.proto.name}:{label}:{self.model.number()}")
        node = self.proto.node.add(input=inputs, output=[name], name=name, op_type=f"REF::{target}")
        index = self.counts[label] = self.counts.get(label, -1) + 1
        node.domain = f"Default/{label}-op{index}"
        if out is not None:
            write_type(node.attribute.add(name="shape"), out)
        return name

    def argument(self, value: Any, derives: bool = False) -> Name:
        """The name of an argument: a value of the graph, a constant, or what follows from open sizes.

        derives: the operator works out one size of -1 by itself.
        """
        if isinstance(value, Name):
            return value
        if type(value) is SymInt:
            return self.scalar(value)
        if is_symbolic(value):
            return self.tuple(value)
        if isinstance(value, tuple):
            left = sum(isinstance(n, OpenSize) for n in value)
            if left > 1 or (left and not (derives and value.count(-1) == 1)):
                raise rules.Unsupported(f"a shape {value} with sizes that are left open")
        return self.constant(value)

    def scalar(self, size: SymInt) -> Name:
        """A number that follows from the sizes of tensors."""
        function, *operands = size.made_of()
        if function is None:
            return self.constant(operands[0])
        if function is Symbol:
            tensor, axis = self.symbols[operands[0]]
            return self.once("TupleGetItem", self.once("Shape", tensor), axis)
        if function not in SCALAR_OPERATORS:
            raise rules.Unsupported(f"{size.formula()}, where a size is left open")
        operator, *more = SCALAR_OPERATORS[function]
        return self.once(operator, *map(self.scalar, operands), *more)

    def once(self, operator: str, *arguments: Any) -> Name:
        """A call that gives a number or a shape; the same one again is not written twice."""
        key = (operator, *arguments)
        if key not in self.scalars:
            write = self.primitive if operator == "TupleGetItem" else self.op
            self.scalars[key] = ScalarName(write(operator, *arguments))
        return self.scalars[key]

    def value(self, value: Value | None) -> Any:
        """The name of an IR value; a Tensor for a constant."""
        if value is None:
            return None
        if value.is_constant:
            return self.constant(value.constant)
        name = self.names[value]
        if callable(name):
            name = self.names[value] = name()
        if name is None:
            raise rules.Unsupported(f"the statistics of {value.producer.op.name}, which only gradients use")
        if type(name) is ScalarName:
            dtype = id_of_dtype(value.type.dtype)
            return Name(self.once("ScalarToTensor", name, dtype))
        return self.model.loaded(self, name)

    def node(self, node: Node) -> None:
        """Writes an IR node by its rule."""
        try:
            results = self.applied(node, [self.value(v) for v in node.inputs])
        except UnknownSize as e:
            raise rules.Unsupported(f"{node.op.name}{_place(node)}: {e.message}") from None
        except rules.Unsupported as e:
            where = _place(node)
            raise rules.Unsupported(f"{e}" if where in str(e) else f"{e}{where}") from None
        if isinstance(results, Name):
            results = [results]
        self.names.update(zip(node.outputs, results, strict=True))

    def applied(self, node: Node, inputs: list) -> Any:
        """What an IR node gives for `inputs`, as rules return it."""
        rule = rules.find(node.op)
        if rule is not None:
            return rule(self, node, inputs)
        return self.composed(node, inputs)

    def composed(self, node: Node, inputs: list) -> list[Name]:
        """What a node gives, out of other ops."""
        graph = composed(node)
        if graph is None:
            raise rules.Unsupported(f"{node.op.name}{_place(node)}")
        return self.inline(graph, inputs)

    def change(
        self, operator: str, inputs: Sequence[Any], attributes: dict, state: Any, *, function=False, out=None
    ) -> Name:
        """A call that changes Parameters, which stand among the inputs as references."""
        key = self.model.primitive_key(operator, {**attributes, "side_effect_mem": True}, function=function)
        return self.call(operator, key, (*inputs, state), out)


def _place(node: Node) -> str:
    return f" ({node.location})" if node.location else ""


class ModelWriter:
    """A ModelProto under construction. `name` is the name of its main graph."""

    def __init__(self, name: str) -> None:
        self.proto = pb.ModelProto(
            ir_version=_IR_VERSION,
            producer_name="MindSpore",  # readers refuse a file without one of their own
            model_version=MODEL_VERSION,
            little_endian=True,
            mind_ir_version=pb.IR_VERSION_WITH_SCALAR_GRAPH_HOLDER,
        )
        self.name = name
        self.count = 0
        self.primitives: dict[tuple, str] = {}
        self.constants: dict[bytes, Name] = {}
        self.weights: dict[Name, TensorType] = {}
        self.loads: dict[Name, Name] = {}  # weight -> its value, once it was used
        self.updated: set[Name] = set()  # weights that the graph assigns
        self.pending: deque[tuple[Name, Sequence[TensorType], Callable, Any]] = deque()

    def number(self) -> int:
        """The next number of nodes and primitives."""
        self.count += 1
        return self.count

    def primitive_key(self, operator: str, attributes: dict[str, Any], *, function: bool) -> str:
        """The key of an operator with these attributes, which is written once."""
        key = (operator, repr(sorted(attributes.items())))
        if key not in self.primitives:
            name = f"{operator}:{self.number()}"
            kind = pb.PrimitiveProto.PRIMITIVE_FUNCTION if function else pb.PrimitiveProto.PRIMITIVE
            proto = self.proto.primitives.add(name=name, op_type=operator, instance_name="", prim_type=kind)
            for attribute, value in attributes.items():
                write_value(proto.attribute.add(name=attribute), value)
            self.primitives[key] = name
        return self.primitives[key]

    def constant(self, graph: Any, value: Any) -> Name:
        """The name of a constant; its node goes into `graph` when it is the first of its value.

        Graphs share constants by name and are read in the order of the file; they are written in that order
        too, so the first use is also the first that a reader meets.
        """
        attribute = write_value(pb.AttributeProto(name="value"), value)
        content = attribute.SerializeToString(deterministic=True)
        if content not in self.constants:
            name = Name(f"ValueNode_{self.number()}")
            graph.node.add(output=[name], name=name, op_type="Constant").attribute.append(attribute)
            self.constants[content] = name
        return self.constants[content]

    def loaded(self, writer: GraphWriter, name: Name) -> Name:
        """The value of a parameter: `Load` of it, once; other names stand for themselves.

        A Load is a view of the parameter: of one that the graph assigns a copy is read.
        """
        if name not in self.weights:
            return name
        if name not in self.loads:
            type = self.weights[name]
            value = writer.primitive("Load", name, MONAD, out=type)
            if name in self.updated:
                value = writer.primitive("TensorMove", value, out=type)
            self.loads[name] = value
        return self.loads[name]

    def declare(self, label: str) -> Name:
        """The name of a graph that `define` will describe."""
        return Name(f"{self.name}_{label}_{self.number()}")

    def define(self, name: Name, types: Sequence[TensorType], build: Callable, out: Any) -> None:
        """A graph: build(writer, names of its inputs) writes its nodes and gives the name of its result."""
        self.pending.append((name, types, build, out))

    def write_functions(self) -> None:
        """Writes the graphs that were asked for, and those that they ask for."""
        while self.pending:
            name, types, build, out = self.pending.popleft()
            proto = self.proto.functions.add(name=name)
            writer = GraphWriter(self, proto)
            inputs = []
            for i, type in enumerate(types):
                inputs.append(Name(f"{name}:x{i}"))
                write_info(proto.input.add(name=inputs[-1]), type)
            write_info(proto.output.add(name=build(writer, inputs)), out)


def to_model(
    graph: Graph,
    input_names: Sequence[str],
    weights: dict[Value, Any],
    updates: Sequence[tuple[Any, Value]] = (),
    *,
    name: str = "main",
    structure: Any = None,
    with_data: bool = True,
) -> Any:
    """The ModelProto of an IR graph.

    input_names: of the parameters that are not in `weights` (graph parameter -> Parameter), in order.
    updates: (Parameter, value) pairs that the graph writes at its end;
    the values follow the results in its outputs.
    with_data: False: the message lacks the bytes of the weights, which come in the order of the graph.
    structure: the result as nested tuples of output positions; by default the output, or a flat tuple.
    Errors: ValueError that lists the operations that MindIR cannot express.
    """
    model = ModelWriter(name)
    main = model.proto.graph
    main.name = name
    main.bprop_hash = main.bprop_filepath = ""
    writer = GraphWriter(model, main)
    names = iter(input_names)
    model.updated = {Name(f"{name}:{parameter.name}") for parameter, _ in updates}
    for value in graph.parameters:
        if value in weights:
            parameter = weights[value]
            writer.names[value] = Name(f"{name}:{parameter.name}")
            model.weights[writer.names[value]] = value.type
            proto = main.parameter.add(name=writer.names[value], ref_key=parameter.name)
            write_tensor(proto, of_tensor(parameter), with_data=with_data)
            proto.compression_type = DATA.NO_COMPRESSION
        else:
            writer.names[value] = Name(f"{name}:{next(names)}")
            write_info(main.input.add(name=writer.names[value]), value.type)
    unsupported = []
    changing = Changes(writer, graph, weights, updates)
    for node in graph.nodes:
        try:
            if not changing.write(node):
                writer.node(node)
        except rules.Unsupported as e:
            unsupported.append(str(e))
            writer.names.update(
                (v, Name("")) for v in node.outputs
            )  # go on: the error names everything at once
    try:
        if structure is None:
            count = len(graph.outputs) - len(updates)
            structure = 0 if count == 1 else tuple(range(count))
        result, type = _nested(writer, graph, structure)
        if updates:
            result = _write_updates(writer, result, type, changing)
        if writer.printed is not None:
            result = writer.primitive("Depend", result, writer.printed, out=type, side_effect_propagate=1)
        write_info(main.output.add(name=result), type)
        model.write_functions()
    except rules.Unsupported as e:
        unsupported.append(str(e))
    if unsupported:
        raise ValueError(f"MindIR has no operator for: {', '.join(dict.fromkeys(unsupported))}")
    return model.proto


def _nested(writer: GraphWriter, graph: Graph, structure: Any) -> tuple[Name, Any]:
    """Name and type of a result."""
    if isinstance(structure, int):
        value = graph.outputs[structure]
        return writer.value(value), value.type
    items = [_nested(writer, graph, s) for s in structure]
    type = tuple(t for _, t in items)
    return writer.tuple([n for n, _ in items], out=type), type


def _write_updates(writer: GraphWriter, result: Name, type: Any, changing: Changes) -> Name:
    """Assigns parameters after their old values were copied: the order is that of the monads."""
    values = [(parameter.name, writer.value(value)) for parameter, value in changing.assigned]
    steps = changing.named_inputs()
    copies = [copy for name, copy in writer.model.loads.items() if name in writer.model.updated]
    state = changing.state
    if copies:
        state = writer.primitive("UpdateState", state, writer.tuple(copies))
    for write in steps:
        state = writer.primitive("UpdateState", state, write(state))
    for name, value in values:
        reference = Name(f"{writer.proto.name}:{name}")
        key = writer.model.primitive_key("Assign", {"side_effect_mem": True}, function=True)
        state = writer.primitive("UpdateState", state, writer.call("Assign", key, (reference, value, state)))
    return writer.primitive("Depend", result, state, out=type, side_effect_propagate=1)


# ---- types -------------------------------------------------------------------------------------
def write_type(attribute: Any, type: Any) -> Any:
    """Describes a result in an attribute: a TensorType, or a tuple of descriptions."""
    if isinstance(type, TensorType):
        attribute.type = TYPE.TENSORS
        attribute.tensors.add(dims=unopened(type).shape, data_type=data_type(type.dtype))
        return attribute
    attribute.type = TYPE.TUPLE
    attribute.seq_info.is_dyn_len = False
    for item in type:
        write_type(attribute.values.add(), item)
    return attribute


def write_info(info: Any, type: Any) -> None:
    """Describes an input or result of a graph."""
    if isinstance(type, TensorType):
        info.tensor.add(dims=unopened(type).shape, data_type=data_type(type.dtype))
    else:
        info.denotation = "Tuple"
        write_type(info.attr_info, type)
