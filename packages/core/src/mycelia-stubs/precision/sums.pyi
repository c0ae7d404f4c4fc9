# Written by tools/gen_stubs.py.
from mycelia.debug.precision.sums import Sums as Sums, extremes as extremes, flat as flat, sums as sums

__all__ = [
    "Sums",
    "extremes",
    "flat",
    "sums",
]
