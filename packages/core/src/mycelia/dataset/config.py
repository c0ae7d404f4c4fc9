"""Settings of the dataset pipeline.

Settings of things that this pipeline has not (`MISSING`) are checked, kept and given back, so that scripts
that set them run, and a warning says what does not happen.
"""

from __future__ import annotations

import enum
import json
import os
from pathlib import Path

import numpy as np

from mycelia.engine.base import errors, ignored
from mycelia.io.reading import of_file

INT32_MAX = 2**31 - 1
UINT32_MAX = 2**32 - 1


class ErrorSamplesMode(enum.IntEnum):
    """What `map` does with a row that fails: raise, put a good row in its place, or leave it out."""

    RETURN = 0
    REPLACE = 1
    SKIP = 2


_DEFAULTS: dict = {
    "seed": None,
    "num_parallel_workers": min(8, os.cpu_count() or 1),
    "prefetch_size": 16,
    "auto_num_workers": False,
    "auto_offload": False,
    "autotune_interval": 0,
    "callback_timeout": 60,
    "debug_mode": False,
    "dynamic_shape": False,
    "enable_autotune": False,
    "enable_fusion": True,
    "enable_shared_mem": True,
    "enable_watchdog": True,
    "error_samples_mode": ErrorSamplesMode.RETURN,
    "fast_recovery": True,
    "iterator_mode": {"do_copy": False, "parallel_convert": False},
    "monitor_sampling_interval": 1000,
    "multiprocessing_start_method": "fork",
    "multiprocessing_timeout_interval": 300,
    "numa_enable": False,
    "video_backend": "CPU",
    "sending_batches": 0,
}
#: Settings that nothing follows -> what does not happen.
MISSING = {
    "auto_num_workers": "workers are as many as num_parallel_workers says; set_enable_autotune finds better",
    "auto_offload": "maps run on the host",
    "dynamic_shape": "rows may differ in shape whatever it says",
    "monitor_sampling_interval": "pipelines are measured row by row, see `Dataset.profile`",
    "numa_enable": "workers are not bound to NUMA nodes",
    "sending_batches": "no device has a queue of batches",
    "video_backend": "no device decodes videos",
}
_state: dict = dict(_DEFAULTS)
_debug_hooks: list = []
_autotune_path: str | None = None


def _keep(name: str, value) -> None:
    """Remember a setting, and warn once if nothing follows it; its default asks for nothing."""
    _state[name] = value
    if name in MISSING and value != _DEFAULTS[name]:
        ignored.tell("dataset.config", name, value, MISSING[name])


def _int(name: str, value, least: int, most: int, argument: str) -> int:
    owner = f"dataset.config.set_{name}"
    if isinstance(value, bool) or not isinstance(value, int):
        raise errors.type_error(owner, f"{argument} isn't of type int. It is {value!r}")
    if not least <= value <= most:
        raise errors.value_error(owner, f"{argument} must be in the range [{least}, {most}], but got {value}")
    return value


def _of_type(name: str, value, kind: type, argument: str):
    if not isinstance(value, kind):
        raise errors.type_error(
            f"dataset.config.set_{name}",
            f"{argument} isn't of type {'boolean' if kind is bool else kind.__name__}. It is {value!r}",
        )
    return value


def _choice(name: str, value, choices: list[str], argument: str) -> str:
    if _of_type(name, value, str, argument) not in choices:
        raise errors.one_of(value, choices, subject=f"dataset.config.set_{name}", what=argument)
    return value


def set_seed(seed: int) -> None:
    """Seed of shuffles and random transforms, of NumPy and of `random` too. Range [0, 2**32)."""
    import random

    _keep("seed", _int("seed", seed, 0, UINT32_MAX, "seed"))
    random.seed(seed)
    np.random.seed(seed)


def get_seed() -> int:
    """The seed given to `set_seed`, or to `mycelia.set_seed`; 5489 when none was."""
    seed = given_seed()
    return 5489 if seed is None else seed


def given_seed() -> int | None:
    """The seed that was set, or None: then orders differ from run to run."""
    if _state["seed"] is not None:
        return _state["seed"]
    from mycelia.engine.base.config import get_seed as global_seed

    return global_seed()


def set_num_parallel_workers(num: int) -> None:
    """Workers per operation, at most the number of cores. RuntimeError for more."""
    _int("num_parallel_workers", num, 1, INT32_MAX, "num")
    if num > (os.cpu_count() or 1):
        raise errors.runtime_error(
            "dataset.config.set_num_parallel_workers",
            f"num must be between 1 and {os.cpu_count()}, the number of cores, but got {num}",
        )
    _state["num_parallel_workers"] = num


def get_num_parallel_workers() -> int:
    """Workers per operation."""
    return _state["num_parallel_workers"]


def set_prefetch_size(size: int) -> None:
    """Rows an operation may run ahead."""
    _keep("prefetch_size", _int("prefetch_size", size, 1, INT32_MAX, "size"))


def get_prefetch_size() -> int:
    """Rows an operation may run ahead."""
    return _state["prefetch_size"]


def set_auto_num_workers(enable: bool) -> None:
    """Whether the number of workers is chosen by the pipeline."""
    _keep("auto_num_workers", _of_type("auto_num_workers", enable, bool, "enable"))


def get_auto_num_workers() -> bool:
    """Whether the number of workers is chosen by the pipeline."""
    return _state["auto_num_workers"]


def set_auto_offload(offload: bool) -> None:
    """Whether maps may run on the device; on CPU they run where they are either way."""
    _keep("auto_offload", _of_type("auto_offload", offload, bool, "offload"))


def get_auto_offload() -> bool:
    """Whether maps may run on the device."""
    return _state["auto_offload"]


def set_enable_autotune(enable: bool, filepath_prefix: str | None = None) -> None:
    """Whether the pipeline is tuned while it runs; `filepath_prefix`: where the tuned pipeline is saved as
    ``<prefix>_<rank>.json``, readable by `deserialize`. RuntimeError for a directory or an empty path.
    """
    global _autotune_path
    _of_type("enable_autotune", enable, bool, "enable")
    if enable and filepath_prefix is not None:
        _of_type("enable_autotune", filepath_prefix, str, "filepath_prefix")
        if not filepath_prefix or Path(filepath_prefix).is_dir() or not Path(filepath_prefix).parent.is_dir():
            raise errors.runtime_error(
                "dataset.config.set_enable_autotune",
                f"filepath_prefix must be a file in an existing directory, but got {filepath_prefix!r}",
            )
    _state["enable_autotune"] = enable
    _autotune_path = filepath_prefix if enable else None


def get_enable_autotune() -> bool:
    """Whether the pipeline is tuned while it runs."""
    return _state["enable_autotune"]


def autotune_path() -> str | None:
    """Prefix of the file that `set_enable_autotune` asked for."""
    return _autotune_path


def set_autotune_interval(interval: int) -> None:
    """Steps between two decisions of the tuning; 0: at the end of each epoch."""
    _keep("autotune_interval", _int("autotune_interval", interval, 0, INT32_MAX, "interval"))


def get_autotune_interval() -> int:
    """Steps between two decisions of the tuning."""
    return _state["autotune_interval"]


def set_callback_timeout(timeout: int) -> None:
    """Seconds that a WaitedDSCallback waits for the training."""
    _keep("callback_timeout", _int("callback_timeout", timeout, 1, INT32_MAX, "timeout"))


def get_callback_timeout() -> int:
    """Seconds that a WaitedDSCallback waits for the training."""
    return _state["callback_timeout"]


def set_debug_mode(debug_mode_flag: bool, debug_hook_list: list | None = None) -> None:
    """Run in one thread with seeded orders; the hooks of the list see what every operation of `map` gives."""
    from mycelia.dataset.debug import DebugHook

    _of_type("debug_mode", debug_mode_flag, bool, "debug_mode_flag")
    hooks = [] if debug_hook_list is None else debug_hook_list
    _of_type("debug_mode", hooks, list, "debug_hook_list")
    for hook in hooks:
        _of_type("debug_mode", hook, DebugHook, "every element of debug_hook_list")
    if debug_mode_flag and given_seed() is None:
        set_seed(1)
    _state["debug_mode"] = debug_mode_flag
    _debug_hooks[:] = hooks if debug_mode_flag else []


def get_debug_mode() -> bool:
    """Whether debug mode is on."""
    return _state["debug_mode"]


def debug_hooks() -> list:
    """Hooks given to `set_debug_mode`."""
    return list(_debug_hooks)


def set_dynamic_shape(is_dynamic: bool) -> None:
    """Whether rows of the pipeline may have different shapes."""
    _keep("dynamic_shape", _of_type("dynamic_shape", is_dynamic, bool, "is_dynamic"))


def get_dynamic_shape() -> bool:
    """Whether rows of the pipeline may have different shapes."""
    return _state["dynamic_shape"]


def set_enable_shared_mem(enable: bool) -> None:
    """Whether worker processes pass rows through shared memory."""
    _keep("enable_shared_mem", _of_type("enable_shared_mem", enable, bool, "enable"))


def get_enable_shared_mem() -> bool:
    """Whether worker processes pass rows through shared memory."""
    return _state["enable_shared_mem"]


def set_enable_fusion(enable: bool) -> None:
    """Whether a map runs native transforms that follow one another as one; the rows are the same."""
    _keep("enable_fusion", _of_type("enable_fusion", enable, bool, "enable"))


def get_enable_fusion() -> bool:
    """Whether a map runs native transforms that follow one another as one."""
    return _state["enable_fusion"]


def set_enable_watchdog(enable: bool) -> None:
    """Whether a thread looks after worker processes."""
    _keep("enable_watchdog", _of_type("enable_watchdog", enable, bool, "enable"))


def get_enable_watchdog() -> bool:
    """Whether a thread looks after worker processes."""
    return _state["enable_watchdog"]


def set_error_samples_mode(error_samples_mode: ErrorSamplesMode) -> None:
    """What `map` does with rows that fail."""
    _of_type("error_samples_mode", error_samples_mode, ErrorSamplesMode, "error_samples_mode")
    _state["error_samples_mode"] = error_samples_mode


def get_error_samples_mode() -> ErrorSamplesMode:
    """What `map` does with rows that fail."""
    return _state["error_samples_mode"]


def set_fast_recovery(fast_recovery: bool) -> None:
    """Whether a resumed pipeline may skip rows without computing them (orders stay the same either way)."""
    _keep("fast_recovery", _of_type("fast_recovery", fast_recovery, bool, "fast_recovery"))


def get_fast_recovery() -> bool:
    """Whether a resumed pipeline may skip rows without computing them."""
    return _state["fast_recovery"]


def set_iterator_mode(do_copy: bool = False, parallel_convert: bool = False) -> None:
    """Whether iterators make Tensors with memory of their own.  TypeError for other types than bool."""
    _of_type("iterator_mode", do_copy, bool, "do_copy")
    _of_type("iterator_mode", parallel_convert, bool, "parallel_convert")
    _state["iterator_mode"] = {"do_copy": do_copy, "parallel_convert": parallel_convert}
    if parallel_convert:
        ignored.tell(
            "dataset.config", "parallel_convert", True, "the thread that reads a row makes its Tensors"
        )


def get_iterator_mode() -> dict[str, bool]:
    """How iterators make Tensors of rows."""
    return dict(_state["iterator_mode"])


def set_monitor_sampling_interval(interval: int) -> None:
    """Milliseconds between two samples of the monitor."""
    _keep("monitor_sampling_interval", _int("monitor_sampling_interval", interval, 1, INT32_MAX, "interval"))


def get_monitor_sampling_interval() -> int:
    """Milliseconds between two samples of the monitor."""
    return _state["monitor_sampling_interval"]


def set_multiprocessing_start_method(start_method: str = "fork") -> None:
    """How worker processes are started: 'fork' or 'spawn'."""
    _keep(
        "multiprocessing_start_method",
        _choice("multiprocessing_start_method", start_method, ["fork", "spawn"], "start_method"),
    )


def get_multiprocessing_start_method() -> str:
    """How worker processes are started."""
    return _state["multiprocessing_start_method"]


def set_multiprocessing_timeout_interval(interval: int) -> None:
    """Seconds after which a worker process that gives nothing is reported."""
    _keep(
        "multiprocessing_timeout_interval",
        _int("multiprocessing_timeout_interval", interval, 1, INT32_MAX - 1, "interval"),
    )


def get_multiprocessing_timeout_interval() -> int:
    """Seconds after which a worker process that gives nothing is reported."""
    return _state["multiprocessing_timeout_interval"]


def set_numa_enable(numa_enable: bool) -> None:
    """Whether workers are bound to NUMA nodes."""
    _keep("numa_enable", _of_type("numa_enable", numa_enable, bool, "numa_enable"))


def get_numa_enable() -> bool:
    """Whether workers are bound to NUMA nodes."""
    return _state["numa_enable"]


def set_sending_batches(batch_num: int) -> None:
    """Batches sent ahead to a device with a data queue; kept, CPU has none."""
    if isinstance(batch_num, bool):
        raise errors.type_error("dataset.config.set_sending_batches", "batch_num must be of type int")
    _keep("sending_batches", _of_type("sending_batches", batch_num, int, "batch_num"))


def set_video_backend(backend: str) -> None:
    """What decodes videos: 'CPU' or 'Ascend'."""
    _keep("video_backend", _choice("video_backend", backend, ["CPU", "Ascend"], "backend"))


def get_video_backend() -> str:
    """What decodes videos."""
    return _state["video_backend"]


def load(file: str) -> None:
    """Take settings from a JSON file: ``numParallelWorkers``, ``prefetchSize``, ``seed``,
    ``monitorSamplingInterval`` and ``callback_timeout``. RuntimeError for a file that is missing or no JSON.
    """
    owner = "dataset.config.load"
    path = Path(_of_type("load", file, str, "file"))
    try:
        with of_file(path, owner):
            table = json.loads(path.read_text(encoding="utf-8"))
    except OSError as e:
        raise errors.runtime_error(owner, f"{path.name} cannot be read as JSON: {e}") from None
    if not isinstance(table, dict):
        raise errors.runtime_error(owner, f"{path.name} must hold a JSON object")
    names = {
        "numParallelWorkers": set_num_parallel_workers,
        "prefetchSize": set_prefetch_size,
        "seed": set_seed,
        "monitorSamplingInterval": set_monitor_sampling_interval,
        "callback_timeout": set_callback_timeout,
    }
    with of_file(path, owner):
        for name, value in table.items():
            if name in names:
                names[name](value)
            else:
                ignored.tell(owner, name, value, "there is no such setting")


def generator(epoch: int, salt: int) -> np.random.Generator:
    """Random numbers of one operation in one epoch: the same for the same seed."""
    seed = given_seed()
    return np.random.default_rng(None if seed is None else (seed, epoch, salt))


def stream_seed() -> int:
    """The seed of a run: the one that was set, or an arbitrary one."""
    seed = given_seed()
    return int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed


def default(name: str):
    """The value of a setting that nobody has set."""
    return _DEFAULTS[name]
