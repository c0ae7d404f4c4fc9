"""Slices in front of what makes what they are cut of: optimise/slice_forward.py."""

from __future__ import annotations

import numpy as np
import pytest

from mycelia_lite.converter import optimise

from .small_models import Net, agree, answers, check, kinds, only, values

RULE = "SlicePreposeFusion"


def attention_row(net, x):
    return net("MatMulFusion", x, net.weights(5, 6), net.weights(6))


BEFORE = {
    "function": lambda net, x: net.activation(x, "TANH"),
    "sum": lambda net, x: net("AddFusion", x, net.weights(3, 1, 5)),
    "softmax": lambda net, x: net("Softmax", x, axis=[2]),
    "transpose": lambda net, x: net.transpose(x, 0, 2, 1, 3),
    "reshape": lambda net, x: net.reshape(x, 2, 3, 20),
    "product": attention_row,
}


@pytest.mark.parametrize("begin, end", [((0, 1), (1, 3)), ((1, 0), (2, 3))])
@pytest.mark.parametrize("kind", BEFORE)
def test_a_slice_goes_in_front(kind, begin, end):
    net = Net()
    y = BEFORE[kind](net, net.input(2, 3, 4, 5))
    if kind == "transpose":
        end = (end[0], end[1] + 1)
    model = check(net, net.slice(y, begin, end), RULE)
    assert kinds(model)[0] == "StridedSlice" and len(model.nodes) == 2


def test_a_slice_of_columns_cuts_the_weights():
    net = Net()
    model = check(net, net.slice(attention_row(net, net.input(4, 5)), (0, 1), (4, 3)), RULE)
    assert kinds(model) == ["MatMulFusion"]


@pytest.mark.parametrize("neighbour", ["softmax", "reshape", "read twice", "output"])
def test_a_slice_stays_behind(neighbour):
    net = Net()
    x = net.input(2, 3, 4, 5)
    y = BEFORE[neighbour if neighbour in BEFORE else "function"](net, x)
    cut = {"softmax": ((0, 0, 1), (2, 3, 2)), "reshape": ((0, 0, 2), (2, 3, 9))}.get(neighbour, ((0,), (1,)))
    more = {"read twice": [net("Neg", y)], "output": [y]}.get(neighbour, [])
    check(net, [net.slice(y, *cut), *more], RULE, fires=0)


# ---- what several nodes read

TOKENS, WIDTH, HEADS = 10, 12, 3
SCALE, OFFSET = np.linspace(0.5, 1.5, WIDTH), np.linspace(-1, 1, WIDTH)


def normal(net, x):
    given = net.constant(SCALE), net.constant(OFFSET)
    return net(
        "LayerNormFusion", x, *given, begin_norm_axis=-1, begin_params_axis=-1, elementwise_affine=True
    )


def dense(net, x, inputs, outputs):
    return net("MatMulFusion", x, net.weights(inputs, outputs), net.weights(outputs))


def encoder(net, x):
    """A layer of a transformer: attention and two products, each with its residual and normalization."""

    def heads(y, *order):
        return net.transpose(net.reshape(y, -1, TOKENS, HEADS, WIDTH // HEADS), *order)

    query, key, value = (dense(net, x, WIDTH, WIDTH) for _ in range(3))
    scores = net("MatMulFusion", heads(query, 0, 2, 1, 3), heads(key, 0, 2, 3, 1))
    weights = net("Softmax", net("MulFusion", scores, net.constant(0.5)), axis=[-1])
    mixed = net.transpose(net("MatMulFusion", weights, heads(value, 0, 2, 1, 3)), 0, 2, 1, 3)
    x = normal(net, net("AddFusion", x, dense(net, net.reshape(mixed, -1, TOKENS, WIDTH), WIDTH, WIDTH)))
    inner = net.activation(dense(net, x, WIDTH, 2 * WIDTH), "RELU")
    return normal(net, net("AddFusion", x, dense(net, inner, 2 * WIDTH, WIDTH)))


def place(net, x, index, axis=1):
    return net("Gather", x, net.constant(index, np.int32), net.constant(axis, np.int32))


def masked(net, x, index):
    """The same by a slice that takes the axis away."""
    begin, end, stride = (net.integers(*v) for v in ((0, index), (0, index + 1), (1, 1)))
    return net("StridedSlice", x, begin, end, stride, begin_mask=1, end_mask=1, shrink_axis_mask=2)


def shapes(model, kind):
    return [
        list(model.allTensors[int(n.outputIndex[0])].dims) for n in model.nodes if n.primitive.kind == kind
    ]


@pytest.mark.parametrize("index", [0, 3, -1, [0], [-2]])
def test_one_token_needs_one_row_of_all_but_keys_and_values(index):
    net = Net()
    model = check(
        net, net("Abs", place(net, encoder(net, net.input(2, TOKENS, WIDTH)), index)), RULE, tolerance=1e-5
    )
    products = shapes(model, "MatMulFusion")
    whole = [s for s in products if TOKENS in s[:-1]]
    assert len(products) == 8 and whole == [[2, TOKENS, WIDTH]] * 2
    assert shapes(model, "LayerNormFusion") == [[2, 1, WIDTH]] * 2
    assert kinds(model).count("StridedSlice") == 1 and "Gather" not in kinds(model)


def test_a_slice_that_takes_its_axis_away_is_one_place():
    net = Net()
    model = check(net, masked(net, encoder(net, net.input(2, TOKENS, WIDTH)), 4), RULE, tolerance=1e-5)
    assert shapes(model, "LayerNormFusion") == [[2, 1, WIDTH]] * 2 and kinds(model)[-1] == "Squeeze"


def test_nodes_keep_their_names():
    net = Net()
    model = net.model(place(net, encoder(net, net.input(2, TOKENS, WIDTH)), 0))
    before = {n.name: n.primitive.kind for n in model.nodes}
    optimise.run(model, only(RULE))
    after = {n.name: n.primitive.kind for n in model.nodes}
    (slice_name,) = after.keys() - before.keys()
    assert after.pop(slice_name) == "StridedSlice"
    changed = {n: kind for n, kind in after.items() if kind != before[n]}
    assert list(changed.values()) == ["Squeeze"]


def test_two_layers_and_two_readers():
    """The second layer is cut, the first one makes all rows, which the second reads."""
    net = Net()
    first = encoder(net, net.input(1, TOKENS, WIDTH))
    model = check(net, place(net, encoder(net, first), 0), RULE, tolerance=1e-5)
    assert shapes(model, "LayerNormFusion") == [[1, TOKENS, WIDTH]] * 2 + [[1, 1, WIDTH]] * 2


def test_what_another_node_needs_whole_stays_whole():
    net = Net()
    x = encoder(net, net.input(1, TOKENS, WIDTH))
    model = check(net, [place(net, net.activation(x, "TANH"), 0), net("Neg", x)], RULE, tolerance=1e-5)
    assert shapes(model, "Activation")[-1] == [1, 1, WIDTH]
    assert shapes(model, "LayerNormFusion") == [[1, TOKENS, WIDTH]] * 2


def test_different_parts_of_what_both_inputs_read():
    """A row and a column: what both are cut of is made whole."""
    net = Net()
    x = net.activation(net.input(20, 20), "TANH")
    model = check(net, place(net, net("MulFusion", x, net.transpose(x, 1, 0)), 3, 0), RULE)
    assert shapes(model, "Activation") == [[20, 20]] and shapes(model, "MulFusion") == [[1, 20]]
    assert kinds(model).count("StridedSlice") == 2


@pytest.mark.parametrize("batch", [1, 3])
def test_rows_of_a_product_whose_batch_is_repeated(batch):
    net = Net()
    rows = net.activation(net.input(batch, 6, 5), "TANH")
    model = check(net, place(net, net("MatMulFusion", rows, net.input(3, 5, 7)), 2), RULE, tolerance=1e-5)
    assert shapes(model, "StridedSlice") == shapes(model, "Activation") == [[batch, 1, 5]]


def test_two_slices_for_one_do_not_pay_for_a_small_sum():
    net = Net()
    x, y = net.input(2, 3, 4), net.input(2, 3, 4)
    check(net, place(net, net("AddFusion", x, y), 0), RULE, fires=0)


@pytest.mark.parametrize("axis, fires", [(1, 1), (2, 0)])
def test_a_normalized_axis_is_not_cut(axis, fires):
    net = Net()
    check(
        net, place(net, normal(net, net.input(2, TOKENS, WIDTH)), 1, axis), RULE, fires=fires, tolerance=1e-5
    )


def test_places_that_are_not_known_stay():
    net = Net()
    index = net.input(dtype=np.int32)
    y = net("Gather", encoder(net, net.input(1, TOKENS, WIDTH)), index, net.constant(1, np.int32))
    model = net.model(y)
    assert optimise.run(model, only(RULE)).fired[RULE] == 0


def opened(model, axis):
    """The model with an open axis of the input and of what is made of it."""
    for tensor in model.allTensors:
        if tensor.nodeType == 2:
            tensor.dims = [-1 if i == axis else n for i, n in enumerate(tensor.dims)]
    return model


@pytest.mark.parametrize("batch", [1, 3])
def test_an_open_batch_stays_open(batch):
    net = Net()
    model = opened(net.model(place(net, encoder(net, net.input(2, TOKENS, WIDTH)), 0)), 0)
    after = model.copy()
    assert optimise.run(after, only(RULE)).fired[RULE] == 1
    assert shapes(after, "LayerNormFusion") == [[-1, 1, WIDTH]] * 2
    for each in (model, after):
        each.allTensors[int(each.inputIndex[0])].dims = [batch, TOKENS, WIDTH]
    (x,) = values(model)
    agree(answers(model, x), answers(after, x), 1e-5)


def test_a_place_from_the_end_of_an_open_axis_stays():
    net = Net()
    y = place(net, net.activation(net.input(2, TOKENS, WIDTH), "TANH"), -1)
    model = opened(net.model(y), 1)
    assert optimise.run(model, only(RULE)).fired[RULE] == 0
