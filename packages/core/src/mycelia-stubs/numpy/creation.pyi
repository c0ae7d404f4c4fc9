# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from mycelia.engine.ir.symint import SymInt as SymInt
from mycelia.engine.tensors.tensor import is_tensor as is_tensor
from mycelia.faces.numpy._arguments import (
    an_int as an_int, as_shape as as_shape, checked_dtype as checked_dtype, one_axis as one_axis,
    promoted as promoted,
)
from mycelia.faces.numpy.creation import (
    linspace as linspace, promote_types as promote_types, result_type as result_type,
)
from mycelia.numpy import (
    arange as arange, array as array, asarray as asarray, asfarray as asfarray, copy as copy,
    empty as empty, empty_like as empty_like, eye as eye, full as full, full_like as full_like,
    geomspace as geomspace, identity as identity, logspace as logspace, ones as ones,
    ones_like as ones_like, rand as rand, randint as randint, randn as randn, zeros as zeros,
    zeros_like as zeros_like,
)

__all__ = [
    "SymInt", "an_int", "arange", "array", "as_shape", "as_tensor", "asarray", "asfarray", "checked_dtype",
    "constant", "copy", "empty", "empty_like", "eye", "full", "full_like", "geomspace", "identity",
    "is_tensor", "linspace", "logspace", "one_axis", "ones", "ones_like", "promote_types", "promoted",
    "rand", "randint", "randn", "result_type", "to_dtype", "zeros", "zeros_like",
]


def as_tensor(name: str, x, parameter: str = 'x') -> Tensor:
    """A Tensor from a Tensor, number, list or tuple; Python's numbers become int32 and float32."""

def constant(values, dtype=None) -> Tensor:
    """A Tensor with the values of a NumPy array, list or Python number; `dtype` None: as NumPy has it."""

def to_dtype(x, dtype) -> Tensor:
    """`x` in `dtype`; None leaves it."""
