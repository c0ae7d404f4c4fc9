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


def test_what_is_turned_on_the_way_in_is_not_read_before():
    """An earlier reader of an inverse Transpose keeps it: that of the region is made later."""
    net = Net()
    other = net.input(1, 5, 6, 4)
    early = net("Abs", net.transpose(other, *FIRST))
    x, z = (net.transpose(net.activation(net.input(1, 4, 5, 6), "TANH"), *LAST) for _ in range(2))
    y = net("AddFusion", net("MulFusion", x, z), other)
    model = check(net, [early, net("Abs", net.transpose(y, *FIRST))], "TransposeFusion")
    assert kinds(model).count("Transpose") == 2
    made = {int(i) for i in model.inputIndex} | {i for i, t in enumerate(model.allTensors) if t.nodeType == 0}
    for node in model.nodes:
        assert {int(i) for i in node.inputIndex} <= made
        made |= {int(o) for o in node.outputIndex}


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
