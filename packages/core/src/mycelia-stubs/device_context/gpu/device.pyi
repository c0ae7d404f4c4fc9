# Written by tools/gen_stubs.py.
from mycelia.faces.stand_ins.device_context.gpu.device import is_available as is_available

__all__ = [
    "is_available",
]
