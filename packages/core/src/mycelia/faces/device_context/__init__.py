"""Settings and facts of one kind of device each: `cpu`, `gpu`, `ascend`."""

from mycelia.faces.device_context import ascend, cpu, gpu

__all__ = ["ascend", "cpu", "gpu"]
