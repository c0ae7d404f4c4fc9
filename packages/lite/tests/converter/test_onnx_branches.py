"""ONNX's If whose branches give results of different numbers of axes: right in each, or refused by name."""

from __future__ import annotations

import re

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia.io.onnx import onnx_pb2
from mycelia_lite.converter import ConversionError, Job, explain
from mycelia_lite.format import read

from .onnx_models import border, converted, graph, model, node, write

X = np.random.default_rng(7).normal(size=(3, 4)).astype(np.float32)
GIVEN = {"c": ("bool", ()), "x": ("float32", ("n", 4))}


def either(condition, made, x="x"):
    """An If that gives the first number of each row, or all numbers."""
    then = [node("Gather", f"{x} {made}_0", f"{made}_t", axis=1)]
    then = graph(then, {}, f"{made}_t", {f"{made}_0": np.array(0)})
    otherwise = graph([node("Identity", x, f"{made}_o")], {}, f"{made}_o")
    return node("If", condition, made, name=f"If of {made}", then_branch=then, else_branch=otherwise)


def declared(message, rank):
    """`message` with results of so many axes."""
    for i, output in enumerate(message.graph.output):
        message.graph.output[i].CopyFrom(border(output.name, np.float32, (None,) * rank))
    return message


def kinds(path):
    return [n.primitive.kind for n in read(str(path)).nodes]


def test_what_follows_is_right_for_both_ranks(tmp_path):
    nodes = [
        node("Sigmoid", "x", "s"), either("c", "e"), node("Exp", "x", "apart"), node("Shape", "e", "sizes"),
        node("Size", "sizes", "rank"), node("Cast", "rank", "r", to=1),
        node("ReduceSum", "e", "sum", keepdims=0), node("Add", "sum r", "y0"),
        node("Mul", "y0 apart", "y1"), node("Mul", "y1 s", "y"),
    ]  # fmt: skip
    run = converted(tmp_path, model(nodes, GIVEN, "y y0"))
    s = 1 / (1 + np.exp(-X))
    for c, total in ((True, X[:, 0].sum() + 1), (False, X.sum() + 2)):
        y, y0 = run(np.array(c), X)
        np.testing.assert_allclose(y0, total, rtol=1e-5)
        np.testing.assert_allclose(y, total * np.exp(X) * s, rtol=1e-5)
    assert kinds(tmp_path / "m.ms").count("ExpFusion") == 1  # what does not depend on it is there once
    assert not any(
        n.primitive.kind == "Custom" for n in read(str(tmp_path / "m.ms")).nodes
    )  # nothing to check


def test_each_of_several_has_two_ways(tmp_path):
    nodes = [
        either("c", "a"), either("d", "b"), node("ReduceSum", "a", "u", keepdims=0), node("Shape", "b", "sb"),
        node("ReduceMax", "b", "v", keepdims=0), node("ReduceProd", "sb", "n", keepdims=0),
        node("Cast", "n", "m", to=1), node("Mul", "u v", "w"), node("Add", "w m", "y"),
    ]  # fmt: skip
    run = converted(tmp_path, model(nodes, {**GIVEN, "d": ("bool", ())}, "y"))
    for c in (True, False):
        for d in (True, False):
            (y,) = run(np.array(c), X, np.array(d))
            expected = (X[:, 0] if c else X).sum() * (X[:, 0] if d else X).max() + (3 if d else 12)
            np.testing.assert_allclose(y, expected, rtol=1e-5)


@pytest.mark.parametrize("outer", ["known", "data"])
def test_one_within_another_has_its_ways(tmp_path, outer):
    inner = graph([node("Neg", "x", "n"), either("c", "e", "n")], {}, "e")
    other = graph([node("ReduceMin", "x", "f", axes=[1], keepdims=0)], {}, "f")
    nodes = [
        node("If", "d", "g", then_branch=inner, else_branch=other), node("Flatten", "g", "h", axis=0),
        node("ReduceSum", "h", "y", keepdims=0),
    ]  # fmt: skip
    inputs = {**GIVEN, "d": ("bool", ())} if outer == "data" else GIVEN
    weights = {} if outer == "data" else {"d": np.array(True)}
    run = converted(tmp_path, model(nodes, inputs, "y", weights))
    for c in (True, False):
        given = (np.array(c), X, np.array(True))[: len(inputs)]
        np.testing.assert_allclose(run(*given)[0], -(X[:, 0] if c else X).sum(), rtol=1e-5)
    if outer == "data":
        for c in (True, False):
            (y,) = run(np.array(c), X, np.array(False))
            np.testing.assert_allclose(y, X.min(1).sum(), rtol=1e-5)


def test_one_in_a_loop_has_its_ways_in_each_run(tmp_path):
    nodes = [
        node("Greater", "v zero", "c"), either("c", "e"), node("ReduceSum", "e", "s", keepdims=0),
        node("Sub", "v s", "v2"), node("Identity", "going", "on"),
    ]  # fmt: skip
    inputs = {"i": ("int64", ()), "going": ("bool", ()), "v": ("float32", ())}
    body = graph(nodes, inputs, "on v2", {"zero": np.float32(0)})
    loop = node("Loop", "m - v0", "y", body=body)
    given = {"m": ("int64", ()), "v0": ("float32", ()), "x": ("float32", (3, 4))}
    run = converted(tmp_path, model([loop], given, "y"))
    x, v = np.abs(X), np.float32(1)
    for times in range(5):
        np.testing.assert_allclose(run(np.array(times), np.array(1, np.float32), x)[0], v, rtol=1e-5)
        v = v - (x[:, 0] if v > 0 else x).sum()


def test_calls_of_a_function_decide_on_their_own(tmp_path):
    function = onnx_pb2.FunctionProto(name="Peak", domain="own", input=["x", "c"], output=["e"])
    function.node.append(either("c", "e"))
    function.opset_import.add(domain="", version=17)
    nodes = [
        node("Peak", "x c", "a", domain="own"), node("Not", "c", "d"), node("Peak", "x d", "b", domain="own"),
        node("ReduceSum", "a", "u", keepdims=0), node("ReduceMax", "b", "v", keepdims=0),
        node("Shape", "b", "sb"), node("Size", "sb", "n"), node("Cast", "n", "m", to=1),
        node("Mul", "u v", "w"), node("Add", "w m", "y"),
    ]  # fmt: skip
    message = model(nodes, GIVEN, "y")
    message.functions.append(function)
    message.opset_import.add(domain="own", version=1)
    run = converted(tmp_path, message)
    for c in (True, False):
        expected = (X[:, 0] if c else X).sum() * (X if c else X[:, 0]).max() + (2 if c else 1)
        np.testing.assert_allclose(run(np.array(c), X)[0], expected, rtol=1e-5)


@pytest.mark.parametrize("why", ["a node behind it", "the file's result"])
def test_a_way_that_no_engine_could_go_is_checked(tmp_path, why):
    """As exporters write a squeeze of an axis that may have another size than 1."""
    behind = node("Transpose", "e", "y", perm=[1, 0]) if why == "a node behind it" else node("Neg", "e", "y")
    message = model([either("c", "e"), behind], GIVEN, "y")
    run = converted(tmp_path, message if why == "a node behind it" else declared(message, 2))
    expected = X.T if why == "a node behind it" else -X
    np.testing.assert_array_equal(run(np.array(False), X)[0], expected)
    lost = r"node 'y' \(Transpose\)" if why == "a node behind it" else "output 'y' has 1 axes"
    with pytest.raises(RuntimeError, match=f"node 'If of e' .*does not hold for these inputs: .*{lost}"):
        run(np.array(True), X)


def test_many_ways_of_which_one_runs_stay_one(tmp_path):
    nodes = [node("Identity", "x", "e0")]
    for i in range(12):
        nodes += [either("c", f"f{i}", f"e{i}"), node("Transpose", f"f{i}", f"e{i + 1}", perm=[1, 0])]
    run = converted(tmp_path, model(nodes, GIVEN, "e12"))
    np.testing.assert_array_equal(run(np.array(False), X)[0], X)
    assert len(read(str(tmp_path / "m.ms")).subGraph) == 1


REFUSED = {
    "a result of the model": ([either("c", "y")], r"node 'If of y' \(If\).*and so does what the model gives"),
    "a run of a loop": (
        [node("Loop", "m - x", "y", name="L", body=graph(
            [either("c", "e", "v"), node("Identity", "going", "on")],
            {"i": ("int64", ()), "going": ("bool", ()), "v": ("float32", (3, 4))}, "on e",
        ))],
        r"node 'L' \(Loop\): node 'If of e' \(If\) in its body",
    ),
    "a way that is not imported": (
        [either("c", "e"), node("Shape", "e", "s"), node("Size", "s", "r"), node("Equal", "r one", "flat"),
         node("If", "flat", "y",
              then_branch=graph([node("Gelu", "e", "t", name="G", approximate="cubic")], {}, "t"),
              else_branch=graph([node("ReduceMax", "e", "o", keepdims=0)], {}, "o"))],
        r"node 'G' \(Gelu\)",
    ),
    "too many ways": (
        [n for i in range(9) for n in (either("c", f"e{i}"), node("ReduceSum", f"e{i}", f"s{i}", keepdims=0))]
        + [node("Sum", " ".join(f"s{i}" for i in range(9)), "y")],
        "more than 64 ways",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_no_rank_is_assumed_for(tmp_path, what):
    nodes, reason = REFUSED[what]
    inputs = {**GIVEN, "x": ("float32", (3, 4)), **({"m": ("int64", ())} if "loop" in what else {})}
    message = model(nodes, inputs, "y", {"one": np.array(1), "axis": np.array([1])}, opset=20)
    path = write(tmp_path / "m.onnx", message)
    with pytest.raises(ConversionError, match=reason):
        mslite.Converter().convert(mslite.FmkType.ONNX, path, str(tmp_path / "m"))
    found = explain(Job(mslite.FmkType.ONNX, path, str(tmp_path / "out")))
    assert found and any(re.search(reason, str(error)) for error in found)


def test_a_condition_of_several_elements_is_told(tmp_path):
    nodes = [either("c", "e"), node("ReduceSum", "e", "y", keepdims=0)]
    path = write(tmp_path / "m.onnx", model(nodes, {**GIVEN, "c": ("bool", ("n", 4))}, "y"))
    with pytest.raises(ConversionError, match=r"node 'If of e' \(If\): its condition has the shape"):
        mslite.Converter().convert(mslite.FmkType.ONNX, path, str(tmp_path / "m"))


@pytest.mark.parametrize("missing", ["a result", "a result of a branch"])
def test_what_nothing_computes_is_told(tmp_path, missing):
    nodes = [either("c", "e"), node("ReduceSum", "e", "y", keepdims=0)]
    if missing == "a result of a branch":
        nodes[0].attribute[1].g.output[0].name = "nowhere"
    path = write(tmp_path / "m.onnx", model(nodes, GIVEN, "y" if "branch" in missing else "y nowhere"))
    with pytest.raises(ConversionError, match="nowhere"):
        mslite.Converter().convert(mslite.FmkType.ONNX, path, str(tmp_path / "m"))


def test_obstacles_behind_are_told_once(tmp_path):
    nodes = [either("c", "e"), node("Gelu", "e", "g", name="wrong", approximate="cubic"),
             node("Reluu", "x", "z", name="misspelt"), node("ReduceSum", "g", "y", keepdims=0)]  # fmt: skip
    path = write(tmp_path / "m.onnx", model(nodes, GIVEN, "y z", opset=20))
    names = [str(e).split("'")[1] for e in explain(Job(mslite.FmkType.ONNX, path, str(tmp_path / "out")))]
    assert sorted(names) == ["misspelt", "wrong"]
