"""Workers at the master's table: what they have, and which of them is next."""

from __future__ import annotations

from mycelia_serving.cluster.calls import Item
from mycelia_serving.cluster.method_queue import MethodQueue
from mycelia_serving.cluster.worker_api import Worker

SUSPECT_PAUSE_S = 0.05  # a request that kills its worker mostly does so sooner
LATE_FACTOR = 5.0  # a worker is late when it takes this many times as long as usual,
LATE_AT_LEAST_S = 0.1  # and at least this long


class DispatchBatch:
    """Instances of one call that a worker has."""

    __slots__ = ("items", "method_queue", "sent", "worker_slot")

    def __init__(
        self, worker_slot: WorkerSlot | None, method_queue: MethodQueue, items: list[Item], sent: float
    ) -> None:
        self.worker_slot = worker_slot  # None once it is answered or the worker is lost
        self.method_queue = method_queue
        self.items = items
        self.sent = sent


class WorkerSlot:
    """A worker and its credit: how many instances it may get beyond those that it has."""

    __slots__ = ("answered", "batches", "closing", "credit", "suspect_sent", "suspects", "worker")

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.credit = worker.capacity
        self.batches: dict[DispatchBatch, None] = {}  # oldest first
        self.closing = False  # gets nothing new
        self.answered = 0  # instances
        self.suspects = 0  # instances it has that were with a lost worker before
        self.suspect_sent = 0.0

    @property
    def busy(self) -> int:
        """Instances that it has."""
        return self.worker.capacity - self.credit

    @property
    def reserved(self) -> bool:
        """Whether it has an instance that must be alone with a worker."""
        return self.suspects > 0 and any(item.alone for batch in self.batches for item in batch.items)

    def may_get(self, method_queue: MethodQueue) -> bool:
        """Whether the master may give it instances of a method now."""
        worker = self.worker
        return (
            self.credit > 0
            and not self.closing
            and (worker.has_models or not method_queue.needs_models)
            and method_queue.info.name not in worker.pulls
        )

    def late(self, now: float) -> bool:
        """Whether its oldest batch takes much longer than usual."""
        for batch in self.batches:
            return now - batch.sent > max(LATE_AT_LEAST_S, LATE_FACTOR * batch.method_queue.usual_s)
        return False


class WorkerSlots(list[WorkerSlot]):
    """The workers of one version."""

    def __init__(self) -> None:
        super().__init__()
        self.pulling: list[WorkerSlot] = []  # those that take from the queue themselves
        self._turn = 0  # where the search starts

    def add(self, slot: WorkerSlot) -> None:
        """A worker has come."""
        self.append(slot)
        if slot.worker.pulls:
            self.pulling.append(slot)

    def remove(self, slot: WorkerSlot) -> None:
        """A worker is here no more, and gets nothing."""
        super().remove(slot)
        slot.closing = True
        if slot.worker.pulls:
            self.pulling.remove(slot)

    def choose_idle(self, method_queue: MethodQueue) -> WorkerSlot | None:
        """A worker that takes from the queue itself, but runs nothing now: as long as it has credit it gets
        what comes at once.
        """
        for slot in self.pulling:
            if slot.credit > 0 and not slot.closing and not slot.worker.is_running:
                return slot if method_queue.info.name in slot.worker.pulls else None
        return None

    def choose(self, method_queue: MethodQueue, now: float) -> WorkerSlot | None:
        """The worker with credit that has least to do, those in turn that have equally much; one that is late
        only when all are.
        """
        count = len(self)
        if count == 1:
            slot = self[0]
            return slot if slot.may_get(method_queue) and not slot.reserved else None
        best = late = None
        best_at = late_at = 0
        for step in range(count):
            at = (self._turn + step) % count
            slot = self[at]
            if not slot.may_get(method_queue) or slot.reserved:
                continue
            if best is not None and slot.busy >= best.busy:
                continue
            if slot.batches and slot.late(now):
                if late is None or slot.busy < late.busy:
                    late, late_at = slot, at
                continue
            best, best_at = slot, at
        if best is None and late is not None and all(s.closing or s.late(now) for s in self):
            best, best_at = late, late_at
        if best is not None:
            self._turn = (best_at + 1) % count
        return best

    def choose_for_suspect(self, item: Item, method_queue: MethodQueue, now: float) -> WorkerSlot | None:
        """A worker for an instance that was with a lost worker: suspects go one by one, so that the one that
        kills a second worker is known.
        """
        best = None
        for slot in self:
            if slot.closing or slot.credit <= 0 or (method_queue.needs_models and not slot.worker.has_models):
                continue
            if item.alone:
                if slot.batches:
                    continue
            elif slot.suspects and (slot.reserved or now - slot.suspect_sent < SUSPECT_PAUSE_S):
                continue
            if best is None or slot.credit > best.credit:
                best = slot
        return best
