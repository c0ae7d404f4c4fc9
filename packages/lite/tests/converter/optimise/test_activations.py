"""Rules of optimise/activations.py: what they make of a few nodes, and where they leave them alone."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mycelia_lite.converter import optimise

from .small_models import Net, agree, answers, check, kinds, only


def cut(net, x, how="relu6"):
    """min(max(x + 3, 0), 6)"""
    moved = net("AddFusion", x, net.constant(3))
    if how == "relu6":
        return net.activation(moved, "RELU6")
    if how == "clip":
        return net("Clip", moved, min=0, max=6)
    return net("Minimum", net("Maximum", moved, net.constant(0)), net.constant(6))


def test_swish():
    net = Net()
    x = net.input(2, 5)
    model = check(net, net("MulFusion", net.activation(x, "SIGMOID"), x), "SigmoidMulFusion")
    assert kinds(model) == ["Activation"] and model.nodes[0].primitive.activation_type.name == "SWISH"


@pytest.mark.parametrize("neighbour", ["other", "read twice", "output", "activation", "half", "larger"])
def test_swish_stays_where_it_is_none(neighbour):
    net = Net()
    x = net.input(2, 5)
    gate = net.activation(x, "SIGMOID")
    if neighbour == "other":
        outputs = [net("MulFusion", gate, net.input(2, 5))]
    elif neighbour == "read twice":
        outputs = [net("MulFusion", gate, x), net("AddFusion", gate, x)]
    elif neighbour == "output":
        outputs = [net("MulFusion", gate, x), gate]
    elif neighbour == "activation":
        outputs = [net("MulFusion", gate, x, activation_type="RELU")]
    elif neighbour == "half":
        outputs = [net("MulFusion", net.activation(x, "TANH"), x)]
    else:
        outputs = [net("MulFusion", net("AddFusion", gate, x), x)]
    check(net, outputs, "SigmoidMulFusion", fires=0)


@pytest.mark.parametrize("how", ["relu6", "clip", "minimum"])
@pytest.mark.parametrize("order", ["product / 6", "product * 1/6", "x / 6", "hard sigmoid"])
def test_hard_swish(how, order):
    net = Net()
    x = net.input(3, 4)
    gate = cut(net, x, how)
    if order == "product / 6":
        y = net("DivFusion", net("MulFusion", x, gate), net.constant(6))
    elif order == "product * 1/6":
        y = net("MulFusion", net("MulFusion", gate, x), net.constant(1 / 6))
    elif order == "x / 6":
        y = net("MulFusion", net("DivFusion", x, net.constant(6)), gate)
    else:
        y = net("MulFusion", x, net("DivFusion", gate, net.constant(6)))
    model = check(net, y, "HardSwishFusion", fires=2 if order == "hard sigmoid" else 1)
    assert [n.primitive.activation_type.name for n in model.nodes] == ["HSWISH"]


@pytest.mark.parametrize("shift, over", [(2.9, 6), (3, 5.99), (3, -6)])
def test_hard_swish_needs_its_numbers(shift, over):
    net = Net()
    x = net.input(3, 4)
    gate = net.activation(net("AddFusion", x, net.constant(shift)), "RELU6")
    check(net, net("DivFusion", net("MulFusion", x, gate), net.constant(over)), "HardSwishFusion", fires=0)


def erf_part(net, x, root=math.sqrt(2)):
    return net("AddFusion", net("Erf", net("DivFusion", x, net.constant(root))), net.constant(1))


@pytest.mark.parametrize("order", range(3))
def test_gelu_by_erf(order):
    net = Net()
    x = net.input(4, 9)
    part, half = erf_part(net, x), net.constant(0.5)
    first, second, third = [(x, part, half), (x, half, part), (part, half, x)][order]
    model = check(net, net("MulFusion", net("MulFusion", first, second), third), "OnnxGeLUFusion")
    assert kinds(model) == ["Activation"] and not model.nodes[0].primitive.approximate


@pytest.mark.parametrize("root, half", [(1.4, 0.5), (math.sqrt(2), 0.51)])
def test_gelu_needs_its_numbers(root, half):
    net = Net()
    x = net.input(4, 9)
    product = net("MulFusion", x, erf_part(net, x, root))
    check(net, net("MulFusion", product, net.constant(half)), "OnnxGeLUFusion", fires=0)


def test_a_constant_of_more_dimensions_makes_no_gelu():
    net = Net()
    x = net.input(4, 9)
    product = net("MulFusion", x, erf_part(net, x))
    check(net, net("MulFusion", product, net.constant([[[0.5]]])), "OnnxGeLUFusion", fires=0)


@pytest.mark.parametrize("cube", ["pow", "mul", "square"])
def test_gelu_by_tanh(cube):
    net = Net()
    x = net.input(4, 9)
    if cube == "pow":
        third = net("PowFusion", x, net.constant(3), scale=1)
    elif cube == "mul":
        third = net("MulFusion", net("MulFusion", x, x), x)
    else:
        third = net("MulFusion", net("Square", x), x)
    inner = net("AddFusion", x, net("MulFusion", third, net.constant(0.044715)))
    wave = net.activation(net("MulFusion", inner, net.constant(math.sqrt(2 / math.pi))), "TANH")
    part = net("AddFusion", wave, net.constant(1))
    model = check(net, net("MulFusion", net("MulFusion", x, net.constant(0.5)), part), "TfGeLUFusion")
    assert kinds(model) == ["Activation"] and model.nodes[0].primitive.approximate


@pytest.mark.parametrize("part", ["minimum", "negated", "positive"])
def test_prelu(part):
    net = Net()
    x = net.input(2, 3, 5)
    slope = net.weights(5)
    if part == "minimum":
        less = net("Minimum", x, net.constant(0))
    else:
        less = net.activation(net("Neg", x), "RELU")
        less = net("Neg", less) if part == "negated" else less
    y = net("AddFusion", net.activation(x, "RELU"), net("MulFusion", less, slope))
    assert kinds(check(net, y, "PReLUFusion")) == ["PReLUFusion"]


@pytest.mark.parametrize("shape", [(3, 1), (4, 2, 3, 5)])
def test_prelu_has_slopes_along_the_last_axis(shape):
    net = Net()
    x = net.input(2, 3, 5)
    less = net("MulFusion", net("Minimum", x, net.constant(0)), net.weights(*shape))
    check(net, net("AddFusion", net.activation(x, "RELU"), less), "PReLUFusion", fires=0)


@pytest.mark.parametrize(
    "first, second, one",
    [
        ("RELU", "RELU6", "RELU6"),
        ("RELU6", "RELU", "RELU6"),
        ("SIGMOID", "RELU", "SIGMOID"),
        ("RELU", "TANH", ""),
    ],
)
def test_two_activations_in_a_row(first, second, one):
    net = Net()
    y = net.activation(net.activation(net.input(3, 7), first), second)
    model = check(net, y, "ActivationFusion", fires=bool(one))
    assert not one or [n.primitive.activation_type.name for n in model.nodes] == [one]


@pytest.mark.parametrize("low, high, one", [(0, 6, "RELU6"), (0, math.inf, "RELU"), (0, 5, ""), (-1, 6, "")])
def test_clip(low, high, one):
    net = Net()
    model = check(net, net("Clip", net.input(3, 7), min=low, max=high), "ActivationFusion", fires=bool(one))
    assert not one or model.nodes[0].primitive.activation_type.name == one


BEFORE = {
    "ConvActivationFusion": lambda net, x: net.conv(x, 3, 4),
    "MatMulActivationFusion": lambda net, x: net("MatMulFusion", x, net.weights(3, 4)),
    "AddActivationFusion": lambda net, x: net("AddFusion", x, net.weights(3)),
    "MulActivationFusion": lambda net, x: net("MulFusion", x, net.weights(3)),
    "ScaleActivationFusion": lambda net, x: net("ScaleFusion", x, net.weights(3), axis=3),
}


@pytest.mark.parametrize("kind", ["RELU", "RELU6"])
@pytest.mark.parametrize("rule", BEFORE)
def test_an_activation_goes_inside(rule, kind):
    net = Net()
    y = net.activation(BEFORE[rule](net, net.input(1, 5, 5, 3)), kind)
    model = check(net, y, rule)
    assert len(model.nodes) == 1 and model.nodes[0].primitive.activation_type.name == kind
    assert model.nodes[0].name == "Activation_1"


@pytest.mark.parametrize("neighbour", ["read twice", "output", "other", "inside"])
@pytest.mark.parametrize("rule", BEFORE)
def test_an_activation_stays_outside(rule, neighbour):
    net = Net()
    made = BEFORE[rule](net, net.input(1, 5, 5, 3))
    if neighbour == "inside":
        net.nodes[-1].primitive.activation_type = "RELU6"
    y = net.activation(made, "SIGMOID" if neighbour == "other" else "RELU")
    more = {"read twice": [net("Neg", made)], "output": [made]}.get(neighbour, [])
    check(net, [y, *more], rule, fires=0)


def test_an_activation_behind_a_concat_of_sums():
    net = Net()
    parts = [net("AddFusion", net.input(2, 3), net.input(2, 3)) for _ in range(2)]
    y = net.activation(net("Concat", *parts, axis=1), "RELU")
    assert kinds(check(net, y, "AddConcatActivationFusion")) == ["AddFusion", "AddFusion", "Concat"]


@pytest.mark.parametrize("neighbour", ["product", "read twice", "same"])
def test_an_activation_behind_another_concat(neighbour):
    net = Net()
    one = net("AddFusion", net.input(2, 3), net.input(2, 3))
    two = net("MulFusion", net.input(2, 3), net.input(2, 3)) if neighbour == "product" else None
    two = one if neighbour == "same" else two or net("AddFusion", net.input(2, 3), net.input(2, 3))
    y = net.activation(net("Concat", one, two, axis=1), "RELU")
    more = [net("Neg", one)] if neighbour == "read twice" else []
    check(net, [y, *more], "AddConcatActivationFusion", fires=0)


SPELLINGS = {
    "swish": lambda net, x: net("MulFusion", net.activation(x, "SIGMOID"), x),
    "hard swish": lambda net, x: net("DivFusion", net("MulFusion", x, cut(net, x)), net.constant(6)),
    "gelu": lambda net, x: net("MulFusion", net("MulFusion", x, erf_part(net, x)), net.constant(0.5)),
    "clip": lambda net, x: net("Clip", x, min=0, max=math.inf),
    "in a row": lambda net, x: net.activation(net.activation(x, "RELU"), "RELU6"),
    "prelu": lambda net, x: net(
        "AddFusion",
        net.activation(x, "RELU"),
        net("MulFusion", net("Minimum", x, net.constant(0)), net.constant([0.25])),
    ),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_what_is_not_finite_stays_so(name):
    net = Net()
    x = net.input(7)
    model = net.model(SPELLINGS[name](net, x))
    special = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e30, -1e30], np.float32)
    expected = answers(model, special)
    done = optimise.run(model, only())
    assert not any(done.fired.values())
    assert sum(optimise.run(model).fired.values())
    agree(expected, answers(model, special), 1e-6)


def halves(net, x, axis, how):
    if how == "split":
        return net("Split", x, results=2, axis=axis, output_num=2, size_splits=[2, 2])
    begin, end, whole = [0] * 3, [3, 4, 5], [3, 4, 5]
    end[axis] = begin[axis] = 2
    return net.slice(x, [0] * 3, end), net.slice(x, begin, whole)


@pytest.mark.parametrize("how", ["split", "slices"])
@pytest.mark.parametrize("swapped", [False, True])
def test_glu(how, swapped):
    net = Net()
    first, gate = halves(net, net.input(3, 4, 5), 1, how)
    factors = first, net.activation(gate, "SIGMOID")
    model = check(net, net("MulFusion", *(factors[::-1] if swapped else factors)), "GLUFusion")
    assert kinds(model) == ["GLU"] and model.nodes[0].primitive.axis == 1


@pytest.mark.parametrize("neighbour", ["other half", "same half", "tanh", "read twice", "unequal", "overlap"])
def test_what_is_no_glu(neighbour):
    net = Net()
    x = net.input(3, 4, 5)
    first, gate = halves(net, x, 1, "split" if neighbour == "read twice" else "slices")
    if neighbour == "other half":
        first, gate = gate, first
    elif neighbour == "same half":
        gate = first
    elif neighbour == "unequal":
        first, gate = net("Split", x, results=2, axis=1, output_num=2, size_splits=[1, 3])
        gate = net.slice(gate, [0, 0, 0], [3, 1, 5])
    elif neighbour == "overlap":
        gate = net.slice(x, [0, 1, 0], [3, 3, 5])
    y = net("MulFusion", first, net.activation(gate, "TANH" if neighbour == "tanh" else "SIGMOID"))
    check(net, [y, net("Neg", first)] if neighbour == "read twice" else y, "GLUFusion", fires=0)
