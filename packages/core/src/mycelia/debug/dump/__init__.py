"""Data dump: what every operator read and made, as files that MindSpore's tools know."""

from __future__ import annotations

import atexit
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from mycelia.debug.dump.config import DumpConfig, parse, read, wants_eager
from mycelia.debug.dump.observer import DumpObserver
from mycelia.engine import observing
from mycelia.engine.backends import registry
from mycelia.engine.base import config, log

_OWNER = "MYCELIA_DUMP_OWNER"  # process:rank that writes into the folder of the dump

__all__ = ["DumpConfig", "DumpObserver", "dump", "parse", "read"]


@contextmanager
def dump(settings: Mapping[str, Any] | str) -> Iterator[DumpObserver]:
    """In this block all that runs is dumped: compiled functions, and the eager operators of this thread.

    `settings`: the path of a file ``data_dump.json``, what it holds, or the fields of `common_dump_settings`
    alone, `path` for instance.
    Errors: ValueError for settings that are none, which names the field and what it may be.
    """
    found = read(settings) if isinstance(settings, str) else parse(settings)
    observer = _observer(found)
    with ExitStack() as stack:
        observing.watch(observer)
        stack.callback(observer.tell_unmet)
        stack.callback(observing.unwatch, observer)
        if found.signal:
            before = _on_signal(observer)
            stack.callback(signal.signal, getattr(signal, found.signal), before)
        if wants_eager(found):
            stack.enter_context(observing.watch_calls(observer))
        yield observer


def _observer(found: DumpConfig) -> DumpObserver:
    """What writes `found`: asynchronously only where the target numbers its tasks."""
    if found.asynchronous:
        from mycelia.debug.dump.asynchronous import AsyncDumpObserver, numbers_tasks

        if numbers_tasks(registry.target().backend):
            return AsyncDumpObserver(found)
        log.logger(__name__).warning(
            "async_dump_settings: this backend has no dump of its own; values are written "
            "as e2e_dump_settings says"
        )
    return DumpObserver(found)


def _on_signal(observer: DumpObserver) -> Any:
    """Let the signal of its configuration ask `observer` for a step; the handler that was there before.

    Errors: ValueError outside of the main thread, as `signal.signal` has it.
    """
    return signal.signal(getattr(signal, observer.config.signal), observer.ask)


class _Started:
    """The dump that the environment asks for, and the eager calls that it follows."""

    observer: DumpObserver | None = None
    calls: Any = None

    @classmethod
    def after_fork(cls) -> None:
        if cls.observer is not None:
            cls.observer.move(_place(cls.observer.config))


def _place(found: DumpConfig) -> DumpConfig:
    """`found`, or in a process that one with the same dump and rank started, the same in a folder of its own.

    Who writes into the folder stands in the environment, which processes that it starts inherit.
    """
    me = f"{os.getpid()}:{config.get('rank')}"
    owner = os.environ.setdefault(_OWNER, me)
    if owner.partition(":")[2] != me.partition(":")[2]:  # a rank has its own folder anyway
        os.environ[_OWNER] = owner = me
    if owner == me:
        return found
    return replace(found, path=os.path.join(found.path, f"process_{os.getpid()}"))


def start(compiling: bool) -> None:
    """Begin the dump that the setting `dump_config` names, at the first compiled function or eager
    operator.
    """
    path = config.get("dump_config")
    if not path or (not compiling and config.get("mode") == config.GRAPH_MODE):
        return
    if _Started.observer is None:
        _Started.observer = _observer(_place(read(path)))
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_Started.after_fork)
        observing.watch(_Started.observer)
        atexit.register(_Started.observer.tell_unmet)
        if _Started.observer.config.signal:
            _on_signal(_Started.observer)
    if not compiling and wants_eager(_Started.observer.config) and _Started.calls is None:
        stack = ExitStack()
        _Started.calls = stack.enter_context(observing.watch_calls(_Started.observer))
        atexit.register(stack.close)  # the last step ends with the process
