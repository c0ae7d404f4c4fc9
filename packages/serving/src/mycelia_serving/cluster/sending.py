"""Work on its way to workers: given to them outside of the master's lock, what is for one worker at once."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from mycelia_serving.cluster.group import WorkerSlot
from mycelia_serving.cluster.local import LocalWorker
from mycelia_serving.cluster.worker_api import Work

Outbox = list[tuple[WorkerSlot, Work]]
_Groups = list[tuple[WorkerSlot, list[Work]]]


class Sender:
    """Gives workers what the outboxes of a master have for them.

    A worker may answer at once, which frees slots and makes more to send: that is left to the outermost call
    of this thread, so that it does not nest.
    """

    def __init__(self) -> None:
        self._thread = _Thread()

    def send(self, outbox: Outbox) -> None:
        """Give workers their work, all of one method together."""
        if not outbox:
            return
        if len(outbox) == 1:
            worker_slot, work = outbox[0]
            groups = [(worker_slot, [work])]
        else:
            groups = _together((worker_slot, [work]) for worker_slot, work in outbox)
        thread = self._thread
        if thread.more is not None:
            thread.more.extend(groups)
            return
        thread.more = groups
        try:
            for worker_slot, works in groups:  # it grows meanwhile
                worker_slot.worker.submit(works)
        finally:
            thread.more = None

    def burst(self) -> Burst:
        """A context that gathers what is sent by this thread until its end; see `Master.burst`."""
        return Burst(self._thread)


class _Thread(threading.local):
    """What the outermost call of this thread still has to send; None outside of one."""

    more: _Groups | None = None


class Burst:
    """Requests that one thread submits one after the other; see `Master.burst`."""

    __slots__ = ("_groups", "_outermost", "_thread")

    def __init__(self, thread: _Thread) -> None:
        self._thread = thread

    def __enter__(self) -> None:
        self._outermost = self._thread.more is None
        if self._outermost:
            self._groups = self._thread.more = []

    def __exit__(self, *_) -> None:
        if not self._outermost:
            return
        thread = self._thread
        try:
            groups = self._groups
            if len(groups) > 1:
                groups = thread.more = _together(groups)
            for worker_slot, works in groups:  # it grows meanwhile
                worker = worker_slot.worker
                if isinstance(worker, LocalWorker):
                    worker.submit_here(works)
                else:
                    worker.submit(works)
        finally:
            thread.more = None


def _together(groups: Iterable[tuple[WorkerSlot, list[Work]]]) -> _Groups:
    """One group a worker and method."""
    by_seat: dict[tuple[int, str], tuple[WorkerSlot, list[Work]]] = {}
    for worker_slot, works in groups:
        by_seat.setdefault((id(worker_slot), works[0].method), (worker_slot, []))[1].extend(works)
    return list(by_seat.values())
