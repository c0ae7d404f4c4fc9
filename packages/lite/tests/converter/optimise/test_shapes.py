"""Rules of optimise/shapes.py, slices.py and redundant.py, and where they leave the nodes alone."""

from __future__ import annotations

import numpy as np
import pytest

from mycelia_lite.converter import optimise
from mycelia_lite.converter.optimise import redundant

from .small_models import Net, agree, answers, check, kinds, only, values


def cast(net, x, dtype):
    return net("Cast", x, net.constant(dtype, np.int32))


def expand(net, x, axis):
    return net("ExpandDims", x, net.constant(axis, np.int32))


X = (2, 3, 1, 4)
CHAINS = {  # rule: what is done to an input of shape X, kinds after it
    "SqueezeExpandDimsFusion": (lambda net, x: expand(net, net("Squeeze", x, axis=[2]), 2), []),
    "AblateReshapeLikeOp": (
        lambda net, x: net.reshape(expand(net, net.reshape(net("Squeeze", x, axis=[2]), 6, 4), 0), *X),
        [],
    ),
    "SqueezeFusion": (
        lambda net, x: expand(net, net.activation(net("Squeeze", x, axis=[2]), "TANH"), 2),
        ["Activation"],
    ),
    "ExpandDimsReshapeFusion": (lambda net, x: net.reshape(expand(net, x, 1), 6, 4), ["Reshape"]),
    "ReshapeReshapeFusion": (lambda net, x: net("Flatten", net.reshape(x, 3, 2, 4), axis=2), ["Reshape"]),
    "ReshapeShapeFusion": (lambda net, x: net("Reshape", x, net("Shape", x)), []),
    "TransposeFusion": (
        lambda net, x: net.transpose(net.transpose(x, 0, 2, 3, 1), 0, 3, 1, 2),
        [],
    ),
    "ReshapeTransposeFusion": (lambda net, x: net.transpose(x, 0, 2, 1, 3), ["Squeeze", "Unsqueeze"]),
    "ConcatConcatFusion": (
        lambda net, x: net("Concat", net("Concat", x, net.input(*X), axis=-1), x, axis=3),
        ["Concat"],
    ),
    "TransposeGatherFusion": (
        lambda net, x: net.transpose(
            net("Gather", net.transpose(x, 1, 0, 2, 3), net.integers(1, 0, 1), net.constant(0, np.int32)),
            1,
            0,
            2,
            3,
        ),
        ["Gather"],
    ),
    "CastFusionPass": (lambda net, x: cast(net, cast(net, x, 44), 42), ["Cast"]),
}


@pytest.mark.parametrize("rule", CHAINS)
def test_neighbours_are_merged(rule):
    build, after = CHAINS[rule]
    net = Net()
    x = net("Neg", net.input(*X))
    model = check(net, net("Abs", build(net, x)) if rule != "CastFusionPass" else build(net, x), rule)
    assert [k for k in kinds(model) if k not in ("Neg", "Abs", "Shape")] == after


OTHERS = {
    "SqueezeExpandDimsFusion": lambda net, x: expand(net, net("Squeeze", x, axis=[2]), 1),
    "AblateReshapeLikeOp": lambda net, x: net.reshape(net.reshape(x, 6, 4), 3, 2, 1, 4),
    "SqueezeFusion": lambda net, x: expand(net, net("Softmax", net("Squeeze", x, axis=[2]), axis=[1]), 2),
    "ReshapeShapeFusion": lambda net, x: net("Reshape", x, net("Shape", net.transpose(x, 1, 0, 2, 3))),
    "ReshapeTransposeFusion": lambda net, x: net.transpose(x, 2, 0, 1, 3),  # two axes are moved
    "ConcatConcatFusion": lambda net, x: net(
        "Concat", net("Concat", x, x, axis=2), net.input(2, 3, 2, 4), axis=1
    ),
    "TransposeGatherFusion": lambda net, x: net.transpose(
        net("Gather", net.transpose(x, 1, 0, 2, 3), net.integers(1, 0, 1), net.constant(0, np.int32)),
        0,
        1,
        3,
        2,
    ),
    "CastFusionPass": lambda net, x: cast(net, cast(net, x, 34), 43),
}


@pytest.mark.parametrize("rule", OTHERS)
def test_other_neighbours_stay(rule):
    net = Net()
    x = net("Neg", net.input(*X))
    check(net, net("Abs", OTHERS[rule](net, x)), rule, fires=0)


# ---- slices


def test_slices_side_by_side():
    net = Net()
    x = net("Neg", net.input(4, 6))
    parts = [net.slice(x, (1, b), (3, e)) for b, e in ((0, 2), (2, 5))]
    model = check(net, net("Abs", net("Concat", *parts, axis=1)), "StridedSliceFusion")
    assert kinds(model) == ["Neg", "StridedSlice", "Abs"]


@pytest.mark.parametrize("places", [((0, 2), (3, 6)), ((2, 6), (0, 2)), ((0, 3), (2, 6))])
def test_slices_that_are_not_side_by_side(places):
    net = Net()
    x = net("Neg", net.input(4, 6))
    y = net("Concat", *(net.slice(x, (0, b), (4, e)) for b, e in places), axis=1)
    check(net, y, "StridedSliceFusion", fires=0)


def test_all_parts_of_a_split():
    net = Net()
    parts = net("Split", net("Neg", net.input(4, 6)), results=2, axis=1, output_num=2, size_splits=[2, 4])
    model = check(net, net("Abs", net("Concat", *parts, axis=1)), "StridedSliceFusion")
    assert kinds(model) == ["Neg", "Abs"]


@pytest.mark.parametrize("second", [((0, 1), (3, 2), None), ((2, 0), (-9, 3), (-1, 2))])
def test_a_slice_of_a_slice(second):
    net = Net()
    y = net.slice(net.slice(net.input(9, 7), (8, 1), (0, 7), (-2, 2)), *second)
    assert kinds(check(net, y, "SliceSliceFusion")) == ["StridedSlice"]


# ---- redundant nodes


NOTHING = {
    "times one": lambda net, x: net("MulFusion", net.constant([1.0]), x),
    "over one": lambda net, x: net("DivFusion", x, net.constant(1.0)),
    "plus zero": lambda net, x: net("AddFusion", x, net.constant(0.0)),
    "minus zero": lambda net, x: net("SubFusion", x, net.constant([[0.0]])),
    "concat of one": lambda net, x: net("Concat", x, axis=1),
    "whole slice": lambda net, x: net.slice(x, (0, 0), (9, 9)),
    "same shape": lambda net, x: net.reshape(x, 3, 4),
    "same order": lambda net, x: net.transpose(x, 0, 1),
    "tile by one": lambda net, x: net("TileFusion", x, net.integers(1, 1), dims=[0, 1]),
    "no padding": lambda net, x: net("PadFusion", x, net.constant([[0, 0], [0, 0]], np.int32)),
    "broadcast": lambda net, x: net("BroadcastTo", x, shape=[3, 4]),
}
SOMETHING = {
    "times two": lambda net, x: net("MulFusion", x, net.constant(2.0)),
    "one over": lambda net, x: net("DivFusion", net.constant(1.0), x),
    "zero minus": lambda net, x: net("SubFusion", net.constant(0.0), x),
    "ones of more dimensions": lambda net, x: net("MulFusion", x, net.constant([[[1.0]]])),
    "ones and a two": lambda net, x: net("MulFusion", x, net.constant([1, 1, 2, 1])),
    "activation": lambda net, x: net("AddFusion", x, net.constant(0.0), activation_type="RELU"),
    "a sign of zero that shows": lambda net, x: net("Reciprocal", net("AddFusion", x, net.constant(0.0))),
    "half of it": lambda net, x: net.slice(x, (0, 0), (9, 2)),
}


@pytest.mark.parametrize("name", [*NOTHING, *SOMETHING])
def test_nodes_that_do_nothing_go(name):
    net = Net()
    y = net("Abs", {**NOTHING, **SOMETHING}[name](net, net("Neg", net.input(3, 4))))
    model = check(net, y, "RemoveTransitivityOp", fires=int(name in NOTHING))
    assert name in SOMETHING or kinds(model) == ["Neg", "Abs"]


def test_an_output_keeps_its_tensor():
    """What is an input, a constant or another output cannot be an output without a node."""
    net = Net()
    x = net.input(3, 4)
    model = check(net, net("MulFusion", x, net.constant(1.0)), "RemoveTransitivityOp", fires=0)
    assert kinds(model) == ["MulFusion"]
    net = Net()
    y = net("Neg", net.input(3, 4))
    model = check(net, [y, net.reshape(y, 3, 4)], "RemoveTransitivityOp", fires=0)
    assert len(model.nodes) == 2


def test_equal_nodes_are_one():
    net = Net()
    x = net.input(3, 4)
    parts = [net("AddFusion", net.transpose(x, 1, 0), net.constant([1.0])) for _ in range(2)]
    model = check(net, net("MulFusion", *parts), "ReduceSameOpInHorizon", fires=2)
    assert kinds(model) == ["Transpose", "AddFusion", "MulFusion"]


def test_nodes_that_differ_stay():
    net = Net()
    x = net.input(4, 4)
    parts = [
        net.transpose(x, 1, 0),
        net.transpose(x, 0, 1),
        net("Softmax", x, axis=[0]),
        net("Softmax", x, axis=[1]),
    ]
    check(net, net("Concat", *parts, axis=0), "ReduceSameOpInHorizon", fires=0)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int32])
def test_constants_are_computed(dtype):
    net = Net()
    x = net.input(3, 4, dtype=dtype)
    table = net("MulFusion", net.constant(np.arange(12).reshape(4, 3), dtype), net.constant(3, dtype))
    model = check(net, net("AddFusion", x, net.transpose(table, 1, 0)), "ConstFoldPass", fires=2)
    assert kinds(model) == ["AddFusion"]
    assert model.allTensors[int(model.nodes[0].inputIndex[1])].dataType == model.allTensors[0].dataType


def test_constants_that_would_grow_and_outputs_stay(monkeypatch):
    net = Net()
    big = net("BroadcastTo", net.constant([1.5]), shape=[64, 300])
    check(net, net("AddFusion", net.input(64, 300), big), "ConstFoldPass", fires=0)
    net = Net()
    check(net, [net("Neg", net.constant([1.5])), net("Neg", net.input(2))], "ConstFoldPass", fires=0)
    assert redundant._GROWTH < 4 * 64 * 300 * 2


# ---- open sizes


def test_a_single_open_size_follows_from_the_others():
    net = Net()
    x = net.input(2, 6)
    y = net("Abs", net.reshape(net.reshape(net("Neg", x), -1, 3, 2), -1, 6))
    model = net.model(y)
    for tensor in model.allTensors:
        if tensor.nodeType == 2:
            tensor.dims = [-1, *list(tensor.dims)[1:]]
    after = model.copy()
    assert optimise.run(after).fired["AblateReshapeLikeOp"] == 1 and kinds(after) == ["Neg", "Abs"]


def test_rules_that_need_shapes_leave_files_of_unknown_ones_alone():
    net = Net()
    model = net.model(net("Abs", net.reshape(net("Neg", net.input(2, 6)), 3, 4)))
    arrays = values(model)
    expected = answers(model, *arrays)
    for tensor in model.allTensors[1:]:
        if tensor.nodeType == 2:
            tensor.dims = []
    optimise.run(model, only(*optimise.RULES), known=0)
    agree(expected, answers(model, *arrays), 0)
