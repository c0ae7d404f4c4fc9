"""Transposes of every element size, with edges of all tiles, and rows that are copied in runs."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import ops

SHAPES = {
    "one tile": (8, 8),
    "less than a tile": (3, 5),
    "edges of small and wide tiles": (61, 46),
    "runs": (130, 256),
    "runs that end early": (133, 517),
    "rows of a prime length": (1031, 263),
    "long rows": (5, 3001),
    "tall": (3001, 5),
    "rows a power of two apart": (512, 768),
}
DTYPES = ("int8", "float16", "float32", "int64")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_matrix(shape, dtype, threads):
    x = np.random.default_rng(3).integers(-100, 100, shape).astype(dtype)
    np.testing.assert_array_equal(ops.transpose(ms.Tensor(x), (1, 0)).asnumpy(), x.T)


@pytest.mark.parametrize("axes", [(0, 2, 1), (2, 0, 1), (1, 0, 2), (2, 1, 0)])
@pytest.mark.parametrize("shape", [(3, 70, 515), (129, 66, 4), (2, 300, 131)])
def test_three_axes(shape, axes, threads):
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    np.testing.assert_array_equal(ops.transpose(ms.Tensor(x), axes).asnumpy(), x.transpose(axes))


@pytest.mark.parametrize("channels", range(2, 10))
def test_images_of_few_channels(channels, threads):
    for pixels in (1, 3, 4, 5, 8, 9, 196, 511, 512, 513, 1031):
        x = np.arange(2 * channels * pixels, dtype=np.float32).reshape(2, channels, pixels)
        turned = ops.transpose(ms.Tensor(x), (0, 2, 1))
        np.testing.assert_array_equal(turned.asnumpy(), x.transpose(0, 2, 1))
        np.testing.assert_array_equal(ops.transpose(turned, (0, 2, 1)).asnumpy(), x)
