# Written by tools/gen_stubs.py.
from mycelia.engine.base.dtypes import (
    DType as DType, Float as Float, Int as Int, QuantDtype as QuantDtype, TensorType as TensorType,
    Type as Type, Type as _Type, UInt as UInt, as_dtype as as_dtype, dtype_to_nptype as dtype_to_nptype,
    dtype_to_pytype as dtype_to_pytype, from_bfloat16_bits as from_bfloat16_bits, from_numpy as from_numpy,
    get_py_obj_dtype as get_py_obj_dtype, promote as promote, promote_number as promote_number,
    pytype_to_dtype as pytype_to_dtype, to_bfloat16_bits as to_bfloat16_bits,
)
from typing import Any as Any

__all__ = [
    "ALL", "BFLOAT16_BITS", "DType", "Float", "Int", "QuantDtype", "TensorType", "Type", "UInt",
    "all_types", "as_dtype", "bfloat16", "bool_", "byte", "cdouble", "cfloat", "complex128", "complex64",
    "complex_type", "coo_tensor", "csr_tensor", "double", "dtype_to_nptype", "dtype_to_pytype", "float16",
    "float32", "float64", "float8_e4m3fn", "float8_e5m2", "float_", "float_type", "from_bfloat16_bits",
    "from_numpy", "function", "get_py_obj_dtype", "half", "hifloat8", "int16", "int32", "int64", "int8",
    "int_", "int_type", "intc", "intp", "list_", "long", "number", "number_type", "promote",
    "promote_number", "pytype_to_dtype", "qint4x2", "short", "single", "string", "tensor_type",
    "to_bfloat16_bits", "tuple_", "type_none", "type_type", "ubyte", "uint", "uint16", "uint32", "uint64",
    "uint8", "uint_type", "uintc", "uintp", "ushort",
]

ALL: tuple
BFLOAT16_BITS: Any
all_types: tuple
bfloat16: DType
bool_: DType
byte: DType
cdouble: DType
cfloat: DType
complex128: DType
complex64: DType
complex_type: tuple
coo_tensor: _Type
csr_tensor: _Type
double: DType
float16: DType
float32: DType
float64: DType
float8_e4m3fn: _Type
float8_e5m2: _Type
float_: _Type
float_type: tuple
function: _Type
half: DType
hifloat8: _Type
int16: DType
int32: DType
int64: DType
int8: DType
int_: _Type
int_type: tuple
intc: DType
intp: DType
list_: _Type
long: DType
number: _Type
number_type: tuple
qint4x2: _Type
short: DType
single: DType
string: _Type
tensor_type: _Type
tuple_: _Type
type_none: _Type
type_type: _Type
ubyte: DType
uint: _Type
uint16: DType
uint32: DType
uint64: DType
uint8: DType
uint_type: tuple
uintc: DType
uintp: DType
ushort: DType
