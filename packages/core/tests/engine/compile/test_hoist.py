"""What depends on Parameters alone is computed once, and again when one of them has changed."""

import copy
import gc
import weakref

import numpy as np
import pytest

import mycelia as ms
from mycelia import Parameter, Tensor, nn, ops
from mycelia.engine import _C
from mycelia.engine.compile.executable import live_programs
from mycelia.ops.define import find


class Scaled(nn.Cell):
    """y = x @ (softmax(w) + 1): the bracket depends on the Parameter alone."""

    def __init__(self, w):
        super().__init__()
        self.w = Parameter(Tensor(w), name="w")

    def construct(self, x):
        return x @ (ops.softmax(self.w, -1) + 1)


W = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)
X = Tensor(np.random.default_rng(1).standard_normal((3, 8)).astype(np.float32))


def hoisting(program):
    return program.hoisted and any(n.op.name == "mat_mul" for n in program.nodes)


def program_of(run, *args):
    """Runs a new compiled function; the program with a prologue that it has made."""
    before = live_programs()  # held: no new one may get the address of one that is gone
    run(*args)
    (found,) = (p for p in live_programs() if not any(p is q for q in before) and hoisting(p))
    return found


@pytest.fixture
def net():
    made = Scaled(W)
    made.run = ms.jit(made)
    made.program = program_of(made.run, X)
    return made


def agrees(net):
    """The compiled result is what eager mode gives, and another call gives it again."""
    for _ in range(2):
        np.testing.assert_allclose(net.run(X).asnumpy(), net(X).asnumpy(), rtol=1e-5)


def test_computed_once(net):
    for _ in range(5):
        agrees(net)
    assert net.program.hoisted[0].runs == 1
    assert all(n.op.name != "softmax" for n in net.program.nodes)


def test_tensors_of_other_values_do_not_matter(net):
    for k in range(5):
        x = Tensor(np.full((3, 8), k, np.float32))
        np.testing.assert_allclose(net.run(x).asnumpy(), net(x).asnumpy(), rtol=1e-5)
    assert net.program.hoisted[0].runs == 1


def in_place_op(net):
    find("assign_add")(net.w, Tensor(W))


def optimizer_step(net):
    nn.SGD([net.w], 0.5)((Tensor(np.eye(8, dtype=np.float32)),))


def compiled_step(net):
    optimizer = nn.Momentum([net.w], 0.5, 0.9)
    gradient = ms.grad(lambda x: (net(x) ** 2).sum(), None, optimizer.parameters)
    ms.jit(lambda x: optimizer(gradient(x)))(X)


def checkpoint(net):
    other = Scaled(W * 3)
    ms.load_param_into_net(net, {p.name: p for p in other.get_parameters()})


def through_a_view(net):
    net.w.asnumpy()[:] *= 3


def through_a_buffer(net):
    memoryview(net.w).cast("B").cast("f")[0] = 7.0


def through_dlpack(net):
    np.from_dlpack(net.w.value())[...]
    array = net.w.asnumpy()
    array[0, 0] = 9.0


CHANGES = {
    "set_data": lambda net: net.w.set_data(Tensor(W * 2)),
    "element": lambda net: net.w.__setitem__((0, slice(None)), 0.25),
    "in place op": in_place_op,
    "in place": lambda net: net.w.add_(Tensor(W)),
    "optimizer": optimizer_step,
    "compiled step": compiled_step,
    "load_param_into_net": checkpoint,
    "numpy view": through_a_view,
    "buffer": through_a_buffer,
    "dlpack": through_dlpack,
    "shared array": lambda net: net.w.set_data(Tensor.from_numpy(W * 5)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_computed_again_after(name, net):
    runs = net.program.hoisted[0].runs
    before = net.run(X).asnumpy().copy()
    CHANGES[name](net)
    agrees(net)
    assert np.abs(net.run(X).asnumpy() - before).max() > 1e-3
    assert net.program.hoisted[0].runs == runs + 1


def test_writes_while_numpy_looks_at_the_memory(net):
    view = net.w.asnumpy()
    for k in range(3):
        view[:] = W * k
        agrees(net)
    runs = net.program.hoisted[0].runs
    agrees(net)
    assert net.program.hoisted[0].runs == runs  # the content has not changed


def test_writes_to_an_array_that_the_parameter_was_made_from():
    array = W.copy()
    net = Scaled(W)
    net.w.set_data(Tensor.from_numpy(array))
    net.run = ms.jit(net)
    for k in range(3):
        array[:] = W * k
        agrees(net)


def test_shared_parameter(net):
    class Pair(nn.Cell):
        def __init__(self, a, b):
            super().__init__()
            self.a, self.b = a, b
            b.w = a.w

        def construct(self, x):
            return self.a(x) + self.b(x)

    pair = Pair(net, Scaled(W))
    pair.run = ms.jit(pair)
    agrees(pair)
    net.w.set_data(Tensor(W * 2))
    agrees(pair)
    agrees(net)


def test_copy_of_a_cell_is_on_its_own(net):
    del net.run, net.program
    other = copy.deepcopy(net)
    other.run, net.run = ms.jit(other), ms.jit(net)
    agrees(other)
    other.w.set_data(Tensor(W * 2))
    agrees(other)
    agrees(net)
    assert np.abs(net(X).asnumpy() - other(X).asnumpy()).max() > 1e-3


def test_training_and_inference_by_turns():
    net = nn.SequentialCell(
        nn.Conv2d(2, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(), nn.Dense(16 * 64, 5)
    )
    optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
    gradient = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), None, optimizer.parameters)

    @ms.jit
    def step(x):
        value, gradients = gradient(x)
        optimizer(gradients)
        return value

    infer = ms.jit(net)
    x = Tensor(np.random.default_rng(2).standard_normal((2, 2, 8, 8)).astype(np.float32))
    for _ in range(4):
        net.set_train()
        step(x)
        net.set_train(False)
        for _ in range(2):
            np.testing.assert_allclose(infer(x).asnumpy(), net(x).asnumpy(), rtol=1e-4, atol=1e-6)


def test_parameters_that_change_all_the_time_are_not_kept(net):
    for k in range(8):
        net.w.set_data(Tensor(W * k))
        np.testing.assert_allclose(net.run(X).asnumpy(), net(X).asnumpy(), rtol=1e-5)
    assert net.program.hoisted[0].runs < 8
    gone = weakref.ref(net.program)
    del net.program
    gc.collect()
    assert gone() is None


def test_memory_goes_with_the_function():
    live = lambda: _C.memory_statistics()["live_bytes"]
    gc.collect()
    before = live()
    net = Scaled(np.ones((256, 256), np.float32))
    run = ms.jit(net)
    gone = weakref.ref(program_of(run, Tensor(np.ones((2, 256), np.float32))))
    del net, run
    gc.collect()
    gc.collect()
    assert gone() is None
    assert live() <= before + 4096


def test_loop_computes_what_does_not_change_once():
    w = Parameter(Tensor(W), name="w")

    @ms.jit
    def f(x, n):
        i = Tensor(0)
        while i < n:
            x = ops.tanh(x @ (ops.softmax(w, -1) + 1))
            i = i + 1
        return x

    def expected(x, n):
        for _ in range(n):
            x = ops.tanh(x @ (ops.softmax(w, -1) + 1))
        return x.asnumpy()

    program = program_of(f, X, Tensor(1))
    for n in (3, 0, 6):
        np.testing.assert_allclose(f(X, Tensor(n)).asnumpy(), expected(X, n), rtol=1e-5)
    assert program.hoisted[0].runs == 1
    w.set_data(Tensor(W * 2))
    np.testing.assert_allclose(f(X, Tensor(4)).asnumpy(), expected(X, 4), rtol=1e-5)
