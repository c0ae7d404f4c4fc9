"""scipy.linalg: factorizations put together again, solutions put into their equations, gradients."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import ops
from mycelia.scipy import linalg

P = np.array([[4, 2, 1], [2, 5, 3], [1, 3, 6]], np.float32)
W = np.array([[0, 2, 3, 1], [4, 5, 6, 2], [7, 8, 9.5, 3]], np.float32)
B = np.array([[1, 2], [0.5, -1], [3, 0]], np.float32)


def t(x, dtype=None):
    return ms.Tensor(np.array(x, dtype))


def close(found, wanted, tolerance=1e-5):
    np.testing.assert_allclose(found.asnumpy(), wanted, tolerance, tolerance)


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("trans", [0, "T", 2])
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_solve_triangular_reads_one_triangle(lower, trans, unit, dtype):
    matrix = (P + (1j * W[:, :3] if dtype == "complex64" else 0)).astype(dtype)
    triangle = np.tril(matrix) if lower else np.triu(matrix)
    if unit:
        np.fill_diagonal(triangle, 1)
    turned = {0: triangle, "T": triangle.T, 2: triangle.conj().T}[trans]
    found = linalg.solve_triangular(t(matrix), t(B, dtype), trans, lower, unit)
    close(found, np.linalg.solve(turned, B), 1e-4)
    assert found.dtype == t(matrix).dtype
    close(linalg.solve_triangular(t(matrix), t(B[:, 0], dtype), trans, lower, unit), found.asnumpy()[:, 0])


def test_solve_triangular_of_stacks_and_of_a_singular_matrix():
    a, b = np.stack([P, P + 1]), np.stack([B, B])
    found = linalg.solve_triangular(t(a), t(b), lower=True)
    close(found, np.linalg.solve(np.tril(a), b), 1e-4)
    zero = linalg.solve_triangular(t([[0.0, 0], [0, 0]], "float32"), t([1, 1], "float32")).asnumpy()
    assert not np.isfinite(zero).any()


def test_gradients_of_solve_triangular():
    def loss(a, b):
        return (linalg.solve_triangular(a, b, lower=True) * t(B)).sum()

    d_a, d_b = ms.grad(loss, (0, 1))(t(P), t(B))
    inverse = np.linalg.inv(np.tril(P))
    close(d_b, inverse.T @ B)
    close(d_a, np.tril(-(inverse.T @ B) @ (inverse @ B).T), 1e-4)


@pytest.mark.parametrize(
    "call, kind",
    [
        (lambda: linalg.solve_triangular(t(P), t(B), "X"), ValueError),
        (lambda: linalg.solve_triangular(t(P), t(B, "float64")), TypeError),
        (lambda: linalg.solve_triangular(t(P), t(B[:2])), ValueError),
        (lambda: linalg.solve_triangular(t(P[:2]), t(B[:2])), ValueError),
        (lambda: linalg.solve_triangular(P, B), TypeError),
        (lambda: linalg.cholesky(t(P[:2])), ValueError),
        (lambda: linalg.cholesky(t(P), lower=1), TypeError),
        (lambda: linalg.cholesky(t(P, "float16")), TypeError),
        (lambda: linalg.cholesky(t(-P)), RuntimeError),
        (lambda: linalg.cho_solve((t(P), True), t(B[:2])), ValueError),
        (lambda: linalg.inv(P), TypeError),
        (lambda: linalg.eigh(t(P), t(P)), ValueError),
        (lambda: linalg.eigh(t(P), eigvals=(0, 1)), ValueError),
        (lambda: linalg.eigh(t(P), type="1"), TypeError),
        (lambda: linalg.lu(t(W.T)), ValueError),
        (lambda: linalg.lu_factor(t(W)), ValueError),
        (lambda: linalg.lu_solve(linalg.lu_factor(t(P)), t(B), trans=3), ValueError),
        (lambda: linalg.block_diag(t(np.ones((1, 1, 1)))), ValueError),
        (lambda: linalg.lstsq(t(W), t(B), driver="gel"), ValueError),
        (lambda: linalg.lstsq(t(W, "int32"), t(B, "int32")), TypeError),
        (lambda: linalg.lstsq(t(W), t(B[:2])), ValueError),
    ],
)
def test_wrong_arguments(call, kind):
    with pytest.raises(kind):
        call()


@pytest.mark.parametrize("lower", [False, True])
def test_cholesky_and_what_it_solves(lower):
    factor, flag = linalg.cho_factor(t(P), lower)
    assert flag is lower
    again = linalg.cholesky(t(P), lower=lower)
    close(factor, again.asnumpy())
    full = again.asnumpy()
    close(t(full @ full.T if lower else full.T @ full), P)
    close(linalg.cho_solve((factor, lower), t(B)), np.linalg.solve(P, B))
    close(linalg.cho_solve((factor, lower), t(B[:, 1])), np.linalg.solve(P, B[:, 1]))
    assert linalg.cholesky(t(P, "int32")).dtype == ms.float64


def test_gradient_of_cholesky_solutions():
    found = ms.grad(lambda a: linalg.cho_solve(linalg.cho_factor(a), t(B)).sum())(t(P))
    x = np.linalg.solve(P, B)
    wanted = -np.linalg.solve(P, np.ones_like(B)) @ x.T
    close(found, (wanted + wanted.T) / 2, 1e-4)


@pytest.mark.parametrize("lower", [False, True])
def test_eigh_reads_one_triangle(lower):
    values, vectors = linalg.eigh(t(np.tril(P) if lower else np.triu(P)), lower=lower)
    close(vectors * values, P @ vectors.asnumpy(), 1e-4)
    close(linalg.eigh(t(P, "int64"), eigvals_only=True), [1.92134694, 3.73015912, 9.34849393], 1e-7)
    d = ms.grad(lambda a: linalg.eigh(a, lower=lower)[0][0])(t(P)).asnumpy()
    if not lower:
        d = d.T
    np.testing.assert_allclose(
        d, [[0.2647516, 0, 0], [-0.767781, 0.556642, 0], [0.434908, -0.630618, 0.178606]], 1e-4, 1e-5
    )


def test_eigh_of_a_hermitian_matrix():
    values, vectors = linalg.eigh(t([[2, 1j], [-1j, 3]], "complex64"))
    assert values.dtype == vectors.dtype == ms.complex64
    close(values, [1.381966, 3.618034])


def test_lu_and_what_it_solves():
    p, lower, upper = linalg.lu(t(W))
    assert p.dtype == ms.int32
    close(t(p.asnumpy() @ lower.asnumpy() @ upper.asnumpy()), W)
    both, upper = linalg.lu(t(W), permute_l=True)
    close(t(both.asnumpy() @ upper.asnumpy()), W)
    square = W[:, :3].copy()
    packed, pivots = linalg.lu_factor(t(square))
    assert pivots.asnumpy().tolist() == [2, 2, 2]
    close(packed, [[7, 8, 9.5], [0, 2, 3], [0.5714286, 0.2142856, -0.0714285]])
    for b in (B, B[:, 0]):
        for trans in (0, 1, 2):
            found = linalg.lu_solve((packed, pivots), t(b), trans)
            close(found, np.linalg.solve((square.T if trans else square).astype(float), b), 1e-3)


def test_gradient_of_lu():
    a = np.array([[1.0, 4, 2], [3, 1, 0], [2, 2, 5]])

    def loss(x):
        return (linalg.lu_factor(x)[0] * t(W[:, :3], "float64")).sum()

    found = ms.grad(loss)(t(a)).asnumpy()
    for place in np.ndindex(3, 3):
        step = np.zeros((3, 3))
        step[place] = 1e-6
        slope = (loss(t(a + step)) - loss(t(a - step))).asnumpy() / 2e-6
        assert abs(found[place] - slope) < 1e-5


@pytest.mark.parametrize("side", [1, 2, 3, 4])
def test_det_and_inv(side):
    a = W[:, :3].T @ W[:, :3] + 3 * np.eye(3)
    a = np.block([[a, np.ones((3, 1))], [np.zeros((1, 3)), np.full((1, 1), 2.0)]])[:side, :side]
    close(linalg.det(t(a)), np.linalg.det(a))
    close(linalg.inv(t(a)), np.linalg.inv(a))
    close(linalg.det(t(np.round(a), "int32")), np.linalg.det(np.round(a)))


def test_block_diag():
    found = linalg.block_diag(t([[1, 2]], "float32"), t([3, 4], "float32"), t(5, "float32"))
    assert found.asnumpy().tolist() == [[1, 2, 0, 0, 0], [0, 0, 3, 4, 0], [0, 0, 0, 0, 5]]
    assert linalg.block_diag().shape == (1, 0)
    assert linalg.block_diag(t([1], "int64"), t([2], "float32")).dtype == ms.float32


TALL = np.array([[1, 2], [0, 1], [2, 0.5], [1, 1]], np.float32)


@pytest.mark.parametrize("driver", [None, "gels", "gelsy", "gelss", "gelsd"])
def test_lstsq_tells_what_its_driver_tells(driver):
    b = np.array([[1, 0], [2, 1], [0, 1], [1, 1]], np.float32)
    x, residual, rank, values = linalg.lstsq(t(TALL), t(b), driver=driver)
    wanted = np.linalg.lstsq(TALL, b, None)
    close(x, wanted[0])
    assert rank.dtype == ms.int64
    if driver in ("gels", "gelss", "gelsd"):
        close(residual, wanted[1])
    else:
        assert residual.shape == (0,)
    assert rank.asnumpy().tolist() == ([] if driver == "gels" else 2)
    if driver in ("gelss", "gelsd"):
        close(values, wanted[3])
    else:
        assert values.shape == (0,)


def test_lstsq_of_stacks_deficient_and_wide_matrices():
    ones = linalg.lstsq(
        t(
            np.ones((2, 4, 3)),
        ),
        t(np.ones((2, 4))),
        driver="gelsd",
    )
    close(ones[0], np.full((2, 3), 1 / 3))
    assert ones[2].asnumpy().tolist() == [1, 1]
    wide = linalg.lstsq(t(TALL.T), t(B[:2]))[0]
    close(wide, np.linalg.pinv(TALL.T) @ B[:2])
    x = linalg.lstsq(t(TALL, "complex64") * 1j, t(TALL, "complex64"))[0]
    close(x, -1j * np.eye(2), 1e-4)


@pytest.mark.parametrize("a", [TALL, TALL.T], ids=["tall", "wide"])
def test_gradients_of_lstsq(a):
    a = a.astype(np.float64)
    b = np.arange(len(a) * 2.0).reshape(-1, 2)

    def loss(x, y):
        return ops.square(linalg.lstsq(x, y)[0]).sum()

    d_a, d_b = ms.grad(loss, (0, 1))(t(a), t(b))
    for found, arrays in ((d_a, (a, b)), (d_b, (b, a))):
        for place in np.ndindex(*arrays[0].shape):
            step = np.zeros(arrays[0].shape)
            step[place] = 1e-6
            if found is d_a:
                slope = loss(t(a + step), t(b)) - loss(t(a - step), t(b))
            else:
                slope = loss(t(a), t(b + step)) - loss(t(a), t(b - step))
            assert abs(found.asnumpy()[place] - slope.asnumpy() / 2e-6) < 1e-4


def test_they_can_be_compiled():
    @ms.jit
    def solve(a, b):
        return linalg.cho_solve(linalg.cho_factor(a), b), linalg.lstsq(a, b)[0], linalg.lu(a)[2]

    first, second, upper = solve(t(P), t(B))
    close(first, np.linalg.solve(P, B))
    close(second, np.linalg.solve(P, B), 1e-4)
    close(upper, linalg.lu(t(P))[2].asnumpy())
