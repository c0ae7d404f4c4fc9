"""Threads that run what waits in the executors, the latest stage first.

What begins is taken from an intake when it can run, or was submitted; what is between two stages waits in
the executors. One lock guards all of it. A thread without work sleeps on a lock of its own, which is cheap
to wake. `submit` wakes at most one; who takes a run wakes another if there is more to do. The clock sees to
what nobody else comes by for: batches that waited long enough, deadlines, functions that hang.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from time import monotonic

from mycelia_serving.clock import CLOCK, NEVER
from mycelia_serving.engine.executors import Executor, FunctionExecutor, Job, Task
from mycelia_serving.errors import Code, ServingError

log = logging.getLogger("mycelia_serving")

TICK_S = 0.05  # how exactly deadlines are kept while instances with deadlines are there
REST_S = 1.0  # its alarm sleeps for good after so long without anything to watch
MAX_INLINE_RUNS = 4  # runs that a thread which brought instances does itself, one after the other
MOST_LOST = 32  # threads stuck in functions whose deadline passed that are replaced by new ones

_LATE = ServingError(Code.DEADLINE, "The deadline passed before the instance was answered")
_STOPPING = ServingError(Code.STOPPING, "The servable is being stopped")


class _Runner:
    """A thread of the scheduler, and the run that it is in."""

    __slots__ = ("lost", "tasks", "thread", "executor", "wake")

    def __init__(self) -> None:
        self.wake = threading.Lock()
        self.wake.acquire()
        self.executor: Executor | None = None
        self.tasks: list[Task] = []
        self.lost = False  # it hangs in a function; another one took its place
        self.thread: threading.Thread | None = None


class Scheduler:
    """Runs tasks through their steps and hands each job its results.

    open: the job and the tasks of a call that was taken from an intake.
    """

    def __init__(
        self,
        name: str,
        executors: list[Executor],
        threads: int,
        open: Callable[[object], tuple[Job, list[Task]]] | None = None,
    ) -> None:
        self.name = name
        self.executors = sorted(executors, key=lambda executor: -executor.depth)
        self.threads = threads
        self.pending = 0  # instances without an answer
        self.lost = 0  # threads that hang in functions
        self.on_run: Callable | None = None  # (executor name, instances, limit, seconds) after each run
        self._open = open
        self._lock = threading.Lock()
        self._idle: list[_Runner] = []
        self._runners: set[_Runner] = set()
        self._timed: set[Job] = set()  # jobs with a deadline
        self._coming = 0  # threads that look for work next: just woken, or handing over answers
        self._inline = _Runner()  # stands for the thread that runs quick models in passing
        self._running_inline = False
        self.runs = 0  # under way
        self._stopped = False
        self._drained = threading.Event()
        self._closing = False
        self._alarm = CLOCK.alarm(self._look)
        self._quiet_since = 0.0

    # ---- coming in -----------------------------------------------------------------------------------------

    def submit(self, job: Job, tasks: list[Task], more: bool = False) -> None:
        """Takes a job whose tasks have entered their first steps. `job.left` is the number of the tasks.

        more: others follow, and then `run_inline`.
        """
        now = monotonic()
        with self._lock:
            self._push(job, tasks, now, now)
            if not more and job.left:
                self._wake_one(now)
        if not job.left:
            _answer([job])

    def _push(self, job: Job, tasks: list[Task], since: float, now: float) -> None:
        """Tasks for their first executors; none if the end has come. Holds the lock."""
        if self._closing:
            for task in tasks:
                job.results[task.index] = _STOPPING
            job.left = 0
            return
        self.pending += len(tasks)
        if job.deadline is not None:
            self._timed.add(job)
            self._alarm.by(now + TICK_S)
        for task in tasks:
            task.step.executor.push(task, since)

    def _take(self, executor: Executor) -> None:
        """Takes in what the intake has for the next run of an executor. Holds the lock before and after."""
        executor.taking = True
        queues, room = executor.queues, executor.room
        self._lock.release()
        calls = []
        for call in executor.intake.take(queues, room):
            job, tasks = self._open(call)
            if tasks:
                calls.append((job, tasks, call.since))
            else:
                _answer([job])
        now = monotonic()
        self._lock.acquire()
        executor.taking = False
        stopped = []
        for job, tasks, since in calls:
            self._push(job, tasks, since, now)
            if not job.left:
                stopped.append(job)
        if stopped:
            self._lock.release()
            _answer(stopped)
            self._lock.acquire()

    def wake(self) -> None:
        """There is more in an intake."""
        with self._lock:
            self._wake_one(monotonic())

    def _wake_one(self, now: float) -> None:
        """Wakes or starts a thread if a run may begin; else tells the clock when one may. Holds the lock."""
        soonest = NEVER
        for executor in self.executors:
            more = bool(executor.queues) and executor.more()
            if more or executor.waiting:
                due = executor.due(now, more)
                if due <= now:
                    if self._coming:
                        self._alarm.by(now + TICK_S)  # unless `done` blocks
                    else:
                        self._add_thread()
                    return
                soonest = min(soonest, due)
        self._alarm.by(soonest)

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
            executor = self._next(now)
            if executor is None:
                self._idle.append(runner)
                lock.release()
                runner.wake.acquire()
                lock.acquire()
                self._coming -= 1
            elif not self._run(runner, executor, now):
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
        if not self._running_inline:
            self._running_inline = True
            for _ in range(MAX_INLINE_RUNS):
                executor = self._next(now)
                if executor is None or not executor.is_quick or self._stopped:
                    break
                self._run(self._inline, executor, now)
                now = monotonic()
            self._running_inline = False
        self._wake_one(now)
        lock.release()

    def _run(self, runner: _Runner, executor: Executor, now: float) -> bool:
        """One run; False if the thread was given up meanwhile. Holds the lock before and after."""
        lock = self._lock
        finished: list[Job] = []
        tasks = executor.take()
        tasks = self._drop_late(tasks, now, finished)
        if tasks:
            executor.active += 1
            self.runs += 1
            executor.began = now
            runner.executor, runner.tasks = executor, tasks
            self._wake_one(now)
            lock.release()
            results = executor.execute(tasks)
            seconds = monotonic() - now
            moves = _advance(tasks, results)
            if self.on_run is not None:
                self.on_run(executor.name, len(tasks), executor.limit, seconds)
            lock.acquire()
            self.runs -= 1
            if runner.lost:
                self.lost -= 1
                return False
            runner.executor, runner.tasks = None, []
            executor.active -= 1
            executor.usual += 0.2 * (seconds - executor.usual)
            least = 1.1 * executor.least  # so that it grows when all runs take longer
            executor.least = least if 0.0 < least < seconds else seconds
            self._settle(tasks, moves, finished)
        if finished:
            self._coming += 1
            lock.release()
            _answer(finished)
            lock.acquire()
            self._coming -= 1
        return True

    def _next(self, now: float) -> Executor | None:
        """Who runs the latest stage that may run, with its instances. Holds the lock before and after."""
        while True:
            soonest = NEVER
            for executor in self.executors:
                more = bool(executor.queues) and executor.more()
                if more or executor.waiting:
                    due = executor.due(now, more)
                    if due <= now:
                        break
                    soonest = min(soonest, due)
            else:
                self._alarm.by(soonest)
                return None
            if not more:
                return executor
            self._take(executor)
            now = monotonic()

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
        """Passes tasks on to their next executors or finishes them. Holds the lock."""
        now = 0.0
        for task, result in zip(tasks, moves):
            if result is not None:
                self._finish(task, result, finished)
            elif task.job.results[task.index] is None:
                now = now or monotonic()
                task.step.executor.push(task, now)

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

    # ---- at regular times ----------------------------------------------------------------------------------

    def _look(self, now: float) -> float:
        """Starts what is due, ends what is late; when to look again."""
        finished: list[Job] = []
        again = NEVER
        with self._lock:
            if self._stopped:
                return NEVER
            for executor in self.executors:
                more = bool(executor.queues) and executor.more()
                if more or executor.waiting:
                    due = executor.due(now, more)
                    if due <= now:
                        self._add_thread()
                        due = now + TICK_S  # if it is still there then, more threads are needed
                    again = min(again, due)
            if self._timed:
                again = min(again, now + TICK_S)
                late = {job for job in self._timed if job.deadline <= now}
                if late:
                    self._end_late(late, finished)
            if again != NEVER:
                self._quiet_since = now
            elif now - self._quiet_since < REST_S:
                again = now + TICK_S  # so that the next request need not wake the clock
        _answer(finished)
        return again

    def _end_late(self, late: set[Job], finished: list[Job]) -> None:
        """Answers jobs whose deadline passed, and replaces threads that only work for such."""
        for executor in self.executors:
            for task in executor.remove(lambda task: task.job in late):
                self._finish(task, _LATE, finished)
        for runner in list(self._runners):
            for task in runner.tasks:
                if task.job in late:
                    self._finish(task, _LATE, finished)
            over = runner.tasks and all(t.job.results[t.index] is not None for t in runner.tasks)
            executor = runner.executor
            is_function = isinstance(executor, FunctionExecutor) and executor.threads > 1
            if over and is_function and self.lost < MOST_LOST:
                log.warning(
                    "the function %s takes longer than its deadline; another thread goes on", executor.name
                )
                runner.lost = True
                runner.tasks = []
                self.lost += 1
                executor.active -= 1
                self._runners.discard(runner)

    # ---- the end -------------------------------------------------------------------------------------------

    def close(self, drain_seconds: float) -> None:
        """Takes nothing more, waits for what is there, then answers the rest and ends the threads."""
        with self._lock:
            self._closing = True
            for executor in self.executors:
                executor.queues = ()
            if not self.pending:
                self._drained.set()
        self._drained.wait(drain_seconds)
        finished: list[Job] = []
        with self._lock:
            self._stopped = True
            for executor in self.executors:
                for task in executor.remove(lambda task: True):
                    self._finish(task, _STOPPING, finished)
            runners = list(self._runners)
            for runner in runners:
                for task in runner.tasks:
                    self._finish(task, _STOPPING, finished)
            for runner in self._idle:
                runner.wake.release()
            self._idle.clear()
        self._alarm.cancel()
        _answer(finished)
        current = threading.current_thread()
        for thread in [r.thread for r in runners if not r.tasks]:
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
