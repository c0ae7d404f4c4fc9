# Written by tools/gen_stubs.py.
from mycelia.debug.precision.measures import (
    Measured as Measured, cosine as cosine, measure as measure, relative_euclidean as relative_euclidean,
    same_pattern as same_pattern, ulps as ulps, wide as wide,
)
from mycelia.debug.precision.sums import (
    Sums as Sums, alike_kinds as alike_kinds, flat as flat, sums as sums,
)
from mycelia.debug.reading.arrays import native as native
from mycelia.precision import COLUMNS as COLUMNS, STRICT_COLUMNS as STRICT_COLUMNS

__all__ = [
    "COLUMNS", "Measured", "STRICT_COLUMNS", "Sums", "alike_kinds", "cosine", "flat", "measure", "native",
    "relative_euclidean", "same_pattern", "sums", "ulps", "wide",
]
