# Written by tools/gen_stubs.py.
from mycelia.dtype import (
    ALL as ALL, BFLOAT16_BITS as BFLOAT16_BITS, all_types as all_types, bfloat16 as bfloat16,
    bool_ as bool_, byte as byte, cdouble as cdouble, cfloat as cfloat, complex_type as complex_type,
    coo_tensor as coo_tensor, csr_tensor as csr_tensor, double as double, float16 as float16,
    float32 as float32, float8_e4m3fn as float8_e4m3fn, float8_e5m2 as float8_e5m2, float_ as float_,
    float_type as float_type, function as function, hifloat8 as hifloat8, int16 as int16, int32 as int32,
    int64 as int64, int_ as int_, int_type as int_type, list_ as list_, number as number,
    number_type as number_type, qint4x2 as qint4x2, string as string, tensor_type as tensor_type,
    tuple_ as tuple_, type_none as type_none, type_type as type_type, ubyte as ubyte, uint as uint,
    uint16 as uint16, uint32 as uint32, uint64 as uint64, uint_type as uint_type,
)
from mycelia.engine.base.dtypes import (
    DType as DType, Float as Float, Int as Int, QuantDtype as QuantDtype, TensorType as TensorType,
    Type as Type, UInt as UInt, as_dtype as as_dtype, dtype_to_nptype as dtype_to_nptype,
    dtype_to_pytype as dtype_to_pytype, from_bfloat16_bits as from_bfloat16_bits, from_numpy as from_numpy,
    get_py_obj_dtype as get_py_obj_dtype, promote as promote, promote_number as promote_number,
    pytype_to_dtype as pytype_to_dtype, to_bfloat16_bits as to_bfloat16_bits,
)

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

complex128: DType
complex64: DType
float64: DType
half: DType
int8: DType
intc: DType
intp: DType
long: DType
short: DType
single: DType
uint8: DType
uintc: DType
uintp: DType
ushort: DType
