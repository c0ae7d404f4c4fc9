"""Which devices there are. Functions take the kind of device, by default the one in force."""

from __future__ import annotations

from mycelia.engine import _C
from mycelia.engine.backends import Backend, registry
from mycelia.engine.base import config, errors

_TARGETS = ("CPU", "GPU", "Ascend")


def _target(owner: str, device_target: str | None) -> str:
    """The kind of device asked for.  Errors: ValueError for an unknown one."""
    target = str(config.get("device_target")) if device_target is None else device_target
    if target not in _TARGETS and target not in registry.available():
        others = sorted(registry.available().keys() - {registry.HOST})
        raise errors.one_of(target, (*_TARGETS, *others), subject=owner, what="device_target")
    return target


def _backend(target: str) -> Backend | None:
    if target.lower() == registry.HOST:
        return registry.host().backend
    name = config.DEVICE_ALIASES.get(target.lower(), target)
    return registry.load(name).backend if name in registry.available() else None


def require_device(owner: str, device_target: str | None) -> Backend:
    """The backend for a kind of device.  Errors: ValueError for a kind that no backend here serves."""
    target = _target(owner, device_target)
    backend = _backend(target)
    if backend is None:
        raise errors.value_error(owner, f"no backend for {target} is there; see hal.is_available")
    return backend


def is_available(device_target: str) -> bool:
    """Whether a backend for this kind of device is there."""
    return _backend(_target("hal.is_available", device_target)) is not None


def is_initialized(device_target: str) -> bool:
    """Whether tensors were made for this kind of device yet."""
    backend = require_device("hal.is_initialized", device_target)
    return _C.device_statistics(backend.device)["system_allocations"] > 0


def device_count(device_target: str | None = None) -> int:
    """How many devices of a kind there are: one of each that a backend serves."""
    require_device("hal.device_count", device_target)
    return 1


def get_arch_list(device_target: str | None = None) -> None:
    """The architectures that GPU kernels were compiled for: None for the CPU."""
    require_device("hal.get_arch_list", device_target)


def _one(owner: str, device_id: int, device_target: str | None) -> str:
    require_device(owner, device_target)
    if isinstance(device_id, bool) or not isinstance(device_id, int):
        raise errors.type_error(owner, f"device_id must be an int, but got {type(device_id).__name__}")
    if not 0 <= device_id < 1:
        raise errors.value_error(
            owner, f"device_id must be less than the number of devices, 1, but got {device_id}"
        )
    return _target(owner, device_target)


def get_device_capability(device_id: int, device_target: str | None = None) -> None:
    """The version of a GPU's instructions: None for the CPU."""
    _one("hal.get_device_capability", device_id, device_target)


def get_device_name(device_id: int, device_target: str | None = None) -> str:
    """The name of a device: "CPU", or that of its backend."""
    return _one("hal.get_device_name", device_id, device_target)


def get_device_properties(device_id: int, device_target: str | None = None) -> None:
    """Facts about a GPU or an Ascend chip: None for the CPU."""
    _one("hal.get_device_properties", device_id, device_target)
