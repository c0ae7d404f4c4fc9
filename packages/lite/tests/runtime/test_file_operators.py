"""Operators of MindSpore Lite's files: its answers where it has them, else what they are defined to be."""

from __future__ import annotations

import pathlib
import sys

import numpy as np
import pytest

import mycelia_lite as mslite

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from operator_cases import CASES, Case, Fixed, case, fixed, reals, write_case

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures"
ANSWERS = np.load(FIXTURES / "operators.npz")
ANSWERED = sorted({key.rpartition("/")[0] for key in ANSWERS.files})
TOLERANCE = 2e-4  # MindSpore Lite's hyperbolic tangent and sigmoid are good to 4 digits


def answers(folder, case: Case, **feed):
    given = write_case(str(folder / "one.ms"), case)
    model = mslite.Model()
    model.build_from_file(str(folder / "one.ms"))
    for tensor, array in zip(model.get_inputs(), given, strict=True):
        tensor.set_data_from_numpy(array)
    return [t.get_data_to_numpy() for t in model.predict(model.get_inputs())]


def arrays_of(case: Case):
    return [v.array if isinstance(v, Fixed) else v for v in case.inputs]


@pytest.mark.parametrize("name", ANSWERED)
def test_as_mindspore_lite(name, tmp_path):
    found = answers(tmp_path, CASES[name])
    for i, y in enumerate(found):
        want = ANSWERS[f"{name}/{i}"]
        assert (y.shape, y.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(y, want, rtol=TOLERANCE, atol=TOLERANCE)


def _sum_segments(x, index, count):
    total = np.zeros((count, *x.shape[1:]), x.dtype)
    np.add.at(total, index, x)
    return total


def _bounded(table, index):
    rows = table[index]
    return rows * np.minimum(1, 1 / np.linalg.norm(rows, axis=-1, keepdims=True))


def _scattered(index, updates, shape):
    y = np.zeros(shape, updates.dtype)
    np.add.at(y, tuple(index.T), updates)
    return y


def _scatter_rows(x, index, updates):
    y = x.copy()
    np.put_along_axis(y, index, updates, 0)
    return y


def _groups(x, scale, bias):
    g = x.reshape(2, 3, -1)
    y = (g - g.mean(-1, keepdims=True)) / np.sqrt(g.var(-1, keepdims=True) + 1e-3)
    return y.reshape(x.shape) * scale[:, None, None] + bias[:, None, None]


def _to_space(x, sides, border):
    n, h, w, c = x.shape
    y = (
        x.reshape(sides[0], sides[1], n // 4, h, w, c)
        .transpose(2, 3, 0, 4, 1, 5)
        .reshape(n // 4, h * 2, w * 2, c)
    )
    return y[:, border[0][0] : h * 2 - border[0][1], border[1][0] : w * 2 - border[1][1]]


def _affine(x, weights, bias):
    """Rows 2 before, itself and 1 behind, as far as they are there."""
    rows = np.concatenate([x[:, 0:3], x[:, 2:5], x[:, 3:6]], -1)
    return np.maximum(rows @ (weights.T if weights.shape[1] == 9 else weights) + bias, 0)


DEFINED = {
    "Affine": _affine,
    "Affine turned": _affine,
    "Activation ABS": np.abs,
    "Activation SELU": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    "Activation SIGN": np.sign,
    "Activation SOFTSIGN": lambda x: x / (1 + np.abs(x)),
    "Activation THRESHOLDRELU": lambda x: np.where(x > np.float32(0.3), x, 0),
    "All": lambda x, axes: x.all(1, keepdims=True),
    "BatchToSpaceND": lambda x: _to_space(x, (2, 2), ((0, 1), (1, 0))),
    "BatchToSpaceND by inputs": _to_space,
    "Crop one offset": lambda x, like: x[:, 1:3, 1:4, 1:3],
    "Depend": lambda x, other: x,
    "Dropout": lambda x: x,
    "Elu": lambda x: np.where(x > 0, x, np.float32(0.7) * np.expm1(x)),
    "EmbeddingLookupFusion bounded": _bounded,
    "FillV2": lambda shape, value: np.full(shape, value),
    "FormatTranspose": lambda x: x.transpose(0, 3, 1, 2),
    "FormatTranspose back": lambda x: x.transpose(0, 2, 3, 1),
    "GroupNormFusion": _groups,
    "LeakyRelu": lambda x: np.where(x > 0, x, np.float32(0.2) * x),
    "LinSpace": lambda first, last, count: np.linspace(first[0], last[0], count[0], dtype=np.float32),
    "LpNormalization": lambda x: x / np.linalg.norm(x, axis=1, keepdims=True),
    "NonZero": lambda x: np.stack(np.nonzero(x)).astype(np.int32),
    "Range": lambda: np.arange(2, 11, 3, dtype=np.int32),
    "Rank": lambda x: np.asarray(3, np.int32),
    "ScatterElements": _scatter_rows,
    "ScatterNd": _scattered,
    "SparseToDense": lambda i, s, v, d: np.float32([[-1, 5, -1], [-1, -1, 6]]),
    "SparseToDense one number": lambda i, s, v, d: np.float32([[0, 5, 0], [0, 0, 5]]),
    "SparseToDense vector": lambda i, s, v, d: np.float32([0, 5, 0, 6, 0]),
    "StridedSlice ellipsis": lambda x, *limits: x[..., 1:3],
    "UnsortedSegmentSum": lambda x, index, count: _sum_segments(x, index, count[0]),
}
RANDOM = ["RandomNormal", "RandomStandardNormal", "RandomStandardNormal second seed"]


def test_all_cases_are_held_against_something():
    assert set(CASES) == {*ANSWERED, *DEFINED, *RANDOM}


@pytest.mark.parametrize("name", DEFINED)
def test_as_defined(name, tmp_path):
    (y,) = answers(tmp_path, CASES[name])
    want = DEFINED[name](*arrays_of(CASES[name]))
    assert (y.shape, y.dtype) == (want.shape, want.dtype) if name != "LpNormalization" else True
    np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind, mean, deviation", [("RandomNormal", 1, 2), ("RandomStandardNormal", 0, 1)])
def test_random_numbers_have_the_distribution_and_follow_the_seed(kind, mean, deviation, tmp_path):
    shape = np.array([100, 200], np.int32)
    of_kind = {"mean": 1.0, "scale": 2.0} if kind == "RandomNormal" else {}
    seeded = [answers(tmp_path, case(kind, shape, seed=seed, **of_kind))[0] for seed in (3, 3, 4, 0, 0)]
    for y in seeded:
        assert abs(y.mean() - mean) < 0.05 * deviation and abs(y.std() - deviation) < 0.05 * deviation
        assert abs((np.abs(y - mean) < deviation).mean() - 0.6827) < 0.02
    np.testing.assert_array_equal(seeded[0], seeded[1])
    assert (seeded[0] != seeded[2]).mean() > 0.9 and (seeded[3] != seeded[4]).mean() > 0.9


def test_duplicate_places_add_up(tmp_path):
    index, updates = np.array([[0, 2], [1, 1], [0, 2]], np.int32), reals(3, 4)
    (y,) = answers(tmp_path, case("ScatterNd", index, updates, fixed([2, 3, 4])))
    np.testing.assert_allclose(y, _scattered(index, updates, (2, 3, 4)), rtol=1e-6)


@pytest.mark.parametrize("corner", range(1, 5))
@pytest.mark.parametrize("beyond", [np.nan, np.inf, -np.inf])
def test_a_region_that_ends_nowhere_does_not_reach_the_others(tmp_path, corner, beyond):
    rows = np.array([[0, 1, 1, 5, 4], [1, 1, 1, 5, 4]], np.float32)
    rows[0, corner] = beyond
    image = reals(2, 5, 7, 3, low=1)
    (y,) = answers(tmp_path, case("ROIPooling", image, rows, pooled_h=2, pooled_w=3, scale=1.0))
    assert not np.isnan(y).any() and (y[1] >= 1).all()
    assert not (np.isnan(beyond) and y[0].any())


def test_a_ranking_box_network_of_two_classes(tmp_path):
    """Each class has its own limit, as in ONNX."""
    boxes = np.array([[[0, 0, 1, 1], [0, 2, 1, 3], [0, 4, 1, 5]]], np.float32)
    scores = np.array([[[0.9, 0.8, 0.7], [0.3, 0.2, 0.1]]], np.float32)
    one = case("NonMaxSuppression", boxes, scores, fixed([2]), fixed([0.5], np.float32), outputs=["INT32"])
    (y,) = answers(tmp_path, one)
    np.testing.assert_array_equal(y, [[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1]])


REFUSED = {
    "preserve_aspect_ratio": case(
        "Resize", reals(1, 2, 2, 1), new_height=4, new_width=4, method="LINEAR", preserve_aspect_ratio=True
    ),
    "method": case("Resize", reals(1, 2, 2, 1), new_height=4, new_width=4, method="UNKNOWN"),
    "activation_type": case("Activation", reals(2), activation_type="RELU1"),
    "step_w": case(
        "PriorBox", reals(1, 3, 2, 4), reals(1, 30, 40, 3), min_sizes=[8], max_sizes=[16], step_w=9.0
    ),
    "out_quantized": case(
        "DetectionPostProcess",
        reals(1, 6, 4),
        reals(1, 6, 4),
        fixed(reals(6, 4), np.float32),
        outputs=["FLOAT32"] * 4,
        scale=[1.0] * 4,
        max_detections=2,
        num_classes=3,
        max_classes_per_detection=1,
        out_quantized=True,
    ),
    "a GRU of 6 inputs": case("GRU", *[reals(1, 1, 1)] * 6, outputs=["FLOAT32"] * 2),
    "differ before axis 1": case("Crop", reals(2, 5, 7, 3), reals(1, 2, 3, 3), axis=1, offsets=[1]),
    "a length of 9": case("ReverseSequence", reals(2, 3), np.array([1, 9], np.int32), seq_dim=1, batch_dim=0),
    "of image 7": case(
        "CropAndResize",
        reals(2, 5, 7, 3),
        fixed(reals(1, 4), np.float32),
        np.array([7], np.int32),
        fixed([2, 2]),
        method="LINEAR",
    ),
    "LSTMGrad": case("LSTMGrad", reals(2)),
    "fewer rows than context reaches": case(
        "Affine", reals(1, 2, 3), Fixed(reals(9, 4)), context=[-1, 0, 1], output_dim=9
    ),
    "context and output_dim do not fit": case(
        "Affine", reals(1, 5, 3), Fixed(reals(9, 4)), context=[0, 1], output_dim=9
    ),
    "the weights must be a constant matrix": case(
        "Affine", reals(1, 5, 3), reals(6, 4), context=[0, 1], output_dim=6
    ),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_is_not_done_is_an_error_that_names_it(why, tmp_path):
    with pytest.raises((RuntimeError, ValueError), match=why) as error:
        answers(tmp_path, REFUSED[why])
    assert "node" in str(error.value)
