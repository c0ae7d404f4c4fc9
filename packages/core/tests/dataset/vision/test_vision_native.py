"""Native image transforms are equal to their meaning in NumPy, which other dtypes than uint8 go by."""

from __future__ import annotations

import numpy as np
import pytest

from mycelia.dataset import transforms, vision
from mycelia.dataset.vision import Inter, color_kernels, resample
from mycelia.engine import _data

SHAPES = [(31, 44, 3), (17, 9, 1), (12, 40), (1, 1, 3), (2, 3, 3), (5, 1, 4), (50, 3, 2)]


def image_of(shape, seed=0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


def to_bytes(values) -> np.ndarray:
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


def half_up(values) -> np.ndarray:
    return to_bytes(np.floor(values + 0.5))


def resized(image, rows, columns, mode):
    """8-bit resizing in fixed point: weights of 11 bits, written down once more."""
    height, width = image.shape[:2]
    ri, rw = resample._taps(height, rows, mode, mode == Inter.AREA)
    ci, cw = resample._taps(width, columns, mode, mode == Inter.AREA)
    rw, cw = (np.rint(w * 2048).astype(np.int64) for w in (rw, cw))
    values, extra = image.astype(np.int64), (1,) * (image.ndim - 2)
    lines = sum(values[:, ci[:, k]] * cw[:, k].reshape(1, -1, *extra) for k in range(cw.shape[1]))
    weights = [rw[:, k].reshape(-1, 1, *extra) for k in range(rw.shape[1])]
    if len(weights) == 2:
        total = (sum((weights[k] * (lines[ri[:, k]] >> 4)) >> 16 for k in range(2)) + 2) >> 2
    else:
        total = (sum(weights[k] * lines[ri[:, k]] for k in range(4)) + (1 << 21)) >> 22
    return np.clip(total, 0, 255).astype(np.uint8)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", [(20, 33), (7, 100), (64, 5), (1, 1), (3, 2)])
def test_linear_and_cubic_resizing(shape, size):
    image = image_of(shape)
    for mode in (Inter.LINEAR, Inter.CUBIC):
        if shape[:2] != (2 * size[0], 2 * size[1]):  # halves are means
            np.testing.assert_array_equal(
                resample.resize(image, *size, mode), resized(image, *size, mode), err_msg=str(mode)
            )


@pytest.mark.parametrize("size", [(10, 11), (5, 4), (12, 20), (8, 40), (24, 1), (6, 13)])
def test_area_and_nearest_resizing_are_those_of_other_dtypes(size):
    image = image_of((24, 40, 3))
    exact = resample.resize(image.astype(np.float64), *size, Inter.AREA)
    assert np.abs(resample.resize(image, *size, Inter.AREA) - exact).max() <= 0.5 + 1e-4
    nearest = resample.resize(image.astype(np.uint16), *size, Inter.NEAREST)
    np.testing.assert_array_equal(resample.resize(image, *size, Inter.NEAREST), nearest)


def test_halves_are_rounded_means():
    image = image_of((24, 40, 3))
    blocks = image.astype(np.int64).reshape(12, 2, 20, 2, 3).sum((1, 3))
    for mode in (Inter.LINEAR, Inter.AREA):
        np.testing.assert_array_equal(resample.resize(image, 12, 20, mode), (blocks + 2) >> 2)


@pytest.mark.parametrize("mode", [Inter.NEAREST, Inter.LINEAR, Inter.CUBIC])
@pytest.mark.parametrize("shape", SHAPES)
def test_warps(mode, shape):
    image, exact = image_of(shape), image_of(shape).astype(np.float32)
    fill = (10, 200, 30)
    for degrees in (0.0, 30.0, -77.5, 180.0):
        for expand in (False, True):
            np.testing.assert_array_equal(
                resample.rotate(image, degrees, mode, expand, None, fill),
                half_up(resample.rotate(exact, degrees, mode, expand, None, fill)),
            )
    matrix = np.array([[1.1, 0.1, -2.0], [-0.05, 0.8, 1.0], [0.002, -0.003, 1.0]])
    np.testing.assert_array_equal(
        resample.warp_perspective(image, matrix, mode),
        half_up(resample.warp_perspective(exact, matrix, mode)),
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("lengths", [(1, 3), (5, 1), (7, 9), (3, 3)])
def test_blur(shape, lengths):
    image = image_of(shape)
    for sigmas in ((0.0, 0.0), (1.5, 0.7)):
        exact = resample.gaussian_blur(image.astype(np.float64), lengths, sigmas)
        np.testing.assert_array_equal(resample.gaussian_blur(image, lengths, sigmas), half_up(exact))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("factor", [0.0, 0.3, 1.0, 1.7, 3.1])
def test_colours(shape, factor):
    image = image_of(shape)
    wide = image.astype(np.uint16)
    changes = [color_kernels.brightness, color_kernels.sharpness]
    if image.ndim == 3 and shape[2] == 3:
        changes += [color_kernels.contrast, color_kernels.saturation]
        np.testing.assert_array_equal(color_kernels.grey(image), color_kernels.grey(wide))
        np.testing.assert_array_equal(color_kernels.grey(image, "B"), color_kernels.grey(wide, "B"))
    for change in changes:
        expected = np.minimum(change(wide, factor), 255)
        np.testing.assert_array_equal(change(image, factor), expected, err_msg=change.__name__)


def test_hue_goes_around():
    image = image_of((40, 50, 3))
    grey = np.repeat(image[:, :, :1], 3, axis=2)
    np.testing.assert_array_equal(color_kernels.hue(grey, 0.3), grey)
    turned = color_kernels.hue(image, 1 / 3)
    np.testing.assert_array_equal(turned.max(2), image.max(2))
    pure = np.array([[[255, 0, 0], [0, 255, 0], [0, 0, 255], [0, 0, 0], [255, 255, 255]]], np.uint8)
    third = color_kernels.hue(pure, 1 / 3).astype(int)
    assert np.abs(third - [[[0, 255, 0], [0, 0, 255], [255, 0, 0], [0, 0, 0], [255, 255, 255]]]).max() <= 1
    wide = color_kernels.hue(image.astype(np.uint16), 0.2)
    np.testing.assert_array_equal(wide, color_kernels.hue(image, 0.2))


@pytest.mark.parametrize("shape", SHAPES)
def test_histograms(shape):
    image = image_of(shape) // 3 + 20
    flat = image.reshape(*shape[:2], -1)
    counts = _data.histogram(np.ascontiguousarray(flat))
    for c in range(flat.shape[2]):
        np.testing.assert_array_equal(counts[c], np.bincount(flat[..., c].ravel(), minlength=256))
    result = color_kernels.equalize(image).reshape(flat.shape)
    for c in range(flat.shape[2]):
        order = np.argsort(flat[..., c].ravel(), kind="stable")
        assert (np.diff(result[..., c].ravel()[order].astype(int)) >= 0).all()
        if len(np.unique(flat[..., c])) > 1:
            assert result[..., c].min() == 0 and result[..., c].max() == 255


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float16, np.float32, np.float64, bool])
def test_channels_first(dtype):
    image = image_of((37, 41, 3)).astype(dtype)
    for view in (image, image[3:9, 5:20], image[:, ::-1], image[:, :, :1]):
        result = vision.HWC2CHW()(view)
        assert result.flags.c_contiguous and result.dtype == view.dtype
        np.testing.assert_array_equal(result, view.transpose(2, 0, 1))


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_normalize_is_the_same_for_bytes_and_floats(channels, dtype):
    image = image_of((13, 29, channels)).astype(dtype)
    mean, std = [100.5 + c for c in range(channels)], [31.25 * (c + 1) for c in range(channels)]
    expected = (image.astype(np.float32) - np.float32(mean)) / np.float32(std)
    np.testing.assert_array_equal(vision.Normalize(mean, std)(image), expected)
    first = vision.Normalize(mean, std, is_hwc=False)(np.ascontiguousarray(image.transpose(2, 0, 1)))
    np.testing.assert_array_equal(first, expected.transpose(2, 0, 1))
    np.testing.assert_array_equal(
        vision.Normalize([5.0], [2.0])(image), (image.astype(np.float32) - np.float32(5)) / np.float32(2)
    )


def test_flips_of_views():
    image = image_of((20, 30, 3))
    for view in (image, image[2:9, 4:21], image[::2], image.astype(np.float32), image[:, :, 0]):
        np.testing.assert_array_equal(vision.HorizontalFlip()(view), view[:, ::-1])
        np.testing.assert_array_equal(vision.VerticalFlip()(view), view[::-1])


def test_one_hot_keeps_its_dtype_and_rank():
    np.testing.assert_array_equal(transforms.OneHot(4)(np.int32(2)), np.array([0, 0, 1, 0], np.int32))
    smooth = transforms.OneHot(4, 0.2)(np.array([[1], [3]]))
    np.testing.assert_allclose(smooth, [[0.05, 0.85, 0.05, 0.05], [0.05, 0.05, 0.05, 0.85]], rtol=1e-15)


@pytest.mark.parametrize(
    "call",
    [
        lambda: _data.transform(np.zeros((4, 4, 3), np.float32), *[None] * 7),
        lambda: _data.histogram(np.zeros((4, 4), np.uint8)),
        lambda: _data.histogram("no array"),
        lambda: _data.histogram(np.zeros((4, 0, 3), np.uint8)),
        lambda: _data.planes(np.zeros((4, 4, 3), object)),
        lambda: _data.planes(np.zeros((4, 4, 3), np.complex128)),
        lambda: _data.jpeg_shape(b"bytes"),
        lambda: _data.blur(np.zeros((4, 4, 3), np.uint8), np.ones(2), np.ones(3)),
        lambda: _data.normalize(*(np.zeros(shape, np.float32) for shape in ((4, 3), (2,), (2,)))),
        lambda: vision.native.changed(np.zeros((4, 4, 3), np.uint8), box=(0, 0, 5, 4)),
        lambda: vision.native.changed(np.zeros((4, 4, 3), np.uint8), window=(1, 1, 4, 4)),
        lambda: vision.native.changed(np.zeros((4, 4, 3), np.uint8), table=np.zeros((2, 256))),
    ],
)  # fmt: skip
def test_wrong_arguments_are_errors_not_crashes(call):
    with pytest.raises((TypeError, ValueError)):
        call()
