"""How a worker in the master's process takes from the master's queue."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable

from mycelia_serving.cluster.group import Group
from mycelia_serving.cluster.method_queue import MethodQueue
from mycelia_serving.cluster.worker_api import Work
from mycelia_serving.cluster.worker_slots import WorkerSlot


class Intake:
    """An `engine.executors.Intake` on the queues of a group. lock: the master's."""

    def __init__(self, lock: threading.Lock, group: Group, slot: WorkerSlot) -> None:
        self._lock = lock
        self._group = group
        self._slot = slot

    def queues(self, methods: Iterable[str]) -> tuple[MethodQueue, ...]:
        """The queues of these methods. Something waits in one while its `heap` is not empty; to look at that
        needs no lock, since who puts something into an empty one wakes the worker later.
        """
        return tuple([self._group.method_queues[name] for name in methods])

    def is_open(self) -> bool:
        """Whether anything may be taken now."""
        return self._slot.credit > 0 and not self._slot.closing

    def take(self, queues: tuple[MethodQueue, ...], count: int) -> list[Work]:
        """At most `count` instances of these queues; they are the worker's now."""
        with self._lock:
            return self._group.take(self._slot, queues, count, time.monotonic())
