# Written by tools/gen_stubs.py.
from mycelia.ops.primitive import Primitive as Primitive
from mycelia.ops.primitives.checks import Misfit as Misfit, anything as anything
from mycelia.ops.primitives.define import (
    Operation as Operation, derive as derive, primitive as primitive, register as register,
    renamed as renamed, table as table,
)
from typing import Any as Any

__all__ = [
    "Misfit", "Operation", "Primitive", "absent", "anything", "derive", "ops_by_name", "primitive",
    "register", "registry", "renamed", "table",
]

absent: dict
ops_by_name: dict
registry: Any
