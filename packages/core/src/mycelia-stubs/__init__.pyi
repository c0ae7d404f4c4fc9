# Written by tools/gen_stubs.py.
import builtins
from . import (
    amp as amp, autodiff as autodiff, backends as backends, boost as boost, capture as capture,
    common as common, communication as communication, compile as compile, config as config,
    context as context, dataset as dataset, debug as debug, device_context as device_context,
    dtype as dtype, dtypes as dtypes, errors as errors, experimental as experimental, hal as hal,
    hookspecs as hookspecs, io as io, ir as ir, log as log, mindrecord as mindrecord, mint as mint,
    nn as nn, numpy as numpy, ops as ops, parallel as parallel, plugins as plugins, precision as precision,
    profiler as profiler, rewrite as rewrite, runtime as runtime, scipy as scipy, testing as testing,
    train as train, utils as utils,
)
from mycelia.dtype import (
    bfloat16 as bfloat16, bool_ as bool_, byte as byte, cdouble as cdouble, cfloat as cfloat,
    double as double, float16 as float16, float32 as float32, float8_e4m3fn as float8_e4m3fn,
    float8_e5m2 as float8_e5m2, float_ as float_, hifloat8 as hifloat8, int16 as int16, int32 as int32,
    int64 as int64, int_ as int_, list_ as list_, number as number, qint4x2 as qint4x2, string as string,
    tensor_type as tensor_type, tuple_ as tuple_, type_none as type_none, ubyte as ubyte, uint as uint,
    uint16 as uint16, uint32 as uint32, uint64 as uint64,
)
from mycelia.engine._C import Tensor as Tensor
from mycelia.engine.autodiff.batching import vmap as vmap
from mycelia.engine.autodiff.jacobian import jacfwd as jacfwd, jacrev as jacrev
from mycelia.engine.autodiff.jacobian_products import jvp as jvp, vjp as vjp
from mycelia.engine.autodiff.recompute import recompute as recompute
from mycelia.engine.autodiff.saved_tensors import (
    register_saved_tensors_hooks as register_saved_tensors_hooks,
    saved_tensors_hooks as saved_tensors_hooks,
)
from mycelia.engine.autodiff.transforms import (
    get_grad as get_grad, grad as grad, value_and_grad as value_and_grad,
)
from mycelia.engine.base.config import (
    get_context as get_context, get_seed as get_seed, set_context as set_context,
    set_deterministic as set_deterministic, set_device as set_device,
    set_recursion_limit as set_recursion_limit, set_seed as set_seed,
)
from mycelia.engine.base.dtypes import (
    DType as DType, Int as Int, QuantDtype as QuantDtype, TensorType as TensorType, Type as Type,
    dtype_to_nptype as dtype_to_nptype, dtype_to_pytype as dtype_to_pytype,
    get_py_obj_dtype as get_py_obj_dtype, pytype_to_dtype as pytype_to_dtype,
)
from mycelia.engine.base.log import get_level as get_level, get_log_config as get_log_config
from mycelia.engine.base.parallel_settings import (
    ParallelMode as ParallelMode, get_algo_parameters as get_algo_parameters,
    get_auto_parallel_context as get_auto_parallel_context, get_ps_context as get_ps_context,
    reset_algo_parameters as reset_algo_parameters,
    reset_auto_parallel_context as reset_auto_parallel_context, reset_ps_context as reset_ps_context,
    set_algo_parameters as set_algo_parameters, set_auto_parallel_context as set_auto_parallel_context,
    set_ps_context as set_ps_context,
)
from mycelia.engine.compile.jit import jit as jit
from mycelia.engine.compile.mutable import mutable as mutable
from mycelia.engine.ops.methods.conversions import UntypedStorage as UntypedStorage
from mycelia.engine.ops.random.generator import (
    Generator as Generator, Generator as _Generator, get_rng_state as get_rng_state,
    initial_seed as initial_seed, manual_seed as manual_seed, seed as seed,
)
from mycelia.engine.runtime.memory import (
    MemPool as MemPool, PluggableAllocator as PluggableAllocator, empty_cache as empty_cache,
    max_memory_allocated as max_memory_allocated, max_memory_reserved as max_memory_reserved,
    memory_allocated as memory_allocated, memory_replay as memory_replay,
    memory_reserved as memory_reserved, memory_stats as memory_stats, memory_summary as memory_summary,
    reset_max_memory_allocated as reset_max_memory_allocated,
    reset_max_memory_reserved as reset_max_memory_reserved,
    reset_peak_memory_stats as reset_peak_memory_stats, use_mem_pool as use_mem_pool,
)
from mycelia.engine.runtime.stream import (
    Event as Event, Stream as Stream, StreamCtx as StreamCtx, StreamLimitCtx as StreamLimitCtx,
    communication_stream as communication_stream, current_stream as current_stream,
    default_stream as default_stream, get_device_limit as get_device_limit,
    get_stream_limit as get_stream_limit, reset_stream_limit as reset_stream_limit,
    set_cur_stream as set_cur_stream, synchronize as synchronize,
)
from mycelia.engine.runtime.threads import (
    dispatch_threads_num as dispatch_threads_num, launch_blocking as launch_blocking,
)
from mycelia.engine.tensors.sparse import (
    COOTensor as COOTensor, CSRTensor as CSRTensor, RowTensor as RowTensor, SparseTensor as SparseTensor,
)
from mycelia.engine.tensors.tensor import (
    Parameter as Parameter, ParameterTuple as ParameterTuple, is_tensor as is_tensor, tensor as tensor,
)
from mycelia.faces.jit_options import (
    JitConfig as JitConfig, Symbol as Symbol, enable_dynamic as enable_dynamic, jit_class as jit_class,
    lazy_inline as lazy_inline, ms_memory_recycle as ms_memory_recycle, no_inline as no_inline,
    set_dump as set_dump,
)
from mycelia.faces.stand_ins.device_manager import (
    DeviceCtx as DeviceCtx, get_current_device as get_current_device, run_check as run_check,
    swap_tensors as swap_tensors,
)
from mycelia.faces.utils.detection import (
    comm_exec_order_check as comm_exec_order_check, get_sdc_detect_result as get_sdc_detect_result,
    sdc_detect_start as sdc_detect_start, sdc_detect_stop as sdc_detect_stop,
    stress_detect as stress_detect,
)
from mycelia.faces.utils.dispatch_mode import MsDispatchMode as MsDispatchMode
from mycelia.faces.utils.dlpack import from_dlpack as from_dlpack, to_dlpack as to_dlpack
from mycelia.faces.utils.execution_order import (
    runtime_execution_order_check as runtime_execution_order_check,
)
from mycelia.faces.utils.recovery import (
    ExitByRequest as ExitByRequest, RSCPluginHandle as RSCPluginHandle, TFTCommValue as TFTCommValue,
)
from mycelia.io import (
    ckpt_to_safetensors as ckpt_to_safetensors, export as export, load as load,
    load_checkpoint as load_checkpoint, load_mindir as load_mindir,
    load_param_into_net as load_param_into_net, safetensors_to_ckpt as safetensors_to_ckpt,
    save_checkpoint as save_checkpoint, save_mindir as save_mindir,
)
from mycelia.io.checkpoint import (
    async_ckpt_thread_status as async_ckpt_thread_status, load_checkpoint_async as load_checkpoint_async,
)
from mycelia.io.obfuscation import (
    load_obf_params_into_net as load_obf_params_into_net, obfuscate_ckpt as obfuscate_ckpt,
)
from mycelia.io.other_devices import (
    export_split_mindir as export_split_mindir, mindio_preload as mindio_preload,
    set_mindio_server_info as set_mindio_server_info,
)
from mycelia.io.printed import parse_print as parse_print
from mycelia.nn import get_metric_fn as get_metric_fn, names as names
from mycelia.nn.metrics.base import Metric as Metric, rearrange_inputs as rearrange_inputs
from mycelia.nn.metrics.classification import (
    Accuracy as Accuracy, F1 as F1, Fbeta as Fbeta, Precision as Precision, Recall as Recall,
    Top1CategoricalAccuracy as Top1CategoricalAccuracy, Top5CategoricalAccuracy as Top5CategoricalAccuracy,
    TopKCategoricalAccuracy as TopKCategoricalAccuracy,
)
from mycelia.nn.metrics.confusion import (
    ConfusionMatrix as ConfusionMatrix, ConfusionMatrixMetric as ConfusionMatrixMetric,
)
from mycelia.nn.metrics.curve import ROC as ROC, auc as auc
from mycelia.nn.metrics.occlusion import OcclusionSensitivity as OcclusionSensitivity
from mycelia.nn.metrics.regression import Loss as Loss, MAE as MAE, MSE as MSE
from mycelia.nn.metrics.segmentation import (
    Dice as Dice, HausdorffDistance as HausdorffDistance, MeanSurfaceDistance as MeanSurfaceDistance,
    RootMeanSquareDistance as RootMeanSquareDistance,
)
from mycelia.nn.metrics.similarity import CosineSimilarity as CosineSimilarity
from mycelia.nn.metrics.text import BleuScore as BleuScore, Perplexity as Perplexity
from mycelia.ops.primitive import constexpr as constexpr
from mycelia.parallel import (
    load_distributed_checkpoint as load_distributed_checkpoint,
    merge_pipeline_strategys as merge_pipeline_strategys, parameter_broadcast as parameter_broadcast,
    sync_pipeline_shared_parameters as sync_pipeline_shared_parameters,
    transform_checkpoint_by_rank as transform_checkpoint_by_rank,
    transform_checkpoints as transform_checkpoints,
)
from mycelia.parallel.checkpoints import (
    build_searched_strategy as build_searched_strategy,
    get_ckpt_path_with_strategy as get_ckpt_path_with_strategy,
    load_segmented_checkpoints as load_segmented_checkpoints,
    merge_sliced_parameter as merge_sliced_parameter, restore_group_info_list as restore_group_info_list,
    unified_safetensors as unified_safetensors,
)
from mycelia.parallel.layout import Layout as Layout, shard as shard
from mycelia.parallel.transform import rank_list_for_transform as rank_list_for_transform
from mycelia.profiler.profiler import Profiler as Profiler
from mycelia.runtime import (
    set_cpu_affinity as set_cpu_affinity, set_device_limit as set_device_limit,
    set_kernel_launch_capture as set_kernel_launch_capture,
    set_kernel_launch_group as set_kernel_launch_group, set_memory as set_memory,
    set_stream_limit as set_stream_limit,
)
from mycelia.tensor import from_numpy as from_numpy
from mycelia.train.amp import build_train_network as build_train_network
from mycelia.train.callbacks.base import Callback as Callback, RunContext as RunContext
from mycelia.train.callbacks.checkpoint import (
    BackupAndRestore as BackupAndRestore, CheckpointConfig as CheckpointConfig,
    ModelCheckpoint as ModelCheckpoint,
)
from mycelia.train.callbacks.control import (
    EarlyStopping as EarlyStopping, LearningRateScheduler as LearningRateScheduler,
    ReduceLROnPlateau as ReduceLROnPlateau,
)
from mycelia.train.callbacks.exit import (
    FlopsUtilizationCollector as FlopsUtilizationCollector, OnRequestExit as OnRequestExit,
)
from mycelia.train.callbacks.fault_tolerance import TrainFaultTolerance as TrainFaultTolerance
from mycelia.train.callbacks.monitor import (
    History as History, LambdaCallback as LambdaCallback, LossMonitor as LossMonitor,
    TimeMonitor as TimeMonitor,
)
from mycelia.train.callbacks.summary import SummaryCollector as SummaryCollector
from mycelia.train.convert import ConvertModelUtils as ConvertModelUtils, ConvertNetUtils as ConvertNetUtils
from mycelia.train.dataset_helper import (
    DatasetHelper as DatasetHelper, connect_network_with_dataset as connect_network_with_dataset,
    data_sink as data_sink,
)
from mycelia.train.loss_scale_manager import (
    DynamicLossScaleManager as DynamicLossScaleManager, FixedLossScaleManager as FixedLossScaleManager,
    LossScaleManager as LossScaleManager,
)
from mycelia.train.model import Model as Model
from mycelia.train.summary.landscape import SummaryLandscape as SummaryLandscape
from mycelia.train.summary.summary_record import SummaryRecord as SummaryRecord

__all__ = [
    "GRAPH_MODE", "PYNATIVE_MODE", "Tensor", "Parameter", "ParameterTuple", "tensor", "is_tensor",
    "from_numpy", "DType", "Type", "TensorType", "Int", "QuantDtype", "bool", "int", "float", "bool_",
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
    "float64", "bfloat16", "complex64", "complex128", "half", "single", "double", "byte", "short", "intc",
    "intp", "long", "ubyte", "ushort", "uintc", "uintp", "cfloat", "cdouble", "qint4x2", "float8_e4m3fn",
    "float8_e5m2", "hifloat8", "number", "int_", "uint", "float_", "string", "list_", "tuple_",
    "tensor_type", "type_none", "dtype_to_nptype", "dtype_to_pytype", "pytype_to_dtype", "get_py_obj_dtype",
    "STRICT", "COMPATIBLE", "LAX", "set_context", "get_context", "set_seed", "get_seed", "set_device",
    "set_deterministic", "set_recursion_limit", "get_level", "get_log_config", "ParallelMode",
    "get_auto_parallel_context", "set_auto_parallel_context", "reset_auto_parallel_context",
    "get_ps_context", "set_ps_context", "reset_ps_context", "set_algo_parameters", "get_algo_parameters",
    "reset_algo_parameters", "Event", "MemPool", "PluggableAllocator", "Stream", "StreamCtx",
    "StreamLimitCtx", "communication_stream", "current_stream", "default_stream", "dispatch_threads_num",
    "empty_cache", "get_device_limit", "get_stream_limit", "launch_blocking", "max_memory_allocated",
    "max_memory_reserved", "memory_allocated", "memory_replay", "memory_reserved", "memory_stats",
    "memory_summary", "reset_max_memory_allocated", "reset_max_memory_reserved", "reset_peak_memory_stats",
    "reset_stream_limit", "set_cpu_affinity", "set_cur_stream", "set_device_limit",
    "set_kernel_launch_capture", "set_kernel_launch_group", "set_memory", "set_stream_limit", "synchronize",
    "use_mem_pool", "DeviceCtx", "get_current_device", "run_check", "swap_tensors", "COOTensor",
    "CSRTensor", "RowTensor", "SparseTensor", "JitConfig", "Symbol", "enable_dynamic", "jit_class",
    "lazy_inline", "ms_memory_recycle", "no_inline", "set_dump", "Layout", "build_searched_strategy",
    "get_ckpt_path_with_strategy", "load_distributed_checkpoint", "load_segmented_checkpoints",
    "merge_pipeline_strategys", "merge_sliced_parameter", "parameter_broadcast", "rank_list_for_transform",
    "restore_group_info_list", "shard", "sync_pipeline_shared_parameters", "transform_checkpoint_by_rank",
    "transform_checkpoints", "unified_safetensors", "ExitByRequest", "MsDispatchMode", "RSCPluginHandle",
    "TFTCommValue", "comm_exec_order_check", "from_dlpack", "get_sdc_detect_result",
    "runtime_execution_order_check", "sdc_detect_start", "sdc_detect_stop", "stress_detect", "to_dlpack",
    "Generator", "default_generator", "get_rng_state", "initial_seed", "manual_seed", "seed",
    "set_rng_state", "get_grad", "grad", "value_and_grad", "vjp", "jvp", "jacfwd", "jacrev", "recompute",
    "vmap", "saved_tensors_hooks", "register_saved_tensors_hooks", "frombuffer", "UntypedStorage", "jit",
    "mutable", "constexpr", "Profiler", "save_checkpoint", "load_checkpoint", "load_checkpoint_async",
    "load_param_into_net", "async_ckpt_thread_status", "parse_print", "ckpt_to_safetensors",
    "safetensors_to_ckpt", "export", "load", "load_mindir", "save_mindir", "load_obf_params_into_net",
    "obfuscate_ckpt", "export_split_mindir", "mindio_preload", "set_mindio_server_info", "Model",
    "Callback", "CheckpointConfig", "EarlyStopping", "History", "LambdaCallback", "LearningRateScheduler",
    "LossMonitor", "ModelCheckpoint", "ReduceLROnPlateau", "RunContext", "TimeMonitor", "Accuracy", "F1",
    "Fbeta", "Loss", "MAE", "MSE", "Metric", "Precision", "Recall", "Top1CategoricalAccuracy",
    "Top5CategoricalAccuracy", "TopKCategoricalAccuracy", "get_metric_fn", "names", "rearrange_inputs",
    "BackupAndRestore", "BleuScore", "ConfusionMatrix", "ConfusionMatrixMetric", "CosineSimilarity", "Dice",
    "HausdorffDistance", "MeanSurfaceDistance", "OcclusionSensitivity", "Perplexity", "ROC",
    "RootMeanSquareDistance", "auc", "SummaryRecord", "SummaryCollector", "SummaryLandscape",
    "DatasetHelper", "OnRequestExit", "FlopsUtilizationCollector", "TrainFaultTolerance", "ConvertNetUtils",
    "ConvertModelUtils", "data_sink", "connect_network_with_dataset", "build_train_network",
    "DynamicLossScaleManager", "FixedLossScaleManager", "LossScaleManager", "amp", "autodiff", "backends",
    "boost", "capture", "common", "communication", "compile", "config", "context", "dataset", "debug",
    "device_context", "dtype", "dtypes", "errors", "experimental", "hal", "hookspecs", "io", "ir", "log",
    "mindrecord", "mint", "nn", "numpy", "ops", "parallel", "plugins", "precision", "profiler", "rewrite",
    "runtime", "scipy", "testing", "train", "utils",
]

GRAPH_MODE: builtins.int
PYNATIVE_MODE: builtins.int
bool: DType
int: DType
float: DType
int8: DType
uint8: DType
float64: DType
complex64: DType
complex128: DType
half: DType
single: DType
short: DType
intc: DType
intp: DType
long: DType
ushort: DType
uintc: DType
uintp: DType
STRICT: builtins.int
COMPATIBLE: builtins.int
LAX: builtins.int
default_generator: _Generator

def set_rng_state(state) -> None:
    """Continues the default generator from a state that `get_rng_state` returned."""

def frombuffer(buffer, dtype=..., count=-1, offset=0) -> Tensor:
    """A vector of the elements in a buffer, from byte `offset` on, at most `count` of them."""
__version__: str
