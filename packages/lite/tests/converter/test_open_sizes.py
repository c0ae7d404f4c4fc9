"""ONNX models whose sizes stay open are converted once and run at many sizes."""

from __future__ import annotations

import numpy as np
import pytest

from .onnx_models import converted, model, node


def test_arithmetic_on_open_sizes_is_done_when_they_are_known(tmp_path):
    """Shape in int32 -> Slice, Mul, Concat -> Reshape, Expand and a result of its own."""
    weights = {
        "zero": np.array([0]), "one": np.array([1]), "two": np.array([2]),
        "two32": np.array([2], np.int32), "rest": np.array([-1], np.int32),
    }  # fmt: skip
    nodes = [
        node("Shape", "x", "s64"), node("Cast", "s64", "s", to=6),
        node("Slice", "s zero one zero", "n"), node("Slice", "s one two zero", "m"),
        node("Mul", "n m", "nm"), node("Concat", "nm two32", "c", axis=0), node("Cast", "c", "c64", to=7),
        node("Reshape", "x c64", "flat"),
        node("Add", "n m", "sum"), node("Concat", "sum n", "w", axis=0), node("Cast", "w", "w64", to=7),
        node("Expand", "row w64", "wide"), node("Mul", "s s", "squares"),
    ]  # fmt: skip
    inputs = {"x": ("float32", ("n", "m", 2)), "row": ("float32", (1, 1))}
    run = converted(tmp_path, model(nodes, inputs, "flat wide squares", weights))
    for n, m in ((3, 5), (1, 1), (4, 4), (3, 5)):
        x = np.random.default_rng(n).normal(size=(n, m, 2)).astype(np.float32)
        flat, wide, squares = run(x, np.full((1, 1), 7, np.float32))
        np.testing.assert_array_equal(flat, x.reshape(n * m, 2))
        assert wide.shape == (n + m, n) and (wide == 7).all()
        assert squares.tolist() == [n * n, m * m, 4] and squares.dtype == np.int32


@pytest.mark.parametrize(
    ("starts", "ends", "steps"),
    [
        (0, 3, 1), (1, 2**40, 2), (-3, -1, 1), (-2, 2**31 - 1, 1),
        (5, 100, 3), (-1, -(2**40), -1), (4, 0, -2), (-100, 100, 1),
    ],
)  # fmt: skip
def test_slices_of_open_sizes(tmp_path, starts, ends, steps):
    weights = {n: np.array([v]) for n, v in (("a", starts), ("b", ends), ("axis", 1), ("by", steps))}
    nodes = [node("Slice", "x a b axis by", "y"), node("ReduceSum", "y axis", "sum")]
    run = converted(tmp_path, model(nodes, {"x": ("float32", (2, None))}, "y sum", weights))
    for n in (1, 2, 3, 4, 7, 12):
        x = np.arange(2 * n, dtype=np.float32).reshape(2, n)
        expected = x[:, slice(starts, ends if ends > -100 else None, steps)]
        y, total = run(x)
        np.testing.assert_array_equal(y, expected)
        np.testing.assert_array_equal(total, expected.sum(1, keepdims=True))


def test_a_size_that_may_be_one_is_broadcast_as_it_turns_out(tmp_path):
    nodes = [node("Add", "a b", "sum"), node("Shape", "b", "s"), node("Expand", "a s", "wide")]
    inputs = {"a": ("float32", ("n", 3)), "b": ("float32", ("m", 3))}
    run = converted(tmp_path, model(nodes, inputs, "sum wide"))
    for n, m in ((4, 4), (1, 4), (4, 1), (1, 1)):
        a, b = np.arange(n * 3, dtype=np.float32).reshape(n, 3), np.ones((m, 3), np.float32)
        total, wide = run(a, b)
        np.testing.assert_array_equal(total, a + b)
        np.testing.assert_array_equal(wide, a * b)


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
def test_what_is_padded_up_to_a_size(tmp_path, mode):
    """max(6 - n, 0) elements are added behind."""
    weights = {"six": np.array([6]), "none": np.array([0]), "front": np.array([0, 1, 0])}
    nodes = [
        node("Shape", "x", "sizes", start=1), node("Sub", "six sizes", "missing"),
        node("Max", "missing none", "added"), node("Concat", "front added", "pads", axis=0),
        node("Pad", "x pads", "y", mode=mode), node("ReduceSum", "y", "sum"),
    ]  # fmt: skip
    run = converted(tmp_path, model(nodes, {"x": ("float32", (2, None))}, "y sum", weights))
    for n in (4, 6, 9, 5):
        x = np.random.default_rng(n).normal(size=(2, n)).astype(np.float32)
        expected = np.pad(x, ((0, 0), (1, max(6 - n, 0))), mode)
        y, total = run(x)
        np.testing.assert_array_equal(y, expected)
        np.testing.assert_allclose(total, expected.sum(keepdims=True), rtol=1e-5)


def test_images_of_any_size_are_resized_and_convolved_back(tmp_path):
    rng = np.random.default_rng(2)
    kernel = rng.normal(size=(3, 2, 2, 2)).astype(np.float32)
    weights = {"scales": np.array([1, 1, 2, 3], np.float32), "w": kernel}
    nodes = [
        node("Resize", "x - scales", "big", mode="nearest",
             coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
        node("ConvTranspose", "x w", "wide", strides=[2, 2], auto_pad="SAME_UPPER"),
        node("ConvTranspose", "x w", "full", strides=[2, 2], pads=[0, 1, 0, 0], output_padding=[1, 0]),
    ]  # fmt: skip
    run = converted(tmp_path, model(nodes, {"x": ("float32", (1, 3, None, None))}, "big wide full", weights))
    for h, w in ((4, 5), (1, 1), (3, 3)):
        x = rng.normal(size=(1, 3, h, w)).astype(np.float32)
        big, wide, full = run(x)
        np.testing.assert_array_equal(big, x.repeat(2, 2).repeat(3, 3))
        apart = np.einsum("nchw,cokl->nohkwl", x, kernel).reshape(1, 2, 2 * h, 2 * w)
        np.testing.assert_allclose(wide, apart, atol=1e-5)
        np.testing.assert_allclose(full[:, :, :-1], apart[..., 1:], atol=1e-5)
        assert full.shape == (1, 2, 2 * h + 1, 2 * w - 1)


@pytest.mark.parametrize("index", [0, 2, -1, -3, 3, -4])
@pytest.mark.parametrize("kind", ["Gather", "GatherElements", "GatherND", "ScatterElements"])
def test_indices_into_an_axis_of_open_size(tmp_path, kind, index):
    """Negative ones count from the back of what the size turns out to be; those out of range are refused."""
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    indices = {"Gather": [index], "GatherND": [[1, index]]}.get(kind, [[[index]]])
    weights = {"i": np.array(indices), "u": -np.ones((1, 1, 1), np.float32)}
    given = "x i u" if kind == "ScatterElements" else "x i"
    attributes = {} if kind == "GatherND" else {"axis": 1}
    message = model([node(kind, given, "y", **attributes)], {"x": ("float32", ("a", "b", "c"))}, "y", weights)
    run = converted(tmp_path, message)
    if not -3 <= index < 3:
        with pytest.raises(RuntimeError, match="out of bounds for axis 1 with size 3"):
            run(x)
        return
    wanted = x.copy()
    wanted[0, index, 0] = -1
    results = {"Gather": x[:, [index]], "GatherElements": x[:1, [index], :1], "GatherND": x[1, [index]]}
    np.testing.assert_array_equal(run(x)[0], results.get(kind, wanted))


@pytest.mark.parametrize("opset, more", [(11, {}), (13, {}), (18, {"num_outputs": 2})])
def test_equal_parts_of_an_open_size(tmp_path, opset, more):
    nodes = [node("Split", "x", "y z", axis=1, **more)]
    run = converted(tmp_path, model(nodes, {"x": ("float32", ("a", "b"))}, "y z", opset=opset))
    for n in (4, 2, 3, 1):
        x = np.arange(2 * n, dtype=np.float32).reshape(2, n)
        if n % 2 and opset < 18:
            with pytest.raises(RuntimeError, match="does not hold"):
                run(x)
            continue
        first, second = run(x)
        np.testing.assert_array_equal(first, x[:, : -(-n // 2)])
        np.testing.assert_array_equal(second, x[:, -(-n // 2) :])


def test_given_parts_of_an_open_size(tmp_path):
    message = model(
        [node("Split", "x s", "y z", axis=1)], {"x": ("float32", (2, "n"))}, "y z", {"s": np.array([1, 3])}
    )
    run, x = converted(tmp_path, message), np.arange(8, dtype=np.float32).reshape(2, 4)
    for found, wanted in zip(run(x), (x[:, :1], x[:, 1:]), strict=True):
        np.testing.assert_array_equal(found, wanted)
    with pytest.raises(RuntimeError, match="does not hold"):
        run(x[:, :3])


@pytest.mark.parametrize("kind", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("axis", [0, 1])
def test_rows_of_open_sizes(tmp_path, kind, axis):
    """Before version 13 all axes from the given one on count as one."""
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    run = converted(
        tmp_path, model([node(kind, "x", "y", axis=axis)], {"x": ("float32", ("a", "b", "c"))}, "y", opset=11)
    )
    e = np.exp(x.reshape(*x.shape[:axis], -1))
    soft = (e / e.sum(-1, keepdims=True)).reshape(x.shape)
    np.testing.assert_allclose(run(x)[0], soft if kind == "Softmax" else np.log(soft), rtol=1e-5, atol=1e-6)


def test_tuples_of_places_of_which_the_number_is_open(tmp_path):
    nodes = [node("GatherND", "x at", "y"), node("ScatterND", "x at rows", "z")]
    inputs = {"x": ("float32", ("n", 4)), "at": ("int64", ("k", 1)), "rows": ("float32", ("k", 4))}
    run = converted(tmp_path, model(nodes, inputs, "y z"))
    for n, k in ((5, 3), (2, 1), (9, 9)):
        random = np.random.default_rng(n)
        x, rows = (random.normal(size=(m, 4)).astype(np.float32) for m in (n, k))
        at = random.permutation(n)[:k, None]
        y, z = run(x, at, rows)
        np.testing.assert_array_equal(y, x[at[:, 0]])
        x[at[:, 0]] = rows
        np.testing.assert_array_equal(z, x)


@pytest.mark.parametrize("reduction", ["max", "min", "mul"])
def test_elements_are_reduced_at_an_open_number_of_places(tmp_path, reduction):
    """As the networks of graphs do it: the largest of what edges bring to a node."""
    nodes = [node("ScatterElements", "x at rows", "y", axis=0, reduction=reduction)]
    inputs = {"x": ("float32", ("n", 3)), "at": ("int64", ("k", 3)), "rows": ("float32", ("k", 3))}
    run = converted(tmp_path, model(nodes, inputs, "y"))
    how = {"max": np.maximum, "min": np.minimum, "mul": np.multiply}[reduction]
    for n, k in ((4, 9), (2, 1), (6, 6)):
        random = np.random.default_rng(n)
        x, rows = (random.normal(size=(m, 3)).astype(np.float32) for m in (n, k))
        at = random.integers(0, n, (k, 3))
        (y,) = run(x, at, rows)
        how.at(x, (at, np.arange(3)[None]), rows)
        np.testing.assert_allclose(y, x, rtol=1e-6)
