"""How a model is to run: threads, cores, precision, workers."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator, Sequence

from mycelia_lite import runtime


def _number(name: str, value: int, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an int, but got {type(value).__name__}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, but got {value}")
    return value


class _Cpu:
    """Settings of the processor's kernels. Each setter raises TypeError or ValueError for what cannot be."""

    def __init__(self) -> None:
        self._threads = self._inter_op = 1
        self._mode = 0
        self._cores: list[int] = []
        self._shared = False
        self._precision = "enforce_fp32"

    @property
    def thread_num(self) -> int:
        """Threads of a run, the caller's included; 1 or more."""
        return self._threads

    @thread_num.setter
    def thread_num(self, count: int) -> None:
        self._threads = _number("thread_num", count, 1)

    @property
    def inter_op_parallel_num(self) -> int:
        """Independent nodes that may run at the same time; they share the threads."""
        return self._inter_op

    @inter_op_parallel_num.setter
    def inter_op_parallel_num(self, count: int) -> None:
        self._inter_op = _number("inter_op_parallel_num", count, 1)

    @property
    def thread_affinity_mode(self) -> int:
        """Which cores threads are bound to: 0 none, 1 fast ones first, 2 slow ones first."""
        return self._mode

    @thread_affinity_mode.setter
    def thread_affinity_mode(self, mode: int) -> None:
        if _number("thread_affinity_mode", mode, 0) > 2:
            raise ValueError(f"thread_affinity_mode must be 0, 1 or 2, but got {mode}")
        self._mode = mode

    @property
    def thread_affinity_core_list(self) -> list[int]:
        """Cores that threads are bound to, one after the other; wins over the mode."""
        return list(self._cores)

    @thread_affinity_core_list.setter
    def thread_affinity_core_list(self, cores: Sequence[int]) -> None:
        self._cores = [_number("thread_affinity_core_list", core, 0) for core in cores]

    @property
    def shared_thread_pool(self) -> bool:
        """Whether the threads are those of all models that share them; else the model has its own."""
        return self._shared

    @shared_thread_pool.setter
    def shared_thread_pool(self, shared: bool) -> None:
        if not isinstance(shared, bool):
            raise TypeError(f"shared_thread_pool must be a bool, but got {type(shared).__name__}")
        self._shared = shared

    @property
    def precision_mode(self) -> str:
        """ "enforce_fp32", or "preferred_fp16": 16-bit arithmetic where processor and kernels have it;
        `Model.get_model_info("precision")` says what came of it.
        """
        return self._precision

    @precision_mode.setter
    def precision_mode(self, mode: str) -> None:
        if mode not in ("enforce_fp32", "preferred_fp16"):
            raise ValueError(f"precision_mode must be 'enforce_fp32' or 'preferred_fp16', but got {mode!r}")
        self._precision = mode


class _Parallel:
    """Settings of a `ModelParallelRunner`."""

    def __init__(self) -> None:
        self._workers = 1
        self._info: dict[str, dict[str, str]] = {}

    @property
    def workers_num(self) -> int:
        """Workers, 1 or more."""
        return self._workers

    @workers_num.setter
    def workers_num(self, count: int) -> None:
        self._workers = _number("workers_num", count, 1)

    @property
    def config_info(self) -> dict[str, dict[str, str]]:
        """The workers' configuration by section and key."""
        return self._info

    @config_info.setter
    def config_info(self, info: dict[str, dict[str, str]]) -> None:
        if not isinstance(info, dict) or not all(isinstance(keys, dict) for keys in info.values()):
            raise TypeError("config_info must be a dict of dicts, by section and key")
        self._info = info

    def sections(self) -> dict[str, dict[str, str]]:
        """What `config_info` says, as texts."""
        return {
            str(section): {str(key): str(value) for key, value in keys.items()}
            for section, keys in self._info.items()
        }


class Context:
    """How a model is to run; `target` may name "cpu" alone."""

    def __init__(self) -> None:
        self.cpu = _Cpu()
        self.parallel = _Parallel()
        self._target = ["cpu"]

    @property
    def target(self) -> list[str]:
        """Devices in order of preference.  Errors: ValueError for another one than "cpu"."""
        return self._target

    @target.setter
    def target(self, names: list[str]) -> None:
        if list(names) != ["cpu"]:
            raise ValueError(f"target must be ['cpu'], the only device so far, but got {names!r}")
        self._target = list(names)

    @contextlib.contextmanager
    def native(self) -> Iterator[runtime.Handle]:
        """The library's context with these settings."""
        library, cpu = runtime.library(), self.cpu
        handle = runtime.Handle(library.MSContextCreate())
        try:
            cores = (ctypes.c_int32 * len(cpu._cores))(*cpu._cores)
            runtime.check(library.MSContextSetThreadNum(handle, cpu.thread_num))
            runtime.check(library.MSContextSetInterOpParallelNum(handle, cpu.inter_op_parallel_num))
            runtime.check(library.MSContextSetThreadAffinityMode(handle, cpu.thread_affinity_mode))
            runtime.check(library.MSContextSetThreadAffinityCoreList(handle, cores, len(cores)))
            runtime.check(library.MSContextSetSharedThreadPool(handle, cpu.shared_thread_pool))
            device = runtime.Handle(library.MSDeviceInfoCreate(0))
            runtime.check(library.MSDeviceInfoSetEnableFP16(device, cpu.precision_mode == "preferred_fp16"))
            runtime.check(library.MSContextAddDeviceInfo(handle, device))
            yield handle
        finally:
            library.MSContextDestroy(ctypes.byref(handle))
