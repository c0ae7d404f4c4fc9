"""The public names of `mycelia` and of its modules, and where they lie.

One table; `import mycelia` reads nothing else. Import paths that scripts use stay while files move:
`mycelia.ops.define` is `mycelia.engine.ops.define`, the same module object.
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
    "faces.stand_ins.device_manager": "DeviceCtx get_current_device run_check swap_tensors",
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
    "engine.ops.methods.conversions": "frombuffer UntypedStorage",
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
    "ops.batch_rules": "engine.ops.batch_rules",
    "ops.cost": "engine.ops.cost",
    "ops.define": "engine.ops.define",
    "parallel.comm": "engine.communication",
    "ops.fusion": "engine.ops.fusion",
    "ops.infer": "engine.ops.infer",
    "ops.layout_rules": "engine.ops.layout_rules",
    "ops.operations": "ops.primitives",
    "precision": "debug.precision",
    "sparse": "engine.tensors.sparse",
    "tensor": "engine.tensors.tensor",
    "common.initializer": "engine.tensors.initializer",
    **{
        path: f"faces.{path}"
        for path in "boost common compat context experimental mint numpy rewrite scipy utils".split()
    },
    **{path: f"faces.stand_ins.{path}" for path in "communication device_context device_manager hal".split()},
}

# Modules that lie where their public paths say.
_PARTS = "amp dataset debug io mindrecord nn ops parallel profiler testing train".split()
# Modules that are imported by their paths, and are not in the lists of the package's names.
_UNLISTED = {"compat", "device_manager", "parallel_settings", "sparse", "tensor", "terminal"}
ATTRIBUTES = sorted({*_PARTS, *(path for path in MODULES if "." not in path)} - _UNLISTED)

# Files of ours that in MindSpore are folders: modules below them can be imported.
FOLDERS_TOO = frozenset(
    """
    dataset.callback dataset.debug dataset.transforms nn.loss nn.probability.bijector
    nn.probability.distribution ops.composite parallel.function parallel.nn train.metrics
    """.split()
)

PACKAGE = __package__
_INNER = {
    "engine",
    "faces",
    "names",
}  # what is below these, and has no public path, nobody asks for old names
_PUBLIC = {home: path for path, home in reversed(MODULES.items())}  # of two public paths the first counts


def _moved(path: str, table: dict[str, str]) -> str | None:
    """`path` with the longest beginning that is in `table` replaced; None if there is none."""
    above, rest = path, ""
    while above:
        if above in table:
            return table[above] + rest
        above, dot, last = above.rpartition(".")
        rest = f"{dot}{last}{rest}"
    return None


def home(path: str) -> str | None:
    """Where the module lies that is public as `path` below `mycelia`; None if it is no alias."""
    return _moved(path, MODULES)


def public(path: str) -> str:
    """The path below `mycelia` by which scripts know the module at `path`; `path` if by no other."""
    return _moved(path, _PUBLIC) or path


class Aliases:
    """Imports a module by its public path: the module itself, no copy."""

    def find_spec(self, fullname: str, path=None, target=None):
        package, _, below = fullname.partition(".")
        if package != PACKAGE or not below:
            return None
        real = home(below)
        if real is None:
            shown = public(below)
            return None if shown.partition(".")[0] in _INNER else _public_spec(fullname, path, shown)
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


def _public_spec(fullname: str, path, shown: str):
    """The spec of a module that users know as `shown` below the package: it says so in its messages."""
    spec = PathFinder.find_spec(fullname, path)
    if spec is not None and hasattr(spec.loader, "get_source"):  # written in Python
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            space = vars(module)
            if fullname.split(".")[1] in _INNER:
                sys.modules.setdefault(f"{PACKAGE}.{shown}", module)  # where the classes say they are from
                for value in list(space.values()):
                    if isinstance(value, type) and value.__module__ == fullname:
                        value.__module__ = f"{PACKAGE}.{shown}"
            if shown in FOLDERS_TOO:
                space["__path__"] = []
            space["__getattr__"] = _attribute_of(module, shown, space.get("__getattr__"))

        spec.loader.exec_module = exec_module
    return spec


def _attribute_of(module: ModuleType, shown: str, own):
    """The `__getattr__` of a module known as `shown`; `own` is the one that it was written with.

    What the module lacks is looked for where MindSpore's module of this path has it.
    """

    def attribute_of(name: str):
        if own is None:
            error = AttributeError(
                f"module {PACKAGE + '.' + shown!r} has no attribute {name!r}", name=name, obj=module
            )
        else:
            try:
                return own(name)
            except AttributeError as raised:
                error = raised
        if name.startswith("__"):
            raise error
        alias = f"{PACKAGE}.{shown}.{name}"
        if f"{shown}.{name}" in MODULES and alias in sys.modules:
            return sys.modules[alias]
        return beyond(shown, name, error)

    return attribute_of


def beyond(path: str, name: str, error: AttributeError):
    """What MindSpore has as `name` in its module `path`, and ours lacks; raises `error` if it is nowhere."""
    from mycelia.faces import compat

    return compat.beyond(path, name, error)


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
