# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from mycelia.engine.ops.late import Functions as _Functions
from mycelia.engine.tensors.sparse import (
    COOTensor as COOTensor, CSRTensor as CSRTensor, RowTensor as RowTensor, Sparse as Sparse,
    SparseTensor as SparseTensor, dense_to_sparse_coo as dense_to_sparse_coo,
    dense_to_sparse_csr as dense_to_sparse_csr,
)

__all__ = [
    "COOTensor", "CSRTensor", "RowTensor", "Sparse", "SparseTensor", "Tensor", "dense_to_sparse_coo",
    "dense_to_sparse_csr", "ops",
]

ops: _Functions
