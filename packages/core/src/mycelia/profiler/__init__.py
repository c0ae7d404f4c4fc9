"""Where the time of a program goes: per op calls, time, FLOP/s, bytes/s, percent of what the machine can do.

    from mycelia.profiler import Profiler

    with Profiler() as profiler:
        train()
    print(profiler.table())

Eager ops and the instructions of compiled programs are timed alike, on the thread that started the profiler.
`mycelia profile script.py` does the same for a script.
"""

from mycelia.profiler.peaks import Peaks, peaks
from mycelia.profiler.profiler import Profiler, analyse, tensorboard_trace_handler
from mycelia.profiler.report import Row

# Looked up at first use: most programs that measure need none of them.
_LATE = {
    **dict.fromkeys(
        """
        profile schedule mstx _ExperimentalConfig ProfilerLevel ProfilerActivity ProfilerAction AicoreMetrics
        ExportType EnvProfiler HostSystem
        """.split(),
        "mycelia.profiler.steps",
    ),
    "DynamicProfilerMonitor": "mycelia.train.callbacks.profiling",  # a callback of training
}

__all__ = ["Peaks", "Profiler", "Row", "analyse", "peaks", "tensorboard_trace_handler", *_LATE]


def __getattr__(name: str):
    if name in _LATE:
        from importlib import import_module

        return getattr(import_module(_LATE[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
