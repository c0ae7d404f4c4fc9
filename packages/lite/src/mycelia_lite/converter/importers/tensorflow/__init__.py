"""TF: frozen graphs of TensorFlow, whose nodes run one after the other on core's ops, which are captured.

Inputs are the placeholders, outputs the nodes that no other reads. Operators that TensorFlow Lite has, too,
are imported as these (`lite`); the others are in files by topic.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mycelia.capture.trace import Trace
from mycelia_lite.converter import obstacles
from mycelia_lite.converter.errors import Code, ConversionError
from mycelia_lite.converter.importers.inputs import given_shape, parameter, require_inputs
from mycelia_lite.converter.importers.nodes import Nodes, captured, entry_of, require_none
from mycelia_lite.converter.importers.tensorflow import control, graph_pb2, layers, lite
from mycelia_lite.converter.importers.tensorflow.calls import OPERATORS, Call
from mycelia_lite.converter.importers.tensorflow.file import (
    broken,
    dtype_of,
    read_graph,
    shape_of_message,
    tensor_of,
)
from mycelia_lite.converter.importers.tflite.calls import as_tensor
from mycelia_lite.converter.source import Source
from mycelia_lite.enums import FmkType

TOPICS = (control, layers, lite)
_INPUT, _CONSTANT = "Placeholder", "Const"
_WITHOUT_RESULTS = ("NoOp", "Assert", "Print", "PrintV2", "SaveV2", "Const", "Placeholder")
_VARIABLES = ("VariableV2", "Variable", "VarHandleOp", "ReadVariableOp", "AssignVariableOp")
_DEEPEST = 50  # functions within functions
#: Which result of an operator with several a name in a function stands for; of others the number alone tells.
_RESULTS = {
    "values": 0, "indices": 1, "y": 0, "batch_mean": 1, "batch_variance": 2, "reserve_space_1": 3,
    "reserve_space_2": 4, "reserve_space_3": 5,
}  # fmt: skip
_PASSED_OVER: list[Any] = []  # the results of a node that was passed over
_ARGUMENT = graph_pb2.Node(
    name="argument", op="_Arg"
)  # in the place of an argument among the nodes of a function


def load(path: str, input_shapes: Mapping[str, Sequence[int]]) -> Source:
    """The graph of a file with inputs of these shapes, by name; others keep the file's.

    Errors: ConversionError if the file cannot be read, has operators, attributes or types that are not
    imported (all unknown operators in one error), or an input has no such name or dimensions.
    """
    return _Model(path).source(input_shapes)


class _Model:
    """A file, and what its nodes share."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.graph = read_graph(path)
        self.functions = {f.signature.name: f for f in self.graph.library.function}
        self.nodes = Nodes(os.path.basename(path))
        self.depth = 0

    def source(self, input_shapes: Mapping[str, Sequence[int]]) -> Source:
        nodes = {node.name: node for node in self.graph.node}
        read = {_reference(i)[0] for node in self.graph.node for i in node.input}
        ends = [n.name for n in self.graph.node if n.name not in read and n.op not in _WITHOUT_RESULTS]
        if not ends:
            raise broken(self.path, "every result is read by a node, so there is no output")
        order = self._ordered(nodes, ends)
        self._require_operators(order)
        inputs = [n for n in order if n.op == _INPUT]
        places = {name: place for place, name in enumerate(nodes)}
        inputs.sort(key=lambda node: places[node.name])
        types = self._input_types(inputs, input_shapes)
        names: list[str] = []

        def run(trace: Trace) -> list[Any]:
            values: dict[str, Sequence[Any]] = {}
            symbols: dict[str, Any] = {}
            for node, (dtype, shape) in zip(inputs, types):
                # Where the first sizes of inputs are open, they are one size.
                batch = ["batch"] if len(shape) > 1 else []
                values[node.name] = [parameter(trace, node.name, dtype, shape, batch, symbols)]
            self._run(order, values, trace)
            found = []
            for end in ends:
                results = [v for v in values[end] if v is not None]
                names.extend([end] if len(results) == 1 else [f"{end}:{i}" for i in range(len(results))])
                found += [v if v is obstacles.UNKNOWN else self._output(end, v) for v in results]
            return found

        graph = captured(run)
        return Source(graph, [n.name for n in inputs], names, FmkType.TF, fixed=self.nodes.fixed)

    def _output(self, name: str, value: Any) -> Any:
        if isinstance(value, control.Reserved):
            raise broken(self.path, f"the output '{name}' is a list without elements")
        return as_tensor(value)

    def _input_types(self, inputs: Sequence[Any], given: Mapping[str, Sequence[int]]) -> list[tuple]:
        """(dtype, sizes with -1 for open ones) of each input."""
        require_inputs([n.name for n in inputs], given)
        types = []
        for node in inputs:
            call, what = Call(node), f"the input '{node.name}'"
            dtype, message = dtype_of(call.need("dtype", int), what), call.get("shape")
            shape = None if message is None else shape_of_message(message, what)
            if shape is None:
                if node.name not in given:
                    raise ConversionError(
                        Code.INPUT_PARAM_INVALID, f"{what} has no shape in the file: give inputShape"
                    )
                shape = tuple(given[node.name])
            types.append((dtype, given_shape(node.name, shape, given)))
        return types

    # ---- what the file asks for

    def _ordered(self, nodes: Mapping[str, Any], ends: Sequence[str]) -> list[Any]:
        """The nodes on which these ends depend, each behind what it reads.

        Errors: ConversionError for a node that is not there, and for one that depends on itself.
        """
        done, open_, order = set(), set(), []
        for end in ends:
            work = [(end, False)]
            while work:
                name, behind = work.pop()
                if behind:
                    open_.discard(name)
                    done.add(name)
                    order.append(nodes[name])
                    continue
                if name in done:
                    continue
                if name in open_:
                    raise broken(self.path, f"node '{name}' depends on itself")
                open_.add(name)
                work.append((name, True))
                if nodes[name].op in control.OF_VERSION_1:  # its loops are circles
                    continue
                for text in nodes[name].input:
                    source = _reference(text)[0]
                    if text.startswith("^"):
                        continue
                    if source not in nodes:
                        raise broken(self.path, f"node '{name}' reads '{source}', which is not there")
                    if source not in done:
                        work.append((source, False))
        return order

    def _require_operators(self, order: Sequence[Any]) -> None:
        missing: dict[str, str] = {}
        for node in self._used(order, set()):
            if (
                node.op not in OPERATORS
                and node.op not in (_INPUT, _CONSTANT)
                and node.op not in self.functions
            ):
                missing.setdefault(node.op, node.name)
        what = "TF operators"
        if any(op in missing for op in control.OF_VERSION_1):
            what = "control flow of TensorFlow 1 (freeze the model with If and While) and TF operators"
        elif any(op in missing for op in _VARIABLES):
            what = "variables (the graph is not frozen) and TF operators"
        require_none(self.path, what, missing)

    def _used(self, nodes: Sequence[Any], entered: set[str]) -> Iterator[Any]:
        """All nodes that may run, those of functions included."""
        for node in nodes:
            yield node
            names = [a.func.name for a in node.attr.values() if a.WhichOneof("value") == "func"]
            for name in (*names, node.op):
                if name in self.functions and name not in entered:
                    entered.add(name)
                    yield from self._used(self._body(self.functions[name]), entered)

    def _body(self, function: Any) -> list[Any]:
        """The nodes of a function that its results need, in order."""
        nodes = {node.name: node for node in function.node_def}
        arguments = {a.name for a in function.signature.input_arg}
        ends = [n for n in (_reference(r)[0] for r in function.ret.values()) if n not in arguments]
        for name in arguments:
            nodes.setdefault(name, _ARGUMENT)
        for end in ends:
            if end not in nodes:
                raise broken(self.path, f"function '{function.signature.name}' has no node '{end}'")
        return [n for n in self._ordered(nodes, ends) if n is not _ARGUMENT]

    # ---- running

    def _function(self, name: str, arguments: Sequence[Any], trace: Trace) -> list[Any]:
        """The results of a function of the file."""
        if name not in self.functions:
            raise broken(self.path, f"the function '{name}' is not there")
        function = self.functions[name]
        wanted = function.signature.input_arg
        if len(arguments) != len(wanted) or self.depth >= _DEEPEST:
            raise broken(
                self.path,
                f"function '{name}' has {len(wanted)} inputs and gets {len(arguments)}, {self.depth} deep",
            )
        values = {a.name: [v] for a, v in zip(wanted, arguments)}
        self.depth += 1
        self._run(self._body(function), values, trace)
        self.depth -= 1
        results = []
        for argument in function.signature.output_arg:
            if argument.name not in function.ret:
                raise broken(self.path, f"function '{name}' does not say what its result is")
            results.append(self._value(function.ret[argument.name], values, f"function '{name}'"))
        return results

    def _run(self, order: Sequence[Any], values: dict[str, Sequence[Any]], trace: Trace) -> None:
        """Adds the results of nodes, which stand in order, to `values`."""
        for node in order:
            if node.name in values:
                continue
            call = Call(node)
            call.around = control.Surroundings(trace, self._function)
            inputs = [
                self._value(text, values, f"node '{node.name}'")
                for text in node.input
                if not text.startswith("^")
            ]
            results: Sequence[Any] = []
            in_place = node.op in control.CALLS or node.op in self.functions
            run = self.nodes.call if in_place else self.nodes.run

            def compute(call: Call = call, inputs: list[Any] = inputs) -> Sequence[Any]:
                return [self._results(call, inputs)]

            (results,) = run(trace, call, inputs, 1, compute)
            values[node.name] = _PASSED_OVER if results is obstacles.UNKNOWN else results

    def _results(self, call: Call, inputs: list[Any]) -> Sequence[Any]:
        if call.kind == _CONSTANT:
            message = call.need("value", graph_pb2.Tensor)
            return [tensor_of(message, f"node '{call.name}'")]
        if call.kind in self.functions:
            return self._function(call.kind, inputs, call.around.trace)
        if call.kind in control.OF_VERSION_1:
            raise call.fail(
                "control flow of TensorFlow 1: freeze the model with If and While", Code.NOT_FIND_OP
            )
        entry = entry_of(call, inputs, OPERATORS)
        result = entry.function(call, *entry.arguments(inputs, as_tensor))
        call.all_read()
        return list(result) if isinstance(result, (tuple, list)) else [result]

    def _value(self, text: str, values: Mapping[str, Sequence[Any]], reader: str) -> Any:
        """What a reference stands for: ``node``, ``node:number`` or, in functions, ``node:result:number``."""
        name, result, number = _reference(text)
        if name not in values:
            raise broken(self.path, f"{reader} reads '{name}', which is computed by no node before it")
        results = values[name]
        if results is _PASSED_OVER:
            return obstacles.UNKNOWN
        number += _RESULTS.get(result, 0)
        if number >= len(results) or results[number] is None:
            raise broken(self.path, f"{reader} reads result {number} of '{name}', which is not imported")
        return results[number]


def _reference(text: str) -> tuple[str, str, int]:
    """Node, result ("" for none) and number of ``node``, ``node:number`` or ``node:result:number``."""
    name, *rest = text.removeprefix("^").split(":")
    number = int(rest.pop()) if rest and rest[-1].isdecimal() else 0
    return name, rest[0] if rest else "", number
