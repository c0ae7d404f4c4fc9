"""Ascend: no backend for it is installed, so it is not available, and its settings change nothing."""

from mycelia.faces.stand_ins.device_context.ascend import op_debug, op_precision, op_tuning
from mycelia.faces.stand_ins.device_context.checks import no_device


def is_available() -> bool:
    """Whether a backend for Ascend is there."""
    return False


def device_count() -> int:
    """Raises RuntimeError: there is none."""
    raise no_device("ascend")


__all__ = ["device_count", "is_available", "op_debug", "op_precision", "op_tuning"]
