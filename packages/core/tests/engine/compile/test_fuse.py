"""The pass `fuse`: compiled equals eager, and what becomes one pass over memory."""

import itertools

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, config, nn, ops
from mycelia.backends import registry
from mycelia.engine.capture import control
from mycelia.engine.capture.trace import Trace, type_of
from mycelia.engine.compile.passes import fuse, optimize, pipeline
from mycelia.ir import verify

rng = np.random.default_rng(7)


def tensor(*shape):
    return Tensor(rng.standard_normal(shape).astype(np.float32))


def leaves(result):
    return [x for r in result for x in leaves(r)] if isinstance(result, (tuple, list)) else [result]


def assert_compiled_equals_eager(function, *args, rtol=1e-5, atol=2e-6):
    for found, want in zip(leaves(ms.jit(function)(*args)), leaves(function(*args)), strict=True):
        np.testing.assert_allclose(found.asnumpy(), want.asnumpy(), rtol, atol)


def with_gradient(function, *args, **tolerances):
    """Checks a function to a scalar and its gradients."""
    assert_compiled_equals_eager(function, *args)
    positions = tuple(range(len(args)))
    assert_compiled_equals_eager(ms.grad(function, positions), *args, **tolerances)


def activations(x):
    functions = (
        ops.gelu, ops.silu, ops.relu6, ops.hardswish, ops.softplus, ops.elu, ops.mish, ops.abs, ops.square,
        ops.leaky_relu, ops.hardsigmoid, ops.sigmoid, ops.tanh, ops.erf, ops.hardtanh, ops.logsigmoid,
        lambda x: ops.gelu(x, approximate="tanh"), lambda x: ops.clip(x, -0.5, 0.5), lambda x: x**2,
        lambda x: x**3, lambda x: ops.log1p(ops.abs(x)), lambda x: ops.exp(x) / 2, ops.relu,
    )  # fmt: skip
    total = x
    for function in functions:
        total = total + function(x * 1.5) * 0.25
    return total


def layer_norm(x, gain, bias):
    centred = x - x.mean(-1, keep_dims=True)
    variance = ops.mean(centred * centred, -1, True)
    return centred * ops.rsqrt(variance + 1e-5) * gain + bias


def softmax(x):
    e = ops.exp(x - ops.amax(x, -1, True))
    return e / ops.sum(e, -1, True)


def gru(x, h, w, u, b):
    n = h.shape[1]
    gx, gh = ops.matmul(x, w) + b, ops.matmul(h, u)
    reset = ops.sigmoid(gx[:, :n] + gh[:, :n])
    update = ops.sigmoid(gx[:, n : 2 * n] + gh[:, n : 2 * n])
    new = ops.tanh(gx[:, 2 * n :] + reset * gh[:, 2 * n :])
    return (1 - update) * new + update * h


@pytest.mark.parametrize("shape", [(5, 7), (1,), (), (61, 67)])
def test_activations(shape):
    with_gradient(lambda x: activations(x).sum(), tensor(*shape))


def test_layer_norm_by_hand():
    with_gradient(
        lambda x, g, b: (layer_norm(x, g, b) ** 2).sum(), tensor(33, 65), tensor(65), tensor(65), atol=1e-4
    )


def test_softmax_by_hand():
    with_gradient(lambda x, y: (softmax(x) * y).sum(), tensor(17, 41), tensor(17, 41))


def test_gru_cell_by_hand():
    shapes = ((8, 32), (8, 64), (32, 192), (64, 192), (192,))
    with_gradient(lambda *args: (gru(*args) ** 2).sum(), *(tensor(*s) for s in shapes), atol=1e-4)


@pytest.mark.parametrize("loss", [nn.MSELoss, nn.L1Loss, nn.SmoothL1Loss, nn.BCEWithLogitsLoss, nn.HuberLoss])
def test_losses(loss):
    cell = loss()
    with_gradient(lambda x, y: cell(x, ops.sigmoid(y)), tensor(31, 13), tensor(31, 13))


def test_broadcasts_of_all_kinds():
    def function(x, row, column, plane, number):
        return ops.where(x > row, (x + column) * plane, x - number) + row * column

    args = tensor(6, 5, 4, 3), tensor(3), tensor(5, 1, 1), tensor(1, 1, 4, 3), tensor()
    assert_compiled_equals_eager(function, *args)


def test_sums_of_columns_and_rows():
    def function(x, y):
        z = x * y
        return z.sum(0), z.mean((0, 1)), ops.sum(z, 2, True), ops.amax(z, -1), z.sum(), ops.mean(z, (1, 2))

    assert_compiled_equals_eager(function, tensor(12, 9, 31), tensor(31), atol=2e-5)


def test_nothing_to_do_is_done():
    assert_compiled_equals_eager(lambda x, y: (ops.tanh(x + y) * 2, (x * y).sum()), tensor(0, 4), tensor(4))


def optimizers(parameters):
    yield nn.Adam(parameters, 1e-2)
    yield nn.AdamWeightDecay(parameters, 1e-2, weight_decay=0.1)
    yield nn.Momentum(parameters, 1e-2, 0.9)
    yield nn.SGD(parameters, 1e-2, momentum=0.9)


@pytest.mark.parametrize("number", range(4))
def test_optimizers(number):
    def train(compiled):
        net = nn.SequentialCell(nn.Dense(6, 5), nn.Tanh(), nn.Dense(5, 1))
        for parameter, seed in zip(net.trainable_params(), range(9)):
            values = np.random.default_rng(seed).standard_normal(parameter.shape)
            parameter.set_data(Tensor(values.astype(np.float32)))
        optimizer = list(optimizers(net.trainable_params()))[number]
        gradient = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), None, optimizer.parameters)
        x = Tensor(np.random.default_rng(9).standard_normal((8, 6)).astype(np.float32))

        def step():
            value, gradients = gradient(x)
            optimizer(gradients)
            return value

        run = ms.jit(step) if compiled else step
        return [run().asnumpy() for _ in range(4)] + [p.asnumpy() for p in net.trainable_params()]

    for found, want in zip(train(True), train(False), strict=True):
        np.testing.assert_allclose(found, want, 1e-5, 1e-6)


# ---- what becomes one --------------------------------------------------------------------------------------


def fused_graph(function, *args):
    """The graph of `function` after the passes, then fused."""
    trace = Trace("main")
    with trace:
        result = control.callee(function)(*(trace.parameter(type_of(t)) for t in args))
        trace.graph.outputs = [trace.value_of(r) for r in leaves([result])]
    trace.close()
    graph = trace.graph
    optimize(graph)
    fuse.run(graph, registry.target())
    verify(graph)
    return graph


def ops_of(graph):
    return [node.op.name for node in graph.nodes]


def test_a_chain_with_its_mean_is_one_pass():
    graph = fused_graph(lambda x, y: ((ops.tanh(x + y) * 2 - x) ** 2).mean(), tensor(8, 9), tensor(9))
    assert ops_of(graph) == ["fused_map"]


def test_a_layer_norm_by_hand_is_one_pass():
    graph = fused_graph(layer_norm, tensor(8, 9), tensor(9), tensor(9))
    assert ops_of(graph) == ["fused_map"]


def test_a_group_never_waits_for_itself():
    def function(x, w):
        first = ops.tanh(x) * 2
        return first + ops.matmul(first, w)  # the sum needs a product that needs the group

    graph = fused_graph(function, tensor(4, 4), tensor(4, 4))
    assert ops_of(graph) == ["fused_map", "mat_mul", "add"]


def test_a_chain_is_not_cut_where_its_other_input_comes_late():
    def function(x, w):
        late = ops.matmul(ops.matmul(x, w), w)
        return ops.relu(ops.exp(x) * 2 + late)

    graph = fused_graph(function, tensor(4, 4), tensor(4, 4))
    assert ops_of(graph).count("fused_map") == 1
    assert len(graph.nodes) == 3


def test_a_reduction_joins_across_a_reshape():
    def function(x, y):
        product = ops.tanh(x) * y
        return product.reshape((12, 5)).sum(0), product.reshape((60,)).sum()

    args = tensor(3, 4, 5), tensor(5)
    assert ops_of(fused_graph(function, *args)) == ["fused_map"]
    assert_compiled_equals_eager(function, *args)


def test_an_op_alone_keeps_its_kernel():
    graph = fused_graph(lambda x, w: ops.matmul(ops.tanh(x), w), tensor(4, 4), tensor(4, 4))
    assert ops_of(graph) == ["tanh", "mat_mul"]


def test_long_chains_are_cut_at_the_limits():
    def function(x):
        for _ in range(200):
            x = ops.tanh(x) + 0.1
        return x

    graph = fused_graph(function, tensor(5))
    assert set(ops_of(graph)) == {"fused_map"}
    assert 3 <= len(graph.nodes) <= 16
    assert_compiled_equals_eager(function, tensor(5))


def test_the_pass_can_be_switched_off():
    ms.set_context(passes="-fuse")
    try:
        assert "fuse" not in [step.name for step in pipeline("lower")]
    finally:
        config.reset("passes")


# ---- sizes say nothing about which axis is meant -----------------------------------------------------------

EQUAL_SIZES = [(3, 3), (1, 3), (3, 1), (1, 1), (4, 4, 4), (2, 1, 2), (1, 2, 2), (2, 2, 1)]
REDUCTIONS = [ops.sum, ops.mean, ops.amax, ops.amin]


def uses_of_reductions(x, y, reduce, axis, kept):
    """What may follow a reduction, in ways that broadcast wherever all sizes are equal."""
    found = reduce(x * 1.5, axis, kept)
    smooth = ops.tanh(found) + 0.5
    results = [x - found, ops.exp(x * 0.5 - smooth), found, smooth * y.mean()]
    results += [smooth * y.reshape(-1)[: y.shape[-1]], x * found * y, (x + smooth).sum(0)]
    for place in range(len(found.shape) + 1):
        raised = ops.expand_dims(found, place)
        results += [raised * 2.0, ops.relu(raised) + x]
    return tuple(results)


@pytest.mark.parametrize("shape", EQUAL_SIZES, ids=str)
def test_reductions_broadcast_along_the_axes_that_numpy_says(shape):
    x, y = tensor(*shape), tensor(*shape)
    rank = len(shape)
    axes = [a for n in range(1, rank + 1) for a in itertools.combinations(range(rank), n)]
    axes += [-1, tuple(a - rank for a in range(1, rank))] if rank > 1 else [-1]
    for number, axis in enumerate(axes):
        for kept in (False, True):
            reduce = REDUCTIONS[(number + kept) % len(REDUCTIONS)]

            def function(x, y, reduce=reduce, axis=axis, kept=kept):
                return uses_of_reductions(x, y, reduce, axis, kept)

            def scalar(x, y, function=function):
                return sum((value * value).mean() for value in function(x, y))

            assert_compiled_equals_eager(function, x, y)
            assert_compiled_equals_eager(ms.grad(scalar, (0, 1)), x, y, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(5, 1), (1, 5, 1), (4, 1, 1), (1,), (4, 5, 1)], ids=str)
def test_values_of_rows_meet_what_broadcasts_against_them(shape):
    def function(x, w):
        rows = x.sum(-1, keepdims=True) * w
        others = ops.amax(x, -1, True) - ops.broadcast_to(w, (4, 5, 1))
        return x * rows, rows, ops.tanh(others), others + x

    assert_compiled_equals_eager(function, tensor(4, 5, 6), tensor(*shape))


@pytest.mark.parametrize("size", [3, 64, 300])
@pytest.mark.parametrize("threads", [1, 3])
def test_row_results_may_take_the_place_of_what_is_read_along_columns(size, threads):
    def function(x, v):
        return ops.matmul((x * ops.sort(v)[0] + 1.0).sum(1), x)

    with config.context(runtime_num_threads=threads):
        assert_compiled_equals_eager(function, tensor(size, size), tensor(size), rtol=1e-4, atol=1e-3)
