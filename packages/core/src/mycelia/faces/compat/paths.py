"""Where the modules of MindSpore, 1.x and 2.x, lie here, and what became of names.

Paths are written without the leading `mindspore.`; `.` is the package itself.
"""

from __future__ import annotations

# Paths, and the modules of ours where their names are looked for, in this order. `.*`: also all below.
_PATHS = """
    common : common .
    train : train io amp
    common.dtype common.np_dtype : dtypes
    common.tensor common.parameter common._stub_tensor common._tensor_overload : tensor .
    common.api common.jit_config common.jit_context common.mutable common.lazy_inline common.no_inline
        graph.* : compile .
    common.seed : config .
    common.file_system : compat.file_system
    common._monad common._register_for_tensor common._utils common._decorator common.auto_dynamic_shape
        common.device common.dump common.generator common.hook_handle common.model common.recompute
        common.sparse_tensor common.symbol common._pijit_context : common .
    context : context config .
    parallel._auto_parallel_context parallel._cost_model_context parallel._ps_context parallel._utils
        : compat.parallel context
    dataset.core.validator_helpers : compat.internals
    dtype : dtypes
    version : .
    amp : amp train.amp train.loss_scale_manager train .
    nn.cell nn.dynamic_lr nn.learning_rate_schedule nn.grad.* nn.layer.* nn.loss.* nn.metrics.*
        nn.optim.* nn.sparse.* nn.transformer.* nn.utils.* nn.wrap.* : nn train amp .
    nn.probability.* : nn.probability nn
    ops.functional_overload : mint ops
    ops.auto_generate.* : ops.operations ops autodiff . mint.ext compat.generated
    ops.function.* ops.extend.* : ops.operations ops autodiff . mint.ext
    _checkparam : compat.checkparam
    _c_expression : compat.native .
    _c_expression.security : compat.native
    _c_dataengine dataset.core.datatypes : compat.dataengine
    dataset.engine.iterators : dataset.execution.iterator dataset
    _extends.parse.compile_config : compat.compile_config
    _extends.parse.standard_method : compat.standard_method
    _extends.* : .
    ops.operations.* ops.composite.* ops.functional ops.primitive ops.deprecated ops.op_info_register
        ops.op_selector ops.vm_impl_registry ops.signature ops.tensor_method ops._vmap.* ops._grad.*
        ops._grad_experimental.* ops._op_impl.* ops._utils.* ops.custom_ops ops._register_for_op
        ops._primitive_cache : ops.operations ops autodiff .
    mint.optim.* : mint.optim
    mint.distributed.* ops.communication : mint.distributed
    mint.* : mint mint.nn mint.nn.functional
    train.callback.* train.amp train.data_sink train.dataset_helper train.loss_scale_manager
        train.metrics.* train.model train.serialization train.summary.* train.train_thor.* train._utils
        train.parallel_utils train.mind_ir_pb2 train.checkpoint_pb2 : train amp nn io .
    train.summary_pb2 : train.summary.summary_pb2
    dataset.core.* dataset.engine.* dataset.callback.* dataset.utils.*
        : dataset.engine dataset dataset.samplers
    dataset.transforms.* dataset.vision.c_transforms dataset.vision.py_transforms
        : dataset.vision dataset.transforms
    dataset.vision.* : dataset.vision
    dataset.text.* : dataset.text
    dataset.audio.* : dataset.audio
    dataset.debug.* : dataset.debug
    numpy.* : numpy
    scipy.* : scipy scipy.linalg compat.scipy_ops
    communication.* parallel.* : parallel communication .
    experimental.optim.* : experimental.optim
    experimental.* : experimental .
    boost.* : boost
    hal.* : hal
    mindrecord.* : mindrecord
    multiprocessing.* : compat.processes
    profiler.* : profiler profiler.steps
    runtime.* : runtime
    rewrite.* : rewrite rewrite.scopes
    utils.runtime_execution_order_check : utils.execution_order utils
    utils.* tools.* : utils
    log : log
    run_check.* : .
"""


# The modules of MindSpore 2.10 and of 1.x that are in reach of scripts: a module, and what lies in it.
_BELOW = """
    : _c_dataengine _c_expression _checkparam _extends amp boost common communication context dataset
        device_context dtype experimental graph hal log mindrecord mint multiprocessing nn numpy ops
        parallel profiler rewrite run_check runtime scipy tools train utils version
    _c_expression: security
    _extends: parse
    _extends.parse: compile_config standard_method
    boost: adasum base boost boost_cell_wrapper dim_reduce grad_accumulation grad_freeze
        group_loss_scale_manager less_batch_normalization
    common: _decorator _grad_function _monad _pijit_context _register_for_recompute _register_for_tensor
        _stub_tensor _tensor_docs _tensor_overload _utils api auto_dynamic_shape device dtype dump
        file_system generator hook_handle initializer jit_config jit_context lazy_inline model mutable
        no_inline np_dtype parameter recompute seed sparse_tensor storage symbol tensor
    communication: _comm_helper comm_func management
    dataset: audio callback core debug engine text transforms utils vision
    dataset.audio: transforms utils
    dataset.callback: ds_callback
    dataset.core: config datatypes validator_helpers
    dataset.debug: debug_hook pre_defined_hook
    dataset.engine: cache_client datasets datasets_audio datasets_standard_format datasets_text
        datasets_user_defined datasets_vision iterators obs offload queue samplers serializer_deserializer
    dataset.engine.obs: config_loader obs_mindrecord_dataset util
    dataset.text: transforms utils
    dataset.transforms: c_transforms py_transforms py_transforms_util transforms vision
    dataset.utils: browse_dataset line_reader
    dataset.vision: c_transforms py_transforms py_transforms_util transforms utils
    device_context: ascend cpu gpu
    experimental: es map_parameter optim
    experimental.optim: adadelta adagrad adam adamax adamw asgd lr_scheduler nadam optimizer radam rmsprop
        rprop sgd
    graph: api custom_backend custom_infer custom_pass dynamic_shape jit_config jit_context jit_trace
        lazy_inline mutable no_inline symbol
    graph.dynamic_shape: _auto_dynamic auto_dynamic_shape enable_dynamic
    hal: _base _cpu device event memory stream
    mindrecord: common config core filereader filewriter mindpage
    mindrecord.common: constant enums exceptions
    mindrecord.core: shardheader shardindexgenerator shardreader shardsegment shardutils shardwriter
    mint: distributed linalg nn optim special
    mint.distributed: _utils distributed
    mint.nn: functional layer
    mint.nn.layer: _functions activation basic conv normalization padding pooling
    mint.optim: adam adamw fused_adamw sgd
    multiprocessing: reductions
    nn: cell dynamic_lr generator grad layer learning_rate_schedule loss metrics optim probability sparse
        transformer utils wrap
    nn.grad: cell_grad
    nn.layer: activation basic channel_shuffle combined container conv dense embedding image lstm math
        normalization padding pooling quant rnn_cells rnns thor_layer timedistributed transformer
    nn.loss: loss
    nn.optim: ada_grad adadelta adafactor adam adamax adasum asgd ftrl lamb lars lazyadam momentum
        optimizer proximal_ada_grad rmsprop rprop sgd tft_wrapper thor
    nn.probability: bijector bnn_layers distribution dpn infer toolbox transforms
    nn.probability.bijector: bijector exp gumbel_cdf invert power_transform scalar_affine softplus
    nn.probability.distribution: _utils bernoulli beta categorical cauchy distribution exponential gamma
        geometric gumbel half_normal laplace log_normal logistic normal poisson student_t
        transformed_distribution uniform
    nn.probability.distribution._utils: custom_ops utils
    nn.sparse: sparse
    nn.utils: init
    nn.wrap: cell_wrapper grad_reducer loss_scale
    numpy: array_creations array_ops dtypes fft logic_ops math_ops utils utils_const
    ops: _constants _grad _grad_experimental _primitive_cache _register_for_op _utils auto_generate
        bprop_mindir communication composite deprecated extend function functional functional_overload
        op_info_register op_selector operations primitive signature silent_check tensor_method
        vm_impl_registry
    ops._grad: grad_base
    ops._grad_experimental: grad_array_ops grad_base grad_math_ops grad_nn_ops
    ops._utils: arg_dtype_cast arg_handler utils
    ops.auto_generate: cpp_create_prim_instance_helper gen_arg_dtype_cast gen_arg_handler gen_extend_func
        gen_ops_def gen_ops_prim pyboost_inner_prim
    ops.composite: base env_ops math_ops multitype_ops
    ops.composite.multitype_ops: zeros_like_impl ones_like_impl _compile_utils _constexpr_utils add_impl
    ops.function: _add_attr_func array_func clip_func comm_func debug_func fft_func grad image_func
        linalg_func math_func nn_func other_func parameter_func random_func reshard_func sparse_func
        sparse_unary_func spectral_func vmap_func
    ops.function.grad: grad_func
    ops.operations: _csr_ops _custom_grad _grad_ops _inner_ops _map_tensor_ops _pyfunc_registry _quant_ops
        _embedding_cache_ops _rl_inner_ops _scalar_ops _sequence_ops _thor_ops array_ops comm_ops
        control_ops custom_ops debug_ops image_ops inner_ops linalg_ops manually_defined math_ops nn_ops
        other_ops random_ops reshard_ops sparse_ops spectral_ops
    ops.operations.manually_defined: _inner ops_def
    parallel: _auto_parallel_context _cost_model_context _ps_context _tensor _utils algo_parameter_config
        data_access_adapter function nn parameter_broadcast shard transform_safetensors
    parallel.function: reshard_func
    parallel.nn: parallel_cell_wrapper parallel_grad_reducer
    profiler: dynamic_profile dynamic_profiler envprofiler experimental_config mstx profiler
        profiler_action_controller profiler_interface profiling schedule
    profiler.dynamic_profile: dynamic_monitor_proxy dynamic_profiler_config_context dynamic_profiler_utils
    rewrite: api node symbol_tree
    rewrite.api: node node_type pattern_engine scoped_value symbol_tree
    run_check: _check_version run_check
    runtime: device device_limit event executor memory stream stream_limit thread_bind_core
    scipy: fft linalg ops ops_wrapper optimize utils utils_const
    scipy.optimize: _bfgs _lagrange _lbfgs gradient_optimization_algorithm line_search
        linear_sum_assignment minimize
    tools: data_dump sdc_detect stress_detect
    train: _utils amp callback data_sink dataset_helper loss_scale_manager metrics model parallel_utils
        quant serialization summary summary_pb2 train_thor
    train.callback: _backup_and_restore _callback _checkpoint _cluster_monitor _dataset_graph _early_stop
        _flops_collector _history _lambda_callback _landscape _loss_monitor _lr_scheduler_callback
        _on_request_exit _reduce_lr_on_plateau _summary_collector _time_monitor _train_fault_tolerance
    train.metrics: accuracy auc bleu_score confusion_matrix cosine_similarity dice error fbeta
        hausdorff_distance loss mean_surface_distance metric occlusion_sensitivity perplexity precision
        recall roc root_mean_square_surface_distance topk
    train.summary: _lineage_adapter _summary_adapter _writer_pool enums summary_record writer
    train.train_thor: convert_utils
    utils: dlpack dryrun ms_dispatch runtime_execution_order_check sdc_detect stress_detect utils
"""


def _read_paths() -> list[tuple[str, tuple[str, ...]]]:
    rows, waiting = [], []
    for line in _PATHS.split("\n"):
        names, colon, where = line.partition(":")
        waiting += names.split()
        if colon:
            rows += [(path, tuple(where.split())) for path in waiting]
            waiting = []
    return sorted(rows, key=lambda row: -len(row[0]))  # the longest pattern that fits is the one


def _read_below() -> frozenset[str]:
    known: set[str] = set()
    parent = ""
    for line in _BELOW.split("\n"):
        before, colon, names = line.rpartition(":")
        parent = before.strip() if colon else parent
        known.update(f"{parent}.{name}" if parent else name for name in names.split())
    return frozenset(known)


_ROWS = _read_paths()
KNOWN = _read_below()


def modules(path: str) -> tuple[str, ...] | None:
    """The modules of ours that together are MindSpore's `path`; None if MindSpore has no such module."""
    if path not in KNOWN:
        return None
    for pattern, where in _ROWS:
        if path == pattern or pattern.endswith(".*") and f"{path}.".startswith(pattern[:-1]):
            return where
    return None


# Names that newer releases call otherwise, by the first part of the path: old name -> new name, with its
# module before a colon if that is another one. They are asked for only where the old name is missing.
RENAMED: dict[str, dict[str, str]] = {
    "": {
        "ms_function": "jit", "ms_class": "jit_class", "MetaTensor": "Tensor",
        "parse_print": "io:parse_print", "hypermap": "ops:HyperMap",
        "_cell_graph_executor": "compat.legacy:cell_graph_executor",
        "_CellGraphExecutor": "compat.legacy:CellGraphExecutor", "_JitExecutor": "compat.legacy:JitExecutor",
        "_no_recursive": "compat.legacy:no_recursive", "K_CONTEXT": "compat.legacy:current_context",
        "_context": "compat.legacy:the_context", "get_jit_config": "compat.legacy:get_jit_config",
        "_executor": "compat.legacy:cell_graph_executor", "RowTensorInner": "RowTensor",
        "_Function": "autodiff.function:Function", "_no_grad": "autodiff.function:no_grad",
        "_Buffer": "nn.cell:Buffer",
        "_is_parameter_generated": "compat.legacy:is_generated_name",
        "U": "compat.legacy:MONAD", "IO": "compat.legacy:MONAD",
        "cell_attr_register": "compat.legacy:cell_attr_register",
        "_calculate_fan_in_and_fan_out": "common.initializer:_fans",
        "_calculate_correct_fan": "compat.internals:fan_of", "_calculate_gain": "compat.internals:gain",
        "_assignment": "compat.internals:assignment", "_register": "compat.internals:register_initializer",
        "cells_compile_cache": "compat.legacy:compiled_cells",
        "_pynative_executor": "compat.legacy:pynative_executor",
    },
    "ops": {
        "TensorAdd": "Add", "TensorSub": "Sub", "TensorPow": "Pow", "TensorMod": "FloorMod",
        "GatherV2": "Gather", "Pack": "Stack", "Unpack": "Unstack", "pack": "stack", "Gelu": "GeLU",
        "FastGelu": "FastGeLU", "FusedBatchNorm": "BatchNorm", "FusedBatchNormEx": "BatchNorm",
        "ReLUV2": "ReLU", "Inverse": "MatrixInverse",
        "contiguous": "compat.legacy:contiguous", "F": "ops:functional",
        "bprop_getters": "ops.primitive:bprop_getters", "Eigh": "compat.scipy_ops:Eigh",
        "core": "compat.legacy:core", "TopTypeof": "compat.legacy:TopTypeof",
        "binop_grad_common": "compat.legacy:binop_grad_common",
        "get_broadcast_shape": "compat.legacy:get_broadcast_shape",
        "generate_shape_index": "compat.legacy:generate_shape_index", "ScalarToArray": "ScalarToTensor",
        "ResizeBilinear": "ResizeBilinearV2", "Dropout2d": "Dropout2D",
        "DepthwiseConv2dNative": "compat.legacy:DepthwiseConv2dNative",
        "BatchMatmul": "BatchMatMul", "issubclass_": "builtins:issubclass",
        "isinstance_": "builtins:isinstance", "tensor_add": "add", "tensor_sub": "sub",
        "tensor_mul": "mul", "tensor_div": "div", "tensor_pow": "pow",
        "tensor_floordiv": "floor_div", "tensor_mod": "floor_mod", "tensor_exp": "exp",
        "tensor_expm1": "expm1", "tensor_lt": "less", "tensor_le": "le", "tensor_gt": "gt",
        "tensor_ge": "ge", "tensor_slice": "slice", "tensor_range": "range", "neg_tensor": "neg",
        "scalar_add": "operator:add", "scalar_sub": "operator:sub", "scalar_mul": "operator:mul",
        "scalar_div": "operator:truediv", "scalar_floordiv": "operator:floordiv",
        "scalar_mod": "operator:mod", "scalar_pow": "operator:pow", "scalar_gt": "operator:gt",
        "scalar_lt": "operator:lt", "scalar_ge": "operator:ge", "scalar_le": "operator:le",
        "scalar_eq": "operator:eq", "scalar_ne": "operator:ne", "scalar_usub": "operator:neg",
        "bool_not": "operator:not_", "string_eq": "operator:eq", "string_concat": "operator:concat",
        "P": "ops:operations", "Tensor": ".:Tensor",
    },
    "nn": {
        "GlobalBatchNorm": "SyncBatchNorm", "Thor": "thor",
        "DepthwiseConv2d": "compat.legacy:DepthwiseConv2d",
        "AdamWeightDecayForBert": "AdamWeightDecay", "GraphKernel": "Cell",
        "SummaryRecord": "train:SummaryRecord", "Parameter": ".:Parameter",
        "ParameterTuple": ".:ParameterTuple", "Tensor": ".:Tensor", "Model": "train:Model",
        "_Loss": "nn:LossBase", "_BatchNorm": "nn.norm:_BatchNorm", "_activation": "nn.activation:_BY_NAME",
        "opt_init_args_register": "compat.internals:opt_init_args_register",
        "_VirtualDatasetCell": "compat.internals:VirtualDatasetCell",
        "_grad_overflow": "compat.internals:grad_overflow", "_gru_cell": "engine.ops.nn_ops.gru:_gru_cell",
    },
    "train": {
        "SummaryStep": "compat.legacy:SummaryStep", "TrainLineage": "compat.legacy:TrainLineage",
        "EvalLineage": "compat.legacy:EvalLineage", "Tensor": ".:Tensor",
        "_InternalCallbackParam": "train.callbacks.base:CallbackParam",
        "_CallbackManager": "train.callbacks.base:CallbackManager",
        "_handle_loss": "train.callbacks.monitor:loss_value",
        "_set_cur_net": "compat.legacy:set_current_net",
        "_checkpoint_cb_for_save_op": "compat.legacy:fill_current_net",
        "_chg_ckpt_file_name_if_same_exist": "compat.legacy:free_prefix",
        "_cache_summary_tensor_data": "compat.legacy:cache_summary_data",
        "_CheckpointManager": "compat.legacy:CheckpointManager",
        "_construct_tensor_list": "compat.legacy:zeros_like_batch",
        "_calc_histogram_bins": "compat.legacy:histogram_bins",
        "_DEFAULT_EXPORT_OPTIONS": "train.summary.summary_record:EXPORT_OPTIONS",
        "Parameter": ".:Parameter", "load": "io:load", "export": "io:export",
        "set_cur_net": "compat.legacy:set_current_net", "_config_level": "compat.internals:amp_levels",
        "_add_loss_network": "compat.internals:add_loss_network",
        "_update_param": "compat.internals:update_param",
        "_make_directory": "compat.internals:make_directory",
        "_get_merged_param_data": "compat.internals:merged_param_data",
    },
    "boost": {
        "gradient_accumulation_op": "compat.internals:gradient_accumulation_op",
        "gradient_clear_op": "compat.internals:gradient_clear_op",
    },
    "log": {"_LogActionOnce": "compat.internals:LogActionOnce"},
    "_c_expression": {
        "_framework_profiler_step_start": "compat.legacy:nothing",
        "_framework_profiler_step_end": "compat.legacy:nothing",
        "disable_multi_thread": "compat.legacy:nothing",
    },
    "dataset": {
        "_cleanup": "compat.legacy:nothing", "_unset_iterator_cleanup": "compat.legacy:nothing",
        "Cutout": "CutOut", "OneHotOp": "OneHot", "ComposeOp": "Compose",
        "ImageFolderDatasetV2": "dataset:ImageFolderDataset", "ToType": "dataset.vision:ToType",
        "RandomRotate": "RandomRotation", "TensorOperation": "compat.internals:TensorOperation",
        "PyTensorOperation": "compat.internals:TensorOperation", "is_pil": "compat.internals:is_pil",
        "is_numpy": "compat.internals:is_numpy", "hwc_to_chw": "compat.internals:hwc_to_chw",
        "augment_error_message": "compat.internals:augment_error_message", "context": ".:context",
        "BatchDataset": "dataset.batching:BatchDataset",
    },
}  # fmt: skip


def renamed(path: str, name: str) -> str | None:
    """What replaced `name` of `path`: a name of the same module or `module:name`; None: nothing."""
    family = path.split(".")[0]
    return RENAMED.get("" if family in ("common", "context", "graph", "_extends") else family, {}).get(name)
