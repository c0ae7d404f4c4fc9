"""Work on its way to workers: given to them outside of the master's lock, what is for one worker at once."""

from __future__ import annotations

import threading

from mycelia_serving.cluster.worker_api import Work
from mycelia_serving.cluster.worker_slots import WorkerSlot

Outbox = list[tuple[WorkerSlot, Work | None]]  # None: it takes from the queue itself, and there is more now


class Sender:
    """Gives workers what the outboxes of a master have for them.

    A worker may answer at once, which gives credit and makes more to send: that is left to the outermost call
    of this thread, so that it does not nest.
    """

    def __init__(self) -> None:
        self._thread = _Thread()

    def send(self, outbox: Outbox) -> None:
        """Give workers their work, all of one method together. The outbox is empty afterwards."""
        if not outbox:
            return
        thread = self._thread
        if thread.more is not None:
            thread.more += outbox
            return
        thread.more = outbox
        try:
            _give(outbox, inline=False)
        finally:
            thread.more = None

    def burst(self) -> Burst:
        """A context that gathers what is sent by this thread until its end; see `Master.burst`."""
        return Burst(self._thread)


class _Thread(threading.local):
    """What the outermost call of this thread still has to send; None outside of one."""

    more: Outbox | None = None


class Burst:
    """Requests that one thread submits one after the other; see `Master.burst`."""

    __slots__ = ("_outermost", "_thread")

    def __init__(self, thread: _Thread) -> None:
        self._thread = thread

    def __enter__(self) -> None:
        self._outermost = self._thread.more is None
        if self._outermost:
            self._thread.more = []

    def __exit__(self, *_) -> None:
        if self._outermost:
            try:
                _give(self._thread.more, inline=True)
            finally:
                self._thread.more = None


def _give(outbox: Outbox, inline: bool) -> None:
    """Gives all that is in an outbox, and what comes into it meanwhile.

    inline: a worker in this process may run its models in this thread.
    """
    while outbox:
        if len(outbox) == 1:
            slot, work = outbox.pop()
            worker = slot.worker
            if work is not None:
                worker.submit([work])
            pulling = (worker,) if worker.pulls else ()
        else:
            groups = _together(outbox)
            outbox.clear()
            pulling = []
            for slot, works in groups:
                worker = slot.worker
                if works:
                    worker.submit(works)
                if worker.pulls and worker not in pulling:
                    pulling.append(worker)
        for worker in pulling:
            if inline:
                worker.run_inline()
            else:
                worker.wake()


def _together(outbox: Outbox) -> list[tuple[WorkerSlot, list[Work]]]:
    """One group a worker and method."""
    groups: dict[tuple[int, str | None], tuple[WorkerSlot, list[Work]]] = {}
    for slot, work in outbox:
        key = id(slot), None if work is None else work.method
        group = groups.get(key)
        if group is None:
            group = groups[key] = (slot, [])
        if work is not None:
            group[1].append(work)
    return list(groups.values())
