"""ONNX: nodes run one after the other on core's ops, which are captured; weights become constants.

What depends on constants alone, such as the arithmetic on shapes of exported networks, is computed meanwhile.
The operators are in `onnx_*.py` by topic; each follows the version of the operator that the file asks for.
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
from mycelia_lite.converter.importers.onnx import (
    activations,
    arrays,
    attention,
    chance,
    control,
    elementwise,
    indices,
    losses,
    microsoft,
    norms,
    products,
    quantized,
    recurrent,
    reductions,
    resize,
    sampling,
    selection,
    sequences,
    signal,
    sizes,
    small,
    windows,
)
from mycelia_lite.converter.importers.onnx.calls import OPERATORS, Call, TensorList, as_tensor
from mycelia_lite.converter.importers.onnx.file import ModelFile, attribute_of, dtype_of, versions
from mycelia_lite.converter.source import Source
from mycelia_lite.enums import FmkType

TOPICS = (
    activations, arrays, attention, chance, elementwise, indices, losses, microsoft, norms, products,
    quantized, recurrent, reductions, resize, sampling, selection, sequences, signal, windows,
)  # fmt: skip

#: Versions from which operators are imported that were others before.
_SINCE = {"Cast": 6, "GlobalLpPool": 2, "LpPool": 2, "Pad": 2, "Split": 2, "Tile": 6}
_MOST_ASSUMED = 4  # nodes whose conditions are tried both ways
_CONTROL = {"If": control.branch, "Loop": control.loop, "Scan": control.scan}  # operators that hold graphs


def load(path: str, input_shapes: Mapping[str, Sequence[int]]) -> Source:
    """The graph of an ONNX file with inputs of these shapes, by name; others keep the file's.

    Errors: ConversionError if the file cannot be read, has operators, attributes or types that are not
    imported (all unknown operators in one error), or an input has no such name or dimensions.
    """
    model = _Model(path)
    first = None
    while True:
        try:
            return model.source(input_shapes)
        except ConversionError as error:
            first = first or error
            if not model.assume_otherwise():
                raise first from None


class _Model:
    """A file, and what its nodes share."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.folder = os.path.dirname(os.path.abspath(path))
        self.file = ModelFile(path)
        self.message = self.file.message
        self.versions = versions(path, self.message.opset_import)
        self.assumed: dict[str, bool] = {}  # conditions of nodes, by name, that are taken for granted
        self.nodes = Nodes(os.path.basename(path))
        self.narrow = small.Narrow()
        self.functions = {(_domain(f.domain), f.name): f for f in self.message.functions}

    def assume_otherwise(self) -> bool:
        """The next choice of what is taken for granted; False after the last of the first few nodes."""
        for name in list(self.assumed)[:_MOST_ASSUMED]:
            self.assumed[name] = not self.assumed[name]
            if not self.assumed[name]:
                return True
        return False

    def source(self, input_shapes: Mapping[str, Sequence[int]]) -> Source:
        graph = self.message.graph
        self.nodes.fixed, self.nodes.scales = "", []
        if graph.sparse_initializer:
            raise ConversionError(Code.NOT_SUPPORT, f"{self.path}: sparse weights cannot be converted yet")
        self._require_operators()
        weights = {t.name: self._weight(i) for i, t in enumerate(graph.initializer)}
        inputs = [i for i in graph.input if i.name not in weights]
        types = self._input_types(inputs, input_shapes)

        def run(trace: Trace) -> list[Any]:
            environment = dict(weights)
            symbols: dict[str, Any] = {}
            for message, (dtype, shape, labels) in zip(inputs, types):
                environment[message.name] = parameter(trace, message.name, dtype, shape, labels, symbols)
            self.run(graph.node, environment, self.versions, trace)
            return [self._output(o.name, environment) for o in graph.output]

        names = [i.name for i in inputs], [o.name for o in graph.output]
        size = sum(w.nbytes for w in weights.values() if w is not obstacles.UNKNOWN)
        made = captured(run, size)
        return Source(made, *names, FmkType.ONNX, fixed=self.nodes.fixed, scales=self.nodes.scales)

    def _weight(self, index: int) -> Any:
        try:
            return self._typed(self.message.graph.initializer[index], self.file.initializer(index))
        except ConversionError as error:
            if not obstacles.note(error):
                raise
            return obstacles.UNKNOWN

    def _typed(self, message: Any, value: Any) -> Any:
        """The value of a TensorProto, whose type is noted if core has none like it."""
        if message.data_type in small.KINDS:
            self.narrow.add(value)
        return value

    def _output(self, name: str, environment: Mapping[str, Any]) -> Any:
        if name not in environment:
            raise ConversionError(Code.GRAPH_FILE_ERROR, f"{self.path}: nothing computes the output '{name}'")
        value = environment[name]
        if value in self.narrow:
            raise ConversionError(
                Code.NOT_SUPPORT, f"{self.path}: the output '{name}' is of float8 or below 8 bits"
            )
        if isinstance(value, TensorList):
            raise ConversionError(
                Code.NOT_SUPPORT, f"{self.path}: the output '{name}' is a sequence of tensors"
            )
        return value if value is obstacles.UNKNOWN else as_tensor(value)

    # ---- what the file asks for

    def _require_operators(self) -> None:
        missing: dict[str, str] = {}
        for node in self._used(self.message.graph.node, set()):
            kind = node.op_type if not _domain(node.domain) else f"{node.domain}.{node.op_type}"
            if kind not in OPERATORS and kind not in _CONTROL:
                missing.setdefault(kind, node.name or _label(node))
        require_none(self.path, "ONNX operators", missing)

    def _used(self, nodes: Sequence[Any], entered: set) -> Iterator[Any]:
        """All nodes that may run, those of graphs in attributes and of called functions included."""
        for node in nodes:
            key = _domain(node.domain), node.op_type
            if key in self.functions:
                if key not in entered:
                    yield from self._used(self.functions[key].node, entered | {key})
                continue
            yield node
            for attribute in node.attribute:
                for graph in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                    yield from self._used(graph.node, entered)

    def _input_types(self, inputs: Sequence[Any], given: Mapping[str, Sequence[int]]) -> list[tuple]:
        """(dtype, sizes with -1 for open ones, names of the open ones) of each input."""
        require_inputs([i.name for i in inputs], given)
        types = []
        for message in inputs:
            name, kind = message.name, message.type.WhichOneof("value")
            if kind != "tensor_type":
                raise ConversionError(
                    Code.NOT_SUPPORT, f"the input '{name}' is no tensor but a {(kind or 'nothing')[:-5]}"
                )
            tensor = message.type.tensor_type
            dtype = dtype_of(tensor.elem_type, f"the input '{name}'")
            if not tensor.HasField("shape"):
                if name not in given:
                    raise ConversionError(
                        Code.INPUT_PARAM_INVALID,
                        f"the input '{name}' has no shape in the file: give inputShape",
                    )
                types.append((dtype, list(given[name]), [""] * len(given[name])))
                continue
            dims = tensor.shape.dim
            shape = [d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else -1 for d in dims]
            types.append((dtype, given_shape(name, shape, given), [d.dim_param for d in dims]))
        return types

    # ---- running

    def run(self, nodes: Sequence[Any], environment: Any, versions: Mapping[str, int], trace: Trace) -> None:
        """Adds the outputs of nodes, which stand in order, to `environment`."""
        for node in nodes:
            self._node(node, environment, versions, {}, trace)

    def _node(
        self, node: Any, environment: Any, versions: Mapping[str, int], outer: Mapping[str, Any], trace: Trace
    ) -> None:
        """One node; `outer` has the attributes of the call whose function it stands in."""
        attributes = {}
        for message in node.attribute:
            if message.ref_attr_name:
                if message.ref_attr_name in outer:
                    attributes[message.name] = outer[message.ref_attr_name]
            else:
                attributes[message.name] = self._typed(message.t, attribute_of(message, self.folder))
        kind = f"{node.domain}.{node.op_type}" if _domain(node.domain) else node.op_type
        call = Call(kind, node.name or _label(node), versions.get("", 0), attributes, list(node.output))
        inputs = []
        for name in node.input:
            if name and name not in environment:
                raise call.fail(f"its input '{name}' is computed by no node before it", Code.GRAPH_FILE_ERROR)
            inputs.append(environment[name] if name else None)
        function = self.functions.get((_domain(node.domain), node.op_type))

        def compute() -> Sequence[Any]:
            if function is not None:
                return self._function(function, call, inputs, trace)
            if kind in _CONTROL:
                return self._control(call, inputs, environment, versions, outer, trace)
            found = _results(call, inputs)
            self.narrow.follow(call, inputs, found)
            return found

        run = self.nodes.run if function is None else self.nodes.call
        results = run(trace, call, inputs, len(node.output), compute)
        for name, value in zip(node.output, results):
            if name:
                environment[name] = value

    def _function(self, function: Any, call: Call, inputs: Sequence[Any], trace: Trace) -> list[Any]:
        """A call of a function of the file: its nodes run on the inputs."""
        inner = dict(zip(function.input, (*inputs, *[None] * len(function.input))))
        environment = {name: value for name, value in inner.items() if value is not None}
        absent = {name for name, value in inner.items() if value is None}
        attributes = {a.name: attribute_of(a, self.folder) for a in function.attribute_proto}
        attributes |= call.attributes
        found = versions(self.path, function.opset_import)
        for node in function.node:
            if absent.intersection(node.input):
                node = _without(node, absent)
            self._node(node, environment, found, attributes, trace)
        return [environment[name] for name in function.output[: len(call.outputs)]]

    def _control(
        self, call: Call, inputs: Sequence[Any], environment: Any, versions: Any, outer: Any, trace: Trace
    ) -> Sequence[Any]:
        """A node whose attributes are graphs: these see the values around them."""

        def run(nodes: Sequence[Any], inner: Any, region: Trace) -> None:
            for node in nodes:
                self._node(node, inner, versions, outer, region)

        for graph in call.attributes.values():
            for output in getattr(graph, "output", ()):
                if output.type.tensor_type.elem_type in small.KINDS:
                    raise call.fail(f"the result '{output.name}' of a graph is of float8 or below 8 bits")
        around = control.Surroundings(environment, trace, self.folder, run, self.assumed)
        return _CONTROL[call.kind](call, inputs, around)


def _results(call: Call, inputs: list[Any]) -> Sequence[Any]:
    """The outputs of a node of a known operator, with all attributes read."""
    if 0 < call.version < _SINCE.get(call.kind, 0):
        raise call.fail(
            f"it is the operator of opset {call.version}, that of {_SINCE[call.kind]} and newer is imported"
        )
    entry = entry_of(call, inputs, OPERATORS)
    if 0 < call.version < 6:
        call.get("consumed_inputs")  # which named memory that may be written to
    if call.kind not in sequences.KINDS and any(isinstance(v, TensorList) for v in inputs):
        raise call.fail("a sequence of tensors where a tensor is needed")
    result = sizes.fold(call, inputs)
    if result is None:
        result = entry.function(call, *entry.arguments(inputs, as_tensor))
    call.all_read()
    results = result if isinstance(result, (tuple, list)) else (result,)
    if len(results) < len(call.outputs):
        raise call.fail(f"output {len(results)} ('{call.outputs[len(results)]}') is not imported")
    return results


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name


def _label(node: Any) -> str:
    """What a node without a name is called: its first output."""
    return next(iter(node.output), "")


def _without(node: Any, absent: set[str]) -> Any:
    """A copy of a node with the inputs in `absent` left out."""
    copy = type(node)()
    copy.CopyFrom(node)
    copy.input[:] = ["" if name in absent else name for name in node.input]
    return copy
