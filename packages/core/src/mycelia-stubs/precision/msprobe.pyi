# Written by tools/gen_stubs.py.
from mycelia.debug.precision.comparison import Row as Row, four as four
from mycelia.debug.precision.msprobe import (
    Tables as Tables, of_statistics as of_statistics, of_tensors as of_tensors, reached as reached,
)
from mycelia.debug.reading.folders import Record as Record

__all__ = [
    "ACCURACY", "MESSAGE", "NO", "Record", "Row", "STATISTIC_COLUMNS", "TENSOR_COLUMNS", "Tables",
    "UNKNOWN", "YES", "four", "of_statistics", "of_tensors", "reached",
]

ACCURACY: str
MESSAGE: str
NO: str
STATISTIC_COLUMNS: tuple
TENSOR_COLUMNS: tuple
UNKNOWN: str
YES: str
