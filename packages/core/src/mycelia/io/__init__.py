"""Files: checkpoints, safetensors, MindIR. The public functions are imported when they are first used."""

from __future__ import annotations

_NAMES = {
    "checkpoint": """
        save_checkpoint load_checkpoint load_checkpoint_async load_param_into_net async_ckpt_thread_status
    """,
    "convert": "ckpt_to_safetensors safetensors_to_ckpt",
    "printed": "parse_print",
    "obfuscation": "load_obf_params_into_net obfuscate_ckpt",
    "mindir": "export load load_mindir save_mindir",
    "other_devices": "export_split_mindir mindio_preload set_mindio_server_info",
}
_TABLE = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [*_TABLE]


def __getattr__(name: str):
    if name not in _TABLE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_TABLE[name]}"), name)
