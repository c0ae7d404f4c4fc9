"""Models that were converted with sizes and run with others answer right, or `resize` names a node."""

from __future__ import annotations

import random

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia_lite.converter import ConversionError
from mycelia_lite.format import read

from .onnx_models import answers, converted, model, node, write


def draw(shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def resized(folder, nodes, before, x, weights=None):
    """What the model answers that was converted for the shape `before`; a text if it refuses x."""
    message = model(nodes, {"x": ("float32", before)}, "y", weights, 18)
    mslite.Converter().convert(mslite.FmkType.ONNX, write(folder / "m.onnx", message), str(folder / "m"))
    net = mslite.Model()
    net.build_from_file(str(folder / "m.ms"))
    try:
        net.resize(net.get_inputs(), [list(x.shape)])
    except (RuntimeError, ValueError) as error:
        return str(error)
    net.get_inputs()[0].set_data_from_numpy(x)
    return net.predict(net.get_inputs())[0].get_data_to_numpy()


def expected(folder, nodes, x, weights=None):
    message = model(nodes, {"x": ("float32", x.shape)}, "y", weights, 18)
    return answers(write(folder / "reference.onnx", message), x)[0]


LAST, ONE, MANY = np.array([-1]), np.array([1]), np.array([2**31 - 1])
FOLDED = {
    "shape": ([node("Shape", "x", "s", "it"), node("Cast", "s", "f", to=1), node("ReduceSum", "f", "a"),
               node("Mul", "x a", "y")], {}),
    "mean": ([node("Size", "x", "s", "it"), node("Cast", "s", "f", to=1), node("Div", "x f", "y")], {}),
    "all but the last": ([node("Slice", "x b e a", "y", "it")], {"b": 0 * ONE, "e": LAST, "a": ONE}),
    "all but the first": ([node("Slice", "x b e a", "y", "it")], {"b": ONE, "e": MANY, "a": ONE}),
    "backwards": ([node("Slice", "x b e a s", "y", "it")], {"b": LAST, "e": -MANY, "a": ONE, "s": LAST}),
    "halves": ([node("Split", "x", "y z", "it", axis=1, num_outputs=2)], {}),
    "triangle": ([node("Trilu", "x", "y", "it")], {}),
    "larger": ([node("Resize", "x - c", "y", "it", mode="linear")], {"c": np.float32([1.5, 1])}),
    "edges": ([node("Pad", "x p", "y", "it", mode="edge")], {"p": np.array([1, 0, 0, 1])}),
}  # fmt: skip


@pytest.mark.parametrize("name", FOLDED)
def test_what_became_constants_is_named(tmp_path, name):
    nodes, weights = FOLDED[name]
    x = draw((4, 6))
    np.testing.assert_allclose(
        resized(tmp_path, nodes, x.shape, x, weights), expected(tmp_path, nodes, x, weights), atol=1e-5
    )
    why = resized(tmp_path, nodes, (2, 4), x, weights)
    assert isinstance(why, str) and "node 'it'" in why and "size 2 of axis 0" in why


RENAMED = {
    "unsqueeze": ([node("Unsqueeze", "x a", "u"), node("Relu", "u", "y")], {"a": np.array([1, 3])}, (2, 6)),
    "there and back": (
        [node("Unsqueeze", "x a", "u"), node("Conv", "u w", "c"), node("Squeeze", "c b", "y")],
        {"a": np.array([1]), "w": draw((1, 1, 1, 3)), "b": np.array([1])},
        (2, 3, 8),
    ),
    "conv1d": (
        [
            node("Unsqueeze", "x a", "u"),
            node("Conv", "u w", "c", pads=[1, 1]),
            node("GlobalMaxPool", "c", "g"),
            node("Flatten", "g", "y"),
        ],
        {"a": np.array([1]), "w": draw((4, 1, 3))},
        (2, 8),
    ),
    "flatten": ([node("Flatten", "x", "y", axis=2)], {}, (1, 4, 5, 1)),
}


@pytest.mark.parametrize("name", RENAMED)
def test_axes_of_size_1_come_and_go_at_any_size(tmp_path, name):
    nodes, weights, before = RENAMED[name]
    for shape in (before, tuple(n if n == 1 else n + 3 for n in before)):
        x = draw(shape)
        y = resized(tmp_path, nodes, before, x, weights)
        np.testing.assert_allclose(y, expected(tmp_path, nodes, x, weights), atol=1e-5)


SPELLED = {
    "what is left": ([0, -1], ("n", 4, 6), (2, 4, 12)),
    "what is left, all known": ([0, -1], (2, 4, 6), (3, 8, 3)),
    "of heads": ([0, 0, 2, -1], ("n", 4, 6), (2, 2, 12)),
    "of heads, all known": ([0, 0, 2, 3], (2, 4, 6), (3, 5, 6)),
    "rows": ([-1, 6], ("n", 4, 6), (2, 4, 12)),
}


@pytest.mark.parametrize("name", SPELLED)
def test_a_reshape_means_what_the_source_spells(tmp_path, name):
    text, before, after = SPELLED[name]
    nodes, weights, x = [node("Reshape", "x s", "y")], {"s": np.array(text)}, draw(after)
    y = resized(tmp_path, nodes, before, x, weights)
    np.testing.assert_array_equal(y, expected(tmp_path, nodes, x, weights))


FLATTENED = {"flatten": (1, ("n", 4, 6), (2, 4, 12)), "two axes": (2, ("n", 4, 6), (2, 4, 12))}


@pytest.mark.parametrize("name", FLATTENED)
def test_a_flatten_is_right_or_refuses(tmp_path, name):
    axis, before, after = FLATTENED[name]
    nodes, x = [node("Flatten", "x", "y", axis=axis)], draw(after)
    y = resized(tmp_path, nodes, before, x)
    assert isinstance(y, str) if axis == 2 else np.array_equal(y, x.reshape(2, -1))


def test_a_shape_of_numbers_alone_does_not_take_as_many_elements_of_other_sizes(tmp_path):
    nodes, weights = [node("Reshape", "x s", "y")], {"s": np.array([4, 2, 3])}
    why = resized(tmp_path, nodes, (4, 6), draw((6, 4)), weights)
    assert isinstance(why, str) and "made for other sizes" in why


def test_a_transpose_past_axes_of_size_1_refuses_larger_ones(tmp_path):
    nodes = [node("Transpose", "x", "y", perm=[0, 2, 1])]
    x = draw((3, 1, 5))
    np.testing.assert_array_equal(resized(tmp_path, nodes, (2, 1, 8), x), x.transpose(0, 2, 1))
    assert isinstance(resized(tmp_path, nodes, (2, 1, 8), draw((2, 2, 4))), str)


def test_a_flatten_of_images_that_grow_refuses_them(tmp_path):
    nodes = [node("Flatten", "x", "y")]
    why = resized(tmp_path, nodes, (2, 3, 1, 1), draw((2, 3, 2, 1)))
    assert isinstance(why, str) and "node 'y'" in why


def test_open_sizes_are_computed_and_nothing_is_refused(tmp_path):
    nodes, weights = FOLDED["all but the last"]
    for shape in ((4, 6), (3, 9)):
        x = draw(shape)
        np.testing.assert_array_equal(resized(tmp_path, nodes, ("n", "m"), x, weights), x[:, :-1])
    assert not read(str(tmp_path / "m.ms")).fixedBy


def test_a_file_keeps_what_fixes_it_when_it_is_converted_again(tmp_path):
    nodes, weights = FOLDED["halves"]
    resized(tmp_path, nodes, (4, 6), draw((4, 6)), weights)
    again = mslite.Converter()
    again.input_shape = {"x": [4, 8]}
    with pytest.raises(ConversionError, match="node 'it'"):
        again.convert(mslite.FmkType.MSLITE, str(tmp_path / "m.ms"), str(tmp_path / "n"))
    mslite.Converter().convert(mslite.FmkType.MSLITE, str(tmp_path / "m.ms"), str(tmp_path / "n"))
    assert "node 'it'" in read(str(tmp_path / "n.ms")).fixedBy


STEPS = {
    "relu": lambda i, o: [node("Relu", i, o)],
    "turned": lambda i, o: [node("Transpose", i, o, perm=[1, 0])],
    "head": lambda i, o: [node("Slice", f"{i} zero two one", o)],
    "tail": lambda i, o: [node("Slice", f"{i} one last one", o)],
    "joined": lambda i, o: [node("Concat", f"{i} {i}", o, axis=1)],
    "sum": lambda i, o: [node("ReduceMean", f"{i} one", f"{o}m"), node("Sub", f"{i} {o}m", o)],
    "size": lambda i, o: [
        node("Shape", i, f"{o}s"), node("Cast", f"{o}s", f"{o}f", to=1), node("Mul", f"{i} {o}f", f"{o}g"),
        node("Identity", f"{o}g", o)],
    "one size": lambda i, o: [
        node("Shape", i, f"{o}s", start=1, end=2), node("Cast", f"{o}s", f"{o}f", to=1),
        node("Div", f"{i} {o}f", o)],
    "whole": lambda i, o: [node("Slice", f"{i} zero last one", o)],
    "parts": lambda i, o: [node("Split", i, f"{o} {o}z", axis=1, num_outputs=2)],
    "triangle": lambda i, o: [node("Trilu", i, o, upper=0)],
    "softmax": lambda i, o: [node("Softmax", i, o, axis=-1)],
    "square": lambda i, o: [node("Transpose", i, f"{o}t", perm=[1, 0]), node("MatMul", f"{i} {o}t", o)],
}  # fmt: skip
WEIGHTS = {"zero": np.array([0]), "one": ONE, "two": np.array([2]), "last": MANY}


@pytest.mark.fuzz(30)
def test_random_models_with_other_sizes_answer_right_or_refuse(seed, tmp_path):
    choice = random.Random(seed)
    names = [choice.choice([n for n in STEPS if n != "size"]) for _ in range(choice.randint(1, 4))]
    nodes = [n for i, name in enumerate(names) for n in STEPS[name](f"v{i}", f"v{i + 1}")]
    nodes = [node("Identity", "x", "v0"), *nodes, node("Identity", f"v{len(names)}", "y")]
    before, after = ([choice.randint(3, 8) for _ in range(2)] for _ in range(2))
    x = draw(after, seed)
    found = resized(tmp_path, nodes, before, x, WEIGHTS)
    if isinstance(found, str):
        assert "'" in found, names
        return
    wanted = expected(tmp_path, nodes, x, WEIGHTS)
    assert found.shape == wanted.shape, names
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4, err_msg=str(names))


X = np.arange(48, dtype=np.float32).reshape(2, 4, 6)
KEPT = {  # nodes that serve other sizes than those they were converted for
    "split": (node("Split", "x", "y z", axis=2, split=[2, 4]), 10, {}),
    "slice": (node("Slice", "x b e a", "y"), 13, {"b": [1], "e": [3], "a": [2]}),
}
REFUSED = {
    "from the back": (node("Gather", "x i", "y", axis=1), 13, {"i": [-1]}),
    "to the end": (node("Slice", "x b e a", "y"), 13, {"b": [0], "e": [4], "a": [1]}),
    "cut": (node("Pad", "x p", "y"), 13, {"p": [0, 0, 0, 0, -1, 0]}),
    "largest": (node("Hardmax", "x", "y", axis=1), 13, {}),
    "shifted": (node("CumSum", "x i", "y", exclusive=1), 14, {"i": 1}),
    "turned": (node("ReverseSequence", "x i", "y", batch_axis=0, time_axis=1), 13, {"i": [2, 3]}),
    "same size": (node("Resize", "x - - n", "y", mode="nearest"), 13, {"n": [2, 4, 6]}),
}


def of_one(tmp_path, operator, opset, constants):
    weights = {name: np.array(value) for name, value in constants.items()}
    outputs = " ".join(operator.output)
    return converted(tmp_path, model([operator], {"x": ("float32", X.shape)}, outputs, weights, opset))


@pytest.mark.parametrize("name", KEPT)
def test_other_axes_than_the_parts_may_grow(tmp_path, name):
    run = of_one(tmp_path, *KEPT[name])
    x = np.arange(90, dtype=np.float32).reshape(3, 5, 6)
    wanted = (x[:, :, :2], x[:, :, 2:]) if name == "split" else (x[:, :, 1:3],)
    for found, part in zip(run(x), wanted, strict=True):
        np.testing.assert_array_equal(found, part)


@pytest.mark.parametrize("name", REFUSED)
def test_places_that_follow_from_a_size(tmp_path, name):
    run = of_one(tmp_path, *REFUSED[name])
    run(X)
    with pytest.raises(RuntimeError, match=REFUSED[name][0].op_type):
        run(np.zeros((2, 5, 6), np.float32))


SLICED = {  # what stands in front of or behind slices that the optimiser moves, joins or turns
    "sum": [node("Add", "x w", "a"), node("Slice", "a zero two one", "y")],
    "function": [node("Tanh", "x", "a"), node("Slice", "a zero two one", "y")],
    "softmax": [node("Softmax", "x", "a", axis=-1), node("Slice", "a zero two one", "y")],
    "transpose": [node("Transpose", "x", "a", perm=[1, 0, 2]), node("Slice", "a zero two zero", "y")],
    "product": [node("MatMul", "x k", "a"), node("Slice", "a zero two one", "y")],
    "between transposes": [
        node("Transpose", "x", "a", perm=[0, 2, 1]), node("Slice", "a zero two one", "b"),
        node("Transpose", "b", "y", perm=[0, 2, 1]),
    ],
    "slice": [node("Slice", "x one three one", "a"), node("Slice", "a one two two", "y")],
    "side by side": [
        node("Slice", "x zero two one", "a"), node("Slice", "x two three one", "b"),
        node("Concat", "a b", "y", axis=1),
    ],
}  # fmt: skip


@pytest.mark.parametrize("kind", SLICED)
def test_slices_that_the_optimiser_moves_take_all_of_an_axis_that_grows(tmp_path, kind):
    weights = {"w": draw((5, 3)), "k": draw((3, 4))}
    weights |= {name: np.array([n]) for n, name in enumerate(("zero", "one", "two", "three"))}
    for batch in (3, 1, 7):
        x = draw((batch, 5, 3), batch)
        found = resized(tmp_path, SLICED[kind], (2, 5, 3), x, weights)
        assert not isinstance(found, str), found
        np.testing.assert_allclose(found, expected(tmp_path, SLICED[kind], x, weights), rtol=1e-6, atol=1e-6)
