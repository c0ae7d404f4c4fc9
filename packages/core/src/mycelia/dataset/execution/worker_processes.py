"""Worker processes of a pipeline: for Python functions that hold the interpreter's lock.

Each worker has a channel of its own and gets jobs in turn. It ends when its reader does, however that ends:
it looks every half second whether its parent is still there. Its memory has no name, so none is left behind.
"""

from __future__ import annotations

import contextlib
import faulthandler
import heapq
import multiprocessing
import os
import pickle
import random
import select
import signal
import tempfile
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterable

import numpy as np

from mycelia.dataset import config
from mycelia.dataset.execution import rng_streams
from mycelia.dataset.execution.shared_rows import Channel, stacked, unstacked
from mycelia.dataset.execution.workers import Failure, Job, Stats, Work
from mycelia.engine.base import errors, log

_LOOK_S = 0.5  # between two looks of a worker at its parent
_CHECKED_ROWS = 16  # of a worker, after which only every 16th is looked at for use of the global generators
_MEMORY = 256 << 20  # bytes of segments that all workers of a node may use for the rows on their way
_FEWEST, _MOST = 2, 64  # jobs on their way per worker
_ALIVE_S = 1.0  # between two looks of the reader at a worker whose end nothing announces

_connections: weakref.WeakSet = weakref.WeakSet()  # this process's ends, which its next worker must close


class ProcessPool:
    """Processes that compute jobs. `limits`: bytes of a row to and from a worker, None for any number."""

    kind = "process"

    def __init__(self, work: Work, count: int, limits: tuple[int | None, int | None] = (None, None)):
        self.work, self.count = work, count
        self.closed = self.warned = False
        self.stats = Stats()
        self._limits, self._shared = limits, config.get_enable_shared_mem()
        self._method = config.get_multiprocessing_start_method()
        self._turn = 0
        self._workers: list[_Worker] = []
        try:
            for _ in range(count):
                self._workers.append(_Worker(self, len(self._workers)))
        except BaseException:
            self.close()
            raise

    def pids(self) -> list[int]:
        """Process ids of the workers."""
        return [worker.process.pid for worker in self._workers]

    def submit(self, epoch: int, number: int, items: list) -> Job:
        """Hand items over to the worker whose turn it is."""
        worker = self._workers[self._turn % len(self._workers)]
        self._turn += 1
        job = Job(epoch, number, items)
        while len(worker.jobs) >= self._slots(worker):
            worker.receive()
        worker.give(job)
        return job

    def room(self) -> bool:
        """Whether a job can be handed over without waiting."""
        worker = self._workers[self._turn % len(self._workers)]
        return len(worker.jobs) < self._slots(worker) or worker.channel.connection.poll()

    def is_ready(self, job: Job) -> bool:
        """Whether the results of a job are there."""
        return job.results is not None or (job is job.worker.jobs[0] and job.worker.channel.connection.poll())

    def _slots(self, worker: _Worker) -> int:
        if not self._shared:  # a pipe takes a large row only while the other end reads
            return 1
        largest = max(worker.channel.largest_sent, worker.channel.largest_received, 1)
        return max(_FEWEST, min(_MOST, _MEMORY // (2 * largest * len(self._workers))))

    def wait(self, job: Job) -> list:
        """The results of a job."""
        while job.results is None:
            job.worker.receive()
        return job.results

    def resize(self, count: int) -> None:
        """Work with another number of processes from the next job on."""
        while len(self._workers) > count:
            if self._workers[-1].jobs:
                return  # its results are still wanted: tried again with the next decision
            self._workers.pop().close()
            self.count = len(self._workers)
        while len(self._workers) < count:
            self._workers.append(_Worker(self, len(self._workers)))
            self.count = len(self._workers)

    def forget(self, jobs: Iterable[Job]) -> None:
        """These results are not wanted any more: they are dropped when they come."""
        for job in jobs:
            job.items = []

    def close(self) -> None:
        """End all processes."""
        self.closed = True
        workers, self._workers = self._workers, []
        for worker in workers:
            worker.close()


class _Worker:
    """A process, seen from its reader."""

    def __init__(self, pool: ProcessPool, index: int):
        self.pool, self.index = pool, index
        self.jobs: deque[Job] = deque()
        self._free = list(range(_MOST))  # a heap: few segments are used again and again
        method = multiprocessing.get_context(pool._method)
        ours, theirs = method.Pipe()
        self._stacks = tempfile.TemporaryFile() if pool._method == "fork" else None
        inherited = [*_connections, ours] if pool._method == "fork" else []
        self.process = method.Process(
            target=_serve,
            args=(theirs, inherited, pool.work, os.getpid(), pool._shared, self._stacks),
            name=f"mycelia-{pool.work.title}-{index}",
            daemon=True,
        )
        try:
            self.process.start()
        except (
            pickle.PicklingError,
            AttributeError,
            TypeError,
            OSError,
            ValueError,
        ) as e:  # what cannot be pickled for 'spawn'
            ours.close()
            raise errors.runtime_error(
                pool.work.owner, f"a worker process of {pool.work.title} cannot be started: {e}",
                hint="with the start method 'spawn' functions must be defined at the top of a module",
            ) from e  # fmt: skip
        finally:
            theirs.close()
        _connections.add(ours)
        self.channel = Channel(ours, pool._shared)
        self._poll = select.poll()
        self._poll.register(ours.fileno(), select.POLLIN)
        self._poll.register(self.process.sentinel, select.POLLIN)

    def give(self, job: Job) -> None:
        """Send a job."""
        job.worker, job.slot = self, heapq.heappop(self._free)
        try:
            self.channel.send((job.slot, job.epoch, job.number, stacked(job.items)), job.slot)
        except OSError:
            raise self._died() from None
        self.jobs.append(job)

    def receive(self) -> None:
        """Take the next results."""
        begun, reports = time.monotonic(), 1
        while not (events := self._poll.poll(_ALIVE_S * 1000)):
            if self.process.exitcode is not None:
                raise self._died()
            waited = time.monotonic() - begun
            if waited >= reports * config.get_multiprocessing_timeout_interval():
                reports += 1
                if config.get_enable_watchdog():
                    self._report(waited)
        # Results that a process sent before it died are still good.
        if all(fd == self.process.sentinel for fd, _ in events) and not self.channel.connection.poll():
            raise self._died()
        try:
            self._take()
        except (EOFError, ConnectionError):
            raise self._died() from None

    def _take(self) -> None:
        results, seconds = self.channel.receive()
        job = self.jobs.popleft()
        heapq.heappush(self._free, job.slot)
        job.results, job.seconds = unstacked(results), seconds
        if not self.pool.warned:
            self._look_at_sizes()

    def _look_at_sizes(self) -> None:
        sizes = self.channel.largest_sent, self.channel.largest_received
        if any(limit is not None and size > limit for size, limit in zip(sizes, self.pool._limits)):
            self.pool.warned = True
            log.logger("mycelia.dataset").warning(
                "%ss of %s are larger than max_rowsize: memory for them is made as they need it",
                self.pool.work.unit, self.pool.work.title,
            )  # fmt: skip

    def _name(self) -> str:
        return f"worker process {self.process.pid} ({self.index + 1} of {self.pool.count})"

    def _doing(self) -> str:
        return f"{self.pool.work.unit} {self.jobs[0].rows()}" if self.jobs else "nothing"

    def _report(self, seconds: float) -> None:
        log.logger("mycelia.dataset").warning(
            "%s of %s has given nothing for %.0f s; it computes %s\n%s",
            self._name(), self.pool.work.title, seconds, self._doing(), self._stack(),
        )  # fmt: skip

    def _stack(self) -> str:
        """Where the process is, as it tells itself; "" if it has not come so far that it can."""
        if self._stacks is None or not (start := self._stacks.seek(0, os.SEEK_END)):
            return ""
        os.kill(self.process.pid, signal.SIGUSR1)
        for _ in range(20):
            time.sleep(0.1)
            if os.fstat(self._stacks.fileno()).st_size > start:
                break
        time.sleep(0.1)  # for the rest of it
        self._stacks.seek(start)
        return self._stacks.read().decode(errors="replace")

    def _died(self) -> BaseException:
        self.process.join(1)
        with contextlib.suppress(EOFError, OSError):
            while self.jobs and self.channel.connection.poll():
                self._take()
        code, doing, name = self.process.exitcode, self._doing(), self._name()
        how = "ended" if code is None else f"ended with exit code {code}"
        if code is not None and code < 0:
            how = f"was killed by {signal.Signals(-code).name}"
        hint = "memory may have run out" if code == -signal.SIGKILL else ""
        work = self.pool.work
        self.pool.close()
        return errors.error(
            errors.MyceliaRuntimeError, work.owner,
            f"{name} of {work.title} {how} while it had {doing}", hint=hint,
        )  # fmt: skip

    def close(self) -> None:
        """End the process, whatever it does."""
        self.channel.close()
        if self.process.pid is not None and self.process._parent_pid == os.getpid():
            self.process.terminate()
            self.process.join(1)
            if self.process.exitcode is None:
                self.process.kill()
                self.process.join()
            self.process.close()
        if self._stacks is not None:
            self._stacks.close()


# ---- in the worker -----------------------------------------------------------------------------------------


def _serve(connection, inherited, work: Work, parent: int, shared: bool, stacks) -> None:
    for other in inherited:
        other.close()
    _connections.clear()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the reader's, which then ends its workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if stacks is not None:
        faulthandler.register(signal.SIGUSR1, stacks, all_threads=True)
        os.write(stacks.fileno(), b"stacks:\n")
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    channel, seeds = Channel(connection, shared), _Seeds()
    while True:
        try:
            slot, epoch, number, items = channel.receive()
        except (EOFError, OSError):
            return
        start, results = time.perf_counter(), []
        for i, item in enumerate(unstacked(items), number):
            seeds.before(work.base(epoch), i)
            results.append(work(epoch, i, item))
            seeds.after()
        seconds = time.perf_counter() - start
        try:
            _send(channel, slot, results, seconds, work)
        except OSError:
            return


def _send(channel: Channel, slot: int, results: list, seconds: float, work: Work) -> None:
    try:
        channel.send((stacked(results), seconds), slot)
    except OSError:
        raise
    except Exception as e:  # pickle raises whatever the objects of a user raise
        text = f"the result of {work.title} cannot be sent to another process: {type(e).__name__}: {e}"
        failure = Failure(errors.runtime_error(work.owner, text))
        channel.send(([failure] * len(results), seconds), slot)


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_S)
    os._exit(1)


class _Seeds:
    """Seeds `random` and `numpy.random` for each row, for functions that draw from them: workers that were
    forked alike would all draw the same. Seeding costs as much as many a row, so a function that draws
    nothing for its first rows is looked at more rarely.
    """

    def __init__(self):
        self._rows, self._used, self._looking = 0, False, False

    def before(self, base: int, row: int) -> None:
        self._rows += 1
        self._looking = self._rows <= _CHECKED_ROWS or self._rows % _CHECKED_ROWS == 0
        if self._used or self._looking:
            key = rng_streams.row_key(base, row)
            random.seed(key)
            np.random.seed(key & 0xFFFFFFFF)

    def after(self) -> None:
        if self._looking and not self._used:  # a generator that was just seeded stands at its end, 624
            numpys = np.random.get_state(legacy=False)["state"]["pos"]
            self._used = numpys != 624 or random.getstate()[1][-1] != 624
