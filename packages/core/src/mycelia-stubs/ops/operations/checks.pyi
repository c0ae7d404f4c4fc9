# Written by tools/gen_stubs.py.
from mycelia.engine.ir.symint import SymInt as SymInt
from mycelia.ops.operations.array_ops import natural as natural, positive as positive
from mycelia.ops.primitives.checks import (
    Misfit as Misfit, anything as anything, boolean as boolean, choice as choice, dtype as dtype,
    integer as integer, integer_tuple as integer_tuple, integers as integers, number as number,
    optional as optional, real as real, text as text, type_id as type_id, within as within,
)

__all__ = [
    "Misfit", "SymInt", "anything", "boolean", "choice", "dtype", "integer", "integer_tuple", "integers",
    "natural", "number", "optional", "positive", "real", "text", "type_id", "within",
]
