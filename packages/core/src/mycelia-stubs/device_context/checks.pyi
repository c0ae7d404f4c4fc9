# Written by tools/gen_stubs.py.
from mycelia.faces.stand_ins.device_context.checks import no_device as no_device, tell as tell

__all__ = [
    "no_device", "tell",
]
