"""A ValueProto of mindspore.irpb in the text format of protocol buffers, as MindInsight shows attributes.

Fields stand in the order of their numbers, a line each, messages between braces; what a reader of this
message does not know is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from mycelia_insight.records import wire
from mycelia_insight.records.wire import plain

#: DataType, by its numbers.
DATA_TYPES = dict(enumerate(
    "UNDEFINED BOOL INT8 INT16 INT32 INT64 UINT8 UINT16 UINT32 UINT64 FLOAT16 FLOAT32 FLOAT64 STRING TENSOR "
    "GRAPH BOOLS INTS8 INTS16 INTS32 INTS64 UINTS8 UINTS16 UINTS32 UINTS64 FLOATS16 FLOATS32 FLOATS64 "
    "STRINGS TENSORS GRAPHS TUPLE LIST DICT NONE SYM_INST BASE_INT BASE_UINT BASE_FLOAT TYPE ANYTHING REFKEY "
    "REF".split()
))  # fmt: skip
_DEEPEST = 32  # messages in messages; deeper ones are shown empty
_ESCAPES = {0x0A: "\\n", 0x0D: "\\r", 0x09: "\\t", 0x22: '\\"', 0x27: "\\'", 0x5C: "\\\\"}

#: Message -> number of a field -> (its name, what it holds: a message, or one of the keys of `_WRITTEN`).
_FIELDS = {
    "Value": {
        1: ("dtype", "type"), 2: ("bool_val", "bool"), 3: ("int_val", "int"), 4: ("uint_val", "uint"),
        5: ("float_val", "float"), 6: ("double_val", "double"), 7: ("str_val", "text"),
        8: ("tensor_val", "Tensor"), 10: ("bool_vals", "bool"), 11: ("int_vals", "int"),
        12: ("uint_vals", "uint"), 13: ("float_vals", "float"), 14: ("double_vals", "double"),
        15: ("str_vals", "text"), 16: ("tensor_vals", "Tensor"), 18: ("values", "Value"),
        19: ("dict_val", "Named"), 20: ("type_val", "Type"),
    },
    "Tensor": {
        1: ("dims", "int"), 2: ("data_type", "type"), 3: ("float_data", "float"), 4: ("int32_data", "int"),
        5: ("int64_data", "int"), 6: ("double_data", "double"), 7: ("uint64_data", "uint"),
        8: ("raw_data", "text"),
    },
    "Named": {1: ("key", "text"), 2: ("value", "Value"), 3: ("full_name", "text")},
    "Type": {1: ("data_type", "type"), 2: ("tensor_type", "TensorType"), 3: ("sequence_type", "Sequence")},
    "TensorType": {1: ("elem_type", "type"), 2: ("shape", "Shape")},
    "Shape": {1: ("dim", "Dimension")},
    "Dimension": {1: ("size", "int"), 2: ("name", "text")},
    "Sequence": {1: ("elem_types", "Type")},
}  # fmt: skip


def value_text(data: bytes) -> str:
    """A serialized ValueProto as text, "" if it is empty.  Errors: Broken."""
    lines: list[str] = []
    _write(data, "Value", "", lines)
    return "".join(line + "\n" for line in lines)


def _write(data: bytes, message: str, indent: str, lines: list[str]) -> None:
    known, found = _FIELDS[message], {}
    for number, value in plain(data):
        if number in known:
            found.setdefault(number, []).append(value)
    for number in sorted(found):
        name, holds = known[number]
        if holds not in _FIELDS:
            written = (_WRITTEN[holds](one) for value in found[number] for one in _unpacked(value, holds))
            lines += [f"{indent}{name}: {one}" for one in written if one is not None]
            continue
        for value in found[number]:
            if isinstance(value, bytes):
                lines.append(f"{indent}{name} {{")
                if len(indent) < 2 * _DEEPEST:
                    _write(value, holds, indent + "  ", lines)
                lines.append(f"{indent}}}")


def _unpacked(value: object, holds: str) -> list:
    if not isinstance(value, bytes) or holds == "text":
        return [value]
    if holds in ("float", "double"):
        return wire.numbers([memoryview(value)], "<f4" if holds == "float" else "<f8").tolist()
    return [number % (1 << 64) for number in wire.varints([memoryview(value)]).tolist()]


def _number(value: object) -> str | None:
    """As Python writes it, of a float of 32 bits too: 0.10000000149011612."""
    if not isinstance(value, float):
        return None
    return str(value) if math.isfinite(value) else str(np.float64(value))


def _quoted(value: object) -> str | None:
    if not isinstance(value, bytes):
        return None
    return '"' + "".join(_ESCAPES.get(b) or (chr(b) if 32 <= b < 127 else f"\\{b:03o}") for b in value) + '"'


def _whole(write: Callable[[int], str | None]) -> Callable[[object], str | None]:
    return lambda value: write(value) if isinstance(value, int) else None


_WRITTEN: dict[str, Callable[[object], str | None]] = {
    "type": _whole(lambda value: f"DT_{DATA_TYPES[value]}" if value in DATA_TYPES else None),
    "bool": _whole(lambda value: "true" if value else "false"),
    "int": _whole(lambda value: str(wire.signed(value))),
    "uint": _whole(str),
    "float": _number,
    "double": _number,
    "text": _quoted,
}
