"""Copies of cells compute the same and share nothing."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import mycelia as ms
from mycelia import Parameter, Tensor, nn


class Block(nn.Cell):
    def __init__(self):
        super().__init__()
        self.d = nn.Dense(2, 3)
        self.scale = Parameter(Tensor(np.ones(3, np.float32)))

    def construct(self, x):
        return self.d(x) * self.scale


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.b1 = Block()
        self.seq = nn.SequentialCell(nn.Dense(3, 4), nn.ReLU(), nn.Dense(4, 2))
        self.lst = nn.CellList([Block(), nn.Dense(1, 1)])
        self.w = Parameter(Tensor(np.zeros(2, np.float32)), name="my_w", requires_grad=False)
        self.bn = nn.BatchNorm1d(2)

    def construct(self, x):
        return self.bn(self.seq(self.b1(x))) + self.w


def names(cell):
    return [p.name for p in cell.get_parameters()]


# ---- copies ------------------------------------------------------------------------------------------------


def test_a_deep_copy_has_parameters_of_its_own():
    net = Net()
    clone = copy.deepcopy(net)
    assert names(clone) == names(net)
    x = Tensor(np.ones((2, 2), np.float32))
    np.testing.assert_array_equal(net(x).asnumpy(), clone(x).asnumpy())
    clone.w.set_data(Tensor(np.ones(2, np.float32)))
    assert net.w.asnumpy().tolist() == [0, 0]


def test_a_pickled_cell_computes_the_same():
    net = nn.SequentialCell(nn.Dense(2, 3), nn.ReLU())
    clone = pickle.loads(pickle.dumps(net))
    x = Tensor(np.ones((2, 2), np.float32))
    np.testing.assert_array_equal(net(x).asnumpy(), clone(x).asnumpy())
    assert names(clone) == names(net)


def _no_change(net, x):
    pass


COPIED = {
    "plain": _no_change,
    "set_inputs": lambda net, x: net.set_inputs(ms.Tensor(shape=(None, 3), dtype=ms.float32)),
    "run": lambda net, x: net(x),
    "compiled": lambda net, x: net.compile(x),
    "marked": lambda net, x: net.set_grad()(x),
    "trained": lambda net, x: ms.value_and_grad(net.set_train(), None, net.trainable_params())(x),
    "cast": lambda net, x: net.to_float(ms.float16),
    "hooks": lambda net, x: net.register_forward_hook(_doubled),
    "backward hooks": lambda net, x: net.register_backward_hook(_doubled),
    "jit": lambda net, x: setattr(net, "construct", ms.jit(net.construct)),
}


def _doubled(cell, inputs, output):
    return None


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
@pytest.mark.parametrize("name", COPIED)
def test_copies_compute_the_same_and_share_nothing(name, mode):
    before = ms.get_context("mode")
    ms.set_context(mode=mode)
    try:
        net, x = nn.Dense(3, 2), ms.Tensor(np.arange(12).reshape(4, 3), ms.float32)
        COPIED[name](net, x)
        expected = net(x).asnumpy()
        copies = [copy.deepcopy(net)]
        if name != "jit":  # a function that jit made is no name that pickle finds
            copies.append(pickle.loads(pickle.dumps(net)))
        for made in copies:
            np.testing.assert_array_equal(made(x).asnumpy(), expected)
            assert str(made.get_inputs()) == str(net.get_inputs())
            net.weight.set_data(net.weight + 1)
            np.testing.assert_array_equal(made(x).asnumpy(), expected)
            net.weight.set_data(net.weight - 1)
    finally:
        ms.set_context(mode=before)
