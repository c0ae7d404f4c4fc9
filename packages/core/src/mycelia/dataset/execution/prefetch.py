"""The next row is made while the program computes with this one: a thread reads the pipeline ahead.

Order, values and errors are those of a pipeline that is read in turns. It happens only where it gains: the
first rows are read in turns and timed; if they take long, and the program computes long between them, a
thread takes over; if rows do not come faster then, reading goes on in turns. Pipelines with functions of the
user's are always read in turns: in another thread, at another time, they might give something else.
"""

from __future__ import annotations

import queue
import statistics
import threading
import time
from collections.abc import Iterator

from mycelia.dataset import config
from mycelia.dataset.execution.worker_pool import own_transform
from mycelia.dataset.execution.workers import Failure
from mycelia.dataset.user_samplers import Sampler
from mycelia.engine.base import errors

_DEPTH = 2  # rows (batches, most often) that wait
_TRIED = 8  # rows that are timed
_WORTH_S = 5e-4  # a row that is made in less is not worth a thread
_LEAST_OUTSIDE = 0.1  # of the time a row takes: what may be won
_GAIN = 0.97  # of the time in turns: what it must take at most with a thread
_PATIENCE_S = 5.0  # how long the end of a row is waited for
_END = object()


class Ahead:
    """An iterator over `rows`, made by a thread."""

    def __init__(self, rows: Iterator):
        self._made: queue.SimpleQueue = queue.SimpleQueue()
        self._room = threading.Semaphore(_DEPTH)
        self._stopping = threading.Event()
        self._left = threading.Event()  # the thread has left the rows
        self._rows, self._over = rows, False
        threading.Thread(target=self._make, name="mycelia reads ahead", daemon=True).start()

    def _make(self) -> None:
        rows, item = self._rows, None
        try:
            while item is not _END and type(item) is not Failure:
                self._room.acquire()
                if self._stopping.is_set():
                    return
                try:
                    item = next(rows)
                except StopIteration:
                    item = _END
                except BaseException as e:
                    item = Failure(e)
                self._made.put(item)
        finally:
            self._left.set()

    def __iter__(self):
        return self

    def __next__(self):
        if self._over:
            raise StopIteration
        item = self._made.get()
        self._room.release()
        if item is _END:
            self._over = True
            raise StopIteration
        if type(item) is Failure:
            self._over = True
            if isinstance(item.error, errors.MyceliaError):
                item.error.place = errors.user_place(2)  # the thread's is nowhere in the user's program
            raise item.error
        return item

    def _stop(self) -> bool:
        """Whether the thread has left the rows."""
        self._stopping.set()
        self._room.release()
        return self._left.wait(_PATIENCE_S)

    def in_turns(self) -> Iterator:
        """The rest of the rows without the thread, which has ended then."""
        self._stop()
        self._left.wait()
        return self._rest()

    def _rest(self) -> Iterator:
        try:
            while not self._made.empty():
                try:
                    row = next(self)
                except StopIteration:
                    return
                yield row
            yield from self._rows
        finally:
            self.close()

    def close(self) -> None:
        """End the thread, and close the rows."""
        self._over = True
        if self._stop() and hasattr(self._rows, "close"):
            self._rows.close()


class Pace:
    """How the rows of a run are read: in turns at first, and then as it turned out to be quicker."""

    def __init__(self):
        self.settled = False
        self._ahead = False
        self._took: list[tuple[float, float]] = []  # seconds of making a row, and since the row before
        self._in_turns = 0.0  # seconds of a row and what the program does with it
        self._last = 0.0

    def begun(self, rows: Iterator) -> Iterator:
        """The rows of an epoch, as they are to be read."""
        self._last = 0.0
        return Ahead(rows) if self._ahead else rows

    def next(self, rows: Iterator) -> tuple[tuple, Iterator]:
        """The next row, and how to go on."""
        began = time.perf_counter()
        row = next(rows)
        now = time.perf_counter()
        if self._last:
            self._took.append((now - began, now - self._last))
        self._last = now
        if len(self._took) == (2 * _TRIED if self._ahead else _TRIED):
            rows = self._judged(rows)
        return row, rows

    def _judged(self, rows: Iterator) -> Iterator:
        """How to go on after the rows that were timed."""
        recent = self._took[-_TRIED:]
        whole = statistics.median(seconds for _, seconds in recent)
        self._took = []
        if not self._ahead:
            making = statistics.median(seconds for seconds, _ in recent)
            if making < _WORTH_S or whole - making < _LEAST_OUTSIDE * whole:
                self.settled = True
                return rows
            self._ahead, self._in_turns = True, whole
            return Ahead(rows)
        self.settled = True
        if whole <= _GAIN * self._in_turns:
            return rows
        self._ahead = False
        return rows.in_turns()


def pace(root, run) -> Pace | None:
    """How to find out whether a pipeline is read ahead; None for one that is read in turns."""
    if run.watch is not None or run.tuner is not None or config.get_debug_mode():
        return None
    return Pace() if all(map(_own, root.walk())) else None


def _own(node) -> bool:
    """Whether nothing in a node is the user's code, nor waits for the user's program."""
    if not type(node).__module__.startswith(("mycelia.", "mycelia_cache.")) or not node.reads_ahead:
        return False
    sampler = getattr(node, "sampler", None)
    while sampler is not None:
        if isinstance(sampler, Sampler):
            return False
        sampler = getattr(sampler, "child_sampler", None)
    functions = ("per_batch_map", "length_of", "decrypt", "predicate", "callbacks", "python_multiprocessing")
    if any(getattr(node, name, None) for name in functions) or callable(getattr(node, "batch_size", None)):
        return False
    return all(map(own_transform, getattr(node, "operations", ())))
