"""Transposes that meet their inverses through nodes that work in any order."""

from __future__ import annotations

import numpy as np
import pytest

from .small_models import Net, check, kinds

LAST, FIRST = (0, 2, 3, 1), (0, 3, 1, 2)
BETWEEN = {
    "function": lambda net, x: net.activation(x, "TANH"),
    "constant": lambda net, x: net("AddFusion", net.weights(4), x),
    "image": lambda net, x: net("MulFusion", x, net.weights(5, 1, 4)),
    "number": lambda net, x: net("Maximum", x, net.constant(0.5)),
    "concat": lambda net, x: net("Concat", x, net("Neg", x), axis=3),
    "softmax": lambda net, x: net("Softmax", x, axis=[-1]),
    "reduction": lambda net, x: net.reduce(x, 1, 2),
    "pad": lambda net, x: net("PadFusion", x, net.constant([[0, 0], [1, 2], [0, 3], [1, 0]], np.int32)),
    "slice": lambda net, x: net.slice(x, (0, 1, 2, 1), (2, 5, 6, 3), (1, 2, 1, 1)),
}


@pytest.mark.parametrize("name", BETWEEN)
def test_a_pair_around_nodes_goes(name):
    net = Net()
    y = net.transpose(BETWEEN[name](net, net.transpose(net.input(2, 4, 5, 6), *LAST)), *FIRST)
    assert "Transpose" not in kinds(check(net, net("Abs", y), "TransposeFusion"))


def test_two_branches_meet():
    net = Net()
    a, b = (net.transpose(net.input(1, 4, 5, 6), *LAST) for _ in range(2))
    y = net.transpose(net("AddFusion", net.activation(a, "RELU"), b), *FIRST)
    model = check(net, net("Abs", y), "TransposeFusion")
    assert kinds(model) == ["Activation", "AddFusion", "Abs"]


def test_one_stays_where_somebody_needs_the_order():
    net = Net()
    inner = net.activation(net.transpose(net.input(1, 4, 5, 6), *LAST), "TANH")
    ends = [
        net("Abs", net.transpose(net("Neg", inner), *FIRST)),
        net("MatMulFusion", inner, net.weights(4, 2)),
    ]
    assert kinds(check(net, ends, "TransposeFusion")).count("Transpose") == 1


@pytest.mark.parametrize("between", ["product", "dropped axis", "vector of another input", "other order"])
def test_a_pair_stays(between):
    net = Net()
    x = net.transpose(net.input(2, 4, 4, 4), *LAST)
    if between == "product":
        y = net("MatMulFusion", x, net.weights(4, 4))
    elif between == "dropped axis":
        y = net("ExpandDims", net.reduce(x, 1, keep_dims=False), net.constant(1, np.int32))
    elif between == "vector of another input":
        y = net("AddFusion", x, net.input(4))
    else:
        y = net.activation(x, "TANH")
    y = net.transpose(y, *(LAST if between == "other order" else FIRST))
    model = check(net, net("Abs", y), "TransposeFusion", fires=0)
    assert kinds(model).count("Transpose") == 2
