# Written by tools/gen_stubs.py.
from . import auto_parallel as auto_parallel, comm as comm, function as function, nn as nn
from mycelia.engine.base.parallel_settings import (
    get_algo_parameters as get_algo_parameters, reset_algo_parameters as reset_algo_parameters,
    set_algo_parameters as set_algo_parameters,
)
from mycelia.parallel.checkpoints import (
    build_searched_strategy as build_searched_strategy,
    convert_checkpoint_by_rank as convert_checkpoint_by_rank, convert_checkpoints as convert_checkpoints,
    get_ckpt_path_with_strategy as get_ckpt_path_with_strategy,
    load_distributed_checkpoint as load_distributed_checkpoint,
    load_segmented_checkpoints as load_segmented_checkpoints,
    merge_pipeline_strategys as merge_pipeline_strategys, merge_sliced_parameter as merge_sliced_parameter,
    rank_list_for_convert as rank_list_for_convert, rank_list_for_transform as rank_list_for_transform,
    restore_group_info_list as restore_group_info_list, set_op_strategy_config as set_op_strategy_config,
    transform_checkpoint_by_rank as transform_checkpoint_by_rank,
    transform_checkpoints as transform_checkpoints, unified_safetensors as unified_safetensors,
)
from mycelia.parallel.layout import Layout as Layout, shard as shard

__all__ = [
    "Layout", "auto_parallel", "build_searched_strategy", "convert_checkpoint_by_rank",
    "convert_checkpoints", "function", "get_algo_parameters", "get_ckpt_path_with_strategy",
    "load_distributed_checkpoint", "load_segmented_checkpoints", "merge_pipeline_strategys",
    "merge_sliced_parameter", "nn", "parameter_broadcast", "rank_list_for_convert",
    "rank_list_for_transform", "reset_algo_parameters", "restore_group_info_list", "set_algo_parameters",
    "set_op_strategy_config", "shard", "sync_pipeline_shared_parameters", "transform_checkpoint_by_rank",
    "transform_checkpoints", "unified_safetensors",
]


def parameter_broadcast(net, layout, cur_rank=0, initial_rank=0) -> None:
    """Send Parameters to the devices that hold the same part: there is one device, which has them."""

def sync_pipeline_shared_parameters(net) -> None:
    """Make Parameters equal that several stages of a pipeline share: with one stage they are."""
