"""The cache in a pipeline: where it may stand, and the nodes that take the place of those below it.

Rows with numbers: CacheLookup draws the numbers by the source's sampler and asks the cache for them, the
others come from the source through the operators below the cache, and CacheMerge puts both into the
sampler's order. Other sources: Cache stores all rows once, in the order of the files, and serves them.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from itertools import islice

import numpy as np

from mycelia import errors
from mycelia.dataset import config
from mycelia.dataset.batching import stacked
from mycelia.dataset.cache import with_children
from mycelia.dataset.pipeline import Dataset
from mycelia.dataset.samplers import (
    BuiltinSampler,
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
    Shuffle,
)
from mycelia.dataset.sources import MappableDataset
from mycelia_cache.client import CacheClient
from mycelia_cache.handle import Handle
from mycelia_cache.protocol import Refused, State, Unreachable

_ALONE, _TOGETHER = 1 << 20, 512  # rows whose presence is asked for at once: alone, and with other clients
_READ = 64  # rows that are read at once
_POLL_S = 0.05  # how often one who waits for a build asks
_ALLOWED = ("MapDataset", "RenameDataset", "ProjectDataset")
_NAMES = {  # the words that MindSpore has for its operators
    "PaddedBatchDataset": "BatchNode",
    "BucketBatchDataset": "BucketBatchByLengthNode",
    "TakeDataset": "TakeNode (possibly from Split)",
    "SplitDataset": "TakeNode (possibly from Split)",
}


# ---- where a cache may stand -----------------------------------------------------------------------------


def check(node: Dataset) -> Dataset:
    """The source below a cached node. RuntimeError, naming the operator, where no cache may be."""
    source = node
    while source.children:
        if len(source.children) > 1:
            raise _unsupported(source)
        source = source.children[0]
    numbered = isinstance(source, MappableDataset)
    for below in node.walk():
        kind = type(below).__name__
        if below is not node and below.cache is not None:
            raise _refused(f"Nested cache operations over {_source_name(below)} is not supported.")
        if below is source:
            _check_source(source)
        elif kind == "MapDataset":
            _check_operations(below)
        elif kind == "RepeatDataset":
            if numbered:
                raise _refused("A cache over a RepeatNode of a mappable dataset is not supported.")
            if below.count == -1:
                raise _refused("A cache over a RepeatNode without end is not supported.")
        elif kind == "ShuffleDataset":
            if numbered:
                raise _refused(
                    "ShuffleNode is not supported as a descendant operator under a cache.",
                    "shuffle above the cache, or by the source's own `shuffle`",
                )
        elif kind not in _ALLOWED:
            raise _unsupported(below)
    return source


def _source_name(node: Dataset) -> str:
    return type(node).__name__ if not node.children else f"{type(node).__name__.removesuffix('Dataset')}Node"


def _refused(message: str, hint: str = "") -> errors.MyceliaRuntimeError:
    return errors.runtime_error("DatasetCache", message, hint=hint)


def _unsupported(node: Dataset) -> errors.MyceliaRuntimeError:
    kind = type(node).__name__
    name = _NAMES.get(kind, f"{kind.removesuffix('Dataset')}Node")
    return _refused(
        f"{name} is not supported as a descendant operator under a cache.", "use it above the cache"
    )


def _check_source(source: Dataset) -> None:
    if not hasattr(source, "source") and type(source).__name__ != "NumpySlicesDataset":
        return
    python = getattr(source, "source", None)
    numbered = hasattr(python, "__getitem__") and hasattr(python, "__len__")
    if not numbered or getattr(python, "cache_key", None) is None or getattr(source, "batch_sampler", None):
        raise _refused(
            "There is currently no support for GeneratorOp under cache.",
            "a source with __getitem__, __len__ and a cache_key, which names its content, is taken",
        )


def _check_operations(node: Dataset) -> None:
    for operation in node.operations:
        if is_random(operation):
            name = getattr(operation, "__name__", type(operation).__name__)
            raise _refused(
                "MapNode containing random operation is not supported as a descendant of cache: "
                f"{name} would give the same values for ever.",
                "apply it in a map above the cache",
            )
        if getattr(operation, "deterministic", True) is False:
            name = getattr(operation, "__name__", type(operation).__name__)
            raise _refused(
                f"MapNode containing {name}, which says deterministic=False, is not supported as a "
                "descendant of cache.",
                "apply it in a map above the cache",
            )


def is_random(operation) -> bool:
    """Whether an operation, or one that it holds, draws random numbers."""
    for name in ("random", "is_random"):
        known = getattr(operation, name, None)
        if isinstance(known, bool):
            if known:
                return True
            break
    if hasattr(operation, "seed_epoch"):  # it asks the pipeline for random numbers
        return True
    held = getattr(operation, "__dict__", {}) if not isinstance(operation, type) else {}
    parts = [v for value in held.values() for v in (value if isinstance(value, (list, tuple)) else [value])]
    parts = [p for part in parts for p in (part if isinstance(part, (list, tuple)) else [part])]
    return any(callable(part) and not isinstance(part, type) and is_random(part) for part in parts)


def rewritten(client: CacheClient, node: Dataset) -> Dataset:
    """The node that serves the rows of `node`, whose cache is `client`'s."""
    source = check(node)
    inner = copy.copy(node)
    inner.cache = None
    if isinstance(source, MappableDataset):
        lookup = CacheLookup(client, node, source)
        chosen = _Chosen()
        return CacheMerge(client, node, lookup, _replaced(inner, source, _reading(source, chosen)), chosen)
    return Cache(client, node, source, _replaced(inner, source, _whole(source)))


def _replaced(node: Dataset, source: Dataset, other: Dataset) -> Dataset:
    """The nodes down to the source with another one in its place. A source that is its own top is that."""
    if not node.children:
        return other
    return with_children(node, [_replaced(child, source, other) for child in node.children])


def _reading(source: MappableDataset, sampler: BuiltinSampler) -> MappableDataset:
    """The same source, which reads what a sampler of ours says."""
    source.source_size()  # sources that open their files late choose a sampler then
    twin = with_children(source, [])
    twin.cache, twin.sampler = None, sampler
    if hasattr(twin, "_given_sampler"):
        twin._given_sampler = sampler
    return twin


def _whole(source: Dataset) -> Dataset:
    """The same source, all of it in the order of its files."""
    twin = with_children(source, [])
    twin.cache = twin.num_samples = twin.num_shards = twin.shard_id = None
    twin.shuffle_mode, twin.num_parallel_workers = Shuffle.FALSE, 1
    return twin


# ---- rows with numbers -----------------------------------------------------------------------------------


class _Chosen(BuiltinSampler):
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
        self, client: CacheClient, node: Dataset, lookup: CacheLookup, below: Dataset, chosen: _Chosen
    ):
        super().__init__()
        self.children = [lookup, below]
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
        """Stacked columns straight from the cache; None unless all rows of the epoch are in its memory."""
        if config.get_error_samples_mode() != config.ErrorSamplesMode.RETURN:
            return None
        numbers, handle = self._lookup.numbers(epoch), self._lookup.open()
        if handle is None or not handle.in_memory(numbers):
            return None
        stop = len(numbers) // size * size if drop_remainder else len(numbers)
        return self._gathered(handle, epoch, [numbers[at : at + size] for at in range(0, stop, size)])

    def _gathered(self, handle: Handle, epoch: int, groups: list[np.ndarray]) -> Iterator[tuple]:
        try:
            for group in groups:
                columns = handle.gather(group)
                if columns is None:  # of one length, but not of one shape
                    rows = list(self._merged(handle, epoch, group))
                    columns = [stacked(list(c), n, "Dataset.batch") for c, n in zip(zip(*rows), self._names)]
                else:
                    handle.hits += len(group)
                yield tuple(columns)
        finally:
            handle.report()

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
        near = np.arange(at, min(at + _READ, len(numbers)))
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


# ---- other sources ---------------------------------------------------------------------------------------


class Cache(Dataset):
    """All rows of a source without row numbers: stored by the first who comes, then served in any order."""

    def __init__(self, client: CacheClient, node: Dataset, source: Dataset, below: Dataset):
        super().__init__()
        self.children = [below]
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
        for at in range(0, len(numbers), _READ):
            group = numbers[at : at + _READ]
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
        """Stacked columns straight from the cache; None unless all rows are in its memory."""
        handle = self._client.joined(self._identity, numbered=False, begun=self._begun)
        if handle is None:
            return None
        try:
            state, _, count = handle.lease()
        except (Refused, Unreachable):
            return None
        numbers = np.ascontiguousarray(self._sampler.rows(count, self._source.generator(epoch)), np.int64)
        if state != State.FETCH or not handle.in_memory(numbers):
            return None
        stop = len(numbers) // size * size if drop_remainder else len(numbers)
        return self._gathered(handle, epoch, [numbers[at : at + size] for at in range(0, stop, size)])

    def _gathered(self, handle, epoch, groups):
        for group in groups:
            columns = handle.gather(group)
            if columns is None:
                rows = list(self._served(handle, epoch, group))
                columns = [stacked(list(c), n, "Dataset.batch") for c, n in zip(zip(*rows), self._names)]
            else:
                handle.hits += len(group)
            yield tuple(columns)
        handle.report()

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
