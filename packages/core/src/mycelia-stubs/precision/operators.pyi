# Written by tools/gen_stubs.py.
from mycelia.debug.precision.operators import (
    DumpedOperator as DumpedOperator, describe as describe, operators as operators,
)
from mycelia.debug.reading.folders import Dump as Dump, Record as Record
from mycelia.debug.reading.ir import GraphNode as GraphNode, read_graphs as read_graphs

__all__ = [
    "Dump", "DumpedOperator", "GraphNode", "Record", "describe", "operators", "read_graphs",
]
