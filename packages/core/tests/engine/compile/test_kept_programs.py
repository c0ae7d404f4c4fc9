"""What a compiled function or cell keeps, how long, and when it is compiled anew."""

import copy
import gc
import threading
import weakref

import numpy as np

import mycelia as ms
from mycelia import Parameter, Tensor, nn, ops


def rows(n, width=3):
    return Tensor(np.random.default_rng(n).normal(size=(n, width)).astype(np.float32))


SIZES = (8, 5, 12, 3, 8, 7)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4)
        self.pool, self.dense = nn.MaxPool2d(2, 2), nn.Dense(36, 5)

    def construct(self, x):
        x = self.pool(ops.relu(self.norm(self.conv(x))))
        return self.dense(x.reshape(x.shape[0], -1))


def training(net):
    optimizer = nn.Adam(net.trainable_params(), 1e-3)
    loss_of = nn.CrossEntropyLoss()
    gradient = ms.value_and_grad(lambda x, y: loss_of(net(x), y), None, optimizer.parameters)

    def step(x, y):
        loss, gradients = gradient(x, y)
        optimizer(gradients)
        return loss

    return step


# ---- set_inputs


class Line(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(3, 2)

    def construct(self, x):
        return self.dense(x)


# ---- what is kept


def test_kept_forms_are_bounded():
    from mycelia.engine.compile.cache import LIMIT

    compiled = ms.jit(lambda x, k: x * k)
    for k in range(LIMIT + 10):
        compiled(rows(2), k)
    assert compiled.cache_info().kept == LIMIT
    compiled(rows(2), LIMIT + 9)
    assert compiled.cache_info().captures == LIMIT + 10
    compiled(rows(2), 0)
    assert compiled.cache_info().captures == LIMIT + 11


def test_what_was_compiled_for_a_cell_goes_with_it():
    @ms.jit
    def run(net, x):
        return net(x)

    net = Line()
    run(net, rows(2))
    assert run.cache_info().kept == 1
    gone = weakref.ref(net)
    del net
    gc.collect()
    assert gone() is None
    assert run.cache_info().kept == 0


def test_a_copy_of_a_cell_is_compiled_for_itself():
    net = Line()
    compiled = ms.jit(Line)
    net = compiled()
    before = net(rows(2)).asnumpy()
    other = copy.deepcopy(net)
    other.dense.weight.set_data(other.dense.weight * 0)
    np.testing.assert_array_equal(
        other(rows(2)).asnumpy(), np.zeros((2, 2), np.float32) + other.dense.bias.asnumpy()
    )
    np.testing.assert_array_equal(net(rows(2)).asnumpy(), before)


def test_the_graph_can_be_read():
    compiled = ms.jit(lambda x: x + 1)
    assert compiled.graph() == ""
    compiled(rows(2))
    assert "add(" in compiled.graph()


def test_hooks_run_in_a_compiled_cell():
    net = Line()
    compiled = ms.jit(net)
    plain = compiled(rows(2)).asnumpy()
    handle = net.register_forward_hook(lambda cell, inputs, output: output * 2)
    np.testing.assert_allclose(compiled(rows(2)).asnumpy(), plain * 2, rtol=1e-6)
    inner = net.dense.register_forward_pre_hook(lambda cell, inputs: (inputs[0] * 0,))
    bias = net.dense.bias.asnumpy()
    np.testing.assert_allclose(compiled(rows(2)).asnumpy(), np.stack([bias, bias]) * 2, rtol=1e-6)
    inner.remove()
    handle.remove()
    np.testing.assert_allclose(compiled(rows(2)).asnumpy(), plain, rtol=1e-6)


def test_training_flag_changes_the_program():
    net = nn.Dropout(p=0.5)
    compiled = ms.jit(net)
    x = Tensor(np.ones(1000, np.float32))
    for training in (True, False, True):
        net.set_train(training)
        assert bool((compiled(x).asnumpy() == 1).all()) is not training
    net.training = False
    assert bool((compiled(x).asnumpy() == 1).all())


def test_a_replaced_part_of_a_network_is_compiled():
    net = nn.SequentialCell(nn.Dense(3, 2), nn.ReLU())
    outer = Line()
    outer.dense = net
    compiled = ms.jit(outer)
    compiled(rows(2))
    net.append(nn.Dense(2, 5))
    assert compiled(rows(2)).shape == (2, 5)
    outer.dense = nn.Dense(3, 7)
    assert compiled(rows(2)).shape == (2, 7)
    outer.dense.weight = Parameter(outer.dense.weight * 0)
    outer.dense.bias.set_data(outer.dense.bias * 0 + 1)
    assert (compiled(rows(2)).asnumpy() == 1).all()


def test_a_longer_list_of_layers_is_compiled():
    class Stack(nn.Cell):
        def __init__(self):
            super().__init__()
            self.layers = nn.CellList([nn.ReLU()])

        def construct(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

    net = Stack()
    compiled = ms.jit(net)
    assert compiled(rows(2)).shape == (2, 3)
    net.layers.append(nn.Dense(3, 4))
    assert compiled(rows(2)).shape == (2, 4)


def test_nested_and_bound_functions():
    @ms.jit
    def inner(x):
        return x * x.shape[0]

    class Thing:
        scale = 3.0

        @ms.jit
        def times(self, x):
            return inner(x) * self.scale

    thing = Thing()
    for n in SIZES:
        np.testing.assert_allclose(thing.times(rows(n)).asnumpy(), rows(n).asnumpy() * n * 3, rtol=1e-6)


# ---- threads


def test_threads_compile_and_run_the_same_network():
    net = Net()
    reference = {n: net(image(n)).asnumpy() for n in range(1, 9)}
    compiled = ms.jit(net)
    wrong = []

    def work(seed):
        for n in np.random.default_rng(seed).permutation(8) + 1:
            for run in (compiled, net):
                try:
                    np.testing.assert_allclose(run(image(n)).asnumpy(), reference[n], rtol=1e-4, atol=1e-5)
                except Exception as error:
                    wrong.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def image(n):
    return Tensor(np.random.default_rng(int(n)).normal(size=(n, 2, 6, 6)).astype(np.float32))


def test_a_parameter_is_read_while_another_thread_captures():
    weight = Parameter(Tensor(np.full(3, 2.0, np.float32)), name="weight")
    inside, done = threading.Event(), threading.Event()
    seen = []

    @ms.jit
    def slow(x):
        y = x * weight
        inside.set()
        done.wait(0.2)
        return y

    def read():
        inside.wait()
        seen.append((weight + 1).asnumpy().tolist())
        seen.append(weight.asnumpy().tolist())
        done.set()

    reader = threading.Thread(target=read)
    reader.start()
    slow(rows(2))
    reader.join()
    assert seen == [[3.0] * 3, [2.0] * 3]
