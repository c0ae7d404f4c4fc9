# Written by tools/gen_stubs.py.
from mycelia.debug import dump as dump
from mycelia.debug.dump.config import DumpConfig as DumpConfig, parse as parse, read as read
from mycelia.debug.dump.observer import DumpObserver as DumpObserver

__all__ = [
    "DumpConfig", "DumpObserver", "dump", "parse", "read",
]
