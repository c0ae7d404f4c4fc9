# Written by tools/gen_stubs.py.
from mycelia.debug.precision.bisect import Bisect as Bisect, Metric as Metric
from mycelia.debug.precision.collection import collect as collect
from mycelia.debug.precision.comparison import (
    Comparison as Comparison, Divergence as Divergence, Row as Row, save as save,
)
from mycelia.debug.precision.measures import measure as measure, ulps as ulps
from mycelia.precision import COLUMNS as COLUMNS, STRICT_COLUMNS as STRICT_COLUMNS

__all__ = [
    "COLUMNS", "STRICT_COLUMNS", "Bisect", "Comparison", "Divergence", "Metric", "Row", "collect",
    "measure", "save", "ulps",
]
