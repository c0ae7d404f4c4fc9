"""Which rows of a source are read, and in which order."""

from __future__ import annotations

import numpy as np

from mycelia import errors


class Sampler:
    """Base class: ``indices(size, rng)`` gives the row numbers of one epoch.

    `num_samples` limits how many; None means all.
    """

    def __init__(self, num_samples: int | None = None):
        if num_samples is not None and (
            isinstance(num_samples, bool) or not isinstance(num_samples, int) or num_samples < 0
        ):
            raise errors.value_error(
                type(self).__name__,
                f"num_samples must be an int of at least 0 or None, but got {num_samples!r}",
            )
        self.num_samples = num_samples or None

    def indices(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """Row numbers for a source of `size` rows."""
        raise errors.error(errors.NotSupportedError, type(self).__name__, "indices(size, rng) is not defined")

    def count(self, size: int) -> int:
        """How many rows an epoch has."""
        return size if self.num_samples is None else min(size, self.num_samples)

    def _limited(self, order: np.ndarray) -> np.ndarray:
        return order if self.num_samples is None else order[: self.num_samples]


class SequentialSampler(Sampler):
    """Rows in order from `start_index`."""

    def __init__(self, start_index: int | None = None, num_samples: int | None = None):
        super().__init__(num_samples)
        if start_index is not None and start_index < 0:
            raise errors.value_error(
                "SequentialSampler", f"start_index must be at least 0, but got {start_index}"
            )
        self.start_index = start_index or 0

    def indices(self, size, rng):
        return self._limited(np.arange(self.start_index, size))

    def count(self, size):
        return super().count(max(0, size - self.start_index))


class RandomSampler(Sampler):
    """Rows in random order, with or without replacement."""

    def __init__(self, replacement: bool = False, num_samples: int | None = None, shuffle=None):
        super().__init__(num_samples)
        if not isinstance(replacement, bool):
            raise errors.type_error("RandomSampler", f"replacement must be a bool, but got {replacement!r}")
        self.replacement = replacement

    def indices(self, size, rng):
        if self.replacement:
            return rng.integers(0, size, self.count(size))
        return self._limited(rng.permutation(size))


class SubsetSampler(Sampler):
    """The rows listed, in that order. IndexError for a row outside the source."""

    def __init__(self, indices, num_samples: int | None = None):
        super().__init__(num_samples)
        self._indices = np.asarray(list(indices) if not np.isscalar(indices) else [indices])
        if self._indices.dtype.kind not in "iu" and self._indices.size:
            raise errors.type_error(type(self).__name__, "indices must be ints")

    def indices(self, size, rng):
        chosen = self._order(rng)
        bad = chosen[(chosen < 0) | (chosen >= size)]
        if bad.size:
            raise errors.index_error(
                type(self).__name__, f"index {int(bad[0])} is out of range for {size} rows"
            )
        return self._limited(chosen)

    def _order(self, rng):
        return self._indices.astype(np.int64)

    def count(self, size):
        return super().count(len(self._indices))


class SubsetRandomSampler(SubsetSampler):
    """The rows listed, in random order."""

    def _order(self, rng):
        return rng.permutation(self._indices.astype(np.int64))


class WeightedRandomSampler(Sampler):
    """Rows drawn with probabilities proportional to `weights`."""

    def __init__(self, weights, num_samples: int | None = None, replacement: bool = True):
        super().__init__(num_samples)
        self.weights = np.asarray(list(weights), np.float64)
        if (
            self.weights.ndim != 1
            or not self.weights.size
            or (self.weights < 0).any()
            or not self.weights.sum() > 0
        ):
            raise errors.value_error(
                "WeightedRandomSampler", "weights must be a list of numbers of at least 0 with a positive sum"
            )
        self.replacement = bool(replacement)

    def count(self, size):
        return len(self.weights) if self.num_samples is None else self.num_samples

    def indices(self, size, rng):
        return rng.choice(
            len(self.weights), self.count(size), self.replacement, self.weights / self.weights.sum()
        )


class DistributedSampler(Sampler):
    """The share of one of `num_shards` processes: every num_shards-th row from `shard_id`,
    filled up to equal counts.
    """

    def __init__(
        self,
        num_shards: int,
        shard_id: int,
        shuffle: bool = True,
        num_samples: int | None = None,
        offset: int = -1,
    ):
        super().__init__(num_samples)
        if num_shards < 1 or not 0 <= shard_id < num_shards:
            raise errors.value_error(
                "DistributedSampler",
                f"shard_id must be in [0, num_shards), but got {shard_id} of {num_shards}",
            )
        self.num_shards, self.shard_id, self.shuffle, self.offset = num_shards, shard_id, shuffle, offset

    def count(self, size):
        return super().count(-(-size // self.num_shards))

    def indices(self, size, rng):
        # All processes must shuffle alike: they share the seed of `dataset.config`.
        order = rng.permutation(size) if self.shuffle else np.arange(size)
        total = -(-size // self.num_shards) * self.num_shards
        start = self.shard_id if self.offset < 0 else self.shard_id + self.offset
        return self._limited(np.resize(order, total)[start % self.num_shards :: self.num_shards])


class PKSampler(Sampler):
    """`num_val` rows of each of `num_class` classes (all if None); the source tells the class of each row."""

    def __init__(
        self,
        num_val: int,
        num_class: int | None = None,
        shuffle: bool = False,
        class_column: str = "label",
        num_samples: int | None = None,
    ):
        super().__init__(num_samples)
        if num_val < 1:
            raise errors.value_error("PKSampler", f"num_val must be positive, but got {num_val}")
        self.num_val, self.num_class, self.shuffle, self.class_column = (
            num_val,
            num_class,
            shuffle,
            class_column,
        )
        self.labels: np.ndarray | None = None  # set by the source

    def _classes(self) -> np.ndarray:
        if self.labels is None:
            raise errors.value_error(
                "PKSampler", f"the dataset has no column '{self.class_column}' of class numbers"
            )
        found = np.unique(self.labels)
        return found if self.num_class is None else found[: self.num_class]

    def count(self, size):
        return super().count(self.num_val * len(self._classes()))

    def indices(self, size, rng):
        chosen = []
        for label in self._classes():
            rows = np.flatnonzero(self.labels == label)
            chosen.append(np.resize(rng.permutation(rows) if self.shuffle else rows, self.num_val))
        order = np.concatenate(chosen)
        return self._limited(rng.permutation(order) if self.shuffle else order)
