"""Names of parallel training: layouts, strategies and their files, checkpoints of several ranks."""

from mycelia.engine.base.parallel_settings import (
    get_algo_parameters,
    reset_algo_parameters,
    set_algo_parameters,
)
from mycelia.engine.communication import mode as _mode
from mycelia.parallel import auto_parallel, function, nn, strategy_files
from mycelia.parallel.checkpoints import (
    build_searched_strategy,
    get_ckpt_path_with_strategy,
    load_distributed_checkpoint,
    load_segmented_checkpoints,
    merge_pipeline_strategys,
    merge_sliced_parameter,
    parameter_broadcast,
    restore_group_info_list,
    set_op_strategy_config,
    sync_pipeline_shared_parameters,
    unified_safetensors,
)
from mycelia.parallel.layout import Layout, shard
from mycelia.parallel.transform import (
    convert_checkpoint_by_rank,
    convert_checkpoints,
    rank_list_for_convert,
    rank_list_for_transform,
    transform_checkpoint_by_rank,
    transform_checkpoints,
)

_mode.divisions.append(strategy_files.save)

__all__ = [
    "Layout", "auto_parallel", "build_searched_strategy", "convert_checkpoint_by_rank", "convert_checkpoints",
    "function", "get_algo_parameters", "get_ckpt_path_with_strategy",
    "load_distributed_checkpoint", "load_segmented_checkpoints",
    "merge_pipeline_strategys", "merge_sliced_parameter", "nn", "parameter_broadcast",
    "rank_list_for_convert",
    "rank_list_for_transform", "reset_algo_parameters", "restore_group_info_list", "set_algo_parameters",
    "set_op_strategy_config", "shard", "sync_pipeline_shared_parameters", "transform_checkpoint_by_rank",
    "transform_checkpoints", "unified_safetensors",
]  # fmt: skip
