"""The node of sources without numbered rows: all rows stored once, in the order of the files, and served."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from mycelia import errors
from mycelia.dataset.pipeline import Dataset
from mycelia.dataset.samplers import (
    BuiltinSampler,
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
    Shuffle,
)
from mycelia_cache.handle import Handle
from mycelia_cache.numbered import READ_ROWS, in_batches
from mycelia_cache.protocol import Refused, State, Unreachable

if TYPE_CHECKING:
    from mycelia_cache.client import CacheClient

_POLL_S = 0.05  # how often one who waits for a build asks


class Cache(Dataset):
    """All rows of a source without row numbers: stored by the first who comes, then served in any order."""

    def __init__(self, client: CacheClient, node: Dataset, source: Dataset, below: Dataset):
        super().__init__()
        self.children = [below]
        self.cache_figures = client.figures
        self._client, self._below, self._source = client, below, source
        self._names, self._size, self._salt = node.get_col_names(), node.get_dataset_size, node.salt()
        self._identity = client.identity(node)
        self._begun = False
        self._sampler = self._sampler_of(source)
        client.joined(self._identity, numbered=False, begun=False)

    @staticmethod
    def _sampler_of(source: Dataset) -> BuiltinSampler:
        mode = getattr(source, "shuffle_mode", Shuffle.FALSE)
        shuffled = mode not in (Shuffle.FALSE, Shuffle.FILES)
        shards = getattr(source, "num_shards", None)
        count = getattr(source, "num_samples", None)
        if shards is not None:
            return DistributedSampler(shards, source.shard_id, shuffled, count)
        return RandomSampler(num_samples=count) if shuffled else SequentialSampler(num_samples=count)

    def get_col_names(self):
        return list(self._names)

    def get_dataset_size(self):
        return self._size()

    def rows(self, epoch):
        handle = self._client.joined(self._identity, numbered=False, begun=self._begun)
        self._begun = True
        count = None if handle is None else self._built(handle, epoch)
        if count is None:
            yield from self._uncached(epoch)
            return
        numbers = np.ascontiguousarray(self._sampler.rows(count, self._source.generator(epoch)), np.int64)
        try:
            yield from self._served(handle, epoch, numbers)
        finally:
            handle.flush()
            handle.report()

    def _served(self, handle: Handle, epoch: int, numbers: np.ndarray) -> Iterator[tuple]:
        for at in range(0, len(numbers), READ_ROWS):
            group = numbers[at : at + READ_ROWS]
            rows = handle.read(group)
            handle.hits += sum(r is not None for r in rows)
            missing = [int(n) for n, r in zip(group, rows) if r is None]
            if missing and not handle.alive:
                yield from self._rest(epoch, numbers[at:])
                return
            again = self._again(handle, epoch, missing) if missing else {}
            for number, row in zip(group.tolist(), rows):
                yield again[number] if row is None else row

    def _again(self, handle: Handle, epoch: int, missing: list[int]) -> dict[int, tuple]:
        """Rows that got lost, from the source: its rows come in the same order each time."""
        handle.misses += len(missing)
        wanted, found = set(missing), {}
        for number, row in enumerate(self._below.rows(epoch)):
            if number in wanted:
                found[number] = row
                handle.put(number, row)
                if len(found) == len(wanted):
                    return found
        raise errors.runtime_error(
            "DatasetCache", f"row {min(wanted - set(found))} is in the cache no longer, nor in the source"
        )

    def _rest(self, epoch: int, numbers: np.ndarray) -> Iterator[tuple]:
        """The remaining rows of an epoch, from the source."""
        if (np.diff(numbers) > 0).all():
            wanted = iter(numbers.tolist())
            number = next(wanted, None)
            for at, row in enumerate(self._below.rows(epoch)):
                if at == number:
                    yield row
                    number = next(wanted, None)
            return
        chosen = set(numbers.tolist())
        rows = {at: row for at, row in enumerate(self._below.rows(epoch)) if at in chosen}
        for number in numbers.tolist():
            yield rows[number]

    def batches(self, epoch: int, size: int, drop_remainder: bool):
        """Stacked columns straight from the cache; None unless it has all rows, in memory and alike."""
        handle = self._client.joined(self._identity, numbered=False, begun=self._begun)
        if handle is None:
            return None
        try:
            state, _, count = handle.lease()
        except (Refused, Unreachable):
            return None
        if state != State.FETCH:
            return None
        numbers = np.ascontiguousarray(self._sampler.rows(count, self._source.generator(epoch)), np.int64)
        numbers = numbers[: len(numbers) // size * size] if drop_remainder else numbers
        if not handle.alike(numbers):
            return None
        return in_batches(handle, numbers, size, self._names, lambda n: self._served(handle, epoch, n))

    def _uncached(self, epoch: int) -> Iterator[tuple]:
        """The rows as the cache would give them, without it."""
        if self._sampler.is_shuffled() or self._sampler.is_sharded():
            rows = list(self._below.rows(epoch))
            order = self._sampler.rows(len(rows), self._source.generator(epoch))
            return (rows[int(i)] for i in order)
        count = self._sampler.num_samples
        return islice(self._below.rows(epoch), count or None)

    # ---- the build ---------------------------------------------------------------------------------------

    def _built(self, handle: Handle, epoch: int) -> int | None:
        """How many rows the cache has when all are stored; None to do without it."""
        try:
            while True:
                state, mine, count = handle.lease(want=True)
                if mine:
                    return self._build(handle, epoch)
                if state == State.FETCH:
                    return count
                if state in (State.OUT_OF_MEMORY, State.NO_SPACE, State.ERROR):
                    return self._no_room(state)
                time.sleep(_POLL_S)
        except (Refused, Unreachable) as e:
            handle.alive = False
            self._client._lost(e)
            return None

    def _build(self, handle: Handle, epoch: int) -> int | None:
        count = 0
        try:
            for row in self._below.rows(epoch):
                handle.put(count, row)
                count += 1
            handle.flush()
        except BaseException:
            if handle.alive:
                handle.lease(give_up=True)
            raise
        if not handle.alive:
            return None
        if not handle.present(np.arange(count, dtype=np.int64)).all():
            spilling = self._client.settings.spilling
            state = State.NO_SPACE if spilling else State.OUT_OF_MEMORY
            handle.lease(give_up=True, failure=state)
            return self._no_room(state)
        handle.misses += count
        handle.lease(done=True, rows=count)
        return count

    def _no_room(self, state: State) -> None:
        if self._client.settings.on_full == "source":
            return
        what = {State.OUT_OF_MEMORY: "Out of memory", State.NO_SPACE: "no space left on the spill disk"}
        raise errors.runtime_error(
            "DatasetCache",
            f"{what.get(state, 'the build failed')}: not all rows of the source find room in the cache",
            hint="a larger size, spilling=True, or on_full='source' to read the source without the cache",
        )
