"""runtime, hal, communication, device_context, parallel, utils, sparse: one process on the CPU."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor


def test_memory_numbers_are_those_of_the_allocator():
    before = ms.runtime.memory_allocated()
    x = ms.ops.zeros((1 << 20,), ms.float32) + 1
    assert ms.runtime.memory_allocated() - before >= x.nbytes
    assert ms.runtime.max_memory_allocated() >= ms.runtime.memory_allocated()
    stats = ms.runtime.memory_stats()
    assert stats["total_reserved_memory"] == stats["total_allocated_memory"] + stats["total_idle_memory"]
    del x
    ms.runtime.reset_peak_memory_stats()
    assert ms.runtime.max_memory_allocated() == ms.runtime.memory_allocated()
    assert "Reserved memory" in ms.runtime.memory_summary()


def test_streams_and_events_of_the_cpu():
    stream = ms.runtime.Stream()
    start, end = (ms.runtime.Event(enable_timing=True) for _ in range(2))
    with ms.runtime.StreamCtx(stream):
        start.record()
        stream.record_event(end)
    assert start.elapsed_time(end) >= 0 and end.query() and stream == ms.runtime.current_stream()
    with pytest.raises(RuntimeError, match="enable_timing"):
        ms.runtime.Event().elapsed_time(end)


def test_devices():
    assert ms.hal.is_available("CPU") and not ms.hal.is_available("GPU")
    assert ms.hal.device_count() == 1 and ms.hal.get_device_name(0) == "CPU"
    assert ms.device_context.cpu.device_count() == 1 and not ms.device_context.ascend.is_available()
    assert repr(ms.get_current_device()) == "DeviceInfo('CPU', 0)"


def test_a_group_of_one_after_a_launcher(monkeypatch):
    comm = ms.communication
    assert (comm.get_rank(), comm.get_group_size()) == (0, 1)
    with pytest.raises(RuntimeError, match="no launcher"):
        comm.init()
    monkeypatch.setenv("MS_WORKER_NUM", "1")
    comm.init()
    try:
        comm.create_group("mine", [0])
        assert comm.get_world_rank_from_group_rank("mine", 0) == 0
        total, handle = comm.comm_func.all_reduce(Tensor([1.0, 2.0]))
        assert total.asnumpy().tolist() == [1, 2] and handle is None
        with pytest.raises(RuntimeError, match="no other process"):
            comm.comm_func.send(total, 1)
    finally:
        comm.release()


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: ms.communication.init("foo"), ValueError), (lambda: ms.communication.init("nccl"),
        RuntimeError),
        (lambda: ms.communication.get_rank(1), TypeError), (lambda: ms.hal.device_count("GPU"), ValueError),
        (lambda: ms.hal.get_device_name(5), ValueError), (lambda: ms.runtime.Event(1), TypeError),
        (lambda: ms.runtime.set_memory(max_size="much"), ValueError), (lambda: ms.runtime.MemPool(None),
        RuntimeError),
        (lambda: ms.set_auto_parallel_context(device_num="a"), TypeError),
        (lambda: ms.set_auto_parallel_context(parallel_mode="a"), ValueError),
        (lambda: ms.get_auto_parallel_context("a"), ValueError), (lambda: ms.utils.stress_detect(),
        RuntimeError),
        (lambda: ms.Layout((2, 2), ("a",)), ValueError), (lambda: ms.Symbol(min=0), ValueError),
        (lambda: ms.JitConfig(jit_level="O7"), ValueError), (lambda: ms.jit_class(1), TypeError),
        (lambda: ms.transform_checkpoints("a", "b", "c"), NotADirectoryError), (lambda: ms.set_dump(1),
        ValueError),
        (lambda: ms.COOTensor(Tensor([[0, 1]]), Tensor([1.0]), (2,)), ValueError),
        (lambda: ms.lazy_inline(lambda x: x), ValueError),
    ],
)  # fmt: skip
def test_wrong_use_is_refused(call, error):
    with pytest.raises(error):
        call()


def test_parallel_settings_are_kept_and_reset():
    ms.set_auto_parallel_context(parallel_mode="data_parallel", device_num=8)
    try:
        assert ms.get_auto_parallel_context("device_num") == 8
    finally:
        ms.reset_auto_parallel_context()
    assert ms.get_auto_parallel_context("parallel_mode") == ms.ParallelMode.STAND_ALONE


def test_layout_of_a_tensor():
    layout = ms.Layout((2, 4), ("dp", "mp"))
    assert layout("None", ("dp", "mp")).to_dict()["tensor_map"] == (-1, (1, 0))


def test_parts_of_a_parameter_are_merged():
    parts = [ms.Parameter(Tensor(np.full((1, 2), i, np.float32)), name="w") for i in range(4)]
    assert ms.merge_sliced_parameter(parts, {"w": [2, 2]}).asnumpy().tolist() == [[0, 0, 1, 1], [2, 2, 3, 3]]


def test_every_op_goes_through_a_dispatch_mode():
    names = []

    class Log(ms.MsDispatchMode):
        def __ms_dispatch__(self, func, args, kwargs=None):
            names.append(func.name)
            return func(*args)

    x = Tensor([1.0])
    with Log():
        y = (x + x) * 2
    assert names == ["AddExt", "Muls"] and y.asnumpy().tolist() == [4]


def test_sparse_forms_of_a_matrix():
    dense = Tensor([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]])
    coo, csr = dense.to_coo(), dense.to_csr()
    assert csr.indptr.tolist() == [0, 1, 3] and coo.indices.tolist() == [[0, 1], [1, 0], [1, 2]]
    for back in (
        coo.to_dense(),
        coo.to_csr().to_dense(),
        csr.to_coo().to_dense(),
        (csr + csr).to_dense() / 2,
    ):
        assert back.tolist() == dense.tolist()
    assert csr.mv(Tensor([[1.0], [1.0], [1.0]])).tolist() == [[1], [5]] and csr.sum(0).tolist() == [[2, 1, 3]]
    total = ms.grad(lambda v: ms.COOTensor(coo.indices, v * v, (2, 3)).to_dense().sum())(coo.values)
    assert total.tolist() == [2, 4, 6]


def test_kinds_of_types():
    assert ms.Int(32) is ms.int32 and isinstance(ms.int8, ms.Int) and not isinstance(ms.uint8, ms.Int)
    assert repr([ms.float32, ms.number, ms.TensorType(ms.int8)]) == (
        "[mindspore.float32, mindspore.number, mindspore.tensor[int8]]"
    )
    assert (
        ms.get_py_obj_dtype(Tensor([1])) == ms.TensorType(ms.int64) and ms.pytype_to_dtype(str) is ms.string
    )
