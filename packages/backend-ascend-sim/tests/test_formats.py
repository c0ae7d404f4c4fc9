"""Layouts: their shapes, where each element lies, and that tensors come back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mycelia as ms
from mycelia import ops
from mycelia.ops.define import find
from mycelia.testing.comparison import on_backend
from mycelia_backend_ascend_sim import formats
from mycelia_backend_ascend_sim.backend import device

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


def lies_in(x: ms.Tensor) -> str:
    found = device().memory.formatted(x.data_ptr(), x.shape, x.nbytes)
    return found.format if found else "DefaultFormat"


def test_results_of_the_cube_lie_in_its_layouts_until_they_are_read():
    rng = np.random.default_rng(2)
    x = rng.standard_normal((2, 3, 6, 6)).astype(np.float16)
    w = rng.standard_normal((5, 3, 3, 3)).astype(np.float16)
    with on_backend("Ascend"):
        y = find("conv")(ms.Tensor(x), ms.Tensor(w))
        z = ops.relu(y) + ops.relu(y)
        assert lies_in(y) == lies_in(z) == "NC1HWC0"
        before = device().memory.converted
        found = z.asnumpy()
        assert device().memory.converted == before + 1
        np.testing.assert_array_equal(z.asnumpy(), found)
        assert device().memory.converted == before + 1  # the plain bytes are kept
        np.testing.assert_array_equal(found, 2 * np.maximum(y.asnumpy(), 0))
        assert lies_in(ms.Tensor(x[0, 0]) @ ms.Tensor(x[0, 1])) == "FRACTAL_NZ"
        assert lies_in(find("conv_weight_grad")(ms.Tensor(x), y, kernel=(3, 3))) == "FRACTAL_Z"
        part = ops.assign(ms.Parameter(y * 1), ms.Tensor(np.zeros(y.shape, np.float16)))
        assert lies_in(part) == "DefaultFormat" and not part.asnumpy().any()


def test_memory_refuses_what_lies_outside_of_blocks():
    memory = device().memory
    address = memory.allocate(64)
    with pytest.raises(IndexError):
        memory.read(address + 60, 8)
    memory.free(address)
    with pytest.raises(IndexError):
        memory.read(address, 1)
    with pytest.raises(MemoryError, match="are taken"):
        memory.allocate(memory.capacity + 1)
