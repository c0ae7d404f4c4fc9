"""Threads that run what waits in the units, the latest stage first.

One lock guards all queues. A thread without work sleeps on a lock of its own, the cheapest way to wake it.
`submit` wakes at most one; who takes a run wakes another if there is more to do. A clock thread sees to
what nobody else comes by for: batches that waited long enough, deadlines, functions that hang.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from time import monotonic

from mycelia_serving.engine.units import FunctionUnit, Job, Task, Unit
from mycelia_serving.errors import Code, ServingError

log = logging.getLogger("mycelia_serving")

TICK_S = 0.05  # how exactly deadlines are kept while instances with deadlines are there
REST_S = 1.0  # the clock sleeps for good after so long without anything to watch
_SOON_S = 0.001  # what is due so little before the clock's next look waits for it
MOST_HELP = 4  # runs that a thread which brought instances does itself, one after the other
MOST_LOST = 32  # threads stuck in functions whose deadline passed that are replaced by new ones

_LATE = ServingError(Code.DEADLINE, "The deadline passed before the instance was answered")
_STOPPING = ServingError(Code.STOPPING, "The servable is being stopped")


class _Runner:
    """A thread of the scheduler, and the run that it is in."""

    __slots__ = ("lost", "tasks", "thread", "unit", "wake")

    def __init__(self) -> None:
        self.wake = threading.Lock()
        self.wake.acquire()
        self.unit: Unit | None = None
        self.tasks: list[Task] = []
        self.lost = False  # it hangs in a function; another one took its place
        self.thread: threading.Thread | None = None


class Scheduler:
    """Runs tasks through their steps and hands each job its results."""

    def __init__(self, name: str, units: list[Unit], threads: int) -> None:
        self.name = name
        self.units = sorted(units, key=lambda unit: -unit.depth)
        self.threads = threads
        self.pending = 0  # instances without an answer
        self.lost = 0  # threads that hang in functions
        self.on_run: Callable | None = None  # (unit name, instances, limit, seconds) after each run
        self._lock = threading.Lock()
        self._idle: list[_Runner] = []
        self._runners: set[_Runner] = set()
        self._timed: set[Job] = set()  # jobs with a deadline
        self._coming = 0  # threads that look for work next: just woken, or handing over answers
        self._helper = _Runner()  # stands for the thread that helps
        self._helping = False
        self._stopped = False
        self._drained = threading.Event()
        self._closing = False
        self._clock_wake = threading.Lock()
        self._clock_wake.acquire()
        self._clock_due = float("inf")
        self._clock: threading.Thread | None = None

    # ---- coming in -----------------------------------------------------------------------------------------

    def submit(self, job: Job, tasks: list[Task], more: bool = False) -> None:
        """Takes a job whose tasks have entered their first steps. `job.left` is the number of the tasks.

        more: others follow, and then `help`.
        """
        now = monotonic()
        with self._lock:
            if self._closing:
                for task in tasks:
                    job.results[task.index] = _STOPPING
                job.left = 0
            else:
                self.pending += len(tasks)
                if job.deadline is not None:
                    self._timed.add(job)
                    self._alarm(now + TICK_S)
                for task in tasks:
                    task.step.unit.push(task, now)
                if not more:
                    self._wake_one(now)
        if not job.left:
            _answer([job])

    def _wake_one(self, now: float) -> None:
        """Wakes or starts a thread if a run may begin; else tells the clock when one may. Holds the lock."""
        soonest = float("inf")
        for unit in self.units:
            if unit.waiting:
                due = unit.due(now)
                if due <= now:
                    if self._coming:
                        self._alarm(now + TICK_S)  # unless `done` blocks
                    else:
                        self._add_thread()
                    return
                soonest = min(soonest, due)
        if soonest != float("inf"):
            self._alarm(soonest)

    def _add_thread(self) -> None:
        """Wakes or starts a thread."""
        if self._idle:
            self._coming += 1
            self._idle.pop().wake.release()
            return
        if len(self._runners) >= self.threads:
            return
        self._coming += 1
        runner = _Runner()
        self._runners.add(runner)
        runner.thread = threading.Thread(
            target=self._work, args=(runner,), name=f"serving-{self.name}", daemon=True
        )
        runner.thread.start()

    # ---- running -------------------------------------------------------------------------------------------

    def _work(self, runner: _Runner) -> None:
        lock = self._lock
        lock.acquire()
        self._coming -= 1
        while not self._stopped:
            now = monotonic()
            unit = self._next(now)
            if unit is None:
                self._idle.append(runner)
                lock.release()
                runner.wake.acquire()
                lock.acquire()
                self._coming -= 1
            elif not self._run(runner, unit, now):
                break
        self._runners.discard(runner)
        lock.release()

    def run_inline(self) -> None:
        """Runs in the calling thread what may begin now and is quick, and leaves the rest to others.

        For a thread that has just brought instances and would only wait for more: waking another one costs
        more than many a model.
        """
        lock = self._lock
        lock.acquire()
        now = monotonic()
        if not self._helping:
            self._helping = True
            for _ in range(MOST_HELP):
                unit = self._next(now)
                if unit is None or not unit.is_quick or self._stopped:
                    break
                self._run(self._helper, unit, now)
                now = monotonic()
            self._helping = False
        self._wake_one(now)
        lock.release()

    def _run(self, runner: _Runner, unit: Unit, now: float) -> bool:
        """One run of a unit; False if the thread was given up meanwhile. Holds the lock before and after."""
        lock = self._lock
        finished: list[Job] = []
        tasks = unit.take()
        tasks = self._drop_late(tasks, now, finished)
        if tasks:
            unit.active += 1
            unit.began = now
            runner.unit, runner.tasks = unit, tasks
            self._wake_one(now)
            lock.release()
            results = unit.execute(tasks)
            seconds = monotonic() - now
            moves = _advance(tasks, results)
            if self.on_run is not None:
                self.on_run(unit.name, len(tasks), unit.limit, seconds)
            lock.acquire()
            if runner.lost:
                self.lost -= 1
                return False
            runner.unit, runner.tasks = None, []
            unit.active -= 1
            unit.usual += 0.2 * (seconds - unit.usual)
            least = 1.1 * unit.least  # so that it grows when all runs take longer
            unit.least = least if 0.0 < least < seconds else seconds
            self._settle(tasks, moves, finished)
        if finished:
            self._coming += 1
            lock.release()
            _answer(finished)
            lock.acquire()
            self._coming -= 1
        return True

    def _next(self, now: float) -> Unit | None:
        """The unit of the latest stage that may run."""
        soonest = float("inf")
        for unit in self.units:
            if unit.waiting:
                due = unit.due(now)
                if due <= now:
                    return unit
                soonest = min(soonest, due)
        if soonest != float("inf"):
            self._alarm(soonest)
        return None

    def _drop_late(self, tasks: list[Task], now: float, finished: list[Job]) -> list[Task]:
        """Those that somebody still waits for; the others get their answer."""
        for task in tasks:
            if task.job.deadline is not None:
                break
        else:
            return tasks
        kept = []
        for task in tasks:
            job = task.job
            if job.results[task.index] is not None:
                continue
            if job.deadline is not None and job.deadline <= now:
                self._finish(task, _LATE, finished)
            else:
                kept.append(task)
        return kept

    def _settle(self, tasks: list[Task], moves: list, finished: list[Job]) -> None:
        """Passes tasks on to their next units or finishes them. Holds the lock."""
        now = 0.0
        for task, result in zip(tasks, moves):
            if result is not None:
                self._finish(task, result, finished)
            elif task.job.results[task.index] is None:
                now = now or monotonic()
                task.step.unit.push(task, now)

    def _finish(self, task: Task, result: object, finished: list[Job]) -> None:
        job = task.job
        if job.results[task.index] is not None:
            return  # its deadline passed while it ran
        job.results[task.index] = result
        job.left -= 1
        self.pending -= 1
        if not job.left:
            finished.append(job)
            if job.deadline is not None:
                self._timed.discard(job)
            if not self.pending and self._closing:
                self._drained.set()

    # ---- the clock -----------------------------------------------------------------------------------------

    def _alarm(self, due: float) -> None:
        """Sees to it that the clock looks by at this time. Holds the lock."""
        if due > self._clock_due - _SOON_S:
            return
        self._clock_due = due
        if self._clock is None:
            name = f"serving-{self.name}-clock"
            self._clock = threading.Thread(target=self._watch, name=name, daemon=True)
            self._clock.start()
        elif self._clock_wake.locked():
            self._clock_wake.release()

    def _watch(self) -> None:
        lock = self._lock
        quiet_since = monotonic()
        while True:
            finished: list[Job] = []
            with lock:
                if self._stopped:
                    return
                now = monotonic()
                due = self._look(now, finished)
                if due != float("inf"):
                    quiet_since = now
                elif now - quiet_since < REST_S:
                    due = now + TICK_S  # so that the next request need not wake it
                self._clock_due = due
            if finished:
                _answer(finished)
            wait = due - monotonic()
            if due == float("inf"):
                self._clock_wake.acquire()
            elif wait > 0:
                self._clock_wake.acquire(timeout=wait)

    def _look(self, now: float, finished: list[Job]) -> float:
        """Starts what is due, ends what is late; when to look again."""
        again = float("inf")
        for unit in self.units:
            if unit.waiting:
                due = unit.due(now)
                if due <= now:
                    self._add_thread()
                    due = now + TICK_S  # if it is still there then, more hands are needed
                again = min(again, due)
        if self._timed:
            again = min(again, now + TICK_S)
            late = {job for job in self._timed if job.deadline <= now}
            if late:
                self._end_late(late, finished)
        return again

    def _end_late(self, late: set[Job], finished: list[Job]) -> None:
        """Answers jobs whose deadline passed, and replaces threads that only work for such."""
        for unit in self.units:
            for task in unit.remove(lambda task: task.job in late):
                self._finish(task, _LATE, finished)
        for runner in list(self._runners):
            for task in runner.tasks:
                if task.job in late:
                    self._finish(task, _LATE, finished)
            over = runner.tasks and all(t.job.results[t.index] is not None for t in runner.tasks)
            unit = runner.unit
            if over and isinstance(unit, FunctionUnit) and unit.threads > 1 and self.lost < MOST_LOST:
                log.warning(
                    "the function %s takes longer than its deadline; another thread goes on", unit.name
                )
                runner.lost = True
                runner.tasks = []
                self.lost += 1
                unit.active -= 1
                self._runners.discard(runner)

    # ---- the end -------------------------------------------------------------------------------------------

    def close(self, drain_seconds: float) -> None:
        """Takes nothing more, waits for what is there, then answers the rest and ends the threads."""
        with self._lock:
            self._closing = True
            if not self.pending:
                self._drained.set()
        self._drained.wait(drain_seconds)
        finished: list[Job] = []
        with self._lock:
            self._stopped = True
            for unit in self.units:
                for task in unit.remove(lambda task: True):
                    self._finish(task, _STOPPING, finished)
            runners = list(self._runners)
            for runner in runners:
                for task in runner.tasks:
                    self._finish(task, _STOPPING, finished)
            for runner in self._idle:
                runner.wake.release()
            self._idle.clear()
            if self._clock_wake.locked():
                self._clock_wake.release()
        _answer(finished)
        current = threading.current_thread()
        for thread in [r.thread for r in runners if not r.tasks] + [self._clock]:
            if thread is not None and thread is not current:
                thread.join(1.0)


def _advance(tasks: list[Task], results: list) -> list:
    """Writes the results of a run into its tasks: per task its final result, or None if it goes on."""
    moves: list = []
    for task, result in zip(tasks, results):
        if isinstance(result, ServingError):
            moves.append(result)
            continue
        step = task.step
        for place, value in zip(step.outputs, result):
            task.values[place] = value
        following = step.next
        moves.append(task.result() if following is None else task.enter(following))
    return moves


def _answer(jobs: list[Job]) -> None:
    for job in jobs:
        try:
            job.done(job.results)
        except Exception:
            log.exception("an answer could not be handed over")
