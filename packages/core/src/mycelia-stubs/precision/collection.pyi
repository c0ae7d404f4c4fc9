# Written by tools/gen_stubs.py.
from mycelia.debug import dump as dump
from mycelia.debug.dump.config import parse as parse
from mycelia.debug.precision.collection import (
    collect as collect, program_dump as program_dump, start as start,
)
from mycelia.debug.precision.instructions import ProgramDump as ProgramDump
from mycelia.debug.precision.switches import read_switches as read_switches
from mycelia.engine.ir.graph import Node as Node

__all__ = [
    "ACTIONS", "ALL", "Node", "ProgramDump", "collect", "dump", "parse", "program_dump", "read_switches",
    "start",
]

ACTIONS: tuple
ALL: str
