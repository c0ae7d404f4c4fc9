"""Who computes the rows of a node: this thread, worker threads or worker processes, and how many of them."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mycelia.dataset import config, nodes
from mycelia.dataset.execution import rng_streams
from mycelia.dataset.execution.workers import Failure, ThreadPool, Work, in_order
from mycelia.dataset.gates import SyncWaitDataset
from mycelia.engine.base import errors

TRIED_ROWS = 8  # rows computed in the reader's thread before it is decided whether threads are worth it
WORTH_S = 3e-4  # seconds per row from which they are: ten times what handing a row over costs


@dataclass
class PoolSpec:
    """Workers to be started. `optional`: nobody asked for them, so they work only where it gains."""

    work: Work
    count: int
    processes: bool = False
    optional: bool = False
    limits: tuple[int | None, int | None] = (None, None)

    def start(self):
        """The workers."""
        if not self.processes:
            return ThreadPool(self.work, self.count)
        from mycelia.dataset.execution.worker_processes import ProcessPool

        return ProcessPool(self.work, self.count, self.limits)


def pool_spec(node, work: Work, *, processes: bool = False, max_rowsize=None) -> PoolSpec | None:
    """Who computes `work` for a node; None: the thread that reads.

    Processes are asked for with `python_multiprocessing`, and only functions of the user need them: the
    package's own transforms release the interpreter's lock. Without a number of workers the user's functions
    run one after the other, as written; own transforms may get threads, with autotune the user's too.
    """
    run, own = node._run, work.own
    if run is None or config.get_debug_mode() or _waits(node):
        return None
    asked = run.workers.get(id(node)) or node.num_parallel_workers
    count = asked or config.get_num_parallel_workers()
    if processes and not own:
        return PoolSpec(work, count, True, limits=_limits(max_rowsize))
    if asked is None:
        return PoolSpec(work, count, optional=True) if count > 1 and (own or run.tuner is not None) else None
    if count == 1:
        return None if run.tuner is None else PoolSpec(work, 1, optional=True)
    return PoolSpec(work, count)


def _waits(node) -> bool:
    """Whether a gate below lets single rows through: reading ahead of it would wait for ever."""
    return any(isinstance(below, SyncWaitDataset) for below in node.walk())


def own_transform(operation) -> bool:
    """Whether an operation is a transform of this package, all through."""
    inner = getattr(operation, "transforms", ())
    if not type(operation).__module__.startswith("mycelia.dataset."):
        return False
    return all(own_transform(t) for t in inner) if isinstance(inner, (list, tuple)) else True


def _limits(max_rowsize) -> tuple[int | None, int | None]:
    """Bytes of a row to and from a worker; `max_rowsize` is in MB, -1 or None for any size."""
    pair = max_rowsize if isinstance(max_rowsize, list) else [max_rowsize, max_rowsize]
    sizes = [None if size is None or size == -1 else size << 20 for size in pair]
    return sizes[0], sizes[-1]


def title(operations: list) -> str:
    """The operations by name, such as "[Decode, Resize]"."""
    return "[" + ", ".join(getattr(op, "__name__", type(op).__name__) for op in operations) + "]"


def integers(numbers: np.ndarray) -> Iterator[int]:
    """The numbers as ints, made in pieces: an array is smaller than a list of objects."""
    for start in range(0, len(numbers), 4096):
        yield from numbers[start : start + 4096].tolist()


def computed(
    node, work: Work, epoch: int, start: int, items: Iterator, spec: PoolSpec | None = None
) -> Iterator:
    """The results for the items, in their order; the error of one in its turn."""
    spec = spec or pool_spec(node, work)
    if spec is not None and spec.optional:
        spent = 0.0
        for item in itertools.islice(items, TRIED_ROWS):
            began = time.perf_counter()
            result = _one(node, work, epoch, start, item)
            spent += time.perf_counter() - began
            yield result
            start += 1
        if spent < WORTH_S * TRIED_ROWS:
            spec = None
    if spec is None:
        for number, item in enumerate(items, start):
            yield _one(node, work, epoch, number, item)
        return
    pool = node._run.pool(node, spec.start)
    for number, (_, result) in enumerate(in_order(pool, epoch, start, items, node._run.ahead), start):
        if type(result) is Failure:
            raise located(result.error, node, epoch, number, work.unit)
        yield result


def _one(node, work: Work, epoch: int, number: int, item):
    rng_streams.enter(work.base(epoch), number)
    try:
        return work.apply(epoch, number, item)
    except errors.MyceliaError as e:
        raise located(e, node, epoch, number, work.unit) from e.__cause__
    finally:
        rng_streams.leave()


def located(error: BaseException, node, epoch: int, number: int, unit: str = "row") -> BaseException:
    """The error of a row with the row's number and where it comes from."""
    if isinstance(error, errors.MyceliaError):
        origin = node.origin(epoch, number) if unit == "row" else ""
        nodes.at_row(error, f"{unit} {number} of epoch {epoch + 1}", origin)
        error.place = errors.user_place(2)  # a worker's own is nowhere in the user's program
    return error
