# Written by tools/gen_stubs.py.
from mycelia.io.mindir.operators.table import Operator as Operator, has_effect as has_effect
from typing import Any as Any

__all__ = [
    "Operator", "find", "has_effect",
]

find: Any
