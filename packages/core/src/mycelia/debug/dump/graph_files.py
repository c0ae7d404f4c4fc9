"""What a dump says of graphs: the IR with the user's lines, the order of execution, constants."""

from __future__ import annotations

import json
import linecache
import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from mycelia.debug.dump import files
from mycelia.debug.dump.operator_files import Ends, write_operators
from mycelia.debug.messages import graphs
from mycelia.debug.messages.graphs import Call
from mycelia.engine.base.dtypes import DType
from mycelia.engine.base.wire import field
from mycelia.engine.ir.graph import Graph, Node, Value
from mycelia.engine.observing import Operator
from mycelia.engine.observing.observers import Watched
from mycelia.engine.tensors.tensor import Tensor

_NOTHING_KNOWN: Mapping[str, str] = MappingProxyType({})


def write_graph(root: str, of: Watched, roles: Mapping[str, str] = _NOTHING_KNOWN) -> None:
    """``graphs/ms_output_trace_code_graph_N.ir`` and ``.pb``, what `write_operators` writes, and
    ``execution_order/ms_execution_order_graph_N.csv`` below `root`. `roles`: of Parameters, see `Run.roles`.

    Errors: OSError.
    """
    assert of.graph is not None
    for folder in ("graphs", "execution_order"):
        os.makedirs(os.path.join(root, folder), exist_ok=True)
    path = os.path.join(root, "graphs", f"ms_output_trace_code_graph_{of.number}")
    files.write(f"{path}.ir", [_Text(of, roles).text()])
    write_message(path, of.number, graphs.of_graph(of, roles))
    known = (
        (
            operator,
            Ends(
                [None if value is None else (value.type.dtype, value.type.shape) for value in node.inputs],
                [(value.type.dtype, value.type.shape) for value in node.outputs],
                [i for i, value in enumerate(node.inputs) if value is not None and value.is_constant],
            ),
        )
        for node, operator in of.operators.items()
    )
    write_operators(root, of.number, known)
    names = [operator.name for operator in of.operators.values()]
    write_order(root, of.number, names)


def text_of(of: Watched) -> str:
    """The form of MindSpore's IR files: an operator a line, below it types, full name and source lines."""
    return _Text(of, _NOTHING_KNOWN).text()


def write_calls(
    root: str,
    number: int,
    calls: list[Call],
    parameters: Sequence[tuple[str, Tensor]] = (),
    roles: Mapping[str, str] = _NOTHING_KNOWN,
) -> None:
    """The same files for the eager calls of a step, which read `parameters`; who made an input is known by
    where it lies, and ``_`` stands for what no call made.

    Errors: OSError.
    """
    os.makedirs(os.path.join(root, "graphs"), exist_ok=True)
    lines = [f"# IR entry: @eager{number}", f"# Total params: {len(parameters)}", "# Params:"]
    made: dict[int, str] = {}  # address -> value
    known: list[tuple[Operator, Ends]] = []
    for place, (label, tensor) in enumerate(parameters, 1):
        made[tensor._data_ptr] = f"%para{place}_{label}"
        lines.append(f"{made[tensor._data_ptr]}: {_shown(tensor.dtype, tensor.shape)}{_role(label, roles)}")
    lines += ["", f"subgraph @eager{number}() {{"]
    for place, (operator, inputs, outputs) in enumerate(calls):
        read = ", ".join("_" if t is None else made.get(t._data_ptr, "_") for t in inputs)
        single = [
            i for i, t in enumerate(inputs) if t is not None and t.size == 1 and t._data_ptr not in made
        ]
        read_ends = [None if t is None else (t.dtype, t.shape) for t in inputs]
        known.append((operator, Ends(read_ends, [(t.dtype, t.shape) for t in outputs], single)))
        values = [f"%{place}_{slot}" for slot in range(len(outputs))]
        made.update((t._data_ptr, value) for t, value in zip(outputs, values) if t.size)
        attrs = _attributes(operator.attrs)
        lines.append(f"  {', '.join(values) or f'%{place}_0'} = {operator.type}({read}) {{{attrs}}}")
        lines.append(f"      : ({_types(inputs)}) -> ({_types(outputs)})")
        lines += _origin(operator, "      ")
    path = os.path.join(root, "graphs", f"ms_output_trace_code_graph_{number}")
    files.write(f"{path}.ir", ["\n".join([*lines, "}", ""])])
    write_message(path, number, graphs.of_calls(number, calls, dict(parameters), roles))
    write_operators(root, number, known)
    write_order(root, number, [operator.name for operator, _, _ in calls])


def write_message(path: str, number: int, graph: Any) -> None:
    """`graph`, a GraphProto, in a ModelProto of version 1, by the names that MindInsight looks for: it takes
    the number behind the last underscore.
    """
    graph.name, graph.root_name = f"kernel_graph_{number}", str(number)
    files.write(f"{path}.pb", [field(1, 1) + field(4, graph.SerializeToString())])


def write_order(root: str, number: int, names: list[str]) -> None:
    """The full names of a graph's operators, in order of execution."""
    os.makedirs(os.path.join(root, "execution_order"), exist_ok=True)
    order = os.path.join(root, "execution_order", f"ms_execution_order_graph_{number}.csv")
    files.write(order, ["\n".join(["NodeExecutionOrder-FullNameWithScope", *names, ""])])


def note_run(root: str, number: int, iteration: int) -> None:
    """A line in ``ms_global_execution_order_graph_N.csv`` for a run of a graph that was looked at, whether or
    not it left tensors.
    """
    name = f"ms_global_execution_order_graph_{number}.csv"
    files.append(os.path.join(root, "execution_order", name), f"{iteration}\n")


def constants(graph: Graph) -> list[Tensor]:
    """The constant tensors that the graph and its regions read, each once."""
    found: dict[int, Tensor] = {}
    for node in graph.nodes:
        for value in node.inputs:
            if value is not None and value.is_constant:
                found.setdefault(id(value.constant), value.constant)
        for region in node.regions:
            found.update((id(t), t) for t in constants(region))
    return list(found.values())


class _Text:
    """Writes `text_of`, with the roles of Parameters."""

    def __init__(self, of: Watched, roles: Mapping[str, str]) -> None:
        self.of, self.roles = of, roles
        self.names: dict[Value, str] = {}
        self.count = 0

    def text(self) -> str:
        graph = self.of.graph
        assert graph is not None
        name = f"kernel_graph{self.of.number}"
        lines = [
            f"# IR entry: @{name}",
            f"# {graph.name}",
            "",
            f"# Total params: {len(graph.parameters)}",
            "# Params:",
        ]
        for index, (label, value) in enumerate(zip(self.of.parameter_names, graph.parameters), 1):
            self.names[value] = f"%para{index}_{label}"
            lines.append(f"{self.names[value]}: {_type(value)}{_role(label, self.roles)}")
        lines += ["", f"subgraph @{name}() {{"]
        self.region(graph, lines, "  ")
        lines += ["}", ""]
        return "\n".join(lines)

    def region(self, graph: Graph, lines: list[str], indent: str) -> None:
        for node in graph.nodes:
            self.node(node, lines, indent)
        lines.append(f"{indent}Return({', '.join(map(self.use, graph.outputs))})")

    def node(self, node: Node, lines: list[str], indent: str) -> None:
        inputs = ", ".join(map(self.use, node.inputs))
        made = []
        for value in node.outputs:
            self.names[value] = f"%{self.count}"
            self.count += 1
            made.append(self.names[value])
        operator = self.of.operators.get(node)
        kind = operator.type if operator else node.op.name
        lines.append(f"{indent}{', '.join(made)} = {kind}({inputs}) {{{_attributes(node.attrs)}}}")
        inner = indent + "    "
        types = ", ".join("<None>" if v is None else _type(v) for v in node.inputs)
        lines.append(f"{inner}: ({types}) -> ({', '.join(map(_type, node.outputs))})")
        if operator:
            lines += _origin(operator, inner)
        for region in node.regions:
            for index, value in enumerate(region.parameters):
                self.names[value] = f"%region{self.count}_{index}"
            lines.append(f"{inner}{{")
            self.region(region, lines, inner + "  ")
            lines.append(f"{inner}}}")

    def use(self, value: Value | None) -> str:
        if value is None:
            return "None"
        if value.is_constant:
            return f"const {_type(value)}"
        return self.names.get(value, "%?")


def _origin(operator: Operator, indent: str) -> list[str]:
    lines = [f"{indent}# Fullname with scope: ({operator.name})"]
    for file, line, _ in reversed(operator.stack):
        code = linecache.getline(file, line).rstrip("\n")
        bare = code.strip()
        start = len(code) - len(code.lstrip())
        lines.append(f"{indent}# In file {file}:{line}, {start}~{start + len(bare)}/{code}/")
    return lines


def _type(value: Value) -> str:
    return _shown(value.type.dtype, value.type.shape)


def _types(tensors: Sequence[Tensor | None]) -> str:
    return ", ".join("<None>" if t is None else _shown(t.dtype, t.shape) for t in tensors)


def _shown(dtype: DType, shape: Sequence[Any]) -> str:
    return f"<Tensor[{files.dtype_name(dtype)}], ({', '.join(map(str, shape))})>"


def _role(label: str, roles: Mapping[str, str]) -> str:
    return f"  :  role: {roles[label]}" if label in roles else ""


def _attributes(attrs: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}: {_shown_value(v)}" for key, v in attrs.items() if not isinstance(v, Graph))


def _shown_value(value: Any) -> str:
    """On one line, a text in quotes."""
    return json.dumps(value) if isinstance(value, str) else str(value).replace("\n", " ")
