# Written by tools/gen_stubs.py.
from mycelia.debug.precision.across import Across as Across, between as between
from mycelia.debug.reading.folders import Record as Record
from mycelia.engine.ops.type_names import type_name as type_name
from mycelia.ops.define import registry as registry

__all__ = [
    "APART", "Across", "OTHER", "Record", "between", "registry", "type_name",
]

APART: str
OTHER: str
