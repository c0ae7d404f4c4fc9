# Written by tools/gen_stubs.py.
from mycelia.debug.precision.bisect import Bisect as Bisect, Metric as Metric, minimal as minimal
from mycelia.debug.precision.instructions import first_difference as first_difference

__all__ = [
    "Bisect", "Metric", "first_difference", "minimal",
]
