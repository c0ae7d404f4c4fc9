# Written by tools/gen_stubs.py.
from mycelia.debug import dump as dump
from mycelia.debug.precision.collection import collect as collect, start as start
from mycelia.debug.precision.instructions import Recorder as Recorder
from mycelia.debug.precision.switches import read_switches as read_switches
from typing import Any as Any

__all__ = [
    "ACTIONS", "ALL", "Recorder", "collect", "dump", "instruction_recorder", "read_switches", "start",
]

ACTIONS: tuple
ALL: str
instruction_recorder: Any
