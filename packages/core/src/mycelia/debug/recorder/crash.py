"""What leaves a trace when a process does not end by itself: exceptions that nobody catches, signals, kills.

An exception or SIGTERM lets the recorder write. A fault of native code (SIGSEGV, SIGABRT, ...) leaves the
native stack and the Python stacks in ``DEBUG.fault.{process}.txt``. After a SIGKILL, of a system without
memory for instance, the `Journal` remains: what ran at last.
"""

from __future__ import annotations

import contextlib
import faulthandler
import mmap
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import IO, Any

from mycelia.engine import _C

Report = Callable[[BaseException | None, str], None]

_SIZE = 4096  # bytes of the journal: one page


class _State:
    """What was there before `listen`."""

    report: Report | None = None
    folder = ""
    excepthook: Any = None
    thread_hook: Any = None
    terminate: Any = None
    faults: IO[str] | None = None


def listen(folder: str, report: Report) -> None:
    """Call `report` when the process fails; write the stacks of faults below `folder`, which exists."""
    state = _State
    state.report, state.folder = report, folder
    state.excepthook, sys.excepthook = sys.excepthook, _uncaught
    state.thread_hook, threading.excepthook = threading.excepthook, _uncaught_in_thread
    if threading.current_thread() is threading.main_thread():
        before = signal.getsignal(signal.SIGTERM)
        if before is signal.SIG_DFL:  # whoever handles it knows why
            signal.signal(signal.SIGTERM, _terminated)
            state.terminate = before
    if not faulthandler.is_enabled():
        with contextlib.suppress(OSError):
            path = os.path.join(folder, f"DEBUG.fault.{os.getpid()}.txt")
            state.faults = open(path, "w", encoding="utf-8")
            faulthandler.enable(state.faults, all_threads=True)
            _C.watch_faults(state.faults.fileno())


def ignore() -> None:
    """End that. What is empty goes."""
    state = _State
    if state.report is None:
        return
    sys.excepthook, threading.excepthook = state.excepthook, state.thread_hook
    if state.terminate is not None:
        signal.signal(signal.SIGTERM, state.terminate)
    if state.faults is not None:
        _C.forget_faults()
        faulthandler.disable()
        name = state.faults.name
        state.faults.close()
        with contextlib.suppress(OSError):
            if not os.path.getsize(name):
                os.unlink(name)
    state.report = state.terminate = state.faults = None


def _uncaught(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    if _State.report is not None and issubclass(kind, Exception):
        _State.report(error, f"{kind.__name__} was raised, and nobody caught it.")
    _State.excepthook(kind, error, trace)


def _uncaught_in_thread(args: Any) -> None:
    if _State.report is not None and args.exc_value is not None and issubclass(args.exc_type, Exception):
        name = args.thread.name if args.thread else "a thread"
        _State.report(args.exc_value, f"{args.exc_type.__name__} was raised in {name}, and nobody caught it.")
    _State.thread_hook(args)


def _terminated(number: int, frame: Any) -> None:
    if _State.report is not None:
        _State.report(None, f"The process was ended by {signal.Signals(number).name}.")
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


class Journal:
    """One page in a file that always says what runs: it outlives the process, however that ends."""

    def __init__(self, folder: str) -> None:
        self.path = os.path.join(folder, f"DEBUG.running.{os.getpid()}.txt")
        with open(self.path, "wb+") as file:
            file.truncate(_SIZE)
            self.page = mmap.mmap(file.fileno(), _SIZE)

    def note(self, text: str) -> None:
        """What runs now."""
        raw = text.encode(errors="replace")[: _SIZE - 1]
        self.page[: len(raw) + 1] = raw + b"\0"

    def close(self) -> None:
        """The process ends as it should: nothing remains."""
        self.page.close()
        with contextlib.suppress(OSError):
            os.unlink(self.path)

    @staticmethod
    def read(path: str) -> str:
        """What the journal of another process says."""
        with open(path, "rb") as file:
            return file.read(_SIZE).split(b"\0", 1)[0].decode(errors="replace")
