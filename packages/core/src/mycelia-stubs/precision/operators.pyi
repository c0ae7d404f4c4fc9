# Written by tools/gen_stubs.py.
from mycelia.debug.dump.operator_files import (
    RecordedOperator as RecordedOperator, read_operators as read_operators,
)
from mycelia.debug.precision.operators import (
    DumpedOperator as DumpedOperator, describe as describe, matching_operators as matching_operators,
    operators as operators, overflow_lines as overflow_lines, subgraph as subgraph,
    tensors_of as tensors_of,
)
from mycelia.debug.reading.folders import (
    Dump as Dump, Record as Record, Step as Step, short_name as short_name,
)
from mycelia.debug.reading.ir import GraphNode as GraphNode, read_graphs as read_graphs
from mycelia.debug.reading.nonfinite import NonFinite as NonFinite

__all__ = [
    "Dump", "DumpedOperator", "GraphNode", "NonFinite", "Record", "RecordedOperator", "Step", "describe",
    "matching_operators", "operators", "overflow_lines", "read_graphs", "read_operators", "short_name",
    "subgraph", "tensors_of",
]
