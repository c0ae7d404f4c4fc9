# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from mycelia.engine.tensors.tensor import is_tensor as is_tensor
from mycelia.faces.mint.elementwise import allclose as allclose, equal as equal
from mycelia.faces.mint.signature_adapters import faces as faces
from mycelia.mint import (
    add as add, addcdiv as addcdiv, arcsin as arcsin, bitwise_not as bitwise_not, clone as clone,
    fix as fix, frac as frac, nan_to_num as nan_to_num, npu_gelu as npu_gelu, sqrt as sqrt, sub as sub,
)
from mycelia.ops import cast as cast

__all__ = [
    "add", "addcdiv", "allclose", "arcsin", "bitwise_not", "cast", "clone", "equal", "faces", "fix", "frac",
    "is_tensor", "isnan", "nan_to_num", "npu_gelu", "sqrt", "sub",
]


def isnan(tensor) -> Tensor:
    """Where `input` is not a number; false for integers."""
