# Written by tools/gen_stubs.py.
from mycelia.engine.backends.base import Backend as Backend
from mycelia.faces.stand_ins.hal.device import (
    device_count as device_count, get_arch_list as get_arch_list,
    get_device_capability as get_device_capability, get_device_name as get_device_name,
    get_device_properties as get_device_properties, is_available as is_available,
    is_initialized as is_initialized, require_device as require_device,
)

__all__ = [
    "Backend", "device_count", "get_arch_list", "get_device_capability", "get_device_name",
    "get_device_properties", "is_available", "is_initialized", "require_device",
]
