"""ONNX's If, Loop and Scan on data: converted, and run by the runtime."""

from __future__ import annotations

import numpy as np
import pytest

from mycelia_lite.converter import ConversionError
from mycelia_lite.format import read

from .onnx_models import converted, graph, model, node

X = np.random.default_rng(7).normal(size=(3, 4)).astype(np.float32)


def test_an_if_runs_one_branch_and_reads_what_is_around_it(tmp_path):
    then = graph([node("Add", "x x", "t0"), node("Relu", "t0", "t")], {}, "t")
    inner = graph([node("Neg", "around", "n")], {}, "n")
    outer = graph([node("Mul", "around k", "m")], {}, "m", {"k": np.float32(3)})
    otherwise = graph([node("If", "d", "e", then_branch=inner, else_branch=outer)], {}, "e")
    nodes = [
        node("Sigmoid", "x", "around"),
        node("If", "c", "y0", then_branch=then, else_branch=otherwise),
        node("Sub", "y0 around", "y"),
    ]
    inputs = {"c": ("bool", ()), "d": ("bool", ()), "x": ("float32", ("n", 4))}
    run = converted(tmp_path, model(nodes, inputs, "y"))
    around = 1 / (1 + np.exp(-X))
    for c, d, expected in (
        (1, 0, np.maximum(2 * X, 0)),
        (0, 1, -around),
        (0, 0, 3 * around),
        (1, 1, np.maximum(2 * X, 0)),
    ):
        (y,) = run(np.array(bool(c)), np.array(bool(d)), X)
        np.testing.assert_allclose(y, expected - around, atol=1e-6)
    kinds = [n.primitive.kind for n in read(str(tmp_path / "m.ms")).nodes]
    assert kinds.count("Switch") == kinds.count("Call") == 2 and kinds.count("PartialFusion") == 4


def test_branches_of_different_sizes_give_what_they_give(tmp_path):
    then = graph([node("Concat", "x x", "t", axis=0)], {}, "t")
    otherwise = graph([node("ReduceMean", "x", "o", axes=[0])], {}, "o")
    nodes = [
        node("If", "c", "y0", then_branch=then, else_branch=otherwise),
        node("ReduceSum", "y0 axis", "y"),
    ]
    inputs = {"c": ("bool", (1,)), "x": ("float32", ("n", 4))}
    run = converted(tmp_path, model(nodes, inputs, "y0 y", {"axis": np.array([0])}))
    for c, expected in ((True, np.concatenate((X, X))), (False, X.mean(0, keepdims=True))):
        y0, y = run(np.array([c]), X)
        np.testing.assert_allclose(y0, expected, atol=1e-6)
        np.testing.assert_allclose(y, expected.sum(0, keepdims=True), atol=1e-5)


def body(nodes, state, outputs, weights=None):
    inputs = {"i": ("int64", ()), "going": ("bool", ()), "v": ("float32", state)}
    return graph(nodes, inputs, outputs, weights)


def test_a_loop_ends_by_count_or_condition(tmp_path):
    nodes = [
        node("Add", "v x", "v2"), node("ReduceMax", "v2", "top", keepdims=0),
        node("Less", "top limit", "on"), node("Mul", "v2 v2", "row"),
    ]  # fmt: skip
    loop = node("Loop", "m c x", "last rows", body=body(nodes, (3, 4), "on v2 row"))
    inputs = {
        "m": ("int64", ()), "c": ("bool", ()), "x": ("float32", ("n", 4)), "limit": ("float32", ()),
    }  # fmt: skip
    run = converted(tmp_path, model([loop, node("Neg", "last", "y")], inputs, "y rows"))
    x = np.abs(X)
    for most, begins, limit in (
        (3, True, 1e9),
        (100, True, 10 * x.max()),
        (0, True, 1),
        (4, False, 1),
        (1, True, 0),
    ):
        v, rows, going, n = x, [], begins, 0
        while going and n < most:
            v, n = v + x, n + 1
            going = v.max() < limit
            rows.append(v * v)
        y, stacked = run(np.array(most), np.array(begins), x, np.array(limit, np.float32))
        np.testing.assert_allclose(y, -v, rtol=1e-5)
        assert len(stacked) == len(rows)
        if rows:
            np.testing.assert_allclose(stacked, rows, rtol=1e-4)


def test_a_carried_value_may_grow(tmp_path):
    nodes = [
        node("Concat", "v x", "v2", axis=0),
        node("Identity", "going", "on"),
        node("Cast", "i", "row", to=1),
    ]
    loop = node("Loop", "m - x", "last rows", body=body(nodes, None, "on v2 row"))
    run = converted(tmp_path, model([loop], {"m": ("int64", ()), "x": ("float32", (3, 4))}, "last rows"))
    for times in (1, 2, 40, 0):
        last, rows = run(np.array(times), X)
        np.testing.assert_array_equal(last, np.tile(X, (times + 1, 1)))
        np.testing.assert_array_equal(rows, np.arange(times))


@pytest.mark.parametrize(
    ("back", "axis", "out_back", "out_axis"), [(0, 0, 0, 0), (1, 0, 0, 1), (0, 1, 1, 0), (1, 1, 1, 1)]
)
def test_a_scan_goes_over_slices(tmp_path, back, axis, out_back, out_axis):
    step = graph(
        [node("Add", "state part", "next"), node("Exp", "next", "row")],
        {"state": ("float32", (2,)), "part": ("float32", (2,))}, "next row",
    )  # fmt: skip
    scan = node(
        "Scan", "s x", "last rows", body=step, num_scan_inputs=1, scan_input_axes=[axis],
        scan_input_directions=[back], scan_output_axes=[out_axis], scan_output_directions=[out_back],
    )  # fmt: skip
    inputs = {"s": ("float32", (2,)), "x": ("float32", (None, 2) if axis == 0 else (2, None))}
    run = converted(tmp_path, model([scan], inputs, "last rows"))
    for n in (1, 2, 5):
        x, s = np.random.default_rng(n).normal(size=(n, 2)).astype(np.float32), np.ones(2, np.float32)
        states = s + np.cumsum(x[::-1] if back else x, 0)
        rows = np.exp(states)[::-1] if out_back else np.exp(states)
        last, made = run(s, x if axis == 0 else np.ascontiguousarray(x.T))
        np.testing.assert_allclose(last, states[-1], atol=1e-5)
        np.testing.assert_allclose(made, rows if out_axis == 0 else rows.T, rtol=1e-5)


@pytest.mark.parametrize("back", [0, 1])
def test_a_scan_of_version_8_goes_over_each_of_a_batch(tmp_path, back):
    step = graph(
        [node("Add", "state part", "next"), node("Exp", "next", "row")],
        {"state": ("float32", (2,)), "part": ("float32", (2,))}, "next row",
    )  # fmt: skip
    scan = node("Scan", "- s x", "last rows", body=step, num_scan_inputs=1, directions=[back])
    inputs = {"s": ("float32", (3, 2)), "x": ("float32", (3, None, 2))}
    run = converted(tmp_path, model([scan], inputs, "last rows", opset=8))
    for n in (1, 2, 5):
        random = np.random.default_rng(n)
        s, x = (random.normal(size=shape).astype(np.float32) for shape in ((3, 2), (3, n, 2)))
        states = s[:, None] + np.cumsum(x[:, ::-1] if back else x, 1)
        last, rows = run(s, x)
        np.testing.assert_allclose(last, states[:, -1], atol=1e-5)
        np.testing.assert_allclose(rows, np.exp(states), rtol=1e-5)


def _scan_with_lengths(**attributes):
    step = graph(
        [node("Add", "state part", "next"), node("Exp", "next", "row")],
        {"state": ("float32", (2,)), "part": ("float32", (2,))}, "next row",
    )  # fmt: skip
    scan = node("Scan", "n s x", "last rows", name="over", body=step, num_scan_inputs=1, **attributes)
    inputs = {"n": ("int64", (3,)), "s": ("float32", (3, 2)), "x": ("float32", (3, None, 2))}
    return model([scan], inputs, "last rows", opset=8)


@pytest.mark.parametrize("back", [0, 1])
def test_a_scan_of_version_8_ends_with_each_sequence(tmp_path, back):
    """Behind the end of a sequence are zeros, and backwards it begins there, as in onnxruntime."""
    run = converted(tmp_path, _scan_with_lengths(directions=[back]))
    for length, lengths in ((4, [4, 1, 3]), (2, [1, 2, 2])):
        random = np.random.default_rng(length)
        s, x = (random.normal(size=shape).astype(np.float32) for shape in ((3, 2), (3, length, 2)))
        last, rows = run(np.array(lengths), s, x)
        for i, n in enumerate(lengths):
            states = s[i] + np.cumsum(x[i, :n][::-1] if back else x[i, :n], 0)
            np.testing.assert_allclose(last[i], states[-1], atol=1e-5)
            np.testing.assert_allclose(rows[i, :n], np.exp(states), rtol=1e-5)
            assert not rows[i, n:].any()
    with pytest.raises(RuntimeError, match="node 'over.*the length of a sequence of a Scan is out of range"):
        run(np.array([1, 3, 2]), s, x)


def test_a_value_that_changes_its_rank_in_a_loop_is_refused_by_name(tmp_path):
    nodes = [node("Unsqueeze", "v zero", "v2"), node("Identity", "going", "on")]
    loop = node("Loop", "m - x", "last", name="growing", body=body(nodes, None, "on v2"))
    message = model([loop], {"m": ("int64", ()), "x": ("float32", (3,))}, "last", {"zero": np.array([0])})
    with pytest.raises(ConversionError, match=r"node 'growing' \(Loop\): its carried value 0"):
        converted(tmp_path, message)
