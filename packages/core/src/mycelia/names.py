"""The public names of `mycelia` and of its modules, and where they lie.

One table; `import mycelia` reads nothing else. Import paths that scripts use stay while files move:
`mycelia.ops.define` is `mycelia.ops.define`, the same module object.
"""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

# Module below `mycelia` -> the public names that the package has from it.
NAMES: dict[str, str] = {
    "engine.tensors.tensor": "Tensor Parameter ParameterTuple tensor is_tensor from_numpy",
    "engine.base.dtypes": """
        DType Type TensorType Int QuantDtype bool int float bool_ int8 int16 int32 int64 uint8 uint16 uint32
        uint64 float16 float32 float64 bfloat16 complex64 complex128 half single double byte short intc intp
        long ubyte ushort uintc uintp cfloat
        cdouble qint4x2 float8_e4m3fn float8_e5m2 hifloat8 number int_ uint float_ string list_ tuple_
        tensor_type type_none dtype_to_nptype dtype_to_pytype pytype_to_dtype get_py_obj_dtype
    """,
    "engine.base.config": """
        STRICT COMPATIBLE LAX set_context get_context set_seed get_seed set_device set_deterministic
        set_recursion_limit
    """,
    "engine.base.log": "get_level get_log_config",
    "faces.context": """
        ParallelMode get_auto_parallel_context set_auto_parallel_context reset_auto_parallel_context
        get_ps_context set_ps_context reset_ps_context
    """,
    "engine.base.parallel_settings": "set_algo_parameters get_algo_parameters reset_algo_parameters",
    "engine.runtime": """
        Event MemPool PluggableAllocator Stream StreamCtx StreamLimitCtx communication_stream current_stream
        default_stream dispatch_threads_num empty_cache get_device_limit get_stream_limit launch_blocking
        max_memory_allocated max_memory_reserved memory_allocated memory_replay memory_reserved memory_stats
        memory_summary reset_max_memory_allocated reset_max_memory_reserved reset_peak_memory_stats
        reset_stream_limit set_cpu_affinity set_cur_stream set_device_limit set_kernel_launch_capture
        set_kernel_launch_group set_memory set_stream_limit synchronize use_mem_pool
    """,
    "faces.device_manager": "DeviceCtx get_current_device run_check swap_tensors",
    "engine.tensors.sparse": "COOTensor CSRTensor RowTensor SparseTensor",
    "faces.jit_options": """
        JitConfig Symbol enable_dynamic jit_class lazy_inline ms_memory_recycle no_inline set_dump
    """,
    "parallel": """
        Layout build_searched_strategy get_ckpt_path_with_strategy load_distributed_checkpoint
        load_segmented_checkpoints
        merge_pipeline_strategys merge_sliced_parameter parameter_broadcast rank_list_for_transform
        restore_group_info_list shard sync_pipeline_shared_parameters transform_checkpoint_by_rank
        transform_checkpoints unified_safetensors
    """,
    "faces.utils": """
        ExitByRequest MsDispatchMode RSCPluginHandle TFTCommValue comm_exec_order_check from_dlpack
        get_sdc_detect_result runtime_execution_order_check sdc_detect_start sdc_detect_stop stress_detect
        to_dlpack
    """,
    "engine.ops.random.generator": """
        Generator default_generator get_rng_state initial_seed manual_seed seed set_rng_state
    """,
    "engine.autodiff": "get_grad grad value_and_grad vjp jvp jacfwd jacrev recompute",
    "engine.autodiff.batching": "vmap",
    "engine.autodiff.saved_tensors": "saved_tensors_hooks register_saved_tensors_hooks",
    "engine.ops.methods.facts": "frombuffer UntypedStorage",
    "engine.compile": "jit mutable",
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

# Public path of a module below `mycelia` -> where it lies; what lies below it lies there too. Other modules
# of the engine and of the faces are reached by their own paths only.
MODULES: dict[str, str] = {
    **{
        path: f"engine.base.{path}"
        for path in "config dtypes errors hookspecs log parallel_settings plugins terminal".split()
    },
    "dtype": "engine.base.dtypes",
    **{path: f"engine.{path}" for path in "autodiff backends capture compile ir runtime".split()},
    "ops.define": "engine.ops.define",
    "ops.infer": "engine.ops.infer",
    "ops.operations": "ops.primitives",
    "sparse": "engine.tensors.sparse",
    "tensor": "engine.tensors.tensor",
    "common.initializer": "engine.tensors.initializer",
    **{
        path: f"faces.{path}"
        for path in """
            boost common communication compat context device_context device_manager experimental hal mint
            numpy rewrite scipy utils
        """.split()
    },
}

# Modules that are attributes of the package; those that are no aliases lie where their names say.
ATTRIBUTES = """
    amp autodiff backends boost capture common communication compile config context dataset device_context
    dtype dtypes errors experimental hal hookspecs io ir log mindrecord mint nn numpy ops parallel plugins
    profiler rewrite runtime scipy testing train utils
""".split()

# Public paths of modules of ours that MindSpore has too, with more in them: further modules below, further
# names. What such a module lacks is looked for in the table of MindSpore's paths.
SHARED = frozenset(
    """
    common common.initializer context dataset dataset.callback dataset.debug dataset.transforms
    dataset.vision log mint nn nn.loss nn.metrics nn.optim nn.optim.optimizer nn.probability
    nn.probability.bijector nn.probability.distribution nn.wrap nn.wrap.cell_wrapper ops ops.composite
    ops.functional ops.operations ops.operations.linalg_ops ops.operations.nn_ops parallel
    parallel.function parallel.nn train train.metrics utils
    """.split()
)

PACKAGE = __package__
_PUBLIC = {home: path for path, home in reversed(MODULES.items())}  # of two public paths the first counts


def home(path: str) -> str | None:
    """Where the module lies that is public as `path` below `mycelia`; None if it is no alias."""
    above, rest = path, ""
    while above:
        if above in MODULES:
            return MODULES[above] + rest
        above, dot, last = above.rpartition(".")
        rest = f"{dot}{last}{rest}"
    return None


def public(path: str) -> str:
    """The path below `mycelia` by which scripts know the module at `path`; `path` if by no other."""
    best = max((h for h in _PUBLIC if path == h or path.startswith(h + ".")), key=len, default="")
    return _PUBLIC[best] + path[len(best) :] if best else path


class Aliases:
    """Imports a module by its public path: the module itself, no copy."""

    def find_spec(self, fullname: str, path=None, target=None):
        package, _, below = fullname.partition(".")
        if package != PACKAGE or not below:
            return None
        real = home(below)
        if real is None:
            return _shared_spec(fullname, path) if public(below) in SHARED else None
        from importlib.util import find_spec

        try:
            found = find_spec(f"{PACKAGE}.{real}")
        except ModuleNotFoundError:
            return None
        if found is None:
            return None
        is_package = found.submodule_search_locations is not None
        return ModuleSpec(fullname, self, origin=found.name, is_package=is_package)

    def create_module(self, spec) -> ModuleType:
        module = importlib.import_module(spec.origin)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has just put the alias' spec on a module that has its own: give it back.
        module.__spec__ = module.__spec__.loader_state


def _shared_spec(fullname: str, path):
    """The spec of a module whose missing names MindSpore's module of the same path may have."""
    spec = PathFinder.find_spec(fullname, path)
    if spec is not None and spec.loader is not None:
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            vars(module).setdefault("__path__", [])  # modules below it can be imported
            vars(module)["__getattr__"] = _further_names(module, vars(module).get("__getattr__"))

        spec.loader.exec_module = exec_module
    return spec


def _further_names(module: ModuleType, own):
    """The `__getattr__` of a module that is also MindSpore's; `own` is the one it was written with."""
    missing = f"module {module.__name__!r} has no attribute "

    def further(name: str):
        try:
            if own is None:
                raise AttributeError(f"{missing}{name!r}", name=name, obj=module)
            return own(name)
        except AttributeError as error:
            if name.startswith("__"):
                raise
            from mycelia.faces import compat

            return compat.beyond(module, name, error)

    return further


class DeepPaths:
    """Imports what no file is called: the deep paths of MindSpore, `mycelia.ops.function.math_func`."""

    def find_spec(self, fullname: str, path=None, target=None):
        package, _, below = fullname.partition(".")
        if package != PACKAGE or not below:
            return None
        from mycelia.faces import compat

        front = compat.front(below)
        if front is None:
            return None
        return ModuleSpec(fullname, self, loader_state=front, is_package=True)

    def create_module(self, spec) -> ModuleType:
        return spec.loader_state

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: a front looks each name up when it is asked for it."""


def install() -> None:
    """Let the import system find both.

    Aliases come before files, which would be loaded a second time by an alias' path; deep paths after them.
    """
    if not any(isinstance(finder, Aliases) for finder in sys.meta_path):
        sys.meta_path.insert(0, Aliases())
        sys.meta_path.append(DeepPaths())
