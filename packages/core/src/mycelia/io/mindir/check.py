"""What a model must fulfil before it is translated: names, types, values and links of its message.

Everything here raises ValueError with the graph or node in it; `read.damaged` adds the file.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mycelia.io.mindir.values import DATA, TYPE

MONAD_INPUTS = ("UMonadType", "IOMonadType", "UMonad", "IOMonad")
_MAX_RANK = 64
_FIELDS = {  # attribute type -> where its value may lie: a field of its own, or the element of a list
    **dict.fromkeys(
        (TYPE.UINT8, TYPE.INT8, TYPE.UINT16, TYPE.INT16, TYPE.INT32, TYPE.INT64, TYPE.UINT32, TYPE.UINT64,
         TYPE.BOOL), ("i", "ints")
    ),
    **dict.fromkeys((TYPE.FLOAT, TYPE.FLOAT16, TYPE.BFLOAT16), ("f", "floats")),
    TYPE.DOUBLE: ("d", "doubles"), **dict.fromkeys(
        (TYPE.STRING, TYPE.CLASS_TYPE, TYPE.NAME_SPACE, TYPE.SYMBOL), ("s", "strings")
    ), TYPE.TENSOR: ("t", "tensors"), TYPE.TENSORS: ("t", "tensors"),
}  # fmt: skip


def check(model: Any) -> None:
    """Errors: ValueError for a ModelProto that cannot be what a framework wrote."""
    graphs = (model.graph, *model.functions)
    primitives = _unique("primitive", (p.name for p in model.primitives))
    functions = _unique("graph", (g.name for g in graphs))
    for primitive in model.primitives:
        place = f"primitive '{primitive.name}'"
        _text(primitive.op_type, f"the operator of {place}")
        _check_attributes(primitive.attribute, place)
    values: set[str] = set()
    for graph in graphs:
        place = f"graph '{graph.name}'"
        for name in _names_of(graph, place):
            if name in values:
                raise ValueError(f"{place}: the name '{name}' is defined twice")
            values.add(name)
        for value in graph.input:
            _check_input(value, place)
        for parameter in graph.parameter:
            _check_tensor(parameter, f"{place}: parameter '{parameter.name}'", unknown_sizes=False)
        if not graph.output:
            raise ValueError(f"{place} has no output")
    for graph in graphs:
        for node in graph.node:
            _check_node(node, f"graph '{graph.name}': node '{node.output[0]}'", primitives, functions, values)
        for value in graph.output:
            name = _text(value.name, f"graph '{graph.name}': the name of an output")
            if name not in values and name not in functions and name not in primitives:
                raise ValueError(f"graph '{graph.name}': no node defines its output '{name}'")


def _unique(what: str, names: Iterable[Any]) -> set[str]:
    found: set[str] = set()
    for name in names:
        if _text(name, f"the name of a {what}") in found:
            raise ValueError(f"two {what}s have the same name '{name}'")
        found.add(name)
    return found


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):  # protobuf hands over what is not UTF-8 as bytes
        raise ValueError(f"{what} is {value!r}, which is no text")
    if not value:
        raise ValueError(f"{what} is empty")
    return value


def _names_of(graph: Any, place: str) -> Iterable[str]:
    for value in graph.input:
        yield _text(value.name, f"{place}: the name of an input")
    for parameter in graph.parameter:
        yield _text(parameter.name, f"{place}: the name of a parameter")
    for index, node in enumerate(graph.node):
        if not node.output:
            raise ValueError(f"{place}: node {index} ({node.op_type!r}) has no output")
        yield _text(node.output[0], f"{place}: the output of node {index}")


def _check_input(value: Any, place: str) -> None:
    where = f"{place}: input '{value.name}'"
    if value.tensor:
        if len(value.tensor) != 1:
            raise ValueError(f"{where} has {len(value.tensor)} types, one is expected")
        _check_tensor(value.tensor[0], where)
    elif value.denotation:
        _text(value.denotation, f"the type of {where}")


def _check_tensor(proto: Any, where: str, unknown_sizes: bool = True) -> None:
    dims = list(proto.dims)
    if not DATA.UNDEFINED < proto.data_type <= max(DATA.DataType.values()):
        raise ValueError(f"{where} has the data type {proto.data_type}, which is not known")
    if len(dims) > _MAX_RANK:
        raise ValueError(f"{where} has {len(dims)} dimensions, up to {_MAX_RANK} are expected")
    if dims != [-2] and any(n < (-1 if unknown_sizes else 0) for n in dims):
        raise ValueError(f"{where} has the sizes {dims}, none may be negative" + (" but -1" * unknown_sizes))


def _check_node(node: Any, place: str, primitives: set, functions: set, values: set) -> None:
    op_type = _text(node.op_type, f"{place}: the operator")
    if op_type == "Constant":
        if len(node.attribute) != 1:
            raise ValueError(f"{place}: a constant has one attribute, this one has {len(node.attribute)}")
        try:
            _check_value(node.attribute[0])
        except ValueError as e:
            raise ValueError(f"{place}: {e}") from None
        return
    if op_type.startswith("REF::"):
        target = op_type[5:]
        if target not in primitives and target not in functions and target not in values:
            raise ValueError(f"{place} calls '{target}', which nothing defines")
    else:
        _check_attributes(node.attribute, place)
    for name in node.input:
        _text(name, f"{place}: the name of an input")
        if name not in values and name not in functions and name not in primitives:
            raise ValueError(f"{place}: names that no node defines: {name}")


def _check_attributes(attributes: Any, place: str) -> None:
    names: set[str] = set()
    for attribute in attributes:
        if attribute.name == "shape" or attribute.ref_attr_name:
            continue  # a description of the result, or a value of an old file, which `read_value` checks
        name = _text(attribute.name, f"{place}: the name of an attribute")
        if name in names:
            raise ValueError(f"{place}: two attributes have the name '{name}'")
        names.add(name)
        try:
            _check_value(attribute)
        except ValueError as e:
            raise ValueError(f"{place}: {e}") from None


def _check_value(attribute: Any) -> None:
    """The type is known, and a value of this type is there."""
    if attribute.ref_attr_name:
        return
    kind = attribute.type
    if kind == TYPE.UNDEFINED:
        raise ValueError(f"the attribute '{attribute.name}' has no type that is known")
    if kind in _FIELDS:
        own, elements = _FIELDS[kind]
        if not attribute.HasField(own) and not getattr(attribute, elements):
            raise ValueError(f"the attribute '{attribute.name}' has the type {_name(kind)} and no such value")
    elif kind in (TYPE.TUPLE, TYPE.LIST):
        for element in attribute.values:
            _check_value(element)
    elif kind == TYPE.DICT:
        for entry in attribute.values:
            if len(entry.values) != 1:
                raise ValueError(
                    f"the entry '{entry.name}' of a dict has {len(entry.values)} values, not one"
                )
            _check_value(entry.values[0])


def _name(kind: int) -> str:
    return TYPE.AttributeType.Name(kind)
