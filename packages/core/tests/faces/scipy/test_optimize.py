"""scipy.optimize: minima that are known, steps and calls counted as MindSpore counts them, assignments."""

import itertools

import numpy as np
import pytest

import mycelia as ms
from mycelia import ops
from mycelia.scipy import optimize


def t(x, dtype="float32"):
    return ms.Tensor(np.array(x, dtype))


def rosenbrock(x):
    return (100.0 * ops.square(x[1:] - ops.square(x[:-1])) + ops.square(1 - x[:-1])).sum()


def himmelblau(p):
    x, y = p
    return (x**2 + y - 11.0) ** 2 + (x + y**2 - 7.0) ** 2


def matyas(p):
    x, y = p
    return 0.26 * (x**2 + y**2) - 0.48 * x * y


@pytest.mark.parametrize(
    "method, function, start, minimum, calls, rounds",
    [
        ("BFGS", rosenbrock, [0, 0], [1, 1], 28, 20),
        ("BFGS", himmelblau, [0, 0], [3, 2], 18, 10),
        ("BFGS", himmelblau, [1, 1], [3, 2], 14, 8),
        ("BFGS", matyas, [1, 1], [0, 0], 6, 2),
        ("BFGS", matyas, [-1.2, 1], [0, 0], 8, 4),
        ("LBFGS", himmelblau, [0, 0], [3, 2], 19, 11),
        ("lbfgs", matyas, [-1.2, 1], [0, 0], 8, 4),
    ],
)
def test_minimize_finds_minima(method, function, start, minimum, calls, rounds):
    result = optimize.minimize(function, t(start, "float64"), method=method, options=dict(gtol=1e-6))
    np.testing.assert_allclose(result.x.asnumpy(), minimum, 1e-5, 1e-5)
    assert (result.success, result.status, result.nfev, result.nit) == (True, 0, calls, rounds)
    assert np.abs(result.jac.asnumpy()).max() < 1e-6
    assert (result.hess_inv is None) == (method == "lbfgs" or method == "LBFGS")


def test_minimize_in_float32_with_arguments_and_a_gradient():
    def square(x, centre, weight):
        return (ops.square(x - centre) * weight).sum()

    result = optimize.minimize(square, t([0, 0, 0]), (t([1, 2, 3]), 2.0), method="BFGS")
    np.testing.assert_allclose(result.x.asnumpy(), [1, 2, 3], 1e-4)
    assert (result.nfev, result.njev, result.nit) == (4, 4, 2)
    asked = []

    def gradient(x):
        asked.append(1)
        return 2 * x

    result = optimize.minimize(lambda x: ops.square(x).sum(), t([1, 1, 1]), method="LBFGS", jac=gradient)
    assert result.success and len(asked) == result.njev == 3


def test_minimize_stops_at_maxiter():
    result = optimize.minimize(rosenbrock, t([-1.2, 1]), method="BFGS", options=dict(maxiter=3))
    assert (result.success, result.status, result.nit, result.nfev) == (False, 1, 3, 9)
    np.testing.assert_allclose(result.x.asnumpy(), [-0.5488976, 0.3059656], 1e-3)


def test_a_short_history_is_enough():
    start = t([1.3, 0.7, 0.8, 1.9, 1.2])
    options = dict(gtol=1e-3, history_size=3)
    result = optimize.minimize(rosenbrock, start, method="LBFGS", options=options)
    np.testing.assert_allclose(result.x.asnumpy(), np.ones(5), 1e-3)


@pytest.mark.parametrize(
    "arguments, kind",
    [
        (dict(), ValueError),
        (dict(method="NEWTON"), ValueError),
        (dict(method="BFGS", args=1), TypeError),
        (dict(method="BFGS", options=dict(speed=1)), TypeError),
        (dict(method="LAGRANGE", constraints=[3]), TypeError),
        (dict(method="LAGRANGE", constraints=[abs], tol=[1, 2]), ValueError),
    ],
)
def test_wrong_arguments_of_minimize(arguments, kind):
    with pytest.raises(kind):
        optimize.minimize(matyas, t([0, 0]), **arguments)


def test_minimize_under_a_constraint():
    result = optimize.minimize(
        lambda x: ops.square(x).sum(), t([1, 2]), method="LAGRANGE", constraints=[lambda x: 1.0 - x[0]],
        tol=[1e-2], options=dict(rounds=8, steps=20, learning_rate=0.3, lower=t([-2, -2]), upper=t([3, 3])),
    )  # fmt: skip
    assert result.succeeded
    np.testing.assert_allclose(result.best_value, [1, 0], atol=0.1)
    assert result.loss_value[0] < 1e-2 and abs(float(result.object_value) - 1) < 0.1


def test_line_search():
    result = optimize.line_search(matyas, t([1, 1]), t([-0.04, -0.04]))
    assert (result.failed, result.k, result.nfev, result.status) == (False, 4, 4, 0)
    np.testing.assert_allclose(result.a_k, 4)
    far = optimize.line_search(lambda x: ops.square(x).sum(), t([3, 2]), t([-6, -4]), c1=0.1, c2=0.2)
    assert not far.failed and abs(far.a_k - 0.5) < 0.05
    given = optimize.line_search(
        lambda x: ops.square(x).sum(), t([3, 2]), t([-6, -4]), jac=lambda x: 2 * x, gfk=t([6, 4]),
        old_fval=t(13), old_old_fval=t(15),
    )  # fmt: skip
    assert not given.failed and given.nfev == given.ngev


def test_line_search_uphill_fails():
    result = optimize.line_search(lambda x: ops.square(x).sum(), t([1, 1]), t([1, 1]))
    assert result.failed and result.status == 1


@pytest.mark.parametrize("shape", [(3, 3), (3, 5), (5, 3), (1, 4)])
@pytest.mark.parametrize("maximize", [False, True])
def test_assignments_are_the_best_of_all(shape, maximize):
    cost = np.random.default_rng(7).integers(0, 9, shape)
    rows, columns = optimize.linear_sum_assignment(t(cost), maximize)
    total = cost[rows.asnumpy(), columns.asnumpy()].sum()
    small = cost if shape[0] <= shape[1] else cost.T
    every = [
        small[range(len(small)), places].sum()
        for places in itertools.permutations(range(small.shape[1]), len(small))
    ]
    assert total == (max if maximize else min)(every)
    assert rows.dtype == columns.dtype == ms.int64 and rows.asnumpy().tolist() == sorted(rows.asnumpy())


def test_assignments_within_a_limit_of_columns():
    cost = t([[2, 3, 1], [3, 2, 1], [3, 3, 1]], "float64")
    rows, columns = optimize.linear_sum_assignment(cost, False, ms.Tensor(2))
    assert rows.asnumpy().tolist() == [0, 1, -1] and columns.asnumpy().tolist() == [0, 1, -1]


@pytest.mark.parametrize(
    "cost, maximize, limit, kind",
    [
        (t(np.ones(3)), False, None, ValueError),
        (t(np.ones((2, 2)), "complex64"), False, None, TypeError),
        (t(np.ones((2, 2))), 1, None, TypeError),
        (t(np.ones((2, 2))), False, 2, TypeError),
        (t(np.full((2, 2), np.inf)), False, None, RuntimeError),
        (t(np.full((2, 2), np.nan)), False, None, RuntimeError),
    ],
)
def test_wrong_arguments_of_assignments(cost, maximize, limit, kind):
    with pytest.raises(kind):
        optimize.linear_sum_assignment(cost, maximize, *([] if limit is None else [limit]))
