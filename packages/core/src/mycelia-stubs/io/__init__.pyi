# Written by tools/gen_stubs.py.
from . import mindir as mindir
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
from typing import Any as Any

__all__ = [
    "save_checkpoint", "load_checkpoint", "load_checkpoint_async", "load_param_into_net",
    "async_ckpt_thread_status", "ckpt_to_safetensors", "safetensors_to_ckpt", "parse_print",
    "load_obf_params_into_net", "obfuscate_ckpt", "export", "load", "load_mindir", "save_mindir",
    "export_split_mindir", "mindio_preload", "set_mindio_server_info",
]


def save_checkpoint(save_obj, ckpt_file_name, integrated_save=True, async_save=False, append_dict=None, enc_key=None, enc_mode='AES-GCM', choice_func=None, crc_check=False, format='ckpt', **kwargs) -> None:
    """Saves the parameters of a Cell, a list or a dict to a file."""

def load_checkpoint(ckpt_file_name, net=None, strict_load=False, filter_prefix=None, dec_key=None, dec_mode='AES-GCM', specify_prefix=None, choice_func=None, crc_check=False, remove_redundancy=False, format='ckpt') -> Any:
    """The content of a checkpoint: a dict of name to Parameter, and to str for texts that were appended."""

def load_param_into_net(net, parameter_dict, strict_load=False, remove_redundancy=False) -> Any:
    """Gives the parameters of a Cell the values of the same names: (names of the net, of the dict) that found no partner."""

def ckpt_to_safetensors(file_path, save_path=None, name_map=None, file_name_regex=None, processes_num=1) -> None:
    """Writes .ckpt files as .safetensors files of the same names."""

def safetensors_to_ckpt(file_path, save_path=None, name_map=None, file_name_regex=None, processes_num=1) -> None:
    """Writes .safetensors files as .ckpt files of the same names; the arguments are those of `ckpt_to_safetensors`."""

def export(net, *inputs, file_name, file_format, **kwargs) -> None:
    """Writes a Cell or a function, as it computes for `inputs`, to a file; folders are made as needed."""

def load(file_name, **kwargs) -> Any:
    """The graph of a MindIR file, for `nn.GraphCell(graph)`; see `run.MindIRGraph`."""

def load_mindir(file_name) -> Any:
    """The content of a MindIR file as its protobuf message, a ModelProto. Errors: as `load`."""

def save_mindir(model, file_name) -> None:
    """Writes a ModelProto to a file; the suffix .mindir is added."""
