"""TFLITE: the operators of the primary graph run one after the other on core's ops, which are captured.

What depends on constants alone is computed meanwhile. Images lie with the channels last; where core wants
them first a transpose stands before and behind, which the writer turns into nothing. The operators are in
files by topic; `quantized` tells how those of integers are computed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from mycelia.capture.trace import Trace
from mycelia_lite.converter import obstacles
from mycelia_lite.converter.errors import Code, ConversionError
from mycelia_lite.converter.importers.inputs import given_shape, parameter, require_inputs
from mycelia_lite.converter.importers.nodes import Nodes, captured, entry_of, require_none
from mycelia_lite.converter.importers.tflite import (
    activations,
    arrays,
    bit_generator,
    blocks,
    chance,
    detection,
    elementwise,
    graphs,
    indices,
    products,
    quantized,
    recurrent,
    reductions,
    resize,
    selection,
    shapes,
    spectra,
    stablehlo,
    volumes,
    windows,
)
from mycelia_lite.converter.importers.tflite.calls import OPERATORS, Call, as_tensor
from mycelia_lite.converter.importers.tflite.file import File, TensorInfo
from mycelia_lite.converter.source import Source
from mycelia_lite.enums import FmkType

TOPICS = (
    activations, arrays, bit_generator, blocks, chance, detection, elementwise, graphs, indices, products,
    quantized, recurrent, reductions, resize, selection, shapes, spectra, stablehlo, volumes, windows,
)  # fmt: skip
_DEEPEST = 50  # graphs within graphs


def load(path: str, input_shapes: Mapping[str, Sequence[int]], signature: str = "") -> Source:
    """A graph of a file with inputs of these shapes, by name; others keep the file's.

    It is that of a `signature`, whose names its inputs and outputs get, or the primary graph.
    Errors: ConversionError if the file cannot be read, has operators, attributes or types that are not
    imported (all unknown operators in one error), an input has no such name or dimensions, or there is no
    such signature.
    """
    return _Model(path).source(input_shapes, signature)


class _Model:
    """A file, and what its operators share."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.file = File(path)
        self.nodes = Nodes(os.path.basename(path))
        self.halves = False
        self.depth = 0

    def source(self, input_shapes: Mapping[str, Sequence[int]], signature: str) -> Source:
        entry = self.file.entry(signature)
        graph = self.file.at(self.file.model.subgraphs, entry.graph, "graph")
        self._require_operators(entry.graph)
        infos = [self.file.info(t) for t in graph.tensors]
        inputs = [self.file.at(infos, i, "input tensor") for i, _ in entry.inputs]
        outputs = [self.file.at(infos, i, "output tensor") for i, _ in entry.outputs]
        names = [name or info.name for (_, name), info in zip(entry.inputs, inputs)]
        require_inputs(names, input_shapes)
        states: list[np.ndarray] = []

        def run(trace: Trace) -> list[Any]:
            values: dict[int, Any] = {}
            symbols: dict[str, Any] = {}
            for name, (index, _), info in zip(names, entry.inputs, inputs):
                shape = given_shape(name, info.shape, input_shapes)
                # Where the first sizes of inputs are open, they are one size.
                batch = ["batch"] if len(shape) > 1 else []
                values[index] = parameter(trace, name, info.dtype, shape, batch, symbols)
            around = graphs.Surroundings(self._graph, trace)
            self._run(graph, infos, values, around)
            first, leaving = around.variable_results()
            states.extend(first)
            return [self._output(infos, values, i) for i, _ in entry.outputs] + leaving

        results = [name or info.name for (_, name), info in zip(entry.outputs, outputs)]
        graph = captured(run)
        meaning = {
            name: (info.quantization.scale, info.quantization.zero)
            for name, info in zip((*names, *results), (*inputs, *outputs))
            if quantized.is_quantized(info) and info.kind != "INT4"
        }
        more = self.halves, states, self.nodes.fixed, self.nodes.scales, meaning
        return Source(graph, names, results, FmkType.TFLITE, *more)

    # ---- what the file asks for

    def _require_operators(self, entry: int) -> None:
        missing: dict[str, str] = {}
        for graph in self._used_graphs(entry):
            for operator in graph.operators:
                kind = self.file.kind_of(operator)
                if kind not in OPERATORS:
                    missing.setdefault(kind, self._label(graph, operator))
        require_none(self.path, "TFLITE operators", missing)

    def _used_graphs(self, entry: int) -> list[Any]:
        """The graph with this number, and those that operators of these run."""
        found, work = {}, [entry]
        while work:
            number = work.pop()
            if number in found:
                continue
            graph = found[number] = self.file.at(self.file.model.subgraphs, number, "graph")
            for options in filter(None, (self._options(o) for o in graph.operators)):
                for field, value in options.items():
                    if field.name.endswith(("subgraph_index", "subgraph")):
                        work.append(value)
                    elif field.name.endswith("subgraph_indices"):
                        work.extend(value)
        return list(found.values())

    def _options(self, operator: Any) -> Any:
        """The options of an operator, older or newer ones; None for none."""
        return (
            operator.builtin_options if operator.builtin_options is not None else operator.builtin_options_2
        )

    def _label(self, graph: Any, operator: Any) -> str:
        """What an operator is called: its first result."""
        first = next(iter(operator.outputs), -1)
        return graph.tensors[first].name if 0 <= first < len(graph.tensors) else ""

    # ---- running

    def _value(self, infos: Sequence[TensorInfo], values: dict[int, Any], index: int, call: Call) -> Any:
        if index not in values and infos[index].is_variable:
            try:
                values[index] = call.around.tensor_variable(infos[index])
            except MemoryError:
                shape = list(infos[index].table.shape)
                raise call.fail(
                    f"there is no memory for its state '{infos[index].name}' of the shape {shape}",
                    Code.GRAPH_FILE_ERROR,
                ) from None
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
        if isinstance(value, spectra.Spectrum):
            raise ConversionError(
                Code.NOT_SUPPORT, f"{self.file.path}: the output '{infos[index].name}' is of complex numbers"
            )
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
            for index in (*operator.inputs, *operator.outputs, *operator.intermediates):
                if index != -1:
                    self.file.at(infos, index, "tensor")
            call = Call(
                self.file.kind_of(operator),
                self._label(graph, operator),
                self._options(operator),
                memoryview(operator.custom_options),
                [None if i == -1 else infos[i] for i in operator.inputs],
                [infos[i] for i in operator.outputs],
            )
            twice = operator.builtin_options is not None and operator.builtin_options_2 is not None
            if twice or operator.large_custom_options_size:
                raise call.fail("options of a kind that is not imported", Code.INVALID_OP_ATTR)
            call.around = around
            call.intermediates = [infos[i] for i in operator.intermediates if i != -1]
            inputs = [None if i == -1 else self._value(infos, values, i, call) for i in operator.inputs]
            imported = self.nodes.call if call.kind in graphs.CALLS else self.nodes.run
            results = imported(trace, call, inputs, len(operator.outputs), partial(_results, call, inputs))
            self.halves |= call.halves
            values.update(zip(operator.outputs, results))


def _results(call: Call, inputs: list[Any]) -> Sequence[Any]:
    """The results of a node of a known operator, with all options read."""
    entry = entry_of(call, inputs, OPERATORS)
    if any(isinstance(v, spectra.Spectrum) for v in inputs):
        result = spectra.run(call, inputs)
    else:
        result = shapes.fold(call, inputs)
    if result is None:
        result = quantized.run(call, entry, entry.arguments(inputs, as_tensor))
    call.all_read()
    results = result if isinstance(result, (tuple, list)) else (result,)
    if obstacles.hide(results):  # those of a graph that it runs
        return [obstacles.UNKNOWN] * len(call.outputs)
    if len(results) != len(call.outputs):
        raise call.fail(f"it has {len(call.outputs)} results, not {len(results)}", Code.GRAPH_FILE_ERROR)
    for value, info in zip(results, call.outputs):
        if isinstance(value, spectra.Spectrum):
            continue
        if not isinstance(value, np.ndarray) and not info.is_resource and value.dtype != info.dtype:
            raise call.fail(
                f"its result '{info.name}' is declared as {info.dtype}, but is {value.dtype}",
                Code.GRAPH_FILE_ERROR,
            )
    return results
