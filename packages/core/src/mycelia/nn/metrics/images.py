"""Metrics of images: peak signal-to-noise ratio and structural similarity, as means over all images."""

from __future__ import annotations

import numpy as np

from mycelia.engine.tensors.tensor import Tensor
from mycelia.nn.cell import Cell
from mycelia.nn.metrics.base import Metric, rearrange_inputs


class _Images(Metric):
    """The mean over images of what a Cell tells of each pair. Shapes: images and truth [N, C, H, W]."""

    _added = ("_sum", "_count")

    def __init__(self, cell: Cell):
        super().__init__()
        self._cell = cell
        self.clear()

    def clear(self):
        self._sum, self._count = 0.0, 0

    @rearrange_inputs
    def update(self, *inputs):
        images, truth = self._arrays(inputs, 2)
        found = self._cell(Tensor(images), Tensor(truth)).asnumpy()
        self._sum += float(found.sum(dtype=np.float64))
        self._count += len(found)

    def eval(self):
        self._require_updates(self._count)
        return self._sum / self._count


class PeakSignalNoiseRatio(_Images):
    """The mean of `nn.PSNR` in decibel; inf for images that are alike.

    Shapes: images and truth [N, C, H, W]. Errors: as of `nn.PSNR`.
    """

    def __init__(self, max_val: float = 1.0):
        from mycelia.nn.image import PSNR

        super().__init__(PSNR(max_val))
        self.max_val = max_val


class StructuralSimilarity(_Images):
    """The mean of `nn.SSIM`, 1 for images that are alike.

    Shapes: images and truth [N, C, H, W]. Errors: as of `nn.SSIM`.
    """

    def __init__(self, max_val: float = 1.0, filter_size: int = 11, filter_sigma: float = 1.5):
        from mycelia.nn.similarity import SSIM

        super().__init__(SSIM(max_val, filter_size, filter_sigma))
        self.max_val, self.filter_size, self.filter_sigma = max_val, filter_size, filter_sigma
