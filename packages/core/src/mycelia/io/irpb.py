"""Values of attributes and constants as messages `ValueProto` of MindSpore's graphs: of `mindspore.irpb` in
summaries and of the debugger alike, which differ in tensors alone.
"""

from __future__ import annotations

import struct
from typing import Any

from mycelia.engine.base.dtypes import DType
from mycelia.engine.base.wire import FIXED32, field, varint

#: DataType of the schema by dtype name.
DATA_TYPES = {
    "Bool": 1, "Int8": 2, "Int16": 3, "Int32": 4, "Int64": 5, "UInt8": 6, "UInt16": 7, "UInt32": 8,
    "UInt64": 9, "Float16": 10, "Float32": 11, "Float64": 12, "BFloat16": 46,
}  # fmt: skip
TENSOR = 14
_BOOL, _INT64, _FLOAT32, _STRING, _TUPLE, _NONE, _TYPE = 1, 5, 11, 13, 31, 34, 39
_INT64_RANGE = range(-(1 << 63), 1 << 63)


def value(content: Any) -> bytes:
    """A ValueProto; what the schema has no kind for is a text."""
    if content is None:
        return field(1, _NONE) + field(7, b"None")
    if isinstance(content, bool):
        return field(1, _BOOL) + field(2, int(content))
    if isinstance(content, int) and content in _INT64_RANGE:
        return field(1, _INT64) + field(3, content)
    if isinstance(content, float):
        return field(1, _FLOAT32) + varint(5 << 3 | FIXED32) + struct.pack("<f", _narrow(content))
    if isinstance(content, (tuple, list)):
        return field(1, _TUPLE) + b"".join(field(18, value(one)) for one in content)
    if isinstance(content, DType):
        return field(1, _TYPE) + field(20, field(1, DATA_TYPES.get(str(content), 0)))
    return field(1, _STRING) + field(7, str(content).encode())


def tensor(message: bytes) -> bytes:
    """A ValueProto of a tensor, whose message is another one in each schema."""
    return field(1, TENSOR) + field(8, message)


def _narrow(number: float) -> float:
    """What is beyond float32 is infinite there."""
    try:
        struct.pack("<f", number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")
    return number
