# Written by tools/gen_stubs.py.
from mycelia.faces.rewrite.values import (
    ScopedValue as ScopedValue, ValueType as ValueType, expression_of as expression_of,
    value_of as value_of,
)

__all__ = [
    "ScopedValue", "ValueType", "expression_of", "value_of",
]
