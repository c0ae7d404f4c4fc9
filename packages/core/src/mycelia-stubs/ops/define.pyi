# Written by tools/gen_stubs.py.
from mycelia.engine.ir.sizes import Size as Size
from mycelia.engine.ir.types import TensorType as TensorType
from mycelia.engine.ops.define import (
    Attribute as Attribute, OpDef as OpDef, check_size as check_size, find as find, op as op,
)

__all__ = [
    "Attribute", "ELEMENTWISE", "LIST", "MAX_INTS", "MOST_BYTES", "OPTIONAL", "OpDef", "Size", "TENSOR",
    "TensorType", "UNKNOWN", "check_size", "find", "op", "registry",
]

ELEMENTWISE: tuple
LIST: int
MAX_INTS: int
MOST_BYTES: int
OPTIONAL: int
TENSOR: int
UNKNOWN: int
registry: dict
