"""Gradient transforms inside and around compiled functions."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn, ops
from mycelia.engine.autodiff.clipping import clip_by_global_norm, clip_by_value
from mycelia.engine.autodiff.transforms import stop_gradient

X = np.array([0.3, -0.7, 1.1], np.float64)


def f(x):
    y = x * x.sum() + ops.sin(x)
    if y.sum() > 0:
        y = y * x
    return y


def scalar_f(x):
    return (f(x) ** 2).sum()


def same(a, b):
    np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("transform", [ms.jacrev, ms.jacfwd], ids=["jacrev", "jacfwd"])
def test_jacobians(transform):
    expected = transform(f)(Tensor(X))
    same(ms.jit(transform(f))(Tensor(X)), expected)
    same(transform(ms.jit(f))(Tensor(X)), expected)


def test_hessian_is_the_jacobian_of_the_gradient():
    hessian = ms.jacrev(ms.grad(scalar_f))
    expected = hessian(Tensor(X))
    same(ms.jit(hessian)(Tensor(X)), expected)
    same(ms.jacrev(ms.grad(ms.jit(scalar_f)))(Tensor(X)), expected)
    same(ms.jacrev(ms.jit(ms.grad(scalar_f)))(Tensor(X)), expected)


def test_vjp_and_jvp():
    def both(x, v):
        out, pull = ms.vjp(f, x)
        _, push = ms.jvp(f, (x,), (v,))
        return out, *pull(v), push

    v = Tensor(X + 1)
    for a, b in zip(ms.jit(both)(Tensor(X), v), both(Tensor(X), v)):
        same(a, b)


def test_stop_gradient():
    def g(x):
        return (stop_gradient(x * x) * x).sum()

    same(ms.jit(ms.grad(g))(Tensor(X)), Tensor(X * X))
    same(ms.grad(ms.jit(g))(Tensor(X)), Tensor(X * X))


def test_own_gradient_of_a_cell():
    class Doubled(nn.Cell):
        def construct(self, x):
            return x * x

        def bprop(self, x, out, dout):
            return (dout * x * 100,)

    net = Doubled()
    expected = ms.grad(net)(Tensor(X))
    same(expected, Tensor(X * 100))
    same(ms.jit(ms.grad(net))(Tensor(X)), expected)
    same(ms.jit(lambda x: ms.grad(net)(x) * 2)(Tensor(X)), expected * 2)
    same(ms.grad(ms.jit(lambda x: net(x)))(Tensor(X)), expected)
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        same(net(Tensor(X)), Tensor(X * X))
        same(ms.grad(net)(Tensor(X)), expected)
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)


def test_several_outputs_and_auxiliary_values():
    def g(x, k):
        return (x * x).sum(), {"x": x * 2, "k": k}

    step = ms.value_and_grad(g, 0, has_aux=True)
    (value, aux), gradient = ms.jit(step)(Tensor(X), 3)
    same(gradient, Tensor(2 * X))
    same(aux["x"], Tensor(2 * X))
    assert aux["k"] == 3
    np.testing.assert_allclose(value.item(), (X * X).sum())


def test_compiled_function_with_integer_and_several_results_under_a_gradient():
    compiled = ms.jit(lambda x: (x.argmax(), x * x, x + 1))

    def loss(x):
        index, squares, shifted = compiled(x)
        return squares.sum() + shifted[index]

    same(ms.grad(loss)(Tensor(X)), Tensor(2 * X + np.array([0, 0, 1.0])))


def test_gradient_accumulates_over_calls_of_one_compiled_function():
    compiled = ms.jit(lambda x: x * x * x)
    same(
        ms.grad(lambda x: (compiled(compiled(x)) + compiled(x)).sum())(Tensor(X)), Tensor(9 * X**8 + 3 * X**2)
    )


def test_gradient_clipping_under_jit():
    def step(x):
        gradient = ms.grad(scalar_f)(x)
        return clip_by_global_norm((gradient,), 0.5)[0], clip_by_value(gradient, -0.1, 0.1)

    for a, b in zip(ms.jit(step)(Tensor(X)), step(Tensor(X))):
        same(a, b)


def test_gradient_of_nested_arguments_in_a_graph():
    @ms.jit
    def gradients(t):
        return ms.ops.GradOperation()(lambda v: v[0][0] * v[1])(t)

    (first, second), third = gradients(ms.mutable(((ms.Tensor(3.0), ms.Tensor(4.0)), ms.Tensor(5.0))))
    assert (first, second, third) == (5.0, 0.0, 3.0)


def through_rounds(x, i):
    for_more = ms.Tensor(0)
    while for_more < 2:
        i, for_more = i + (x * 2.0).astype(i.dtype), for_more + 1
    return i


def through_a_branch(x, i):
    if x.sum() > 0:
        i = i * 3
    else:
        i = i - 1
    return i


@pytest.mark.parametrize("through, kind", [
    (lambda x, i: i, "int32"), (lambda x, i: ops.abs(i), "bool"), (through_a_branch, "int32"),
    (through_rounds, "int32"), (through_rounds, "bool"),
])  # fmt: skip
def test_integers_carry_gradients_of_casts_as_in_eager_runs(through, kind):
    """As in MindSpore: the gradient of a cast is cast back, truncated to the type between."""

    def whole(x):
        return (through(x, (x * 3.0).astype(kind)) * 1.75).sum()

    inner = ms.jit(lambda x: through(x, (x * 3.0).astype(kind)))
    x = ms.Tensor([1.3, -2.6, 3.4])
    expected = ms.grad(whole)(x).asnumpy()
    assert expected.any()
    for function in (
        ms.jit(ms.grad(whole)),
        ms.grad(ms.jit(whole)),
        ms.grad(lambda x: (inner(x) * 1.75).sum()),
    ):
        np.testing.assert_array_equal(function(x).asnumpy(), expected)
