"""Data types of ONNX: their numbers, and which operators compute in which of them.

An operator is written in a wider type, with casts around it, where the format or the runtimes lack the one
that comes: never in a narrower one. float16 and float64 stay where the format has them.
"""

from __future__ import annotations

from mycelia.engine.base import dtypes
from mycelia.engine.base.dtypes import DType
from mycelia.io.compositions import Unsupported

DTYPES = {  # TensorProto.DataType -> dtype
    1: dtypes.float32, 2: dtypes.uint8, 3: dtypes.int8, 4: dtypes.uint16, 5: dtypes.int16, 6: dtypes.int32,
    7: dtypes.int64, 9: dtypes.bool_, 10: dtypes.float16, 11: dtypes.float64, 12: dtypes.uint32,
    13: dtypes.uint64, 16: dtypes.bfloat16,
}  # fmt: skip
NUMBERS = {dtype: number for number, dtype in DTYPES.items()}

_FLOATS = "float16 float32 float64"
_SIGNED = "int8 int16 int32 int64"
_INTEGERS = f"{_SIGNED} uint8 uint16 uint32 uint64"
_COMPUTED = {  # operators -> the types in which they are written; others take any
    "Add Sub Mul Div Abs Sign Greater GreaterOrEqual Less LessOrEqual": f"{_FLOATS} {_INTEGERS}",
    "Mod": f"{_FLOATS} {_INTEGERS}",
    "Equal": f"{_FLOATS} {_INTEGERS} bool",
    "Neg": f"{_FLOATS} {_SIGNED}",
    "Acos Acosh Asin Asinh Atan Atanh Cos Cosh Sin Sinh Tan Tanh": _FLOATS,
    "Ceil Floor Round Erf Exp Log Sqrt Reciprocal": _FLOATS,
    "Sigmoid Softplus Softsign Softmax LogSoftmax Elu Selu LeakyRelu Mish Gelu PRelu Relu": _FLOATS,
    "IsNaN": _FLOATS,
    "Gemm Conv ConvTranspose AveragePool LRN LSTM GRU RNN Det RoiAlign ReduceLogSumExp": _FLOATS,
    "BatchNormalization LayerNormalization InstanceNormalization": _FLOATS,
    "MaxPool": f"{_FLOATS} int8 uint8",
    "Max Min Clip": f"{_FLOATS} int8 int32 int64 uint8 uint32 uint64",
    "ReduceSum ReduceMean ReduceProd ReduceL2 ReduceSumSquare CumSum Einsum": f"{_FLOATS} int32 int64",
    "ReduceMax ReduceMin ArgMax ArgMin": f"{_FLOATS} int8 int32 int64 uint8",
    "MatMul": f"{_FLOATS} int32 int64 uint32 uint64",
    "Pow": f"{_FLOATS} int32 int64",
    "Where": f"{_FLOATS} int8 int32 int64 uint8 uint32",
    "Pad": f"{_FLOATS} int8 int32 int64 uint8 uint32 uint64 bool",
    "Expand Tile": f"{_FLOATS} {_INTEGERS} bool",
    "TopK": f"{_FLOATS} int8 int16 int32 int64 uint8",
    "Trilu": f"{_FLOATS} int32 int64 bool",
    "NonZero": f"{_FLOATS} int32 int64 uint8 bool",
    "Range": "float32 float64 int16 int32 int64",
    "BitwiseAnd BitwiseOr BitwiseXor BitwiseNot": _INTEGERS,
    "BitShift": "uint8 uint16 uint32 uint64",
    "Not And Or Xor": "bool",
    "Compress": f"{_FLOATS} {_INTEGERS} bool",
}  # fmt: skip
COMPUTED: dict[str, frozenset[DType]] = {
    operator: frozenset(getattr(dtypes, "bool_" if name == "bool" else name) for name in names.split())
    for operators, names in _COMPUTED.items()
    for operator in operators.split()
}
_TRUTH = frozenset({dtypes.bool_})
_WIDER = {  # the types that may stand for one, the nearest first
    dtypes.bool_: (dtypes.uint8, dtypes.int32, dtypes.float32),
    dtypes.int8: (dtypes.int16, dtypes.int32, dtypes.int64, dtypes.float32),
    dtypes.uint8: (dtypes.int16, dtypes.int32, dtypes.int64, dtypes.float32),
    dtypes.int16: (dtypes.int32, dtypes.int64, dtypes.float32),
    dtypes.uint16: (dtypes.int32, dtypes.int64, dtypes.float32),
    dtypes.int32: (dtypes.int64, dtypes.float64),
    dtypes.uint32: (dtypes.int64, dtypes.float64),
    dtypes.float16: (dtypes.float32,),
    dtypes.bfloat16: (dtypes.float32,),
    dtypes.float32: (dtypes.float64,),
}
_MODULAR = ("ReduceSum", "ReduceProd", "CumSum", "Where", "Trilu", "Pow")  # right in int64, read as uint64
SINCE = {  # the version of the operators that an operator came with, if it is newer than the oldest written
    "BitwiseAnd": 18, "BitwiseOr": 18, "BitwiseXor": 18, "BitwiseNot": 18, "Mish": 18, "Gelu": 20,
}  # fmt: skip
OLDEST, NEWEST = 17, 26
IR_VERSIONS = {17: 8, 18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11, 24: 12, 25: 13, 26: 13}


def number_of(dtype: DType) -> int:
    """The number of a dtype. Errors: Unsupported for complex ones."""
    if dtype not in NUMBERS:
        raise Unsupported(f"tensors of {dtype}")
    return NUMBERS[dtype]


def computed_in(operator: str, dtype: DType) -> DType:
    """The type in which an operator is written for operands of `dtype`. Errors: Unsupported without one."""
    kinds = COMPUTED.get(operator)
    if kinds == _TRUTH:  # what is not zero is true
        return dtypes.bool_
    if kinds is None or dtype in kinds:
        return dtype
    if dtype is dtypes.uint64 and operator in _MODULAR:
        return dtypes.int64
    found = next((wide for wide in _WIDER.get(dtype, ()) if wide in kinds), None)
    if found is None:
        raise Unsupported(f"{operator} of {dtype}")
    return found
