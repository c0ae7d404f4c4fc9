"""The master: takes requests from the protocols and spreads their instances over the workers.

Nothing here blocks or waits. All state changes under one lock; work is handed to workers, and answers to
callers, outside of it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

from mycelia import log
from mycelia_serving.clock import CLOCK, NEVER
from mycelia_serving.cluster.calls import ANSWERED, PendingCall, refused
from mycelia_serving.cluster.codec import MODEL_STAGE
from mycelia_serving.cluster.group import Group
from mycelia_serving.cluster.groups import Groups
from mycelia_serving.cluster.intake import Intake
from mycelia_serving.cluster.open_calls import Answers, OpenCalls
from mycelia_serving.cluster.sending import Burst, Outbox, Sender
from mycelia_serving.cluster.worker_api import Worker, WorkerLost
from mycelia_serving.cluster.worker_slots import DispatchBatch, WorkerSlot
from mycelia_serving.errors import STOPPING_TEXT, Code, ServingError, clip
from mycelia_serving.measures import MethodTimes
from mycelia_serving.request import Call, Reply, Request, Result, ServableInfo

MAX_ENQUEUED_REQUESTS = 10_000
NO_WORKER_S = 8.0  # how long a request waits for a first worker to come back
_TICK_S = 0.02  # how exactly deadlines and pauses are kept
_HUNG_TICK_S = 0.2


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
        self.lost_workers = 0
        self._calls = OpenCalls()
        self._groups = Groups(lambda name, version: Group(name, version, self._calls, self._answered))
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._closed = False
        self._sender = Sender()
        self._alarm = CLOCK.alarm(self._look)

    @property
    def waiting(self) -> int:
        """Requests with instances in a queue."""
        return self._calls.waiting

    # ---- what the protocols call ---------------------------------------------------------------------------

    def submit(self, request: Request, done: Callable[[Reply], None]) -> Call:
        """Answer `request` by calling `done` once, from any thread, perhaps at once. Never raises."""
        now = time.monotonic()
        outbox: Outbox = []
        with self._lock:
            try:
                group = self._admit(request, now)
            except ServingError as error:
                refusal = error
            else:
                refusal = None
                call = PendingCall(self, group, request, done, now)
                group.enqueue(call, now, outbox)
                finished = call.left == 0
                if finished:
                    call.closed = True
                elif call.deadline is not None:
                    self._calls.watch(call)
                    self._alarm.by(max(call.deadline, now + _TICK_S))
                if not group.worker_slots:
                    self._alarm.by(now + _TICK_S)
        if refusal is not None:
            done(refused(refusal.code, refusal.message, getattr(refusal, "version", 0)))
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
                self._calls.close(call)
                self._idle.notify_all()

    def describe(self) -> list[ServableInfo]:
        """What is served now."""
        with self._lock:
            groups = self._groups.all()
            infos = [group.info() for group in groups]
        # what tells about absent workers has locks of its own
        return [
            replace(info, workers=info.workers + tuple(group.absent())) if group.absent is not None else info
            for info, group in zip(infos, groups, strict=True)
        ]

    def measures(self) -> list[tuple[str, int, str, MethodTimes, int]]:
        """Servable, version, method, what was measured, instances that wait: of each method."""
        with self._lock:
            return [
                (group.name, group.version, name, queue.times, queue.waiting())
                for group in self._groups.all()
                for name, queue in group.method_queues.items()
                if not queue.needs_models
            ]

    def load(self, name: str, version: int, now: float) -> tuple[float, int, int]:
        """How long the oldest instance has waited, how many workers have, how many they could take."""
        with self._lock:
            group = self._groups.get(name, version)
            if group is None:
                return 0.0, 0, 0
            queues = [queue for queue in group.method_queues.values() if queue.head() is not None]
            waiting = [queue.heap[0][-1].call.start for queue in queues]
            waiting += [item.call.start for item in group.suspects]
            outstanding = sum(len(batch.items) for slot in group.worker_slots for batch in slot.batches)
            capacity = sum(slot.worker.capacity for slot in group.worker_slots)
            return max((now - start for start in waiting), default=0.0), outstanding, capacity

    def ready(self) -> bool:
        """Whether requests are taken: not stopping, and each servable has a worker for what is asked for by
        default.
        """
        with self._lock:
            return not self.stopping and self._groups.ready()

    # ---- what those call who bring workers -----------------------------------------------------------------

    def open(self, name: str, version: int) -> Group:
        """Make a version known: its requests are refused or wait until a worker comes."""
        with self._lock:
            return self._groups.open(name, version)

    def group(self, name: str, version: int) -> Group | None:
        """A version that is known and not retired."""
        with self._lock:
            return self._groups.get(name, version)

    def add(self, worker: Worker, *, publish: bool = True) -> None:
        """A worker has come. `publish`: its version may at once be the newest that runs."""
        outbox: Outbox = []
        now = time.monotonic()
        with self._lock:
            group = self._groups.open(worker.servable, worker.version)
            if worker.has_models or not group.infos:  # others do not know the types of models
                group.learn(worker.infos)
            slot = WorkerSlot(worker)
            if worker.pulls:
                worker.take_from(Intake(self._lock, group, slot))
            group.worker_slots.add(slot)
            group.seen, group.failed, group.empty_since = True, "", None
            group.published |= publish
            group.dispatch(now, outbox)
            self._alarm.by(now + _TICK_S)
        self._sender.send(outbox)

    def publish(self, name: str, version: int) -> None:
        """Let a version be the newest that runs."""
        with self._lock:
            self._groups.open(name, version).published = True

    def fail(self, name: str, version: int, reason: str) -> None:
        """No worker will come for this version: what waits is refused."""
        answers: Answers = []
        with self._lock:
            group = self._groups.open(name, version)
            group.failed = reason
            if not group.worker_slots:
                error = _unavailable(group)
                self._flush(group, error.code, error.message, answers)
        _answer(answers)

    def lose(self, worker: Worker, reason: str) -> bool:
        """A worker is gone: what it had is sent to others. False if it was not there any more."""
        outbox: Outbox = []
        answers: Answers = []
        now = time.monotonic()
        with self._lock:
            found = self._groups.find(worker)
            if found is None:
                return False
            group, slot = found
            expected = slot.closing
            if not expected:
                self.lost_workers += 1
            group.remove(slot, now)
            group.take_back(slot, reason, now, answers)
            group.dispatch(now, outbox)
            self._alarm.by(now + _TICK_S)
            self._idle.notify_all()
        if not expected:
            log.logger(__name__).warning("worker %s is lost: %s", worker.address, reason)
        _answer(answers)
        self._sender.send(outbox)
        return True

    def release(self, worker: Worker, drain_seconds: float) -> bool:
        """Give a worker nothing new, wait until it has answered, and forget it. False if it still had work:
        that is then lost and sent to others.
        """
        with self._idle:
            found = self._groups.find(worker)
            if found is None:
                return True
            group, slot = found
            slot.closing = True
            clean = self._idle.wait_for(lambda: not slot.batches, drain_seconds)
            if clean and slot in group.worker_slots:
                group.remove(slot, time.monotonic())
        if not clean:
            self.lose(worker, "it was removed")
        return clean

    def retire(self, name: str, version: int, drain_seconds: float) -> list[Worker]:
        """Take a version away: no new requests; waits for those it has. Returns its workers, which the caller
        closes.
        """
        answers: Answers = []
        with self._idle:
            group = self._groups.retire(name, version)
            if group is None:
                return []
            self._idle.wait_for(lambda: group.idle, drain_seconds)
            self._groups.retired.remove(group)
            self._flush(group, Code.SERVABLE_UNAVAILABLE, "this version has been removed", answers)
            workers = [slot.worker for slot in group.worker_slots]
            for slot in group.worker_slots[:]:
                group.remove(slot, time.monotonic())
        _answer(answers)
        return workers

    def answered(self, worker: Worker) -> int:
        """How many instances a worker has answered."""
        with self._lock:
            found = self._groups.find(worker)
            return found[1].answered if found else 0

    def stop_taking(self) -> None:
        """Refuse new requests from now on."""
        self.stopping = True

    def drain(self, seconds: float) -> bool:
        """Wait until all requests are answered; whether they were."""
        with self._idle:
            return self._idle.wait_for(lambda: all(g.idle for g in self._groups.served()), seconds)

    def close(self) -> None:
        """Answer what is left with an error."""
        answers: Answers = []
        with self._lock:
            self.stopping = True
            self._closed = True
            for group in self._groups.all():
                self._flush(group, Code.STOPPING, "the server has stopped", answers)
        self._alarm.cancel()
        _answer(answers)

    # ---- admission -----------------------------------------------------------------------------------------

    def _admit(self, request: Request, now: float) -> Group:
        """The version that answers a request. Errors: ServingError if it is refused."""
        if self.stopping:
            raise ServingError(Code.STOPPING, STOPPING_TEXT)
        group = self._groups.choose(request)
        queue = group.method_queues.get(request.method)
        if (queue is None or queue.needs_models) and group.queue_for(request) is None:
            if not group.method_queues or (not group.worker_slots and group.failed):
                raise _unavailable(group)
            text = f"servable {request.servable!r} has no method {clip(request.method)!r}"
            raise _Refused(Code.NOT_FOUND, text, group)
        if not request.instances:
            raise _Refused(Code.INVALID_INPUTS, "the request has no instances", group)
        if not group.worker_slots and (
            group.failed or (group.empty_since is not None and now - group.empty_since > self.no_worker_s)
        ):
            raise _unavailable(group)
        calls = self._calls
        if calls.waiting and request.protocol != MODEL_STAGE:
            own = calls.waiting_of(request.peer)
            room = self.max_enqueued_requests - calls.waiting
            # What a worker in this process may take at once waits no longer than until it looks.
            room += max((slot.credit for slot in group.worker_slots if slot.worker.pulls), default=0)
            if room <= own:
                most = self.max_enqueued_requests
                text = f"{calls.waiting} requests wait already (max_enqueued_requests {most})"
                raise _Refused(
                    Code.TOO_MANY, text + (f", {own} of them from this client" if room > 0 else ""), group
                )
        if request.deadline is not None and request.deadline <= now:
            raise _Refused(Code.DEADLINE, "the deadline has passed", group)
        return group

    # ---- answers -------------------------------------------------------------------------------------------

    def _answered(self, batch: DispatchBatch, results: list[Result] | WorkerLost) -> None:
        """A worker has answered."""
        if isinstance(results, WorkerLost):
            slot = batch.worker_slot
            if slot is not None:
                self.lose(slot.worker, results.reason)
            return
        outbox: Outbox = []
        finished = None
        now = time.monotonic()
        with self._lock:
            slot = batch.worker_slot
            if slot is None:  # too late: it was sent to another worker
                return
            group = batch.items[0].call.group
            pulls = slot.worker.pulls  # then it looks by itself, now that it has answered
            finished = group.settle(batch, results, now)
            if group.suspects or (not pulls and (batch.method_queue.heap or len(group.method_queues) > 1)):
                group.dispatch(now, outbox)
            if not slot.batches and (self.stopping or slot.closing or group.retired):
                self._idle.notify_all()
        if finished is not None:
            finished.done(finished.reply())
        if outbox:
            self._sender.send(outbox)

    def _flush(self, group: Group, code: Code, text: str, answers: Answers) -> None:
        """Close all calls of a version."""
        group.flush(code, text, answers)
        self._idle.notify_all()

    # ---- at regular times ----------------------------------------------------------------------------------

    def _look(self, now: float) -> float:
        """Deadlines, pauses before something is sent again, versions without workers, workers that hang; when
        to look again.
        """
        outbox: Outbox = []
        answers: Answers = []
        hung: list[tuple[Worker, str]] = []
        busy = False
        with self._lock:
            if self._closed:
                return NEVER
            self._calls.expire(now, answers)
            for group in self._groups.all():
                if group.suspects:
                    group.dispatch(now, outbox)
                    busy = True
                if not group.worker_slots:
                    if group.empty_since is None and not group.seen:
                        group.empty_since = now
                    if group.suspects or group.next_queue(group.method_queues.values()) is not None:
                        busy = True
                        if now - (group.empty_since or now) > self.no_worker_s:
                            error = _unavailable(group)
                            self._flush(group, error.code, error.message, answers)
                elif self.worker_timeout_s:
                    hung += self._hung(group, now)
            if answers:
                self._idle.notify_all()
            again = now + _TICK_S if busy else now + _HUNG_TICK_S if self.worker_timeout_s else NEVER
            again = min(again, max(self._calls.next_deadline, now + _TICK_S))
        _answer(answers)
        self._sender.send(outbox)
        for worker, reason in hung:
            if self.kill is not None:
                self.kill(worker, reason)
            self.lose(worker, reason)
        return again

    def _hung(self, group: Group, now: float) -> list[tuple[Worker, str]]:
        limit = self.worker_timeout_s
        text = f"it has not answered for {limit} s (worker_timeout_s)"
        return [
            (slot.worker, text)
            for slot in group.worker_slots
            if slot.batches and now - next(iter(slot.batches)).sent > limit
        ]


class _Refused(ServingError):
    """A refusal by a version that is known."""

    def __init__(self, code: Code, message: str, group: Group) -> None:
        super().__init__(code, message)
        self.version = group.version


def _unavailable(group: Group) -> _Refused:
    why = group.failed or ("its workers are being restarted" if group.seen else "it is being loaded")
    text = f"servable {group.name!r} version {group.version} is not available: {why}"
    return _Refused(Code.SERVABLE_UNAVAILABLE, text, group)


def _answer(answers: Answers) -> None:
    for call, reply in answers:
        call.done(reply)
