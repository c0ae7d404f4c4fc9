# Written by tools/gen_stubs.py.
from mycelia.engine.base.dtypes import DType as DType
from mycelia.engine.ops.fusion import Fusion as Fusion, on_float32 as on_float32, step as step

__all__ = [
    "BRAIN", "DType", "FLOAT", "Fusion", "HALF", "INT", "KINDS", "MASK", "NARROW", "ROUNDING", "on_float32",
    "step",
]

BRAIN: int
FLOAT: int
HALF: int
INT: int
KINDS: dict
MASK: int
NARROW: dict
ROUNDING: dict
