# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from mycelia.engine.tensors.tensor import is_tensor as is_tensor
from mycelia.faces.mint.products import triangular_solve as triangular_solve
from mycelia.faces.mint.signature_adapters import faces as faces
from mycelia.mint import addr_ as addr_, bmm as bmm, cdist as cdist, dot as dot, mv as mv, vdot as vdot

__all__ = [
    "addr_", "baddbmm", "bmm", "cdist", "dot", "faces", "is_tensor", "mv", "triangular_solve", "vdot",
]


def baddbmm(input, batch1, batch2, *, beta=1, alpha=1) -> Tensor:
    """``beta * input + alpha * (batch1 @ batch2)`` by matrices. Shapes: [B, m, k], [B, k, n] -> [B, m, n]."""
