# Written by tools/gen_stubs.py.
from mycelia.dtype import (
    bool_ as bool_, float16 as float16, float32 as float32, int16 as int16, int32 as int32, int64 as int64,
    uint16 as uint16, uint32 as uint32, uint64 as uint64,
)
from mycelia.engine.base.dtypes import DType as DType

__all__ = [
    "NINF", "PINF", "bool_", "float16", "float32", "float64", "float_", "inf", "int16", "int32", "int64",
    "int8", "int_", "nan", "numeric_types", "pi", "uint", "uint16", "uint32", "uint64", "uint8",
]

NINF: float
PINF: float
float64: DType
float_: DType
inf: float
int8: DType
int_: DType
nan: float
numeric_types: list
pi: float
uint: DType
uint8: DType
