# Written by tools/gen_stubs.py.
from . import device as device, op_precision as op_precision, op_tuning as op_tuning
from mycelia.faces.stand_ins.device_context.gpu import device_count as device_count
from mycelia.faces.stand_ins.device_context.gpu.device import is_available as is_available

__all__ = [
    "device", "device_count", "is_available", "op_precision", "op_tuning",
]
