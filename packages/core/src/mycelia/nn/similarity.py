"""Measures of images: structural similarity on one and several scales, gradients."""

from __future__ import annotations

import numpy as np

from mycelia.engine import ops
from mycelia.engine.base import errors
from mycelia.engine.base.dtypes import float16, float32, float64, uint8
from mycelia.engine.tensors.tensor import Tensor
from mycelia.nn.cell import Cell
from mycelia.nn.container import CellList
from mycelia.nn.conv import Conv2d


def _window(size: int, sigma: float) -> np.ndarray:
    """A bell of `size` x `size` weights that sum to 1."""
    line = np.arange(-size // 2 + 1, size // 2 + 1, dtype=np.float32) ** 2
    bell = np.exp(-(line[:, None] + line[None, :]) / (2 * sigma**2))
    return (bell / bell.sum())[None, None].astype(np.float32)


def _blur(size: int, sigma: float) -> Conv2d:
    layer = Conv2d(1, 1, size, weight_init=Tensor(_window(size, sigma)), pad_mode="valid")
    layer.weight.requires_grad = False
    return layer


def _check_settings(owner: str, max_val, filter_size, filter_sigma, k1, k2) -> None:
    if isinstance(max_val, bool) or not isinstance(max_val, (int, float)):
        raise errors.type_error(owner, f"max_val must be a number, but got {max_val!r}")
    if isinstance(filter_size, bool) or not isinstance(filter_size, int):
        raise errors.type_error(owner, f"filter_size must be an int, but got {filter_size!r}")
    for name, value in (("filter_sigma", filter_sigma), ("k1", k1), ("k2", k2)):
        if not isinstance(value, float):
            raise errors.type_error(owner, f"{name} must be a float, but got {value!r}")
    for name, value in (("max_val", max_val), ("filter_size", filter_size), ("filter_sigma", filter_sigma)):
        if value <= 0:
            raise errors.value_error(owner, f"{name} must be positive, but got {value}")


def _check_images(owner: str, first, second, dtypes) -> None:
    for name, image in (("img1", first), ("img2", second)):
        if not isinstance(image, Tensor):
            raise errors.type_error(owner, f"{name} must be a Tensor, but got {type(image).__name__}")
    if first.dtype not in dtypes or second.dtype is not first.dtype:
        raise errors.type_error(
            owner, f"the images must have one dtype of {dtypes}, but have {first.dtype} and {second.dtype}"
        )
    if first.ndim != 4 or first.shape != second.shape:
        raise errors.value_error(
            owner, f"the images must both be [N, C, H, W], but are {first.shape} and {second.shape}"
        )


def _as_floats(image, largest: float):
    return ops.cast(image, float32) * (1.0 / largest)


def _largest(dtype) -> float:
    return 255.0 if dtype is uint8 else 1.0


def _compare(first, second, blur: Conv2d, c1: float, c2: float):
    """Similarity and contrast of each channel, averaged over places: [N, C] twice."""
    n, channels, height, width = first.shape
    x, y = (image.reshape((n * channels, 1, height, width)) for image in (first, second))
    mean_x, mean_y = blur(x), blur(y)
    xx, yy, xy = mean_x * mean_x, mean_y * mean_y, mean_x * mean_y
    spread = blur(x * x) - xx + blur(y * y) - yy
    contrast = (2 * (blur(x * y) - xy) + c2) / (spread + c2)
    similarity = (2 * xy + c1) / (xx + yy + c1) * contrast
    return tuple(ops.mean(m, (1, 2, 3)).reshape((n, channels)) for m in (similarity, contrast))


class SSIM(Cell):
    """Structural similarity of two batches of images (Wang et al. 2004). Shapes: [N, C, H, W] twice -> [N].

    `max_val`: largest value of a pixel; `filter_size`, `filter_sigma`: the window; `k1`, `k2`: constants of
    the measure.  dtypes: float32, float16.
    """

    def __init__(self, max_val=1.0, filter_size=11, filter_sigma=1.5, k1=0.01, k2=0.03):
        super().__init__()
        _check_settings("SSIM", max_val, filter_size, filter_sigma, k1, k2)
        self.max_val, self.filter_size, self.filter_sigma = max_val, filter_size, filter_sigma
        self.k1, self.k2 = k1, k2
        self.conv = _blur(filter_size, filter_sigma)

    def construct(self, img1, img2):
        _check_images("SSIM", img1, img2, (float32, float16))
        if min(img1.shape[2:]) < self.filter_size:
            raise errors.value_error(
                "SSIM", f"images {list(img1.shape)} are smaller than the window of {self.filter_size}"
            )
        c1, c2 = (self.k1 * self.max_val) ** 2, (self.k2 * self.max_val) ** 2
        similarity, _ = _compare(ops.cast(img1, float32), ops.cast(img2, float32), self.conv, c1, c2)
        return ops.mean(similarity, -1)


class MSSSIM(Cell):
    """Structural similarity over several scales, each half the size of the one before (Wang et al. 2003).

    Shapes: [N, C, H, W] twice -> [N].  `power_factors`: a weight per scale, the largest first.
    dtypes: float16, float32, float64, uint8.
    """

    def __init__(
        self,
        max_val=1.0,
        power_factors=(0.0448, 0.2856, 0.3001, 0.2363, 0.1333),
        filter_size=11,
        filter_sigma=1.5,
        k1=0.01,
        k2=0.03,
    ):
        super().__init__()
        _check_settings("MSSSIM", max_val, filter_size, filter_sigma, k1, k2)
        if not isinstance(power_factors, (tuple, list)):
            raise errors.type_error(
                "MSSSIM", f"power_factors must be a tuple or list, but got {power_factors!r}"
            )
        self.max_val, self.filter_size, self.filter_sigma = max_val, filter_size, filter_sigma
        self.k1, self.k2, self.level = k1, k2, len(power_factors)
        self.multi_convs_list = CellList([_blur(filter_size, filter_sigma) for _ in power_factors])
        self.weight_tensor = Tensor(list(power_factors), float32)

    def construct(self, img1, img2):
        _check_images("MSSSIM", img1, img2, (float64, float32, float16, uint8))
        largest = _largest(img1.dtype)
        scaled = self.max_val / largest
        c1, c2 = (self.k1 * scaled) ** 2, (self.k2 * scaled) ** 2
        x, y = _as_floats(img1, largest), _as_floats(img2, largest)
        parts = []
        for level in range(self.level):
            similarity, contrast = _compare(x, y, self.multi_convs_list[level], c1, c2)
            parts.append(ops.relu(contrast if level < self.level - 1 else similarity))
            x, y = (ops.avg_pool2d(image, 2, 2) for image in (x, y))
        weighted = ops.pow(ops.stack(parts, -1), self.weight_tensor)
        return ops.mean(ops.prod(weighted, -1), -1)


class ImageGradients(Cell):
    """Differences of neighbouring pixels down and across, 0 at the far edge. Shapes: [N, C, H, W] -> same
    twice.
    """

    def construct(self, images):
        if images.ndim != 4:
            raise errors.value_error(
                "ImageGradients", f"images must be [N, C, H, W], but their shape is {list(images.shape)}"
            )
        down = images[:, :, 1:, :] - images[:, :, :-1, :]
        across = images[:, :, :, 1:] - images[:, :, :, :-1]
        return ops.pad(down, (0, 0, 0, 1)), ops.pad(across, (0, 1))
