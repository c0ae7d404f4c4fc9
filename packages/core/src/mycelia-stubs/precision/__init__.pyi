# Written by tools/gen_stubs.py.
from mycelia.debug.precision.bisect import Bisect as Bisect, Metric as Metric
from mycelia.debug.precision.collection import collect as collect
from mycelia.debug.precision.comparison import (
    Comparison as Comparison, Divergence as Divergence, Row as Row, save as save,
)
from mycelia.debug.precision.measures import measure as measure, ulps as ulps
from mycelia.debug.precision.operator_check import (
    Checked as Checked, OperatorCheck as OperatorCheck, acc_check as acc_check,
)
from mycelia.debug.precision.references import ReferenceDump as ReferenceDump

__all__ = [
    "COLUMNS", "STRICT_COLUMNS", "Bisect", "Checked", "Comparison", "Divergence", "Metric", "OperatorCheck",
    "ReferenceDump", "Row", "acc_check", "collect", "measure", "save", "ulps",
]

COLUMNS: dict
STRICT_COLUMNS: tuple
