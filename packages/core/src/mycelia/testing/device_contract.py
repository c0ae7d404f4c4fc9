"""Checks of a backend beyond single ops: memory, copies, streams, fallback, interchange, training.

Each check is a function of the backend's name and raises AssertionError where the backend does not keep the
contract (`mycelia.backends.Backend`). Expected values come from the reference backend.
"""

from __future__ import annotations

import copy
import gc
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import mycelia as ms
from mycelia import Parameter, Tensor, nn, ops
from mycelia.engine import _C
from mycelia.engine.backends import Buffer, registry
from mycelia.engine.base import dtypes
from mycelia.engine.compile.executable import live_programs
from mycelia.engine.ops.control_flow.device import device_copy
from mycelia.io import device_formats
from mycelia.testing import training_contract
from mycelia.testing.comparison import compare, device_of, draw, on_backend
from mycelia.testing.samples import Sample, all_samples

SHAPES = ((), (0,), (1,), (3, 5), (0, 4), (1025,))


def _bits(dtype: dtypes.DType, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Any bytes, but for bool."""
    rng = np.random.default_rng(seed)
    count = int(np.prod(shape)) * dtype.itemsize
    raw = rng.integers(0, 2 if dtype is dtypes.bool_ else 256, count).astype(np.uint8)
    return raw.view(np.uint16 if dtype is dtypes.bfloat16 else dtype.np).reshape(shape)


def _same_bits(tensor: Tensor, bits: np.ndarray, what: str) -> None:
    assert tensor._bits().tobytes() == bits.tobytes(), (
        f"{what}: {tensor.dtype.name}{list(tensor.shape)} changed"
    )


def check_copies(backend: str) -> None:
    """What is copied to the device, on it and back is the same bytes, for all dtypes and sizes 0 and 1."""
    device = device_of(backend)
    with on_backend(backend):
        for seed, dtype in enumerate(dtypes.ALL):
            for shape in SHAPES:
                bits = _bits(dtype, shape, seed)
                there = _C.on_device(_C.from_array(bits, dtype, False), device)
                assert there._device == device and there.shape == shape and there.dtype is dtype
                again = device_copy(there, device=backend) if device else there.copy()
                _same_bits(there, bits, "a copy to the device and back")
                del there
                _same_bits(again, bits, "a copy on the device")


def check_sources_may_change(backend: str) -> None:
    """Memory that was copied may be written when the copy has returned, and fresh memory is nobody else's."""
    device = device_of(backend)
    with on_backend(backend):
        source = np.arange(64, dtype=np.int32)
        shared = Tensor.from_numpy(source)
        there = _C.on_device(shared, device) if device else shared.copy()
        source[:] = -1
        np.testing.assert_array_equal(there.asnumpy(), np.arange(64))
        held = [_C.on_device(Tensor(np.full(n, n, np.float32)), device) for n in range(1, 40)]
        del held[::2]
        held += [_C.on_device(Tensor(np.full(n, -n, np.float32)), device) for n in range(1, 40)]
        sizes = [*range(2, 40, 2), *(-n for n in range(1, 40))]
        for tensor, n in zip(held, sizes, strict=True):
            np.testing.assert_array_equal(tensor.asnumpy(), np.full(abs(n), n, np.float32))


def check_statistics(backend: str) -> None:
    """Statistics grow with what tensors hold and go back when they let it go; peaks stay until reset."""
    size = 1 << 20
    with on_backend(backend):
        gc.collect()
        ms.runtime.synchronize()
        before = ms.runtime.memory_allocated()
        ms.runtime.reset_peak_memory_stats()
        held = [_C.empty(dtypes.uint8, (size,), device_of(backend)) for _ in range(3)]
        now = ms.runtime.memory_allocated()
        assert before + 3 * size <= now <= before + 6 * size, f"3 tensors of {size} bytes: {before} -> {now}"
        assert ms.runtime.memory_reserved() >= now and ms.runtime.max_memory_allocated() >= now
        del held
        ms.runtime.synchronize()
        assert ms.runtime.memory_allocated() == before, "memory did not come back"
        assert ms.runtime.max_memory_allocated() >= now, "the peak was forgotten"
        ms.runtime.reset_peak_memory_stats()
        assert ms.runtime.max_memory_allocated() < now, "the peak was not reset"
        assert ms.runtime.memory_stats()["total_allocated_memory"] == before
        ms.runtime.empty_cache()


def check_contents(backend: str) -> None:
    """Dumps see in a layout of the device what the host reads; kernels that are counted have numbers that
    grow; status words that were cleared are gone.
    """
    device = registry.load(backend).backend
    with on_backend(backend):
        before = device.last_task()
        results = [
            Tensor(draw(5, 7).astype(np.float16)) @ Tensor(draw(7, 3)).astype(ms.float16),
            nn.Conv2d(3, 20, 2)(Tensor(draw(2, 3, 4, 5))),
            Tensor(draw(6)).astype(ms.bfloat16) * 2,
            Tensor(np.array(True)).logical_not(),
            ops.relu(Tensor(draw(0, 4))),
        ]
        after = device.last_task()
        assert after is None or before is None or after.task_id > before.task_id
        for result in results:
            buffer = Buffer(result.data_ptr(), result.dtype, result.shape)
            layout, content = device.contents(buffer)
            if layout != "DefaultFormat":
                content = device_formats.from_device(content, layout, result.shape)
            assert content.shape == result.shape and content.tobytes() == result._bits().tobytes(), layout
        device.read_overflow(clear=True)
        word, records = device.read_overflow(clear=False)
        assert word == 0 and not records, "the overflow status was not cleared"


def check_limit(backend: str) -> None:
    """More memory than there is is a MemoryError, and what was there stays."""
    kept = draw(100)
    with on_backend(backend):
        x = _C.on_device(Tensor(kept), device_of(backend))
        try:
            _C.empty(dtypes.uint8, (1 << 45,), device_of(backend))
        except MemoryError:
            np.testing.assert_array_equal(x.asnumpy(), kept)
            return
    raise AssertionError("32 terabytes were allocated")


def check_copies_in_graphs(backend: str) -> None:
    """Copies that a program asks for keep values and gradients, in graphs too, whatever the target."""
    name = backend if device_of(backend) else "CPU"
    x = draw(3, 4)

    def there_and_back(t: Tensor) -> Tensor:
        y = (t * 2).move_to(name)
        return ops.relu(y + 1).move_to("CPU") * t

    gradient = np.where(2 * x + 1 > 0, 4 * x + 1, 0)
    for target in (backend, registry.host().backend.name):
        with on_backend(target):
            moved = Tensor(x).move_to(name)
            assert (
                moved.device == registry.device_name(device_of(backend)) and moved.to("CPU").device == "CPU"
            )
            for function in (there_and_back, ms.jit(there_and_back)):
                want = np.maximum(2 * x + 1, 0) * x
                np.testing.assert_allclose(function(Tensor(x)).asnumpy(), want, rtol=1e-5, atol=1e-6)
                got = ms.grad(function)(Tensor(x)).asnumpy()
                np.testing.assert_allclose(got, gradient, rtol=1e-5, atol=1e-6)


def check_streams(backend: str) -> None:
    """Work of one stream runs in order; another waits for an event; waiting ends when all is done."""
    with on_backend(backend):
        x = Tensor(draw(8, 8))
        want = (x.asnumpy() @ x.asnumpy() + 1) * 2
        side = ms.runtime.Stream()
        ms.runtime.current_stream().synchronize()
        with ms.runtime.StreamCtx(side):
            assert ms.runtime.current_stream() == side
            y = x @ x + 1
            reached = side.record_event()
        assert ms.runtime.current_stream() == ms.runtime.default_stream()
        ms.runtime.current_stream().wait_event(reached)
        np.testing.assert_allclose((y * 2).asnumpy(), want, rtol=1e-4)
        side.synchronize()
        assert side.query() and reached.query()


def check_events(backend: str) -> None:
    """Events are reached in order, their times do not go back, and `synchronize` reaches all of them."""
    with on_backend(backend):
        x = Tensor(draw(16, 16))
        first, last = (ms.runtime.Event(enable_timing=True) for _ in range(2))
        first.record()
        for _ in range(3):
            x = x @ x
        last.record()
        last.synchronize()
        assert first.query() and last.query(), "an event is not reached after waiting for it"
        assert first.elapsed_time(last) >= 0
        side = ms.runtime.Stream()
        side.wait_stream(ms.runtime.current_stream())
        ms.runtime.synchronize()
        assert side.query() and ms.runtime.current_stream().query(), "work is left after synchronize()"


def _without_kernel(backend: str) -> Sample | None:
    """A sample of an op that the backend leaves to the host."""
    loaded = registry.load(backend)
    for sample in all_samples():
        definition = sample.op.definition
        arrays = [a for a in sample.args if isinstance(a, np.ndarray)]
        plain = len(arrays) == len(sample.args) == len(definition.params) and not sample.options
        if (
            not plain
            or definition.dynamic
            or definition.decomposition
            or definition.view
            or definition.copies
        ):
            continue
        if (
            definition.updates
            or definition.effect
            or any(a.dtype != np.float32 or not a.size for a in arrays)
        ):
            continue
        if loaded.kernel(definition.name, ["f32"] * len(arrays)) is None and definition.vjp_function:
            return sample
    return None


def check_fallback(backend: str) -> None:
    """An op without a kernel runs on the host, is counted, can be forbidden, and its result lies on the
    device; in graphs too, where the copies are nodes.
    """
    sample = _without_kernel(backend)
    if sample is None:
        return  # it runs all of them
    name, tensors = sample.op.definition.name, sample.tensors()

    def first(*given: Tensor) -> Tensor:
        result = sample.call(given)
        return result[0]

    registry.fallbacks.pop((name, backend), None)
    _C.clear_plans()
    compare(backend, lambda: sample.call())
    assert registry.fallbacks[name, backend] > 0, f"{name} was not counted as a fallback"
    with on_backend(backend):
        assert first(*tensors)._device == device_of(backend), "the result of a fallback stayed on the host"
    compiled = ms.jit(lambda *given: (first(*(g * 1 for g in given)) * 2,))
    compare(backend, lambda: compiled(*sample.tensors()))
    if device_of(backend):
        copies = [n.op.name for p in live_programs() for n in p.nodes if n.op.name in ("device_copy", name)]
        assert {"device_copy", name} <= set(copies), "the copies are not nodes of the program"
    with on_backend(backend), ms.config.context(fallback="error"):
        try:
            first(*tensors)
        except ms.errors.FallbackError:
            return
    raise AssertionError(f"{name} fell back although that was forbidden")


def check_interchange(backend: str) -> None:
    """NumPy, buffers, DLPack, pickles, texts and Python numbers see the values of tensors of the device."""
    array = draw(3, 4)
    with on_backend(backend):
        x = Tensor(array) * 1
        assert x._device == device_of(backend)
        np.testing.assert_array_equal(x.asnumpy(), array)
        np.testing.assert_array_equal(np.asarray(x), array)
        np.testing.assert_array_equal(np.from_dlpack(x), array)
        np.testing.assert_array_equal(np.array(memoryview(x)), array)
        assert bytes(memoryview(x)) == array.tobytes() and x.tolist() == array.tolist()
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(x)).asnumpy(), array)
        np.testing.assert_array_equal(copy.deepcopy(x).asnumpy(), array)
        np.testing.assert_array_equal(Tensor.from_dlpack(x).asnumpy(), array)
        assert str(x) == str(Tensor(array)) and repr(x) == repr(Tensor(array))
        np.testing.assert_array_equal(x[1, 2:].asnumpy(), array[1, 2:])
        assert x[2, 3].item() == float(x[2, 3]) == array[2, 3] and bool(x[0, 0] == array[0, 0])
        assert int(Tensor([7]) + 0) == 7 and [4, 5, 6][Tensor(1) * 1] == 5
        x[0] = 2.0
        np.testing.assert_array_equal(x.asnumpy(), np.concatenate([np.full((1, 4), 2.0), array[1:]]))


def check_dtypes(backend: str) -> None:
    """Arithmetic in each dtype that has any, and casts between them, are right whatever has kernels."""

    def compute() -> list[Tensor]:
        x = Tensor(np.arange(-4.0, 5.0, dtype=np.float32))
        number = [d for d in dtypes.ALL if d is not dtypes.bool_]
        return [(x.astype(d) * 2 + 1).astype(ms.float32) for d in number if d.is_signed and not d.is_complex]

    compare(backend, compute)


def check_shared_arrays(backend: str) -> None:
    """A tensor on the memory of a NumPy array follows what is written there, wherever it is used."""
    array = draw(4)
    with on_backend(backend):
        x = Tensor.from_numpy(array)
        double = ms.jit(lambda x: x * 2)
        for value in (1.0, 2.0):
            array[:] = value
            np.testing.assert_array_equal((x + 1).asnumpy(), np.full(4, value + 1))
            np.testing.assert_array_equal(double(x).asnumpy(), np.full(4, value * 2))


def check_targets_in_turn(backend: str) -> None:
    """The same tensors serve this target and others in turn."""
    parameter, x = Parameter(Tensor(draw(3, 3)), name="p"), Tensor(draw(3, 3, seed=1))
    want, step = parameter.asnumpy().copy(), ms.jit(lambda x: x @ parameter)
    for target in (backend, "reference", backend, registry.host().backend.name, backend):
        with on_backend(target):
            np.testing.assert_allclose((x @ parameter).asnumpy(), x.asnumpy() @ want, rtol=1e-4, atol=1e-6)
            np.testing.assert_allclose(step(x).asnumpy(), x.asnumpy() @ want, rtol=1e-4, atol=1e-6)
            ops.assign_add(parameter, x)
            want = want + x.asnumpy()
            assert parameter.device == registry.device_name(device_of(target))
    np.testing.assert_allclose(parameter.asnumpy(), want, rtol=1e-6)


def check_checkpoints(backend: str) -> None:
    """Parameters go to files and come back."""
    with on_backend(backend), tempfile.TemporaryDirectory() as folder:
        net = nn.Dense(4, 3)
        net(Tensor(draw(2, 4)))  # they lie on the device now
        want = {p.name: p.asnumpy().copy() for p in net.get_parameters()}
        for name, save in (("net.ckpt", ms.save_checkpoint), ("net.safetensors", None)):
            path = str(Path(folder) / name)
            if save is None:
                ms.save_checkpoint(net, path, format="safetensors")
            else:
                save(net, path)
            for parameter in net.get_parameters():
                ops.assign(parameter, parameter * 0)
            loaded = ms.load_checkpoint(path, format="ckpt" if save else "safetensors")
            missing, _ = ms.load_param_into_net(net, loaded)
            assert not missing
            for parameter in net.get_parameters():
                np.testing.assert_array_equal(parameter.asnumpy(), want[parameter.name])
            compare(backend, lambda: (net(Tensor(draw(2, 4))),))


#: The checks of every backend, by name.
CHECKS: dict[str, Callable[[str], None]] = {
    name.removeprefix("check_"): check
    for name, check in (dict(globals()) | vars(training_contract)).items()
    if name.startswith("check_")
}
