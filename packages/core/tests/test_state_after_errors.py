"""Exceptions leave no state behind, neither of the tape nor of a capture or a training."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import Parameter, Tensor, nn, ops
from mycelia.engine import _C


def ones(*shape: int) -> Tensor:
    return Tensor(np.ones(shape, np.float32))


X = ones(2, 3)


# ---- exceptions leave no state behind ----------------------------------------------------------------------


class Fails(nn.Cell):
    def construct(self, x):
        return ops.matmul(x, x)


class FailingRule(nn.Cell):
    def construct(self, x):
        return x * 2

    def bprop(self, x, out, dout):
        raise KeyError("in the rule")


class WrongRule(FailingRule):
    def bprop(self, x, out, dout):
        return ("a",)


def hooked(register: str) -> nn.Cell:
    cell = nn.Dense(3, 3)
    getattr(cell, register)(lambda *args: 1 / 0)
    return cell


def raising(x):
    for _ in range(3):
        x = x * 2
    raise LookupError("in the middle")


STATES = {
    "eager": (lambda: Fails()(X), ValueError),
    "gradient": (lambda: ms.value_and_grad(Fails())(X), ValueError),
    "nested gradient": (lambda: ms.grad(ms.grad(Fails()))(X), ValueError),
    "jit": (lambda: ms.jit(Fails())(X), ValueError),
    "jit of gradient": (lambda: ms.jit(ms.grad(Fails()))(X), ValueError),
    "gradient of jit": (lambda: ms.grad(ms.jit(Fails()))(X), ValueError),
    "function": (lambda: ms.grad(raising)(X), LookupError),
    "function in jit": (lambda: ms.jit(raising)(X), LookupError),
    "rule": (lambda: ms.grad(lambda x: FailingRule()(x).sum())(X), KeyError),
    "rule in jit": (lambda: ms.jit(ms.grad(lambda x: FailingRule()(x).sum()))(X), KeyError),
    "rule of wrong kind": (lambda: ms.grad(lambda x: WrongRule()(x).sum())(X), RuntimeError),
    "forward hook": (lambda: hooked("register_forward_hook")(X), ZeroDivisionError),
    "forward hook under grad": (lambda: ms.grad(hooked("register_forward_hook"))(X), ZeroDivisionError),
    "pre hook": (lambda: hooked("register_forward_pre_hook")(X), ZeroDivisionError),
    "backward hook": (lambda: ms.grad(hooked("register_backward_hook"))(X), ZeroDivisionError),
    "interrupt": (lambda: ms.grad(interrupted)(X), KeyboardInterrupt),
    "interrupt in jit": (lambda: ms.jit(interrupted)(X), KeyboardInterrupt),
}


def interrupted(x):
    x = x * 2
    raise KeyboardInterrupt


@pytest.mark.parametrize("name", STATES)
def test_exception_leaves_tape_modes_and_parameters_clean(name):
    call, kind = STATES[name]
    weight = Parameter(ones(3, 3), name="w")
    with pytest.raises(kind):
        call()
    assert (_C.tape_level(), _C.mode()) == (0, 0)
    assert X._node is None and X.traced is None
    # What comes next works as if nothing had happened, recording and capture included.
    assert ms.grad(lambda x: (ops.matmul(x, weight) * 2).sum())(X).asnumpy().tolist() == [[6.0] * 3] * 2
    assert ms.jit(lambda x: ops.matmul(x, weight).sum())(X).item() == 18
    assert weight._node is None and weight.traced is None


def test_parameter_survives_an_exception_while_it_is_captured():
    net = nn.Dense(4, 3)
    before = net.weight.asnumpy().copy()
    for run in (
        ms.jit(net),
        ms.grad(net, None, net.trainable_params()),
        ms.jit(ms.grad(net, None, net.trainable_params())),
    ):
        with pytest.raises(ValueError):
            run(X)
    np.testing.assert_array_equal(net.weight.asnumpy(), before)
    assert net.weight._has_value and net.weight.traced is None and net.weight._node is None


def test_rule_with_too_few_gradients_is_named():
    class TwoInputs(nn.Cell):
        def construct(self, x, y):
            return x * y

        def bprop(self, x, y, out, dout):
            return (dout,)

    with pytest.raises(RuntimeError, match="TwoInputs.construct: bprop must return 2 gradients.* returned 1"):
        ms.grad(lambda x: TwoInputs()(x, x).sum())(X)


# ---- wrong numbers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_nan_loss_stops_training_with_a_message(bad):
    from mycelia import dataset
    from mycelia.train import Model
    from mycelia.train.callbacks import LossMonitor

    class Broken(nn.Cell):
        def __init__(self):
            super().__init__()
            self.dense = nn.Dense(4, 3)

        def construct(self, x):
            return self.dense(x) * bad

    net = Broken()
    data = dataset.NumpySlicesDataset((np.ones((8, 4), np.float32), np.zeros((8, 3), np.float32)), ["x", "y"])
    model = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
    with pytest.raises(ValueError, match=r"LossMonitor: .*epoch: 1 step: 1\b.*(nan|inf|NAN)"):
        model.train(2, data.batch(4), callbacks=[LossMonitor()], dataset_sink_mode=False)


def test_dataset_error_reaches_the_training_loop_and_leaves_the_net_usable():
    from mycelia import dataset
    from mycelia.train import Model

    def rows():
        yield np.ones(4, np.float32), np.zeros(3, np.float32)
        raise LookupError("row 1 is missing")

    net = nn.Dense(4, 3)
    model = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
    with pytest.raises(RuntimeError, match="row 1, raised LookupError: row 1 is missing"):
        model.train(1, dataset.GeneratorDataset(rows, ["x", "y"]).batch(1), dataset_sink_mode=False)
    assert (_C.tape_level(), _C.mode()) == (0, 0)
    assert net(ones(1, 4)).shape == (1, 3)
