"""Checks of the settings of devices that no backend here serves: they are told of, and change nothing."""

from __future__ import annotations

from mycelia.engine.base import errors, log


def tell(name: str, parameter: str, value, kind: type, choices: tuple = ()) -> None:
    """Check one value of a setting, and log that its device is missing.

    Errors: TypeError for another type than `kind`, ValueError for a value that is none of `choices`.
    """
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise errors.type_error(name, f"{parameter} must be {kind.__name__}, but got {type(value).__name__}")
    if choices and value not in choices:
        raise errors.one_of(value, choices, subject=name, what=parameter)
    device = name.split(".")[0]
    log.error(f"{name} is a setting of {device}, and no backend for it is installed: nothing changes")


def no_device(device: str) -> RuntimeError:
    """The error of counting devices without a backend for them."""
    return errors.error(
        errors.MyceliaRuntimeError, f"{device}.device_count", f"no backend for {device} is installed",
        hint=f"ask device_context.{device}.is_available() first",
    )  # fmt: skip
