# Written by tools/gen_stubs.py.
from . import op_tuning as op_tuning
from mycelia.faces.stand_ins.device_context.cpu import (
    device_count as device_count, is_available as is_available,
)
from mycelia.faces.stand_ins.device_context.cpu.op_tuning import threads_num as threads_num

__all__ = [
    "device_count", "is_available", "op_tuning", "threads_num",
]
