"""Precision: comparing the tensors of two runs, and finding the pass of the compiler that made them part.

The command is `mycelia-precision`; scripts collect with `collect`.
"""

from mycelia.debug.precision.bisect import Bisect, Metric
from mycelia.debug.precision.collection import collect
from mycelia.debug.precision.comparison import Comparison, Divergence, Row, save
from mycelia.debug.precision.measures import COLUMNS, STRICT_COLUMNS, measure, ulps
from mycelia.debug.precision.operator_check import Checked, OperatorCheck, acc_check
from mycelia.debug.precision.references import ReferenceDump

__all__ = [
    "COLUMNS", "STRICT_COLUMNS", "Bisect", "Checked", "Comparison", "Divergence", "Metric", "OperatorCheck",
    "ReferenceDump",
    "Row", "acc_check", "collect", "measure", "save", "ulps",
]  # fmt: skip
