# Written by tools/gen_stubs.py.
from mycelia.debug.precision.across import between as between
from mycelia.debug.precision.matching import (
    Pair as Pair, pairs as pairs, read_map as read_map, steps_of as steps_of,
)
from mycelia.debug.reading.folders import (
    Dump as Dump, Record as Record, Step as Step, short_name as short_name,
)

__all__ = [
    "BY_NAME", "BY_ORDER", "Dump", "Pair", "Record", "Step", "between", "pairs", "read_map", "short_name",
    "steps_of",
]

BY_NAME: str
BY_ORDER: str
