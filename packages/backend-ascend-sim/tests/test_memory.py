"""Memory of the device: results of the cube lie in its layouts; addresses are checked."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import ops
from mycelia.io.device_formats import Formatted, to_device
from mycelia.ops.define import find
from mycelia.testing.comparison import on_backend
from mycelia_backend_ascend_sim.backend import device
from mycelia_backend_ascend_sim.memory import Memory


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


def test_plain_bytes_and_layouts_take_each_others_place():
    memory = Memory(1 << 20)
    start = memory.allocate(4096)
    first, second = (np.arange(60, dtype=np.float16).reshape(6, 10) + n for n in (0, 100))

    def put(address, x):
        memory.put(address, x.nbytes, Formatted(to_device(x, "FRACTAL_NZ"), "FRACTAL_NZ", x.shape))

    def plain(address, count):
        return memory.read(address, 2 * count).view(np.float16)

    put(start, first)
    put(start + 512, second)
    assert plain(start + 20, 5).tolist() == first.reshape(-1)[10:15].tolist()  # a part of one
    np.testing.assert_array_equal(plain(start + 512, 60), second.reshape(-1))
    assert memory.formatted(start, (6, 10), 120) is not None  # reading leaves it there
    assert memory.formatted(start, (10, 6), 120) is None
    put(start, second)
    memory.to_write(start + 10, 4)[:] = np.array([7, 8], np.float16).view(np.uint8)  # the rest stays
    want = second.reshape(-1).copy()
    want[5:7] = 7, 8
    np.testing.assert_array_equal(plain(start, 60), want)
    assert memory.formatted(start, (6, 10), 120) is None
    memory.to_write(start + 512, 120)[:] = 0
    assert memory.formatted(start + 512, (6, 10), 120) is None and not plain(start + 512, 60).any()
    put(start, first)
    put(start, second)
    np.testing.assert_array_equal(plain(start, 60), second.reshape(-1))
    memory.free(start)
    assert memory.used == 0
