# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from mycelia.engine.ops.arrays.shape import as_ints as as_ints
from mycelia.ops.operations import (
    DenseToCSRSparseMatrix as DenseToCSRSparseMatrix, RaggedTensorToSparse as RaggedTensorToSparse,
    SetSize as SetSize, SparseAdd as SparseAdd, SparseAddmm as SparseAddmm, SparseConcat as SparseConcat,
    SparseCountSparseOutput as SparseCountSparseOutput, SparseFillEmptyRows as SparseFillEmptyRows,
    SparseMatrixAdd as SparseMatrixAdd, SparseMatrixMatMul as SparseMatrixMatMul,
    SparseMatrixSoftmax as SparseMatrixSoftmax, SparseMatrixTranspose as SparseMatrixTranspose,
    SparseReorder as SparseReorder, SparseReshape as SparseReshape,
    SparseSegmentMeanGrad as SparseSegmentMeanGrad, SparseSliceGrad as SparseSliceGrad,
    SparseSoftmax as SparseSoftmax, SparseTensorToCSRSparseMatrix as SparseTensorToCSRSparseMatrix,
    SparseToDenseV2 as SparseToDenseV2,
)
from mycelia.ops.primitives.checks import anything as anything, boolean as boolean, integer as integer
from mycelia.ops.primitives.define import primitive as primitive

__all__ = [
    "DenseToCSRSparseMatrix", "RaggedTensorToSparse", "SetSize", "SparseAdd", "SparseAddmm", "SparseConcat",
    "SparseCountSparseOutput", "SparseFillEmptyRows", "SparseMatrixAdd", "SparseMatrixMatMul",
    "SparseMatrixSoftmax", "SparseMatrixTranspose", "SparseReorder", "SparseReshape",
    "SparseSegmentMeanGrad", "SparseSliceGrad", "SparseSoftmax", "SparseTensorToCSRSparseMatrix",
    "SparseToDenseV2", "Tensor", "anything", "as_ints", "boolean", "integer", "primitive",
]
