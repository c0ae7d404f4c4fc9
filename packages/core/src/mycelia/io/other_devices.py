"""Parts of files that belong to several devices or to a server beside them: there is neither."""

from __future__ import annotations

from mycelia.engine.base import errors


def export_split_mindir(file_name, device_num=8, rank_id=0, dynamic=True, sapp=True):
    """A network of a file, split for several devices. Errors: NotSupportedError, Ascend would have it."""
    raise errors.error(
        errors.NotSupportedError,
        "export_split_mindir",
        "one process has one device; splitting a network over several needs an Ascend backend",
    )


def mindio_preload(ckpt_file_name: str) -> bool:
    """Whether a MindIO server has taken a checkpoint into its memory: False, there is none."""
    if not isinstance(ckpt_file_name, str):
        raise errors.type_error(
            "mindio_preload", f"ckpt_file_name must be a str, but got {type(ckpt_file_name).__name__}"
        )
    return False


def set_mindio_server_info(data_block_pool_capacity_in_gb=100) -> None:
    """Sizes for a MindIO server, of which there is none. Errors: ValueError unless positive."""
    if data_block_pool_capacity_in_gb <= 0:
        raise errors.value_error(
            "set_mindio_server_info", f"the size must be positive, but is {data_block_pool_capacity_in_gb}"
        )
