"""Rows of MindRecord files as a dataset."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np

from mycelia.dataset.cache import checked as checked_cache
from mycelia.dataset.pipeline import Dataset
from mycelia.dataset.samplers import (
    BuiltinSampler,
    DistributedSampler,
    PKSampler,
    RandomSampler,
    SequentialSampler,
    Shuffle,
    SubsetSampler,
)
from mycelia.dataset.sources.numbered import MappableDataset
from mycelia.engine.base import errors

_OWNER = "MindDataset"
_PARTIAL = 1_000_000  # rows that Shuffle.PARTIAL mixes with one another
_ADAPTIVE = 100_000_000  # up to here Shuffle.ADAPTIVE is GLOBAL, above PARTIAL
_CHUNK_ROWS, _CHUNK_BYTES = 1024, 1 << 20  # read in one step: much for NumPy, little for the cache
_SAMPLERS = (SequentialSampler, RandomSampler, SubsetSampler, DistributedSampler, PKSampler)


_LEVELS = (Shuffle.ADAPTIVE, Shuffle.GLOBAL, Shuffle.PARTIAL, Shuffle.FILES, Shuffle.INFILE)


class _ShuffleSampler(BuiltinSampler):
    """The order of a level of shuffling; `sizes` are the numbers of rows of the files, `shard` (n, k)."""

    def __init__(self, level: Shuffle, sizes: list[int], num_samples: int | None, shard=None):
        super().__init__(num_samples)
        self.level, self.sizes, self.shard = level, sizes, shard

    def _pieces(self, rng) -> list[np.ndarray]:
        size = sum(self.sizes)
        if self.level in (Shuffle.FILES, Shuffle.INFILE):
            ends = np.cumsum(self.sizes)
            pieces = [np.arange(end - n, end) for end, n in zip(ends, self.sizes)]
            if self.level is Shuffle.FILES:
                return [pieces[k] for k in rng.permutation(len(pieces))]
        else:
            step = _PARTIAL if self.level is Shuffle.PARTIAL else max(size, 1)
            pieces = [np.arange(at, min(at + step, size)) for at in range(0, size, step)]
        return [rng.permutation(piece) for piece in pieces]

    def count(self, size):
        return super().count(size if self.shard is None else -(-size // self.shard[0]))

    def choose(self, size, rng):
        order = np.concatenate(
            [*self._pieces(rng), np.arange(sum(self.sizes), size)]
        )  # padded rows stay last
        if self.shard is not None and size:
            shards, number = self.shard
            order = np.resize(order, -(-size // shards) * shards)[number::shards]
        return self._limited(order)

    def _shuffles(self):
        return True

    def _shards(self):
        return self.shard is not None


class _ClassSampler(BuiltinSampler):
    """What a PKSampler asks for; the rows of a class that has fewer than `num_val` come again."""

    def __init__(self, wish: PKSampler, labels: np.ndarray):
        super().__init__(wish.num_samples)
        self.wish = wish
        self.classes = [np.flatnonzero(labels == label) for label in np.unique(labels)]

    def count(self, size):
        return super().count(self.wish.num_val * len(self.classes))

    def choose(self, size, rng):
        mixed = rng.permutation if self.wish.shuffle else np.asarray
        order = [np.resize(mixed(rows), self.wish.num_val) for rows in self.classes]
        return self._limited(mixed(np.concatenate([np.arange(0), *order])))

    def _shuffles(self):
        return self.wish.shuffle


def _of_type(name: str, value, kind: type) -> None:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        raise errors.type_error(
            f"Argument {name} with value {value} is not of type [{kind}], but got {type(value)}."
        )


class MindDataset(MappableDataset):
    """Rows of MindRecord files: numbers, texts, arrays, and each bytes field as one byte string, shape [1].

    `dataset_files`: one file of a data set, of which all are read, or a list of just the files to read.
    Columns are sorted by name, or those of `columns_list` in its order. `num_padded` rows like
    `padded_sample` follow the rows of the files, so that shards come out even.
    Errors: ValueError for missing files, RuntimeError for damaged ones and unknown columns.
    """

    def __init__(
        self,
        dataset_files,
        columns_list=None,
        num_parallel_workers=None,
        shuffle=None,
        num_shards=None,
        shard_id=None,
        sampler=None,
        padded_sample=None,
        num_padded=None,
        num_samples=None,
        cache=None,
    ):
        _check_files(dataset_files)
        _check_arguments(columns_list, num_parallel_workers, shuffle, num_samples, cache)
        _check_padding(columns_list, padded_sample, num_padded, num_shards)
        _check_sampling(shuffle, num_shards, shard_id, sampler)
        Dataset.__init__(self)  # the sampler is chosen when the files are open
        self.cache = cache
        self.sampler = sampler
        self.dataset_files, self.columns_list = dataset_files, list(columns_list or ())
        self.padded_sample, self.num_padded = dict(padded_sample or {}), num_padded or 0
        self.num_samples, self.shuffle_level = num_samples or None, _level(shuffle)
        self.num_shards, self.shard_id = num_shards, shard_id
        self._given_sampler = sampler
        self._shards = None

    # ---- the files are opened at the first look: pipelines are built before their files are read -----------

    def _open(self):
        if self._shards is None:
            from mycelia.mindrecord.shard import Shards

            if not self.dataset_files:
                raise errors.runtime_error(_OWNER, "dataset files list is empty, check input dataset_files.")
            shards = Shards.open(self.dataset_files)
            unknown = [c for c in self.columns_list if c not in shards.schema.fields]
            if unknown:
                raise errors.runtime_error(
                    _OWNER,
                    f"Invalid data, column name: {unknown[0]} can not found in schema. "
                    f"It has {sorted(shards.schema.fields)}.",
                )
            self._columns = self.columns_list or sorted(shards.schema.fields)
            self._wanted = set(self._columns)
            self._shards = shards
            self._choose_sampler()
        return self._shards

    def _choose_sampler(self) -> None:
        if isinstance(self._given_sampler, PKSampler):
            field = self._given_sampler.class_column
            if field not in self._shards.schema.fields:
                raise errors.runtime_error(
                    _OWNER, f"'class_column': {field} can not found in fields of mindrecord files"
                )
            self.sampler = _ClassSampler(self._given_sampler, np.asarray(self._shards.column(field)))
        if self._given_sampler is not None:
            return
        shard = None if self.num_shards is None else (self.num_shards, self.shard_id)
        level = self.shuffle_level
        if level is None and shard is None:
            self.sampler = SequentialSampler(num_samples=self.num_samples)
        elif level is None:
            self.sampler = DistributedSampler(*shard, shuffle=False, num_samples=self.num_samples)
        else:
            if level is Shuffle.ADAPTIVE:
                level = Shuffle.GLOBAL if self.source_size() <= _ADAPTIVE else Shuffle.PARTIAL
            sizes = [len(file) for file in self._shards.files]
            self.sampler = _ShuffleSampler(level, sizes, self.num_samples, shard)

    def add_sampler(self, new_sampler) -> None:
        """Let another sampler choose first: the one that is there chooses among its rows."""
        self._open()
        super().add_sampler(new_sampler)

    def use_sampler(self, new_sampler: BuiltinSampler) -> None:
        """Use another sampler."""
        self._given_sampler = self.sampler = new_sampler
        self._shards = None

    def get_col_names(self):
        self._open()
        return list(self._columns)

    def source_size(self):
        return len(self._open()) + self.num_padded

    def get_dataset_size(self):
        size = self.source_size()
        if self.num_shards is not None and self.num_padded and size % self.num_shards:
            raise errors.runtime_error(
                _OWNER, f"{size} rows with the padded ones are not divisible by num_shards {self.num_shards}"
            )
        return self.sampler.total(size)

    def rows(self, epoch):
        for columns, count in self._chunks(epoch, 1):
            for k in range(count):
                # An index with "..." gives an array even of one number, a view of its chunk.
                yield tuple(c[k, ...] if isinstance(c, np.ndarray) else c[k] for c in columns)

    def batches(self, epoch: int, size: int, drop_remainder: bool) -> Iterator[tuple] | None:
        """Columns of `size` rows each, without a row in between; None where rows are padded."""
        return None if self.num_padded else self._batches(epoch, size, drop_remainder)

    def _batches(self, epoch, size, drop_remainder):
        for columns, count in self._chunks(epoch, size):
            for at in range(0, count, size):
                if at + size > count and drop_remainder:
                    return
                parts = [c[at : at + size] for c in columns]
                yield tuple(_stacked(c, n) for n, c in zip(self._columns, parts))

    def _chunks(self, epoch: int, multiple: int) -> Iterator[tuple[list, int]]:
        """(columns, rows) for a few rows at a time, a multiple of `multiple` except for the last."""
        self.get_dataset_size()
        shards = self._open()
        order = np.asarray(self.sampler.rows(self.source_size(), self.generator(epoch)), np.int64)
        wanted = max(1, min(_CHUNK_ROWS, int(_CHUNK_BYTES / shards.row_bytes)))
        step = max(1, wanted // multiple) * multiple
        fields = shards.schema.fields
        for at in range(0, len(order), step):
            numbers = order[at : at + step]
            if self.num_padded and int(numbers.max()) >= len(shards):
                yield list(zip(*map(self.row, numbers.tolist()))), len(numbers)
                continue
            found = shards.columns(numbers, self._wanted)
            yield [_array(found[name], fields[name]) for name in self._columns], len(numbers)

    def row(self, index):
        shards = self._open()
        if index >= len(shards):
            row = self.padded_sample
        else:
            row = shards.row(index, self._wanted)
        fields = shards.schema.fields
        return tuple(_column(row[name], fields[name]) for name in self._columns)


def _column(value, spec: dict) -> np.ndarray:
    kind = spec["type"]
    if kind == "bytes":
        return np.array([bytes(value)])
    if kind == "string":
        return np.array(value)
    if "shape" in spec:
        return np.asarray(value, kind)
    return np.array(value).astype(kind)


def _array(values, spec: dict) -> np.ndarray | list:
    """A column as `Shards.columns` gives it: one array, or a list of the arrays of the rows."""
    if isinstance(values, np.ndarray) and values.dtype != object:
        return values
    return [_column(value, spec) for value in values]


def _stacked(column, name: str):
    if isinstance(column, np.ndarray):
        return column
    from mycelia.dataset.batching import stacked

    return stacked(column, name, "Dataset.batch")


def _level(shuffle) -> Shuffle | None:
    if shuffle is False:
        return None
    return Shuffle.ADAPTIVE if shuffle is None or shuffle is True else Shuffle(shuffle)


def _check_files(files) -> None:
    from mycelia.mindrecord.shard import exists

    for path in files if isinstance(files, list) else [files]:
        if not isinstance(path, str):
            raise errors.type_error(f"path: {path} is not string")
        if not exists(path):
            raise errors.value_error(f"The file {os.path.abspath(path)} does not exist or permission denied!")


def _check_arguments(columns_list, num_parallel_workers, shuffle, num_samples, cache) -> None:
    if columns_list is not None:
        _of_type("columns_list", columns_list, list)
        if len(set(columns_list)) != len(columns_list):
            raise errors.value_error(_OWNER, f"columns_list names a column twice: {columns_list}")
    if num_parallel_workers is not None:
        _of_type("num_parallel_workers", num_parallel_workers, int)
        most = os.cpu_count() or 1
        if not 1 <= num_parallel_workers <= most:
            raise errors.value_error(f"num_parallel_workers exceeds the boundary between 1 and {most}!")
    if shuffle is not None and not isinstance(shuffle, bool) and shuffle not in _LEVELS:
        names = " or ".join(f"'Shuffle.{level.name}'" for level in _LEVELS)
        raise errors.type_error(f"shuffle must be of boolean or enum of 'Shuffle' values like {names}.")
    if num_samples is not None:
        _of_type("num_samples", num_samples, int)
        if num_samples < 0:
            raise errors.value_error(
                "num_samples exceeds the boundary between 0 and 9223372036854775807(INT64_MAX)!"
            )
        if shuffle in (Shuffle.FILES, Shuffle.INFILE):
            raise errors.value_error(
                "'Shuffle.FILES' or 'Shuffle.INFILE' and 'num_samples' cannot be specified at the same time."
            )
    checked_cache(_OWNER, cache)


def _check_padding(columns_list, padded_sample, num_padded, num_shards) -> None:
    if padded_sample is None and num_padded is None:
        return
    if padded_sample is not None:
        _of_type("padded_sample", padded_sample, dict)
    if num_padded is not None:
        _of_type("num_padded", num_padded, int)
    if padded_sample is None:
        raise errors.runtime_error("num_padded is specified but padded_sample is not.")
    if num_padded is None:
        raise errors.runtime_error("padded_sample is specified and requires num_padded as well.")
    if num_padded < 0:
        raise errors.value_error(f"num_padded is invalid, num_padded={num_padded}.")
    if not columns_list:
        raise errors.runtime_error("padded_sample is specified and requires columns_list as well.")
    if any(name not in padded_sample for name in columns_list):
        raise errors.value_error("padded_sample cannot match columns_list.")


def _check_sampling(shuffle, num_shards, shard_id, sampler) -> None:
    if sampler is not None:
        if not isinstance(sampler, _SAMPLERS):
            raise errors.value_error("The sampler is not supported yet.")
        if shuffle is not None:
            raise errors.runtime_error("sampler and shuffle cannot be specified at the same time.")
        if num_shards is not None or shard_id is not None:
            raise errors.runtime_error("sampler and sharding cannot be specified at the same time.")
    if num_shards is not None:
        _of_type("num_shards", num_shards, int)
        if num_shards < 1:
            raise errors.value_error(
                "Input num_shards is not within the required interval of [1, 2147483647]."
            )
        if shard_id is None:
            raise errors.runtime_error("num_shards is specified and currently requires shard_id as well.")
    if shard_id is not None:
        if num_shards is None:
            raise errors.runtime_error("shard_id is specified but num_shards is not.")
        _of_type("shard_id", shard_id, int)
        if not 0 <= shard_id < num_shards:
            raise errors.value_error(
                f"Input shard_id is not within the required interval of [0, {num_shards - 1}]."
            )
