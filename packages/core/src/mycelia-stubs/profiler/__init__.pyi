# Written by tools/gen_stubs.py.
from collections.abc import Callable as Callable
from mycelia.profiler.peaks import Peaks as Peaks, peaks as peaks
from mycelia.profiler.profiler import Profiler as Profiler
from mycelia.profiler.report import Row as Row
from mycelia.profiler.steps import (
    AicoreMetrics as AicoreMetrics, EnvProfiler as EnvProfiler, ExportType as ExportType,
    HostSystem as HostSystem, ProfilerAction as ProfilerAction, ProfilerActivity as ProfilerActivity,
    ProfilerLevel as ProfilerLevel, _ExperimentalConfig as _ExperimentalConfig, mstx as mstx,
    profile as profile, schedule as schedule,
)
from mycelia.train.callbacks.profiling import DynamicProfilerMonitor as DynamicProfilerMonitor
from typing import Any as Any

__all__ = [
    "Peaks", "Profiler", "Row", "analyse", "peaks", "tensorboard_trace_handler", "profile", "schedule",
    "mstx", "_ExperimentalConfig", "ProfilerLevel", "ProfilerActivity", "ProfilerAction", "AicoreMetrics",
    "ExportType", "EnvProfiler", "HostSystem", "DynamicProfilerMonitor",
]


def analyse(profiler_path: str, max_process_number: int = 1, pretty: bool = False, step_list=None, data_simplification=True) -> None:
    """Reports are written while measuring: with `pretty`, print those that lie below `profiler_path`."""

def tensorboard_trace_handler(dir_name: str | None = None, worker_name: str | None = None, analyse_flag: bool = True, async_mode: bool = False) -> Any:
    """For `on_trace_ready`: writes trace.json into `dir_name`, or into the profiler's output path."""
