"""Parameters that compiled functions change: written where they lie, without anybody else seeing it."""

import gc
import threading

import numpy as np
import pytest

import mycelia as ms
from mycelia import Parameter, Tensor, nn, ops
from mycelia.engine import _C

SIZE = 64


def parameter(value, name="p"):
    return Parameter(Tensor(np.full((SIZE, SIZE), value, np.float32)), name=name)


def stepper(p, rate=0.5):
    """A compiled step whose gradient is 1 everywhere: p becomes p - rate, then p - rate * 1.9 ..."""
    optimizer = nn.Momentum([p], rate, 0.9)

    @ms.jit
    def step(x):
        gradient = ms.grad(lambda x: (p * x).sum(), None, optimizer.parameters)(x)
        optimizer(gradient)
        return x.sum()

    return step


ONES = Tensor(np.ones((SIZE, SIZE), np.float32))


def test_every_step_writes_where_the_parameter_lies():
    p = parameter(1)
    step = stepper(p)
    place = p._data_ptr
    step(ONES)
    step(ONES)
    assert p._data_ptr == place
    np.testing.assert_allclose(p.asnumpy(), 1 - 0.5 - 0.95, rtol=1e-6)


@pytest.mark.parametrize("alias", [lambda p: p.value(), lambda p: p.reshape(-1), lambda p: p._detach()])
def test_a_tensor_kept_before_the_step_keeps_its_value(alias):
    p = parameter(1)
    step = stepper(p)
    step(ONES)
    kept = alias(p)
    before = kept.asnumpy().copy()
    step(ONES)
    np.testing.assert_array_equal(kept.asnumpy(), before)
    np.testing.assert_allclose(p.asnumpy(), -0.45, rtol=1e-6)


def test_a_numpy_view_sees_the_update():
    p = parameter(1)
    step = stepper(p)
    step(ONES)
    view = p.asnumpy()
    step(ONES)
    np.testing.assert_allclose(view, -0.45, rtol=1e-6)


def test_a_result_that_is_the_new_value_survives_the_next_step():
    p = parameter(0)

    @ms.jit
    def step(x):
        p.set_data(p + x)
        return p + 0, p.value()

    total, seen = step(ONES)
    step(ONES)
    np.testing.assert_array_equal(total.asnumpy(), 1)
    np.testing.assert_array_equal(seen.asnumpy(), 1)
    np.testing.assert_array_equal(p.asnumpy(), 2)


def test_parameters_swap_their_values():
    p, q = parameter(1), parameter(2, "q")

    @ms.jit
    def swap(x):
        before = p + 0
        p.set_data(q.value())
        q.set_data(before)
        return x

    for expected in (2, 1, 2):
        swap(ONES)
        assert p.asnumpy()[0, 0] == expected
        assert q.asnumpy()[0, 0] == 3 - expected


def test_the_old_value_is_read_after_the_update_in_the_code():
    p = parameter(1)

    @ms.jit
    def step(x):
        before = p.value()
        p.set_data(p * 3)
        return (before * x).sum() + (p * x).sum() * 100

    assert float(step(ONES)) == SIZE * SIZE * 301
    assert float(step(ONES)) == SIZE * SIZE * 903


def test_a_parameter_that_is_also_an_argument():
    p = parameter(1)

    @ms.jit
    def step(x):
        p.set_data(p * 2)
        return x * 10

    x = Tensor(np.ones((SIZE, SIZE), np.float32))
    for factor in (1, 2, 4):
        assert step(p._detach()).asnumpy()[0, 0] == 10 * factor
    np.testing.assert_array_equal(step(x).asnumpy(), 10)


def test_parameters_that_share_memory_with_one_array():
    array = np.ones((SIZE, SIZE), np.float32)
    p, x = Parameter(Tensor.from_numpy(array), name="p"), Tensor.from_numpy(array)

    @ms.jit
    def step(x):
        p.set_data(p * 2)
        return (x * 3).sum()

    assert float(step(x)) == 3 * SIZE * SIZE


class Picks(nn.Cell):
    def __init__(self):
        super().__init__()
        self.count = parameter(0, "count")
        self.table = parameter(1, "table")

    def construct(self, x, indices):
        self.count.set_data(self.count + x)
        picked = ops.gather(self.table, indices, 0)
        self.table.set_data(self.table * 2)
        return picked.sum()


def test_nothing_has_changed_after_an_error():
    net = Picks()
    run = ms.jit(net)
    good, bad = Tensor(np.array([0, 3], np.int32)), Tensor(np.array([0, SIZE + 3], np.int32))
    run(ONES, good)
    with pytest.raises(IndexError):
        run(ONES, bad)
    np.testing.assert_array_equal(net.count.asnumpy(), 1)
    np.testing.assert_array_equal(net.table.asnumpy(), 2)
    assert float(run(ONES, good)) == 4 * SIZE


def test_error_in_python_code_in_the_middle():
    p = parameter(1)

    @ms.jit
    def step(x):
        p.set_data(p + x)
        if x.sum() < 0:
            raise ValueError("negative")
        return p.sum()

    step(ONES)
    with pytest.raises(ValueError, match="negative"):
        step(-ONES)
    np.testing.assert_array_equal(p.asnumpy(), 2)


def network():
    return nn.SequentialCell(
        nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 3, stride=2), nn.BatchNorm2d(4),
        nn.ReLU(), nn.Flatten(), nn.Dense(4 * 4 * 4, 5),
    )  # fmt: skip


OPTIMIZERS = {
    "momentum": lambda p: nn.Momentum(p, 0.05, 0.9, weight_decay=1e-3),
    "adam": lambda p: nn.Adam(p, 1e-3),
    "adamw": lambda p: nn.AdamWeightDecay(p, 1e-3),
    "rmsprop": lambda p: nn.RMSProp(p, 1e-3),
    "lamb": lambda p: nn.Lamb(p, 1e-3),
}


def trained(make_optimizer, weights, compiled):
    """The last loss and all Parameters after a few steps."""
    net = network()
    for p, w in zip(net.get_parameters(), weights):
        p.set_data(Tensor(w))
    net.set_train()
    optimizer = make_optimizer(net.trainable_params())
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    gradient = ms.value_and_grad(lambda x, y: loss(net(x), y), None, optimizer.parameters)

    def step(x, y):
        value, gradients = gradient(x, y)
        optimizer(gradients)
        return value

    run = ms.jit(step) if compiled else step
    random = np.random.default_rng(1)
    for _ in range(4):
        x = Tensor(random.standard_normal((3, 2, 8, 8)).astype(np.float32))
        value = run(x, Tensor(random.integers(0, 5, 3).astype(np.int32)))
    return [value.asnumpy(), *(p.asnumpy() for p in net.get_parameters())]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_compiled_equals_eager(name):
    weights = [p.asnumpy().copy() for p in network().get_parameters()]
    results = [trained(OPTIMIZERS[name], weights, compiled) for compiled in (False, True)]
    for eager, fast in zip(*results):
        np.testing.assert_allclose(fast, eager, rtol=2e-4, atol=2e-5)


def test_threads_call_the_same_function():
    w = Parameter(Tensor(np.eye(200, dtype=np.float32) * 2), name="w")

    @ms.jit
    def f(x):
        y = x
        for _ in range(3):
            y = ops.tanh(y @ w) + x
        return y

    inputs = [Tensor(np.full((200, 200), k / 10, np.float32)) for k in range(4)]
    expected = [f(x).asnumpy().copy() for x in inputs]
    wrong = []

    def work(k):
        for _ in range(20):
            if not np.array_equal(f(inputs[k]).asnumpy(), expected[k]):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_live_bytes_are_the_same_after_many_steps():
    net = network()
    net.set_train()
    optimizer = nn.Adam(net.trainable_params(), 1e-3)
    gradient = ms.value_and_grad(lambda x: net(x).sum(), None, optimizer.parameters)

    @ms.jit
    def step(x):
        value, gradients = gradient(x)
        optimizer(gradients)
        return value

    x = Tensor(np.ones((3, 2, 8, 8), np.float32))
    step(x)
    step(x)
    gc.collect()
    before = _C.memory_statistics()["live_bytes"]
    for _ in range(10):
        step(x)
    gc.collect()
    assert _C.memory_statistics()["live_bytes"] <= before


class AssignedInABranch(nn.Cell):
    """A Parameter that a branch changes, so that it is one of its results, and that changes again."""

    def __init__(self):
        super().__init__()
        self.p = Parameter(Tensor(0.3), name="p")

    def construct(self, x):
        if x < 7:
            x = x * 2.0
        else:
            self.p = x * 0.3
        self.p = self.p * 0.5
        return 3.0 * x * self.p


@pytest.mark.parametrize("x", [-1.25, 9.0])
def test_gradients_follow_a_parameter_assigned_after_a_branch_that_changed_it(x):
    """Not another result of the branch."""

    def gradients(of):
        net = AssignedInABranch()
        return [float(g) for g in of(net)(Tensor(x))]

    def both(net, call):
        return lambda x: (lambda of_x, of_p: (of_x, *of_p))(*ms.grad(call, 0, (net.p,))(x))

    expected = gradients(lambda net: both(net, net))
    assert expected[1] == 3.0 * x * (2.0 if x < 7 else 1.0)
    assert gradients(lambda net: both(net, ms.jit(net))) == pytest.approx(expected)
    assert gradients(lambda net: ms.jit(both(net, net))) == pytest.approx(expected)


class Replaces(nn.Cell):
    """Gives something that needs no computing of a Parameter, and replaces the Parameter."""

    def __init__(self, of):
        super().__init__()
        self.p = Parameter(Tensor([0.25, 0.5]), name="p")
        self.of = of

    def construct(self, x):
        y = self.of(self.p)
        self.p = x
        return y


@pytest.mark.parametrize("of", [
    lambda p: p * 1.0, lambda p: p.reshape(1, 2), ops.stop_gradient, lambda p: p.astype("float32"),
    lambda p: p[None], lambda p: ops.cat((p,)), lambda p: p.value(), lambda p: (p * 1.0, p + 0.0),
])  # fmt: skip
def test_results_show_a_parameter_as_it_was_before_the_update(of):
    expected, net = Replaces(of), Replaces(of)
    compiled = ms.jit(net)
    for value in ([1.0, 2.0], [3.0, 4.0], [5.0, 6.0]):
        results = [call(Tensor(value)) for call in (compiled, expected)]
        found, want = (r if isinstance(r, tuple) else (r,) for r in results)
        for a, b in zip(found, want, strict=True):
            assert a.asnumpy().tolist() == b.asnumpy().tolist()
        assert net.p.asnumpy().tolist() == value


def test_a_gradient_that_is_a_parameter_is_what_it_was():
    net = Replaces(lambda p: p)
    x = Tensor([1.0, 2.0])
    gradient = ms.jit(lambda x: ms.grad(lambda x: (x * net.p).sum() + net(x).sum() * 0)(x))
    assert gradient(x).asnumpy().tolist() == [0.25, 0.5]


class HandsOn(Replaces):
    """A branch hands the Parameter on before it is replaced; a later branch decides by what it was."""

    def construct(self, x):
        if x.sum() < -100:
            self.p = x * 2.0
        y = x * x
        if self.p.sum() < 2:
            y = y * 3.0
        else:
            y = y + self.p
        self.p = x
        return y


@pytest.mark.parametrize("of", [lambda net: net, ms.jit], ids=["eager", "compiled"])
def test_gradients_of_branches_go_by_what_decided_before_the_update(of):
    net = HandsOn(None)
    gradient = ms.grad(of(net), 0, (net.p,))
    of_x, (of_p,) = gradient(Tensor([3.0, 4.0]))
    assert of_x.asnumpy().tolist() == [18.0, 24.0] and of_p.asnumpy().tolist() == [0.0, 0.0]
    of_x, (of_p,) = gradient(Tensor([1.0, -1.0]))
    assert of_x.asnumpy().tolist() == [2.0, -2.0] and of_p.asnumpy().tolist() == [1.0, 1.0]
