"""Tuning a pipeline while it runs: how many workers each node has, and how far they read ahead.

At each decision a node whose reader waits for busy workers gets one more, one whose workers mostly idle loses
one; where readers wait although workers idle, rows come unevenly and the prefetch size doubles. The result is
written as JSON, which `dataset.deserialize` makes a pipeline of that starts with these numbers.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from mycelia.dataset import config
from mycelia.dataset.execution.workers import Stats
from mycelia.dataset.serialize import describe
from mycelia.engine.base import config as settings
from mycelia.engine.base import log
from mycelia.io.files import write_text

_WAITS, _BUSY = 0.1, 0.6  # share of the time from which a reader waits, and from which workers are busy
_IDLE = 0.02  # share of the time below which a reader hardly waits
_MOST_AHEAD = 128  # rows per worker
_LEAST_S = 0.05  # a shorter time tells nothing


class Tuner:
    """Decides for the nodes of one run, every `autotune_interval` rows it gives or after each epoch."""

    def __init__(self, run, tree):
        self._run, self._tree = run, tree
        self._interval, self._prefix = config.get_autotune_interval(), config.autotune_path()
        self._rows = 0
        self._past: dict[int, Stats] = {}
        self._since = time.perf_counter()
        run.at_close(self.save)

    def row_given(self) -> None:
        """A row has left the pipeline."""
        self._rows += 1
        if self._interval and self._rows % self._interval == 0:
            self.decide()

    def epoch_ended(self) -> None:
        """The last row of an epoch has left the pipeline."""
        if not self._interval:
            self.decide()

    def decide(self) -> None:
        """Look at what happened since the last decision and change what it suggests."""
        elapsed = time.perf_counter() - self._since
        if elapsed < _LEAST_S:
            return
        uneven = False
        for node in self._tree.walk():
            pool = self._run.pool_of(node)
            if pool is None or pool.closed:
                continue
            past = self._past.get(id(node), Stats())
            waited = (pool.stats.waited - past.waited) / elapsed
            load = (pool.stats.busy - past.busy) / elapsed
            self._past[id(node)] = pool.stats.copy()
            count = wanted(pool.count, waited, load, os.cpu_count() or 1)
            if count != pool.count:
                pool.resize(count)
            node.num_parallel_workers = self._run.workers[id(node)] = pool.count
            uneven = uneven or (waited > _WAITS and load < _BUSY * pool.count)
        if uneven:
            self._run.prefetch = min(_MOST_AHEAD, 2 * self._run.prefetch)
        self._since = time.perf_counter()

    def save(self) -> None:
        """Write the pipeline with the numbers found, if a file was asked for."""
        if self._prefix is None:
            return
        path = Path(f"{self._prefix}_{settings.get('rank')}.json")
        table = {
            "remark": "Made by autotune of a dataset pipeline; mycelia.dataset.deserialize reads it.",
            "summary": [self._line(node) for node in self._tree.walk()],
            "tree": describe(self._tree),
        }
        try:
            write_text(path, json.dumps(table, indent=2))
        except OSError as e:  # the pipeline did its work; only this file is missing
            log.logger("mycelia.dataset").warning("autotune: %s cannot be written: %s", path, e)

    def _line(self, node) -> str:
        workers = node.num_parallel_workers or 1
        return f"{type(node).__name__} (num_parallel_workers: {workers}, prefetch_size: {self._run.prefetch})"


def wanted(count: int, waited: float, load: float, most: int) -> int:
    """How many workers a node should have. `waited`: share of the time that the reader waited for it; `load`:
    how many workers were busy on average.
    """
    if waited > _WAITS and load > _BUSY * count:
        return min(count + 1, most)
    if waited < _IDLE and load < _BUSY * (count - 1):
        return count - 1
    return count
