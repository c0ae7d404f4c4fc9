"""The master: takes requests from the protocols and spreads their instances over the workers.

Nothing here blocks or waits, except one thread that looks at the clock. All state changes under one lock;
work is handed to workers, and answers to callers, outside of it.
"""

from __future__ import annotations

import math
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from mycelia import log
from mycelia_serving.cluster.calls import ANSWERED, Item, PendingCall, refused
from mycelia_serving.cluster.codec import MODEL_STAGE
from mycelia_serving.cluster.group import SUSPECT_PAUSE_S, DispatchBatch, Group, MethodQueue, WorkerSlot
from mycelia_serving.cluster.sending import Burst, Outbox, Sender
from mycelia_serving.cluster.worker_api import Work, Worker, WorkerLost
from mycelia_serving.errors import STOPPING_TEXT, Code, ServingError, clip
from mycelia_serving.measures import MethodTimes
from mycelia_serving.request import Call, MethodInfo, Reply, Request, Result, ServableInfo

MAX_ENQUEUED_REQUESTS = 10_000
NO_WORKER_S = 8.0  # how long a request waits for a first worker to come back
_TICK_S = 0.02  # how exactly deadlines and pauses are kept
_HUNG_TICK_S = 0.2
_LOST_TWICE = 2  # so many workers may an instance take along


class Master:
    """Queues of all servables; a `request.Dispatcher`.

    max_enqueued_requests: requests that may wait for a worker; more are refused with `Code.TOO_MANY`, and so
    are those of a client of which as many wait as there is room for others.
    no_worker_s: how long requests wait while their servable has no worker at all.
    worker_timeout_s: a worker that has had work for longer is taken for hung and killed; 0: never.
    kill: ends a worker that hangs; called with the worker and the reason.
    """

    def __init__(
        self,
        *,
        max_enqueued_requests: int = MAX_ENQUEUED_REQUESTS,
        no_worker_s: float = NO_WORKER_S,
        worker_timeout_s: float = 0.0,
        kill: Callable[[Worker, str], None] | None = None,
    ) -> None:
        self.max_enqueued_requests = max_enqueued_requests
        self.no_worker_s = no_worker_s
        self.worker_timeout_s = worker_timeout_s
        self.kill = kill
        self.stopping = False
        self.waiting = 0  # requests with instances in a queue
        self._waiting_of: dict[str, int] = {}  # client -> of them its own
        self.lost_workers = 0
        self._groups: dict[str, dict[int, Group]] = {}
        self._retired: list[Group] = []
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._order = secrets.randbits(30) << 32  # never those of a master before this one
        self._timed: set[PendingCall] = set()  # calls with a deadline
        self._next_deadline = math.inf  # none of those is earlier
        self._wake = threading.Event()
        self._closed = False
        self._sender = Sender()
        self._clock = threading.Thread(target=self._watch_clock, name="serving-clock", daemon=True)
        self._clock.start()

    # ---- what the protocols call ---------------------------------------------------------------------------

    def submit(self, request: Request, done: Callable[[Reply], None]) -> Call:
        """Answer `request` by calling `done` once, from any thread, perhaps at once. Never raises."""
        now = time.monotonic()
        with self._lock:
            refusal, group = self._admit(request, now)
            if refusal is None:
                call = PendingCall(self, group, request, done, now)
                outbox: Outbox = []
                self._enqueue(call, group.method_queues[request.method], now, outbox)
                finished = call.left == 0
                if finished:
                    call.closed = True
                elif call.deadline is not None:
                    self._timed.add(call)
                    if call.deadline < self._next_deadline:
                        self._next_deadline = call.deadline
                        self._wake.set()
        if refusal is not None:
            done(refusal)
            return ANSWERED
        if finished:
            done(call.reply())
        elif outbox:
            self._sender.send(outbox)
        return call

    def burst(self) -> Burst:
        """A context for a thread that submits several requests that came together, and then waits for others.

        Workers get them together, and a worker in this process may run them in this thread.
        """
        return self._sender.burst()

    def cancel(self, call: PendingCall) -> None:
        """Forget a call: its instances that have not started are dropped, `done` is not called."""
        with self._lock:
            if not call.closed:
                self._close(call)

    def describe(self) -> list[ServableInfo]:
        """What is served now."""
        with self._lock:
            groups = [g for versions in self._groups.values() for g in versions.values()] + self._retired
            infos = [g.info() for g in groups]
        # what tells about absent workers has locks of its own
        return [
            replace(info, workers=info.workers + tuple(group.absent())) if group.absent is not None else info
            for info, group in zip(infos, groups, strict=True)
        ]

    def measures(self) -> list[tuple[str, int, str, MethodTimes, int]]:
        """Servable, version, method, what was measured, instances that wait: of each method."""
        with self._lock:
            groups = [g for versions in self._groups.values() for g in versions.values()] + self._retired
            return [
                (
                    g.name,
                    g.version,
                    name,
                    method_queue.times,
                    max(len(method_queue.heap) - method_queue.cancelled, 0),
                )
                for g in groups
                for name, method_queue in g.method_queues.items()
                if not method_queue.needs_models
            ]

    def load(self, name: str, version: int, now: float) -> tuple[float, int, int]:
        """How long the oldest instance has waited, how many workers have, how many they could take."""
        with self._lock:
            group = self._groups.get(name, {}).get(version)
            if group is None:
                return 0.0, 0, 0
            waiting = [
                method_queue.heap[0][-1].call.start
                for method_queue in group.method_queues.values()
                if method_queue.head() is not None
            ]
            waiting += [item.call.start for item in group.suspects]
            outstanding = sum(len(p.items) for worker_slot in group.worker_slots for p in worker_slot.batches)
            slots = sum(worker_slot.worker.capacity for worker_slot in group.worker_slots)
            return max((now - start for start in waiting), default=0.0), outstanding, slots

    def ready(self) -> bool:
        """Whether requests are taken: not stopping, and each servable has a worker for what is asked for by
        default.
        """
        with self._lock:
            return (
                not self.stopping
                and bool(self._groups)
                and all(any(g.worker_slots for g in versions.values()) for versions in self._groups.values())
            )

    # ---- what those call who bring workers -----------------------------------------------------------------

    def open(self, name: str, version: int) -> Group:
        """Make a version known: its requests are refused or wait until a worker comes."""
        with self._lock:
            return self._group(name, version)

    def group(self, name: str, version: int) -> Group | None:
        """A version that is known and not retired."""
        with self._lock:
            return self._groups.get(name, {}).get(version)

    def add(self, worker: Worker, *, publish: bool = True) -> None:
        """A worker has come. `publish`: its version may at once be the newest that runs."""
        outbox: Outbox = []
        with self._lock:
            group = self._group(worker.servable, worker.version)
            if worker.has_models or not group.infos:  # others do not know the types of models
                group.learn(worker.infos)
            group.worker_slots.append(WorkerSlot(worker))
            group.seen, group.failed, group.empty_since = True, "", None
            group.published |= publish
            self._pump(group, time.monotonic(), outbox)
            self._wake.set()
        self._sender.send(outbox)

    def publish(self, name: str, version: int) -> None:
        """Let a version be the newest that runs."""
        with self._lock:
            self._group(name, version).published = True

    def fail(self, name: str, version: int, reason: str) -> None:
        """No worker will come for this version: what waits is refused."""
        answers = []
        with self._lock:
            group = self._group(name, version)
            group.failed = reason
            if not group.worker_slots:
                error = self._unavailable(group).error
                answers = self._flush(group, error.code, error.message)
        self._answer(answers)

    def lose(self, worker: Worker, reason: str) -> bool:
        """A worker is gone: what it had is sent to others. False if it was not there any more."""
        outbox: Outbox = []
        answers: list = []
        with self._lock:
            found = self._find(worker)
            if found is None:
                return False
            group, worker_slot = found
            group.worker_slots.remove(worker_slot)
            if not group.worker_slots:
                group.empty_since = time.monotonic()
            if not worker_slot.closing:
                self.lost_workers += 1
            self._take_back(group, worker_slot, reason, answers)
            self._pump(group, time.monotonic(), outbox)
            self._wake.set()
            self._idle.notify_all()
        if not worker_slot.closing:
            log.logger(__name__).warning("worker %s is lost: %s", worker.address, reason)
        self._answer(answers)
        self._sender.send(outbox)
        return True

    def release(self, worker: Worker, drain_seconds: float) -> bool:
        """Give a worker nothing new, wait until it has answered, and forget it. False if it still had work:
        that is then lost and sent to others.
        """
        with self._idle:
            found = self._find(worker)
            if found is None:
                return True
            group, worker_slot = found
            worker_slot.closing = True
            clean = self._idle.wait_for(lambda: not worker_slot.batches, drain_seconds)
            if clean and worker_slot in group.worker_slots:
                group.worker_slots.remove(worker_slot)
                if not group.worker_slots:
                    group.empty_since = time.monotonic()
        if not clean:
            self.lose(worker, "it was removed")
        return clean

    def retire(self, name: str, version: int, drain_seconds: float) -> list[Worker]:
        """Take a version away: no new requests; waits for those it has. Returns its workers, which the caller
        closes.
        """
        with self._idle:
            group = self._groups.get(name, {}).pop(version, None)
            if group is None:
                return []
            if not self._groups[name]:
                del self._groups[name]
            group.retired = True
            self._retired.append(group)
            self._idle.wait_for(lambda: group.idle, drain_seconds)
            self._retired.remove(group)
            answers = self._flush(group, Code.SERVABLE_UNAVAILABLE, "this version has been removed")
            workers = [worker_slot.worker for worker_slot in group.worker_slots]
            group.worker_slots.clear()
        self._answer(answers)
        return workers

    def answered(self, worker: Worker) -> int:
        """How many instances a worker has answered."""
        with self._lock:
            found = self._find(worker)
            return found[1].answered if found else 0

    def stop_taking(self) -> None:
        """Refuse new requests from now on."""
        self.stopping = True

    def drain(self, seconds: float) -> bool:
        """Wait until all requests are answered; whether they were."""
        with self._idle:
            return self._idle.wait_for(
                lambda: all(g.idle for versions in self._groups.values() for g in versions.values()), seconds
            )

    def close(self) -> None:
        """Answer what is left with an error and end the clock's thread."""
        with self._lock:
            self.stopping = True
            self._closed = True
            answers = []
            for group in [g for versions in self._groups.values() for g in versions.values()] + self._retired:
                answers += self._flush(group, Code.STOPPING, "the server has stopped")
        self._wake.set()
        self._answer(answers)
        self._clock.join()

    # ---- admission -----------------------------------------------------------------------------------------

    def _group(self, name: str, version: int) -> Group:
        versions = self._groups.setdefault(name, {})
        group = versions.get(version)
        if group is None:
            group = versions[version] = Group(name, version)
        return group

    def _find(self, worker: Worker) -> tuple[Group, WorkerSlot] | None:
        versions = self._groups.get(worker.servable, {})
        groups = [g for g in (versions.get(worker.version),) if g] + self._retired
        for group in groups:
            for worker_slot in group.worker_slots:
                if worker_slot.worker is worker:
                    return group, worker_slot
        return None

    def _admit(self, request: Request, now: float) -> tuple[Reply | None, Group | None]:
        """Why a request is refused, or the version that answers it."""
        if self.stopping:
            return refused(Code.STOPPING, STOPPING_TEXT), None
        versions = self._groups.get(request.servable)
        if versions is None:
            return refused(Code.NOT_FOUND, f"servable {clip(request.servable)!r} is not served"), None
        if request.version:
            group = versions.get(request.version)
            if group is None:
                text = f"servable {request.servable!r} has no version {clip(request.version)} that runs"
                return refused(Code.NOT_FOUND, text), None
        elif len(versions) == 1:
            (group,) = versions.values()
        else:
            group = max(versions.values(), key=_newest)
        method_queue = group.method_queues.get(request.method)
        if method_queue is None and request.protocol == MODEL_STAGE:
            method_queue = group.method_queues[request.method] = MethodQueue(
                MethodInfo(request.method, (), (), 0), needs_models=True
            )
        if method_queue is None or (method_queue.needs_models and request.protocol != MODEL_STAGE):
            if not group.method_queues or (not group.worker_slots and group.failed):
                return self._unavailable(group), None
            text = f"servable {request.servable!r} has no method {clip(request.method)!r}"
            return refused(Code.NOT_FOUND, text, group.version), None
        if not request.instances:
            return refused(Code.INVALID_INPUTS, "the request has no instances", group.version), None
        if not group.worker_slots and (
            group.failed or (group.empty_since is not None and now - group.empty_since > self.no_worker_s)
        ):
            return self._unavailable(group), None
        room = self.max_enqueued_requests - self.waiting
        if room <= self._waiting_of.get(request.peer, 0) and request.protocol != MODEL_STAGE:
            text = (
                f"{self.waiting} requests wait already (max_enqueued_requests {self.max_enqueued_requests})"
                + (f", {self._waiting_of[request.peer]} of them from this client" if room > 0 else "")
            )
            return refused(Code.TOO_MANY, text, group.version), None
        if request.deadline is not None and request.deadline <= now:
            return refused(Code.DEADLINE, "the deadline has passed", group.version), None
        return None, group

    @staticmethod
    def _unavailable(group: Group) -> Reply:
        why = group.failed or ("its workers are being restarted" if group.seen else "it is being loaded")
        text = f"servable {group.name!r} version {group.version} is not available: {why}"
        return refused(Code.SERVABLE_UNAVAILABLE, text, group.version)

    def _enqueue(self, call: PendingCall, method_queue: MethodQueue, now: float, outbox: Outbox) -> None:
        """Queue the instances that can be served, send what can be sent."""
        group, needed = call.group, method_queue.inputs
        items = []
        for index, instance in enumerate(call.request.instances):
            if type(instance) is not dict:
                continue
            if not needed <= instance.keys():
                call.results[index] = _missing(needed, instance, call.request)
                continue
            item = Item(call, index, instance)
            self._order += 1
            item.order = self._order
            items.append(item)
        call.left = len(items)
        if len(items) == 1 and not method_queue.heap and not group.suspects:
            worker_slot = group.seat_for(now, method_queue.needs_models)
            if worker_slot is not None:
                self._hand_over(worker_slot, method_queue, items, now, outbox)
                return
        if not items:
            return
        method_queue.push(items)
        call.queued = len(items)
        self._count_waiting(call, 1)
        if group.worker_slots:
            self._pump(group, now, outbox)
        else:
            self._wake.set()

    # ---- handing over --------------------------------------------------------------------------------------

    def _pump(self, group: Group, now: float, outbox: Outbox) -> None:
        """Send what waits to workers with free slots."""
        if group.suspects:
            self._pump_suspects(group, now, outbox)
        blocked = None
        while True:
            method_queue = group.next_lane(blocked)
            if method_queue is None:
                return
            worker_slot = group.seat_for(now, method_queue.needs_models)
            if worker_slot is None:
                if not method_queue.needs_models or blocked is not None:
                    return
                blocked = True  # the other methods may have workers
                continue
            group.turns += 1
            method_queue.served = group.turns
            count = min(worker_slot.free, method_queue.chunk)
            batch: list[Item] = []
            while count:
                item = method_queue.pop()
                if item is None:
                    break
                self._unqueue(item.call)
                if batch and batch[0].call is not item.call:
                    self._hand_over(worker_slot, method_queue, batch, now, outbox)
                    batch = []
                batch.append(item)
                count -= 1
            if batch:
                self._hand_over(worker_slot, method_queue, batch, now, outbox)

    def _pump_suspects(self, group: Group, now: float, outbox: Outbox) -> None:
        left = []
        while group.suspects:
            item = group.suspects.popleft()
            if item.call.closed:
                continue
            method_queue = group.method_queues[item.call.request.method]
            worker_slot = group.seat_for_suspect(item, method_queue, now) if now >= item.ready else None
            if worker_slot is None:
                left.append(item)
                if not item.alone:
                    break
                continue
            worker_slot.suspects += 1
            worker_slot.suspect_sent = now
            self._unqueue(item.call)
            self._hand_over(worker_slot, method_queue, [item], now, outbox)
        group.suspects.extendleft(reversed(left))

    def _unqueue(self, call: PendingCall) -> None:
        call.queued -= 1
        if not call.queued:
            self._count_waiting(call, -1)

    def _count_waiting(self, call: PendingCall, change: int) -> None:
        self.waiting += change
        peer = call.request.peer
        if peer:
            count = self._waiting_of.get(peer, 0) + change
            if count:
                self._waiting_of[peer] = count
            else:
                del self._waiting_of[peer]

    def _hand_over(
        self,
        worker_slot: WorkerSlot,
        method_queue: MethodQueue,
        items: list[Item],
        now: float,
        outbox: Outbox,
    ) -> None:
        """Note that a worker gets instances of one call; they are sent when the lock is free."""
        call = items[0].call
        batch = DispatchBatch(worker_slot, method_queue, items, now)
        worker_slot.free -= len(items)
        worker_slot.batches[batch] = None
        times = method_queue.times
        times.sizes.observe(len(items))
        if call.sent is None:
            call.sent = now
            times.queue.observe(now - call.start)
        request = call.request
        keys = tuple([item.order for item in items]) if worker_slot.worker.keeps else ()
        outbox.append(
            (
                worker_slot,
                Work(
                    request.method,
                    [item.instance for item in items],
                    lambda results: self._done(batch, results),
                    call.deadline,
                    request.priority,
                    request.traceparent,
                    keys,
                ),
            )
        )

    # ---- answers -------------------------------------------------------------------------------------------

    def _done(self, batch: DispatchBatch, results: list[Result] | WorkerLost) -> None:
        """A worker has answered."""
        if isinstance(results, WorkerLost):
            worker_slot = batch.worker_slot
            if worker_slot is not None:
                self.lose(worker_slot.worker, results.reason)
            return
        items = batch.items
        outbox: Outbox = []
        finished = None
        now = time.monotonic()
        with self._lock:
            worker_slot = batch.worker_slot
            if worker_slot is None:  # too late: it was sent to another worker
                return
            batch.worker_slot = None
            del worker_slot.batches[batch]
            count = len(items)
            worker_slot.free += count
            worker_slot.answered += count
            if items[0].losses:
                worker_slot.suspects -= 1
            method_queue = batch.method_queue
            took = now - batch.sent
            method_queue.times.run.observe(took)
            method_queue.usual_s = (
                took
                if not method_queue.usual_s
                else method_queue.usual_s + 0.05 * (took - method_queue.usual_s)
            )
            call = items[0].call
            if not call.closed:
                if len(results) == count:
                    for item, result in zip(items, results, strict=True):
                        call.results[item.index] = result
                else:
                    text = f"the worker gave {len(results)} results for {count} instances"
                    for item in items:
                        call.results[item.index] = ServingError(Code.SYSTEM_ERROR, text)
                finished = self._settle(call, count)
            group = call.group
            if method_queue.heap or group.suspects or len(group.method_queues) > 1:
                self._pump(group, now, outbox)
            if not worker_slot.batches and (self.stopping or worker_slot.closing or group.retired):
                self._idle.notify_all()
        if finished is not None:
            finished.done(finished.reply())
        if outbox:
            self._sender.send(outbox)

    def _settle(self, call: PendingCall, count: int) -> PendingCall | None:
        """So many instances of a call have got their result; the call if it was the last."""
        call.left -= count
        if call.left:
            return None
        call.closed = True
        if call.deadline is not None:
            self._timed.discard(call)
        return call

    def _close(self, call: PendingCall) -> None:
        """Nobody waits for this call any more."""
        call.closed = True
        self._timed.discard(call)
        if call.queued:
            self._count_waiting(call, -1)
            call.group.method_queues[call.request.method].forget(call.queued)
            call.queued = 0
        self._idle.notify_all()

    @staticmethod
    def _answer(answers: list[tuple[PendingCall, Reply]]) -> None:
        for call, reply in answers:
            call.done(reply)

    def _fail(self, call: PendingCall, code: Code, text: str) -> tuple[PendingCall, Reply]:
        """Close a call with an error for what is not answered; its caller is told later."""
        error = ServingError(code, text)
        self._close(call)
        if call.left == len(call.results):
            return call, Reply(version=call.group.version, error=error)
        call.results = [error if r is None else r for r in call.results]
        return call, call.reply()

    def _give_up(self, items: list[Item], error: ServingError, answers: list) -> None:
        """Answer instances of one call with an error."""
        call = items[0].call
        for item in items:
            call.results[item.index] = error
        finished = self._settle(call, len(items))
        if finished is not None:
            answers.append((finished, finished.reply()))

    def _flush(self, group: Group, code: Code, text: str) -> list[tuple[PendingCall, Reply]]:
        """Close all calls of a version."""
        items = [
            entry[-1] for method_queue in group.method_queues.values() for entry in method_queue.heap
        ] + list(group.suspects)
        items += [
            item
            for worker_slot in group.worker_slots
            for batch in worker_slot.batches
            for item in batch.items
        ]
        answers = [self._fail(item.call, code, text) for item in items if not item.call.closed]
        group.suspects.clear()
        for method_queue in group.method_queues.values():
            method_queue.clear()
        return answers

    # ---- workers that are lost -----------------------------------------------------------------------------

    def _take_back(self, group: Group, worker_slot: WorkerSlot, reason: str, answers: list) -> None:
        """Queue again what a lost worker had. An instance that had two of them is answered with an error.

        Those that come from a lost worker are sent on one by one. If several of them are with the second one
        nevertheless, it is not known which was to blame: the third one gets them alone.
        """
        suspects, now = worker_slot.suspects, time.monotonic()
        again: list[Item] = []
        for batch in worker_slot.batches:
            batch.worker_slot = None
            call = batch.items[0].call
            if call.closed:
                continue
            if not batch.method_queue.info.retry:
                text = f"the worker was lost ({reason}); the method says that it must not be tried again"
                self._give_up(batch.items, ServingError(Code.WORKER_UNAVAILABLE, text), answers)
                continue
            for item in batch.items:
                item.losses += 1
                if item.losses >= _LOST_TWICE and (suspects == 1 or item.losses > _LOST_TWICE):
                    text = f"two workers were lost with this instance ({reason}); it is not tried again"
                    self._give_up([item], ServingError(Code.SYSTEM_ERROR, text), answers)
                    continue
                item.alone = item.losses >= _LOST_TWICE
                item.ready = now + SUSPECT_PAUSE_S  # by then it is known which others went with this one
                again.append(item)
        again.sort(key=lambda item: item.order)
        for item in again:
            call = item.call
            if not call.queued:
                self._count_waiting(call, 1)
            call.queued += 1
        group.suspects.extend(again)
        worker_slot.batches.clear()

    # ---- the clock -----------------------------------------------------------------------------------------

    def _watch_clock(self) -> None:
        """Deadlines, pauses before something is sent again, versions without workers, workers that hang."""
        pause = None
        while not self._closed:
            self._wake.wait(pause)
            self._wake.clear()
            now = time.monotonic()
            outbox: Outbox = []
            answers: list = []
            hung: list[tuple[Worker, str]] = []
            busy = False
            with self._lock:
                if now >= self._next_deadline:
                    self._expire(now, answers)
                groups = [g for versions in self._groups.values() for g in versions.values()] + self._retired
                for group in groups:
                    if group.suspects:
                        self._pump(group, now, outbox)
                        busy = True
                    if not group.worker_slots and group.empty_since is None and not group.seen:
                        group.empty_since = now
                    if group.suspects or (not group.worker_slots and group.next_lane() is not None):
                        busy = True
                        if not group.worker_slots and now - (group.empty_since or now) > self.no_worker_s:
                            error = self._unavailable(group).error
                            answers += self._flush(group, error.code, error.message)
                    if self.worker_timeout_s and group.worker_slots:
                        hung += self._hung(group, now)
                pause = _TICK_S if busy else _HUNG_TICK_S if self.worker_timeout_s else None
                if self._next_deadline < math.inf:
                    pause = min(pause or math.inf, max(self._next_deadline - now, _TICK_S))
            self._answer(answers)
            self._sender.send(outbox)
            for worker, reason in hung:
                if self.kill is not None:
                    self.kill(worker, reason)
                self.lose(worker, reason)

    def _expire(self, now: float, answers: list) -> None:
        """Answer the calls whose deadline has passed."""
        over = [call for call in self._timed if call.deadline <= now]
        answers += [self._fail(call, Code.DEADLINE, "the deadline has passed") for call in over]
        self._next_deadline = min((call.deadline for call in self._timed), default=math.inf)

    def _hung(self, group: Group, now: float) -> list[tuple[Worker, str]]:
        limit = self.worker_timeout_s
        text = f"it has not answered for {limit} s (worker_timeout_s)"
        return [
            (worker_slot.worker, text)
            for worker_slot in group.worker_slots
            if worker_slot.batches and now - next(iter(worker_slot.batches)).sent > limit
        ]


def _newest(group: Group) -> tuple[bool, bool, int]:
    """Order of the versions of a servable: those that may be asked and can answer, then by number."""
    return group.published and bool(group.worker_slots), group.published, group.version


def _missing(needed: frozenset[str], instance: dict, request: Request) -> ServingError:
    names = ", ".join(repr(name) for name in sorted(needed - instance.keys()))
    text = f"input {names} is missing, servable {request.servable!r}, method {request.method!r}"
    return ServingError(Code.INVALID_INPUTS, text)
