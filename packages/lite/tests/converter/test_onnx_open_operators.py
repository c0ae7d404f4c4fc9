"""ONNX operators on open sizes, or with sizes that are data, against the same models with all sizes known."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia_lite.converter import ConversionError

from .onnx_files import answers, close
from .onnx_models import converted, model, node, write

X = np.random.default_rng(1).normal(size=(2, 4, 5, 6)).astype(np.float32)
W = np.random.default_rng(2).normal(size=(4, 3, 3, 2)).astype(np.float32)
NUMBERS = (np.arange(24).reshape(4, 6) % 7).astype(np.float32)


def i64(*values):
    return np.array(values, np.int64)


@pytest.mark.parametrize(
    ("kind", "arrays", "attributes"),
    [
        ("Hardmax", [X], dict(axis=2)),
        ("Pad", [X, i64(0, 0, 2, 1, 0, 0, 1, 2)], dict(mode="edge")),
        ("Pad", [X, i64(0, 0, -2, 3, 0, 0, 1, -2)], dict(mode="wrap")),
        ("Pad", [X, i64(0, 0, -1, 1, 0, 0, -2, 0), np.float32(3)], {}),
        ("Trilu", [X], dict(upper=1)),
        ("Trilu", [X, np.array(-2)], dict(upper=0)),
        ("ArgMax", [NUMBERS], dict(axis=1, select_last_index=1)),
        ("ArgMin", [NUMBERS], dict(axis=0, select_last_index=1, keepdims=0)),
        ("ReverseSequence", [NUMBERS, i64(1, 4, 3, 2, 2, 1)], dict(time_axis=0, batch_axis=1)),
        ("ScatterElements", [NUMBERS, i64(0, 3, 1)[None], NUMBERS[:1, :3] + 9], dict(axis=0)),
        ("ScatterElements", [NUMBERS, i64(0, 3, 1)[None], NUMBERS[:1, :3]], dict(axis=1, reduction="mul")),
        ("ScatterND", [NUMBERS, i64(-1, 1)[:, None], NUMBERS[:2] * 2], dict(reduction="max")),
        ("DepthToSpace", [X], dict(blocksize=2, mode="CRD")),
        ("SpaceToDepth", [X[:, :, :4]], dict(blocksize=2)),
        ("Einsum", [X[0], X[1]], dict(equation="chw,ckw->chk")),
        ("ConvTranspose", [X, W], dict(strides=[2, 3], pads=[3, 0, 1, 2])),
        ("ConvTranspose", [X[:, :, 0], W[:, :, 0]], dict(strides=[2], pads=[1, 0], output_padding=[1])),
        ("Conv", [X, W.transpose(1, 0, 2, 3)], dict(strides=[2, 3], auto_pad="SAME_UPPER")),
        ("Conv", [X[:, :, 0], W.transpose(1, 0, 2, 3)[..., 0]], dict(strides=[2], auto_pad="SAME_LOWER")),
        ("MaxPool", [X], dict(kernel_shape=[3, 2], strides=[2, 4], auto_pad="SAME_UPPER")),
    ],
)  # fmt: skip
def test_open_sizes_answer_as_known_ones(tmp_path, kind, arrays, attributes):
    constants = range(1, len(arrays))
    wanted = answers(tmp_path, kind, arrays, constants=constants, opset=19, **attributes)[0]
    rank = arrays[0].ndim
    opened = arrays[0].shape[:2] + (None,) * (rank - 2) if rank > 2 else (None,) * rank
    shapes = {"x0": opened}
    found = answers(tmp_path, kind, arrays, constants=constants, opset=19, shapes=shapes, **attributes)[0]
    assert np.ptp(wanted.astype(float)) > 0
    close(found, wanted)


@pytest.mark.parametrize("kind", ["linear", "cubic"])
@pytest.mark.parametrize("outside", [0, 1])
def test_a_smooth_resize_to_sizes_that_are_data(tmp_path, kind, outside):
    how = dict(mode=kind, antialias=1, exclude_outside=outside)
    if outside:
        how["mode"] = "cubic"
    for sizes in ((2, 4, 2, 3), (2, 4, 5, 13), (2, 4, 1, 6), (2, 4, 3, 4)):
        given = [X, None, None, i64(*sizes)]
        wanted = answers(tmp_path, "Resize", given, constants=[3], **how)[0]
        close(answers(tmp_path, "Resize", given, **how)[0], wanted)
    scales = [X, None, np.array([1, 1, 0.4, 1.7], np.float32)]
    wanted = answers(tmp_path, "Resize", scales, constants=[2], **how)[0]
    close(answers(tmp_path, "Resize", scales, **how)[0], wanted)
    close(answers(tmp_path, "Resize", scales, constants=[2], shapes={"x0": (None,) * 4}, **how)[0], wanted)


def test_zero_is_a_size_of_a_shape_that_is_data(tmp_path):
    empty = np.zeros((0, 3, 4), np.float32)
    y = answers(tmp_path, "Reshape", [empty, i64(3, 0, 5)], allowzero=1)[0]
    assert y.shape == (3, 0, 5)
    y = answers(tmp_path, "Reshape", [X, i64(2, -1, 6)], allowzero=1)[0]
    np.testing.assert_array_equal(y, X.reshape(2, -1, 6))
    with pytest.raises(RuntimeError, match="cannot be given the shape"):
        answers(tmp_path, "Reshape", [X, i64(2, 0, 6)], allowzero=1)


def test_mel_filters_of_data(tmp_path):
    numbers = [np.array(8), np.array(16), np.array(8192), np.array(0, np.float32), np.array(4096, np.float32)]
    wanted = answers(tmp_path, "MelWeightMatrix", numbers, constants=range(5))[0]
    found = answers(tmp_path, "MelWeightMatrix", numbers)[0]
    assert wanted.any()
    close(found, wanted)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "float64", "uint8"])
def test_products_means_and_extremes_of_all_numbers(tmp_path, dtype):
    x = np.array([[3, 2, 4], [1, 5, 2]], dtype)
    if dtype.startswith(("i", "f")):
        x[0] *= -1
    close(
        answers(tmp_path, "ReduceProd", [x, i64(1)], constants=[1])[0], x.prod(1, keepdims=True, dtype=dtype)
    )
    close(answers(tmp_path, "ReduceProd", [x], keepdims=0)[0], x.prod(dtype=dtype))
    mean = np.trunc(x.mean(1)) if dtype != "float64" else x.mean(1)
    found = answers(tmp_path, "ReduceMean", [x, i64(1)], constants=[1], keepdims=0)[0]
    close(found, mean.astype(dtype))
    found = answers(tmp_path, "ReduceMean", [x, i64(1)], keepdims=0)[0]
    close(found, mean.astype(dtype))
    close(answers(tmp_path, "ArgMax", [x], axis=1, keepdims=0)[0], x.argmax(1))
    at, new = i64(2, 0)[:, None], np.array([[7], [100]], dtype)
    wanted = x.copy()
    wanted[0, 2], wanted[1, 0] = max(x[0, 2], 7), max(x[1, 0], 100)
    found = answers(tmp_path, "ScatterElements", [x, at, new], constants=[1], axis=1, reduction="max")[0]
    close(found, wanted)
    rows, more = i64(1, 1)[:, None], np.array([[2, 1, 3], [2, 2, 2]], dtype)
    wanted = x.copy()
    wanted[1] *= more[0] * more[1]
    close(answers(tmp_path, "ScatterND", [x, rows, more], constants=[1], reduction="mul")[0], wanted)


def test_sizes_of_what_an_op_is_composed_of_are_not_those_of_the_model(tmp_path):
    """A mean in float64 is a sum by a sum, whose open sizes are numbered anew."""
    weights = {"axis": i64(0), "row": np.ones((1, 5, 1), np.float32)}
    nodes = [node("Mul", "a row", "scaled"), node("ReduceMean", "b axis", "mean", keepdims=0)]
    inputs = {"a": ("float32", (5, "n", 2)), "b": ("float64", (3, "m", "k", 5, 2))}
    run = converted(tmp_path, model(nodes, inputs, "scaled mean", weights, 18))
    a, b = np.ones((5, 5, 2), np.float32), np.random.default_rng(0).normal(size=(3, 2, 4, 5, 2))
    np.testing.assert_allclose(run(a, b)[1], b.mean(0))


def test_a_reduction_of_no_axes_keeps_the_dtype(tmp_path):
    x = i64(3, 1, 0)
    close(answers(tmp_path, "ReduceLogSumExp", [x], noop_with_empty_axes=1)[0], x)


def test_axes_as_an_input_before_they_were_one_are_refused(tmp_path):
    with pytest.raises(ConversionError, match="from opset 18 on"):
        answers(tmp_path, "ReduceMean", [X, i64(1)], constants=[1], opset=17)


@pytest.mark.parametrize("sizes", [(2, 3, 4), (4, 3, 4), (1, 3, 4)])
def test_einsum_with_open_sizes_beside_known_ones(tmp_path, sizes):
    nodes = [
        node("Einsum", "x w", "y", equation="bij,jk->bki"),
        node("Einsum", "x row", "z", equation="bij,ij->bi"),
    ]
    weights = {"w": NUMBERS[:, :5].copy(), "row": NUMBERS[:1, :4].copy()}
    run = converted(tmp_path, model(nodes, {"x": ("float32", ("b", "i", "j"))}, "y z", weights))
    x = np.random.default_rng(3).normal(size=sizes).astype(np.float32)
    y, z = run(x)
    np.testing.assert_allclose(y, np.einsum("bij,jk->bki", x, weights["w"]), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(z, np.einsum("bij,j->bi", x, weights["row"][0]), rtol=1e-5, atol=1e-5)


def test_einsum_refuses_other_sizes_than_its_weights_have(tmp_path):
    message = model(
        [node("Einsum", "x w", "y", equation="ij,jk->ik")], {"x": ("float32", (2, None))}, "y",
        {"w": NUMBERS},
    )  # fmt: skip
    mslite.Converter().convert(mslite.FmkType.ONNX, write(tmp_path / "m.onnx", message), str(tmp_path / "m"))
    net = mslite.Model()
    net.build_from_file(str(tmp_path / "m.ms"))
    net.resize(net.get_inputs(), [[2, 4]])
    with pytest.raises(RuntimeError):
        net.resize(net.get_inputs(), [[2, 3]])
