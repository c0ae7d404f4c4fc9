"""Hooks on gradients that code registers inside a graph."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import Parameter, Tensor, nn, ops


@pytest.fixture(autouse=True)
def graph_mode():
    ms.set_context(mode=ms.GRAPH_MODE)
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


def double(gradient):
    return gradient * 2


def clip_large(gradient):
    if gradient.sum() > 50:
        return gradient / 2
    return gradient * 2


class Net(nn.Cell):
    """w * x, whose square or double square is the loss; `place` says which function registers hooks."""

    def __init__(self, place):
        super().__init__()
        self.w = Parameter(Tensor([1.0, 2.0, 3.0]), name="w")
        self.place = place

    def construct(self, x):
        return self.place(self, x * self.w)


def _plain(net, x):
    return x * x


def _before(net, x):
    x.register_hook(double)
    return x * x


def _after_a_use(net, x):
    y = x * x
    x.register_hook(double)
    return y


def _under_a_condition(net, x):
    if x.sum() > 0:
        x.register_hook(double)
    return x * x


def _deciding(net, x):
    x.register_hook(clip_large)
    return x * x


def _removed(net, x):
    handle = x.register_hook(double)
    handle.remove()
    return x * x


def _without_result(net, x):
    x.register_hook(lambda gradient: None)
    return x * x


def _one_after_the_other(net, x):
    x.register_hook(double)
    y = x * 1
    y.register_hook(double)
    return y * x


@ms.jit
def _compiled(x):
    x.register_hook(double)
    return x * x


def _in_jit(net, x):
    return _compiled(x)


def _gradients(net, x):
    of_x, of_weights = ops.GradOperation(get_all=True, get_by_list=True)(net, net.trainable_params())(x)
    return of_x[0].asnumpy(), of_weights[0].asnumpy()


PLAIN = np.array([8.0, 40.0, 108.0]), np.array([32.0, 100.0, 216.0])


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
@pytest.mark.parametrize(
    ("place", "factor"),
    [
        (_plain, 1), (_before, 2), (_after_a_use, 2), (_under_a_condition, 2), (_deciding, 0.5),
        (_removed, 1), (_without_result, 1), (_in_jit, 2),
    ],
)  # fmt: skip
def test_the_gradient_behind_a_hook(mode, place, factor):
    ms.set_context(mode=mode)
    for net in (Net(place), _WithGradientInside(Net(place))):
        for _ in range(2):
            found = net(Tensor([4.0, 5.0, 6.0])) if isinstance(net, _WithGradientInside) else None
            found = found or _gradients(net, Tensor([4.0, 5.0, 6.0]))
            np.testing.assert_allclose(found[0], PLAIN[0] * factor)
            np.testing.assert_allclose(found[1], PLAIN[1] * factor)


class _WithGradientInside(nn.Cell):
    def __init__(self, net):
        super().__init__()
        self.net, self.weights = net, ms.ParameterTuple(net.trainable_params())
        self.gradient = ops.GradOperation(get_all=True, get_by_list=True)

    def construct(self, x):
        of_x, of_weights = self.gradient(self.net, self.weights)(x)
        return of_x[0], of_weights[0]


def test_a_tensor_and_what_is_made_of_it():
    found = _gradients(Net(_one_after_the_other), Tensor([4.0, 5.0, 6.0]))
    np.testing.assert_allclose(found[0], PLAIN[0] * 3)  # 2 for one factor, 4 for the other
    np.testing.assert_allclose(found[1], PLAIN[1] * 3)


def test_a_hook_sees_and_prints_the_gradient_of_each_run(capfd):
    def show(gradient):
        print("gradient", gradient)

    @ms.jit
    def square(x):
        x.register_hook(show)
        return x * x

    for value in (1.0, 2.0):
        ms.grad(square)(Tensor([value]))
    out = capfd.readouterr().out
    assert out.count("gradient") == 2
    assert "2.0" in out
    assert "4.0" in out


def _two_hooks(net, x):
    x.register_hook(double)
    x.register_hook(double)
    return x * x


def _on_a_parameter(net, x):
    net.w.register_hook(double)
    return x * x


def _not_a_function(net, x):
    x.register_hook(3)
    return x * x


@pytest.mark.parametrize(
    ("place", "kind", "text"),
    [
        (_two_hooks, RuntimeError, "multiple hooks"),
        (_on_a_parameter, ValueError, "Parameter"),
        (_not_a_function, TypeError, "callable"),
    ],
)
def test_what_a_graph_cannot_take(place, kind, text):
    net = Net(place)
    with pytest.raises(kind, match=text):
        _gradients(net, Tensor([4.0, 5.0, 6.0]))
    assert net.w.asnumpy().tolist() == [1.0, 2.0, 3.0]
