"""Identities of graphs: what each rule leaves, and that it leaves the very bits, those of gradients too."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, config, ops
from mycelia.engine.capture import control
from mycelia.engine.capture.trace import Trace, type_of
from mycelia.engine.compile.passes import cse, dce, simplify
from mycelia.ir import evaluate, verify
from mycelia.ir.walk import all_nodes, clone

SPECIAL = np.array([0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan, 1e-38, 3e38, -7.25, 0.1, 9.0], np.float32)
X = Tensor(SPECIAL)
Y = Tensor(SPECIAL[::-1].copy())
B = Tensor(SPECIAL > 0)
M = Tensor(SPECIAL.reshape(3, 4))
E = Tensor(np.arange(12, dtype=np.float32).reshape(2, 3, 1, 2))
HALF = Tensor(np.array([0.5, -1.25, 3.0], np.float16))
I = Tensor(np.array([3, -4, 2**31 - 1, -(2**31)], np.int32))
U = Tensor(np.array([3, 0, 255], np.uint8))


def captured(function, *tensors):
    trace = Trace("main")
    with trace:
        result = control.callee(function)(*(trace.parameter(type_of(t)) for t in tensors))
        results = result if isinstance(result, (tuple, list)) else (result,)
        trace.graph.outputs = [trace.value_of(r) for r in results]
    trace.close()
    return trace.graph


def assert_same_bits(a, b):
    """Any NaN equals any other."""
    assert a.dtype == b.dtype and a.shape == b.shape
    np.testing.assert_array_equal(a, b)
    if a.dtype.kind == "f":
        known = ~np.isnan(a)
        np.testing.assert_array_equal(np.signbit(a[known]), np.signbit(b[known]))


def simplified(run, function, *tensors):
    """The ops that are left, after checking that results have the same bits."""
    graph = captured(function, *tensors)
    before = clone(graph)
    run(graph)
    cse.run(graph)
    dce.run(graph)
    verify(graph)
    for a, b in zip(evaluate(before, tensors), evaluate(graph, tensors), strict=True):
        assert_same_bits(a.asnumpy(), b.asnumpy())
    return [node.op.name for _, node in all_nodes(graph)]


CASES = [
    # choices that are known
    (lambda x, y: ops.where(B, x, y), [X, Y], ["where"]),
    (lambda x: ops.where(Tensor(True), x[:1], x), [X], ["strided_slice", "where"]),  # it broadcasts
    # batch axes of products
    (lambda x, y: ops.einsum("bhid,bhjd->bhij", x, y), [E, E], ["batch_matmul"]),
    (
        lambda x, y: ops.bmm(x.reshape(6, 1, 2), y.reshape(6, 2, 1)).reshape(2, 3, 1, 1), [E, E],
        ["reshape", "reshape", "batch_matmul", "reshape"],
    ),
    # neutral elements
    (lambda x: x - 0.0, [X], []),
    (lambda x: x + -0.0, [X], []),
    (lambda x: -0.0 + x, [X], []),
    (lambda x: x + 0.0, [X], ["add"]),  # turns -0.0 into 0.0
    (lambda x: x - -0.0, [X], ["sub"]),
    (lambda x: x + 0, [I], []),
    (lambda x: x * 0.0, [X], ["mul"]),
    (lambda x: x**1.0, [X], []),
    # repetition
    (lambda x: ops.relu(ops.relu(x)), [X], ["relu"]),
    (lambda x: ops.relu6(ops.relu6(x)), [X], ["relu6"]),
    (lambda x: abs(abs(x)), [X], ["abs"]),
    (lambda x: ops.floor(ops.floor(x)), [X], ["floor"]),
    (lambda x, b: ops.where(b, x, x), [X, B], []),
    # signs and powers
    (lambda x, y: x + -y, [X, Y], ["sub"]),
    (lambda x, y: -x + y, [X, Y], ["sub"]),
    (lambda x, y: x - -y, [X, Y], ["add"]),
    (lambda x, y: -x * -y, [X, Y], ["mul"]),
    (lambda x, y: -x / -y, [X, Y], ["div"]),
    (lambda x: x * -1.0, [X], ["neg"]),
    (lambda x: abs(-x), [U], ["neg", "abs"]),
    (lambda x: ops.square(-x), [X], ["square"]),
    (lambda x: x**2, [X], ["square"]),
    (lambda x: x / 8.0, [X], ["mul"]),
    (lambda x: x / -0.25, [X], ["mul"]),
    (lambda x: x / 3.0, [X], ["div"]),
    (lambda x: x / 2.0**120, [X], ["div"]),
    (lambda x, y: ops.logical_not(ops.equal(x, y)), [X, Y], ["not_equal"]),
    (lambda x, y: ops.logical_not(x < y), [X, Y], ["less", "logical_not"]),
    # types
    (lambda x: x.astype("float32").astype("float16"), [HALF], []),
    (lambda x: x.astype("float32").astype("int32"), [HALF], ["cast", "cast"]),
    (lambda x: x.astype("float16").astype("float32"), [X], ["cast", "cast"]),
    # shapes
    (lambda x: x.reshape(2, 6).expand_dims(1).squeeze(1).reshape(3, 4), [X], ["reshape"]),
    (lambda x: x.expand_dims(0).squeeze(0), [M], []),
    (lambda x: x.transpose(1, 0).transpose(1, 0), [M], []),
    (lambda x: x.reshape(3, 2, 2).transpose(1, 2, 0).transpose(1, 0, 2), [X], ["reshape", "transpose"]),
    (lambda x: ops.transpose(x, (0, 1)), [M], []),
    # joining and cutting
    (lambda x: ops.cat((x,), 0), [M], []),
    (lambda x: ops.cat(ops.split(x, 2, 1), -1), [M], []),
    (lambda x: ops.cat(ops.split(x, 2, 1)[::-1], 1), [M], ["split", "concat"]),
    (lambda x: ops.split(ops.cat((x, x), 0), 3, 0), [M], []),
    (lambda x: ops.split(ops.cat((x, x), 0), 2, 0), [M], ["concat", "split"]),
    (lambda x: ops.split(x, 4, 1), [M], []),
]  # fmt: skip

ON_DEVICES = [
    (lambda x: ops.broadcast_to(ops.broadcast_to(x, (2, 3, 4)), (5, 2, 3, 4)), [M], ["broadcast_to"]),
    (lambda x, y: ops.where(Tensor(True), x, y), [X, Y], []),
    (lambda x, y: ops.where(Tensor(np.zeros(12, bool)), x, y), [X, Y], []),
    (lambda x: ops.maximum(x, x), [X], []),
    (lambda b: ops.logical_and(b, b), [B], []),
    (lambda x: abs(-x), [X], ["abs"]),
    (lambda x: ops.square(abs(x)), [I], ["square"]),
    (lambda x: x.astype("float32").astype("float64"), [HALF], ["cast"]),
    (lambda x: x.astype("int64").astype("int32"), [I], []),
    (lambda b: b.astype("float32").astype("int32"), [B], ["cast"]),
    (lambda x: x.reshape(1, 3, 1, 4).transpose(1, 2, 3, 0), [M], ["reshape"]),
    (lambda x: x.reshape(3, 1, 4).transpose(2, 1, 0), [M], ["reshape", "transpose"]),
    (lambda x: ops.exp(x.transpose(1, 0)).transpose(1, 0), [M], ["exp"]),
    (lambda x: ops.stop_gradient(x) * 2, [X], ["mul"]),
    (lambda x, y: ops.broadcast_to(x, (4, 12)) * y, [X, Tensor(np.ones((4, 12), np.float32))], ["mul"]),
    (lambda x, y: ops.broadcast_to(x, (4, 12)) + y, [X, Y], ["broadcast_to", "add"]),
    (lambda x: x[0:3], [M], []),
    (lambda x: x[0:2], [M], ["strided_slice"]),
    (lambda x: ops.pad(x, (0, 0)), [M], []),
    (lambda x: ops.tile(x, (1, 1)), [M], []),
    (lambda x: ops.adaptive_avg_pool2d(x, (3, 4)), [Tensor(np.ones((2, 2, 3, 4), np.float32))], []),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(CASES)))
def test_rules_for_all_graphs(number):
    function, tensors, expected = CASES[number]
    assert simplified(simplify.run, function, *tensors) == expected
    assert simplified(simplify.run_device, function, *tensors) == expected


@pytest.mark.parametrize("number", range(len(CASES)))
def test_rules_for_all_graphs_leave_gradients_as_they_are(number):
    function, tensors, _ = CASES[number]
    positions = tuple(i for i, t in enumerate(tensors) if t.dtype.is_floating)
    weights = Tensor(np.linspace(-1.5, 2.5, 120, dtype=np.float32))

    def scalar_of(function):
        def scalar(*tensors):
            results = function(*tensors)
            results = results if isinstance(results, (tuple, list)) else (results,)
            return sum((r.astype("float32").reshape(-1) * weights[: r.size]).sum() for r in results)

        return scalar

    if not positions:
        return
    with np.errstate(all="ignore"):
        expected = ms.grad(scalar_of(function), positions)(*tensors)
        with config.context(passes="-lower"):
            found = ms.grad(scalar_of(ms.jit(function)), positions)(*tensors)
    for a, b in zip(found, expected, strict=True) if len(positions) > 1 else [(found, expected)]:
        assert_same_bits(a.asnumpy(), b.asnumpy())


@pytest.mark.parametrize("number", range(len(ON_DEVICES)))
def test_rules_for_lowered_graphs(number):
    function, tensors, expected = ON_DEVICES[number]
    assert simplified(simplify.run_device, function, *tensors) == expected


def test_gradient_stop_stays_where_gradients_are_to_come():
    assert simplified(simplify.run, lambda x: ops.stop_gradient(x), X) == ["stop_gradient"]
