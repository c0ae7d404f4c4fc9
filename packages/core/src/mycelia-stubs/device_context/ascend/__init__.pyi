# Written by tools/gen_stubs.py.
from . import op_debug as op_debug, op_precision as op_precision, op_tuning as op_tuning
from mycelia.faces.stand_ins.device_context.ascend import (
    device_count as device_count, is_available as is_available,
)

__all__ = [
    "device_count", "is_available", "op_debug", "op_precision", "op_tuning",
]
