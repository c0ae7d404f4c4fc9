# Written by tools/gen_stubs.py.
from mycelia.debug.precision.sums import (
    Sums as Sums, alike_kinds as alike_kinds, extremes as extremes, flat as flat, sums as sums,
)

__all__ = [
    "Sums", "alike_kinds", "extremes", "flat", "sums",
]
