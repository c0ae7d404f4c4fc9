"""Which rows of a source are read, and in which order."""

from __future__ import annotations

import enum

import numpy as np

from mycelia.dataset import nodes
from mycelia.engine.base import errors


class Shuffle(str, enum.Enum):  # noqa: UP042 - it prints as Shuffle.GLOBAL
    """How far sources of several files shuffle: not, all rows, only the files, only within files."""

    FALSE = "false"
    ADAPTIVE = "adaptive"
    GLOBAL = "global"
    PARTIAL = "partial"
    FILES = "files"
    INFILE = "infile"


def _count(owner: str, value) -> int | None:
    return nodes.samples(owner, value)


class BuiltinSampler:
    """What all samplers share: `num_samples` (None or 0: all) and a child, whose choice they choose from.

    ``choose(size, rng)`` gives the row numbers of one epoch.
    """

    def __init__(self, num_samples: int | None = None):
        self.num_samples = num_samples
        self.child_sampler: BuiltinSampler | None = None

    # ---- chains --------------------------------------------------------------------------------------------

    def add_child(self, sampler: BuiltinSampler) -> None:
        """Choose among the rows that `sampler` chooses. RuntimeError if there is a child already."""
        if self.child_sampler is not None:
            raise errors.runtime_error(
                type(self).__name__, "Cannot add child sampler, this sampler already has a child."
            )
        if sampler is not None:
            nodes.of_type(type(self).__name__, "sampler", sampler, BuiltinSampler)
        self.child_sampler = sampler

    def reset(self) -> None:
        """What a sampler of the user's does between two epochs."""

    def get_child(self) -> BuiltinSampler | None:
        """The child sampler."""
        return self.child_sampler

    def rows(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """Row numbers of one epoch, through all children."""
        if self.child_sampler is None:
            return self.choose(size, rng)
        below = np.asarray(self.child_sampler.rows(size, rng))
        return below[inside(type(self).__name__, np.asarray(self.choose(len(below), rng)), len(below))]

    def total(self, size: int) -> int:
        """How many rows an epoch has, through all children."""
        return self.count(size if self.child_sampler is None else self.child_sampler.total(size))

    # ---- what a sampler defines ----------------------------------------------------------------------------

    def choose(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """Row numbers for a source of `size` rows."""
        raise errors.error(errors.NotSupportedError, type(self).__name__, "choose(size, rng) is not defined")

    def count(self, size: int) -> int:
        """How many rows an epoch has, for a source of `size` rows."""
        return min(size, self.num_samples) if self.num_samples else size

    def _limited(self, order: np.ndarray) -> np.ndarray:
        return order[: self.num_samples] if self.num_samples else order

    # ---- questions of pipelines ----------------------------------------------------------------------------

    def get_num_samples(self) -> int | None:
        """The smallest `num_samples` of this sampler and its children, None if none has one."""
        own = self._own_samples()
        below = None if self.child_sampler is None else self.child_sampler.get_num_samples()
        given = [n for n in (own, below) if n]
        return min(given) if given else None

    def _own_samples(self) -> int | None:
        return self.num_samples

    def is_shuffled(self) -> bool:
        """Whether this sampler or a child has a random order."""
        return self._shuffles() or (self.child_sampler is not None and self.child_sampler.is_shuffled())

    def is_sharded(self) -> bool:
        """Whether this sampler or a child shares rows among processes."""
        return self._shards() or (self.child_sampler is not None and self.child_sampler.is_sharded())

    def get_shuffle_mode(self) -> Shuffle:
        """`Shuffle.GLOBAL` for a random order, else `Shuffle.FALSE`."""
        return Shuffle.GLOBAL if self.is_shuffled() else Shuffle.FALSE

    def _shuffles(self) -> bool:
        return False

    def _shards(self) -> bool:
        return False

    def _check(self) -> None:
        """What must hold for any source. RuntimeError."""

    def parse(self) -> BuiltinSampler:
        """What a pipeline reads by: the sampler itself, checked. RuntimeError."""
        self._check()
        return self

    parse_for_minddataset = parse

    def describe(self) -> dict:
        """The sampler as a dict, as in a serialized pipeline."""
        table = {"num_samples": self.num_samples or 0, "sampler_name": type(self).__name__, **self._fields()}
        if self.child_sampler is not None:
            table["child_sampler"] = [self.child_sampler.describe()]
        return table

    def _fields(self) -> dict:
        return {}


def inside(owner: str, order: np.ndarray, size: int) -> np.ndarray:
    """`order`, if all its numbers are of rows; RuntimeError otherwise."""
    bad = order[(order < 0) | (order >= size)]
    if bad.size:
        raise errors.runtime_error(
            owner, f"Sample ID ({int(bad[0])}) is out of bound, expected range [0, {size - 1}]"
        )
    return order


class SequentialSampler(BuiltinSampler):
    """Rows in order from `start_index`."""

    def __init__(self, start_index: int | None = None, num_samples: int | None = None):
        if start_index is not None:
            nodes.of_type("SequentialSampler", "start_index", start_index, int)
        super().__init__(_count("SequentialSampler", num_samples))
        self.start_index = start_index

    def choose(self, size, rng):
        start = self.start_index or 0
        if start < 0 or (start >= size and start > 0):
            raise errors.runtime_error(
                "SequentialSampler", f"start_index must be in [0, {size}), the rows, but got {start}"
            )
        return self._limited(np.arange(start, size))

    def count(self, size):
        return super().count(max(0, size - (self.start_index or 0)))

    def _fields(self):
        return {"start_index": self.start_index or 0}


class RandomSampler(BuiltinSampler):
    """Rows in random order, with or without replacement."""

    def __init__(
        self, replacement: bool = False, num_samples: int | None = None, shuffle: Shuffle = Shuffle.GLOBAL
    ):
        nodes.of_type("RandomSampler", "replacement", replacement, bool)
        super().__init__(_count("RandomSampler", num_samples))
        nodes.of_type("RandomSampler", "shuffle", shuffle, Shuffle)
        self.replacement, self.shuffle = replacement, shuffle
        self.deterministic, self.reshuffle_each_epoch = False, True

    def choose(self, size, rng):
        if self.replacement:
            return rng.integers(0, size, self.count(size))
        return self._limited(rng.permutation(size))

    def _shuffles(self):
        return True

    def _fields(self):
        return {"reshuffle_each_epoch": True, "replacement": self.replacement, "shuffle_mode": 2}


class SubsetSampler(BuiltinSampler):
    """The rows listed, in that order. RuntimeError, when reading, for a row outside the source."""

    def __init__(self, indices, num_samples: int | None = None):
        owner = type(self).__name__
        if isinstance(indices, (str, bytes, dict)):
            raise errors.type_error(owner, f"indices must be a list of ints, but got {indices!r}")
        chosen = list(indices) if hasattr(indices, "__iter__") else [indices]
        for place, i in enumerate(chosen):
            if isinstance(i, bool) or not isinstance(i, (int, np.integer)):
                raise errors.type_error(
                    owner,
                    f"Type of indices element must be int, but got list[{place}]: {i}, type: {type(i)}.",
                )
        super().__init__(_count(owner, num_samples))
        self.indices = [int(i) for i in chosen]

    def choose(self, size, rng):
        """Row numbers for a source of `size` rows."""
        order = self._order(rng)
        return self._limited(inside(type(self).__name__, order, size))

    def _order(self, rng):
        return np.asarray(self.indices, np.int64)

    def count(self, size):
        return super().count(len(self.indices))

    def _own_samples(self):
        return min(len(self.indices), self.num_samples) if self.num_samples else len(self.indices)

    def _fields(self):
        return {"indices": list(self.indices)}


class SubsetRandomSampler(SubsetSampler):
    """The rows listed, in random order."""

    def _order(self, rng):
        return rng.permutation(np.asarray(self.indices, np.int64))

    def _shuffles(self):
        return True


class WeightedRandomSampler(BuiltinSampler):
    """Rows drawn with probabilities proportional to `weights`; `num_samples` of them, by default as many as
    the source has. Without replacement rows of weight 0 come last.

    RuntimeError, when reading, for weights that are none, negative, all zero, or more than rows.
    """

    def __init__(self, weights, num_samples: int | None = None, replacement: bool = True):
        owner = "WeightedRandomSampler"
        weights = weights if isinstance(weights, list) else [weights]
        for place, w in enumerate(weights):
            if isinstance(w, bool) or not isinstance(w, (int, float, np.number)):
                raise errors.type_error(
                    owner,
                    f"type of weights element must be number, but got w[{place}]: {w}, type: {type(w)}.",
                )
        super().__init__(_count(owner, num_samples))
        nodes.of_type(owner, "replacement", replacement, bool)
        self.weights, self.replacement = weights, replacement

    def _check(self):
        weights = np.asarray(self.weights, np.float64)
        if not weights.size or (weights < 0).any() or not weights.sum() > 0:
            raise errors.runtime_error(
                "WeightedRandomSampler", "weights must be numbers of at least 0 with a positive sum"
            )

    def choose(self, size, rng):
        self._check()
        weights = np.asarray(self.weights, np.float64)
        if len(weights) > size:
            raise errors.runtime_error(
                "WeightedRandomSampler", f"there are {len(weights)} weights, but only {size} rows"
            )
        wanted = self.count(size)
        if self.replacement:
            return rng.choice(len(weights), wanted, True, weights / weights.sum())
        if wanted > len(weights):
            raise errors.runtime_error(
                "WeightedRandomSampler",
                f"{wanted} rows cannot be drawn without replacement from {len(weights)}",
            )
        likely = np.flatnonzero(weights)
        chances = weights[likely] / weights.sum()
        chosen = rng.choice(likely, min(wanted, len(likely)), False, chances)
        return np.append(chosen, np.flatnonzero(weights == 0)[: wanted - len(chosen)])

    def _shuffles(self):
        return True

    def _fields(self):
        return {"replacement": self.replacement, "weights": list(self.weights)}


class DistributedSampler(BuiltinSampler):
    """The share of one of `num_shards` processes: every num_shards-th row from `shard_id`, filled up to equal
    counts. An `offset` of 0 or more moves the first row to another process, and nothing is filled up.
    """

    def __init__(
        self,
        num_shards: int,
        shard_id: int,
        shuffle: bool = True,
        num_samples: int | None = None,
        offset: int = -1,
    ):
        owner = "DistributedSampler"
        nodes.of_type(owner, "num_shards", num_shards, int)
        nodes.of_type(owner, "shard_id", shard_id, int)
        nodes.of_type(owner, "shuffle", shuffle, bool, Shuffle)
        super().__init__(_count(owner, num_samples))
        nodes.of_type(owner, "offset", offset, int)
        self.num_shards, self.shard_id, self.shuffle, self.offset = num_shards, shard_id, shuffle, offset
        self.seed = 0

    def count(self, size):
        self._check()
        return super().count(len(self._places(size)))

    def _places(self, size: int) -> np.ndarray:
        """Where in the order of all rows those of this process are."""
        places = (
            self.shard_id - max(self.offset, 0) + self.num_shards * np.arange(-(-size // self.num_shards) + 1)
        )
        if self.offset < 0:
            return places[:-1] % max(size, 1)
        found = places[(places >= 0) & (places < size)]
        return found if found.size else np.zeros(min(size, 1), np.int64)  # no process may be without a row

    def _check(self):
        owner = "DistributedSampler"
        if self.num_shards < 1 or not 0 <= self.shard_id < self.num_shards:
            raise errors.runtime_error(
                owner,
                "num_shards must be positive and shard_id in [0, num_shards), but got "
                f"{self.num_shards} and {self.shard_id}",
            )
        if self.offset > self.num_shards:
            raise errors.runtime_error(
                owner, f"DistributedSampler: offset must be no more than num_shards({self.num_shards})"
            )

    def whole(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """All rows in the order in which they are dealt to the shards."""
        # All processes must shuffle alike: they share the seed of `dataset.config`.
        return rng.permutation(size) if self._shuffles() else np.arange(size)

    def choose(self, size, rng):
        self._check()
        return self._limited(self.whole(size, rng)[self._places(size)])

    def _shuffles(self):
        return self.shuffle not in (False, Shuffle.FALSE)

    def _shards(self):
        return True

    def _fields(self):
        return {
            "num_shards": self.num_shards,
            "offset": self.offset,
            "shard_id": self.shard_id,
            "shuffle_mode": 2 if self._shuffles() else 0,
            "even_dist": self.offset < 0,
            "seed": self.seed,
        }


class PKSampler(BuiltinSampler):
    """`num_val` rows of each class in random order, where the source tells the class of each row: rows of a
    smaller class come more than once. `shuffle`: the classes come in random order.
    """

    def __init__(
        self,
        num_val: int,
        num_class: int | None = None,
        shuffle: bool = False,
        class_column: str = "label",
        num_samples: int | None = None,
    ):
        owner = "PKSampler"
        nodes.of_type(owner, "num_val", num_val, int)
        if num_class is not None:
            raise errors.error(
                errors.NotSupportedError, owner, "num_class: only None, for all classes, is taken"
            )
        nodes.of_type(owner, "shuffle", shuffle, bool)
        nodes.of_type(owner, "class_column", class_column, str)
        super().__init__(_count(owner, num_samples))
        self.num_val, self.shuffle, self.class_column = num_val, shuffle, class_column
        self.labels: np.ndarray | None = None  # set by the source

    def _classes(self) -> list[np.ndarray]:
        """The rows of each class."""
        if self.labels is None:
            raise errors.runtime_error(
                "PKSampler", f"the dataset has no column '{self.class_column}' of class numbers"
            )
        if self.num_val < 1:
            raise errors.runtime_error("PKSampler", f"num_val must be positive, but got {self.num_val}")
        return [np.flatnonzero(self.labels == label) for label in np.unique(self.labels)]

    def count(self, size):
        return super().count(self.num_val * len(self._classes()))

    def choose(self, size, rng):
        classes = self._classes()
        order = rng.permutation(len(classes)) if self.shuffle else range(len(classes))
        return self._limited(np.concatenate([self._drawn(classes[i], rng) for i in order]))

    def _drawn(self, rows: np.ndarray, rng) -> np.ndarray:
        passes = -(-self.num_val // len(rows))  # each row before one comes again
        return np.concatenate([rng.permutation(rows) for _ in range(passes)])[: self.num_val]

    def _shuffles(self):
        return self.shuffle

    def _fields(self):
        table = {"num_val": self.num_val, "shuffle": self.shuffle}
        return table if self.class_column == "label" else {**table, "class_column": self.class_column}
