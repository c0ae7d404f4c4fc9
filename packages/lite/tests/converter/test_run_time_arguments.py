"""ONNX operators whose shapes, axes and counts are inputs of the model: converted once, run with many."""

from __future__ import annotations

import numpy as np
import pytest

from .onnx_models import converted, model, node

X = np.random.default_rng(3).normal(size=(2, 3, 4)).astype(np.float32)


def one(tmp_path, kind, inputs, opset=18, count=1, **attributes):
    """One node on inputs that are all of the model's; `inputs`: name -> (dtype, shape)."""
    outputs = " ".join(f"y{i}" for i in range(count))
    made = node(kind, " ".join(inputs), outputs, name="it", **attributes)
    return converted(tmp_path, model([made], inputs, outputs, opset=opset))


def test_shapes(tmp_path):
    x, shape = ("float32", ("a", "b", "c")), ("int64", (2,))
    run = one(tmp_path, "Reshape", {"x": x, "s": shape})
    for s in ((6, 4), (-1, 8), (0, -1), (24, 1)):
        np.testing.assert_array_equal(run(X, np.array(s))[0], X.reshape([2, 12] if s[0] == 0 else s))
    run = one(tmp_path, "Expand", {"x": ("float32", (3, 1)), "s": ("int64", (3,))})
    for s in ((2, 3, 4), (1, 1, 1), (5, 3, 1)):
        expected = np.broadcast_to(X[0, :, :1], np.broadcast_shapes(s, (3, 1)))
        np.testing.assert_array_equal(run(X[0, :, :1].copy(), np.array(s))[0], expected)
    run = one(tmp_path, "Tile", {"x": x, "n": ("int64", (3,))})
    for n in ((1, 2, 3), (2, 1, 1)):
        np.testing.assert_array_equal(run(X, np.array(n))[0], np.tile(X, n))
    run = one(tmp_path, "ConstantOfShape", {"s": ("int64", (2,))}, value=np.array([2.5], np.float32))
    assert (run(np.array([2, 5]))[0] == np.full((2, 5), 2.5)).all()


@pytest.mark.parametrize("keep", [0, 1])
@pytest.mark.parametrize(
    ("kind", "function"), [("ReduceSum", np.sum), ("ReduceMax", np.max), ("ReduceMean", np.mean)]
)
def test_axes_of_reductions(tmp_path, kind, function, keep):
    run = one(tmp_path, kind, {"x": ("float32", (2, "n", 4)), "axes": ("int64", (2,))}, keepdims=keep)
    for axes in ((0, 1), (2, 0), (1, -1), (-2, 0)):
        expected = function(X, axis=axes, keepdims=bool(keep))
        np.testing.assert_allclose(run(X, np.array(axes))[0], expected, rtol=1e-5, atol=1e-6)


def test_axes_that_come_and_go(tmp_path):
    run = one(tmp_path, "Unsqueeze", {"x": ("float32", (3, 4)), "axes": ("int64", (2,))})
    for axes in ((0, 1), (1, 3), (-1, 0)):
        np.testing.assert_array_equal(run(X[0], np.array(axes))[0], np.expand_dims(X[0], axes))
    run = one(tmp_path, "Squeeze", {"x": ("float32", (None, None, None)), "axes": ("int64", (1,))})
    for axis in (0, 1, -1):
        np.testing.assert_array_equal(run(X.take([1], axis), np.array([axis]))[0], X.take(1, axis))
    with pytest.raises(RuntimeError, match="does not hold"):
        run(X, np.array([0]))
    run = one(tmp_path, "CumSum", {"x": ("float32", (2, 3, None)), "axis": ("int32", ())}, exclusive=1)
    for axis in (0, 1, -1):
        np.testing.assert_allclose(run(X, np.array(axis, np.int32))[0], X.cumsum(axis) - X, atol=1e-6)


def test_parts(tmp_path):
    four = ("int64", (1,))
    run = one(
        tmp_path, "Slice", {"x": ("float32", (2, "n", 4)), "a": four, "b": four, "axes": four, "by": four}
    )
    least, most = -(2**63), 2**63 - 1
    cases = ((0, 2, 1, 1), (-1, least, 2, -2), (1, most, 0, 1), (3, 0, -1, -1), (2, 1, 2, 1))
    for start, end, axis, step in cases:
        parts = [slice(None)] * 3
        parts[axis] = slice(start, None if abs(end) > 2**60 else end, step)
        made = run(X, *(np.array([v]) for v in (start, end, axis, step)))[0]
        np.testing.assert_array_equal(made, X[tuple(parts)])
    run = one(tmp_path, "Split", {"x": ("float32", (2, "n", 4)), "sizes": ("int64", (2,))}, count=2, axis=1)
    for sizes in ((1, 2), (3, 0)):
        low, high = run(X, np.array(sizes))
        np.testing.assert_array_equal(low, X[:, : sizes[0]])
        np.testing.assert_array_equal(high, X[:, sizes[0] :])
    with pytest.raises(RuntimeError, match="does not hold"):
        run(X, np.array((1, 1)))


def test_counts(tmp_path):
    run = one(tmp_path, "TopK", {"x": ("float32", (2, 3, "n")), "k": ("int64", (1,))}, count=2)
    for k in (1, 3, 4):
        values, places = run(X, np.array([k]))
        order = np.argsort(-X, -1, kind="stable")[..., :k]
        np.testing.assert_array_equal(places, order)
        np.testing.assert_array_equal(values, np.take_along_axis(X, order, -1))
    whole = ((0, 5, 1), (3, -4, -2), (1, 1, 1), (0, 7, 3))
    for dtype, cases in (("int64", whole), ("float32", ((0, 1, 0.25), (1, 0, -0.3)))):
        run = one(tmp_path, "Range", {n: (dtype, ()) for n in "abc"})
        for case in cases:
            made = run(*(np.array(v, dtype) for v in case))[0]
            np.testing.assert_allclose(made, np.arange(*case, dtype=dtype), atol=1e-6)
    run = one(tmp_path, "OneHot", {"i": ("int64", (None,)), "n": ("int64", ()), "v": ("float32", (2,))})
    for n in (3, 5):
        made = run(np.array([0, 2, -1]), np.array(n), np.array([0, 4], np.float32))[0]
        np.testing.assert_array_equal(made, 4 * np.eye(n, dtype=np.float32)[[0, 2, n - 1]])
    run = one(tmp_path, "Trilu", {"x": ("float32", (3, 4)), "k": ("int64", ())}, upper=0)
    for k in (-5, -1, 0, 2):
        np.testing.assert_array_equal(run(X[0], np.array(k))[0], np.tril(X[0], k))


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_pads(tmp_path, mode):
    inputs = {"x": ("float32", (2, "n", 4)), "pads": ("int64", (6,)), "value": ("float32", ())}
    run = one(tmp_path, "Pad", inputs, opset=19, mode=mode)
    more = {"constant_values": 7} if mode == "constant" else {}
    for pads in ((0, 1, 2, 1, 0, 1), (0, 0, 0, 0, 0, 0), (1, 2, 3, 1, 2, 3)):
        expected = np.pad(X, list(zip(pads[:3], pads[3:])), mode, **more)
        np.testing.assert_array_equal(run(X, np.array(pads), np.array(7, np.float32))[0], expected)


def _linear(n, out):
    """The matrix of a linear resize with half-pixel centers."""
    places = np.clip((np.arange(out) + 0.5) * n / out - 0.5, 0, n - 1)
    return np.clip(1 - np.abs(places[:, None] - np.arange(n)), 0, None)


@pytest.mark.parametrize("by", ["sizes", "scales", "open"])
def test_images_are_resized_to_what_the_input_says(tmp_path, by):
    x = ("float32", (1, 2, "h", "w"))
    if by == "open":
        weights = {"s": np.array([1, 1, 2.5, 0.5], np.float32)}
        message = model([node("Resize", "x - s", "y", mode="linear")], {"x": x}, "y", weights, opset=18)
    else:
        kind = ("int64", (4,)) if by == "sizes" else ("float32", (4,))
        names = "x - - s" if by == "sizes" else "x - s"
        message = model([node("Resize", names, "y", mode="linear")], {"x": x, "s": kind}, "y", opset=18)
    run = converted(tmp_path, message)
    for h, w, to in ((4, 6, (10, 3)), (2, 2, (5, 1)), (4, 4, (10, 2)), (3, 5, (3, 5))):
        image = np.random.default_rng(h).normal(size=(1, 2, h, w)).astype(np.float32)
        given = []
        if by == "sizes":
            given = [np.array([1, 2, *to])]
        elif by == "scales":
            given = [np.array([1, 1, to[0] / h, to[1] / w], np.float32)]
        elif to == (3, 5):
            continue
        expected = np.einsum("oh,nchw,pw->ncop", _linear(h, to[0]), image, _linear(w, to[1]))
        np.testing.assert_allclose(run(image, *given)[0], expected, atol=1e-5)
