"""A thread that moves messages of started reductions, and makes their sums, while its process computes."""

from __future__ import annotations

import os
import threading
import weakref

from mycelia.engine.communication import Transport

_LOOK_S = 0.1  # after which it looks again whether somebody else has moved everything


def has_cores(local_size: int) -> bool:
    """Whether processes of this machine have more than one core each: on one a thread would only take turns
    with what computes, which moves messages itself between its operators.
    """
    if not hasattr(os, "sched_getaffinity"):
        return (os.cpu_count() or 1) >= 2 * local_size
    own = len(os.sched_getaffinity(0))
    shared_by = local_size if own == os.cpu_count() else 1  # a process may be bound to cores of its own
    return own >= 2 * shared_by


class Mover:
    """`wake()` lets it work until no reduction is on its way; it ends with the transport."""

    def __init__(self, transport: Transport) -> None:
        self._transport = weakref.ref(transport)
        self._wanted = threading.Event()
        self._thread: threading.Thread | None = None
        self._ended = False

    def wake(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="mycelia reductions", daemon=True)
            self._thread.start()
        self._wanted.set()

    def end(self) -> None:
        self._ended = True
        self._wanted.set()

    def _run(self) -> None:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            while not self._ended and self._work():
                pass
            if self._ended:
                return

    def _work(self) -> bool:
        """Moves what has come; whether there is more to come."""
        transport = self._transport()
        if transport is None:
            self._ended = True
            return False
        try:
            transport.await_traffic(_LOOK_S)
            with transport.lock:
                if self._ended:
                    return False
                transport.poll()
            transport.go_on()
            with transport.lock:
                return any(one.is_on_its_way() for one in transport.started.values())
        except (OSError, ValueError):  # the transport was closed meanwhile
            if self._ended:
                return False
            raise
