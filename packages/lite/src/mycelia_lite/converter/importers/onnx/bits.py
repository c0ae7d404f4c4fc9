"""BitCast of ONNX."""

from __future__ import annotations

import numpy as np

from mycelia_lite.converter.bits import reinterpreted
from mycelia_lite.converter.errors import Code
from mycelia_lite.converter.importers.onnx.calls import operator
from mycelia_lite.converter.importers.onnx.file import dtype_of


@operator("BitCast", first=26)
def _bit_cast(call, x):
    """Elements keep their width."""
    dtype = dtype_of(call.need("to"), f"node '{call.name}' (BitCast): its result")
    if np.dtype(dtype.np).itemsize != np.dtype(x.dtype.np).itemsize:
        raise call.fail(f"the bits of {x.dtype} as {dtype}, which has another width", Code.INVALID_OP_ATTR)
    return reinterpreted(call, x, dtype)
