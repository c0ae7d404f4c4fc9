"""Memory of the device: results of the cube lie in its layouts; addresses are checked."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import ops
from mycelia.ops.define import find
from mycelia.testing.comparison import on_backend
from mycelia_backend_ascend_sim.backend import device


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
