# Written by tools/gen_stubs.py.
from mycelia.faces.stand_ins.device_context.cpu.op_tuning import threads_num as threads_num

__all__ = [
    "threads_num",
]
