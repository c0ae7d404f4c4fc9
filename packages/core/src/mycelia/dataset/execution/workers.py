"""Worker threads of a pipeline, and results in the order of the rows whatever order they were computed in.

Threads help where the work releases the interpreter's lock: native transforms, NumPy on large arrays, files.
"""

from __future__ import annotations

import itertools
import queue
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator

from mycelia.dataset import config, nodes
from mycelia.dataset.execution import rng_streams
from mycelia.engine.base import errors, log

_JOB_SECONDS = 5e-4  # a job of at least this long hides what handing it over costs (about 20 us)
_MOST_ROWS = 256  # of one job, however quick they are


class Failure:
    """A row that could not be computed: its error, which is raised when its turn comes."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException):
        self.error = error

    def __reduce__(self):
        return Failure, (self.error,)


class Work:
    """What the workers of a node do with an item: ``apply(epoch, number, item)``, with the row's random
    numbers. `title` names it in messages, such as "map [Decode, Resize]"; `unit` says what an item is.
    """

    unit = "row"
    own = False  # whether all of it is this package's, which threads do not disturb

    def __init__(self, owner: str, title: str, seed: int, salt: int):
        self.owner, self.title = owner, title
        self._seed, self._salt = seed, salt
        self._epoch, self._base = -1, 0

    def apply(self, epoch: int, number: int, item):
        """The result of one item."""
        raise errors.error(errors.NotSupportedError, self.owner, "apply(epoch, number, item) is not defined")

    def base(self, epoch: int) -> int:
        """What the keys of random numbers have in common in an epoch."""
        if epoch != self._epoch:
            # The base first: another thread that sees the new epoch must not see the old base.
            self._base = rng_streams.base_key(self._seed, epoch, self._salt)
            self._epoch = epoch
        return self._base

    def __call__(self, epoch: int, number: int, item):
        """The result, or a `Failure`."""
        rng_streams.enter(self.base(epoch), number)
        try:
            return self.apply(epoch, number, item)
        except errors.MyceliaError as e:
            return Failure(e)
        except Exception as e:
            return Failure(nodes.failed(self.owner, self.title, e))
        finally:
            rng_streams.leave()


class Job:
    """Some items for one worker."""

    __slots__ = ("done", "epoch", "items", "number", "results", "seconds", "slot", "thread", "worker")

    def __init__(self, epoch: int, number: int, items: list):
        self.epoch, self.number, self.items = epoch, number, items
        self.results: list | None = None
        self.seconds = 0.0
        self.thread = self.worker = self.slot = None
        self.done = threading.Lock()
        self.done.acquire()

    def rows(self) -> str:
        """Which rows these are, for messages."""
        last = self.number + len(self.items) - 1
        return f"{self.number}" if last == self.number else f"{self.number} to {last}"


class Stats:
    """Figures of workers: seconds that jobs took and that the reader waited, and how full the queue was."""

    def __init__(self):
        self.busy = self.waited = 0.0
        self.jobs = self.ready = self.asked = 0

    @property
    def fill(self) -> float:
        """Which part of the items under way was ready when the reader asked, from 0 to 1."""
        return self.ready / self.asked if self.asked else 0.0

    def copy(self) -> Stats:
        """The figures as they are now."""
        clone = Stats()
        clone.__dict__.update(self.__dict__)
        return clone


class ThreadPool:
    """Threads that compute jobs; they start with the first job."""

    kind = "thread"

    def __init__(self, work: Work, count: int):
        self.work, self.count = work, count
        self.closed, self.stats = False, Stats()
        self._jobs: queue.SimpleQueue = queue.SimpleQueue()
        self._threads = 0

    def submit(self, epoch: int, number: int, items: list) -> Job:
        """Hand items over."""
        while self._threads < self.count:
            self._threads += 1
            threading.Thread(
                target=_serve,
                args=(self._jobs, self.work),
                name=f"mycelia {self.work.title} {self._threads}",
                daemon=True,
            ).start()
        job = Job(epoch, number, items)
        self._jobs.put(job)
        return job

    def room(self) -> bool:
        """Whether a job can be handed over without waiting."""
        return True

    def is_ready(self, job: Job) -> bool:
        """Whether the results of a job are there."""
        return not job.done.locked()

    def resize(self, count: int) -> None:
        """Work with another number of threads."""
        for _ in range(self._threads - count):
            self._jobs.put(None)
        self._threads, self.count = min(self._threads, count), count

    def wait(self, job: Job) -> list:
        """The results of a job. Every `multiprocessing_timeout_interval` seconds a stuck worker is named."""
        if not job.done.acquire(blocking=False):
            while not job.done.acquire(timeout=config.get_multiprocessing_timeout_interval()):
                if config.get_enable_watchdog():
                    self._report(job)
        return job.results

    def _report(self, job: Job) -> None:
        frame = sys._current_frames().get(job.thread)
        stack = "".join(traceback.format_stack(frame)) if frame else "  no thread has begun it\n"
        log.logger("mycelia.dataset").warning(
            "a worker thread of %s has given nothing for %s s; it computes %s %s at\n%s",
            self.work.title, config.get_multiprocessing_timeout_interval(), self.work.unit, job.rows(), stack,
        )  # fmt: skip

    def forget(self, jobs: Iterable[Job]) -> None:
        """These results are not wanted any more."""
        for job in jobs:
            job.items = []

    def close(self) -> None:
        """End the threads once they are done with what they have begun."""
        self.closed = True
        for _ in range(self._threads):
            self._jobs.put(None)
        self._threads = 0


def _serve(jobs: queue.SimpleQueue, work: Work) -> None:
    while (job := jobs.get()) is not None:
        job.thread = threading.get_ident()
        start = time.perf_counter()
        try:
            job.results = [work(job.epoch, job.number + i, item) for i, item in enumerate(job.items)]
        except BaseException as e:  # SystemExit of a user's function must not leave the reader waiting
            job.results = [Failure(e)] * len(job.items)
        job.seconds = time.perf_counter() - start
        job.done.release()


def in_order(
    pool, epoch: int, start: int, items: Iterable, ahead: Callable[[int, int], int]
) -> Iterator[tuple[object, object]]:
    """Pairs of an item and its result, in the items' order; at most ``ahead(workers, items of a job)`` items
    are under way.

    An error of `items` comes after the results of those before it.
    """
    items, broken = iter(items), None
    pending: deque[Job] = deque()
    number, under_way, size, per_item = start, 0, 1, 1.0
    allowed = pool.count  # grows with every job, so that the first result does not wait for all items
    try:
        while True:
            limit = min(allowed, ahead(pool.count, size))
            chunk_size = max(1, min(size, limit // (2 * pool.count)))
            while broken is None and (under_way < limit or not pending) and (not pending or pool.room()):
                chunk = []
                try:
                    for item in itertools.islice(items, chunk_size):
                        chunk.append(item)
                except Exception as e:
                    broken = e
                else:
                    if not chunk:
                        broken = StopIteration()
                if chunk:
                    pending.append(pool.submit(epoch, number, chunk))
                    number += len(chunk)
                    under_way += len(chunk)
            if not pending:
                break
            job = pending[0]
            _note(pool, pending)
            began = time.perf_counter()
            results = pool.wait(job)
            pool.stats.waited += time.perf_counter() - began
            pool.stats.busy += job.seconds
            pending.popleft()
            taken, under_way = job.items, under_way - len(job.items)
            # The least of the last jobs: time spent waiting for the interpreter's lock is no work.
            per_item = max(1e-7, min(job.seconds / len(taken), 1.5 * per_item))
            size = min(_MOST_ROWS, 2 * size, max(1, round(_JOB_SECONDS / per_item)))
            allowed = min(4 * allowed, 1 << 20)
            del job
            yield from zip(taken, results)
    finally:
        pool.forget(pending)
    if not isinstance(broken, StopIteration):
        raise broken


def _note(pool, pending: deque[Job]) -> None:
    stats = pool.stats
    stats.jobs += 1
    if stats.jobs % 8 == 1:  # enough to know how full the queue is
        stats.asked += len(pending)
        stats.ready += sum(map(pool.is_ready, pending))
