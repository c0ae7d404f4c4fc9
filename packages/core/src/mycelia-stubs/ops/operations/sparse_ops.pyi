# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor, TensorLike as TensorLike
from mycelia.engine.ops.arrays.shape import as_ints as as_ints
from mycelia.ops import assign as assign
from mycelia.ops.operations import (
    ConfusionMatrix as ConfusionMatrix, MapUniform as MapUniform, PadAndShift as PadAndShift,
    SparseSlice as SparseSlice, SparseTensorDenseAdd as SparseTensorDenseAdd,
    SparseTensorDenseMatmul as SparseTensorDenseMatmul, SparseToDense as SparseToDense,
    SubAndFilter as SubAndFilter, UpdateCache as UpdateCache,
)
from mycelia.ops.operations.array_ops import positive as positive
from mycelia.ops.primitives.checks import anything as anything, boolean as boolean
from mycelia.ops.primitives.define import primitive as primitive

__all__ = [
    "ConfusionMatrix", "MapUniform", "PadAndShift", "SparseSlice", "SparseTensorDenseAdd",
    "SparseTensorDenseMatmul", "SparseToDense", "SubAndFilter", "Tensor", "UpdateCache", "anything",
    "as_ints", "assign", "boolean", "positive", "primitive", "sparse_slice", "subtracted_and_kept",
]


def sparse_slice(indices: TensorLike, values: TensorLike, shape: TensorLike, start: TensorLike, size: TensorLike) -> tuple[Tensor, Tensor, Tensor]:
    """The part of a sparse tensor from `start` of the sizes `size`, less where the tensor ends before."""

def subtracted_and_kept(x: TensorLike, max_num: int, offset: int) -> tuple[Tensor, Tensor]:
    """``x - offset`` where that is in [0, max_num), and the places where it is."""
