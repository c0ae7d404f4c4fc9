import numpy as np
import pytest

import mycelia as ms
from mycelia import COOTensor, CSRTensor, Tensor, ops


@pytest.fixture
def coo():
    return COOTensor(Tensor([[0, 1], [1, 2]], ms.int64), Tensor([1.0, -2.0]), (3, 4))


@pytest.fixture
def csr():
    return CSRTensor(
        Tensor([0, 2, 3], ms.int32), Tensor([0, 2, 1], ms.int32), Tensor([1.0, 2.0, 4.0]), (2, 3)
    )


@pytest.mark.parametrize("name", "abs neg square exp relu sigmoid isnan".split())
def test_elementwise_functions_act_on_values(coo, csr, name):
    function = getattr(ops, name)
    for kind, x in (("coo", coo), ("csr", csr)):
        result = getattr(ops, f"{kind}_{name}")(x)
        assert type(result) is type(x) and result.shape == x.shape
        np.testing.assert_array_equal(result.values.asnumpy(), function(x.values).asnumpy())


def test_the_kinds_are_not_mixed(coo, csr):
    for call in (
        lambda: ops.coo_abs(csr),
        lambda: ops.csr_abs(coo),
        lambda: ops.csr_softmax(coo, ms.float32),
    ):
        with pytest.raises(TypeError):
            call()


def test_forms(csr):
    dense = [[1.0, 0.0, 2.0], [0.0, 4.0, 0.0]]
    assert ops.csr_to_dense(csr).asnumpy().tolist() == dense
    assert ops.csr_to_coo(csr).indices.asnumpy().tolist() == [[0, 0], [0, 2], [1, 1]]
    again = ops.dense_to_sparse_csr(Tensor(dense))
    assert again.indptr.asnumpy().tolist() == [0, 2, 3]
    assert ops.dense_to_sparse_coo(Tensor(dense)).values.asnumpy().tolist() == [1.0, 2.0, 4.0]
    rows = ops.csr2coo(csr.indptr, 3)
    assert rows.asnumpy().tolist() == [0, 0, 1]
    assert ops.coo2csr(rows, 2).asnumpy().tolist() == [0, 2, 3]
    with pytest.raises(ValueError):
        ops.dense_to_sparse_coo(Tensor([1.0]))


def test_products_and_sums(csr):
    assert ops.csr_mv(csr, Tensor([[1.0], [2.0], [3.0]])).asnumpy().tolist() == [[7.0], [8.0]]
    assert ops.csr_mm(csr, csr, trans_b=True).to_dense().asnumpy().tolist() == [[5.0, 0.0], [0.0, 16.0]]
    assert ops.csr_reduce_sum(csr, 1).asnumpy().tolist() == [[3.0], [4.0]]
    assert ops.csr_mul(csr, Tensor([[2.0, 3.0, 4.0]])).values.asnumpy().tolist() == [2.0, 8.0, 12.0]
    assert ops.csr_div(csr, 2.0).asnumpy().tolist() == [0.5, 1.0, 2.0]
    total = ops.csr_add(csr, csr, Tensor(1.0), Tensor(2.0))
    assert total.values.asnumpy().tolist() == [3.0, 6.0, 12.0]
    sums = ops.csr_reduce_sum(ops.csr_softmax(csr, ms.float32), 1)
    np.testing.assert_allclose(sums.asnumpy(), [[1.0], [1.0]], rtol=1e-6)


def test_coo_add_keeps_what_reaches_the_threshold(coo):
    assert ops.coo_add(coo, coo, Tensor(2.0)).values.asnumpy().tolist() == [2.0, -4.0]
    assert ops.coo_add(coo, coo, Tensor(3.0)).indices.asnumpy().tolist() == [[1, 2]]


def test_coo_concat_orders_the_places(coo):
    joined = ops.coo_concat((coo, coo), 1)
    assert joined.shape == (3, 8)
    assert joined.indices.asnumpy().tolist() == [[0, 1], [0, 5], [1, 2], [1, 6]]
    with pytest.raises(ValueError):
        ops.coo_concat((coo,))


def test_gradients_flow_to_the_values(coo):
    def total(values):
        return ops.coo_square(COOTensor(coo.indices, values, coo.shape)).to_dense().sum()

    assert ms.grad(total)(Tensor([3.0, -1.0])).asnumpy().tolist() == [6.0, -2.0]


def test_the_older_name_prints_as_the_newer():
    old = ms.SparseTensor(Tensor([[0, 1]]), Tensor([1.0]), (2, 2))
    assert isinstance(old, COOTensor) and str(old).startswith("COOTensor(")


@pytest.mark.parametrize("shape", [(3, 4), (3, 4, 6), (3, 5, 4)])
def test_rows_in_graphs_fit(shape):
    @ms.jit
    def build(places, values):
        return ms.RowTensor(places, values, shape).values

    with pytest.raises(TypeError):
        build(ms.Tensor([0, 1], ms.int32), ms.ops.ones((2, 4, 5), ms.float32))


def test_the_shape_of_a_coo_tensor_in_a_graph_has_two_sizes():
    @ms.jit
    def build(places, values):
        return ms.COOTensor(places, values, (2, 2, 2)).values

    with pytest.raises(TypeError):
        build(ms.Tensor([[0, 0], [0, 1]], ms.int32), ms.Tensor([1.0, 2.0]))
    with pytest.raises(ValueError):
        ms.COOTensor(ms.Tensor([[0, 0]], ms.int32), ms.Tensor([[1.0]]), (2, 2))
