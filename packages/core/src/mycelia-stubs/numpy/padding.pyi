# Written by tools/gen_stubs.py.
from mycelia.engine.ir.symint import SymInt as SymInt, applied as applied
from mycelia.engine.tensors.tensor import is_tensor as is_tensor
from mycelia.faces.numpy.padding import pad as pad
from mycelia.numpy.creation import as_tensor as as_tensor, constant as constant, to_dtype as to_dtype
from mycelia.numpy.elementwise import as_float as as_float

__all__ = [
    "SymInt", "applied", "as_float", "as_tensor", "constant", "is_tensor", "pad", "to_dtype",
]
