"""Where rows come from: the base of sources with numbered rows, arrays in memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from mycelia.dataset import nodes
from mycelia.dataset.cache import checked as checked_cache
from mycelia.dataset.execution.worker_pool import computed, integers
from mycelia.dataset.execution.workers import Work
from mycelia.dataset.pipeline import Dataset
from mycelia.dataset.samplers import (
    BuiltinSampler,
    DistributedSampler,
    PKSampler,
    RandomSampler,
    SequentialSampler,
    SubsetSampler,
)
from mycelia.dataset.user_samplers import IterSampler
from mycelia.engine.base import errors


def directory(owner: str, name: str, value) -> Path:
    """An existing directory. TypeError for no path, ValueError for none that can be read."""
    if not isinstance(value, os.PathLike):
        nodes.of_type(owner, name, value, str)
    path = Path(value)
    if not path.is_dir() or not os.access(path, os.R_OK):
        raise errors.value_error(
            owner,
            f"The folder {value} does not exist or is not a directory or permission denied!",
        )
    return path


def _gives_rows(sampler) -> bool:
    return any(hasattr(sampler, name) for name in ("__iter__", "__getitem__"))


class RowWork(Work):
    """Rows by their numbers."""

    own = True

    def __init__(self, owner: str, row: Callable[[int], tuple], seed: int, salt: int):
        super().__init__(owner, owner, seed, salt)
        self._row = row

    def apply(self, epoch, number, item):
        return self._row(item)


class MappableDataset(Dataset):
    """Rows with numbers: a sampler decides which are read and in which order."""

    _first_order = (
        None  # the sampler and its order of the first epoch, once somebody asked for a row by its place
    )
    rest = None  # an `elastic.Rest`: what is left of an epoch that other shards have begun

    # The error for arguments that exclude each other.
    conflict = staticmethod(errors.runtime_error)

    def __init__(
        self,
        columns: list[str],
        num_samples=None,
        shuffle=None,
        sampler=None,
        num_shards=None,
        shard_id=None,
        num_parallel_workers=None,
        cache=None,
    ):
        super().__init__()
        owner = type(self).__name__
        self._columns = columns
        nodes.workers(owner, num_parallel_workers)
        self.cache = checked_cache(owner, cache)
        nodes.samples(owner, num_samples)
        nodes.of_type(owner, "shuffle", shuffle, bool, type(None))
        nodes.shards(owner, num_shards, shard_id, self.conflict)
        if sampler is not None:
            chosen = isinstance(sampler, BuiltinSampler) or not self._in_memory()
            others = {"shuffle": shuffle, "sharding": num_shards, "num_samples": num_samples}
            for name, value in others.items():
                if chosen and value is not None:
                    raise self.conflict(owner, f"sampler and {name} cannot be specified at the same time.")
            sampler = self._sampler(sampler, num_samples)
            if isinstance(sampler, PKSampler) and self._in_memory():
                raise errors.value_error(
                    owner, "sampler: a PKSampler needs the class of rows, which this source does not know"
                )
        elif num_shards is not None:
            sampler = DistributedSampler(num_shards, shard_id, shuffle is not False, num_samples)
        else:
            shuffled = self._shuffles_by_default() if shuffle is None else shuffle
            kind = RandomSampler if shuffled else SequentialSampler
            sampler = kind(num_samples=num_samples)
        self.sampler = sampler
        self.num_parallel_workers = num_parallel_workers

    def _shuffles_by_default(self) -> bool:
        return True

    def get_col_names(self):
        return list(self._columns)

    def source_size(self) -> int:
        """Rows the source has."""
        raise errors.error(errors.NotSupportedError, type(self).__name__, "source_size() is not defined")

    def row(self, index: int) -> tuple:
        """One row."""
        raise errors.error(errors.NotSupportedError, type(self).__name__, "row(index) is not defined")

    def labels(self) -> np.ndarray | None:
        """Class number of each row, for `PKSampler`; None if the source has none."""
        return None

    def _ready(self) -> BuiltinSampler:
        """The sampler, its PK samplers told the classes."""
        sampler = self.sampler
        while sampler is not None:
            if isinstance(sampler, PKSampler):
                sampler.labels = self.labels()  # another source may have used it before
            sampler = sampler.child_sampler
        return self.sampler

    def is_shuffled(self) -> bool:
        """Whether the rows come in a random order."""
        return self.sampler is not None and self.sampler.is_shuffled()

    def is_sharded(self) -> bool:
        """Whether the rows are shared among processes."""
        return self.sampler is not None and self.sampler.is_sharded()

    def get_dataset_size(self):
        return self._ready().total(self.source_size())

    def add_sampler(self, new_sampler) -> None:
        """Let another sampler choose first: the one that is there chooses among its rows."""
        if new_sampler is None:
            return
        new_sampler = self._sampler(new_sampler)
        if self.sampler is not None:
            last = new_sampler
            while last.child_sampler is not None:
                last = last.child_sampler
            last.add_child(self.sampler)
        self.sampler = new_sampler

    def use_sampler(self, new_sampler) -> None:
        """Read by another sampler. TypeError for none."""
        if new_sampler is None:
            raise errors.type_error(f"{type(self).__name__}.use_sampler", "a sampler is needed, but got None")
        if not isinstance(new_sampler, BuiltinSampler):
            raise errors.type_error(
                f"{type(self).__name__}.use_sampler", f"{new_sampler!r} is not an instance of a sampler"
            )
        self.sampler = new_sampler

    def _in_memory(self) -> bool:
        """Whether rows are Python's own: such sources take row numbers together with num_samples."""
        return self.conflict is errors.value_error

    def _sampler(self, sampler, num_samples=None) -> BuiltinSampler:
        if isinstance(sampler, BuiltinSampler):
            return sampler
        if isinstance(sampler, int) and not isinstance(sampler, bool) and not self._in_memory():
            sampler = [sampler]
        if isinstance(sampler, (list, np.ndarray)):
            return SubsetSampler(sampler, num_samples)
        if not _gives_rows(sampler) or isinstance(sampler, str):
            raise errors.type_error(
                type(self).__name__,
                f"Unsupported sampler object of type ({type(sampler)}): a sampler or an iterable of row "
                "numbers is needed",
            )
        return IterSampler(sampler, num_samples)

    def _number_at(self, index) -> int:
        """The number of the row that comes at place `index` of the first epoch. TypeError, RuntimeError."""
        owner = type(self).__name__
        nodes.of_type(owner, "index", index, int, np.number)
        if self._first_order is None or self._first_order[0] is not self.sampler:
            self._first_order = self.sampler, self.order(0)
        order = self._first_order[1]
        if not 0 <= index < len(order):
            what = "can not be a negative number" if index < 0 else "exceeded the number of data samples"
            raise errors.runtime_error(owner, f"Index [{index}] {what}. There are {len(order)}")
        return int(order[int(index)])

    def prepare(self):
        self.source_size()

    def file_of(self, index: int) -> str:
        """The file that holds a row, for messages; "" if there is none."""
        return ""

    def order(self, epoch: int) -> np.ndarray:
        """Numbers of the rows of an epoch in their order, as the sampler chooses them."""
        if self.rest is not None and self.rest.epoch == epoch:
            return self.rest.order(self._ready(), self.source_size(), self.generator(epoch))
        order = np.asarray(self._ready().rows(self.source_size(), self.generator(epoch)))
        sampler = self.sampler
        while sampler is not None:
            sampler.reset()
            sampler = sampler.child_sampler
        return order

    def origin(self, epoch, number):
        index = int(self.order(epoch)[number])
        file = self.file_of(index)
        return f"row {index} of {type(self).__name__}" + (nodes.FILE + file if file else "")

    def rows(self, epoch):
        return self.rows_from(epoch, 0)

    def rows_from(self, epoch, start):
        work = RowWork(type(self).__name__, self.row, self.seed(), self.salt())
        return computed(self, work, epoch, start, integers(self.order(epoch)[start:]))


class NumpySlicesDataset(MappableDataset):
    """Rows along the first axis: of one array or list, of a tuple of them, or of a dict name -> array."""

    conflict = staticmethod(errors.value_error)

    def __init__(
        self,
        data,
        column_names=None,
        num_samples=None,
        num_parallel_workers=1,
        shuffle=None,
        sampler=None,
        num_shards=None,
        shard_id=None,
    ):
        owner = "NumpySlicesDataset"
        if not isinstance(data, (list, tuple, dict, np.ndarray)):
            raise errors.type_error(
                owner, f"data must be a list, tuple, dict or array, but got {type(data).__name__}"
            )
        if not len(data):
            raise errors.value_error(owner, "data must not be empty")
        if isinstance(data, dict):
            names, columns = list(data), list(data.values())
        elif isinstance(data, tuple):
            columns = list(data)
            names = [f"column_{i}" for i in range(len(columns))]
        else:
            columns, names = [data], ["column_0"]
        if column_names is not None:
            given = nodes.names(owner, "column_names", column_names)
            if len(given) != len(columns):
                raise errors.value_error(
                    owner, f"{len(columns)} columns need as many column_names, but got {given}"
                )
            names = given
        for c in columns:
            if not hasattr(c, "__len__"):
                raise errors.type_error(owner, f"every column must be a list or array, but got {c!r}")
        if len({len(c) for c in columns}) > 1:
            raise errors.value_error(owner, f"the columns have different lengths {[len(c) for c in columns]}")
        super().__init__(names, num_samples, shuffle, sampler, num_shards, shard_id, num_parallel_workers)
        self._arrays = [_sliced(c) for c in columns]

    def source_size(self):
        return len(self._arrays[0])

    def __getitem__(self, index):
        """A row by its place in the first epoch."""
        return self.row(self._number_at(index))

    def row(self, index):
        return tuple(nodes.column(a[index], "NumpySlicesDataset") for a in self._arrays)

    def batches(self, epoch, size, drop_remainder):
        """Batches of rows, cut out of the arrays at once; None where a column is no array of numbers."""
        if any(not isinstance(a, np.ndarray) or a.dtype.kind not in "biufc" for a in self._arrays):
            return None
        order = self.order(epoch)
        stop = len(order) // size * size if drop_remainder else len(order)
        return (tuple([a[order[i : i + size]] for a in self._arrays]) for i in range(0, stop, size))


def _sliced(values):
    """An array, or the list itself where its elements have different shapes."""
    if hasattr(values, "asnumpy"):
        return values.asnumpy()
    if any(isinstance(v, str) for v in values):
        return list(values)
    try:
        array = np.asarray(values)
    except ValueError:
        return list(values)
    return list(values) if array.dtype == object else array
