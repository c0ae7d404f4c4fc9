# Written by tools/gen_stubs.py.
from mycelia.faces.stand_ins.device_context.checks import tell as tell
from mycelia.faces.stand_ins.device_context.gpu.op_tuning import (
    conv_dgrad_algo as conv_dgrad_algo, conv_fprop_algo as conv_fprop_algo,
    conv_wgrad_algo as conv_wgrad_algo,
)

__all__ = [
    "conv_dgrad_algo", "conv_fprop_algo", "conv_wgrad_algo", "tell",
]
