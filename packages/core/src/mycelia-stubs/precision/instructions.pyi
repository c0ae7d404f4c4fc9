# Written by tools/gen_stubs.py.
from mycelia.debug.precision.comparison import alike as alike
from mycelia.debug.precision.instructions import Recorder as Recorder, first_difference as first_difference
from mycelia.debug.statistics import array_of as array_of
from mycelia.engine.base.origins import Origin as Origin
from mycelia.engine.ops.type_names import type_name as type_name

__all__ = [
    "Origin", "Recorder", "alike", "array_of", "first_difference", "type_name",
]
