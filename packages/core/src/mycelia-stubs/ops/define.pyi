# Written by tools/gen_stubs.py.
from mycelia.engine.ir.symint import SymInt as SymInt
from mycelia.engine.ir.types import TensorType as TensorType
from mycelia.engine.ops.define import (
    Attribute as Attribute, OpDef as OpDef, check_size as check_size, find as find, op as op,
)
from mycelia.engine.ops.fusion import Fusion as Fusion, step as step
from mycelia.engine.ops.layout_rules import LayoutRule as LayoutRule

__all__ = [
    "Attribute", "ELEMENTWISE", "Fusion", "LIST", "LayoutRule", "MAX_INTS", "MOST_BYTES", "OPTIONAL",
    "OpDef", "PRECISIONS", "SymInt", "TENSOR", "TensorType", "UNKNOWN", "check_size", "find", "op",
    "registry", "step",
]

ELEMENTWISE: tuple
LIST: int
MAX_INTS: int
MOST_BYTES: int
OPTIONAL: int
PRECISIONS: tuple
TENSOR: int
UNKNOWN: int
registry: dict
