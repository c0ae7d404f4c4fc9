"""The one server of this process, which the functions of MindSpore Serving mean, and its signals."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading

from mycelia_serving.cluster.node import Node

_current: Node | None = None
_options: dict = {}
_making = threading.Lock()


def node() -> Node:
    """The server of this process, made at need. It keeps the process alive until it is stopped, and stops
    gracefully at SIGTERM and Ctrl-C; a second signal ends it at once.
    """
    global _current
    with _making:
        if _current is None or _current.stopped.is_set():
            _current = Node(**_options)
            threading.Thread(target=_current.stopped.wait, name="serving-main").start()
            _catch_signals(_current)
        return _current


def running() -> Node | None:
    """The server of this process, if there is one that is not stopped."""
    return _current if _current is not None and not _current.stopped.is_set() else None


def set_option(name: str, value) -> None:
    """An option of `Master` for the server of this process, now and later."""
    _options[name] = value
    server = running()
    if server is not None:
        setattr(server.master, name, value)


def stop(drain_seconds: float | None = None) -> None:
    """Stop the server of this process, if there is one."""
    server = running()
    if server is not None:
        server.stop(drain_seconds)


def _catch_signals(server: Node) -> None:
    if threading.current_thread() is not threading.main_thread():
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def at_signal(number: int, frame) -> None:
        if server.stop_asked.is_set():
            os._exit(128 + number)
        threading.Thread(target=work, daemon=True).start()

    def work() -> None:
        server.stop()
        if threading.main_thread().is_alive():  # the script still does something: it ends here
            signal.pthread_kill(threading.main_thread().ident, signal.SIGTERM)

    def handler(number: int, frame) -> None:
        if server.stopped.is_set():
            for one, old in before.items():
                signal.signal(one, old if old is not None else signal.SIG_DFL)
            sys.exit(0)
        at_signal(number, frame)

    for number in before:
        with contextlib.suppress(ValueError):
            signal.signal(number, handler)
