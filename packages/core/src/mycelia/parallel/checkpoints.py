"""Checkpoints that several devices wrote, each its part.

Parts are put together here. What needs the strategy files of a parallel compilation says so: only training on
several devices writes them.
"""

from __future__ import annotations

import errno
import os

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.tensors.tensor import Parameter, Tensor


def _needs_strategy(subject: str) -> Exception:
    return errors.error(
        errors.NotSupportedError, subject,
        "it works on checkpoints and strategy files of training on several devices",
        hint="backends that train on several devices (Ascend, GPU) write and read them",
    )  # fmt: skip


def merge_sliced_parameter(sliced_parameters, strategy=None):
    """One Parameter from those that hold its parts, in the order of the devices.

    `strategy`: for a parameter name, into how many parts each axis was cut; without it they are joined
    along the
    first axis.  Errors: TypeError unless a list of Parameters, ValueError for parts whose number or names
    do not fit.
    """
    if not isinstance(sliced_parameters, list) or not all(
        isinstance(p, Parameter) for p in sliced_parameters
    ):
        raise errors.type_error("merge_sliced_parameter", "sliced_parameters must be a list of Parameters")
    if not sliced_parameters:
        raise errors.value_error("merge_sliced_parameter", "sliced_parameters must not be empty")
    first = sliced_parameters[0]
    for p in sliced_parameters:
        if (p.name, p.shape, p.dtype) != (first.name, first.shape, first.dtype):
            raise errors.value_error("merge_sliced_parameter", f"{p} is no part of what {first} is a part of")
    parts = [p._bits() for p in sliced_parameters]
    cuts = [len(parts), *[1] * (first.ndim - 1)]
    if strategy is not None:
        if first.name not in strategy:
            raise errors.one_of(first.name, strategy, subject="merge_sliced_parameter", what="parameter name")
        cuts = list(strategy[first.name])
    if int(np.prod(cuts)) != len(parts) or len(cuts) != first.ndim:
        raise errors.value_error(
            "merge_sliced_parameter", f"{len(parts)} parts of rank {first.ndim} do not come from cuts {cuts}"
        )
    for axis in reversed(range(len(cuts))):
        n = cuts[axis]
        parts = [np.concatenate(parts[i : i + n], axis) for i in range(0, len(parts), n)]
    merged = Parameter(_tensor(parts[0], first.dtype), first.name, first.requires_grad)
    merged.layerwise_parallel = first.layerwise_parallel
    return merged


def _tensor(bits, dtype) -> Tensor:
    from mycelia.engine import _C

    return _C.from_array(np.ascontiguousarray(bits), dtype, False)


def merge_pipeline_strategys(src_strategy_dirs, dst_strategy_file):
    """One strategy file from those of all stages of a pipeline."""
    raise _needs_strategy("merge_pipeline_strategys")


def build_searched_strategy(strategy_filename):
    """The strategies in a file."""
    raise _needs_strategy("build_searched_strategy")


def rank_list_for_transform(rank_id, src_strategy_file=None, dst_strategy_file=None):
    """The devices whose checkpoints hold what a device needs. Without strategies: all is on device 0."""
    if src_strategy_file is None and dst_strategy_file is None:
        return [0]
    raise _needs_strategy("rank_list_for_transform")


def rank_list_for_convert(rank_id, src_strategy_file=None, dst_strategy_file=None):
    """The newer name of `rank_list_for_transform`."""
    return rank_list_for_transform(rank_id, src_strategy_file, dst_strategy_file)


def transform_checkpoint_by_rank(
    rank_id, checkpoint_files_map, save_checkpoint_file_name, src_strategy_file=None, dst_strategy_file=None
):
    """The checkpoint of one device under another strategy."""
    raise _needs_strategy("transform_checkpoint_by_rank")


def convert_checkpoint_by_rank(
    rank_id, checkpoint_files_map, save_checkpoint_file_name, src_strategy_file=None, dst_strategy_file=None
):
    """The newer name of `transform_checkpoint_by_rank`."""
    raise _needs_strategy("convert_checkpoint_by_rank")


def transform_checkpoints(
    src_checkpoints_dir, dst_checkpoints_dir, ckpt_prefix, src_strategy_file=None, dst_strategy_file=None,
    process_num=1, output_format="ckpt",
):  # fmt: skip
    """The checkpoints of all devices under another strategy."""
    raise _needs_strategy("transform_checkpoints")


def convert_checkpoints(
    src_checkpoints_dir, dst_checkpoints_dir, ckpt_prefix, src_strategy_file=None, dst_strategy_file=None,
    process_num=1, output_format="ckpt",
):  # fmt: skip
    """The newer name of `transform_checkpoints`."""
    raise _needs_strategy("convert_checkpoints")


def load_distributed_checkpoint(
    network, checkpoint_filenames=None, predict_strategy=None, train_strategy_filename=None,
    strict_load=False,
    dec_key=None, dec_mode="AES-GCM", format="ckpt", unified_safetensors_dir=None, dst_safetensors_dir=None,
    rank_id=None, output_format="safetensors", name_map=None, max_process_num=64, return_param_dict=False,
):  # fmt: skip
    """Load what several devices saved into a network."""
    raise _needs_strategy("load_distributed_checkpoint")


def load_segmented_checkpoints(
    ckpt_file_dir, net=None, strict_load=False, filter_prefix=None, dec_key=None, dec_mode="AES-GCM",
    specify_prefix=None, choice_func=None,
):  # fmt: skip
    """All Parameters in the checkpoint files of a folder, as `load_checkpoint` gives them.

    Errors: ValueError if there are none, or one name is in two files.
    """
    from pathlib import Path

    from mycelia.io.checkpoint import load_checkpoint
    from mycelia.io.into_net import load_param_into_net

    files = sorted(Path(ckpt_file_dir).glob("*.ckpt"))
    if not files:
        raise errors.value_error("load_segmented_checkpoints", f"no .ckpt file is in {ckpt_file_dir}")
    found: dict = {}
    for file in files:
        part = load_checkpoint(
            str(file), filter_prefix=filter_prefix, dec_key=dec_key, dec_mode=dec_mode,
            specify_prefix=specify_prefix, choice_func=choice_func,
        )  # fmt: skip
        twice = found.keys() & part.keys()
        if twice:
            raise errors.value_error("load_segmented_checkpoints", f"two files hold {sorted(twice)}")
        found |= part
    if net is not None:
        load_param_into_net(net, found, strict_load)
    return found


def unified_safetensors(
    src_dir, src_strategy_file, dst_dir, merge_with_redundancy=True, file_suffix=None, max_process_num=64,
    choice_func=None, split_dst_file=(),
):  # fmt: skip
    """The safetensors files of all devices as one set."""
    raise _needs_strategy("unified_safetensors")


def parameter_broadcast(net, layout, cur_rank=0, initial_rank=0):
    """Send Parameters to the devices that hold the same part: there is one device, which has them."""
    del net, layout, cur_rank, initial_rank  # one process


def restore_group_info_list(group_info_file_name):
    """The devices whose checkpoints are alike, from a file of training on several devices."""
    raise _needs_strategy("restore_group_info_list")


def get_ckpt_path_with_strategy(cur_ckpt_path: str, cur_strategy_path: str) -> str:
    """The file `cur_ckpt_path` if it is there and that of this process (``rank_0`` is in the path).

    Errors: FileNotFoundError if neither it nor the strategy file is there; NotImplementedError for the
    files of other processes.
    """
    if "rank_0" in cur_ckpt_path and os.path.isfile(cur_ckpt_path):
        return cur_ckpt_path
    if not os.path.isfile(cur_strategy_path):
        raise FileNotFoundError(
            errno.ENOENT, "neither the checkpoint nor the strategy file exists", cur_strategy_path
        )
    raise _needs_strategy("get_ckpt_path_with_strategy")


def set_op_strategy_config(mode="SAVE", path=""):
    """Where strategies of ops are saved to or loaded from.

    Errors: ValueError for a mode other than "SAVE" and "LOAD", or a path that is no .json file;
    NotImplementedError.
    """
    if mode not in ("SAVE", "LOAD"):
        raise errors.one_of(mode, ("SAVE", "LOAD"), subject="set_op_strategy_config", what="mode")
    if not str(path).endswith(".json"):
        raise errors.value_error("set_op_strategy_config", f"path must name a .json file, but got {path!r}")
    raise _needs_strategy("set_op_strategy_config")


def sync_pipeline_shared_parameters(net):
    """Make Parameters equal that several stages of a pipeline share: with one stage they are."""
    del net
