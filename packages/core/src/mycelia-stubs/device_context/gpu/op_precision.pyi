# Written by tools/gen_stubs.py.
from mycelia.faces.stand_ins.device_context.checks import tell as tell
from mycelia.faces.stand_ins.device_context.gpu.op_precision import (
    conv_allow_tf32 as conv_allow_tf32, matmul_allow_tf32 as matmul_allow_tf32,
)

__all__ = [
    "conv_allow_tf32", "matmul_allow_tf32", "tell",
]
