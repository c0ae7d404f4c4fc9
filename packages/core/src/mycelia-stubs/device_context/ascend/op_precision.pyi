# Written by tools/gen_stubs.py.
from mycelia.faces.stand_ins.device_context.ascend.op_precision import (
    conv_allow_hf32 as conv_allow_hf32, matmul_allow_hf32 as matmul_allow_hf32,
    op_precision_mode as op_precision_mode, precision_mode as precision_mode,
)
from mycelia.faces.stand_ins.device_context.checks import tell as tell

__all__ = [
    "conv_allow_hf32", "matmul_allow_hf32", "op_precision_mode", "precision_mode", "tell",
]
