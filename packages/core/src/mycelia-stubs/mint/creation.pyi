# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from mycelia.engine.ops.arrays.shape import as_ints as as_ints
from mycelia.engine.tensors.tensor import is_tensor as is_tensor
from mycelia.faces.mint.signature_adapters import faces as faces
from mycelia.mint import (
    full as full, linspace as linspace, multinomial as multinomial, normal as normal, ones as ones,
    rand as rand, rand_like as rand_like, randint as randint, randint_like as randint_like, randn as randn,
    randn_like as randn_like, randperm as randperm, zeros as zeros,
)
from mycelia.ops import cast as cast

__all__ = [
    "as_ints", "bernoulli", "cast", "faces", "full", "is_tensor", "linspace", "multinomial", "normal",
    "ones", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm", "zeros",
]


def bernoulli(input, *, generator=None) -> Tensor:
    """Ones with the probabilities `input`, and zeros."""
