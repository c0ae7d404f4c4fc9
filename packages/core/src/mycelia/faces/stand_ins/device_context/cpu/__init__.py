"""The CPU: always there, one device."""

from mycelia.faces.stand_ins.device_context.cpu import op_tuning
from mycelia.faces.stand_ins.device_context.cpu.op_tuning import threads_num


def is_available() -> bool:
    """True."""
    return True


def device_count() -> int:
    """1: all processors together are one device."""
    return 1


__all__ = ["device_count", "is_available", "op_tuning", "threads_num"]
