"""Layouts of devices: their shapes, where each element lies, and that tensors come back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mycelia.io import device_formats as formats

SIZES = st.integers(1, 35)
SHAPES = {
    "NC1HWC0": st.tuples(st.integers(0, 3), SIZES, st.integers(1, 4), st.integers(1, 4)),
    "FRACTAL_Z": st.tuples(SIZES, SIZES, st.integers(1, 3), st.integers(1, 3)),
    "FRACTAL_NZ": st.one_of(st.tuples(SIZES, SIZES), st.tuples(st.integers(1, 3), SIZES, SIZES)),
}
DTYPES = st.sampled_from([np.float16, np.int8, np.float32, np.uint16])


@pytest.mark.parametrize("format", formats.PRIVATE)
@given(data=st.data(), dtype=DTYPES)
def test_tensors_come_back(format, data, dtype):
    shape = data.draw(SHAPES[format])
    x = np.random.default_rng(0).integers(1, 100, shape).astype(dtype)
    there = formats.to_device(x, format)
    assert there.shape == formats.device_shape(format, shape, 32 // there.itemsize)
    assert there.sum(dtype=np.int64) == x.sum(dtype=np.int64)  # padding is zero
    np.testing.assert_array_equal(formats.from_device(there, format, shape), x)


def test_where_elements_lie():
    rng = np.random.default_rng(1)
    image = rng.integers(0, 100, (2, 20, 3, 4)).astype(np.float16)
    assert formats.to_device(image, "NC1HWC0")[1, 1, 2, 3, 2] == image[1, 18, 2, 3]
    weight = rng.integers(0, 100, (18, 20, 3, 2)).astype(np.float16)
    there = formats.to_device(weight, "FRACTAL_Z")
    assert there[1 * 6 + 2 * 2 + 1, 1, 0, 3] == weight[16, 19, 2, 1]  # (C1, H, W), N1, N0, C0
    matrix = rng.integers(0, 100, (20, 40)).astype(np.int8)
    assert formats.to_device(matrix, "FRACTAL_NZ")[1, 1, 2, 5] == matrix[18, 37]  # N1, M1, M0, N0


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: formats.to_device(np.zeros((2, 2)), "NC1HWC0"), "4 axes"),
        (lambda: formats.to_device(np.zeros(2), "FRACTAL_NZ"), "2 or more axes"),
        (lambda: formats.to_device(np.zeros((2, 2)), "NHWC"), "format must be one of"),
        (lambda: formats.from_device(np.zeros((1, 1, 16, 16)), "FRACTAL_NZ", (17, 3)), "in memory"),
    ],
)
def test_what_does_not_fit_is_refused(call, text):
    with pytest.raises(ValueError, match=text):
        call()
