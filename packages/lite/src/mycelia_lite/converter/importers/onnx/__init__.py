"""ONNX: nodes run one after the other on core's ops, which are captured; weights become constants.

What depends on constants alone, such as the arithmetic on shapes of exported networks, is computed meanwhile.
The operators are in the modules beside this one, by topic; each follows the version of the operator that the
file asks for.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
    bits,
    branches,
    chance,
    control,
    elementwise,
    indices,
    learned,
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
    activations, arrays, attention, bits, chance, elementwise, indices, learned, losses, microsoft, norms,
    products, quantized, recurrent, reductions, resize, sampling, selection, sequences, signal, windows,
)  # fmt: skip

#: Versions from which operators are imported that were others before.
_SINCE = {"Cast": 6, "GlobalLpPool": 2, "LpPool": 2, "Pad": 2, "Split": 2, "Tile": 6}
_CONTROL = {"If": control.branch, "Loop": control.loop, "Scan": control.scan}  # operators that hold graphs


def load(path: str, input_shapes: Mapping[str, Sequence[int]]) -> Source:
    """The graph of an ONNX file with inputs of these shapes, by name; others keep the file's.

    Errors: ConversionError if the file cannot be read, has operators, attributes or types that are not
    imported (all unknown operators in one error), or an input has no such name or dimensions.
    """
    return _Model(path).source(input_shapes)


@dataclass(frozen=True)
class _Frame:
    """Where nodes stand: in a function with these attributes, within the nodes of `place`.

    `ranks`: those that the file declares for results.
    """

    versions: Mapping[str, int]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    place: branches.Place = ()
    ranks: Mapping[str, int] = field(default_factory=dict)

    def inside(self, call: Call) -> branches.Place:
        return *self.place, tuple(call.outputs)


class _Model:
    """A file, and what its nodes share."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.folder = os.path.dirname(os.path.abspath(path))
        self.file = ModelFile(path)
        self.message = self.file.message
        self.versions = versions(path, self.message.opset_import)
        self.choices = branches.Choices()
        self.nodes = Nodes(os.path.basename(path))
        self.narrow = small.Narrow()
        self.functions = {(_domain(f.domain), f.name): f for f in self.message.functions}

    def source(self, input_shapes: Mapping[str, Sequence[int]]) -> Source:
        graph = self.message.graph
        if graph.sparse_initializer:
            raise ConversionError(Code.NOT_SUPPORT, f"{self.path}: sparse weights cannot be converted yet")
        self._require_operators()
        self._require_single_values(graph)
        weights = {t.name: self._weight(i) for i, t in enumerate(graph.initializer)}
        inputs = [i for i in graph.input if i.name not in weights]
        types = self._input_types(inputs, input_shapes)

        taken = [i.name for i, described in zip(inputs, types) if described is not None]
        names = taken, [o.name for o in graph.output]

        def run(trace: Trace) -> list[Any]:
            environment = dict(weights)
            symbols: dict[str, Any] = {}
            for message, described in zip(inputs, types):
                name = message.name
                known = described is not None
                environment[name] = (
                    parameter(trace, name, *described, symbols) if known else obstacles.UNKNOWN
                )
            ranks = {o.name: rank for o in graph.output if (rank := _declared_rank(o)) is not None}
            try:
                self.run(graph.node, environment, _Frame(self.versions, ranks=ranks), trace, names[1])
            except branches.BranchesDiffer as differ:
                raise differ.call.fail(
                    f"{differ}, and so does what the model gives: give inputShape"
                ) from None
            return [self._output(o.name, environment) for o in graph.output]

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
            self.narrow.add(value, message.data_type)
        return value

    def _output(self, name: str, environment: Mapping[str, Any]) -> Any:
        if name not in environment:
            raise ConversionError(Code.GRAPH_FILE_ERROR, f"{self.path}: nothing computes the output '{name}'")
        value = environment[name]
        if value in self.narrow:
            raise ConversionError(
                Code.NOT_SUPPORT, f"{self.path}: the output '{name}' is of float8, bfloat16 or below 8 bits"
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

    def _require_single_values(self, graph: Any) -> None:
        """Errors: ConversionError if the model gives nothing, or two nodes or inputs say what a name is."""
        if not graph.output:
            raise ConversionError(Code.GRAPH_FILE_ERROR, f"{self.path}: the graph has no outputs")
        inputs = [i.name for i in graph.input]
        for name, number in Counter(inputs).items():
            if number > 1:
                raise ConversionError(
                    Code.GRAPH_FILE_ERROR, f"{self.path}: {number} inputs are called '{name}'"
                )
        work = [(graph.node, {*inputs, *(t.name for t in graph.initializer)})]
        work += [(f.node, set(f.input)) for f in self.functions.values()]
        for nodes, there in work:
            for node in nodes:
                for name in filter(None, node.output):
                    if name in there:
                        call = Call(node.op_type, node.name or _label(node), 0, {}, list(node.output))
                        raise call.fail(f"its result '{name}' is there already", Code.GRAPH_FILE_ERROR)
                    there.add(name)
                inner = [a.g for a in node.attribute if a.HasField("g")]
                work += [
                    (g.node, {*(i.name for i in g.input), *(t.name for t in g.initializer)}) for g in inner
                ]

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

    def _input_types(self, inputs: Sequence[Any], given: Mapping[str, Sequence[int]]) -> list[tuple | None]:
        """What `_input_type` says of each input; None for one that is noted as an obstacle."""
        require_inputs([i.name for i in inputs], given)
        types: list[tuple | None] = []
        for message in inputs:
            try:
                types.append(self._input_type(message, given))
            except ConversionError as error:
                if not obstacles.note(error):
                    raise
                types.append(None)
        return types

    def _input_type(self, message: Any, given: Mapping[str, Sequence[int]]) -> tuple:
        """(dtype, sizes with -1 for open ones, names of the open ones) of an input."""
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
            return dtype, list(given[name]), [""] * len(given[name])
        dims = tensor.shape.dim
        shape = [d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else -1 for d in dims]
        return dtype, given_shape(name, shape, given), [d.dim_param for d in dims]

    # ---- running

    def run(
        self, nodes: Sequence[Any], environment: Any, frame: _Frame, trace: Trace, outputs: Sequence[str]
    ) -> None:
        """Adds `outputs` to `environment`, which nodes, which stand in order, compute."""
        differ, behind = branches.leave(
            nodes, trace, lambda node: self._node(node, environment, frame, trace)
        )
        if differ is None:
            return
        computed = {name for node in behind for name in node.output}
        wanted = [name for name in outputs if name in computed]

        def run(inner: Any, region: Trace) -> None:
            self.run(behind, inner, frame, region, wanted)

        branches.both_ways(differ, trace, self.choices, self.nodes, environment, wanted, frame.ranks, run)

    def _node(self, node: Any, environment: Any, frame: _Frame, trace: Trace) -> None:
        attributes = {}
        for message in node.attribute:
            if message.ref_attr_name:
                if message.ref_attr_name in frame.attributes:
                    attributes[message.name] = frame.attributes[message.ref_attr_name]
            else:
                attributes[message.name] = self._typed(message.t, attribute_of(message, self.folder))
        kind = f"{node.domain}.{node.op_type}" if _domain(node.domain) else node.op_type
        version = frame.versions.get("", 0)
        call = Call(kind, node.name or _label(node), version, attributes, list(node.output))
        inputs = []
        for name in node.input:
            if name and name not in environment:
                raise call.fail(f"its input '{name}' is computed by no node before it", Code.GRAPH_FILE_ERROR)
            inputs.append(environment[name] if name else None)
        function = self.functions.get((_domain(node.domain), node.op_type))

        def compute() -> Sequence[Any]:
            if function is not None:
                return self._function(function, call, inputs, frame, trace)
            if kind in _CONTROL:
                return self._control(call, inputs, environment, frame, trace)
            call.kinds = [self.narrow.kind(v) for v in inputs]
            found = _results(call, inputs)
            self.narrow.follow(call, inputs, found)
            return found

        run = self.nodes.run if function is None else self.nodes.call
        results = run(trace, call, inputs, len(node.output), compute)
        for name, value in zip(node.output, results):
            if name:
                environment[name] = value

    def _function(
        self, function: Any, call: Call, inputs: Sequence[Any], frame: _Frame, trace: Trace
    ) -> list[Any]:
        """A call of a function of the file: its nodes run on the inputs."""
        inner = dict(zip(function.input, (*inputs, *[None] * len(function.input))))
        environment = {name: value for name, value in inner.items() if value is not None}
        absent = {name for name, value in inner.items() if value is None}
        attributes = {a.name: attribute_of(a, self.folder) for a in function.attribute_proto}
        attributes |= call.attributes
        within = _Frame(versions(self.path, function.opset_import), attributes, frame.inside(call))
        nodes = [_without(n, absent) if absent.intersection(n.input) else n for n in function.node]
        outputs = function.output[: len(call.outputs)]
        self.run(nodes, environment, within, trace, outputs)
        return [environment[name] for name in outputs]

    def _control(
        self, call: Call, inputs: Sequence[Any], environment: Any, frame: _Frame, trace: Trace
    ) -> Sequence[Any]:
        """A node whose attributes are graphs: these see the values around them."""
        within = _Frame(frame.versions, frame.attributes, frame.inside(call))

        def run(nodes: Sequence[Any], inner: Any, region: Trace, outputs: Sequence[str]) -> None:
            self.run(nodes, inner, within, region, outputs)

        for graph in call.attributes.values():
            for output in getattr(graph, "output", ()):
                if output.type.tensor_type.elem_type in small.KINDS:
                    raise call.fail(
                        f"the result '{output.name}' of a graph is of float8, bfloat16 or below 8 bits"
                    )
        around = control.Surroundings(environment, trace, self.folder, run, within.place, self.choices)
        try:
            return _CONTROL[call.kind](call, inputs, around)
        except branches.BranchesDiffer as differ:
            if call.kind == "If":
                raise
            raise call.fail(f"node '{differ.call.name}' (If) in its body: {differ}") from None


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


def _declared_rank(output: Any) -> int | None:
    tensor = output.type.tensor_type
    return len(tensor.shape.dim) if tensor.HasField("shape") else None


def _label(node: Any) -> str:
    """What a node without a name is called: its first output."""
    return next(iter(node.output), "")


def _without(node: Any, absent: set[str]) -> Any:
    """A copy of a node with the inputs in `absent` left out."""
    copy = type(node)()
    copy.CopyFrom(node)
    copy.input[:] = ["" if name in absent else name for name in node.input]
    return copy
