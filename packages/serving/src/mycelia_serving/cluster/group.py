"""One version of a servable as the master sees it: its workers, and a queue per method."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable

from mycelia_serving.cluster.calls import Item
from mycelia_serving.cluster.worker_api import Worker
from mycelia_serving.measures import MethodTimes
from mycelia_serving.request import MethodInfo, ServableInfo

SUSPECT_PAUSE_S = 0.05  # a request that kills its worker mostly does so sooner
LATE_FACTOR = 5.0  # a worker is late when it takes this many times as long as usual,
LATE_AT_LEAST_S = 0.1  # and at least this long


class MethodQueue:
    """The queue of a method: by priority, then clients in turn, then by arrival.

    A call's turn comes when its client has had as many instances as every other one that has any here.
    """

    __slots__ = (
        "_turn",
        "_turns",
        "cancelled",
        "chunk",
        "heap",
        "info",
        "inputs",
        "needs_models",
        "served",
        "times",
        "usual_s",
    )

    def __init__(self, info: MethodInfo, *, needs_models: bool = False) -> None:
        self.info = info
        self.needs_models = needs_models  # a stage for workers that have the models, not a method
        self.times = MethodTimes()
        self.inputs = frozenset(i.name for i in info.inputs)
        self.chunk = max(info.batch_size, 1)  # instances for one worker before the next one is looked for
        self.heap: list[tuple[int, int, int, Item]] = []  # priority, turn, order
        self._turn = 0  # of the latest that was popped
        self._turns: dict[str, int] = {}  # client -> turn of its next call
        self.cancelled = 0  # items in the heap whose call is closed, about
        self.served = 0  # when it had its last turn among the methods
        self.usual_s = 0.0  # time between sending and answer, a running mean

    def push(self, items: list[Item]) -> None:
        """Instances of one call."""
        request = items[0].call.request
        turn = max(self._turn, self._turns.get(request.peer, 0))
        if len(self._turns) > 2 * len(self.heap) + 64:  # of those whose turn is over nothing need be known
            self._turns = {peer: its for peer, its in self._turns.items() if its > self._turn}
        self._turns[request.peer] = turn + len(items)
        for item in items:
            heapq.heappush(self.heap, (-request.priority, turn, item.order, item))

    def pop(self) -> Item | None:
        """The next one that somebody waits for."""
        if self.head() is None:
            return None
        _, turn, _, item = heapq.heappop(self.heap)
        self._turn = max(self._turn, turn)
        return item

    def head(self) -> int | None:
        """Priority of the next one, the smaller the sooner."""
        heap = self.heap
        while heap and heap[0][-1].call.closed:
            heapq.heappop(heap)
            self.cancelled -= 1
        return heap[0][0] if heap else None

    def clear(self) -> None:
        """Forget all."""
        self.heap.clear()
        self._turns.clear()
        self.cancelled = 0

    def forget(self, count: int) -> None:
        """So many in here are not waited for any more; they go when they are many."""
        self.cancelled += count
        if self.cancelled > 64 and self.cancelled * 2 > len(self.heap):
            self.heap = [entry for entry in self.heap if not entry[-1].call.closed]
            heapq.heapify(self.heap)
            self.cancelled = 0


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
    """A worker at the master's table."""

    __slots__ = ("answered", "closing", "batches", "free", "suspect_sent", "suspects", "worker")

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.free = worker.capacity
        self.batches: dict[DispatchBatch, None] = {}  # oldest first
        self.closing = False  # gets nothing new
        self.answered = 0  # instances
        self.suspects = 0  # instances it has that were with a lost worker before
        self.suspect_sent = 0.0

    @property
    def busy(self) -> int:
        """Instances that it has."""
        return self.worker.capacity - self.free

    def late(self, now: float) -> bool:
        """Whether its oldest work takes much longer than usual."""
        for batch in self.batches:
            return now - batch.sent > max(LATE_AT_LEAST_S, LATE_FACTOR * batch.method_queue.usual_s)
        return False


class Group:
    """One version of a servable: the workers that run it and what waits for them."""

    def __init__(self, name: str, version: int) -> None:
        self.name = name
        self.version = version
        self.method_queues: dict[str, MethodQueue] = {}
        self.infos: tuple[MethodInfo, ...] = ()
        self.worker_slots: list[WorkerSlot] = []
        self.suspects: deque[Item] = deque()  # oldest first
        self.published = False  # may answer requests for the newest version
        self.retired = False  # gets nothing new
        self.failed = ""  # why no worker will come
        self.empty_since: float | None = None  # since when there has been no worker
        self.seen = False  # there has been a worker
        self.absent: Callable[[], list[dict]] | None = None  # of workers that are starting or have failed
        self._turn = 0  # where the search for a worker starts
        self.turns = 0  # of methods

    @property
    def state(self) -> str:
        """One of the states of `request.ServableInfo`."""
        if self.retired:
            return "draining"
        if self.worker_slots:
            return "ready"
        if self.failed:
            return "failed"
        return "unavailable" if self.seen else "loading"

    @property
    def idle(self) -> bool:
        """Whether nothing waits and nothing runs."""
        return (
            not self.suspects
            and not any(method_queue.head() is not None for method_queue in self.method_queues.values())
            and not any(worker_slot.batches for worker_slot in self.worker_slots)
        )

    def learn(self, infos: tuple[MethodInfo, ...]) -> None:
        """What the methods are, as a worker tells."""
        self.infos = infos
        for info in infos:
            method_queue = self.method_queues.get(info.name)
            if method_queue is None:
                self.method_queues[info.name] = MethodQueue(info)
            else:
                method_queue.info = info
                method_queue.inputs = frozenset(i.name for i in info.inputs)

    def seat_for(self, now: float, needs_models: bool = False) -> WorkerSlot | None:
        """The worker with a free slot that has least to do, those in turn that have equally much; one that is
        late only when all are.
        """
        worker_slots = self.worker_slots
        count = len(worker_slots)
        if count == 1:
            (worker_slot,) = worker_slots
            if (
                worker_slot.free <= 0
                or worker_slot.closing
                or (worker_slot.suspects and self._lonely(worker_slot))
            ):
                return None
            return worker_slot if worker_slot.worker.has_models or not needs_models else None
        best = late = None
        best_at = late_at = 0
        for step in range(count):
            at = (self._turn + step) % count
            worker_slot = worker_slots[at]
            if (
                worker_slot.free <= 0
                or worker_slot.closing
                or (worker_slot.suspects and self._lonely(worker_slot))
            ):
                continue
            if needs_models and not worker_slot.worker.has_models:
                continue
            if best is not None and worker_slot.busy >= best.busy:
                continue
            if worker_slot.batches and worker_slot.late(now):
                if late is None or worker_slot.busy < late.busy:
                    late, late_at = worker_slot, at
                continue
            best, best_at = worker_slot, at
        if best is None and late is not None and all(s.closing or s.late(now) for s in worker_slots):
            best, best_at = late, late_at
        if best is not None:
            self._turn = (best_at + 1) % count
        return best

    @staticmethod
    def _lonely(worker_slot: WorkerSlot) -> bool:
        """Whether it has an instance that must be alone with a worker."""
        return any(item.alone for batch in worker_slot.batches for item in batch.items)

    def seat_for_suspect(self, item: Item, method_queue: MethodQueue, now: float) -> WorkerSlot | None:
        """A worker for an instance that was with a lost worker: suspects go one by one, so that the one that
        kills a second worker is known.
        """
        best = None
        for worker_slot in self.worker_slots:
            if (
                worker_slot.closing
                or worker_slot.free <= 0
                or (method_queue.needs_models and not worker_slot.worker.has_models)
            ):
                continue
            if item.alone:
                if worker_slot.batches:
                    continue
            elif worker_slot.suspects and (
                self._lonely(worker_slot) or now - worker_slot.suspect_sent < SUSPECT_PAUSE_S
            ):
                continue
            if best is None or worker_slot.free > best.free:
                best = worker_slot
        return best

    def next_lane(self, without_models: bool | None = None) -> MethodQueue | None:
        """The method whose instance is next: that of highest priority; equal ones take turns, so that a long
        queue of one does not hold up the others. without_models: stages that need models do not count.
        """
        best = found = None
        for method_queue in self.method_queues.values():
            if without_models and method_queue.needs_models:
                continue
            head = method_queue.head()
            if head is not None:
                rank = (head, method_queue.served)
                if best is None or rank < best:
                    best, found = rank, method_queue
        return found

    def info(self) -> ServableInfo:
        """For metadata and `status`."""
        workers = tuple(
            {
                "address": worker_slot.worker.address,
                "pid": worker_slot.worker.pid,
                "device": worker_slot.worker.device,
                "state": "draining" if worker_slot.closing else "ready",
                "outstanding": sum(len(p.items) for p in worker_slot.batches),
                "answered": worker_slot.answered,
                "restarts": getattr(worker_slot.worker, "restarts", 0),
                "load_seconds": getattr(worker_slot.worker, "load_seconds", 0.0),
            }
            for worker_slot in self.worker_slots
        )
        files = next((getattr(s.worker, "model_files", ()) for s in self.worker_slots), ())
        reason = "" if self.worker_slots else self.failed or "no worker is there"
        return ServableInfo(self.name, self.version, self.infos, self.state, workers, tuple(files), reason)
