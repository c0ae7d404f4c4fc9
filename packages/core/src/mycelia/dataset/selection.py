"""Nodes that choose and order the rows of one dataset: shuffle, repeat, take, skip, split."""

from __future__ import annotations

import itertools

import numpy as np

from mycelia.dataset import config, nodes
from mycelia.dataset.gates import nothing_waits
from mycelia.dataset.pipeline import Dataset, dataset_methods
from mycelia.engine.base import errors


class ShuffleDataset(Dataset):
    """Random order within a sliding window."""

    def __init__(self, source, buffer_size):
        super().__init__(source)
        self.buffer_size = nodes.integer("Dataset.shuffle", "buffer_size", buffer_size, 2)

    def rows(self, epoch):
        return self._shuffled(self.children[0].rows(epoch), epoch)

    def origin(self, epoch, number):
        numbers = self._shuffled(range(self.children[0].get_dataset_size()), epoch)
        below = next(itertools.islice(numbers, number, None), None)
        return "" if below is None else self.children[0].origin(epoch, below)

    def _shuffled(self, rows, epoch):
        rng = self.generator(epoch)
        window: list = []
        for row in rows:
            if len(window) < self.buffer_size:
                window.append(row)
                continue
            i = int(rng.integers(self.buffer_size))
            out, window[i] = window[i], row
            yield out
        for i in rng.permutation(len(window)):
            yield window[i]


class RepeatDataset(Dataset):
    """Several passes as one epoch."""

    def __init__(self, source, count=None):
        super().__init__(source)
        nodes.of_type("Dataset.repeat", "count", count, int, type(None))
        count = -1 if count is None else count
        if count != -1 and not 1 <= count <= nodes.INT32_MAX:
            raise errors.value_error(
                "Dataset.repeat",
                f"count should be either -1 or positive integer, range[1, INT32_MAX], but got {count}",
            )
        self.count = count
        self.passes = max(count, 0)

    def get_repeat_count(self):
        return self.count

    def get_dataset_size(self):
        size = self.children[0].get_dataset_size()
        return size if self.count == -1 else size * self.count

    def _epoch(self, epoch: int, i: int) -> int:
        return epoch * max(self.count, 1) + i

    def rows(self, epoch):
        return self.rows_from(epoch, 0)

    def rows_from(self, epoch, start):
        passes = itertools.count() if self.count == -1 else range(self.count)
        size = self.children[0].get_dataset_size() if start else 0
        for i in passes:
            if start and start >= size:
                start -= size
                continue
            source, empty = self.children[0], True
            for row in (
                source.rows_from(self._epoch(epoch, i), start)
                if start
                else source.rows(self._epoch(epoch, i))
            ):
                empty = False
                yield row
            if empty and not start:
                return  # without rows a pipeline that repeats for ever ends too
            start = 0

    def makes_arrays(self):
        return self.children[0].makes_arrays()

    def origin(self, epoch, number):
        i, below = divmod(number, max(1, self.children[0].get_dataset_size()))
        return self.children[0].origin(self._epoch(epoch, i), below)


class TakeDataset(Dataset):
    """The first rows; -1: all."""

    def __init__(self, source, count):
        super().__init__(source)
        nodes.of_type("Dataset.take", "count", count, int)
        if count != -1 and not 1 <= count <= nodes.INT32_MAX:
            raise errors.value_error(
                "Dataset.take",
                "count should be either -1 or within the required interval of "
                f"(0, {nodes.INT32_MAX}], got {count}",
            )
        self.count = count

    def get_dataset_size(self):
        size = self.children[0].get_dataset_size()
        return size if self.count == -1 else min(self.count, size)

    def rows(self, epoch):
        rows = self.children[0].rows(epoch)
        return rows if self.count == -1 else itertools.islice(rows, self.count)

    def rows_from(self, epoch, start):
        rows = self.children[0].rows_from(epoch, start)
        return rows if self.count == -1 else itertools.islice(rows, max(0, self.count - start))

    def origin(self, epoch, number):
        return self.children[0].origin(epoch, number)

    def makes_arrays(self):
        return self.children[0].makes_arrays()


class SkipDataset(Dataset):
    """All but the first rows."""

    def __init__(self, source, count):
        super().__init__(source)
        self.count = nodes.integer("Dataset.skip", "count", count, 0)

    def get_dataset_size(self):
        return max(0, self.children[0].get_dataset_size() - self.count)

    def rows(self, epoch):
        return self.rows_from(epoch, 0)

    def rows_from(self, epoch, start):
        return self.children[0].rows_from(epoch, start + self.count)

    def origin(self, epoch, number):
        return self.children[0].origin(epoch, number + self.count)


class SplitDataset(Dataset):
    """One part of a split. All parts read the same order in every epoch, so that they never mix."""

    def __init__(self, source, order, start: int, count: int):
        super().__init__(source)
        self._order, self._start, self._count = order, start, count

    def get_dataset_size(self):
        return self._count

    def rows(self, epoch):
        source = self.children[0]
        order = self._order(source.get_dataset_size())
        if order is None:
            yield from itertools.islice(source.rows(0), self._start, self._start + self._count)
            return
        chosen = order[self._start : self._start + self._count]
        wanted = set(chosen.tolist())
        found = {i: row for i, row in enumerate(source.rows(0)) if i in wanted}
        for i in chosen.tolist():
            yield found[i]


def _split_counts(sizes: list, total_of) -> list[int]:
    owner = "Dataset.split"
    if not sizes:
        raise errors.value_error(owner, "sizes must not be empty")
    ints = all(isinstance(s, int) and not isinstance(s, bool) for s in sizes)
    if not ints and not all(isinstance(s, float) for s in sizes):
        raise errors.value_error(owner, f"sizes must be a list of ints or of floats, but got {sizes}")
    if min(sizes) <= 0 or (not ints and max(sizes) > 1):
        raise errors.value_error(
            owner, f"sizes must be positive ints or fractions in (0, 1], but got {sizes}"
        )
    if not ints and abs(sum(sizes) - 1) > 1e-9:
        raise errors.value_error(owner, f"the fractions must sum to 1, but {sizes} do not")
    total = total_of()
    if total <= 0:
        raise errors.runtime_error(owner, "the dataset is empty")
    if ints:
        if sum(sizes) != total:
            raise errors.runtime_error(owner, f"sizes sum to {sum(sizes)}, but the dataset has {total} rows")
        return sizes
    counts = [round(s * total) for s in sizes]
    if min(counts) == 0:
        raise errors.runtime_error(owner, f"a part of {sizes} of {total} rows would be empty")
    # Rounding may leave rows over or take too many: one row each, from the first part on.
    spare = total - sum(counts)
    for i in itertools.cycle(range(len(counts))):
        if spare == 0:
            break
        step = 1 if spare > 0 else -1
        if counts[i] + step >= 1:
            counts[i] += step
            spare -= step
    return counts


@dataset_methods
class Selection:
    """Methods that choose and order rows."""

    def shuffle(self, buffer_size: int) -> Dataset:
        """Random order within a sliding window of `buffer_size` rows. RuntimeError behind `sync_wait`."""
        nothing_waits(self, "shuffle")
        return ShuffleDataset(self, buffer_size)

    def repeat(self, count: int | None = None) -> Dataset:
        """`count` passes as one epoch; None or -1: no end."""
        return RepeatDataset(self, count)

    def take(self, count: int = -1) -> Dataset:
        """The first `count` rows; -1: all."""
        return TakeDataset(self, count)

    def skip(self, count: int) -> Dataset:
        """All but the first `count` rows."""
        return SkipDataset(self, count)

    def split(self, sizes: list, randomize: bool = True) -> list[Dataset]:
        """Parts of the given sizes: ints that sum to the size, or fractions that sum to 1."""
        nodes.of_type("Dataset.split", "sizes", sizes, list)
        nodes.of_type("Dataset.split", "randomize", randomize, bool)
        counts = _split_counts(sizes, self.get_dataset_size)
        seed = int(np.random.default_rng(config.given_seed()).integers(2**31))

        def order(size):
            return np.random.default_rng(seed).permutation(size) if randomize else None

        starts = itertools.accumulate(counts, initial=0)
        return [SplitDataset(self, order, start, count) for start, count in zip(starts, counts)]
