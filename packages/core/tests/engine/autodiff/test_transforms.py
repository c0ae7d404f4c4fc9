"""Gradient transforms as users call them: every form of grad, nesting, closures, custom rules."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn, ops
from mycelia.autodiff import clip_by_global_norm, clip_by_value, get_grad, hessian
from mycelia.engine import _C
from mycelia.ops.define import op, registry
from mycelia.ops.infer import same


def tensor(*values):
    return ms.Tensor(np.array(values, np.float32))


def close(got, want):
    np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-5, atol=1e-6)


def test_grad_of_one_argument_is_a_tensor():
    close(ms.grad(lambda x, y: x * x * y)(tensor(2.0, 3.0), tensor(5.0, 7.0)), [20, 42])


def test_grad_of_positions_is_a_tuple():
    dx, dy = ms.grad(lambda x, y: x * x * y, (0, 1))(tensor(2.0), tensor(5.0))
    close(dx, [20])
    close(dy, [4])


def test_grad_of_weights_and_inputs_is_a_pair():
    w = ms.Parameter(tensor(3.0), name="w")
    of_input, of_weights = ms.grad(lambda x: x * w, 0, [w])(tensor(2.0))
    close(of_input, [3])
    close(of_weights[0], [2])
    assert w._node is None, "the parameter is as before"


def test_grad_of_a_single_parameter_is_a_tensor():
    w = ms.Parameter(tensor(3.0), name="w")
    close(ms.grad(lambda x: x * w, None, w)(tensor(2.0)), [2])


def test_value_and_grad_with_aux_differentiates_the_first_output_only():
    value, gradient = ms.value_and_grad(lambda x: (x * x, x * 100), has_aux=True)(tensor(3.0))
    close(value[0], [9])
    close(value[1], [300])
    close(gradient, [6])


def test_grad_with_aux_returns_it_behind_the_gradient():
    gradient, (aux,) = ms.grad(lambda x: (x * x, x + 1), has_aux=True)(tensor(3.0))
    close(gradient, [6])
    close(aux, [4])


def test_return_ids_and_get_grad_find_each_gradient():
    w = ms.Parameter(tensor(3.0), name="w")
    found = ms.grad(lambda x: x * w, 0, [w], return_ids=True)(tensor(2.0))
    close(get_grad(found, 0), [3])
    close(get_grad(found, w), [2])
    with pytest.raises(RuntimeError, match="no gradient"):
        get_grad(found, 5)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_derivatives_of_any_order(order):
    f = lambda x: ops.exp(x * 2.0)
    for _ in range(order):
        f = ms.grad(f)
    close(f(tensor(0.5)), [2.0**order * np.exp(1.0)])


def test_inner_gradient_treats_outer_variable_as_constant():
    # d/dx [x * d/dy (x * y)^2 at y=1] = d/dx [x * 2 x^2] = 6 x^2: no confusion of the two variables.
    def outer(x):
        return x * ms.grad(lambda y: (x * y) * (x * y))(tensor(1.0))

    close(ms.grad(outer)(tensor(2.0)), [24])


def test_hessian_of_a_quadratic_form():
    a = np.array([[2.0, 1.0], [1.0, 4.0]], np.float32)
    f = lambda x: ops.sum(x * ops.matmul(ms.Tensor(a), x)) * 0.5
    close(hessian(f)(tensor(1.0, -1.0)), a)


def test_jacobians_forward_and_reverse_agree():
    f = lambda x: ops.concat([ops.sin(x), x[:1] * x[1:2]])
    x = tensor(0.3, 0.7)
    want = [[np.cos(0.3), 0], [0, np.cos(0.7)], [0.7, 0.3]]
    close(ms.jacrev(f)(x), want)
    close(ms.jacfwd(f)(x), want)


def test_jvp_and_vjp_are_transposes():
    rng = np.random.default_rng(0)
    x, v = tensor(*rng.normal(size=4)), tensor(*rng.normal(size=4))
    f = lambda x: ops.tanh(ops.matmul(ms.Tensor(np.arange(12, dtype=np.float32).reshape(3, 4) / 10), x))
    out, tangent = ms.jvp(f, x, v)
    u = tensor(*rng.normal(size=3))
    out2, pull = ms.vjp(f, x)
    close(out, out2.asnumpy())
    assert np.dot(u.asnumpy(), tangent.asnumpy()) == pytest.approx(
        np.dot(pull(u)[0].asnumpy(), v.asnumpy()), rel=1e-5
    )


def test_vjp_can_be_pulled_twice():
    _, pull = ms.vjp(lambda x: x * x, tensor(3.0))
    close(pull(tensor(1.0))[0], [6])
    close(pull(tensor(2.0))[0], [12])


def test_vjp_checks_the_cotangent():
    _, pull = ms.vjp(lambda x: x * x, tensor(3.0, 4.0))
    with pytest.raises(ValueError, match=r"shape \[1\].*\[2\]"):
        pull(tensor(1.0))


def test_stop_gradient_cuts_the_path():
    close(ms.grad(lambda x: x * ops.stop_gradient(x))(tensor(3.0)), [3])


def test_unused_argument_has_zero_gradient():
    _, dy = ms.grad(lambda x, y: x * 2, (0, 1))(tensor(1.0), tensor(5.0, 6.0))
    close(dy, [0, 0])


def test_gradient_through_dict_and_tuple_arguments():
    found = ms.grad(lambda d: d["a"] * d["b"][0])({"a": tensor(2.0), "b": (tensor(3.0),)})
    close(found["a"], [3])
    close(found["b"][0], [2])


def test_cell_bprop_replaces_the_gradient():
    class Doubled(nn.Cell):
        def construct(self, x):
            return x * x

        def bprop(self, x, out, dout):
            return (dout * 100.0,)

    close(ms.grad(Doubled())(tensor(3.0)), [100])


def test_rule_that_returns_too_few_gradients_is_named():
    class Wrong(nn.Cell):
        def construct(self, x, y):
            return x * y

        def bprop(self, x, y, out, dout):
            return (dout,)

    with pytest.raises(RuntimeError, match="must return 2 gradients"):
        ms.grad(Wrong())(tensor(3.0), tensor(4.0))


def test_setitem_is_differentiable_on_both_sides():
    def f(x, v):
        y = x * 2.0
        y[1] = v
        return y * y

    dx, dv = ms.grad(f, (0, 1))(tensor(1.0, 2.0, 3.0), ms.Tensor(5.0))
    close(dx, [8, 0, 24])
    close(dv, 10)


def test_gradients_accumulate_over_micro_batches():
    net = nn.Dense(3, 2)
    step = ms.value_and_grad(lambda x: ops.sum(net(x)), None, net.trainable_params())
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, 3)).astype(np.float32)
    total = step(ms.Tensor(x))[1]
    parts = [step(ms.Tensor(x[i : i + 2]))[1] for i in (0, 2)]
    for whole, a, b in zip(total, *parts):
        close(whole, (a + b).asnumpy())


def test_clipping():
    close(clip_by_value([tensor(-3.0, 0.5, 3.0)], -1.0, 1.0)[0], [-1, 0.5, 1])
    a, b = clip_by_global_norm([tensor(3.0), tensor(4.0)], 1.0)
    close(a, [0.6])
    close(b, [0.8])
    close(clip_by_global_norm([tensor(0.3)], 1.0)[0], [0.3])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: ms.grad(lambda x: x, 3)(tensor(1.0)), RuntimeError, "grad_position 3 is out of range"),
        (lambda: ms.value_and_grad(lambda x: x, None, None), ValueError, "cannot both be None"),
        (lambda: ms.grad(5), TypeError, "fn must be callable"),
        (lambda: ms.grad(lambda x: x, -1)(tensor(1.0)), ValueError, "grad_position -1 is out of range"),
        (lambda: ms.grad(lambda x: x, (0, 0))(tensor(1.0)), ValueError, "duplicate"),
        (lambda: ms.grad(lambda x: x, [0]), TypeError, "must be an int or a tuple"),
        (lambda: ms.grad(lambda x: x, has_aux=True)(tensor(1.0)), ValueError, "must return a tuple"),
        (lambda: ms.grad(lambda x: x, has_aux=1), TypeError, "has_aux must be a bool"),
        (lambda: ms.grad(lambda x: x, None, [3])(tensor(1.0)), TypeError, "weights must be Parameters"),
    ],
)
def test_bad_arguments_are_named(call, error, text):
    with pytest.raises(error, match=text):
        call()
    assert _C.tape_level() == 0


def test_op_without_rule_says_so():
    @op(infer=same(), name="without_rule")
    def without_rule(x):
        return x * 1.0

    try:
        with pytest.raises(NotImplementedError, match="without_rule: no gradient rule"):
            ms.grad(without_rule)(tensor(1.0, 2.0))
    finally:
        del registry["without_rule"]


def test_writing_to_a_gradient_leaves_later_gradients_alone():
    first = ms.grad(lambda x: x)(ms.Tensor(3.0))
    first.asnumpy()[...] = 7.0
    close(ms.grad(lambda x: x)(ms.Tensor(3.0)), 1.0)


class Doubled(ms.nn.Cell):
    """A Cell whose own gradient is what `found` makes of the cotangent."""

    def __init__(self, found):
        super().__init__()
        self.found = found

    def construct(self, x, y):
        return 2 * x + y

    def bprop(self, x, y, out, dout):
        return self.found(x, y, dout)


@pytest.mark.parametrize(
    "found",
    [
        lambda x, y, ct: (ct,),
        lambda x, y, ct: (ct, 2),
        lambda x, y, ct: (ct, ops.ones((3,), ms.float32)),
    ],
)
def test_bprop_must_fit_the_inputs(found):
    with pytest.raises(RuntimeError, match="bprop"):
        ms.grad(Doubled(found), (0, 1))(tensor(1.0, 2.0), tensor(1.0, 2.0))


def test_gradients_of_integers():
    x, y = ms.Tensor(3, ms.int32), ms.Tensor(4, ms.int32)
    net = Doubled(lambda x, y, ct: (2 * ct, 3 * y))
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        try:
            assert [int(g) for g in ms.grad(net, (0, 1))(x, y)] == [2, 12]
            assert [int(g) for g in ops.GradOperation(get_all=True)(lambda a, b: a * b)(x, y)] == [4, 3]
        finally:
            ms.set_context(mode=ms.PYNATIVE_MODE)


def test_frozen_parameters_have_zero_gradient():
    w = ms.Parameter(tensor(2.0), name="w", requires_grad=False)
    close(ms.grad(lambda x: x * w, None, w)(tensor(3.0)), [0])


def test_sens_and_keywords():
    f = lambda x, y: x * y
    close(ms.grad(f, sens_param=True)(tensor(2.0), tensor(3.0), tensor(10.0)), [30])
    value, grads = ms.value_and_grad(f, (0, 1), sens_param=True)(tensor(2.0), y=tensor(3.0), sens=tensor(2.0))
    close(value, [6])
    close(grads[0], [6])
    close(grads[1], [4])


# ---- Parameters that the function assigns to


class Assigning(nn.Cell):
    def __init__(self, how):
        super().__init__()
        self.p = ms.Parameter(ms.Tensor(0.5), name="p")
        self.how = how

    def construct(self, x):
        before = x * self.p
        if self.how == "plain":
            self.p = x * 2
        elif self.how == "in place":
            self.p += x * 2 - 0.5
        elif self.how == "under a condition":
            if x > 0:
                self.p = x * 2
        else:
            ops.assign(self.p, x * 2)
        return before + x * self.p


@pytest.mark.parametrize("how", ["plain", "in place", "under a condition", "assign"])
@pytest.mark.parametrize("compiled", [False, True])
def test_gradient_goes_to_the_parameter_not_through_what_it_is_given(how, compiled):
    net = Assigning(how)
    by_input, by_parameter = ms.grad(ms.jit(net) if compiled else net, 0, net.p)(ms.Tensor(3.0))
    assert float(net.p) == 6.0
    assert float(by_input) == 0.5 + 6.0  # each reading with the value that the Parameter had then
    assert float(by_parameter) == 3.0 + 3.0


@pytest.mark.parametrize("wrap", [lambda f: f, ms.jit], ids=["eager", "jit"])
def test_tensors_of_a_tuple_beside_an_operator_have_gradients(wrap):
    x, a = ms.Tensor([3.0, 4.0]), ms.Tensor([1.0, 2.0])
    gradient = ms.grad(wrap(lambda x: ((x, 2 * x) + a).sum()))(x)
    np.testing.assert_array_equal(gradient.asnumpy(), [3, 3])
    np.testing.assert_array_equal((a * [[1, 2], [3.0, 4]]).asnumpy(), [[1, 4], [3, 8]])


class Freezing(nn.Cell):
    """``sum(a * b * x)``; freezes `a` at some point, or thaws it."""

    def __init__(self, when):
        super().__init__()
        self.a = ms.Parameter(np.array([1, 2], np.float32), name="a", requires_grad=when != "thaw")
        self.b = ms.Parameter(np.array([3, 4], np.float32), name="b")
        self.when = when

    def construct(self, x):
        if self.when == "before":
            self.a.requires_grad = False
        if self.when == "thaw":
            unseen = (self.a * 7).sum()
            self.a.requires_grad = True
            return (self.a * self.b * x).sum() + unseen
        y = (self.a * self.b * x).sum()
        if self.when in ("after", "meanwhile"):
            self.a.requires_grad = False
            y = y + (self.a * 3).sum()
        if self.when == "meanwhile":
            self.a.requires_grad = True
        return y


@pytest.mark.parametrize("when", ["never", "before", "after", "meanwhile", "thaw"])
def test_a_parameter_that_the_function_freezes_gets_what_mindspore_gives_it(when):
    net = Freezing(when)
    x = ms.Tensor([5.0, 6.0])
    frozen = when in ("before", "after")
    of_x, (of_a, of_b) = ms.grad(net, 0, ms.ParameterTuple([net.a, net.b]))(x)
    assert of_x.asnumpy().tolist() == [3.0, 8.0] and of_b.asnumpy().tolist() == [5.0, 12.0]
    assert of_a.asnumpy().tolist() == ([0.0, 0.0] if frozen else [15.0, 24.0])
    assert [p.name for p in net.trainable_params()] == (["b"] if frozen else ["a", "b"])
    net.a.requires_grad = True  # nothing of the recording is left
    assert net.a._node is None


@pytest.mark.parametrize("how", ["jit", "graph mode", "setattr"])
def test_a_graph_refuses_to_freeze_a_parameter(how):
    class Outer(nn.Cell):
        def __init__(self):
            super().__init__()
            self.inner = Freezing("after" if how != "setattr" else "never")

        def construct(self, x):
            if how == "setattr":
                setattr(self.inner.a, "requires_grad", False)  # noqa: B010
            self.inner.b.requires_grad = True  # no change
            return self.inner(x)

    net = Outer()
    before = ms.get_context("mode")
    ms.set_context(mode=ms.GRAPH_MODE if how == "graph mode" else before)
    try:
        call = net if how == "graph mode" else ms.jit(net)
        with pytest.raises(ValueError, match="requires_grad of 'inner.a' cannot change in a graph"):
            call(ms.Tensor([5.0, 6.0]))
    finally:
        ms.set_context(mode=before)
    assert net.inner.a.requires_grad is True
