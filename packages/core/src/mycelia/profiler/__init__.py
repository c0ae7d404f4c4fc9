"""Where the time of a program goes: per op calls, time, FLOP/s, bytes/s, percent of what the machine can do.

    from mycelia.profiler import Profiler

    with Profiler() as profiler:
        train()
    print(profiler.table())

Eager ops and the instructions of compiled programs are timed alike, on the thread that started the profiler.
`mycelia profile script.py` does the same for a script.
"""

from mycelia.profiler.peaks import Peaks, peaks
from mycelia.profiler.profiler import Profiler, profile, tensorboard_trace_handler
from mycelia.profiler.report import Row

__all__ = ["Peaks", "Profiler", "Row", "peaks", "profile", "tensorboard_trace_handler"]
