# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from mycelia.ops import erfc as erfc, exp2 as exp2, expm1 as expm1, log1p as log1p, sinc as sinc

__all__ = [
    "erfc", "exp2", "expm1", "log1p", "log_softmax", "round", "sinc",
]


def log_softmax(input, dim=None, *, dtype=None) -> Tensor:
    """Logarithm of `softmax`."""

def round(input) -> Tensor:
    """To the nearest integer; ties go to the even one."""
