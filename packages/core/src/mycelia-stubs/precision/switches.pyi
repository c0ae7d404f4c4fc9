# Written by tools/gen_stubs.py.
from mycelia.debug.precision.switches import read_switches as read_switches

__all__ = [
    "ALL", "read_switches",
]

ALL: str
