"""Keeps worker processes alive: starts them, sees them end or fall silent, starts them again."""

from __future__ import annotations

import collections
import functools
import os
import threading
import time
from dataclasses import dataclass, field

from mycelia import log
from mycelia_serving.clock import CLOCK
from mycelia_serving.cluster.child import Child, Settings, Spares
from mycelia_serving.cluster.master import Master
from mycelia_serving.cluster.remote import RemoteWorker

PAUSES_S = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0)  # before a worker is started again that never answered
RESTARTS = 5  # of such workers
RESTARTS_WITHIN_S = 600.0
_QUICKEST_S = 1.0  # a worker that did answer is started again at once, but not more often
_EXIT_S = 10.0  # how long a worker has for its end beyond what it drains


@dataclass
class Slot:
    """A place for a worker, filled again when the worker ends."""

    device_id: int | None
    functions_only: bool
    state: str = "starting"  # "ready", "pausing", "failed", "draining", "ended"
    reason: str = ""
    restarts: int = 0
    child: Child | None = None
    leaving: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None


class Deployment:
    """The worker processes of one version of a servable.

    start_timeout_s: how long a process may take until it is ready; then it is killed.
    """

    def __init__(
        self,
        master: Master,
        settings: Settings,
        *,
        spares: Spares | None = None,
        start_timeout_s: float = 600.0,
    ) -> None:
        self.master = master
        self.settings = settings
        self.name = settings.servable_name
        self.version = settings.version or 1  # the number of what has no folder
        self.slots: list[Slot] = []
        self.published = False
        self.restarts = 0
        self._spares = spares
        self._start_timeout_s = start_timeout_s
        self._changed = threading.Condition()
        self._numbers = collections.Counter()  # of log files

    # ---- from outside --------------------------------------------------------------------------------------

    def start(self, device_ids: list[int | None], extra: int = 0, *, publish: bool = True) -> None:
        """Start a worker per device and extra ones without, and wait until all are ready.

        Errors: RuntimeError with the cause if one fails; nothing is left running then.
        """
        self.master.open(self.name, self.version).absent = self._absent
        new = [self._add(Slot(device_id, False)) for device_id in device_ids]
        try:
            self._wait_ready(new)
            if extra:
                others = [self._add(Slot(None, True)) for _ in range(extra)]
                self._wait_ready(others)
        except RuntimeError:
            self.stop(0.0)
            raise
        if publish:
            self.publish()

    def publish(self) -> None:
        """Let this version answer requests for the newest one."""
        self.published = True
        self.master.publish(self.name, self.version)

    def scale(self, count: int, drain_seconds: float) -> None:
        """Have so many workers with a device: new ones are waited for, old ones drained."""
        with self._changed:
            now = [s for s in self.slots if not s.functions_only and not s.leaving.is_set()]
        if count > len(now):
            devices = sorted({s.device_id for s in now}, key=lambda d: d or 0) or [None]
            new = [self._add(Slot(devices[i % len(devices)], False)) for i in range(count - len(now))]
            try:
                self._wait_ready(new)
            except RuntimeError:
                for slot in new:
                    self._end(slot, 0.0)
                raise
        threads = [
            threading.Thread(target=self._end, args=(slot, drain_seconds), daemon=True)
            for slot in sorted(now, key=lambda s: s.state == "ready")[: max(len(now) - count, 0)]
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def stop(self, drain_seconds: float) -> None:
        """Take the version away when its requests are answered, up to so many seconds; end its workers."""
        with self._changed:
            slots = list(self.slots)
            for slot in slots:
                slot.leaving.set()
        self.master.retire(self.name, self.version, drain_seconds)
        threads = [threading.Thread(target=self._end, args=(slot, 0.0), daemon=True) for slot in slots]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def status(self) -> list[dict]:
        """Each worker's state."""
        with self._changed:
            slots = list(self.slots)
        return [
            {
                "pid": slot.child.process.pid if slot.child is not None else 0,
                "device": slot.device_id,
                "state": slot.state,
                "restarts": slot.restarts,
                "reason": slot.reason,
                "functions_only": slot.functions_only,
            }
            for slot in slots
        ]

    def _absent(self) -> list[dict]:
        """For the master: processes that are no workers now."""
        with self._changed:
            slots = [slot for slot in self.slots if slot.state in ("starting", "pausing", "failed")]
        return [
            {
                "address": "",
                "pid": slot.child.process.pid if slot.child is not None else 0,
                "device": "" if slot.functions_only else str(slot.device_id or 0),
                "state": slot.state,
                "outstanding": 0,
                "answered": 0,
                "restarts": slot.restarts,
                "reason": slot.reason,
            }
            for slot in slots
        ]

    def workers(self) -> list[RemoteWorker]:
        """Those that are registered."""
        with self._changed:
            children = [slot.child for slot in self.slots]
        return [child.worker for child in children if child is not None and child.worker is not None]

    def kill(self, worker: RemoteWorker, reason: str) -> bool:
        """End a worker that does not answer, if it is one of these."""
        with self._changed:
            found = [s for s in self.slots if s.child is not None and s.child.worker is worker]
        for slot in found:
            slot.reason = reason
            slot.child.kill()
        return bool(found)

    # ---- one slot ------------------------------------------------------------------------------------------

    def _add(self, slot: Slot) -> Slot:
        with self._changed:
            self.slots.append(slot)
        slot.thread = threading.Thread(target=self._run, args=(slot,), name="serving-worker", daemon=True)
        slot.thread.start()
        return slot

    def _set(self, slot: Slot, state: str, reason: str = "") -> None:
        with self._changed:
            slot.state = state
            slot.reason = reason
            self._changed.notify_all()

    def _log_file(self, slot: Slot) -> str:
        if not self.settings.log_directory:
            return ""
        os.makedirs(self.settings.log_directory, exist_ok=True)
        kind = f"extra{self.slots.index(slot)}" if slot.functions_only else f"device{slot.device_id or 0}"
        return os.path.join(self.settings.log_directory, f"log_{self.name}_{kind}_version{self.version}.log")

    def _run(self, slot: Slot) -> None:
        """The life of a slot: one process after the other."""
        unproductive: collections.deque[float] = collections.deque()
        ready_once = False
        while not slot.leaving.is_set():
            started = time.monotonic()
            try:
                child = self._spares.take() if self._spares is not None else Child()
            except OSError as e:
                self._set(slot, "failed", f"no process can be started: {e}")
                break
            settings = self.settings.for_worker(slot.device_id, slot.functions_only)
            child.tell({**settings, "log_file": self._log_file(slot)})
            with self._changed:
                slot.child = child
            if slot.leaving.is_set():
                child.kill()
            reader = threading.Thread(
                target=child.read, args=(self.master, lambda c: self._registered(slot, c)), daemon=True
            )
            reader.start()
            late = CLOCK.call_in(self._start_timeout_s, functools.partial(self._give_up, child))
            how = child.wait()
            late.cancel()
            reason = slot.reason if slot.state == "ready" and slot.reason else how
            if child.worker is not None:
                child.worker.lost(reason)
                self.master.lose(child.worker, reason)
            child.link.close()  # a process of its own that outlives it may hold the other end
            child.kill()
            reader.join()
            child.arena.close()
            ready_once |= child.worker is not None
            if slot.leaving.is_set():
                break
            if not ready_once:  # it has never worked: no use in trying
                self._set(slot, "failed", child.failure or f"the worker process {how} before it was ready")
                break
            slot.restarts += 1
            self.restarts += 1
            pause = self._pause(child, unproductive, started, slot)
            if pause is None:
                text = (
                    f"{RESTARTS} workers in a row ended without an answer, the last one {how} {child.failure}"
                )
                self._set(slot, "failed", text.strip())
                break
            log.logger(__name__).warning("worker of %s version %s %s", self.name, self.version, how)
            self._set(slot, "pausing", child.failure or how)
            slot.leaving.wait(pause)
            if not slot.leaving.is_set():
                self._set(slot, "starting", slot.reason)
        if slot.leaving.is_set():
            self._set(slot, "ended")
        with self._changed:
            hopeless = self.slots and all(s.state == "failed" for s in self.slots)
        if hopeless:
            self.master.fail(self.name, self.version, slot.reason)

    def _give_up(self, child: Child) -> None:
        """End a process that does not become a worker."""
        if child.worker is None:
            child.failure = f"the worker process was not ready after {self._start_timeout_s:g} s"
            child.kill()

    @staticmethod
    def _pause(child: Child, unproductive: collections.deque, started: float, slot: Slot) -> float | None:
        """How long to wait before the next start; None: no more."""
        now = time.monotonic()
        if child.worker is not None and child.worker.answered:
            unproductive.clear()
            return max(0.0, _QUICKEST_S - (now - started))
        unproductive.append(now)
        while now - unproductive[0] > RESTARTS_WITHIN_S:
            unproductive.popleft()
        if len(unproductive) > RESTARTS:
            return None
        return PAUSES_S[min(len(unproductive), len(PAUSES_S)) - 1]

    def _registered(self, slot: Slot, child: Child) -> None:
        worker = child.worker
        worker.restarts = slot.restarts
        self.master.add(worker, publish=self.published)
        if slot.leaving.is_set():
            return
        self._set(slot, "ready")

    def _wait_ready(self, slots: list[Slot]) -> None:
        with self._changed:
            while True:
                failed = [s for s in slots if s.state in ("failed", "ended")]
                if failed:
                    raise RuntimeError(failed[0].reason or "the start was interrupted")
                if all(s.state == "ready" for s in slots):
                    return
                self._changed.wait()

    def _end(self, slot: Slot, drain_seconds: float) -> None:
        """Drain one worker and end its process."""
        slot.leaving.set()
        with self._changed:
            slot.state = "draining"
            child = slot.child
        if child is not None:
            if child.worker is not None:
                self.master.release(child.worker, drain_seconds)
                child.worker.close(0.0)
                if slot.thread is not threading.current_thread():
                    slot.thread.join(_EXIT_S)
            child.kill()
        slot.thread.join()
        with self._changed:
            if slot in self.slots:
                self.slots.remove(slot)
