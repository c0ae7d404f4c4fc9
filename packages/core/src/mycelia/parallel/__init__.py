"""Names of parallel training. On one device layouts and strategies are checked and kept; nothing is
divided."""

from mycelia.engine.base.parallel_settings import (
    get_algo_parameters,
    reset_algo_parameters,
    set_algo_parameters,
)
from mycelia.parallel import auto_parallel, function, nn
from mycelia.parallel.checkpoints import (
    build_searched_strategy,
    convert_checkpoint_by_rank,
    convert_checkpoints,
    get_ckpt_path_with_strategy,
    load_distributed_checkpoint,
    load_segmented_checkpoints,
    merge_pipeline_strategys,
    merge_sliced_parameter,
    parameter_broadcast,
    rank_list_for_convert,
    rank_list_for_transform,
    restore_group_info_list,
    set_op_strategy_config,
    sync_pipeline_shared_parameters,
    transform_checkpoint_by_rank,
    transform_checkpoints,
    unified_safetensors,
)
from mycelia.parallel.layout import Layout, shard

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
