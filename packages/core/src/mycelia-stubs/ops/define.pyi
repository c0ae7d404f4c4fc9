# Written by tools/gen_stubs.py.
from mycelia.engine.ir.types import TensorType as TensorType
from mycelia.engine.ops.attributes import Attribute as Attribute
from mycelia.engine.ops.define import OpDef as OpDef, check_size as check_size, find as find, op as op
from mycelia.engine.ops.fusion import Fusion as Fusion, step as step
from mycelia.engine.ops.layout_rules import LayoutRule as LayoutRule

__all__ = [
    "Attribute", "ELEMENTWISE", "Fusion", "LIST", "LayoutRule", "MOST_BYTES", "OPTIONAL", "OpDef",
    "PRECISIONS", "TENSOR", "TensorType", "UNKNOWN", "check_size", "find", "op", "registry", "step",
]

ELEMENTWISE: tuple
LIST: int
MOST_BYTES: int
OPTIONAL: int
PRECISIONS: tuple
TENSOR: int
UNKNOWN: int
registry: dict
