"""ONNX operators on places of images against NumPy, through files."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from .onnx_files import answers, close


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def reflect(v, low, high):
    while not low <= v <= high:
        v = 2 * low - v if v < low else 2 * high - v
    return v


def pixel(image, i, j, padding, corners):
    at = []
    for v, n in zip((i, j), image.shape):
        if padding == "border":
            v = min(max(v, 0), n - 1)
        elif padding == "reflection":
            v = int(reflect(v, 0 if corners else -0.5, n - 1 if corners else n - 0.5))
        if not 0 <= v < n:
            return 0.0
        at.append(v)
    return image[tuple(at)]


def sampled(image, x, y, mode, padding, corners):
    at = []
    for v, n in zip((y, x), image.shape):
        v = (v + 1) / 2 * (n - 1) if corners else ((v + 1) * n - 1) / 2
        v = np.rint(v) if mode == "nearest" else v
        if padding == "border":
            v = min(max(v, 0), n - 1)
        elif padding == "reflection":
            v = reflect(v, 0 if corners else -0.5, n - 1 if corners else n - 0.5)
        at.append(v)
    if mode == "nearest":
        return pixel(image, int(at[0]), int(at[1]), padding, corners)
    top, left = int(np.floor(at[0])), int(np.floor(at[1]))
    v, h = at[0] - top, at[1] - left
    return sum(
        (v if a else 1 - v) * (h if b else 1 - h) * pixel(image, top + a, left + b, padding, corners)
        for a, b in itertools.product((0, 1), repeat=2)
    )


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("corners", [0, 1])
def test_grids_of_images(tmp_path, padding, corners):
    x, grid = draw(2, 3, 4, 5), (draw(2, 3, 2, 2, seed=1) * np.float32(1.3))
    for mode, name in (("linear", "linear"), ("nearest", "nearest")):
        wanted = np.zeros((2, 3, 3, 2), np.float32)
        for n, c, i, j in np.ndindex(wanted.shape):
            wanted[n, c, i, j] = sampled(x[n, c], *grid[n, i, j].tolist(), mode, padding, corners)
        how = dict(opset=20, mode=name, padding_mode=padding, align_corners=corners)
        close(answers(tmp_path, "GridSample", [x, grid], **how)[0], wanted, 1e-4)


def test_cubic_grids_go_through_the_elements_and_volumes_are_images_too(tmp_path):
    x = draw(1, 2, 5, 6)
    h, w = np.linspace(-1, 1, 5), np.linspace(-1, 1, 6)
    grid = np.stack(np.meshgrid(w, h), -1)[None].astype(np.float32)
    close(answers(tmp_path, "GridSample", [x, grid], opset=20, mode="cubic", align_corners=1)[0], x, 1e-4)
    x = draw(1, 2, 3, 4, 5)
    axes = [np.linspace(-1, 1, n) for n in (3, 4, 5)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij")[::-1], -1)[None].astype(np.float32)
    close(answers(tmp_path, "GridSample", [x, grid], opset=20, align_corners=1)[0], x, 1e-4)


def test_regions_of_a_slope_have_its_values_in_the_middle_of_cells(tmp_path):
    x = np.broadcast_to(np.arange(10.0)[:, None] + np.arange(12.0) * 100, (2, 1, 10, 12)).astype(np.float32)
    boxes, images = np.array([[2, 1, 8, 7], [4, 2, 10, 8]], np.float32), np.array([1, 0])
    how = dict(output_height=3, output_width=2, sampling_ratio=2, spatial_scale=1.0)
    found = answers(tmp_path, "RoiAlign", [x, boxes, images], opset=16, **how)[0]
    rows, columns = np.array([2.0, 4.0, 6.0]) - 0.5, np.array([3.5, 6.5]) - 0.5
    close(found[0, 0], (rows[:, None] + columns * 100).astype(np.float32))
    how["coordinate_transformation_mode"] = "output_half_pixel"
    whole = answers(tmp_path, "RoiAlign", [x, boxes, images], opset=16, **how)[0]
    close(whole, found + np.float32(50.5))
    with pytest.raises(RuntimeError, match="region 0 is of image 7"):
        answers(tmp_path, "RoiAlign", [x, boxes, np.array([7, 0])], opset=16, **how)


@pytest.mark.parametrize("corner", range(4))
@pytest.mark.parametrize("beyond", [np.nan, np.inf, -np.inf])
def test_regions_that_end_nowhere_do_not_reach_the_others(tmp_path, corner, beyond):
    x, boxes = draw(1, 2, 6, 7), np.array([[1, 1, 5, 4], [1, 1, 5, 4]], np.float32)
    boxes[0, corner] = beyond
    how = dict(output_height=2, output_width=3, sampling_ratio=0, spatial_scale=1.0)
    aligned = answers(tmp_path, "RoiAlign", [x, boxes, np.zeros(2, np.int64)], opset=16, **how)[0]
    assert not np.isnan(aligned).any() and aligned[1].any()
    assert not (np.isnan(beyond) and aligned[0].any())


def convolved(x, w):
    y = np.zeros((x.shape[0], w.shape[0], x.shape[2] - 1, x.shape[3] - 1), np.float32)
    for i, j in np.ndindex(2, 2):
        part = x[:, :, i : i + y.shape[2], j : j + y.shape[3]]
        y += np.einsum("nchw,oc->nohw", part, w[:, :, i, j])
    return y


def test_deformed_windows(tmp_path):
    x, w, bias = draw(1, 2, 5, 6), draw(3, 2, 2, 2, seed=1), draw(3, seed=2)
    offset, mask = np.zeros((1, 8, 4, 5), np.float32), np.full((1, 4, 4, 5), 0.5, np.float32)
    found = answers(tmp_path, "DeformConv", [x, w, offset, bias, mask], opset=19)[0]
    close(found, convolved(x, w) * 0.5 + bias[:, None, None], 1e-4)
    offset[:, 0::2], offset[:, 1::2] = 1, -1  # down and to the left
    moved = np.zeros_like(x)
    moved[:, :, :-1, 1:] = x[:, :, 1:, :-1]
    close(answers(tmp_path, "DeformConv", [x, w, offset], opset=19)[0], convolved(moved, w), 1e-4)
    half = offset * np.float32(0.5)
    half[:, 1::2] = 0
    down = np.concatenate([x[:, :, 1:], np.zeros_like(x[:, :, :1])], 2)
    close(answers(tmp_path, "DeformConv", [x, w, half], opset=19)[0], convolved((x + down) / 2, w), 1e-4)


@pytest.mark.parametrize("constants", [(), (1,)])
@pytest.mark.parametrize("corners", [0, 1])
def test_affine_grids_of_sizes_that_may_be_data(tmp_path, constants, corners):
    theta, size = draw(2, 2, 3), np.array([2, 1, 3, 4])
    ends = (lambda n: np.linspace(-1, 1, n)) if corners else (lambda n: (2 * np.arange(n) + 1) / n - 1)
    x, y = np.meshgrid(ends(4), ends(3))
    places = np.stack([x, y, np.ones_like(x)], -1)
    wanted = np.einsum("nij,hwj->nhwi", theta, places).astype(np.float32)
    given = dict(opset=20, constants=constants, align_corners=corners)
    close(answers(tmp_path, "AffineGrid", [theta, size], **given)[0], wanted)


@pytest.mark.parametrize("constants", [(), (1,)])
def test_centers_are_cut_out_or_put_into_zeros(tmp_path, constants):
    x = draw(5, 8, 3)
    found = answers(
        tmp_path, "CenterCropPad", [x, np.array([8, 5])], opset=18, constants=constants, axes=[0, 1]
    )[0]
    close(found, np.pad(x[:, 1:6], ((1, 2), (0, 0), (0, 0))))


@pytest.mark.parametrize("constants", [(), (1, 2)])
def test_windows_are_added_up_in_images(tmp_path, constants):
    x = draw(2, 3 * 6, 8)
    wanted = np.zeros((2, 3, 5 + 2, 6 + 1), np.float32)
    for n, c, k, p in np.ndindex(2, 3, 6, 8):
        wanted[n, c, p // 2 * 1 + k // 3 * 2, p % 2 * 2 + k % 3] += x[n, c * 6 + k, p]
    found = answers(
        tmp_path, "Col2Im", [x, np.array([4, 4]), np.array([2, 3])], opset=18, constants=constants,
        dilations=[2, 1], strides=[1, 2], pads=[1, 0, 1, 1],
    )[0]  # fmt: skip
    close(found, wanted[:, :, 1:5, :4])


def test_max_pools_are_undone(tmp_path):
    x = draw(2, 3, 4, 6)
    y, places = answers(tmp_path, "MaxPool", [x], 2, kernel_shape=[2, 2], strides=[2, 2])
    windows = x.reshape(2, 3, 2, 2, 3, 2)
    wanted = np.where(windows == windows.max((3, 5), keepdims=True), windows, 0).reshape(x.shape)
    close(answers(tmp_path, "MaxUnpool", [y, places], kernel_shape=[2, 2], strides=[2, 2])[0], wanted)
    larger = np.array([2, 3, 5, 6])
    found = answers(tmp_path, "MaxUnpool", [y, places, larger], kernel_shape=[2, 2], strides=[2, 2])[0]
    close(found, np.pad(wanted, ((0, 0), (0, 0), (0, 1), (0, 0))))


@pytest.mark.parametrize("padded", [0, 1])
def test_means_of_windows_with_gaps(tmp_path, padded):
    x = draw(1, 2, 7, 9)
    bordered = np.full((1, 2, 9, 11), np.nan, np.float32)
    bordered[:, :, 1:-1, 1:-1] = x
    if padded:
        bordered = np.nan_to_num(bordered)
    wanted = np.zeros((1, 2, 3, 4), np.float32)
    for i, j in np.ndindex(3, 4):
        wanted[:, :, i, j] = np.nanmean(bordered[:, :, 2 * i : 2 * i + 5 : 2, 2 * j : 2 * j + 4 : 3], (2, 3))
    how = dict(kernel_shape=[3, 2], dilations=[2, 3], strides=[2, 2], pads=[1] * 4)
    found = answers(tmp_path, "AveragePool", [x], opset=19, count_include_pad=padded, **how)[0]
    close(found, wanted, 1e-5)


# ---- sizes that depend on data ---------------------------------------------------------------------------


def test_places_and_slices_that_a_condition_selects(tmp_path):
    x = draw(3, 4) > 0.3
    close(answers(tmp_path, "NonZero", [x])[0], np.stack(np.nonzero(x)))
    values = draw(3, 4)
    rows = np.array([True, False, True])
    close(answers(tmp_path, "Compress", [values, rows], axis=0)[0], values[rows])
    mask = np.array([False, True, True, False, False, True, False])
    close(answers(tmp_path, "Compress", [values, mask])[0], values.reshape(-1)[:7][mask])
    close(answers(tmp_path, "Compress", [values, np.zeros(3, bool)], axis=0)[0], values[:0])


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint64])
def test_distinct_elements(tmp_path, axis, dtype):
    x = np.random.default_rng(0).integers(0, 3, (6, 2)).astype(dtype)
    given = {} if axis is None else dict(axis=axis)
    found = answers(tmp_path, "Unique", [x], 4, **given)
    y, first, inverse, counts = np.unique(x, True, True, True, axis=axis)
    for a, e in zip(found, (y, first, inverse.reshape(-1), counts)):
        close(a, e)
    found = answers(tmp_path, "Unique", [x], 4, sorted=0, **given)
    order = np.argsort(first)
    for a, e in zip(found, (np.take(y, order, axis or 0), first[order], None, counts[order])):
        if e is not None:
            close(a, e)
    flat = x.reshape(-1) if axis is None else x
    close(np.take(found[0], found[2], axis or 0), flat)


@pytest.mark.parametrize("center", [0, 1])
def test_boxes_that_overlap_a_better_one_are_dropped(tmp_path, center):
    random = np.random.default_rng(0)
    corner, size = random.uniform(0, 5, (2, 20, 2)), random.uniform(1, 4, (2, 20, 2))
    boxes = np.concatenate([corner, corner + size], -1).astype(np.float32)
    given = boxes
    if center:
        middle = (boxes[..., :2] + boxes[..., 2:]) / 2
        given = np.concatenate([middle[..., ::-1], (boxes[..., 2:] - boxes[..., :2])[..., ::-1]], -1)
    scores = random.uniform(0, 1, (2, 3, 20)).astype(np.float32)
    wanted = []
    for n, c in np.ndindex(2, 3):
        kept = []
        for i in np.argsort(-scores[n, c], kind="stable"):
            if (
                scores[n, c, i] > 0.2
                and len(kept) < 4
                and all(overlap(boxes[n, i], boxes[n, k]) <= 0.3 for k in kept)
            ):
                kept.append(i)
        wanted += [[n, c, i] for i in kept]
    limits = [np.array([4]), np.array([0.3], np.float32), np.array([0.2], np.float32)]
    found = answers(tmp_path, "NonMaxSuppression", [given.copy(), scores, *limits], center_point_box=center)[
        0
    ]
    close(found, np.array(wanted))
    assert answers(tmp_path, "NonMaxSuppression", [given.copy(), scores])[0].shape == (0, 3)


def overlap(a, b):
    h, w = (min(a[k + 2], b[k + 2]) - max(a[k], b[k]) for k in (0, 1))
    both = max(h, 0) * max(w, 0)
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)


# ---- others ----------------------------------------------------------------------------------------------


def test_sequences_of_numbers_are_counted(tmp_path):
    rows = np.array([[1, 1, 3, 3, 3, 7], [8, 6, 7, 5, 6, 8]], np.int32)
    how = dict(
        mode="TFIDF", min_gram_length=1, max_gram_length=2, max_skip_count=1, ngram_counts=[0, 2],
        ngram_indexes=[3, 0, 1, 2], pool_int64s=[3, 7, 3, 3, 5, 8], weights=[2.0, 1.0, 1.0, 0.5],
    )  # fmt: skip
    # 3: three times; 7: once; 3 3: twice side by side and once with one between; 5 8: once with one between.
    wanted = np.array([[1, 3, 0, 6], [1, 0, 0.5, 0]], np.float32)
    close(answers(tmp_path, "TfIdfVectorizer", [rows], **how)[0], wanted)


def test_whole_powers_below_zero_are_rounded_to_zero(tmp_path):
    base, power = np.array([2, 3, -1, -1, 1, 5], np.int32), np.array([-1, 2, -3, -2, -9, 0], np.int32)
    close(answers(tmp_path, "Pow", [base, power])[0], np.array([0, 9, -1, 1, 1, 1], np.int32))


def test_scales_of_blocks(tmp_path):
    x, scale = draw(2, 7), np.array([[1, 2, 4, 8], [0.5, 1, 2, 4]], np.float32)
    wide = np.repeat(scale, 2, 1)[:, :7]
    how = dict(opset=21, axis=1, block_size=2)
    zero = np.zeros((2, 4), np.int8)
    y = np.clip(np.rint(x * 20 / wide), -128, 127).astype(np.int8)
    close(answers(tmp_path, "QuantizeLinear", [x * np.float32(20), scale, zero], **how)[0], y)
    close(answers(tmp_path, "DequantizeLinear", [y, scale, zero], **how)[0], y.astype(np.float32) * wide)


def test_batch_norm_as_in_training(tmp_path):
    x, scale, bias, mean = draw(4, 3, 5), *(draw(3, seed=k) for k in (1, 2, 3))
    variance = np.abs(draw(3, seed=4))
    m, v = x.mean((0, 2)), x.var((0, 2))
    wanted = (x - m[:, None]) / np.sqrt(v + 1e-5)[:, None] * scale[:, None] + bias[:, None]
    found = answers(
        tmp_path,
        "BatchNormalization",
        [x, scale, bias, mean, variance],
        3,
        opset=15,
        training_mode=1,
        momentum=0.7,
    )
    for a, e in zip(found, (wanted, mean * 0.7 + m * 0.3, variance * 0.7 + v * 0.3)):
        close(a, e.astype(np.float32), 1e-4)


def test_a_cubic_goes_on_over_the_border_whose_elements_are_repeated(tmp_path):
    x = draw(1, 1, 1, 4)
    place = 3.6  # between the last element and its first repetition
    grid = np.array([[[[(2 * place + 1) / 4 - 1, 0.0]]]], np.float32)
    t = place - 3
    a = -0.75
    far = lambda d: ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    near = lambda d: ((a + 2) * d - (a + 3)) * d * d + 1
    weights = np.array([far(t + 1), near(t), near(1 - t), far(2 - t)])
    wanted = weights @ x[0, 0, 0][[2, 3, 3, 3]]
    how = dict(opset=20, mode="cubic", padding_mode="border")
    close(
        answers(tmp_path, "GridSample", [x, grid], **how)[0], np.full((1, 1, 1, 1), wanted, np.float32), 1e-4
    )
