"""Factorizations and solvers beyond the op samples: reconstruction, gradients of symmetric input."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import ops
from mycelia.engine.ops.linalg.decomposition import eigh
from mycelia.engine.ops.linalg.products import mat_mul
from mycelia.testing.gradcheck import check_gradient


def random(*shape, dtype=np.float32):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def definite(n, dtype=np.float32):
    a = random(n, n, dtype=dtype)
    return a @ a.T + np.eye(n, dtype=dtype)


def assert_same(got, want, atol=1e-4):
    np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-4, atol=atol)


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 5)], ids=str)
@pytest.mark.parametrize("full", [False, True])
def test_svd_rebuilds_its_input(shape, full):
    x = random(*shape)
    s, u, v = ops.svd(ms.Tensor(x), full)
    k = s.shape[-1]
    u, v = u.asnumpy()[..., :k], v.asnumpy()[..., :k]
    np.testing.assert_allclose(u * s.asnumpy()[..., None, :] @ np.swapaxes(v, -1, -2), x, atol=1e-5)
    np.testing.assert_allclose(ops.svd(ms.Tensor(x), compute_uv=False).asnumpy(), s.asnumpy(), atol=1e-6)


@pytest.mark.parametrize("mode", ["reduced", "complete"])
def test_qr_rebuilds_its_input(mode):
    x = random(4, 3)
    q, r = ops.qr(ms.Tensor(x), mode)
    assert_same(ops.matmul(q, r), x)


def gram(a):
    """A symmetric positive definite matrix made of any matrix."""
    return mat_mul(a, a, False, True) + ops.eye(3, 3, ms.float64)


@pytest.mark.parametrize("upper", [False, True])
def test_cholesky_gradient_among_symmetric_matrices(upper):
    check_gradient(lambda a: ops.cholesky(gram(a), upper), [random(3, 3, dtype=np.float64)])


def test_eigh_gradient_among_symmetric_matrices():
    check_gradient(lambda a: eigh(gram(a))[0], [random(3, 3, dtype=np.float64)])
    check_gradient(lambda a: ops.abs(eigh(gram(a))[1]), [random(3, 3, dtype=np.float64)], second=False)


def test_cholesky_family_agrees_with_the_matrix():
    a, b = definite(3), random(3, 2)
    for upper in (False, True):
        factor = ops.cholesky(ms.Tensor(a), upper)
        assert_same(ops.cholesky_inverse(factor, upper), np.linalg.inv(a))
        assert_same(ops.cholesky_solve(ms.Tensor(b), factor, upper), np.linalg.solve(a, b))


def test_lu_parts_rebuild_the_matrix():
    packed = np.array([[4.0, 2.0], [0.5, 3.0]], np.float32)
    pivots = ms.Tensor(np.array([2, 2], np.int32))
    p, lower, upper = ops.lu_unpack(ms.Tensor(packed), pivots)
    a = p.asnumpy() @ lower.asnumpy() @ upper.asnumpy()
    np.testing.assert_allclose(a, [[2, 4], [4, 2]])
    assert_same(
        ops.lu_solve(ms.Tensor(np.eye(2, dtype=np.float32)), ms.Tensor(packed), pivots), np.linalg.inv(a)
    )


@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (3, 3)], ids=str)
def test_least_squares_and_pseudo_inverse(shape):
    a, b = random(*shape), random(shape[0], 2)
    assert_same(ops.pinv(ms.Tensor(a)), np.linalg.pinv(a))
    assert_same(ops.lstsq(ms.Tensor(a), ms.Tensor(b)), np.linalg.lstsq(a, b, rcond=None)[0], atol=1e-3)


def test_matrix_power():
    a = definite(3)
    for n in (0, 1, 5, -2):
        assert_same(ops.matrix_power(ms.Tensor(a), n), np.linalg.matrix_power(a, n), atol=1e-2)


def test_reflectors_rebuild_q():
    x, other = random(4, 3), random(4, 2)
    packed, tau = ops.geqrf(ms.Tensor(x))
    q = ops.orgqr(packed, tau)
    np.testing.assert_allclose(q.asnumpy() @ np.triu(packed.asnumpy()[:3]), x, atol=1e-5)
    turned = ops.ormqr(packed, tau, ms.Tensor(other), transpose=True)
    assert_same(turned[:3], q.asnumpy().T @ other)


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.0, float("inf")])
def test_cdist(p):
    a, b = random(2, 3, 4), random(2, 5, 4)
    want = np.linalg.norm(a[:, :, None] - b[:, None], ord=p, axis=-1)
    assert_same(ops.cdist(ms.Tensor(a), ms.Tensor(b), p), want)


def test_renorm_cuts_long_rows_only():
    x = np.array([[3.0, 4.0], [0.3, 0.4]], np.float32)
    assert_same(ops.renorm(ms.Tensor(x), 2, 0, 1.0), [[0.6, 0.8], [0.3, 0.4]])


def test_singular_system_is_an_error():
    ones = ms.Tensor(np.ones((2, 2), np.float32))
    with pytest.raises(ValueError, match="not invertible"):
        ops.matrix_solve(ones, ones)
    with pytest.raises(RuntimeError, match="positive definite"):
        ops.cholesky(ms.Tensor(-np.eye(2, dtype=np.float32)))
    with pytest.raises(ValueError, match="square"):
        ops.det(ms.Tensor(random(2, 3)))
