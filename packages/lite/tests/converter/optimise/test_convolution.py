"""Rules of optimise/convolution.py and optimise/scale.py, and where they leave the nodes alone."""

from __future__ import annotations

import numpy as np
import pytest

from mycelia_lite.converter import optimise

from .small_models import Net, check, kinds


def batch_norm(net, x, channels, variance=1.0, mean=None):
    parameters = [net.weights(channels) for _ in range(2)]
    mean = net.weights(channels) if mean is None else net.constant(np.full(channels, mean))
    spread = net.constant(variance + np.abs(net.random.normal(size=channels)))
    return net("FusedBatchNorm", x, *parameters, mean, spread, epsilon=1e-3)


AFTER = {
    "ConvBiasaddFusion": lambda net, y: net("AddFusion", net.weights(4), y),
    "ConvBatchNormFusion": lambda net, y: batch_norm(net, y, 4),
    "ConvScaleFusion": lambda net, y: net("ScaleFusion", y, net.weights(4), net.weights(4), axis=3),
}


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("group", [1, 2, 4])
@pytest.mark.parametrize("rule", AFTER)
def test_what_follows_a_convolution_goes_inside(rule, group, bias):
    net = Net()
    y = net.conv(net.input(2, 6, 5, 4), 4, 4, bias=bias, group=group, pad_list=[1, 0, 1, 2], stride=[2, 1])
    assert kinds(check(net, AFTER[rule](net, y), rule)) == ["Conv2DFusion"]


@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("rule", AFTER)
def test_what_follows_a_transposed_convolution_goes_inside(rule, group):
    net = Net()
    weights = net.weights(6, 3, 3, 4 // group)
    attributes = dict(
        pad_mode="PAD", kernel_size=[3, 3], stride=[2, 2], group=group, in_channel=6, out_channel=4
    )
    y = net("Conv2dTransposeFusion", net.input(1, 4, 4, 6), weights, **attributes)
    assert kinds(check(net, AFTER[rule](net, y), rule)) == ["Conv2dTransposeFusion"]


@pytest.mark.parametrize("neighbour", ["read twice", "output", "activation", "no constant", "not finite"])
@pytest.mark.parametrize("rule", AFTER)
def test_what_follows_a_convolution_stays_outside(rule, neighbour):
    net = Net()
    x = net.input(1, 5, 5, 4)
    y = net.conv(x, 4, 4, activation_type="RELU" if neighbour == "activation" else "NO_ACTIVATION")
    last = AFTER[rule](net, y)
    if neighbour == "no constant":
        inputs = list(net.nodes[-1].inputIndex)
        inputs[inputs.index(y) - 1] = net.input(4)
        net.nodes[-1].inputIndex = inputs
    if neighbour == "not finite":
        if rule == "ConvBiasaddFusion":
            return  # an infinite summand is as good inside
        net.tensors[int(net.nodes[-1].inputIndex[1])].data = np.array([1, np.inf, 1, 1], np.float32).tobytes()
    more = {"read twice": [net("Neg", y)], "output": [y]}.get(neighbour, [])
    check(net, [last, *more], rule, fires=0)


def scaled(net, x, channels=4):
    return net("ScaleFusion", x, net.weights(channels), net.weights(channels), axis=3)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("size, mode", [(1, "SAME"), (1, "PAD"), (3, "VALID"), (3, "PAD")])
def test_a_scale_in_front_of_a_convolution_goes_inside(size, mode, bias):
    net = Net()
    y = scaled(net, net("Abs", net.input(2, 6, 5, 4)))
    y = net.conv(y, 4, 3, size=size, bias=bias, pad_mode=mode, stride=[2, 1], activation_type="RELU6")
    model = check(net, y, "ConvScaleFusion")
    assert kinds(model) == ["Abs", "Conv2DFusion"] and len(model.nodes[1].inputIndex) == 3


@pytest.mark.parametrize("neighbour", ["padding", "same", "group", "read twice", "activation", "not finite"])
def test_a_scale_in_front_of_a_convolution_stays(neighbour):
    net = Net()
    x = scaled(net, net("Abs", net.input(1, 6, 5, 4)))
    if neighbour == "activation":
        net.nodes[-1].primitive.activation_type = "RELU"
    if neighbour == "not finite":
        net.tensors[int(net.nodes[-1].inputIndex[1])].data = np.array([1, np.inf, 1, 1], np.float32).tobytes()
    more = dict(pad_list=[0, 1, 0, 0]) if neighbour == "padding" else {}
    more |= dict(pad_mode="SAME") if neighbour == "same" else {}
    y = net.conv(x, 4, 4, group=2 if neighbour == "group" else 1, **more)
    others = [net("Neg", x)] if neighbour == "read twice" else []
    check(net, [y, *others], "ConvScaleFusion", fires=0)


@pytest.mark.parametrize("shape", [(5, 1), (1, 5, 1, 4), ()])
def test_a_summand_of_other_axes_is_no_bias(shape):
    net = Net()
    y = net.conv(net.input(1, 7, 7, 3), 3, 4)
    check(net, net("AddFusion", y, net.weights(*shape)), "ConvBiasaddFusion", fires=0)


def pad(net, x, *rows, value=0.0):
    return net("PadFusion", x, net.constant(rows, np.int32), padding_mode="CONSTANT", constant_value=value)


def test_padding_in_front_of_a_convolution():
    net = Net()
    y = net.conv(pad(net, net.input(1, 5, 6, 3), [0, 0], [1, 2], [0, 3], [0, 0]), 3, 4, pad_list=[1, 0, 0, 1])
    model = check(net, y, "ConvPadFusion")
    assert kinds(model) == ["Conv2DFusion"] and list(model.nodes[0].primitive.pad_list) == [2, 2, 0, 4]


@pytest.mark.parametrize(
    "neighbour", ["value", "channels", "batch", "read twice", "same", "infinite weights"]
)
def test_padding_that_a_convolution_cannot_have(neighbour):
    net = Net()
    rows = [[0, 0], [1, 1], [1, 1], [0, 0]]
    channels = 3
    if neighbour == "channels":
        rows[3], channels = [0, 1], 4
    if neighbour == "batch":
        rows[0] = [1, 0]
    padded = pad(net, net.input(1, 5, 5, 3), *rows, value=1.0 if neighbour == "value" else 0.0)
    mode = "SAME" if neighbour == "same" else "PAD"
    y = net.conv(padded, channels, 2, pad_mode=mode)
    if neighbour == "infinite weights":
        table = net.tensors[int(net.nodes[-1].inputIndex[1])]
        table.data = np.full(2 * 9 * 3, np.inf, np.float32).tobytes()
    check(net, [y, *([net("Neg", padded)] if neighbour == "read twice" else [])], "ConvPadFusion", fires=0)


@pytest.mark.parametrize("bias", [False, True])
def test_two_convolutions(bias):
    net = Net()
    y = net.conv(net.input(1, 9, 8, 3), 3, 6, bias=bias, pad_list=[1, 1, 0, 1], stride=[1, 2])
    y = net.conv(y, 6, 4, size=1, bias=bias, stride=[2, 1], activation_type="RELU")
    model = check(net, y, "ConvConvFusion")
    assert kinds(model) == ["Conv2DFusion"] and list(model.nodes[0].primitive.stride) == [2, 2]


@pytest.mark.parametrize("neighbour", ["activation", "padding", "more work", "read twice", "group", "3 x 3"])
def test_two_convolutions_stay_two(neighbour):
    net = Net()
    kind = "RELU" if neighbour == "activation" else "NO_ACTIVATION"
    y = net.conv(net.input(1, 8, 8, 4), 4, 6, group=2 if neighbour == "group" else 1, activation_type=kind)
    size = 3 if neighbour == "3 x 3" else 1
    outputs = 40 if neighbour == "more work" else 4
    z = net.conv(y, 6, outputs, size=size, pad_list=[1] * 4 if neighbour == "padding" else [])
    check(net, [z, *([net("Neg", y)] if neighbour == "read twice" else [])], "ConvConvFusion", fires=0)


# ---- Scale


def test_batch_norm_alone():
    net = Net()
    assert kinds(check(net, batch_norm(net, net.input(3, 4, 5), 5), "BatchNormToScaleFusion")) == [
        "ScaleFusion"
    ]


def test_batch_norm_with_means_far_away_stays():
    """There x - mean would lose its digits."""
    net = Net()
    check(net, batch_norm(net, net.input(3, 5), 5, mean=1e4), "BatchNormToScaleFusion", fires=0)


def test_mul_add():
    net = Net()
    y = net("AddFusion", net.weights(1, 5), net("MulFusion", net.input(3, 4, 5), net.constant(0.3)))
    assert kinds(check(net, y, "MulAddFusion")) == ["ScaleFusion"]


@pytest.mark.parametrize(
    "factor, summand", [((4, 1), (5,)), ((5,), (3, 4, 5)), ((3, 1, 1), ()), ((1, 1, 1, 5), ())]
)
def test_mul_add_of_other_axes_stays(factor, summand):
    net = Net()
    y = net("AddFusion", net("MulFusion", net.input(3, 4, 5), net.weights(*factor)), net.weights(*summand))
    check(net, y, "MulAddFusion", fires=0)


@pytest.mark.parametrize(
    "factor, summand", [((4, 1), (4, 1)), ((4, 1), (4,)), ((4,), (4, 1)), ((4, 1, 1), (4,))]
)
def test_mul_add_of_an_axis_as_long_as_the_last_stays(factor, summand):
    net = Net()
    y = net("AddFusion", net("MulFusion", net.input(4, 4, 4), net.weights(*factor)), net.weights(*summand))
    check(net, y, "MulAddFusion", fires=0)


def test_scale_of_a_scale():
    net = Net()
    y = net("ScaleFusion", net.input(2, 3), net.weights(3), net.weights(3), axis=1)
    y = net("ScaleFusion", y, net.weights(3), axis=-1, activation_type="RELU")
    model = check(net, y, "ScaleScaleFusion")
    assert kinds(model) == ["ScaleFusion"] and model.nodes[0].primitive.activation_type.name == "RELU"


@pytest.mark.parametrize("axis, activation", [(0, "NO_ACTIVATION"), (1, "RELU")])
def test_scales_that_stay_two(axis, activation):
    net = Net()
    y = net("ScaleFusion", net.input(3, 3), net.weights(3), axis=axis, activation_type=activation)
    check(net, net("ScaleFusion", y, net.weights(3), axis=1), "ScaleScaleFusion", fires=0)


def test_a_chain_ends_in_one_node_named_after_the_last():
    net = Net()
    y = batch_norm(net, net.conv(net.input(1, 6, 6, 3), 3, 4), 4)
    model = net.model(net.activation(y, "RELU6"))
    done = optimise.run(model)
    assert [n.name for n in model.nodes] == ["Activation_2"]
    assert done.parts == {"Activation_2": ("Conv2DFusion_0", "FusedBatchNorm_1", "Activation_2")}
