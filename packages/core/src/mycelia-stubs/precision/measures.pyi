# Written by tools/gen_stubs.py.
from mycelia.debug.precision.measures import (
    Measured as Measured, measure as measure, same_pattern as same_pattern, ulps as ulps, wide as wide,
)
from mycelia.precision import COLUMNS as COLUMNS, STRICT_COLUMNS as STRICT_COLUMNS

__all__ = [
    "COLUMNS", "Measured", "STRICT_COLUMNS", "accumulated_relative", "cosine", "deviations", "divergence",
    "max_absolute", "max_relative", "mean_absolute", "mean_relative", "measure", "relative_euclidean",
    "root_mean_square", "same_pattern", "ulps", "wide",
]


def accumulated_relative(x, y) -> float: ...

def cosine(x, y) -> float:
    """sum(x y) / (norm x norm y), at most 1; 1 if both are zeros or scalars, NaN if one is all zero."""

def deviations(x, y) -> str:
    """``(mean;std),(mean;std)`` with 3 digits, population deviations."""

def divergence(x, y) -> float: ...

def max_absolute(x, y) -> float: ...

def max_relative(x, y) -> float: ...

def mean_absolute(x, y) -> float: ...

def mean_relative(x, y) -> float: ...

def relative_euclidean(x, y) -> float:
    """norm(x - y) / norm(y); 0 where y is all zero."""

def root_mean_square(x, y) -> float: ...
