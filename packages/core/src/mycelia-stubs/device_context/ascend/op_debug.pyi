# Written by tools/gen_stubs.py.
from mycelia.faces.stand_ins.device_context.ascend.op_debug import (
    aclinit_config as aclinit_config, debug_option as debug_option, execute_timeout as execute_timeout,
)
from mycelia.faces.stand_ins.device_context.checks import tell as tell

__all__ = [
    "aclinit_config", "debug_option", "execute_timeout", "tell",
]
