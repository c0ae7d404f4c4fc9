"""Numbers of the data types of ONNX."""

from __future__ import annotations

from mycelia.engine.base import dtypes

DTYPES = {  # TensorProto.DataType -> dtype
    1: dtypes.float32, 2: dtypes.uint8, 3: dtypes.int8, 4: dtypes.uint16, 5: dtypes.int16, 6: dtypes.int32,
    7: dtypes.int64, 9: dtypes.bool_, 10: dtypes.float16, 11: dtypes.float64, 12: dtypes.uint32,
    13: dtypes.uint64, 16: dtypes.bfloat16,
}  # fmt: skip
NUMBERS = {dtype: number for number, dtype in DTYPES.items()}
