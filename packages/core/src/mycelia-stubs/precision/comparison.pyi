# Written by tools/gen_stubs.py.
from mycelia.debug.precision.comparison import (
    Comparison as Comparison, Divergence as Divergence, Row as Row, alike as alike, four as four,
    read_table as read_table, save as save,
)
from mycelia.debug.precision.matching import Pair as Pair, pairs as pairs
from mycelia.debug.precision.sums import (
    Sums as Sums, alike_kinds as alike_kinds, extremes as extremes, flat as flat, sums as sums,
)
from mycelia.debug.reading.folders import Dump as Dump, Record as Record, short_name as short_name
from mycelia.debug.reading.ir import (
    GraphNode as GraphNode, SourceLine as SourceLine, read_graphs as read_graphs,
)
from mycelia.debug.statistics import Statistics as Statistics

__all__ = [
    "ALIKE", "BY_NAME", "Comparison", "Divergence", "Dump", "FAIL", "GraphNode", "HEAD", "OTHER", "Pair",
    "Record", "Row", "SourceLine", "Statistics", "Sums", "alike", "alike_kinds", "extremes", "flat", "four",
    "pairs", "read_graphs", "read_table", "save", "short_name", "sums",
]

ALIKE: float
BY_NAME: str
FAIL: str
HEAD: tuple
OTHER: str
