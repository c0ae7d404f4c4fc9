"""Settings as users change them: `set_context`, `context(...)` blocks, seeds, device.  Table: `settings`."""

from __future__ import annotations

from mycelia.engine.base import errors, ignored, plugins, settings
from mycelia.engine.base.settings import (
    checked,
    context,
    get,
    is_set,
    on_change,
    read_again,
    reset,
    set_value,
    unknown,
)
from mycelia.engine.base.settings_table import (
    COMPATIBLE,
    DEBUG,
    DEVICE_ALIASES,
    GRAPH_MODE,
    LAX,
    PYNATIVE_MODE,
    RELEASE,
    SETTINGS,
    STRICT,
    Setting,
    gigabytes,
)

__all__ = [
    "COMPATIBLE", "DEBUG", "DEVICE_ALIASES", "GRAPH_MODE", "LAX", "PYNATIVE_MODE", "RELEASE",
    "SETTINGS", "STRICT", "Setting", "context", "get", "get_context", "get_seed", "gigabytes", "is_set",
    "on_change", "read_again", "reset", "set_context", "set_deterministic", "set_device",
    "set_recursion_limit", "set_seed", "set_value",
]  # fmt: skip


def _backend_names() -> list[str]:
    return [backend.name for backend in plugins.backends()]


def _unfollowed(setting: Setting, value: object) -> None:
    ignored.tell("set_context", setting.key, value, setting.missing)


settings.connect(_backend_names, _unfollowed)


def set_context(**kwargs) -> None:
    """Change settings: `set_context(mode=ms.GRAPH_MODE, device_target="CPU")`.

    Errors: ValueError for an unknown key or value, TypeError for a wrong type; then nothing is changed.
    """
    if "jit_level" in kwargs:  # a key that MindSpore takes without documenting it
        kwargs["jit_config"] = {**get("jit_config"), "jit_level": kwargs.pop("jit_level")}
    for key, value in kwargs.items():
        setting = SETTINGS.get(key)
        if setting is None or not setting.in_context:
            raise unknown("set_context", key)
        checked(setting, value)
    for key, value in kwargs.items():
        set_value(key, value)


def get_context(attr_key: str):
    """The value in force of one `set_context` key.  Errors: ValueError for an unknown key."""
    setting = SETTINGS.get(attr_key)
    if setting is None or not setting.in_context:
        raise unknown("get_context", attr_key)
    return get(attr_key)


def set_seed(seed: int) -> None:
    """Seed NumPy's global generator and all random ops, initializers and dataset shuffles.

    Errors: TypeError unless an int, ValueError outside 0 .. 2**32 - 1.
    """
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise errors.type_error(
            "set_seed", f"the argument 'seed' must be type of int, but got {type(seed).__name__}"
        )
    if not 0 <= seed < 2**32:  # NumPy's range
        raise errors.value_error("set_seed", f"the 'seed' must be between 0 and 2**32 - 1, but got {seed}")
    import numpy as np

    np.random.seed(seed)
    set_value("seed", seed)


def get_seed() -> int | None:
    """The seed given to `set_seed`, or None."""
    return get("seed")


def set_device(device_target: str, device_id: int | None = None) -> None:
    """Choose the backend, and which of its devices.

    Errors: ValueError for a backend that is not installed or a number outside 0 .. 4095, TypeError for
    other types.
    """
    set_context(device_target=device_target, **({} if device_id is None else {"device_id": device_id}))


def set_deterministic(deterministic: bool) -> None:
    """Whether results must not depend on the number of threads.  Errors: TypeError unless a bool."""
    if not isinstance(deterministic, bool):
        got = type(deterministic).__name__
        raise errors.type_error(
            "set_deterministic", f"the argument 'deterministic' must be bool, but got {got}"
        )
    set_context(deterministic="ON" if deterministic else "OFF")


def set_recursion_limit(recursion_limit: int = 1000) -> None:
    """Deepest nesting of calls that graph mode follows.

    Errors: TypeError unless an int, ValueError below 1.
    """
    set_context(max_call_depth=recursion_limit)
