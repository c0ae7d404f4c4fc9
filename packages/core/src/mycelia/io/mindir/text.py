"""A MindIR model in readable form: graphs, nodes, constants, primitives.

python -m mycelia.io.mindir_text model.mindir
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mycelia.io.mindir import mindir_pb2 as pb

_DATA = {number: name for name, number in pb.TensorProto.DataType.items()}
_TYPE = {number: name for name, number in pb.AttributeProto.AttributeType.items()}
_BRACKETS = {"TUPLE": "({})", "LIST": "[{}]"}


def to_text(model: Any) -> str:
    """The text of a ModelProto, one line for each input, parameter, constant, node, result and primitive."""
    lines = [
        f"ir_version {model.ir_version!r} producer_name {model.producer_name!r} "
        f"model_version {model.model_version!r} little_endian {model.little_endian} "
        f"mind_ir_version {model.mind_ir_version}"
    ]
    for graph in (model.graph, *model.functions):
        lines.extend(_graph(graph))
    for primitive in model.primitives:
        kind = (
            "PRIMITIVE_FUNCTION"
            if primitive.prim_type == pb.PrimitiveProto.PRIMITIVE_FUNCTION
            else "PRIMITIVE"
        )
        lines.append(
            f"primitive {primitive.name} op_type={primitive.op_type} prim_type={kind} "
            f"instance_name={primitive.instance_name!r}"
        )
        lines.extend(f"    {a.name} = {_attribute(a)}" for a in primitive.attribute)
    return "\n".join(lines) + "\n"


def _graph(graph: Any) -> Iterator[str]:
    yield f"graph {graph.name}"
    for value in graph.input:
        yield f"  input {value.name} : {_value_info(value)}"
    for tensor in graph.parameter:
        yield f"  parameter {tensor.name} : {_tensor(tensor)} ref_key={tensor.ref_key}"
    for node in graph.node:
        if node.op_type == "Constant":
            yield f"  Constant {node.output[0]} = {_attribute(node.attribute[0])}"
            continue
        yield f"  {node.output[0]} = {node.op_type}({', '.join(node.input)})"
        shape = " ".join(_attribute(a) for a in node.attribute if _is_type(a))
        if shape or node.domain:
            yield "      " + (f"shape {shape} | " if shape else "") + f"domain {node.domain}"
        for a in node.attribute:
            if not _is_type(a):
                yield f"      {a.name} = {_attribute(a)}"
    for value in graph.output:
        yield f"  output {value.name} : {_value_info(value)}"


def _is_type(attribute: Any) -> bool:
    return attribute.name == "shape" or attribute.ref_attr_name.startswith("shape:")


def _value_info(value: Any) -> str:
    text = " ".join(_tensor(t) for t in value.tensor)
    return text + (f"{value.denotation} {_attribute(value.attr_info)}" if value.denotation else "")


def _tensor(tensor: Any) -> str:
    text = ("Ref:" if tensor.HasField("ref_key") else "") + _DATA[tensor.data_type] + str(list(tensor.dims))
    if tensor.HasField("raw_data"):
        return f"{text} raw_data[{len(tensor.raw_data)} bytes]"
    if tensor.HasField("external_data"):
        data = tensor.external_data
        return f"{text} external_data[{data.length} bytes at {data.offset} of {data.location}]"
    return text


def _attribute(attribute: Any) -> str:
    kind = _TYPE[attribute.type]
    if attribute.ref_attr_name:
        return f"{attribute.ref_attr_name} {_flat(attribute, kind)}".rstrip()
    if kind in _BRACKETS:
        return _BRACKETS[kind].format(", ".join(_attribute(v) for v in attribute.values))
    if kind == "DICT":
        return "{" + ", ".join(f"{v.name}: {_attribute(v.values[0])}" for v in attribute.values) + "}"
    if kind == "TENSORS":
        return f"TENSORS{{{', '.join(_tensor(t) for t in attribute.tensors)}}}"
    if kind == "SCALAR":
        return f"SCALAR {_DATA[attribute.tensors[0].data_type]}"
    if "CLOSURE" in kind:
        return f"{kind} " + (attribute.s.decode() or ", ".join(_attribute(v) for v in attribute.values))
    return f"{kind} {_flat(attribute, kind)}".rstrip()


def _flat(attribute: Any, kind: str) -> str:
    """The numbers and texts of an attribute, whichever field holds them."""
    if attribute.tensors:
        return ", ".join(_tensor(t) for t in attribute.tensors)
    if attribute.strings or attribute.HasField("s"):
        return ", ".join(repr(s.decode("utf-8", "replace")) for s in attribute.strings or [attribute.s])
    if kind == "FLOAT":
        return ", ".join(map(repr, attribute.floats or [attribute.f]))
    if kind == "DOUBLE":
        return ", ".join(map(repr, attribute.doubles or [attribute.d]))
    if kind == "BOOL" or "INT" in kind:
        return ", ".join(map(str, attribute.ints or [attribute.i]))
    return ""
