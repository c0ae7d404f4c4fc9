"""Settings and facts of one kind of device each: `cpu`, `gpu`, `ascend`."""

from mycelia.faces.stand_ins.device_context import ascend, cpu, gpu

__all__ = ["ascend", "cpu", "gpu"]
