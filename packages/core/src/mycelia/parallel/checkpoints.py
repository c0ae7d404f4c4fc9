"""Checkpoints that several ranks wrote, each its part, put together; strategy files that say how they lie."""

from __future__ import annotations

import errno
import glob
import math
import os

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.base.parallel_settings import get_auto_parallel_context
from mycelia.engine.communication.share import GridShare
from mycelia.engine.tensors.tensor import Parameter, Tensor
from mycelia.io.into_net import load_param_into_net
from mycelia.nn.cell import Cell
from mycelia.parallel import strategy_files, transform


def _needs_strategy(subject: str) -> Exception:
    return errors.error(
        errors.NotSupportedError, subject,
        "it works on files that training on several devices writes, which is not there",
        hint="transform_checkpoints and load_distributed_checkpoint put checkpoints of several ranks "
        "together",
    )  # fmt: skip


def merge_sliced_parameter(sliced_parameters, strategy=None):
    """One Parameter from those that hold its parts, in the order of the devices.

    `strategy`: for a parameter name, what `build_searched_strategy` gives, or into how many parts each axis
    was cut; without it they are joined along the first axis.  Errors: TypeError unless a list of Parameters,
    ValueError for parts whose number or names do not fit.
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
        if hasattr(strategy[first.name], "dev_matrix"):
            return _merged(first, parts, strategy[first.name])
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


def _merged(first: Parameter, parts: list, layouts) -> Parameter:
    """The whole Parameter, of the parts of all ranks."""
    share = strategy_files.share_of(first.name, layouts, "merge_sliced_parameter")
    if len(parts) != share.size or len(share.axes) != first.ndim:
        raise errors.value_error(
            "merge_sliced_parameter", f"the strategy of {first.name!r} is of {share.size} ranks and "
            f"{len(share.axes)} "
            f"axes, but {len(parts)} parts of {first.ndim} axes were given",
        )  # fmt: skip
    shape = tuple(n * math.prod(share.matrix[a] for a in axes) for n, axes in zip(first.shape, share.axes))
    whole = GridShare(0, share.matrix, share.axes, shape).join(parts)
    merged = Parameter(_tensor(whole, first.dtype), first.name, first.requires_grad)
    merged.layerwise_parallel = first.layerwise_parallel
    return merged


def _tensor(bits, dtype) -> Tensor:
    from mycelia.engine import _C

    return _C.from_array(np.ascontiguousarray(bits), dtype, False)


def merge_pipeline_strategys(src_strategy_dirs, dst_strategy_file):
    """One strategy file from those of all stages of a pipeline, which lie in a folder; names of Parameters
    get the number of their stage in front.

    Errors: NotADirectoryError; ValueError for files that say nothing, or are of two formats.
    """
    subject = "merge_pipeline_strategys"
    if not os.path.isdir(src_strategy_dirs):
        raise NotADirectoryError(
            errno.ENOTDIR, "src_strategy_dirs is not a directory", str(src_strategy_dirs)
        )
    files = [sorted(glob.glob(os.path.join(src_strategy_dirs, pattern))) for pattern in ("*.ckpt", "*.json")]
    if bool(files[0]) == bool(files[1]):
        what = "files of both formats" if files[0] else "no file"
        raise errors.value_error(
            subject, f"{src_strategy_dirs!r} has {what}: all must be .ckpt, or all .json"
        )
    operators, layouts = {}, {}
    merged: set[int] = set()
    for path in files[0] or files[1]:
        found = strategy_files.message_of(path, subject)
        if not found.parallel_strategy_item or not found.parallel_layout_item:
            raise errors.value_error(subject, f"the strategy file {path!r} says nothing")
        stage = found.parallel_strategy_item[0].parallel_strategys.stage
        if stage in merged:
            continue
        merged.add(stage)
        for item in found.parallel_strategy_item:
            operators[item.node_name] = [list(one.dim) for one in item.parallel_strategys.parallel_strategy]
        for item in found.parallel_layout_item:
            share = strategy_files.share_of(item.param_name, item.parallel_layouts, subject)
            layouts[f"{stage}-{item.param_name}"] = share
    strategy_files.write(dst_strategy_file, 1, operators, layouts)


def build_searched_strategy(strategy_filename):
    """Parameter name -> how it lies, a message of the strategy file; None for None.

    Errors: TypeError unless a text; ValueError for a file that is not there, is empty, or is none.
    """
    if strategy_filename is None:
        return None
    found = strategy_files.message_of(strategy_filename, "build_searched_strategy")
    return {item.param_name: item.parallel_layouts for item in found.parallel_layout_item}


def load_distributed_checkpoint(
    network, checkpoint_filenames=None, predict_strategy=None, train_strategy_filename=None,
    strict_load=False,
    dec_key=None, dec_mode="AES-GCM", format="ckpt", unified_safetensors_dir=None, dst_safetensors_dir=None,
    rank_id=None, output_format="safetensors", name_map=None, max_process_num=64, return_param_dict=False,
):  # fmt: skip
    """Load what several ranks saved, the file of each in the order of the ranks, into a network; True.

    `train_strategy_filename`: the strategy file of the training that wrote them, by default the setting
    `strategy_ckpt_load_file`. A network that is divided gets this rank's parts, so that `predict_strategy`
    says nothing new.  Errors: TypeError, ValueError for files that are missing or do not fit the strategy;
    NotImplementedError for safetensors.
    """
    subject = "load_distributed_checkpoint"
    asked = {
        "unified_safetensors_dir": unified_safetensors_dir, "dst_safetensors_dir": dst_safetensors_dir,
        "rank_id": rank_id, "name_map": name_map, "return_param_dict": return_param_dict or None,
    }  # fmt: skip
    del output_format, max_process_num, predict_strategy
    if format not in ("ckpt", "safetensors"):
        raise errors.one_of(format, ("ckpt", "safetensors"), subject=subject, what="format")
    other = [f"{name}={value!r}" for name, value in asked.items() if value is not None]
    if format != "ckpt" or other:
        raise errors.error(
            errors.NotSupportedError, subject, f"safetensors files are not put together: {other or format}"
        )
    if not isinstance(network, Cell):
        raise errors.type_error(subject, f"network must be a Cell, but got {type(network).__name__}")
    if not isinstance(checkpoint_filenames, list) or not checkpoint_filenames:
        raise errors.value_error(
            subject, f"checkpoint_filenames must be a list of files, but got {checkpoint_filenames!r}"
        )
    path = train_strategy_filename or get_auto_parallel_context("strategy_ckpt_load_file")
    if not path:
        raise errors.value_error(
            subject, "no strategy says how the parts lie",
            hint="give the strategy file of the training as train_strategy_filename",
        )  # fmt: skip
    layouts = transform._layouts(path, subject)
    size = transform.ranks_of(layouts)
    if len(checkpoint_filenames) != size:
        raise errors.value_error(
            subject, f"the strategy {path!r} is of {size} ranks, but {len(checkpoint_filenames)} "
            f"checkpoint_filenames "
            "were given",
        )  # fmt: skip
    reading = dict(dec_key=dec_key, dec_mode=dec_mode)
    source = transform.Source(dict(enumerate(checkpoint_filenames)), layouts, subject, **reading)
    wanted = {parameter.name for parameter in network.get_parameters()}
    load_param_into_net(
        network, {name: source.value(name, 0, None) for name in source.names if name in wanted}, strict_load
    )
    return True


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
    """The ranks whose checkpoints are alike, from a file of MindSpore's `group_ckpt_save_file`.

    Errors: TypeError unless a text; ValueError for a file that is not there, is empty, or is none.
    """
    from mycelia.parallel import strategy_pb2

    subject = "restore_group_info_list"
    if not isinstance(group_info_file_name, str):
        raise errors.type_error(
            subject, f"group_info_file_name must be a str, but got {type(group_info_file_name).__name__}"
        )
    if not os.path.isfile(group_info_file_name) or not os.path.getsize(group_info_file_name):
        raise errors.value_error(subject, f"the file {group_info_file_name!r} is not there, or is empty")
    with open(group_info_file_name, "rb") as file:
        content = file.read()
    try:
        return list(strategy_pb2.ParallelGroupMap.FromString(content).ckpt_restore_rank_list.dim)
    except Exception as cause:  # of protobuf
        raise errors.value_error(subject, f"{group_info_file_name!r} has no groups: {cause}") from None


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
