"""Rules of optimise/products.py and optimise/reductions.py, and where they leave the nodes alone."""

from __future__ import annotations

import pytest

from .small_models import Net, check, kinds


def product(net, x, depth, outputs, bias=False, turned=False, kind="MatMulFusion", **attributes):
    full = kind == "FullConnection"
    weights = net.weights(*((outputs, depth) if turned or full else (depth, outputs)))
    flags = dict(has_bias=bias) if full else dict(transpose_b=turned)
    return net(kind, x, weights, *([net.weights(outputs)] if bias else []), **flags, **attributes)


KINDS = {"MatMulAddFusion": "MatMulFusion", "FullconnectedAddFusion": "FullConnection"}


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("rule", KINDS)
def test_a_bias(rule, bias):
    net = Net()
    y = net("AddFusion", net.weights(3), product(net, net.input(4, 5), 5, 3, bias, kind=KINDS[rule]))
    assert kinds(check(net, y, rule)) == [KINDS[rule]]


def test_a_bias_behind_a_reshape():
    net = Net()
    y = net.reshape(product(net, net.input(6, 5), 5, 3), 2, 3, 3)
    assert kinds(check(net, net("AddFusion", y, net.weights(3)), "MatMulAddFusion")) == [
        "MatMulFusion",
        "Reshape",
    ]


@pytest.mark.parametrize(
    "neighbour", ["shape", "activation", "read twice", "output", "no constant", "reshape"]
)
def test_what_is_no_bias(neighbour):
    net = Net()
    kind = "RELU" if neighbour == "activation" else "NO_ACTIVATION"
    y = product(net, net.input(6, 5), 5, 3, activation_type=kind)
    moved = net.reshape(y, 3, 6) if neighbour == "reshape" else y
    shape = {"shape": (6, 3), "reshape": (6,)}.get(neighbour, (3,))
    added = net.input(3) if neighbour == "no constant" else net.weights(*shape)
    more = {"read twice": [net("Neg", y)], "output": [y]}.get(neighbour, [])
    check(net, [net("AddFusion", moved, added), *more], "MatMulAddFusion", fires=0)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_a_factor(turned, bias):
    net = Net()
    y = net("MulFusion", product(net, net.input(2, 4, 5), 5, 3, bias, turned), net.weights(1, 3))
    assert kinds(check(net, y, "MatMulMulFusion")) == ["MatMulFusion"]


@pytest.mark.parametrize("shape", [(4, 1), (2, 4, 3), (1, 1, 1, 3)])
def test_what_is_no_factor(shape):
    net = Net()
    y = net("MulFusion", product(net, net.input(2, 4, 5), 5, 3), net.weights(*shape))
    check(net, y, "MatMulMulFusion", fires=0)


@pytest.mark.parametrize("kind", ["MatMulFusion", "FullConnection"])
def test_two_products(kind):
    net = Net()
    y = product(net, net.input(4, 5), 5, 9, bias=True, kind=kind)
    y = product(net, y, 9, 3, kind=kind, activation_type="RELU")
    assert kinds(check(net, y, "FullConnectedFusion")) == [kind]


@pytest.mark.parametrize("neighbour", ["activation", "read twice", "more work"])
def test_two_products_stay_two(neighbour):
    net = Net()
    kind = "RELU" if neighbour == "activation" else "NO_ACTIVATION"
    y = product(net, net.input(4, 5), 5, 2 if neighbour == "more work" else 9, activation_type=kind)
    z = product(net, y, 2 if neighbour == "more work" else 9, 9 if neighbour == "more work" else 3)
    check(net, [z, *([net("Neg", y)] if neighbour == "read twice" else [])], "FullConnectedFusion", fires=0)


@pytest.mark.parametrize("side", [0, 1])
def test_a_transpose_becomes_a_flag(side):
    net = Net()
    a, b = net.input(2, 4, 4), net.input(2, 4, 4)
    turned = net.transpose((a, b)[side], 0, 2, 1)
    y = net("MatMulFusion", *((turned, b) if side == 0 else (a, turned)), transpose_b=True)
    assert kinds(check(net, y, "TransposeMatMulFusion")) == ["MatMulFusion"]


def test_a_transpose_of_rows_too_moves_them_whole():
    net = Net()
    keys = net.transpose(net.input(2, 5, 3, 4), 0, 2, 3, 1)
    model = check(net, net("MatMulFusion", net.input(2, 3, 5, 4), keys), "TransposeMatMulFusion")
    assert kinds(model) == ["Transpose", "MatMulFusion"] and model.nodes[1].primitive.transpose_b


@pytest.mark.parametrize("order", [(1, 0, 2), (0, 1, 2)])
def test_another_transpose_stays(order):
    net = Net()
    y = net("MatMulFusion", net.input(4, 4, 4), net.transpose(net.input(4, 4, 4), *order))
    check(net, y, "TransposeMatMulFusion", fires=0)


@pytest.mark.parametrize("order", [(0, 3, 1, 2), (0, 2, 1, 3), (0, 2, 3, 1)])
@pytest.mark.parametrize("turned", [False, True])
def test_a_transpose_of_rows_turns_the_matrix(order, turned):
    net = Net()
    rows = net.reshape(net.transpose(net.input(5, 2, 3, 4), *order), 5, 24)
    y = product(net, rows, 24, 6, bias=True, turned=turned, activation_type="RELU")
    assert kinds(check(net, y, "TransposeMatMulFusion")) == ["Reshape", "MatMulFusion"]


@pytest.mark.parametrize("neighbour", ["batch", "rank", "no constant", "transpose read", "rows read"])
def test_a_transpose_of_other_rows_stays(neighbour):
    net = Net()
    turn = net.transpose(net.input(4, 2, 3, 4), *((3, 0, 1, 2) if neighbour == "batch" else (0, 3, 1, 2)))
    rows = net.reshape(turn, *((4, 4, 6) if neighbour == "rank" else (4, 24)))
    if neighbour == "no constant":
        y = net("MatMulFusion", rows, net.input(24, 6))
    else:
        y = product(net, rows, 6 if neighbour == "rank" else 24, 6)
    more = {"transpose read": [net("Neg", turn)], "rows read": [net("Neg", rows)]}.get(neighbour, [])
    check(net, [y, *more], "TransposeMatMulFusion", fires=0)


def test_a_tile_of_the_batch():
    net = Net()
    tiled = net("TileFusion", net.input(1, 4, 5), net.integers(3, 1, 1), dims=[0, 1, 2])
    assert kinds(check(net, net("MatMulFusion", net.input(3, 2, 4), tiled), "TileMatMulFusion")) == [
        "MatMulFusion"
    ]


@pytest.mark.parametrize("left, times", [((3, 2, 8), (3, 2, 1)), ((1, 2, 4), (3, 1, 1))])
def test_another_tile_stays(left, times):
    net = Net()
    tiled = net("TileFusion", net.input(1, 4, 5), net.integers(*times), dims=[0, 1, 2])
    check(net, net("MatMulFusion", net.input(*left), tiled), "TileMatMulFusion", fires=0)


def test_rows_put_together_and_taken_apart():
    net = Net()
    y = product(net, net.reshape(net.input(2, 3, 4), 6, 4), 4, 5)
    assert kinds(check(net, net.reshape(y, 2, 3, 5), "TensorDotFusion")) == ["MatMulFusion"]


@pytest.mark.parametrize("shape", [(6, 5, 1), (30,), (2, 15)])
def test_rows_taken_apart_otherwise(shape):
    net = Net()
    y = product(net, net.reshape(net.input(2, 3, 4), 6, 4), 4, 5)
    check(net, net.reshape(y, *shape), "TensorDotFusion", fires=0)


@pytest.mark.parametrize("parts", ["gather", "slice", "unstack", "split"])
def test_a_product_for_each_of_a_batch(parts):
    net = Net()
    x = net.input(3, 2, 4)
    if parts == "gather":
        rows = [net("Gather", x, net.constant(i, "int32"), net.constant(0, "int32")) for i in range(3)]
    elif parts == "unstack":
        rows = net("Unstack", x, results=3, axis=0)
    elif parts == "split":
        rows = net("Split", x, results=3, axis=0, output_num=3, size_splits=[1, 1, 1])
        rows = [net("Squeeze", r, axis=[0]) for r in rows]
    else:
        rows = [net.reshape(net.slice(x, (i, 0, 0), (i + 1, 2, 4)), 2, 4) for i in range(3)]
    y = net("Stack", *(product(net, r, 4, 5) for r in rows), axis=0)
    model = check(net, y, "BatchMatMulFusion")
    assert kinds(model)[-1] == "MatMulFusion" and "Stack" not in kinds(model)


@pytest.mark.parametrize("order, axis", [((1, 0), 0), ((0, 0), 0), ((0, 1), 1)])
def test_another_stack_of_products_stays(order, axis):
    net = Net()
    x = net.input(2, 2, 4)
    rows = [net("Gather", x, net.constant(i, "int32"), net.constant(0, "int32")) for i in order]
    y = net("Stack", *(product(net, r, 4, 5) for r in rows), axis=axis)
    check(net, y, "BatchMatMulFusion", fires=0)


# ---- reductions


@pytest.mark.parametrize("mode", ["ReduceMean", "ReduceSum", "ReduceMax"])
def test_a_reduction_of_a_reshape(mode):
    net = Net()
    y = net.reduce(net.reshape(net.input(2, 3, 4, 5), 2, 12, 5), 1, mode=mode, keep_dims=False)
    assert kinds(check(net, y, "ReshapeReduceFusion")) == ["ReduceFusion"]


@pytest.mark.parametrize(
    "shape, axis, keep", [((6, 4, 5), 0, True), ((2, 4, 3, 5), 1, False), ((2, 12, 5), 1, True)]
)
def test_another_reduction_of_a_reshape_stays(shape, axis, keep):
    net = Net()
    y = net.reduce(net.reshape(net.input(2, 3, 4, 5), *shape), axis, keep_dims=keep)
    check(net, y, "ReshapeReduceFusion", fires=0)


@pytest.mark.parametrize("mode", ["ReduceSum", "ReduceMean"])
def test_a_weighted_sum(mode):
    net = Net()
    y = net.reduce(net("MulFusion", net.weights(5), net.input(2, 3, 5)), -1, mode=mode)
    assert kinds(check(net, y, "MulReduceFusion")) == ["MatMulFusion"]


@pytest.mark.parametrize(
    "mode, axis, shape", [("ReduceMax", 2, (5,)), ("ReduceSum", 1, (5,)), ("ReduceSum", 2, (3, 5))]
)
def test_another_weighted_reduction_stays(mode, axis, shape):
    net = Net()
    y = net.reduce(net("MulFusion", net.input(2, 3, 5), net.weights(*shape)), axis, mode=mode)
    check(net, y, "MulReduceFusion", fires=0)


def test_stacked_reductions():
    net = Net()
    y = net("Stack", *(net.reduce(net.input(2, n, 5), 1, keep_dims=False) for n in (3, 4)), axis=1)
    assert kinds(check(net, y, "ReduceStackFusion")) == ["ReduceFusion", "ReduceFusion", "Concat"]


@pytest.mark.parametrize("axes, stack", [((1, 1), 0), ((1, 0), 1), ((0, 0), 2)])
def test_reductions_stacked_otherwise_stay(axes, stack):
    net = Net()
    y = net("Stack", *(net.reduce(net.input(3, 3, 3), a, keep_dims=False) for a in axes), axis=stack)
    check(net, y, "ReduceStackFusion", fires=0)


def spliced(net, x, context, rows):
    last = net.tensors[x].dims[1] - 1
    forward = [min(max(r + offset, 0), last) for r in rows for offset in context]  # borders are repeated
    return net("Splice", x, context=context, forward_indexes=forward, output_dim=3 * len(context))


@pytest.mark.parametrize("context", [[-1, 0, 1], [-3, 0], [0], [1, 2, 4]])
@pytest.mark.parametrize(("bias", "turned"), [(False, True), (True, False)])
def test_rows_with_their_neighbours(context, bias, turned):
    net = Net()
    x = net.input(2, 7, 3)
    rows = range(-min(context), 7 - max(context))
    y = product(net, spliced(net, x, context, rows), 3 * len(context), 4, bias, turned)
    model = check(net, y, "AffineFusion")
    assert kinds(model) == ["Affine"]


@pytest.mark.parametrize("act", ["RELU", "RELU6"])
def test_an_activation_of_rows_with_their_neighbours(act):
    net = Net()
    x = net.input(1, 6, 3)
    y = net("Affine", x, net.weights(6, 4), context=[-1, 1], output_dim=6)
    model = check(net, net.activation(y, act), "AffineActivationFusion")
    assert kinds(model) == ["Affine"] and model.nodes[0].primitive.activation_type.name == act


@pytest.mark.parametrize("neighbour", ["borders", "a row is left out", "read twice", "no constant"])
def test_what_is_no_affine(neighbour):
    net = Net()
    x, more = net.input(1, 6, 3), []
    rows = {"borders": range(6), "a row is left out": [1, 2, 4]}.get(neighbour, range(1, 5))
    y = spliced(net, x, [-1, 0, 1], rows)
    if neighbour == "read twice":
        more = [net("Neg", y)]
    y = net("MatMulFusion", y, net.input(9, 4) if neighbour == "no constant" else net.weights(9, 4))
    check(net, [y, *more], "AffineFusion", fires=0)
    net = Net()
    y = net("Affine", net.input(1, 6, 3), net.weights(3, 4), context=[0], output_dim=3)
    check(net, [net.activation(y, "RELU"), y], "AffineActivationFusion", fires=0)
