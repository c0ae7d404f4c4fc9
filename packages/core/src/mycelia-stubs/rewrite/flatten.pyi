# Written by tools/gen_stubs.py.
from mycelia.faces.rewrite.flatten import (
    Flattener as Flattener, operator_name as operator_name, unique as unique,
)

__all__ = [
    "Flattener", "operator_name", "unique",
]
