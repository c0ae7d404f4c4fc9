"""One reading of a pipeline by an iterator: its seed, its workers, and what must be given back at its end."""

from __future__ import annotations

import weakref
from collections.abc import Callable

from mycelia.dataset import config


class Run:
    """What the nodes of one iterator share. `seed`: of all orders and random transforms of this run;
    `shared_seed`: of the orders of rows that several processes share out.
    """

    def __init__(self, seed: int | None = None, shared_seed: int | None = None):
        self.seed = config.stream_seed() if seed is None else seed
        self.shared_seed = config.get_seed() if shared_seed is None else shared_seed
        self.prefetch = config.get_prefetch_size()
        self._strict = self.prefetch != config.default("prefetch_size")
        self.workers: dict[int, int] = {}  # node -> workers that autotune chose
        self.watch = None  # a `profiling.Watch` that measures this run, or None
        self.tuner = None  # an `autotune.Tuner` that changes it while it runs, or None
        self.reader = None  # an `ahead.Ahead` that reads this run, or None
        self._pools: dict[int, object] = {}
        self._at_close: list[Callable[[], None]] = []
        self.closed = False

    def own(self, holder) -> None:
        """Close when `holder` goes, or at the latest when the interpreter ends."""
        weakref.finalize(holder, self.close)

    def at_close(self, function: Callable[[], None]) -> None:
        """Call a function when the run ends."""
        self._at_close.append(function)

    def pool(self, node, make: Callable[[], object]):
        """The workers of a node: made when they are first needed, and kept from epoch to epoch."""
        pool = self._pools.get(id(node))
        if pool is None or pool.closed:
            pool = self._pools[id(node)] = make()
        return pool

    def ahead(self, workers: int, job: int) -> int:
        """How many rows may be under way. Jobs of many quick rows may need more than the default prefetch
        size to keep all workers busy; one that was set holds.
        """
        rows = workers * self.prefetch
        return rows if self._strict else max(rows, 2 * workers * job)

    def pool_of(self, node):
        """The workers that a node has now, or None."""
        return self._pools.get(id(node))

    def epoch_ended(self) -> None:
        """The last row of an epoch has left the pipeline."""
        if self.tuner is not None:
            self.tuner.epoch_ended()

    def close(self) -> None:
        """End all workers. The run may be used again: it then starts new ones."""
        self.closed = True
        if self.reader is not None:  # first, while its workers still work
            self.reader.close()
            self.reader = None
        if self.watch is not None:
            self.watch.stop()
        pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            pool.close()
        functions, self._at_close = self._at_close, []
        for function in functions:
            function()
