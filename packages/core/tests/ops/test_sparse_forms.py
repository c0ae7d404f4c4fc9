"""Sparse tensors as functions make them and take them apart."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import ops


def t(values, dtype="float32"):
    return ms.Tensor(np.array(values, dtype))


def test_sparse_tensors_are_made_and_taken_apart():
    places, values = t([[0, 1]], "int32"), t([2.0])
    coo = ops.make_coo_tensor(places, values, (2, 2))
    assert isinstance(ops.make_sparse_tensor(places, values, (2, 2)), ms.SparseTensor)
    assert ops.coo_tensor_get_indices(coo).asnumpy().tolist() == [[0, 1]]
    assert ops.coo_tensor_get_values(coo).asnumpy().tolist() == [2]
    assert ops.coo_tensor_get_dense_shape(coo) == (2, 2)
    csr = ops.make_csr_tensor(t([0, 1, 1], "int32"), t([1], "int32"), values, (2, 2))
    assert ops.csr_tensor_get_indptr(csr).asnumpy().tolist() == [0, 1, 1]
    assert ops.csr_tensor_get_indices(csr).asnumpy().tolist() == [1]
    assert ops.csr_tensor_get_values(csr).asnumpy().tolist() == [2]
    assert ops.csr_tensor_get_dense_shape(csr) == (2, 2)
    for make in (ops.make_row_tensor, ops.make_row_tensor_inner):
        rows = make(t([1], "int32"), t([[2.0, 3]]), (2, 2))
        assert isinstance(rows, ms.RowTensor)
        assert ops.row_tensor_get_indices(rows).asnumpy().tolist() == [1]
        assert ops.row_tensor_get_values(rows).asnumpy().tolist() == [[2, 3]]
        assert ops.row_tensor_get_dense_shape(rows) == (2, 2)
        assert ops.row_tensor_add(t(np.ones((2, 2))), rows).asnumpy().tolist() == [[1, 1], [3, 4]]
    with pytest.raises(TypeError):
        ops.coo_tensor_get_values(csr)
