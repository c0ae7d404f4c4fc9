"""GPUs: no backend for them is installed, so none is available, and their settings change nothing."""

from mycelia.faces.stand_ins.device_context.checks import no_device
from mycelia.faces.stand_ins.device_context.gpu import device, op_precision, op_tuning
from mycelia.faces.stand_ins.device_context.gpu.device import is_available


def device_count() -> int:
    """Raises RuntimeError: there is none."""
    raise no_device("gpu")


__all__ = ["device", "device_count", "is_available", "op_precision", "op_tuning"]
