"""Products of matrices: NumPy's rules, contractions, einsum, and what their gradients are made of."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import ops
from mycelia.testing.gradcheck import check_gradient


def random(*shape):
    return np.random.default_rng(sum(shape) + len(shape)).standard_normal(shape).astype(np.float32)


def tensors(arrays):
    return [ms.Tensor(a) for a in arrays]


def assert_same(got, want):
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "shapes",
    [((3,), (3,)), ((3,), (3, 2)), ((2, 3), (3,)), ((4, 2, 3), (3,)), ((3,), (4, 3, 2)), ((4, 2, 3), (3, 5)),
     ((5, 1, 2, 3), (4, 3, 2)), ((2, 3), (6, 3, 2)), ((0, 2, 3), (3, 5)), ((2, 0), (0, 3))],
    ids=str,
)  # fmt: skip
def test_matmul_follows_numpy(shapes):
    a, b = (random(*s) for s in shapes)
    assert_same(ops.matmul(*tensors((a, b))), a @ b)
    assert_same(ms.Tensor(a) @ ms.Tensor(b), a @ b)


def test_matmul_of_a_stack_is_one_product_in_the_gradient():
    x, w = random(4, 2, 3).astype(np.float64), random(3, 5).astype(np.float64)
    check_gradient(lambda a, b: ops.matmul(a, b), [x, w])


@pytest.mark.parametrize(
    "name, shapes",
    [("kron", ((2, 2), (2, 3, 2))), ("inner", ((2, 3), (4, 3))), ("inner", ((2, 3), ())),
     ("dot", ((2, 3), (4, 3, 2))), ("outer", ((2,), (3,))), ("outer", ((2, 2), (3,))),
     ("cross", ((2, 3), (2, 3))), ("cross", ((1, 3), (4, 3)))],
    ids=str,
)  # fmt: skip
def test_named_products_follow_numpy(name, shapes):
    a, b = (random(*s) for s in shapes)
    assert_same(getattr(ops, name)(*tensors((a, b))), getattr(np, name)(a, b))


@pytest.mark.parametrize(
    "shapes, axes",
    [(((2, 3, 4), (3, 4, 5)), 2), (((2, 3, 4), (4, 3, 5)), ((1, 2), (1, 0))),
     (((2, 3, 4), (4, 3, 2)), ((0,), (2,))),
     (((2, 3), (4,)), 0), (((3, 2), (3, 4)), (0, 0)), (((3,), (3,)), 1), (((2, 3), (2, 3)), 2 * (((0, 1)),))],
    ids=str,
)  # fmt: skip
def test_tensor_dot_follows_numpy(shapes, axes):
    a, b = (random(*s) for s in shapes)
    assert_same(ops.tensor_dot(*tensors((a, b)), axes), np.tensordot(a, b, axes))


@pytest.mark.parametrize(
    "equation, shapes",
    [("ij,jk->ik", [(2, 3), (3, 4)]), ("ij,jk", [(2, 3), (3, 4)]), ("ii", [(3, 3)]), ("ii->i", [(3, 3)]),
     ("i,j->ij", [(3,), (4,)]), ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]), ("ij,ij->", [(2, 3), (2, 3)]),
     ("...ij,...jk->...ik", [(5, 1, 2, 3), (4, 3, 2)]), ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)]),
     ("ijk->ki", [(2, 3, 4)]), ("ab,bc,cd->ad", [(2, 3), (3, 4), (4, 5)]), ("i...,i->...", [(3, 2, 2), (3,)]),
     ("ab,bc,ca->", [(2, 3), (3, 4), (4, 2)]), ("ij,j->i", [(2, 3), (3,)]), ("ab,ab->ab", [(2, 3), (2, 3)]),
     ("iij,jk->ik", [(3, 3, 2), (2, 4)]), ("ki,kj->ij", [(3, 2), (3, 4)]), ("i->", [(3,)]),
     ("bn,anm,bm->ba", [(2, 3), (4, 3, 5), (2, 5)]), ("ab , b -> a", [(2, 3), (3,)])],
    ids=str,
)  # fmt: skip
def test_einsum_follows_numpy(equation, shapes):
    arrays = [random(*s) for s in shapes]
    assert_same(ops.einsum(equation, *tensors(arrays)), np.einsum(equation, *arrays))


def test_einsum_takes_label_numbers():
    a, b = random(2, 3), random(3, 4)
    assert_same(ops.einsum(ms.Tensor(a), [0, 1], ms.Tensor(b), [1, 2], [2, 0]), (a @ b).T)


def test_einsum_gradient():
    arrays = [random(2, 3, 4).astype(np.float64), random(2, 4, 5).astype(np.float64)]
    check_gradient(lambda a, b: ops.einsum("bij,bjk->kb", a, b), arrays)


@pytest.mark.parametrize(
    "equation, message",
    [("ij,jk->il", "no operand"), ("ij->ij", "names 1 operands"), ("ijk,jk->i", "names 3 axes"),
     ("ij,jk->ii", "names a label twice"), ("i1,jk->ij", "may hold letters"), ("ij,ik->jk", "sizes 2 and 3")],
)  # fmt: skip
def test_einsum_says_what_is_wrong_with_an_equation(equation, message):
    with pytest.raises(ValueError, match=message):
        ops.einsum(equation, *tensors((random(2, 3), random(3, 4))))


def test_added_products():
    x, a, b = random(2, 2), random(5, 2, 3), random(5, 3, 2)
    product = a @ b
    assert_same(ops.addmm(*tensors((x, a[0], b[0])), beta=0.5, alpha=2), 0.5 * x + 2 * product[0])
    assert_same(ops.addmv(*tensors((x[0], a[0], b[0][:, 0])), alpha=3), x[0] + 3 * product[0][:, 0])
    assert_same(ops.addbmm(*tensors((x, a, b)), beta=0.5, alpha=2), 0.5 * x + 2 * product.sum(0))
    assert_same(ops.baddbmm(*tensors((product, a, b)), beta=2), 3 * product)
    assert_same(ops.addr(*tensors((x, x[0], x[1]))), x + np.outer(x[0], x[1]))


def test_batch_dot():
    a, b = random(2, 3, 4), random(2, 4, 5)
    assert_same(ops.batch_dot(*tensors((a, b))), a @ b)
    assert_same(ops.batch_dot(*tensors((a, a)), axes=(2, 2)), a @ np.swapaxes(a, 1, 2))
    assert_same(ops.batch_dot(*tensors((a[:, 0], a[:, 1]))), (a[:, 0] * a[:, 1]).sum(1, keepdims=True))


def test_dense_with_a_vector_of_weights():
    x, w = random(2, 5, 3), random(3)
    assert_same(ops.dense(ms.Tensor(x), ms.Tensor(w)), x @ w)


@pytest.mark.parametrize(
    "call",
    [
        lambda a, b: ops.matmul(a, b),
        lambda a, b: ops.mm(a, b),
        lambda a, b: a @ b,
        lambda a, b: ops.dense(a, b),
    ],
    ids=["matmul", "mm", "operator", "dense"],
)
def test_sizes_that_differ_are_a_shape_error(call):
    with pytest.raises(ValueError, match="MYC-SHAPE"):
        call(ms.Tensor(random(2, 3)), ms.Tensor(random(4, 5)))


def test_bool_matrices_are_a_type_error():
    mask = ms.Tensor(np.ones((2, 2), np.bool_))
    with pytest.raises(TypeError, match="bool"):
        ops.matmul(mask, mask)
