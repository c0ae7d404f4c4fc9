"""One version of a servable at the master: a queue per method, the workers, and who gets what.

All of it changes under the master's lock. What is to be sent to workers, or answered, is put into lists that
the master goes through when the lock is free.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from mycelia_serving.cluster.calls import Item, PendingCall
from mycelia_serving.cluster.codec import MODEL_STAGE
from mycelia_serving.cluster.method_queue import MethodQueue
from mycelia_serving.cluster.open_calls import Answers, OpenCalls
from mycelia_serving.cluster.sending import Outbox
from mycelia_serving.cluster.worker_api import Work
from mycelia_serving.cluster.worker_slots import SUSPECT_PAUSE_S, DispatchBatch, WorkerSlot, WorkerSlots
from mycelia_serving.errors import Code, ServingError
from mycelia_serving.request import MethodInfo, Request, Result, ServableInfo

_LOST_TWICE = 2  # so many workers may an instance take along

Answered = Callable[[DispatchBatch, list[Result]], None]


class Group:
    """The queues and workers of one version.

    calls: the open calls of the master. answered: takes what a worker gave for a batch, in any thread.
    """

    def __init__(self, name: str, version: int, calls: OpenCalls, answered: Answered) -> None:
        self.name = name
        self.version = version
        self.method_queues: dict[str, MethodQueue] = {}
        self.infos: tuple[MethodInfo, ...] = ()
        self.worker_slots = WorkerSlots()
        self.suspects: deque[Item] = deque()  # oldest first
        self.published = False  # may answer requests for the newest version
        self.retired = False  # gets nothing new
        self.failed = ""  # why no worker will come
        self.empty_since: float | None = None  # since when there has been no worker
        self.seen = False  # there has been a worker
        self.absent: Callable[[], list[dict]] | None = None  # of workers that are starting or have failed
        self._calls = calls
        self._answered = answered
        self._turns = 0  # of methods

    # ---- what it is ----------------------------------------------------------------------------------------

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
            and not any(queue.head() is not None for queue in self.method_queues.values())
            and not any(slot.batches for slot in self.worker_slots)
        )

    def info(self) -> ServableInfo:
        """For metadata and `status`."""
        workers = tuple(
            {
                "address": slot.worker.address,
                "pid": slot.worker.pid,
                "device": slot.worker.device,
                "state": "draining" if slot.closing else "ready",
                "outstanding": sum(len(batch.items) for batch in slot.batches),
                "answered": slot.answered,
                "restarts": getattr(slot.worker, "restarts", 0),
                "load_seconds": getattr(slot.worker, "load_seconds", 0.0),
            }
            for slot in self.worker_slots
        )
        files = next((getattr(slot.worker, "model_files", ()) for slot in self.worker_slots), ())
        reason = "" if self.worker_slots else self.failed or "no worker is there"
        return ServableInfo(self.name, self.version, self.infos, self.state, workers, tuple(files), reason)

    def learn(self, infos: tuple[MethodInfo, ...]) -> None:
        """What the methods are, as a worker tells."""
        self.infos = infos
        for info in infos:
            queue = self.method_queues.get(info.name)
            if queue is None:
                self.method_queues[info.name] = MethodQueue(info)
            else:
                queue.info = info
                queue.inputs = frozenset(i.name for i in info.inputs)

    def remove(self, slot: WorkerSlot, now: float) -> None:
        """A worker is here no more."""
        self.worker_slots.remove(slot)
        if not self.worker_slots:
            self.empty_since = now

    # ---- into the queue ------------------------------------------------------------------------------------

    def enqueue(self, call: PendingCall, now: float, outbox: Outbox) -> None:
        """Queue the instances of a call that can be served, and send what can be sent."""
        queue = self.method_queues[call.request.method]
        needed = queue.inputs
        items = []
        for index, instance in enumerate(call.request.instances):
            if type(instance) is not dict:
                continue
            if not needed <= instance.keys():
                call.results[index] = _missing(needed, instance, call.request)
                continue
            item = Item(call, index, instance)
            item.order = next(self._calls.order)
            items.append(item)
        call.left = len(items)
        slots, was_empty = self.worker_slots, not queue.heap
        if len(items) == 1 and was_empty and not self.suspects:
            slot = (slots.pulling and slots.choose_idle(queue)) or slots.choose(queue, now)
            if slot is not None:
                outbox.append((slot, self._hand_over(slot, queue, items, now)))
                return
        if not items:
            return
        queue.push(items)
        self._calls.queued(call, len(items))
        if self.suspects or len(slots) > len(slots.pulling):
            self.dispatch(now, outbox)
        elif was_empty:  # else who made it grow wakes them, or they are at it
            outbox.extend([(slot, None) for slot in slots.pulling])

    def next_queue(self, queues: Iterable[MethodQueue]) -> MethodQueue | None:
        """The one whose instance is next: that of highest priority; equal ones take turns, so that a long
        queue of one method does not hold up the others.
        """
        best = found = None
        for queue in queues:
            head = queue.head()
            if head is not None:
                rank = (head, queue.served)
                if best is None or rank < best:
                    best, found = rank, queue
        return found

    # ---- out of the queue ----------------------------------------------------------------------------------

    def dispatch(self, now: float, outbox: Outbox) -> None:
        """Send what waits to workers with credit; tell those that take by themselves that there is more."""
        if self.suspects:
            self._dispatch_suspects(now, outbox)
        slots = self.worker_slots
        queues: Iterable[MethodQueue] = self.method_queues.values()
        while True:
            queue = self.next_queue(queues)
            if queue is None:
                return
            slot = slots.choose(queue, now)
            if slot is None:
                outbox.extend([(one, None) for one in slots.pulling])
                if not queue.needs_models and not slots.pulling:
                    return  # no worker has credit
                queues = [one for one in queues if one is not queue]  # others may go to other workers
                continue
            for work in self._pop(slot, queue, min(slot.credit, queue.chunk), now):
                outbox.append((slot, work))
            if slot.credit <= 0 and len(slots) == 1:
                return

    def take(self, slot: WorkerSlot, queues: tuple[MethodQueue, ...], count: int, now: float) -> list[Work]:
        """Up to `count` instances of some methods, for a worker that takes them when it can run them."""
        works: list[Work] = []
        count = 0 if slot.closing else min(count, slot.credit)
        while count > 0:
            queue = queues[0] if len(queues) == 1 else self.next_queue(queues)
            if queue is None:
                break
            found = self._pop(slot, queue, count if len(queues) == 1 else min(count, queue.chunk), now)
            if not found:
                break
            works += found
            count -= sum([len(work.instances) for work in found])
        return works

    def _pop(self, slot: WorkerSlot, queue: MethodQueue, count: int, now: float) -> list[Work]:
        """The next instances of a method for a worker, those of one call together."""
        self._turns += 1
        queue.served = self._turns
        works: list[Work] = []
        items = queue.pop(count)
        first, end = 0, len(items)
        while first < end:
            call, last = items[first].call, first + 1
            while last < end and items[last].call is call:
                last += 1
            self._calls.taken(call, last - first)
            works.append(self._hand_over(slot, queue, items[first:last], now))
            first = last
        return works

    def _dispatch_suspects(self, now: float, outbox: Outbox) -> None:
        left = []
        while self.suspects:
            item = self.suspects.popleft()
            if item.call.closed:
                continue
            queue = self.method_queues[item.call.request.method]
            slot = None
            if now >= item.ready:
                slot = self.worker_slots.choose_for_suspect(item, queue, now)
            if slot is None:
                left.append(item)
                if not item.alone:
                    break
                continue
            slot.suspects += 1
            slot.suspect_sent = now
            self._calls.taken(item.call, 1)
            outbox.append((slot, self._hand_over(slot, queue, [item], now)))
        self.suspects.extendleft(reversed(left))

    def _hand_over(self, slot: WorkerSlot, queue: MethodQueue, items: list[Item], now: float) -> Work:
        """Note that a worker gets instances of one call."""
        call = items[0].call
        batch = DispatchBatch(slot, queue, items, now)
        slot.credit -= len(items)
        slot.batches[batch] = None
        times = queue.times
        times.sizes.observe(len(items))
        if call.sent is None:
            call.sent = now
            times.queue.observe(now - call.start)
        request = call.request
        return Work(
            request.method,
            [item.instance for item in items],
            lambda results: self._answered(batch, results),
            call.deadline,
            request.priority,
            request.traceparent,
            tuple([item.order for item in items]) if slot.worker.deduplicates else (),
            call.start,
        )

    # ---- back from a worker --------------------------------------------------------------------------------

    def settle(self, batch: DispatchBatch, results: list[Result], now: float) -> PendingCall | None:
        """What a worker gave for a batch; the call if it is answered by it."""
        slot, queue, items = batch.worker_slot, batch.method_queue, batch.items
        batch.worker_slot = None
        del slot.batches[batch]
        count = len(items)
        slot.credit += count
        slot.answered += count
        if items[0].losses:
            slot.suspects -= 1
        took = now - batch.sent
        queue.times.run.observe(took)
        queue.usual_s = took if not queue.usual_s else queue.usual_s + 0.05 * (took - queue.usual_s)
        call = items[0].call
        if call.closed:
            return None
        if len(results) == count:
            for item, result in zip(items, results, strict=True):
                call.results[item.index] = result
        else:
            text = f"the worker gave {len(results)} results for {count} instances"
            for item in items:
                call.results[item.index] = ServingError(Code.SYSTEM_ERROR, text)
        return self._calls.settle(call, count)

    def take_back(self, slot: WorkerSlot, reason: str, now: float, answers: Answers) -> None:
        """Queue again what a lost worker had. An instance that had two of them is answered with an error.

        Those that come from a lost worker are sent on one by one. If several of them are with the second one
        nevertheless, it is not known which was to blame: the third one gets them alone.
        """
        suspects = slot.suspects
        again: list[Item] = []
        for batch in slot.batches:
            batch.worker_slot = None
            if batch.items[0].call.closed:
                continue
            if not batch.method_queue.info.retry:
                text = f"the worker was lost ({reason}); the method says that it must not be tried again"
                self._calls.give_up(batch.items, ServingError(Code.WORKER_UNAVAILABLE, text), answers)
                continue
            for item in batch.items:
                item.losses += 1
                if item.losses >= _LOST_TWICE and (suspects == 1 or item.losses > _LOST_TWICE):
                    text = f"two workers were lost with this instance ({reason}); it is not tried again"
                    self._calls.give_up([item], ServingError(Code.SYSTEM_ERROR, text), answers)
                    continue
                item.alone = item.losses >= _LOST_TWICE
                item.ready = now + SUSPECT_PAUSE_S  # by then it is known which others went with this one
                again.append(item)
        again.sort(key=lambda item: item.order)
        for item in again:
            self._calls.queued(item.call, 1)
        self.suspects.extend(again)
        slot.batches.clear()

    def flush(self, code: Code, text: str, answers: Answers) -> None:
        """Close all calls with an error."""
        items = [entry[-1] for queue in self.method_queues.values() for entry in queue.heap]
        items += self.suspects
        items += [item for slot in self.worker_slots for batch in slot.batches for item in batch.items]
        for item in items:
            if not item.call.closed:
                self._calls.fail(item.call, code, text, answers)
        self.suspects.clear()
        for queue in self.method_queues.values():
            queue.clear()

    def queue_for(self, request: Request) -> MethodQueue | None:
        """The queue that a request goes to: a method's, or that of a model stage which it asks for."""
        queue = self.method_queues.get(request.method)
        if request.protocol == MODEL_STAGE:
            if queue is None:
                info = MethodInfo(request.method, (), (), 0)
                queue = self.method_queues[request.method] = MethodQueue(info, needs_models=True)
            return queue
        return None if queue is None or queue.needs_models else queue


def _missing(needed: frozenset[str], instance: dict, request: Request) -> ServingError:
    names = ", ".join(repr(name) for name in sorted(needed - instance.keys()))
    text = f"input {names} is missing, servable {request.servable!r}, method {request.method!r}"
    return ServingError(Code.INVALID_INPUTS, text)
