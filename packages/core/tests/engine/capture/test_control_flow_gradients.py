"""Gradients of branches and loops, to third order, inside and around `jit`."""

import sys
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor

sys.path.insert(0, str(Path(__file__).parent))

from scalar_cases import number, scalar


def cubic_branches(x):
    if x > 0:
        y = x * x * x
    else:
        y = -x * x
    return y * x


def power_loop(x):
    i = 0
    while i < 4:
        x = x * x * 0.3 + x
        i += 1
    return x


def branch_in_loop(x):
    i, s = 0, x
    while i < 4 and s < 50:
        if s > 2:
            s = s * x
        else:
            s = s * s + x
        i += 1
    return s


def loops_with_break(x):
    s, y = x * 0, x
    while s < 20:
        k = 0
        while k < 3:
            y = y * 1.1 + x * k
            k += 1
            if y > 30:
                break
        s = s + y * y * 0.5 + 1
    return s * x


def return_inside_loop(x):
    y = x
    while y < 40:
        if y > 20:
            return y * x * x
        y = y * (x + 1) + 1.5
    return y * x


def captured_by_loop(x):
    w = x * x
    s, i = x * 0, 0
    while i < 3:
        s = s * w + ms.ops.sin(w * s + x)
        i += 1
    return s


GRADIENT_CASES = [
    cubic_branches,
    power_loop,
    branch_in_loop,
    loops_with_break,
    return_inside_loop,
    captured_by_loop,
]
POINTS = (0.55, 1.2, 1.7, 2.5)


def finite_difference(function, value, step=1e-5):
    return (function(value + step) - function(value - step)) / (2 * step)


@pytest.mark.parametrize("function", GRADIENT_CASES, ids=lambda f: f.__name__)
def test_gradients_to_third_order_inside_and_around_jit(function):
    eager, inside, around = function, function, ms.jit(function)
    for order in (1, 2, 3):
        lower = eager
        eager, inside, around = ms.grad(eager), ms.grad(inside), ms.grad(around)
        compiled = ms.jit(inside)
        for value in POINTS:
            expected = number(eager(scalar(value, np.float64)))
            for other in (compiled, around):
                got = number(other(scalar(value, np.float64)))
                np.testing.assert_allclose(got, expected, rtol=1e-9, err_msg=f"order {order} at {value}")
            slope = finite_difference(lambda v, f=lower: number(f(scalar(v, np.float64))), value)
            np.testing.assert_allclose(
                expected, slope, rtol=1e-4, atol=1e-6, err_msg=f"order {order} at {value}"
            )


def test_gradient_of_a_loop_that_runs_zero_times():
    def f(x, w):
        while x > 10:
            x = x * w
        return x * w

    gradients = ms.jit(ms.grad(f, (0, 1)))(scalar(2.0), scalar(3.0))
    assert [float(g) for g in gradients] == [3.0, 2.0]


def test_gradient_flows_to_tensors_and_parameters_that_a_region_captures():
    w = ms.Parameter(np.array([1.0, -2.0, 3.0], np.float32), name="w")

    def f(x):
        y = x * w
        if y.sum() > 0:
            z = (y * y * w).sum()
        else:
            z = y.sum()
        return z

    step = ms.value_and_grad(f, 0, [w])
    x = Tensor(np.array([2.0, 1.0, 1.0], np.float32))
    for sign in (1, -1):
        value, (dx, (dw,)) = step(x * sign)
        compiled_value, (cx, (cw,)) = ms.jit(step)(x * sign)
        np.testing.assert_allclose(compiled_value.asnumpy(), value.asnumpy(), rtol=1e-6)
        np.testing.assert_allclose(cx.asnumpy(), dx.asnumpy(), rtol=1e-6)
        np.testing.assert_allclose(cw.asnumpy(), dw.asnumpy(), rtol=1e-6)
