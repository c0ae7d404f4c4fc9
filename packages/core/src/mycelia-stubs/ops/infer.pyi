# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from mycelia.engine.base.dtypes import DType as DType
from mycelia.engine.ir.symint import SymInt as SymInt
from mycelia.engine.ir.types import TensorType as TensorType
from mycelia.engine.ops.infer import (
    broadcast as broadcast, broadcast_shapes as broadcast_shapes, is_one as is_one,
    need_floating as need_floating, normalize_axes as normalize_axes, normalize_axis as normalize_axis,
    reduced as reduced, reduced_shape as reduced_shape, same as same, unbroadcast as unbroadcast,
)
from mycelia.ops.define import registry as registry

__all__ = [
    "DType", "SymInt", "TensorType", "UNKNOWN", "broadcast", "broadcast_shapes", "is_one", "need_floating",
    "normalize_axes", "normalize_axis", "reduced", "reduced_shape", "registry", "same", "same_along",
    "unbroadcast",
]

UNKNOWN: int

def same_along(x, *, axis: int | None = None, axes: tuple[int, ...] = (), **attrs) -> Tensor:
    """The result has the first input's type, of which `axis` or all `axes` are axes."""
