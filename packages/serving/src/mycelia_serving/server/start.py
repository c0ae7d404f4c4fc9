"""`server.start_servables` and the ports."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass

from mycelia_serving.cluster import current
from mycelia_serving.cluster.child import Settings
from mycelia_serving.cluster.node import Plan
from mycelia_serving.servable import directory
from mycelia_serving.servable.arguments import check_bytes, check_choice, check_int, check_ints, check_str

MOST_WORKERS = 64
_DEVICE_TYPES = {"none": None, "cpu": "CPU", "gpu": "GPU", "ascend": "Ascend"}


def check_device_type(device_type: str | None) -> str | None:
    """A device type as the engine knows it. Errors: RuntimeError."""
    if device_type is None:
        return None
    kind = check_str("device_type", device_type).lower()
    if kind not in _DEVICE_TYPES:
        raise RuntimeError(
            f"Parameter 'device_type' should be 'Ascend', 'GPU', 'CPU' or None, but got '{device_type}'"
        )
    return _DEVICE_TYPES[kind]


class ServableStartConfig:
    """How one servable is started.

    servable_directory, servable_name: the folder DIRECTORY/NAME holds `servable_config.py` and the versions.
    device_ids: devices, one worker for each. version_number: 0 for the newest. device_type: "Ascend", "GPU",
    "CPU" or None. num_parallel_workers: workers in all, 0 to 64; those beyond the devices run Python
    functions only. dec_key: 16, 24 or 32 bytes; dec_mode: "AES-GCM" or "AES-CBC".
    Errors: RuntimeError that names the parameter.
    """

    def __init__(
        self,
        servable_directory: str,
        servable_name: str,
        device_ids: int | list[int] | tuple[int, ...] | None = None,
        version_number: int = 0,
        device_type: str | None = None,
        num_parallel_workers: int = 0,
        dec_key: bytes | None = None,
        dec_mode: str = "AES-GCM",
    ) -> None:
        self.servable_directory = os.path.abspath(check_str("servable_directory", servable_directory))
        self.servable_name = check_str("servable_name", servable_name)
        self.device_ids = () if device_ids is None else check_ints("device_ids", device_ids, 0)
        self.version_number = check_int("version_number", version_number, 0)
        self.device_type = check_device_type(device_type)
        self.num_parallel_workers = check_int("num_parallel_workers", num_parallel_workers, 0, MOST_WORKERS)
        if not self.device_ids and not self.num_parallel_workers:
            self.num_parallel_workers = 1
        if dec_key is not None and len(check_bytes("dec_key", dec_key)) not in (16, 24, 32):
            raise RuntimeError(f"Parameter 'dec_key' should have 16, 24 or 32 bytes, but got {len(dec_key)}")
        self.dec_key = dec_key
        self.dec_mode = check_choice("dec_mode", dec_mode, ("AES-GCM", "AES-CBC"))


@dataclass
class _Merged:
    config: ServableStartConfig
    version: int
    devices: list[int]
    workers: int


def merge(configs: tuple[ServableStartConfig, ...]) -> list[_Merged]:
    """One entry per version: devices of the same version come together.

    Errors: RuntimeError for one name in two directories, or two keys of one servable.
    """
    found: dict[tuple[str, int], _Merged] = {}
    first: dict[str, ServableStartConfig] = {}
    for config in configs:
        name = config.servable_name
        folder = directory.find(config.servable_directory, name)
        other = first.setdefault(name, config)
        if other.servable_directory != config.servable_directory:
            raise RuntimeError(
                f"The servable directory of servable '{name}' differs between configs: "
                f"{other.servable_directory} and {config.servable_directory}"
            )
        if (other.dec_key, other.dec_mode) != (config.dec_key, config.dec_mode):
            raise RuntimeError(f"The 'dec_key' or 'dec_mode' of servable '{name}' differs between configs")
        if other.device_type != config.device_type:
            raise RuntimeError(f"The 'device_type' of servable '{name}' differs between configs")
        version = config.version_number or max(directory.versions(folder), default=0)
        entry = found.setdefault((name, version), _Merged(config, version, [], 0))
        entry.devices += [d for d in config.device_ids if d not in entry.devices]
        entry.workers = max(entry.workers, config.num_parallel_workers)
    return list(found.values())


def stop_at_failure(function):
    """A start that fails leaves nothing running."""

    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except BaseException:
            current.stop(0.0)
            raise

    return wrapped


@stop_at_failure
def start_servables(servable_configs, enable_lite: bool = False) -> None:
    """Start the workers of servables, each in a process of its own, and wait until all are ready.

    servable_configs: a ServableStartConfig, or a list or tuple of them. enable_lite: of MindSpore, no
    difference here. Errors: RuntimeError with the cause; nothing is left running then.
    """
    single = isinstance(servable_configs, ServableStartConfig)
    configs = (servable_configs,) if single else servable_configs
    if not isinstance(configs, tuple | list):
        raise RuntimeError(
            "Parameter 'servable_configs' should be ServableStartConfig, or list or tuple of it, "
            f"but got {type(servable_configs)}"
        )
    for config in configs:
        if not isinstance(config, ServableStartConfig):
            raise RuntimeError(
                f"Each item of 'servable_configs' should be ServableStartConfig, but got {type(config)}"
            )
    for entry in merge(tuple(configs)):
        config = entry.config
        # Without devices each worker has the models, on the CPU: none has to wait for another.
        devices = entry.devices or [None] * max(entry.workers, 1)
        extra = max(entry.workers - len(devices), 0)
        settings = Settings(
            config.servable_directory,
            config.servable_name,
            entry.version,
            config.device_type,
            config.dec_key,
            config.dec_mode,
        )
        current.node().serve(Plan(settings, list(devices), extra))


@stop_at_failure
def start_grpc_server(address: str = "0.0.0.0:5500", max_msg_mb_size: int = 100, ssl_config=None) -> None:
    """Open the gRPC port at "ip:port" or "unix:path". Errors: RuntimeError."""
    current.node().start_grpc(address, max_msg_mb_size, ssl_config)


@stop_at_failure
def start_restful_server(address: str = "0.0.0.0:5900", max_msg_mb_size: int = 100, ssl_config=None) -> None:
    """Open the REST port at "ip:port". Errors: RuntimeError."""
    current.node().start_rest(address, max_msg_mb_size, ssl_config)


def stop() -> None:
    """Stop the server of this process when it has answered what it has."""
    current.stop()
