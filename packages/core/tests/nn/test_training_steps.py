"""Training steps that users write: a call of the network for its loss, then a gradient function of it."""

import gc
import weakref

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn, ops
from mycelia.engine.autodiff.function import no_grad

BY_LIST = ops.GradOperation(get_by_list=True)
BY_LIST_WITH_SENS = ops.GradOperation(get_by_list=True, sens_param=True)
BY_POSITION = ops.GradOperation()


class Network(nn.Cell):
    """Statistics, a counter and random numbers; returns a loss."""

    def __init__(self, dims=1):
        super().__init__()
        self.norm = nn.BatchNorm1d(3) if dims == 1 else nn.BatchNorm2d(3)
        self.dense = nn.Dense(3, 2, weight_init="ones")
        self.count = ms.Parameter(ms.Tensor(0.0), name="count", requires_grad=False)

    def construct(self, x, factor=1):
        ops.assign_add(self.count, ms.Tensor(1.0))
        y = self.norm(x)
        if x.ndim == 4:
            y = y.mean((2, 3))
        return (self.dense(y) ** 2).sum() * factor


class Noise(nn.Cell):
    """Its loss is the sum of its only Parameter's gradient, if both see the same random numbers."""

    def __init__(self, kind):
        super().__init__()
        self.kind = kind
        self.weight = ms.Parameter(np.ones((4, 6), np.float32), name="weight")
        self.dropout = nn.Dropout(p=0.5)
        self.normal = ops.StandardNormal(seed=3)

    def construct(self, x):
        y = x * self.weight
        if self.kind == "dropout":
            return self.dropout(y).sum()
        if self.kind == "function":
            return ops.dropout(y, p=0.5).sum()
        return (self.normal((4, 6)) * y).sum()


class Step(nn.Cell):
    def __init__(self, network, body, optimizer=None):
        super().__init__(auto_prefix=False)
        self.network = network
        self.network.set_grad()
        self.optimizer = optimizer
        self.weights = ms.ParameterTuple(network.trainable_params())
        self.body = body
        self.value_and_grad = ms.value_and_grad(network, None, self.weights)
        self.of_weights = ms.grad(network, None, self.weights)

    def construct(self, *inputs):
        return self.body(self, *inputs)


def documented(step, x):
    loss = step.network(x)
    grads = BY_LIST_WITH_SENS(step.network, step.weights)(x, ops.ones_like(loss))
    return loss, grads


def without_sens(step, x):
    return step.network(x), BY_LIST(step.network, step.weights)(x)


def only_gradient(step, x):
    return 0, BY_LIST(step.network, step.weights)(x)


def loss_twice(step, x):
    return step.network(x) + step.network(x), BY_LIST(step.network, step.weights)(x)


def gradient_twice(step, x):
    loss = step.network(x)
    return loss, (BY_LIST(step.network, step.weights)(x), BY_LIST(step.network, step.weights)(x))


def other_input(step, x):
    return step.network(x + 1), BY_LIST(step.network, step.weights)(x)


def other_input_between(step, x):
    loss = step.network(x)
    return loss + step.network(x + 1), BY_LIST(step.network, step.weights)(x)


def equal_input(step, x):
    return step.network(x * 2), BY_LIST(step.network, step.weights)(x * 2)


def made_input(step, x):
    y = x * 2
    return step.network(y), BY_LIST(step.network, step.weights)(y)


def with_value(step, x):
    loss = step.network(x)
    value, grads = step.value_and_grad(x)
    return (loss, value), grads


def with_grad(step, x):
    return step.network(x), step.of_weights(x)


def by_position(step, x):
    return step.network(x), BY_POSITION(step.network)(x)


def by_keyword(step, x):
    return step.network(x, factor=2), BY_LIST(step.network, step.weights)(x, factor=2)


def other_keyword(step, x):
    return step.network(x, factor=2), BY_LIST(step.network, step.weights)(x, factor=3)


def under_a_condition(step, x):
    loss = step.network(x)
    if loss > 0:
        grads = BY_LIST(step.network, step.weights)(x)
    else:
        grads = tuple(w * 0 for w in step.weights)
    return loss, grads


# How often MindSpore 2.10 runs the network in such a step, in PyNative mode.
RUNS = {
    documented: 1, without_sens: 1, only_gradient: 1, loss_twice: 2, gradient_twice: 2, other_input: 2,
    other_input_between: 2, equal_input: 2, made_input: 1, with_value: 1, with_grad: 1, by_position: 1,
    by_keyword: 1, other_keyword: 2, under_a_condition: 1,
}  # fmt: skip


@pytest.mark.parametrize("body", RUNS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dims", [1, 2])
def test_statistics_and_counters_move_as_often_as_in_mindspore(mode, body, dims):
    network = Network(dims).set_train()
    step = Step(network, body).set_train()
    shape = (4, 3) if dims == 1 else (4, 3, 2, 2)
    for i in range(1, 3):
        step(ms.Tensor(np.random.RandomState(i).randn(*shape), ms.float32))
        assert network.count.item() == i * RUNS[body]
    # The statistics are those of that many plain calls.
    other = Network(dims).set_train()
    ms.set_context(mode=ms.PYNATIVE_MODE)
    for i in range(1, 3):
        x = ms.Tensor(np.random.RandomState(i).randn(*shape), ms.float32)
        calls = {other_input: [x + 1, x], other_input_between: [x, x + 1], equal_input: [x * 2] * 2}
        for given in calls.get(body, [x * 2 if body is made_input else x] * RUNS[body]):
            other(given)
    np.testing.assert_allclose(network.norm.moving_mean.asnumpy(), other.norm.moving_mean.asnumpy(), 1e-4)
    np.testing.assert_allclose(
        network.norm.moving_variance.asnumpy(), other.norm.moving_variance.asnumpy(), 1e-4
    )


@pytest.mark.parametrize("kind", ["dropout", "function", "normal"])
@pytest.mark.parametrize("body", [documented, without_sens, with_value, with_grad], ids=lambda f: f.__name__)
def test_loss_and_gradient_see_the_same_random_numbers(mode, body, kind):
    ms.set_seed(2)
    step = Step(Noise(kind).set_train(), body).set_train()
    seen = []
    for _ in range(3):
        loss, (gradient,) = step(ms.Tensor(np.arange(24).reshape(4, 6), ms.float32))
        first = loss[0] if isinstance(loss, tuple) else loss
        np.testing.assert_allclose(gradient.asnumpy().sum(), first.item(), rtol=1e-4)
        if isinstance(loss, tuple):
            assert loss[1].item() == first.item()
        seen.append(first.item())
    assert len(set(seen)) == 3


def test_compiled_training_equals_eager():
    def train(mode):
        ms.set_context(mode=mode)
        ms.set_seed(5)
        network = Network().set_train()
        optimizer = nn.Momentum(network.trainable_params(), 0.01, 0.9)

        def body(step, x):
            loss = step.network(x)
            grads = BY_LIST_WITH_SENS(step.network, step.weights)(x, ops.ones_like(loss))
            return ops.depend(loss, step.optimizer(grads))

        step = Step(network, body, optimizer).set_train()
        losses = [step(ms.Tensor(np.random.RandomState(i).randn(4, 3), ms.float32)).item() for i in range(5)]
        return losses, [p.asnumpy() for p in network.get_parameters()]

    eager, compiled = train(ms.PYNATIVE_MODE), train(ms.GRAPH_MODE)
    ms.set_context(mode=ms.PYNATIVE_MODE)
    np.testing.assert_allclose(eager[0], compiled[0], rtol=1e-5)
    for a, b in zip(eager[1], compiled[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert eager[0][0] > eager[0][-1]


def test_a_step_prints_once_and_calls_forward_hooks_once(capsys):
    class Printing(Network):
        def construct(self, x):
            print("runs")
            return super().construct(x)

    log = []
    network = Printing().set_train()
    network.register_forward_hook(lambda *_: log.append("forward"))
    network.norm.register_backward_hook(lambda *_: log.append("backward"))
    Step(network, documented)(ms.Tensor(np.eye(4, 3), ms.float32))
    assert capsys.readouterr().out == "runs\n" and log == ["forward", "backward"]


@pytest.mark.parametrize("change", ["weight", "input", "train"])
def test_what_changed_between_is_computed_again(change):
    network = Network().set_train().set_grad()
    x = ms.Tensor(np.random.RandomState(0).randn(4, 3), ms.float32)
    network(x)
    if change == "weight":
        network.dense.weight.set_data(ms.Tensor(np.full((2, 3), 2.0), ms.float32))
    elif change == "input":
        x[0] = 1.0
    else:
        network.set_train(False)
    found = BY_LIST(network, ms.ParameterTuple(network.trainable_params()))(x)
    assert network.count.item() == 2
    again = BY_LIST(network, ms.ParameterTuple(network.trainable_params()))(x)
    for a, b in zip(found, again, strict=True):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-5, atol=1e-6)


def test_gradients_from_a_kept_pass_equal_those_of_a_fresh_one():
    network = Network().set_train()
    x = ms.Tensor(np.random.RandomState(0).randn(4, 3), ms.float32)
    weights = ms.ParameterTuple(network.trainable_params())
    value, fresh = ms.value_and_grad(network, 0, weights)(x)
    network.set_grad()
    network(x)
    kept_value, kept = ms.value_and_grad(network, 0, weights)(x)
    assert kept_value.item() == value.item() and network.count.item() == 2
    np.testing.assert_array_equal(kept[0].asnumpy(), fresh[0].asnumpy())
    for a, b in zip(kept[1], fresh[1], strict=True):
        np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())


def test_weights_that_are_not_the_cells_get_their_gradient():
    outside = ms.Parameter(np.ones((4, 3), np.float32), name="outside")

    class Reads(nn.Cell):
        def construct(self, x):
            return (x * outside).sum()

    network = Reads().set_grad()
    x = ms.Tensor(np.full((4, 3), 3.0), ms.float32)
    network(x)
    np.testing.assert_array_equal(BY_LIST(network, ms.ParameterTuple([outside]))(x)[0].asnumpy(), x.asnumpy())


def test_gradients_of_gradients_are_not_taken_from_a_kept_pass():
    class Cube(nn.Cell):
        def construct(self, x):
            return x**3

    network = Cube().set_grad()
    x = ms.Tensor(2.0)
    network(x)
    assert ms.grad(ms.grad(network))(x).item() == 12.0
    network(x)
    assert ms.grad(lambda x: network(x) * ms.grad(network)(x))(x).item() == 15 * 2.0**4


def test_a_pass_goes_when_its_argument_goes():
    network = Network().set_train().set_grad()
    network(ms.Tensor(np.eye(4, 3), ms.float32))
    assert not any(p.nodes for p in network._forward_passes)
    kept = [ms.Tensor(np.eye(4, 3) * i, ms.float32) for i in range(9)]
    for x in kept:
        network(x)
    assert len(network._forward_passes) == 4
    gone = weakref.ref(network._forward_passes[0])
    gc.disable()
    try:
        network.set_grad(False)
        assert gone() is None
    finally:
        gc.enable()


def test_an_unmarked_cell_and_no_grad_keep_nothing():
    network = Network().set_train()
    x = ms.Tensor(np.eye(4, 3), ms.float32)
    network(x)
    assert "_forward_passes" not in vars(network)
    network.set_grad()
    with no_grad():
        network(x)
    assert "_forward_passes" not in vars(network)


def test_results_of_a_marked_cell_are_plain_tensors():
    class Returns(nn.Cell):
        def __init__(self):
            super().__init__()
            self.weight = ms.Parameter(np.ones(3, np.float32), name="weight")

        def construct(self, x):
            return x, self.weight, {"sum": (x * self.weight).sum()}

    network = Returns().set_grad()
    x = ms.Tensor([1.0, 2.0, 3.0])
    same, weight, made = network(x)
    assert same is x and weight is network.weight and made["sum"]._node is None
    assert x._node is None and weight._node is None
    np.testing.assert_array_equal(
        BY_LIST(network, ms.ParameterTuple([network.weight]))(x)[0].asnumpy(), x.asnumpy() + 1
    )
