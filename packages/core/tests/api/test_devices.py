"""What belongs to several devices, to other devices or to old scripts: answers of one process on one CPU."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import communication, device_context, hal, nn, ops, runtime
from mycelia.parallel.nn import GradAccumulation, MicroBatchInterleaved
from mycelia.profiler import AicoreMetrics, ProfilerActivity, _ExperimentalConfig
from mycelia.train import CheckpointConfig
from mycelia.utils import get_sdc_detect_result, sdc_detect_start, sdc_detect_stop


def t(values, dtype="float32"):
    return ms.Tensor(np.array(values, dtype))


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda: ops.Broadcast(0), "Prim[Broadcast]<root_rank=0, group=hccl_world_group, no_eliminate=True>"),
        (lambda: ops.Reusing(), "Prim[Reusing]"),
        (lambda: ops.DtypeToEnum(), "Prim[DtypeToEnum]"),
        (
            lambda: ops.AllGather(),
            "Prim[AllGather]<group=hccl_world_group, rank_size=1, fusion=0, mean_flag=False, "
            "no_eliminate=True>",
        ),
    ],
)
def test_printed_primitives(make, text):
    assert str(make()) == text


def test_one_process_is_alone():
    assert communication.get_local_rank() == 0 and communication.get_local_rank_size() == 1
    for name in ("HCCL_WORLD_COMM_GROUP", "NCCL_WORLD_COMM_GROUP", "MCCL_WORLD_COMM_GROUP"):
        assert getattr(communication, name) == f"{name[:4].lower()}_world_group"


@pytest.mark.parametrize(
    "call",
    [
        lambda: communication.get_group_rank_from_world_rank(0, "some"),
        lambda: communication.destroy_group("some"),
    ],
)
def test_groups_need_processes_that_have_joined(call):
    with pytest.raises(RuntimeError):
        call()


def test_summaries_without_a_file_are_nothing(tmp_path):
    assert ops.ImageSummary()("seen", t(np.ones((1, 1, 2, 2)))) is None
    assert ops.TensorSummary()("seen", t([1])) is None
    with ms.SummaryRecord(str(tmp_path)) as record:
        record.set_mode("train")
        with pytest.raises(ValueError):
            record.set_mode("test")


def test_threads_of_the_cpu_are_a_number():
    with pytest.raises(TypeError):
        device_context.cpu.op_tuning.threads_num("two")
    assert device_context.cpu.op_tuning.threads_num is not None


def test_names_of_what_profilers_measure():
    assert {a.name for a in ProfilerActivity} == {"CPU", "GPU", "NPU"}
    assert AicoreMetrics("None") is AicoreMetrics.AiCoreNone and AicoreMetrics.L2Cache.value == "L2Cache"
    options = _ExperimentalConfig()
    found = options.aic_metrics, options.data_simplification, options.export_type, options.host_sys
    assert found == (AicoreMetrics.AiCoreNone, True, None, None)


def test_limits_of_devices_and_streams():
    assert set(runtime.get_device_limit(0)) == {"cube_core_num", "vector_core_num"}
    assert runtime.set_device_limit(0, 1) is None
    stream = runtime.Stream()
    assert runtime.set_stream_limit(stream, 0, 1) is None and runtime.reset_stream_limit(stream) is None
    assert runtime.set_kernel_launch_group(2, 4) is None


def test_faults_of_memory_are_not_looked_for():
    assert sdc_detect_start() is None and get_sdc_detect_result() is False and sdc_detect_stop() is None


def test_layers_of_second_order_networks():
    ids = t([[1]], "int32")
    for layer in (
        nn.EmbeddingThor(4, 2, embedding_table="ones"),
        nn.EmbeddingLookupThor(4, 2, param_init="ones"),
    ):
        assert layer(ids).asnumpy().tolist() == [[[1, 1]]]
        layer.thor = True
        assert callable(layer.save_gradient)
    adaptive = nn.AdaFactor(nn.Dense(2, 2).trainable_params())
    assert (adaptive.supports_flat_params, adaptive.supports_memory_efficient_fp16) == (False, True)
    assert callable(adaptive.init_ada_factor_state)


def test_wrappers_of_micro_batches():
    network = nn.Dense(2, 2, weight_init="ones", bias_init="zeros")
    for kind in (MicroBatchInterleaved, nn.MicroBatchInterleaved):  # results are added, as in MindSpore
        assert kind(network, 2)(t([[1.0, 2.0], [3.0, 4.0]])).asnumpy().tolist() == [[10.0, 10.0]]
    assert issubclass(GradAccumulation, nn.Cell)


def test_marks_of_functions_change_nothing():
    @ms.no_inline
    def increased(x):
        return x + 1

    assert increased(t([1])).asnumpy().tolist() == [2]
    assert ms.ms_memory_recycle() is None
    assert CheckpointConfig().integrated_save is True
    assert ops.Add().update_parameter is False and ms.QuantDtype["INT4"].name == "INT4"


def test_tensors_of_one_memory():
    handle = hal.contiguous_tensors_handle.combine_tensor_list_contiguous([t([1]), t([2, 3])], True)
    assert isinstance(handle, hal.contiguous_tensors_handle.ContiguousTensorsHandle)
    assert handle.slice_by_tensor_index(0, 1).asnumpy().tolist() == [1]
    assert handle.slice_by_tensor_index().asnumpy().tolist() == [1, 2, 3]


def test_the_installation_checks_itself(capsys):
    ms.run_check()
    assert "installed on platform [CPU] successfully!" in capsys.readouterr().out


def test_types_of_sgd_are_checked():
    sgd = ops.SGD()
    assert sgd.check_shape((3,), (3,), (), (3,), (), (3,)) is None
    assert sgd.check_dtype(*[ms.TensorType(ms.float32)] * 6) is None
    with pytest.raises(TypeError):
        sgd.check_dtype(*[ms.TensorType(ms.int32)] * 6)
