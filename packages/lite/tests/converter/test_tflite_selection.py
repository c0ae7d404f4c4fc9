"""Operators of TFLITE files that choose by data, convolve volumes or draw numbers."""

from __future__ import annotations

import numpy as np
import pytest

from mycelia_lite.converter import ConversionError

from .tflite_models import answers, of_one, table

RNG = np.random.default_rng(4)
BOXES = np.array(
    [[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1], [0, 100, 1, 101]],
    np.float32,
)
SCORES = np.array([0.9, 0.75, 0.6, 0.95, 0.5, 0.3], np.float32)


def test_buckets(tmp_path):
    options = table("BucketizeOptions", boundaries=[0.0, 10.0, 100.0])
    x = np.array([[-5, 10000, 150], [10, 5, 100]], np.float32)
    for given in (x, x.astype(np.int32), x.astype(np.int64)):
        made = of_one("BUCKETIZE", [given], [("int32", (2, 3))], options)
        (y,) = answers(tmp_path, made, given)
        assert y.dtype == np.int32 and y.tolist() == [[0, 3, 3], [2, 1, 3]]


def test_what_is_no_number_is_in_the_last_bucket(tmp_path):
    x = np.array([np.nan, -np.inf, np.inf], np.float32)
    options = table("BucketizeOptions", boundaries=[0.0, 10.0])
    (y,) = answers(tmp_path, of_one("BUCKETIZE", [x], [("int32", (3,))], options), x)
    assert y.tolist() == [2, 0, 2]  # std::upper_bound finds nothing above NaN


def test_boundaries_that_fall_are_refused(tmp_path):
    options = table("BucketizeOptions", boundaries=[1.0, 0.0])
    with pytest.raises(ConversionError, match="do not rise"):
        answers(tmp_path, of_one("BUCKETIZE", [SCORES], [("int32", (6,))], options), SCORES)


def test_distinct_elements(tmp_path):
    x = np.array([2, 1, 1, 2, 4, 4, 8], np.int32)
    options = table("UniqueOptions", idx_out_type="INT64")
    found, which = answers(tmp_path, of_one("UNIQUE", [x], [("int32", (0,)), ("int64", (7,))], options), x)
    assert found.tolist() == [2, 1, 4, 8]
    assert which.dtype == np.int64 and which.tolist() == [0, 1, 1, 0, 2, 2, 3]


@pytest.mark.parametrize(("least", "count"), [(0.0, 3), (0.4, 2)])
def test_best_boxes(tmp_path, least, count):
    arrays = [BOXES, SCORES, np.int32(4), np.float32(0.5), np.float32(least)]
    outputs = [("int32", (4,)), ("int32", ())]
    made = of_one("NON_MAX_SUPPRESSION_V4", arrays, outputs, constants=(2, 3, 4))
    places, found = answers(tmp_path, made, BOXES, SCORES)
    expected = [3, 0, 5][:count]
    assert found.dtype == np.int32 and found == count
    assert places.tolist() == expected + [0] * (4 - count)
    arrays.append(np.float32(0))
    outputs.insert(1, ("float32", (4,)))
    made = of_one("NON_MAX_SUPPRESSION_V5", arrays, outputs, constants=(2, 3, 4, 5))
    places, scores, found = answers(tmp_path, made, BOXES, SCORES)
    assert found == count and places.tolist()[:count] == expected
    np.testing.assert_array_equal(scores, [*SCORES[expected], *[0] * (4 - count)])


def test_scores_that_fade_are_refused(tmp_path):
    arrays = [BOXES, SCORES, np.int32(4), np.float32(0.5), np.float32(0), np.float32(0.5)]
    outputs = [("int32", (4,)), ("float32", (4,)), ("int32", ())]
    made = of_one("NON_MAX_SUPPRESSION_V5", arrays, outputs, constants=(2, 3, 4, 5))
    with pytest.raises(ConversionError, match="soft_nms_sigma"):
        answers(tmp_path, made, BOXES, SCORES)


def test_elements_apart(tmp_path):
    x = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    arrays = [x, np.array([2, 3], np.int32), np.float32(-1)]
    (y,) = answers(tmp_path, of_one("DILATE", arrays, [("float32", (3, 7))], constants=(1, 2)), x)
    expected = np.full((3, 7), -1, np.float32)
    expected[::2, ::3] = x
    np.testing.assert_array_equal(y, expected)


def volumes(x, w, strides, begin, size):
    """A convolution of [N, D, H, W, I] by [d, h, w, I, O], position by position."""
    padded = np.pad(x, [(0, 0), *[(b, 8) for b in begin], (0, 0)])
    y = np.zeros((len(x), *size, w.shape[4]), np.float64)
    for at in np.ndindex(*size):
        part = padded[(slice(None), *(slice(i * s, i * s + k) for i, s, k in zip(at, strides, w.shape)))]
        y[(slice(None), *at)] = np.tensordot(part, w, 4)
    return y


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_convolutions_of_volumes(tmp_path, padding):
    x, w = RNG.normal(size=(2, 4, 5, 6, 2)), RNG.normal(size=(2, 3, 3, 2, 4))
    x, w, b = x.astype(np.float32), w.astype(np.float32), np.arange(4, dtype=np.float32)
    strides, size = (1, 2, 2), (4, 3, 3) if padding == "SAME" else (3, 2, 2)
    options = table(
        "Conv3DOptions", padding=padding, stride_d=1, stride_h=2, stride_w=2, fused_activation_function="RELU"
    )
    outputs = [("float32", (2, *size, 4))]
    (y,) = answers(tmp_path, of_one("CONV_3D", [x, w, b], outputs, options, constants=(1, 2)), x)
    begin = (0, 1, 0) if padding == "SAME" else (0, 0, 0)
    np.testing.assert_allclose(
        y, np.maximum(volumes(x, w, strides, begin, size) + b, 0), rtol=1e-4, atol=1e-4
    )


def test_transposed_convolutions_of_volumes(tmp_path):
    x, w = RNG.normal(size=(1, 2, 2, 3, 2)), RNG.normal(size=(2, 3, 3, 4, 2))
    x, w, strides = x.astype(np.float32), w.astype(np.float32), (2, 2, 1)
    size = [(n - 1) * s + k for n, s, k in zip(x.shape[1:], strides, w.shape)]
    expected = np.zeros((1, *size, 4))
    for at in np.ndindex(*x.shape[1:4]):
        place = tuple(slice(i * s, i * s + k) for i, s, k in zip(at, strides, w.shape))
        expected[(0, *place)] += np.tensordot(w, x[(0, *at)], 1)
    options = table("Conv3DOptions", padding="VALID", stride_d=2, stride_h=2, stride_w=1)
    arrays = [np.array([1, *size, 4], np.int32), w, x]
    made = of_one("CONV_3D_TRANSPOSE", arrays, [("float32", (1, *size, 4))], options, constants=(0, 1))
    (y,) = answers(tmp_path, made, x)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("seeds", [(0, 0), (3, 5)])
def test_random_numbers(tmp_path, seeds):
    options = table("RandomOptions", seed=seeds[0], seed2=seeds[1])
    shape = np.array([200, 50], np.int32)
    for kind, mean, deviation in (("RANDOM_UNIFORM", 0.5, 12**-0.5), ("RANDOM_STANDARD_NORMAL", 0, 1)):
        made = of_one(kind, [shape], [("float32", (200, 50))], options)
        y, z = (answers(tmp_path, made, shape)[0] for _ in range(2))
        assert y.shape == (200, 50) and abs(y.mean() - mean) < 0.05 and abs(y.std() - deviation) < 0.05
        assert np.array_equal(y, z) == (seeds != (0, 0))


def test_classes_are_drawn_by_their_logarithms(tmp_path):
    logits = np.log(np.array([[0.5, 0.25, 0.25], [1e-9, 0.2, 0.8]], np.float32))
    options = table("RandomOptions", seed=7, seed2=1)
    made = of_one("MULTINOMIAL", [logits, np.int32(4000)], [("int64", (2, 4000))], options, constants=(1,))
    (y,) = answers(tmp_path, made, logits)
    assert y.dtype == np.int64
    shares = np.stack([np.bincount(row, minlength=3) / 4000 for row in y])
    np.testing.assert_allclose(shares, np.exp(logits), atol=0.04)
