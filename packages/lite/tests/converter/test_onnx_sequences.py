"""ONNX operators on sequences of tensors, of which nothing is left in the file."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia_lite.converter import ConversionError, convert
from mycelia_lite.format import read

from .onnx_models import converted, graph, model, node, write

X = np.arange(12, dtype=np.float32).reshape(2, 6)


def answer(folder, nodes, weights=None, inputs=None, opset=17, outputs="y"):
    """What the file answers for X, and for further inputs (name -> array)."""
    given = {"x": X, **(inputs or {})}
    borders = {name: (array.dtype.name, array.shape) for name, array in given.items()}
    path = write(folder / "m.onnx", model(nodes, borders, outputs, weights, opset))
    made = convert(mslite.FmkType.ONNX, path, str(folder / "m")).path
    assert not any(
        "Sequence" in n.primitive.kind or "TensorList" in n.primitive.kind for n in read(made).nodes
    )
    net = mslite.Model()
    net.build_from_file(made)
    for tensor in net.get_inputs():
        tensor.set_data_from_numpy(given[tensor.name])
    return net.predict(net.get_inputs())[0].get_data_to_numpy()


def number(value):
    return np.array(value, np.int64)


SPLITS = {
    "one by one": ({}, {}, [X[:, i : i + 1] for i in range(6)]),
    "one by one without the axis": ({"keepdims": 0}, {}, [X[:, i] for i in range(6)]),
    "of one size": ({}, {"parts": number(4)}, [X[:, :4], X[:, 4:]]),
    "of given sizes": ({"keepdims": 0}, {"parts": number([1, 3, 2])}, [X[:, :1], X[:, 1:4], X[:, 4:]]),
}


@pytest.mark.parametrize("name", SPLITS)
def test_parts_of_a_tensor(name, tmp_path):
    attributes, weights, parts = SPLITS[name]
    split = node("SplitToSequence", "x parts" if weights else "x", "s", axis=1, **attributes)
    for place in (0, len(parts) - 1, -2):
        nodes = [split, node("SequenceAt", "s p", "y")]
        np.testing.assert_array_equal(answer(tmp_path, nodes, {**weights, "p": number(place)}), parts[place])


def test_tensors_are_put_in_taken_out_and_put_together(tmp_path):
    nodes = [
        node("Neg", "x", "a"),
        node("Abs", "x", "b"),
        node("SequenceEmpty", "", "none"),
        node("SequenceInsert", "none x", "one"),  # x
        node("SequenceInsert", "one a first", "two"),  # a x
        node("SequenceInsert", "two b last", "three"),  # a b x
        node("SequenceInsert", "three x end", "four"),  # a b x x
        node("SequenceErase", "four second", "five"),  # a x x
        node("Identity", "five", "six"),
        node("ConcatFromSequence", "six", "joined", axis=-1),
        node("SequenceLength", "six", "count"),
        node("Cast", "count", "floats", to=1),
        node("Mul", "joined floats", "y"),
    ]
    places = {"first": number(0), "last": number(-1), "end": number(3), "second": number(1)}
    np.testing.assert_array_equal(answer(tmp_path, nodes, places), 3 * np.concatenate([-X, X, X], 1))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_tensors_are_stacked(axis, tmp_path):
    nodes = [
        node("Neg", "x", "a"),
        node("SequenceConstruct", "x a", "s"),
        node("ConcatFromSequence", "s", "y", axis=axis, new_axis=1),
    ]
    np.testing.assert_array_equal(answer(tmp_path, nodes), np.stack([X, -X], axis))


@pytest.mark.parametrize("place", [0, 4, -1])
def test_a_position_may_be_an_input_where_all_have_one_shape(place, tmp_path):
    nodes = [node("SplitToSequence", "x", "s", axis=1), node("SequenceAt", "s p", "y")]
    found = answer(tmp_path, nodes, inputs={"p": number(place)})
    np.testing.assert_array_equal(found, X[:, place : place + 1 or None])


@pytest.mark.parametrize("taken", [True, False])
def test_branches_and_loops_read_a_sequence_of_the_graph_around_them(taken, tmp_path):
    then = graph([node("SequenceAt", "s zero", "t")], {}, "t")
    other = graph([node("SequenceAt", "s one", "t")], {}, "t")
    body = graph(
        [node("SequenceAt", "s i", "p"), node("Add", "sum p", "next"), node("Identity", "go", "on")],
        {"i": ("int64", ()), "go": ("bool", ()), "sum": ("float32", (2, 1))},
        "on next",
    )
    nodes = [
        node("SplitToSequence", "x", "s", axis=1),
        node("If", "c", "t", then_branch=then, else_branch=other),
        node("Loop", "six - t", "y", body=body),
    ]
    weights = {"zero": number(0), "one": number(1), "six": number(6)}
    found = answer(tmp_path, nodes, weights, {"c": np.array(taken)})
    np.testing.assert_array_equal(found, X.sum(1, keepdims=True) + X[:, :1] + (0 if taken else 1))


def refused(nodes, weights=None, reason="", outputs="y", inputs=None):
    return nodes, weights or {}, inputs or {}, outputs, reason


REFUSED = {
    "another position": refused(
        [node("SequenceConstruct", "x x", "s"), node("SequenceAt", "s p", "y")],
        {"p": number(2)},
        r"node 'y' \(SequenceAt\): position 2 of 2",
    ),
    "several shapes": refused(
        [node("SplitToSequence", "x n", "s", axis=1), node("SequenceAt", "s p", "y")],
        {"n": number(4)},
        "known only when the model runs, among tensors of several shapes",
        inputs={"p": number(0)},
    ),
    "several types": refused(
        [node("Shape", "x", "n"), node("SequenceConstruct", "x n", "s"), node("SequenceLength", "s", "y")],
        reason="in one sequence",
    ),
    "an operator on tensors": refused(
        [node("SequenceConstruct", "x x", "s"), node("Neg", "s", "y")],
        reason=r"'y' \(Neg\): a sequence of tensors where a tensor is needed",
    ),
    "an output": refused([node("SequenceConstruct", "x", "y")], reason="output 'y' is a sequence"),
    "no sequence": refused([node("SequenceLength", "x", "y")], reason="its input is no sequence"),
    "parts that do not add up": refused(
        [node("SplitToSequence", "x n", "s", axis=1), node("SequenceLength", "s", "y")],
        {"n": number([4, 4])},
        r"parts of \[4, 4\] elements of an axis of 6",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_told(name, tmp_path):
    nodes, weights, inputs, outputs, reason = REFUSED[name]
    with pytest.raises(ConversionError, match=reason):
        answer(tmp_path, nodes, weights, inputs, outputs=outputs)


def loop_body(nodes, outputs="on v2 t"):
    """A run: its number `i`, a value `v` and a sequence `s`."""
    nodes = [node("Identity", "go", "on"), node("Add", "v x", "v2"), *nodes]
    inputs = {"i": ("int64", ()), "go": ("bool", ()), "v": ("float32", None), "s": ("float32", None)}
    return graph(nodes, inputs, outputs)


APPENDS = {
    "one": ([node("SequenceInsert", "s v2", "t")], lambda v: [v]),
    "two": (
        [node("SequenceInsert", "s v2", "u"), node("Neg", "v2", "n"), node("SequenceInsert", "u n", "t")],
        lambda v: [v, -v],
    ),
}


@pytest.mark.parametrize("appends", APPENDS)
@pytest.mark.parametrize("front", [0, 2])
def test_a_loop_appends_to_a_sequence(tmp_path, appends, front):
    nodes, each = APPENDS[appends]
    start = (
        node("SequenceConstruct", " ".join(["x"] * front), "a") if front else node("SequenceEmpty", "", "a")
    )
    nodes = [
        start, node("Loop", "n - x a", "last b", body=loop_body(nodes)),
        node("ConcatFromSequence", "b", "stacked", axis=1, new_axis=1),
        node("ConcatFromSequence", "b", "joined", axis=-1), node("SequenceLength", "b", "count"),
        node("SequenceAt", "b at", "one"),
    ]  # fmt: skip
    inputs = {"x": ("float32", ("h", 3)), "n": ("int64", ()), "at": ("int64", ())}
    run = converted(tmp_path, model(nodes, inputs, "last stacked joined count one"))
    for rows, n, at in ((2, 4, -1), (5, 1, 0), (2, 3, 2 - front)):
        x = np.random.default_rng(n).normal(size=(rows, 3)).astype(np.float32)
        expected = [x] * front + [part for k in range(n) for part in each(x * np.float32(k + 2))]
        last, stacked, joined, count, one = run(x, np.array(n), np.array(at))
        np.testing.assert_allclose(last, x * (n + 1), rtol=1e-5)
        np.testing.assert_allclose(stacked, np.stack(expected, 1), rtol=1e-5)
        np.testing.assert_allclose(joined, np.concatenate(expected, -1), rtol=1e-5)
        assert count == len(expected)
        np.testing.assert_allclose(one, expected[at], rtol=1e-5)


def test_a_loop_reads_a_sequence(tmp_path):
    body = loop_body(
        [node("SequenceAt", "s i", "part"), node("Add", "v part", "v3"), node("Identity", "s", "t")],
        "on v3 t",
    )
    nodes = [
        node("Neg", "x", "y"), node("SequenceConstruct", "x y x", "a"),
        node("Loop", "n - x a", "last b", body=body), node("SequenceLength", "b", "count"),
    ]  # fmt: skip
    run = converted(tmp_path, model(nodes, {"x": ("float32", (2, 3)), "n": ("int64", ())}, "last count"))
    x = np.ones((2, 3), np.float32)
    for n, factor in ((1, 2), (2, 1), (3, 2)):
        last, count = run(x, np.array(n))
        assert (last == factor).all() and count == 3


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        ([node("SequenceInsert", "s i", "t")], "in one sequence"),
        ([node("SequenceInsert", "s v2 zero", "t")], "otherwise than by appending"),
        ([node("SequenceErase", "s", "t")], "otherwise than by appending"),
        (
            [node("SequenceInsert", "s v2", "t"), node("SequenceLength", "s", "c")],
            "reads a sequence to which it appends",
        ),
        (
            [node("SequenceInsert", "s v2", "t"), node("SequenceLength", "t", "c")],
            "a sequence to which a run of a loop has appended",
        ),
    ],
)
def test_other_uses_of_a_sequence_in_a_loop_are_refused(tmp_path, nodes, reason):
    nodes = [
        node("SequenceConstruct", "x", "a"), node("Loop", "n - x a", "last b", body=loop_body(nodes)),
        node("SequenceLength", "b", "y"),
    ]  # fmt: skip
    with pytest.raises(ConversionError, match=reason):
        answer(tmp_path, nodes, {"n": number(3), "zero": number(0)})
