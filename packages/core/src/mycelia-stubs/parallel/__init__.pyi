# Written by tools/gen_stubs.py.
from . import auto_parallel as auto_parallel, comm as comm, function as function, nn as nn
from mycelia.engine.base.parallel_settings import (
    get_algo_parameters as get_algo_parameters, reset_algo_parameters as reset_algo_parameters,
    set_algo_parameters as set_algo_parameters,
)
from mycelia.parallel.checkpoints import (
    build_searched_strategy as build_searched_strategy,
    get_ckpt_path_with_strategy as get_ckpt_path_with_strategy,
    load_segmented_checkpoints as load_segmented_checkpoints,
    merge_sliced_parameter as merge_sliced_parameter, restore_group_info_list as restore_group_info_list,
    set_op_strategy_config as set_op_strategy_config, unified_safetensors as unified_safetensors,
)
from mycelia.parallel.layout import Layout as Layout, shard as shard
from mycelia.parallel.transform import (
    rank_list_for_convert as rank_list_for_convert, rank_list_for_transform as rank_list_for_transform,
)

__all__ = [
    "Layout", "auto_parallel", "build_searched_strategy", "convert_checkpoint_by_rank",
    "convert_checkpoints", "function", "get_algo_parameters", "get_ckpt_path_with_strategy",
    "load_distributed_checkpoint", "load_segmented_checkpoints", "merge_pipeline_strategys",
    "merge_sliced_parameter", "nn", "parameter_broadcast", "rank_list_for_convert",
    "rank_list_for_transform", "reset_algo_parameters", "restore_group_info_list", "set_algo_parameters",
    "set_op_strategy_config", "shard", "sync_pipeline_shared_parameters", "transform_checkpoint_by_rank",
    "transform_checkpoints", "unified_safetensors",
]


def convert_checkpoint_by_rank(rank_id, checkpoint_files_map, save_checkpoint_file_name, src_strategy_file=None, dst_strategy_file=None) -> None:
    """The newer name of `transform_checkpoint_by_rank`."""

def convert_checkpoints(src_checkpoints_dir, dst_checkpoints_dir, ckpt_prefix, src_strategy_file=None, dst_strategy_file=None, process_num=1, output_format='ckpt') -> None:
    """The newer name of `transform_checkpoints`."""

def load_distributed_checkpoint(network, checkpoint_filenames=None, predict_strategy=None, train_strategy_filename=None, strict_load=False, dec_key=None, dec_mode='AES-GCM', format='ckpt', unified_safetensors_dir=None, dst_safetensors_dir=None, rank_id=None, output_format='safetensors', name_map=None, max_process_num=64, return_param_dict=False) -> bool:
    """Load what several ranks saved, the file of each in the order of the ranks, into a network; True."""

def merge_pipeline_strategys(src_strategy_dirs, dst_strategy_file) -> None:
    """One strategy file from those of all stages of a pipeline, which lie in a folder; names of Parameters get the number of their stage in front."""

def parameter_broadcast(net, layout, cur_rank=0, initial_rank=0) -> None:
    """Send Parameters to the devices that hold the same part: there is one device, which has them."""

def sync_pipeline_shared_parameters(net) -> None:
    """Make Parameters equal that several stages of a pipeline share: with one stage they are."""

def transform_checkpoint_by_rank(rank_id, checkpoint_files_map, save_checkpoint_file_name, src_strategy_file=None, dst_strategy_file=None) -> None:
    """Writes the checkpoint of one rank under another strategy, of those in `checkpoint_files_map`, rank -> file."""

def transform_checkpoints(src_checkpoints_dir, dst_checkpoints_dir, ckpt_prefix, src_strategy_file=None, dst_strategy_file=None, process_num=1, output_format='ckpt') -> None:
    """Writes the checkpoints of all ranks under another strategy: of the last file in each folder ``rank_N`` of `src_checkpoints_dir` into ``rank_M/<ckpt_prefix>M.ckpt``. Without a strategy file all is whole on one rank. `process_num` has no effect: files are written one after the other."""
