"""Images read between pixels, against loops over their definition."""

import math

import numpy as np
import pytest

import mycelia as ms
from mycelia import ops
from mycelia.testing.gradcheck import check_gradient

rng = np.random.default_rng(3)
IMAGE = rng.normal(size=(2, 3, 4, 5)).astype(np.float32)
GRID = rng.uniform(-1.4, 1.4, (2, 3, 2, 2)).astype(np.float32)


def _reflect(p, low, high):
    while p < low or p > high:
        p = 2 * low - p if p < low else 2 * high - p
    return p


def _read(image, y, x, mode, padding, align):
    places = []
    for c, n in ((y, image.shape[0]), (x, image.shape[1])):
        p = (c + 1) * (n - 1) / 2 if align else (c + 1) * n / 2 - 0.5
        if padding == "reflection":
            p = _reflect(p, 0, n - 1) if align else _reflect(p, -0.5, n - 0.5)
        places.append(p if padding == "zeros" else min(max(p, 0), n - 1))
    y, x = places
    if mode == "nearest":
        corners = [(round(y), round(x), 1.0)]
    else:
        fy, fx = math.floor(y), math.floor(x)
        corners = [
            (fy + a, fx + b, (1 - abs(y - fy - a)) * (1 - abs(x - fx - b))) for a in (0, 1) for b in (0, 1)
        ]
    return sum(w * image[i, j] for i, j, w in corners if 0 <= i < image.shape[0] and 0 <= j < image.shape[1])


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_grid_sample(mode, padding, align):
    want = np.zeros((2, 3, 3, 2), np.float32)
    for n, c, i, j in np.ndindex(want.shape):
        want[n, c, i, j] = _read(IMAGE[n, c], GRID[n, i, j, 1], GRID[n, i, j, 0], mode, padding, align)
    found = ops.grid_sample(ms.Tensor(IMAGE), ms.Tensor(GRID), mode, padding, align)
    np.testing.assert_allclose(found.asnumpy(), want, rtol=1e-4, atol=1e-5)
    compiled = ms.jit(lambda x, g: ops.grid_sample(x, g, mode, padding, align))
    np.testing.assert_allclose(
        compiled(ms.Tensor(IMAGE), ms.Tensor(GRID)).asnumpy(), want, rtol=1e-4, atol=1e-5
    )


def test_grid_sample_gradients():
    check_gradient(
        lambda x, g: (ops.grid_sample(x, g, "bilinear", "border"),),
        [IMAGE[:1, :2].astype(np.float64), GRID[:1].astype(np.float64)], second=False,
    )  # fmt: skip


def test_affine_grid_and_grid_sample_are_inverse_to_one_another():
    turn = ms.Tensor([[[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]])  # exchanges the axes
    square = ms.Tensor(IMAGE[:1, :, :4, :4])
    for align in (False, True):
        found = ops.grid_sample(square, ops.affine_grid(turn, (1, 3, 4, 4), align), align_corners=align)
        np.testing.assert_allclose(found.asnumpy(), IMAGE[:1, :, :4, :4].transpose(0, 1, 3, 2), atol=1e-5)
    still = ms.Tensor(np.eye(3, 4, dtype=np.float32)[None])
    volume = ms.Tensor(rng.normal(size=(1, 2, 2, 3, 4)).astype(np.float32))
    found = ops.grid_sample(volume, ops.affine_grid(still, (1, 2, 2, 3, 4)), align_corners=False)
    np.testing.assert_allclose(found.asnumpy(), volume.asnumpy(), atol=1e-5)


def test_crop_and_resize():
    image = np.arange(20, dtype=np.float32).reshape(1, 4, 5, 1)
    boxes = ms.Tensor([[0.0, 0.0, 1.0, 1.0], [1 / 3, 0.25, 1.0, 0.5], [0.0, 0.5, 2.0, 0.5]])
    index = ms.Tensor([0, 0, 0], ms.int32)
    found = ops.crop_and_resize(ms.Tensor(image), boxes, index, (3, 2), "bilinear", -1.0).asnumpy()[..., 0]
    np.testing.assert_allclose(found[0], [[0, 4], [7.5, 11.5], [15, 19]], atol=1e-5)
    np.testing.assert_allclose(found[1], [[6, 7], [11, 12], [16, 17]], atol=1e-5)
    np.testing.assert_allclose(found[2], [[2, 2], [17, 17], [-1, -1]], atol=1e-5)
    nearest = ops.crop_and_resize(ms.Tensor(image), boxes[:1], index[:1], (1, 1), "nearest")
    assert nearest.shape == (1, 1, 1, 1) and float(nearest.sum()) == 12
    with pytest.raises(ValueError, match="method"):
        ops.crop_and_resize(ms.Tensor(image), boxes, index, (2, 2), "cubic")


def test_deformable_convolution_without_offsets_is_convolution():
    x, w = ms.Tensor(IMAGE), ms.Tensor(rng.normal(size=(4, 3, 2, 3)).astype(np.float32))
    offsets = np.zeros((2, 3, 6, 5, 3), np.float32)
    offsets[:, 2] = 1.0  # the masks
    plain = ops.conv2d(x, w, None, (1, 2), "pad", (1, 1), 1)
    offsets = ms.Tensor(offsets.reshape(2, 18, 5, 3))
    bent = ops.deformable_conv2d(x, w, offsets, (2, 3), (1, 1, 1, 2), (1, 1, 1, 1))
    np.testing.assert_allclose(bent.asnumpy(), plain.asnumpy(), rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="offsets"):
        ops.deformable_conv2d(x, w, offsets, (3, 3), (1, 1, 1, 2), (1, 1, 1, 1))


def test_deformable_convolution_moves_its_taps():
    x = np.arange(12, dtype=np.float32).reshape(1, 1, 3, 4)
    w = ms.Tensor(np.ones((1, 1, 1, 1), np.float32))
    offsets = np.zeros((1, 3, 3, 4), np.float32)
    offsets[:, 0], offsets[:, 1], offsets[:, 2] = 0.5, 1.0, 2.0  # x, y, mask
    found = ops.deformable_conv2d(
        ms.Tensor(x), w, ms.Tensor(offsets), (1, 1), (1, 1, 1, 1), (0, 0, 0, 0)
    ).asnumpy()[0, 0]
    np.testing.assert_allclose(found[0], 2 * np.array([4.5, 5.5, 6.5, 3.5]))
    assert not found[2].any()


@pytest.mark.parametrize(
    "call",
    [
        lambda x, g: ops.grid_sample(x, g, "cubic"), lambda x, g: ops.grid_sample(x, g, padding_mode="edge"),
        lambda x, g: ops.grid_sample(x[0], g), lambda x, g: ops.grid_sample(x[:1], g),
        lambda x, g: ops.affine_grid(g, (2, 3, 4, 4)),
    ],
)  # fmt: skip
def test_errors(call):
    with pytest.raises(ValueError):
        call(ms.Tensor(IMAGE), ms.Tensor(GRID))
