"""The nodes of sources whose rows have numbers: those in the cache from there, the others computed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from mycelia import errors
from mycelia.dataset import config, nodes
from mycelia.dataset.batching import stacked
from mycelia.dataset.pipeline import Dataset
from mycelia.dataset.samplers import BuiltinSampler
from mycelia.dataset.sources.numbered import MappableDataset
from mycelia_cache.handle import Handle

if TYPE_CHECKING:
    from mycelia_cache.client import CacheClient

_ALONE, _TOGETHER = 1 << 20, 512  # rows whose presence is asked for at once: alone, and with other clients
READ_ROWS = 64  # rows that are read at once
_GATHER_BYTES = 256 << 10  # of rows that are gathered in one step, if a batch has less


class Chosen(BuiltinSampler):
    """Just the row numbers that are set."""

    def __init__(self):
        super().__init__()
        self.numbers = np.zeros(0, np.int64)

    def choose(self, size, rng):
        return self.numbers

    def count(self, size):
        return len(self.numbers)


class CacheLookup(Dataset):
    """Draws row numbers and tells which of them the cache has."""

    def __init__(self, client: CacheClient, node: Dataset, source: MappableDataset):
        super().__init__()
        # Not to be confused with what is read: this one only draws numbers, by the sampler that it has.
        self.children = [source]
        self._client = client
        self._names = node.get_col_names()
        self._identity = client.identity(node)
        self._begun = False

    def get_col_names(self):
        return list(self._names)

    def open(self) -> Handle | None:
        """The cache for an epoch; None to go on without one."""
        handle = self._client.joined(self._identity, numbered=True, begun=self._begun)
        self._begun = True
        return handle

    def numbers(self, epoch: int) -> np.ndarray:
        """Row numbers of an epoch, in order."""
        return np.ascontiguousarray(self.children[0].order(epoch), np.int64)

    def rows(self, epoch):
        """The rows that the cache has."""
        handle, numbers = self.open(), self.numbers(epoch)
        found = [None] * len(numbers) if handle is None else handle.read(numbers)
        return (row for row in found if row is not None)


class CacheMerge(Dataset):
    """Rows from the cache and rows from the source, in the sampler's order; the latter go to the cache."""

    def __init__(
        self, client: CacheClient, node: Dataset, lookup: CacheLookup, below: Dataset, chosen: Chosen
    ):
        super().__init__()
        self.children = [lookup, below]
        self.cache_figures = client.figures
        self._lookup, self._below, self._chosen = lookup, below, chosen
        self._names, self._size, self._salt = node.get_col_names(), node.get_dataset_size, node.salt()
        client.joined(
            lookup._identity, numbered=True, begun=False
        )  # what is wrong shows before the first row

    def get_col_names(self):
        return list(self._names)

    def get_dataset_size(self):
        return self._size()

    def origin(self, epoch, number):
        return self._lookup.children[0].origin(epoch, number)

    def rows(self, epoch):
        return self.rows_from(epoch, 0)

    def rows_from(self, epoch, start):
        numbers = self._lookup.numbers(epoch)[start:]
        handle = self._lookup.open()
        if handle is None:
            yield from self._computed(epoch, numbers)
            return
        try:
            step = _ALONE if handle.clients <= 1 else _TOGETHER
            for at in range(0, len(numbers), step):
                yield from self._merged(handle, epoch, numbers[at : at + step])
        finally:
            handle.flush()
            handle.report()

    def batches(self, epoch: int, size: int, drop_remainder: bool):
        """Stacked columns straight from the cache, or from a source that makes them while the cache has none
        of the rows; None for all else.
        """
        if config.get_error_samples_mode() != config.ErrorSamplesMode.RETURN:
            return None
        numbers, handle = self._lookup.numbers(epoch), self._lookup.open()
        numbers = numbers[: len(numbers) // size * size] if drop_remainder else numbers
        if handle is None or not len(numbers):
            return None
        there = handle.present(numbers)
        if there.all():
            if not handle.alike(numbers):
                return None
            return in_batches(handle, numbers, size, self._names, lambda n: self._merged(handle, epoch, n))
        if there.any() or len(np.unique(numbers)) < len(numbers):
            return None
        self._chosen.numbers = numbers
        made = nodes.batches(self._below, epoch, size, drop_remainder)
        return None if made is None else self._stored(handle, numbers, made)

    def _stored(self, handle: Handle, numbers: np.ndarray, made: Iterator[tuple]) -> Iterator[tuple] | None:
        """The batches of a source, which go to the cache; None for texts, which are longer in a batch."""
        made = iter(made)
        first = next(made, None)
        if first is None or any(not isinstance(c, np.ndarray) or c.dtype.kind in "SUO" for c in first):
            return None

        def storing():
            at = 0
            try:
                for columns in chain([first], made):
                    group = numbers[at : at + len(columns[0])]
                    at += len(group)
                    handle.misses += len(group)
                    handle.put_batch(group, list(columns))
                    yield tuple(columns)
            finally:
                if hasattr(made, "close"):
                    made.close()
                handle.flush()
                handle.report()

        return storing()

    def _computed(self, epoch: int, numbers: np.ndarray) -> Iterator[tuple]:
        """Rows from the source."""
        self._chosen.numbers = numbers
        return self._below.rows(epoch)

    def _merged(self, handle: Handle, epoch: int, numbers: np.ndarray) -> Iterator[tuple]:
        there = handle.present(numbers)
        missing = numbers[~there]
        first = np.unique(missing, return_index=True)[1]  # a number drawn twice is computed once
        todo = missing[np.sort(first)]
        source = _Missing(self, epoch, todo)
        try:
            ahead: list = []
            for at, number in enumerate(numbers.tolist()):
                if there[at]:
                    if not ahead:
                        ahead = self._read(handle, numbers, there, at)
                    row = ahead.pop(0)
                    if row is not None:
                        handle.hits += 1
                        yield row
                        continue
                    source.want(number)  # it was damaged, or the server is gone
                row = source.get(number)
                if row is None:
                    row = handle.waiting(number)
                    if row is None:
                        row = handle.read(np.array([number]))[0]
                    if row is not None:
                        handle.hits += 1
                        yield row
                        continue
                    source.want(number)
                    row = source.get(number)
                    if row is None:
                        continue  # left out, as error_samples_mode says
                handle.misses += 1
                handle.put(number, row)
                yield row
        finally:
            source.close()

    @staticmethod
    def _read(handle: Handle, numbers: np.ndarray, there: np.ndarray, at: int) -> list:
        """The rows from `at` on that are there, some of them."""
        near = np.arange(at, min(at + READ_ROWS, len(numbers)))
        return handle.read(numbers[near[there[near]]])


class _Missing:
    """Rows that the cache has not, computed in one pass in the order in which they will be asked for."""

    def __init__(self, merge: CacheMerge, epoch: int, numbers: np.ndarray):
        self._merge, self._epoch = merge, epoch
        self._numbers = iter(numbers.tolist())
        self._rows: Iterator[tuple] | None = None
        self._todo = numbers
        self._extra: set[int] = set()
        # Rows that fail may be left out: then only one at a time tells which row is which.
        self._one_by_one = config.get_error_samples_mode() != config.ErrorSamplesMode.RETURN
        self._left = set(numbers.tolist())

    def want(self, number: int) -> None:
        """Compute this row too, when it is asked for."""
        self._extra.add(number)

    def get(self, number: int) -> tuple | None:
        """The row, the first time it is asked for; None later, and if it fails and may be left out."""
        if number in self._extra or (self._one_by_one and number in self._left):
            self._extra.discard(number)
            self._left.discard(number)
            # The pass that is under way has taken its numbers already.
            return next(iter(self._pass(np.array([number], np.int64))), None)
        if number not in self._left:
            return None
        self._left.discard(number)
        if self._rows is None:
            self._rows = self._pass(self._todo)
        row = next(self._rows, None)
        if row is None:
            raise errors.runtime_error("DatasetCache", f"the source ended before its row {number}")
        return row

    def _pass(self, numbers: np.ndarray) -> Iterator[tuple]:
        return iter(self._merge._computed(self._epoch, numbers))

    def close(self) -> None:
        """End the pass."""
        if hasattr(self._rows, "close"):
            self._rows.close()


def in_batches(handle: Handle, numbers: np.ndarray, size: int, names: list[str], by_rows) -> Iterator[tuple]:
    """Batches gathered in the cache; `by_rows(numbers)` gives the rows of those that are not of one shape."""
    at, together = 0, 1
    try:
        while at < len(numbers):
            part = numbers[at : at + size * together]
            at += len(part)
            columns = handle.gather(part)
            if columns is None:
                for k in range(0, len(part), size):
                    rows = zip(*by_rows(part[k : k + size]))
                    yield tuple([stacked(list(c), n, "Dataset.batch") for c, n in zip(rows, names)])
                continue
            handle.hits += len(part)
            for k in range(0, len(part), size):
                yield tuple([c[k : k + size] for c in columns])
            # Several batches of small rows in one step: what each step costs is shared.
            row_bytes = max(1, sum(c.nbytes for c in columns) // len(part))
            together = max(1, _GATHER_BYTES // (row_bytes * size))
    finally:
        handle.report()
