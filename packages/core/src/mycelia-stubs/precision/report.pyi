# Written by tools/gen_stubs.py.
from mycelia.debug.precision.comparison import Comparison as Comparison
from mycelia.debug.precision.report import (
    OperatorSummary as OperatorSummary, summarize as summarize, write as write,
)

__all__ = [
    "Comparison", "FAIL", "OperatorSummary", "summarize", "write",
]

FAIL: str
