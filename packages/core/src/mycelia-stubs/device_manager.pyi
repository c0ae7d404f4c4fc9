# Written by tools/gen_stubs.py.
from mycelia.faces.stand_ins.device_manager import (
    DeviceCtx as DeviceCtx, DeviceInfo as DeviceInfo, get_current_device as get_current_device,
    run_check as run_check, swap_tensors as swap_tensors,
)

__all__ = [
    "DeviceCtx", "DeviceInfo", "get_current_device", "run_check", "swap_tensors",
]
