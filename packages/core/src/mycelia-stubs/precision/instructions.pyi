# Written by tools/gen_stubs.py.
from mycelia.debug.precision.comparison import alike as alike
from mycelia.debug.precision.instructions import (
    ProgramDump as ProgramDump, first_difference as first_difference,
)
from mycelia.debug.reading.folders import Dump as Dump, Record as Record
from mycelia.debug.reading.ir import read_graphs as read_graphs
from mycelia.debug.statistics import array_of as array_of
from mycelia.engine.ir.graph import Graph as Graph, Node as Node
from mycelia.engine.observing.observers import Watched as Watched
from mycelia.engine.observing.operator_names import Operator as Operator, named_operators as named_operators

__all__ = [
    "Dump", "Graph", "NET", "Node", "Operator", "ProgramDump", "Record", "Watched", "alike", "array_of",
    "first_difference", "named_operators", "read_graphs",
]

NET: str
