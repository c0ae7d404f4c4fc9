"""Mycelia: tensors, gradients, graphs and training, as MindSpore users know them.

`import mycelia as ms` loads next to nothing: each public name is imported when it is first used (PEP 562).
"""

from __future__ import annotations

import sys
from types import ModuleType

GRAPH_MODE = 0
PYNATIVE_MODE = 1

# Module -> the public names that it brings.
_NAMES: dict[str, str] = {
    "tensor": "Tensor Parameter ParameterTuple tensor is_tensor from_numpy",
    "dtypes": """
        DType Type TensorType Int QuantDtype bool int float bool_ int8 int16 int32 int64 uint8 uint16 uint32
        uint64 float16 float32 float64 bfloat16 complex64 complex128 half single double byte short intc intp
        long ubyte ushort uintc uintp cfloat
        cdouble qint4x2 float8_e4m3fn float8_e5m2 hifloat8 number int_ uint float_ string list_ tuple_
        tensor_type type_none dtype_to_nptype dtype_to_pytype pytype_to_dtype get_py_obj_dtype
    """,
    "config": """
        STRICT COMPATIBLE LAX set_context get_context set_seed get_seed set_device set_deterministic
        set_recursion_limit
    """,
    "log": "get_level get_log_config",
    "context": """
        ParallelMode get_auto_parallel_context set_auto_parallel_context reset_auto_parallel_context
        get_ps_context set_ps_context reset_ps_context
    """,
    "parallel_settings": "set_algo_parameters get_algo_parameters reset_algo_parameters",
    "runtime": """
        Event MemPool PluggableAllocator Stream StreamCtx StreamLimitCtx communication_stream current_stream
        default_stream dispatch_threads_num empty_cache get_device_limit get_stream_limit launch_blocking
        max_memory_allocated max_memory_reserved memory_allocated memory_replay memory_reserved memory_stats
        memory_summary reset_max_memory_allocated reset_max_memory_reserved reset_peak_memory_stats
        reset_stream_limit set_cpu_affinity set_cur_stream set_device_limit set_kernel_launch_capture
        set_kernel_launch_group set_memory set_stream_limit synchronize use_mem_pool
    """,
    "device_manager": "DeviceCtx get_current_device run_check swap_tensors",
    "sparse": "COOTensor CSRTensor RowTensor SparseTensor",
    "jit_options": """
        JitConfig Symbol enable_dynamic jit_class lazy_inline ms_memory_recycle no_inline set_dump
    """,
    "parallel": """
        Layout build_searched_strategy get_ckpt_path_with_strategy load_distributed_checkpoint
        load_segmented_checkpoints
        merge_pipeline_strategys merge_sliced_parameter parameter_broadcast rank_list_for_transform
        restore_group_info_list shard sync_pipeline_shared_parameters transform_checkpoint_by_rank
        transform_checkpoints unified_safetensors
    """,
    "utils": """
        ExitByRequest MsDispatchMode RSCPluginHandle TFTCommValue comm_exec_order_check from_dlpack
        get_sdc_detect_result runtime_execution_order_check sdc_detect_start sdc_detect_stop stress_detect
        to_dlpack
    """,
    "ops.randomness.generator": """
        Generator default_generator get_rng_state initial_seed manual_seed seed set_rng_state
    """,
    "autodiff": "get_grad grad value_and_grad vjp jvp jacfwd jacrev recompute",
    "autodiff.batching": "vmap",
    "autodiff.saved_tensors": "saved_tensors_hooks register_saved_tensors_hooks",
    "ops.methods.facts": "frombuffer UntypedStorage",
    "compile": "jit mutable",
    "ops.primitive": "constexpr",
    "profiler": "Profiler",
    "io": """
        save_checkpoint load_checkpoint load_checkpoint_async load_param_into_net async_ckpt_thread_status
        parse_print ckpt_to_safetensors safetensors_to_ckpt export load load_mindir save_mindir
        load_obf_params_into_net obfuscate_ckpt export_split_mindir mindio_preload set_mindio_server_info
    """,
    "train": """
        Model Callback CheckpointConfig EarlyStopping History LambdaCallback LearningRateScheduler
        LossMonitor ModelCheckpoint ReduceLROnPlateau RunContext TimeMonitor Accuracy F1 Fbeta Loss MAE MSE
        Metric Precision Recall Top1CategoricalAccuracy Top5CategoricalAccuracy TopKCategoricalAccuracy
        get_metric_fn names rearrange_inputs BackupAndRestore BleuScore ConfusionMatrix ConfusionMatrixMetric
        CosineSimilarity Dice HausdorffDistance MeanSurfaceDistance OcclusionSensitivity Perplexity ROC
        RootMeanSquareDistance auc SummaryRecord SummaryCollector SummaryLandscape DatasetHelper OnRequestExit
        FlopsUtilizationCollector TrainFaultTolerance ConvertNetUtils ConvertModelUtils data_sink
        connect_network_with_dataset build_train_network DynamicLossScaleManager FixedLossScaleManager
        LossScaleManager
    """,
}  # fmt: skip

# Sub-modules that are attributes of the package, under their own or under MindSpore's name.
_MODULES: dict[str, str] = {
    "dtype": "dtypes",
    **{
        name: name
        for name in """
            amp autodiff backends boost capture common communication compile config context dataset
            device_context dtypes errors experimental hal hookspecs io ir log mindrecord mint nn numpy ops
            parallel plugins profiler rewrite runtime scipy testing train utils
        """.split()
    },
}  # fmt: skip

_TABLE: dict[str, str] = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = ["GRAPH_MODE", "PYNATIVE_MODE", *_TABLE, *_MODULES]


def __getattr__(name: str):
    from importlib import import_module

    if name in _TABLE:
        value = getattr(import_module(f"{__name__}.{_TABLE[name]}"), name)
    elif name in _MODULES:
        value = import_module(f"{__name__}.{_MODULES[name]}")
    elif name == "__version__":
        from importlib.metadata import version

        value = version("mycelia-core")
    else:
        raise _no_attribute(name)
    globals()[name] = value  # found directly from now on
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})


def _no_attribute(name: str) -> AttributeError:
    import difflib

    near = difflib.get_close_matches(name, __all__, n=2)
    hint = f"; did you mean {' or '.join(near)}?" if near and not name.startswith("_") else ""
    return AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}", name=name, obj=None)


class _Package(ModuleType):
    """The package: its attribute `tensor` is the function, also after the module of that name is imported."""

    def __setattr__(self, name: str, value) -> None:
        if name == "tensor" and isinstance(value, ModuleType):
            value = value.tensor
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


class _Package(ModuleType):
    """The package, of which a name stays the function even when a file is called so: `ms.tensor`."""

    def __setattr__(self, name: str, value) -> None:
        if name in _TABLE and isinstance(value, ModuleType):
            return  # the import system hangs each sub-module into its package
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
