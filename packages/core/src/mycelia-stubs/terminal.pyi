# Written by tools/gen_stubs.py.
from mycelia.engine.base.terminal import console as console

__all__ = [
    "WIDE", "console",
]

WIDE: int
