"""The debugger of a running training: this process lets itself be stopped, looked at and steered by the
service whose address the settings `debugger_host` and `debugger_port` have.
"""

from __future__ import annotations

import atexit
import multiprocessing
from contextlib import ExitStack
from typing import Any

from mycelia.debug import breaking
from mycelia.debug.online.channel import Channel
from mycelia.debug.online.observer import Debugged, Terminated
from mycelia.engine import observing
from mycelia.engine.base import config

__all__ = ["Debugged", "Terminated", "start"]


class _Started:
    """The debugger of this process, and the eager calls that it follows."""

    debugged: Debugged | None = None
    calls: Any = None


def start(compiling: bool) -> None:
    """Connect at the first compiled function or eager operator; processes that this one starts do not.

    Errors: ImportError without grpcio; Terminated if there is no service and `debugger_lost` is "stop".
    """
    if multiprocessing.parent_process() is not None:
        return
    if not compiling and config.get("mode") == config.GRAPH_MODE:
        return
    if _Started.debugged is None:
        channel = Channel(
            config.get("debugger_host"), config.get("debugger_port"), config.get("debugger_timeout")
        )
        _Started.debugged = Debugged(channel)
        if not _Started.debugged.connect():
            return
        observing.watch(_Started.debugged)
        breaking.takers.append(_Started.debugged.break_here)
        atexit.register(_Started.debugged.close)
    if not compiling and _Started.calls is None and not _Started.debugged.channel.lost:
        stack = ExitStack()
        _Started.calls = stack.enter_context(observing.watch_calls(_Started.debugged))
        atexit.register(stack.close)  # the last step ends with the process
