"""TFLITE: the operators of the primary graph run one after the other on core's ops, which are captured.

What depends on constants alone is computed meanwhile. Images lie with the channels last; where core wants
them first a transpose stands before and behind, which the writer turns into nothing. The operators are in
files by topic; `quantized` tells how those of integers are computed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mycelia.capture.effects import collect
from mycelia.capture.open_sizes import OpenSizes, forget_sizes
from mycelia.capture.trace import Trace, capture_lock
from mycelia.compile.passes import Pass, cse, dce, inline, optimize
from mycelia.ir import TensorType
from mycelia_lite.converter import obstacles
from mycelia_lite.converter.errors import Code, ConversionError
from mycelia_lite.converter.importers.tflite import (
    activations,
    arrays,
    elementwise,
    graphs,
    indices,
    products,
    quantized,
    reductions,
    resize,
    shapes,
    windows,
)
from mycelia_lite.converter.importers.tflite.calls import OPERATORS, Call, as_tensor
from mycelia_lite.converter.importers.tflite.file import File, TensorInfo
from mycelia_lite.converter.source import NodePlace, Source
from mycelia_lite.enums import FmkType

TOPICS = (
    activations, arrays, elementwise, graphs, indices, products, quantized, reductions, resize, shapes,
    windows,
)  # fmt: skip
_DEEPEST = 50  # graphs within graphs

# What core raises for arguments that do not fit.
_FAILURES = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RuntimeError, MemoryError)


def load(path: str, input_shapes: Mapping[str, Sequence[int]]) -> Source:
    """The primary graph of a file with inputs of these shapes, by name; others keep the file's.

    Errors: ConversionError if the file cannot be read, has operators, attributes or types that are not
    imported (all unknown operators in one error), or an input has no such name or dimensions.
    """
    return _Model(path).source(input_shapes)


class _Model:
    """A file, and what its operators share."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.file = File(path)
        self.imported = 0  # operators so far
        self.halves = False
        self.depth = 0

    def source(self, input_shapes: Mapping[str, Sequence[int]]) -> Source:
        graph = self.file.model.subgraphs[0]
        self._require_operators()
        infos = [self.file.info(t) for t in graph.tensors]
        inputs = [self.file.at(infos, i, "input tensor") for i in graph.inputs]
        outputs = [self.file.at(infos, i, "output tensor") for i in graph.outputs]
        shapes = self._input_shapes(inputs, input_shapes)
        trace = Trace("main", sizes=OpenSizes())
        with capture_lock:
            try:
                with trace:
                    values: dict[int, Any] = {}
                    symbols: list[Any] = []
                    for index, info, shape in zip(graph.inputs, inputs, shapes):
                        values[index] = _parameter(trace, info, shape, symbols)
                    around = graphs.Surroundings(self._graph, trace)
                    self._run(graph, infos, values, around)
                    states, leaving = around.variable_results()
                    results = [self._output(infos, values, i) for i in graph.outputs] + leaving
                    known = [trace.value_of(t) for t in results if t is not obstacles.UNKNOWN]
                    trace.graph.outputs = obstacles.outputs(trace.graph, known)
                    del values, results, around, leaving
                collect(trace)
            finally:
                trace.close()
        forget_sizes(trace.graph)
        optimize(trace.graph, [Pass("inline", inline.run), Pass("cse", cse.run), Pass("dce", dce.run)])
        names = [i.name for i in inputs], [o.name for o in outputs]
        return Source(trace.graph, *names, FmkType.TFLITE, self.halves, states)

    # ---- what the file asks for

    def _require_operators(self) -> None:
        missing: dict[str, str] = {}
        for graph in self._used_graphs():
            for operator in graph.operators:
                kind = self.file.kind_of(operator)
                if kind not in OPERATORS:
                    missing.setdefault(kind, self._label(graph, operator))
        if missing and not obstacles.are_collected():
            listed = ", ".join(f"{kind} (node '{name}')" for kind, name in sorted(missing.items()))
            raise ConversionError(
                Code.NOT_FIND_OP, f"{self.path}: TFLITE operators that cannot be imported: {listed}"
            )

    def _used_graphs(self) -> list[Any]:
        """The primary graph, and those that operators of these run."""
        found, work = {}, [0]
        while work:
            number = work.pop()
            if number in found:
                continue
            graph = found[number] = self.file.at(self.file.model.subgraphs, number, "graph")
            for options in (o.builtin_options for o in graph.operators if o.builtin_options is not None):
                work += [v for f, v in options.items() if f.name.endswith("subgraph_index")]
        return list(found.values())

    def _label(self, graph: Any, operator: Any) -> str:
        """What an operator is called: its first result."""
        first = next(iter(operator.outputs), -1)
        return graph.tensors[first].name if 0 <= first < len(graph.tensors) else ""

    def _input_shapes(
        self, inputs: Sequence[TensorInfo], given: Mapping[str, Sequence[int]]
    ) -> list[tuple[int, ...]]:
        names = [i.name for i in inputs]
        for name in given:
            if name not in names:
                raise ConversionError(
                    Code.INPUT_PARAM_INVALID, f"inputShape names '{name}', but the inputs are {names}"
                )
        shapes = []
        for info in inputs:
            shape = tuple(given.get(info.name, info.shape))
            if len(shape) != len(info.shape):
                raise ConversionError(
                    Code.INPUT_PARAM_INVALID,
                    f"inputShape gives '{info.name}' {len(shape)} dimensions, but it has {len(info.shape)}",
                )
            shapes.append(shape)
        return shapes

    # ---- running

    def _value(self, infos: Sequence[TensorInfo], values: dict[int, Any], index: int, call: Call) -> Any:
        if index not in values:
            constant = self.file.constant(self.file.at(infos, index, "tensor"))
            if constant is None:
                raise call.fail(
                    f"its input '{infos[index].name}' is computed by no node before it", Code.GRAPH_FILE_ERROR
                )
            values[index] = constant
        return values[index]

    def _output(self, infos: Sequence[TensorInfo], values: dict[int, Any], index: int) -> Any:
        if index not in values:
            constant = self.file.constant(infos[index])
            if constant is None:
                raise self.file.broken(f"nothing computes the output '{infos[index].name}'")
            values[index] = constant
        value = values[index]
        return value if value is obstacles.UNKNOWN else as_tensor(value)

    def _graph(self, number: int, arguments: Sequence[Any], around: graphs.Surroundings) -> list[Any]:
        """The results of another graph of the file."""
        graph = self.file.at(self.file.model.subgraphs, number, "graph")
        infos = [self.file.info(t) for t in graph.tensors]
        if len(arguments) != len(graph.inputs) or self.depth >= _DEEPEST:
            raise self.file.broken(
                f"graph {number} has {len(graph.inputs)} inputs and gets {len(arguments)}, {self.depth} deep"
            )
        values = {}
        for index, value in zip(graph.inputs, arguments):
            self.file.at(infos, index, "input tensor")
            values[index] = value
        self.depth += 1
        self._run(graph, infos, values, around)
        self.depth -= 1
        for index in graph.outputs:
            self.file.at(infos, index, "output tensor")
        return [self._output(infos, values, index) for index in graph.outputs]

    def _run(
        self, graph: Any, infos: Sequence[TensorInfo], values: dict[int, Any], around: graphs.Surroundings
    ) -> None:
        """Adds the results of a graph's operators, which stand in order, to `values`."""
        trace = around.trace
        for operator in graph.operators:
            for index in (*operator.inputs, *operator.outputs):
                if index != -1:
                    self.file.at(infos, index, "tensor")
            call = Call(
                self.file.kind_of(operator),
                self._label(graph, operator),
                operator.builtin_options,
                memoryview(operator.custom_options),
                [None if i == -1 else infos[i] for i in operator.inputs],
                [infos[i] for i in operator.outputs],
            )
            if operator.builtin_options_2 is not None or operator.large_custom_options_size:
                raise call.fail("options of a kind that is not imported", Code.INVALID_OP_ATTR)
            call.around = around
            inputs = [None if i == -1 else self._value(infos, values, i, call) for i in operator.inputs]
            if obstacles.hide(inputs):
                values.update(dict.fromkeys(operator.outputs, obstacles.UNKNOWN))
                continue
            start = len(trace.graph.nodes)
            try:
                results = _results(call, inputs)
            except ConversionError as error:
                if not obstacles.note(error):
                    raise
                results = [obstacles.UNKNOWN] * len(operator.outputs)
            except _FAILURES as error:
                failure = call.fail(f"{error}")
                if not obstacles.note(failure):
                    raise failure from error
                results = [obstacles.UNKNOWN] * len(operator.outputs)
            self.imported += 1
            self.halves |= call.halves
            place = NodePlace(
                f"{os.path.basename(self.path)} node", self.imported, call.name, call.kind, call.same
            )
            for made in trace.graph.nodes[start:]:
                made.location = place
            values.update(zip(operator.outputs, results))


def _results(call: Call, inputs: list[Any]) -> Sequence[Any]:
    """The results of a node of a known operator, with all options read."""
    if call.kind not in OPERATORS:
        near = obstacles.near(call.kind, OPERATORS)
        raise call.fail(f"there is no importer for this operator{near}", Code.NOT_FIND_OP)
    entry = OPERATORS[call.kind]
    while inputs and inputs[-1] is None:
        inputs.pop()
    if len(inputs) < entry.least or (len(inputs) > entry.most and not entry.variadic):
        raise call.fail(f"it has {len(inputs)} inputs, which is not imported", Code.GRAPH_FILE_ERROR)
    if any(value is None for value in inputs[: entry.least]):
        raise call.fail("an input that must be there is left out", Code.GRAPH_FILE_ERROR)
    result = shapes.fold(call, inputs)
    if result is None:
        arguments = [v if entry.variadic or i in entry.sizes else as_tensor(v) for i, v in enumerate(inputs)]
        result = quantized.run(call, entry, arguments)
    unread = call.unread()
    if unread is not None:
        raise call.fail(f"its attribute '{unread}' is not imported", Code.INVALID_OP_ATTR)
    results = result if isinstance(result, (tuple, list)) else (result,)
    if len(results) != len(call.outputs):
        raise call.fail(f"it has {len(call.outputs)} results, not {len(results)}", Code.GRAPH_FILE_ERROR)
    for value, info in zip(results, call.outputs):
        if not isinstance(value, np.ndarray) and not info.is_resource and value.dtype != info.dtype:
            raise call.fail(
                f"its result '{info.name}' is declared as {info.dtype}, but is {value.dtype}",
                Code.GRAPH_FILE_ERROR,
            )
    return results


def _parameter(trace: Trace, info: TensorInfo, shape: Sequence[int], batch: list[Any]) -> Any:
    """A Tensor for an input; the first sizes of all inputs are one size where they are open."""
    tensor = trace.parameter(TensorType(info.dtype, tuple(shape)), info.name)
    sizes = list(tensor.traced.type.shape)
    if len(shape) > 1 and shape[0] < 0:
        batch.append(sizes[0])
        sizes[0] = batch[0]
    tensor.traced.type = TensorType(info.dtype, tuple(sizes))
    return tensor
