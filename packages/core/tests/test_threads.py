"""Several threads record, compile and run at once."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import mycelia as ms
from mycelia import Parameter, Tensor, nn, ops
from mycelia.engine import _C


def ones(*shape: int) -> Tensor:
    return Tensor(np.ones(shape, np.float32))


# ---- exceptions leave no state behind ----------------------------------------------------------------------


class Fails(nn.Cell):
    def construct(self, x):
        return ops.matmul(x, x)


# ---- threads -----------------------------------------------------------------------------------------------


def run_in_threads(work, count=4):
    """Runs ``work(i)`` on several threads at once; returns what they raised."""
    raised, start = [], threading.Barrier(count)

    def body(i):
        start.wait()
        try:
            work(i)
        except BaseException as e:  # handed to the test
            raised.append(e)

    threads = [threading.Thread(target=body, args=(i,)) for i in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return raised


def test_threads_record_and_run_apart():
    def work(i):
        x = Tensor(np.full((40, 1000), i + 1, np.float32))  # large enough for kernels to run without the GIL
        for _ in range(20):
            value, gradient = ms.value_and_grad(lambda x: (x * x).sum())(x)
            assert gradient.asnumpy()[0, 0] == 2 * (i + 1)
            assert value.item() == pytest.approx(40_000 * (i + 1) ** 2)
            with pytest.raises(ValueError):
                ms.grad(Fails())(x)
        assert (_C.tape_level(), _C.mode()) == (0, 0)

    assert run_in_threads(work) == []


def test_threads_use_one_net_at_once():
    net = nn.SequentialCell(nn.Dense(16, 64), nn.ReLU(), nn.Dense(64, 3))
    net.set_train(False)
    x = Tensor(np.random.default_rng(0).normal(size=(300, 16)).astype(np.float32))
    expected = net(x).asnumpy()

    def work(i):
        for _ in range(30):
            np.testing.assert_array_equal(net(x).asnumpy(), expected)

    assert run_in_threads(work) == []


def test_parameters_may_be_replaced_while_other_threads_read_them():
    weight = Parameter(ones(400, 400), name="w")
    x = ones(50, 400)

    def work(i):
        for n in range(60):
            if i == 0:
                weight.set_data(Tensor(np.full((400, 400), n + 1, np.float32)))
            else:
                y = ops.matmul(x, weight).asnumpy()
                assert (y == y[0, 0]).all() and y[0, 0] % 400 == 0  # one value of the weight, never a mixture

    assert run_in_threads(work, 3) == []


def test_threads_compile_and_run_eager_at_once():
    def work(i):
        net = nn.Dense(4, 3)
        compiled = ms.jit(net)
        for n in range(1, 8):
            x = ones(n, 4)
            np.testing.assert_allclose(compiled(x).asnumpy(), net(x).asnumpy(), rtol=1e-6, atol=1e-6)

    assert run_in_threads(work) == []
