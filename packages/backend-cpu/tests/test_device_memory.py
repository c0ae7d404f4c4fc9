"""Native kernels of a device with memory of its own: the CPU's, on blocks that only the device gives out.

A kernel that is called directly gets addresses of the device, numbers as tensors, its arena, its updates.
What the far device of `examples` shows for kernels in Python is shown here for those of a table.
"""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import mycelia as ms
from mycelia import Parameter, Tensor, nn, ops
from mycelia.backends import Backend, registry
from mycelia.engine.compile.executable import live_programs
from mycelia.testing.comparison import on_backend
from mycelia.testing.conformance import backend_suite, contract_suite
from mycelia.testing.training_contract import train_lenet

RUBBISH = 0xA5


class NearBackend(Backend):
    """Kernels of the CPU on blocks by address; fresh and freed memory is full of rubbish."""

    own_memory = True
    channels_last = True

    def __init__(self, name):
        self.name = name
        self.blocks: dict[int, np.ndarray] = {}
        self.copied = {"in": 0, "out": 0}

    def kernels(self):
        return registry.load("cpu").backend.kernels()

    def passes(self, stable):
        return registry.load("cpu").backend.passes(stable)

    def allocate(self, size):
        if size > 1 << 32:
            raise MemoryError(f"the device has no {size} bytes")
        block = np.full(size + 64, RUBBISH, np.uint8)
        address = -(-block.ctypes.data // 64) * 64
        self.blocks[address] = block
        return address

    def free(self, address, size):
        self.blocks.pop(address)[:] = RUBBISH

    def copy_from_host(self, address, source):
        self.copied["in"] += 1
        ctypes.memmove(address, bytes(source), len(source))

    def copy_to_host(self, target, address):
        self.copied["out"] += 1
        target[:] = ctypes.string_at(address, len(target))

    def copy(self, target, source, size):
        ctypes.memmove(target, source, size)


@pytest.fixture(scope="module", autouse=True)
def near():
    backend = NearBackend("near")
    registry.available().update(near=backend, nearer=NearBackend("nearer"))
    yield backend
    del registry.available()["near"], registry.available()["nearer"]
    registry.load.cache_clear()


OPS = {
    "add",
    "mat_mul",
    "conv",
    "max_pool",
    "softmax",
    "concat",
    "where",
    "sum",
    "layer_norm",
    "adam",
    "gather",
}


@pytest.mark.parametrize("case", list(backend_suite("near", OPS)), ids=lambda case: case.name)
def test_conforms(case):
    case()


@pytest.mark.parametrize("case", list(contract_suite("near")), ids=lambda case: case.name)
def test_keeps_the_contract(case):
    case()


def test_no_copies_within_a_compiled_step(near):
    """Everything stays on the device: only the batch goes there."""
    with on_backend("near"), ms.config.context(fallback="error"):
        train_lenet("step", 1)
        net = nn.Dense(8, 4)
        optimizer = nn.Adam(net.trainable_params(), 0.01)
        gradient = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), None, optimizer.parameters)

        @ms.jit
        def step(x):
            loss, gradients = gradient(x)
            optimizer(gradients)
            return loss

        batches = [Tensor(np.full((2, 8), i, np.float32)) for i in range(4)]
        step(batches[0]), step(batches[1])
        near.copied.update({"in": 0, "out": 0})
        step(batches[2])
        assert near.copied == {"in": 1, "out": 0}


def test_updates_are_written_in_place(near):
    with on_backend("near"):
        parameter, x = (
            Parameter(Tensor(np.zeros(1000, np.float32)), name="p"),
            Tensor(np.ones(1000, np.float32)),
        )

        def add(x):
            ops.assign_add(parameter, x)
            return x

        for run in (add, ms.jit(add)):
            run(x)
            address = parameter.data_ptr()
            run(x)
            assert parameter.data_ptr() == address and address in near.blocks
        assert parameter.asnumpy().tolist() == [4] * 1000


def test_tensors_go_from_device_to_device(near):
    other = registry.available()["nearer"]
    array = np.arange(6, dtype=np.float32)
    with on_backend("near"):
        parameter = Parameter(Tensor(array), name="p")
        doubled = ms.jit(lambda: parameter * 2)
        assert doubled().device == "near:0" and parameter.device == "near:0"
        x = parameter.move_to("nearer")
    assert x.device == "nearer:0" and x.data_ptr() in other.blocks
    with on_backend("nearer"):
        assert (x + parameter).asnumpy().tolist() == (2 * array).tolist()
        assert parameter.device == "nearer:0" and doubled().device == "nearer:0"
        assert x.to(ms.Tensor(0.0)) is x and ms.Tensor(array).to(x).device == "nearer:0"
    assert ms.hal.memory_allocated("nearer") >= 24


def test_numbers_become_tensors_of_the_device(near):
    with on_backend("near"):
        x = Tensor(np.arange(3, dtype=np.float32)) * 1
        before = near.copied["in"]
        assert (x + 2.5).asnumpy().tolist() == [2.5, 3.5, 4.5]
        assert near.copied["in"] == before + 1


def test_values_of_a_fallback_do_not_lie_in_the_arena(near):
    function = ms.jit(lambda x: ops.sinh(x + 1).cumprod(0) * 2)
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    with on_backend("near"):
        near_supports = near.supports
        near.supports = lambda op, types, attrs: op != "sinh"
        try:
            got = function(Tensor(x)).asnumpy()
        finally:
            near.supports = near_supports
    np.testing.assert_allclose(got, np.sinh(x + 1).cumprod(0) * 2, rtol=1e-4)
    assert any([n.op.name for n in p.nodes].count("device_copy") == 2 for p in live_programs())
