# Written by tools/gen_stubs.py.
from mycelia.engine.base.config import (
    get_context as get_context, get_seed as get_seed, set_context as set_context,
    set_deterministic as set_deterministic, set_device as set_device,
    set_recursion_limit as set_recursion_limit, set_seed as set_seed,
)
from mycelia.engine.base.settings import (
    context as context, get as get, is_set as is_set, on_change as on_change, read_again as read_again,
    reset as reset, set_value as set_value,
)
from mycelia.engine.base.settings_table import Setting as Setting, gigabytes as gigabytes

__all__ = [
    "COMPATIBLE", "DEBUG", "DEVICE_ALIASES", "GRAPH_MODE", "LAX", "PYNATIVE_MODE", "RELEASE", "SETTINGS",
    "STRICT", "Setting", "context", "get", "get_context", "get_seed", "gigabytes", "is_set", "on_change",
    "read_again", "reset", "set_context", "set_deterministic", "set_device", "set_recursion_limit",
    "set_seed", "set_value",
]

COMPATIBLE: int
DEBUG: int
DEVICE_ALIASES: dict
GRAPH_MODE: int
LAX: int
PYNATIVE_MODE: int
RELEASE: int
SETTINGS: dict
STRICT: int
