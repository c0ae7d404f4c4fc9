"""Rules of optimise/normalization.py, and where they leave the nodes alone."""

from __future__ import annotations

import numpy as np
import pytest

from .small_models import Net, check, kinds

SHAPE = (2, 3, 4, 6)


def parts(net, x, axes, square="Square", epsilon=1e-5):
    """(x - mean, sqrt(variance + epsilon), mean)"""
    mean = net.reduce(x, *axes)
    centred = net("SubFusion", x, mean)
    if square == "pow":
        squares = net("PowFusion", centred, net.constant(2), scale=1)
    elif square == "mul":
        squares = net("MulFusion", centred, centred)
    elif square == "difference":
        squares = net("SquaredDifference", x, mean)
    else:
        squares = net("Square", centred)
    variance = net("AddFusion", net.reduce(squares, *axes), net.constant(epsilon))
    return centred, variance, mean


def normalized(net, x, axes, square="Square", root="sqrt", epsilon=1e-5):
    centred, variance, _ = parts(net, x, axes, square, epsilon)
    if root == "sqrt":
        return net("DivFusion", centred, net("Sqrt", variance))
    if root == "pow":
        return net("DivFusion", centred, net("PowFusion", variance, net.constant(0.5), scale=1))
    if root == "rsqrt":
        return net("MulFusion", centred, net("Rsqrt", variance))
    return net("MulFusion", net("Reciprocal", net("Sqrt", variance)), centred)


@pytest.mark.parametrize("axes", [(3,), (-1,), (2, 3), (3, 1, 2)])
@pytest.mark.parametrize("square", ["Square", "pow", "mul", "difference"])
@pytest.mark.parametrize("root", ["sqrt", "pow", "rsqrt", "reciprocal"])
def test_layer_norm(axes, square, root):
    net = Net()
    model = check(
        net, normalized(net, net.input(*SHAPE), axes, square, root), "OnnxLayerNormFusion", tolerance=1e-5
    )
    assert kinds(model) == ["LayerNormFusion"]
    assert model.nodes[0].primitive.begin_norm_axis == 4 - len(axes)


def test_parameters_go_inside():
    net = Net()
    y = normalized(net, net.input(*SHAPE), (2, 3))
    y = net("AddFusion", net.weights(4, 6), net("MulFusion", y, net.weights(1, 1, 4, 6)))
    model = net.model(y)
    from mycelia_lite.converter import optimise

    from .small_models import agree, answers, values

    arrays = values(model)
    expected = answers(model, *arrays)
    done = optimise.run(model)
    assert done.fired["OnnxLayerNormFusion"] == 1 and done.fired["OnnxLayerNormFusion2"] == 2
    assert kinds(model) == ["LayerNormFusion"] and len(model.nodes[0].inputIndex) == 3
    agree(expected, answers(model, *arrays), 1e-5)


@pytest.mark.parametrize("neighbour", ["axes", "epsilon", "mean is read", "variance of other axes", "sum"])
def test_what_is_no_layer_norm(neighbour):
    net = Net()
    x = net.input(*SHAPE)
    more = []
    if neighbour == "axes":
        y = normalized(net, x, (1, 2))
    elif neighbour == "epsilon":
        y = normalized(net, x, (3,), epsilon=2.0)
    elif neighbour == "mean is read":
        y = normalized(net, x, (3,))
        more = [net("Neg", int(net.nodes[0].outputIndex[0]))]
    elif neighbour == "sum":
        mean = net.reduce(x, 3, mode="ReduceSum")
        centred = net("SubFusion", x, mean)
        variance = net("AddFusion", net.reduce(net("Square", centred), 3), net.constant(1e-5))
        y = net("DivFusion", centred, net("Sqrt", variance))
    else:
        centred = net("SubFusion", x, net.reduce(x, 3))
        variance = net("AddFusion", net.reduce(net("Square", centred), 2, 3), net.constant(1e-5))
        y = net("DivFusion", centred, net("Sqrt", variance))
    check(net, [y, *more], "OnnxLayerNormFusion", fires=0)


@pytest.mark.parametrize("shape", [(6,), (4, 6)])
def test_tf_norm(shape):
    net = Net()
    x = net.input(*SHAPE)
    _, variance, mean = parts(net, x, (3,) if len(shape) == 1 else (2, 3), "difference")
    factor = net("MulFusion", net("Rsqrt", variance), net.weights(*shape))
    y = net(
        "AddFusion",
        net("MulFusion", x, factor),
        net("SubFusion", net.weights(*shape), net("MulFusion", mean, factor)),
    )
    net.nodes = [n for n in net.nodes if n.name != "SubFusion_1"]
    assert kinds(check(net, y, "TfNormFusion", tolerance=1e-5)) == ["LayerNormFusion"]


def test_a_constant_input_keeps_nan():
    net = Net()
    model = check(net, normalized(net, net.input(3, 4), (1,)), "OnnxLayerNormFusion", tolerance=1e-5)
    from .small_models import answers

    x = np.array([[np.nan, 1, 2, 3], [np.inf, 1, 2, 3], [1, 2, 3, 4]], np.float32)
    y = answers(model, x)[0]
    assert np.isnan(y[0]).all() and np.isnan(y[1]).all() and np.isfinite(y[2]).all()


def group_norm(net, x, apart, back, gamma=(3, 1, 1), beta=(1, 3, 1, 1)):
    y = net("LayerNormFusion", net.reshape(x, *apart), begin_norm_axis=2, begin_params_axis=2, epsilon=1e-4)
    y = net("MulFusion", net.weights(*gamma), net.reshape(y, *back))
    return net("AddFusion", y, net.weights(*beta))


@pytest.mark.parametrize("apart", [(2, 3, -1), (2, 3, 1, 4, 6), (2, 1, -1)])
def test_group_norm(apart):
    net = Net()
    model = check(net, group_norm(net, net.input(*SHAPE), apart, SHAPE), "GroupNormFusion", tolerance=1e-5)
    assert kinds(model) == ["GroupNormFusion"]
    assert model.nodes[0].primitive.num_groups == apart[1]


NO_GROUPS = {
    "groups of two images": dict(apart=(1, 6, -1), back=SHAPE),
    "another shape behind": dict(apart=(2, 3, -1), back=(2, 3, 6, 4)),
    "a factor of the last axis": dict(apart=(2, 3, -1), back=SHAPE, gamma=(6,)),
    "one number for all": dict(apart=(2, 3, -1), back=SHAPE, beta=(1,)),
}


@pytest.mark.parametrize("neighbour", NO_GROUPS)
def test_what_is_no_group_norm(neighbour):
    net = Net()
    check(net, group_norm(net, net.input(*SHAPE), **NO_GROUPS[neighbour]), "GroupNormFusion", fires=0)
