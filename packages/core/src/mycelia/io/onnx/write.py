"""Writing ONNX: an IR graph becomes a ModelProto. What each op turns into is in `rules`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from mycelia.engine.ir import Graph, Value
from mycelia.io.compositions import Unsupported
from mycelia.io.onnx import onnx_pb2 as pb
from mycelia.io.onnx.graph_writer import GraphWriter
from mycelia.io.onnx.model_writer import ModelWriter, Ref, write_info

_OPTIONAL_RESULTS = ("MaxPool", "Unique", "LSTM", "GRU", "RNN")  # those at the end that are not used


def to_model(
    graph: Graph,
    input_names: Sequence[str],
    weights: dict[Value, Any],
    output_sizes: Sequence[Sequence[Any]],
    *,
    name: str,
    opset: int,
    sizes: Mapping[tuple[str, int], str] = MappingProxyType({}),
) -> tuple[Any, list[tuple[Any, memoryview]]]:
    """The ModelProto of an IR graph without initializers, and these: TensorProtos without data, and data.

    input_names: of the parameters that are not in `weights` (graph parameter -> Parameter), in order.
    sizes: (input, axis) -> name of its open size; others are named after input and axis.
    output_sizes: for each output the sizes that are those of inputs: (parameter, axis) for an axis, or None.
    Errors: ValueError that lists the operations that ONNX cannot express.
    """
    model = ModelWriter(opset)
    proto = pb.GraphProto(name=name)
    writer = GraphWriter(model, proto)
    inputs = [value for value in graph.parameters if value not in weights]
    used = {v for node in graph.nodes for v in node.inputs} | set(graph.outputs)
    names = dict(zip(inputs, map(model.take, input_names), strict=True))
    unsupported = []
    for value in graph.parameters:
        try:
            if value in weights and value in used:
                writer.refs[value] = model.initializer(model.take(weights[value].name), weights[value])
            elif value not in weights:
                shape = [
                    _size_name(names[value], a, sizes) if n == -1 else n
                    for a, n in enumerate(value.type.shape)
                ]
                writer.refs[value] = Ref(
                    names[value], value.type.dtype, tuple(int(n) for n in value.type.shape)
                )
                write_info(proto.input.add(name=names[value]), value.type.dtype, shape)
        except Unsupported as e:
            unsupported.append(str(e))
    for node in graph.nodes:
        try:
            writer.write(node)
        except Unsupported as e:
            unsupported.append(str(e))
            # go on: the error names everything at once
            writer.refs.update((v, Ref("", v.type.dtype, tuple(v.type.shape))) for v in node.outputs)
    try:
        _write_outputs(writer, graph, output_sizes, names, sizes)
    except Unsupported as e:
        unsupported.append(str(e))
    if unsupported:
        raise ValueError(f"ONNX has no operator for: {', '.join(dict.fromkeys(unsupported))}")
    used = _drop_unused(proto)
    message = pb.ModelProto(graph=proto)
    message.opset_import.add(domain="", version=opset)
    return message, [pair for name, pair in model.initializers.items() if name in used]


def _size_name(name: str, axis: int, sizes: Mapping[tuple[str, int], str]) -> str:
    return sizes.get((name, axis), f"{name}.shape[{axis}]")


def _write_outputs(
    writer: GraphWriter,
    graph: Graph,
    sources: Sequence,
    names: dict[Value, str],
    sizes: Mapping[tuple[str, int], str],
) -> None:
    """Declares the results as output0, output1, ...; those that nodes make get these names there."""
    made = {name for node in writer.proto.node for name in node.output}
    renamed: dict[str, str] = {}
    for i, (value, known) in enumerate(zip(graph.outputs, sources, strict=True)):
        ref, name = writer.value(value), writer.model.take(f"output{i}")
        if ref.name in made and ref.name not in renamed:
            renamed[ref.name] = name
        else:  # an input, a weight, a constant, or twice the same
            writer.node("Identity", [ref.name], [name], {})
        shape = [
            _size_name(names[source[0]], source[1], sizes) if n == -1 and source and source[0] in names else n
            for n, source in zip(value.type.shape, known, strict=True)
        ]
        write_info(writer.proto.output.add(name=name), value.type.dtype, shape)
    _rename(writer.proto, renamed)


def _drop_unused(graph: Any) -> set[str]:
    """Removes nodes whose results nobody uses, in graphs of nodes too; the names that are used."""
    used = {output.name for output in graph.output}
    kept = []
    for node in reversed(graph.node):
        if used.isdisjoint(node.output):
            continue
        while node.op_type in _OPTIONAL_RESULTS and node.output[-1] not in used:
            del node.output[-1]
        kept.append(node)
        used.update(node.input)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                used |= _drop_unused(attribute.g)
    del graph.node[:]
    graph.node.extend(reversed(kept))
    return used


def _rename(graph: Any, names: dict[str, str]) -> None:
    for node in graph.node:
        for field in (node.input, node.output):
            for i, name in enumerate(field):
                if name in names:
                    field[i] = names[name]
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _rename(attribute.g, names)
