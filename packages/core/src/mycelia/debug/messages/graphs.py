"""Graphs as the debugger's service gets them: of a compiled function, or of the eager calls of a step."""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mycelia.debug.messages.debugger_pb2 import (
    AttributeProto,
    GraphProto,
    InputProto,
    NamedValueProto,
    NodeProto,
    OutputProto,
    ParameterProto,
    TensorProto,
    TypeProto,
)
from mycelia.debug.messages.values import NUMBERS
from mycelia.debug.statistics import array_of
from mycelia.engine.base.dtypes import bfloat16
from mycelia.engine.ir.graph import Graph, Value
from mycelia.engine.observing import Operator
from mycelia.engine.observing.observers import Watched
from mycelia.engine.tensors.tensor import Tensor
from mycelia.io import irpb

_TUPLE = 31  # of DataType
_MOST_BYTES = 1 << 20  # of a constant; larger ones are told without their elements
#: An eager call: the operator, its inputs and its outputs.
Call = tuple[Operator, Sequence[Tensor | None], Sequence[Tensor]]


def graph_name(number: int) -> str:
    """How the debugger calls the graph with this `Watched.number`."""
    return f"graph_{number}"


def of_graph(of: Watched, roles: Mapping[str, str]) -> GraphProto:
    """The graph of a compiled function, branches and loops as operators in a row. `roles`: of Parameters, see
    `Run.roles`.
    """
    assert of.graph is not None
    found = _Graph(of.number)
    makers: dict[Value, str] = {}
    for name, value in zip(of.parameter_names, of.graph.parameters):
        makers[value] = found.parameter(name, value.type.dtype, value.type.shape, roles)
    _region(of, of.graph, makers, found)
    for value in of.graph.outputs:
        if value in makers:
            found.output(makers[value], value.type.dtype, value.type.shape)
    return found.message


def _region(of: Watched, graph: Graph, makers: dict[Value, str], found: _Graph) -> None:
    for node in graph.nodes:
        operator = of.operators.get(node)
        for region in node.regions:
            _region(of, region, makers, found)
        if operator is not None:
            for value in node.inputs:
                if value is not None and value.is_constant and value not in makers:
                    makers[value] = found.constant(value.constant)
            inputs = [makers[v] for v in node.inputs if v is not None and v in makers]
            types = [(v.type.dtype, v.type.shape) for v in node.outputs]
            name = found.operator(operator, inputs, types, len(node.inputs))
            makers.update(dict.fromkeys(node.outputs, name))
        elif node.regions:  # what comes out of it was made by what its last region ends with
            for value, made in zip(node.outputs, node.regions[-1].outputs):
                if made in makers:
                    makers[value] = makers[made]


def of_calls(
    number: int, calls: Iterable[Call], parameters: Mapping[str, Tensor], roles: Mapping[str, str]
) -> GraphProto:
    """The graph of eager calls; who made an input is known by where it lies, and Python numbers are constants
    of it.
    """
    found = _Graph(number)
    makers = {
        tensor._data_ptr: found.parameter(name, tensor.dtype, tensor.shape, roles)
        for name, tensor in parameters.items()
    }
    for operator, inputs, outputs in calls:
        feeds = []
        for place, tensor in enumerate(inputs):
            if tensor is not None and tensor._data_ptr in makers:
                feeds.append(makers[tensor._data_ptr])
            elif place in operator.numbers:
                feeds.append(found.constant(operator.numbers[place]))
        types = [(t.dtype, t.shape) for t in outputs]
        name = found.operator(operator, feeds, types, len(inputs))
        makers.update((t._data_ptr, name) for t in outputs if t.size)
    return found.message


@dataclass(frozen=True, slots=True)
class _Outline:
    """What a graph shows of a tensor, whose values are not kept."""

    _data_ptr: int
    dtype: Any
    shape: tuple[int, ...]
    size: int


def outlined(call: Call) -> Call:
    """A call without the values that it read and made."""
    operator, inputs, outputs = call

    def outline(t: Any) -> Any:
        return None if t is None else _Outline(t._data_ptr, t.dtype, t.shape, t.size)

    return operator, [outline(t) for t in inputs], [outline(t) for t in outputs]


class _Graph:
    def __init__(self, number: int) -> None:
        self.message = GraphProto(name=graph_name(number), root_name=graph_name(number))

    def parameter(self, name: str, dtype: Any, shape: Sequence[Any], roles: Mapping[str, str]) -> str:
        told = ParameterProto(name=name, type=_type(dtype, shape), role=roles.get(name, ""))
        self.message.parameters.append(told)
        return name

    def operator(
        self, operator: Operator, inputs: Sequence[str], outputs: Sequence[tuple], input_count: int
    ) -> str:
        name = str(len(self.message.node) + 1)
        types = [_type(*one) for one in outputs]
        made = types[0] if len(types) == 1 else TypeProto(
            data_type=_TUPLE, sequence_type=TypeProto.Sequence(elem_types=types)
        )  # fmt: skip
        self.message.node.append(
            NodeProto(
                name=name, op_type=operator.type, scope=operator.name.rpartition("/")[0],
                full_name=operator.name, input=[InputProto(name=i) for i in inputs], output_type=made,
                source_address="\n".join(_lines(operator)), input_count=input_count,
                attribute=[
                    AttributeProto(name=key, value=irpb.value(value))
                    for key, value in operator.attrs.items() if not isinstance(value, Graph)
                ],
            )
        )  # fmt: skip
        return name

    def constant(self, content: Any) -> str:
        name = f"cst{len(self.message.const_vals) + 1}"
        value = irpb.tensor(_tensor(name, content)) if isinstance(content, Tensor) else irpb.value(content)
        self.message.const_vals.append(NamedValueProto(key=name, value=value, full_name=name))
        return name

    def output(self, name: str, dtype: Any, shape: Sequence[Any]) -> None:
        self.message.outputs.append(OutputProto(name=name, type=_type(dtype, shape)))


def _lines(operator: Operator) -> Iterable[str]:
    for file, line, _ in reversed(operator.stack):
        code = linecache.getline(file, line).strip()
        yield f"# In file {file}:{line}/{code or ' '}/"


def _tensor(name: str, content: Tensor) -> bytes:
    array = array_of(content)
    told = array.tobytes() if array.nbytes <= _MOST_BYTES else b""
    return TensorProto(
        node_name=name, slot="0", tensor_content=told, dims=array.shape,
        data_type=NUMBERS.get(array.dtype.name, 0), finished=True,
    ).SerializeToString()  # fmt: skip


def _type(dtype: Any, shape: Sequence[Any]) -> TypeProto:
    sizes = [TypeProto.Dimension(size=n if isinstance(n, int) else -1) for n in shape]
    name = "float32" if dtype is bfloat16 else dtype.name  # as its values are sent
    return TypeProto(
        data_type=irpb.TENSOR,
        tensor_type=TypeProto.Tensor(elem_type=NUMBERS.get(name, 0), shape=TypeProto.Shape(dim=sizes)),
    )
