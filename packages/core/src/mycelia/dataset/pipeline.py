"""Dataset nodes: each reads rows from its sources and passes them on.

A row is a tuple of NumPy arrays, one per column. Nodes are built lazily and read once per epoch; nothing is
computed before an iterator asks for it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np

from mycelia import errors
from mycelia.dataset import config

_salts = itertools.count(1)


def _int(owner: str, name: str, value, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise errors.type_error(owner, f"{name} must be an int, but got {value!r}")
    if value < least:
        raise errors.value_error(owner, f"{name} must be at least {least}, but got {value}")
    return value


def _names(owner: str, name: str, value) -> list[str]:
    items = [value] if isinstance(value, str) else list(value)
    for item in items:
        if not isinstance(item, str):
            raise errors.type_error(owner, f"{name} must be a str or a list of str, but got {value!r}")
    return items


class Dataset:
    """Base of all nodes. `children` are the nodes it reads."""

    def __init__(self, *children: Dataset):
        for child in children:
            if not isinstance(child, Dataset):
                raise errors.type_error(
                    type(self).__name__, f"a dataset was expected, but got {type(child).__name__}"
                )
        self.children = list(children)
        self._salt = next(_salts)
        self._epoch = 0

    # ---- what a node defines -------------------------------------------------------------------------------

    def rows(self, epoch: int) -> Iterator[tuple]:
        """The rows of one epoch."""
        raise errors.error(errors.NotSupportedError, type(self).__name__, "rows(epoch) is not defined")

    def get_col_names(self) -> list[str]:
        """Names of the columns."""
        return self.children[0].get_col_names()

    def get_dataset_size(self) -> int:
        """Number of rows (batches, after `batch`) of an epoch."""
        return self.children[0].get_dataset_size()

    def get_batch_size(self) -> int:
        """Rows per batch, 1 without `batch`."""
        return self.children[0].get_batch_size() if self.children else 1

    def get_repeat_count(self) -> int:
        """How often `repeat` repeats, 1 without it."""
        return self.children[0].get_repeat_count() if self.children else 1

    def num_classes(self) -> int | None:
        """Number of classes where the source knows it, else None."""
        return self.children[0].num_classes() if self.children else None

    # ---- operations ----------------------------------------------------------------------------------------

    def batch(
        self, batch_size, drop_remainder: bool = False, num_parallel_workers: int | None = None, **kwargs
    ) -> BatchDataset:
        """Stack `batch_size` rows (an int, or a function of the batch's number and epoch).

        `per_batch_map(column..., batch_info)` with `input_columns` and `output_columns` changes each batch.
        """
        return BatchDataset(self, batch_size, drop_remainder, **kwargs)

    def map(
        self,
        operations,
        input_columns=None,
        output_columns=None,
        num_parallel_workers: int | None = None,
        **kwargs,
    ) -> MapDataset:
        """Apply a function or a list of them to the input columns (default: the first)."""
        return MapDataset(self, operations, input_columns, output_columns)

    def shuffle(self, buffer_size: int) -> ShuffleDataset:
        """Random order within a sliding window of `buffer_size` rows."""
        return ShuffleDataset(self, buffer_size)

    def repeat(self, count: int | None = None) -> RepeatDataset:
        """`count` passes as one epoch; None or -1: no end."""
        return RepeatDataset(self, count)

    def take(self, count: int = -1) -> Dataset:
        """The first `count` rows; -1: all."""
        return self if count == -1 else TakeDataset(self, count)

    def skip(self, count: int) -> SkipDataset:
        """All but the first `count` rows."""
        return SkipDataset(self, count)

    def zip(self, datasets) -> ZipDataset:
        """Columns of several datasets side by side; the shortest decides the size."""
        others = datasets if isinstance(datasets, (tuple, list)) else (datasets,)
        return ZipDataset((self, *others))

    def concat(self, datasets) -> ConcatDataset:
        """The rows of several datasets one after the other."""
        others = datasets if isinstance(datasets, (tuple, list)) else (datasets,)
        return ConcatDataset((self, *others))

    def __add__(self, other: Dataset) -> ConcatDataset:
        return self.concat(other)

    def project(self, columns) -> ProjectDataset:
        """Only these columns, in this order."""
        return ProjectDataset(self, columns)

    def rename(self, input_columns, output_columns) -> RenameDataset:
        """Other names for columns."""
        return RenameDataset(self, input_columns, output_columns)

    def filter(
        self, predicate: Callable, input_columns=None, num_parallel_workers: int | None = None
    ) -> FilterDataset:
        """Only rows for which ``predicate(columns...)`` is true."""
        return FilterDataset(self, predicate, input_columns)

    def split(self, sizes, randomize: bool = True) -> list[Dataset]:
        """Parts of the given sizes: ints that sum to the size, or fractions that sum to 1."""
        total = self.get_dataset_size()
        counts = _split_counts(sizes, total)
        source = self.shuffle(max(2, total)) if randomize else self
        if randomize:
            source = _Frozen(source)
        parts, start = [], 0
        for count in counts:
            parts.append(source.skip(start).take(count))
            start += count
        return parts

    def apply(self, apply_func: Callable[[Dataset], Dataset]) -> Dataset:
        """``apply_func(self)``."""
        made = apply_func(self)
        if not isinstance(made, Dataset):
            raise errors.type_error(
                "Dataset.apply", f"apply_func must return a dataset, but returned {type(made).__name__}"
            )
        return made

    # ---- reading -------------------------------------------------------------------------------------------

    def create_tuple_iterator(
        self, columns=None, num_epochs: int = -1, output_numpy: bool = False, do_copy: bool = False
    ) -> DatasetIterator:
        """An iterator over rows as lists of Tensors (arrays with `output_numpy`);
        one ``for`` loop is one epoch.
        """
        source = self if columns is None else self.project(columns)
        return DatasetIterator(source, num_epochs, output_numpy, as_dict=False)

    def create_dict_iterator(
        self, num_epochs: int = -1, output_numpy: bool = False, do_copy: bool = False
    ) -> DatasetIterator:
        """An iterator over rows as dicts by column name; one ``for`` loop is one epoch."""
        return DatasetIterator(self, num_epochs, output_numpy, as_dict=True)

    def __iter__(self):
        return iter(self.create_tuple_iterator(num_epochs=1))

    def __len__(self) -> int:
        return self.get_dataset_size()

    def reset(self) -> None:
        """Start from the first epoch again."""
        self._epoch = 0

    def _first_row(self) -> tuple:
        row = next(self.rows(0), None)
        if row is None:
            raise errors.value_error(type(self).__name__, "the dataset is empty")
        return row

    def output_shapes(self, estimate: bool = False) -> list[list[int]]:
        """Shape of each column in the first row."""
        return [list(np.shape(c)) for c in self._first_row()]

    def output_types(self) -> list[np.dtype]:
        """NumPy dtype of each column."""
        return [np.asarray(c).dtype for c in self._first_row()]


def _split_counts(sizes, total: int) -> list[int]:
    sizes = list(sizes)
    if not sizes:
        raise errors.value_error("Dataset.split", "sizes must not be empty")
    if all(isinstance(s, int) and not isinstance(s, bool) and s > 0 for s in sizes):
        if sum(sizes) != total:
            raise errors.value_error(
                "Dataset.split", f"sizes sum to {sum(sizes)}, but the dataset has {total} rows"
            )
        return sizes
    if not all(isinstance(s, float) and 0 < s <= 1 for s in sizes) or abs(sum(sizes) - 1) > 1e-9:
        raise errors.value_error(
            "Dataset.split", f"sizes must be positive ints, or fractions that sum to 1, but got {sizes}"
        )
    counts = [round(s * total) for s in sizes]
    counts[-1] += total - sum(counts)
    if min(counts) < 1:
        raise errors.value_error("Dataset.split", f"a part of {sizes} of {total} rows would be empty")
    return counts


class DatasetIterator:
    """Rows of a dataset; each ``iter()`` starts the next epoch, `num_epochs` of them (-1: no limit)."""

    def __init__(self, dataset: Dataset, num_epochs: int, output_numpy: bool, as_dict: bool):
        if (
            isinstance(num_epochs, bool)
            or not isinstance(num_epochs, int)
            or (num_epochs < 1 and num_epochs != -1)
        ):
            raise errors.value_error(
                "create_iterator", f"num_epochs must be positive or -1, but got {num_epochs!r}"
            )
        self._dataset, self._left, self._numpy = dataset, num_epochs, output_numpy
        self._names = dataset.get_col_names() if as_dict else None
        self._rows: Iterator | None = None

    def __iter__(self):
        self._start()
        return self

    def _start(self) -> None:
        if self._left == 0:
            self._rows = iter(())
            return
        self._left -= self._left > 0
        self._rows = self._dataset.rows(self._dataset._epoch)
        self._dataset._epoch += 1

    def __next__(self):
        if self._rows is None:
            self._start()
        row = next(self._rows)
        values = list(row) if self._numpy else [_to_tensor(c) for c in row]
        return values if self._names is None else dict(zip(self._names, values))

    def stop(self) -> None:
        """Give up the rest."""
        self._rows, self._left = iter(()), 0

    def release(self) -> None:
        """Give up the rest."""
        self.stop()

    def get_dataset_size(self) -> int:
        return self._dataset.get_dataset_size()


def _to_tensor(column):
    from mycelia.tensor import Tensor

    array = np.asarray(column)
    if array.dtype.kind in "USO":  # texts stay arrays: Tensors hold numbers
        return array
    return Tensor(array)


class _Frozen(Dataset):
    """The first epoch of its source again and again: parts of a split must not mix."""

    def rows(self, epoch):
        return self.children[0].rows(0)


class MapDataset(Dataset):
    """Functions applied to columns."""

    def __init__(self, source, operations, input_columns=None, output_columns=None):
        super().__init__(source)
        operations = list(operations) if isinstance(operations, (list, tuple)) else [operations]
        for operation in operations:
            if not callable(operation):
                raise errors.type_error(
                    "Dataset.map", f"every operation must be callable, but got {type(operation).__name__}"
                )
        if not operations:
            raise errors.value_error("Dataset.map", "operations must not be empty")
        names = source.get_col_names()
        self.operations = operations
        self.input_columns = (
            names[:1] if not input_columns else _names("Dataset.map", "input_columns", input_columns)
        )
        self.output_columns = (
            self.input_columns
            if not output_columns
            else _names("Dataset.map", "output_columns", output_columns)
        )
        missing = [c for c in self.input_columns if c not in names]
        if missing:
            raise errors.value_error(
                "Dataset.map", f"input_columns {missing} are not among the columns {names}"
            )
        self._picked = [names.index(c) for c in self.input_columns]
        kept = [n for n in names if n not in self.input_columns]
        self._kept = [names.index(c) for c in kept]
        same = len(self.output_columns) == len(self.input_columns)
        self._in_place = same
        if same:
            table = dict(zip(self.input_columns, self.output_columns))
            self._columns = [table.get(n, n) for n in names]
        else:
            self._columns = [*self.output_columns, *kept]

    def get_col_names(self):
        return list(self._columns)

    def rows(self, epoch):
        randoms = [op for op in self.operations if hasattr(op, "seed_epoch")]
        for op in randoms:
            op.seed_epoch(config.generator(epoch, self._salt))
        for row in self.children[0].rows(epoch):
            values = tuple(row[i] for i in self._picked)
            for operation in self.operations:
                values = operation(*values)
                if not isinstance(values, tuple):
                    values = (values,)
            if len(values) != len(self.output_columns):
                raise errors.value_error(
                    "Dataset.map",
                    f"the operations gave {len(values)} columns, but output_columns names "
                    f"{len(self.output_columns)}",
                )
            values = tuple(np.asarray(v) for v in values)
            if self._in_place:
                out = list(row)
                for i, v in zip(self._picked, values):
                    out[i] = v
                yield tuple(out)
            else:
                yield (*values, *(row[i] for i in self._kept))


class BatchDataset(Dataset):
    """Rows stacked to batches."""

    def __init__(
        self,
        source,
        batch_size,
        drop_remainder=False,
        per_batch_map=None,
        input_columns=None,
        output_columns=None,
        **kwargs,
    ):
        super().__init__(source)
        unknown = set(kwargs) - {"python_multiprocessing", "max_rowsize"}
        if unknown:
            raise errors.type_error("Dataset.batch", f"got unexpected arguments {sorted(unknown)}")
        self.batch_size = (
            batch_size if callable(batch_size) else _int("Dataset.batch", "batch_size", batch_size, 1)
        )
        if not isinstance(drop_remainder, bool):
            raise errors.type_error(
                "Dataset.batch", f"drop_remainder must be a bool, but got {drop_remainder!r}"
            )
        self.drop_remainder, self.per_batch_map = drop_remainder, per_batch_map
        names = source.get_col_names()
        self.input_columns = (
            names if not input_columns else _names("Dataset.batch", "input_columns", input_columns)
        )
        self.output_columns = (
            self.input_columns
            if not output_columns
            else _names("Dataset.batch", "output_columns", output_columns)
        )
        if per_batch_map is not None and not callable(per_batch_map):
            raise errors.type_error(
                "Dataset.batch", f"per_batch_map must be callable, but got {type(per_batch_map).__name__}"
            )

    def get_col_names(self):
        names = self.children[0].get_col_names()
        if self.per_batch_map is None:
            return names
        return [*self.output_columns, *(n for n in names if n not in self.input_columns)]

    def get_batch_size(self):
        return 1 if callable(self.batch_size) else self.batch_size

    def get_dataset_size(self):
        rows = self.children[0].get_dataset_size()
        if callable(self.batch_size):
            return sum(1 for _ in self.rows(0))
        return rows // self.batch_size if self.drop_remainder else -(-rows // self.batch_size)

    def rows(self, epoch):
        number = 0
        pending: list[tuple] = []
        size = self._size(number, epoch)
        for row in self.children[0].rows(epoch):
            pending.append(row)
            if len(pending) == size:
                yield self._stack(pending, number, epoch)
                pending = []
                number += 1
                size = self._size(number, epoch)
        if pending and not self.drop_remainder:
            yield self._stack(pending, number, epoch)

    def _size(self, number: int, epoch: int) -> int:
        if not callable(self.batch_size):
            return self.batch_size
        return _int(
            "Dataset.batch", "the result of batch_size", int(self.batch_size(BatchInfo(number, epoch))), 1
        )

    def _stack(self, rows: list[tuple], number: int, epoch: int) -> tuple:
        names = self.children[0].get_col_names()
        columns = list(zip(*rows))
        if self.per_batch_map is None:
            return tuple(self._stacked(c, n) for c, n in zip(columns, names))
        picked = [list(columns[names.index(c)]) for c in self.input_columns]
        made = self.per_batch_map(*picked, BatchInfo(number, epoch))
        made = made if isinstance(made, tuple) else (made,)
        if len(made) != len(self.output_columns):
            raise errors.value_error(
                "Dataset.batch",
                f"per_batch_map gave {len(made)} columns, output_columns names {len(self.output_columns)}",
            )
        rest = [self._stacked(columns[i], n) for i, n in enumerate(names) if n not in self.input_columns]
        return (*(self._stacked(c, n) for c, n in zip(made, self.output_columns)), *rest)

    @staticmethod
    def _stacked(values, name: str) -> np.ndarray:
        try:
            return np.stack(values) if isinstance(values, (list, tuple)) else np.asarray(values)
        except ValueError:
            shapes = sorted({np.shape(v) for v in values})
            raise errors.shape_error(
                "Dataset.batch", f"column '{name}' has rows of different shapes {shapes} within one batch",
                hint="bring them to one shape with map, or pad them in per_batch_map",
            ) from None  # fmt: skip


class BatchInfo:
    """What `per_batch_map` and a batch size function learn: the batch's number and the epoch."""

    __slots__ = ("_epoch", "_number")

    def __init__(self, number: int, epoch: int):
        self._number, self._epoch = number, epoch

    def get_batch_num(self) -> int:
        """Number of the batch in the epoch, from 0."""
        return self._number

    def get_epoch_num(self) -> int:
        """Number of the epoch, from 0."""
        return self._epoch


class ShuffleDataset(Dataset):
    """Random order within a sliding window."""

    def __init__(self, source, buffer_size):
        super().__init__(source)
        self.buffer_size = _int("Dataset.shuffle", "buffer_size", buffer_size, 2)

    def rows(self, epoch):
        rng = config.generator(epoch, self._salt)
        window: list[tuple] = []
        for row in self.children[0].rows(epoch):
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
        if count is None:
            count = -1
        if isinstance(count, bool) or not isinstance(count, int) or (count < 1 and count != -1):
            raise errors.value_error(
                "Dataset.repeat", f"count must be positive, -1 or None, but got {count!r}"
            )
        self.count = count

    def get_repeat_count(self):
        return self.count

    def get_dataset_size(self):
        size = self.children[0].get_dataset_size()
        return size if self.count == -1 else size * self.count

    def rows(self, epoch):
        passes = itertools.count() if self.count == -1 else range(self.count)
        for i in passes:
            yield from self.children[0].rows(epoch * max(self.count, 1) + i)


class TakeDataset(Dataset):
    """The first rows."""

    def __init__(self, source, count):
        super().__init__(source)
        self.count = _int("Dataset.take", "count", count, 1)

    def get_dataset_size(self):
        return min(self.count, self.children[0].get_dataset_size())

    def rows(self, epoch):
        return itertools.islice(self.children[0].rows(epoch), self.count)


class SkipDataset(Dataset):
    """All but the first rows."""

    def __init__(self, source, count):
        super().__init__(source)
        self.count = _int("Dataset.skip", "count", count, 0)

    def get_dataset_size(self):
        return max(0, self.children[0].get_dataset_size() - self.count)

    def rows(self, epoch):
        return itertools.islice(self.children[0].rows(epoch), self.count, None)


class ZipDataset(Dataset):
    """Columns side by side."""

    def __init__(self, datasets):
        super().__init__(*datasets)
        names = self.get_col_names()
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise errors.value_error("zip", f"the datasets share the column names {twice}; rename them first")

    def get_col_names(self):
        return [name for child in self.children for name in child.get_col_names()]

    def get_dataset_size(self):
        return min(child.get_dataset_size() for child in self.children)

    def rows(self, epoch):
        for parts in zip(*(child.rows(epoch) for child in self.children)):
            yield tuple(itertools.chain.from_iterable(parts))


class ConcatDataset(Dataset):
    """Rows one after the other."""

    def __init__(self, datasets):
        super().__init__(*datasets)
        names = self.children[0].get_col_names()
        for child in self.children[1:]:
            if child.get_col_names() != names:
                raise errors.value_error(
                    "concat", f"the datasets have different columns: {names} and {child.get_col_names()}"
                )

    def get_dataset_size(self):
        return sum(child.get_dataset_size() for child in self.children)

    def rows(self, epoch):
        for child in self.children:
            yield from child.rows(epoch)


class ProjectDataset(Dataset):
    """Some columns."""

    def __init__(self, source, columns):
        super().__init__(source)
        self.columns = _names("Dataset.project", "columns", columns)
        names = source.get_col_names()
        missing = [c for c in self.columns if c not in names]
        if missing:
            raise errors.value_error("Dataset.project", f"columns {missing} are not among {names}")
        self._picked = [names.index(c) for c in self.columns]

    def get_col_names(self):
        return list(self.columns)

    def rows(self, epoch):
        for row in self.children[0].rows(epoch):
            yield tuple(row[i] for i in self._picked)


class RenameDataset(Dataset):
    """Other column names."""

    def __init__(self, source, input_columns, output_columns):
        super().__init__(source)
        old = _names("Dataset.rename", "input_columns", input_columns)
        new = _names("Dataset.rename", "output_columns", output_columns)
        if len(old) != len(new):
            raise errors.value_error(
                "Dataset.rename", f"{len(old)} input_columns cannot get {len(new)} output_columns"
            )
        missing = [c for c in old if c not in source.get_col_names()]
        if missing:
            raise errors.value_error(
                "Dataset.rename", f"columns {missing} are not among {source.get_col_names()}"
            )
        self._table = dict(zip(old, new))

    def get_col_names(self):
        return [self._table.get(n, n) for n in self.children[0].get_col_names()]

    def rows(self, epoch):
        return self.children[0].rows(epoch)


class FilterDataset(Dataset):
    """Rows that pass a test."""

    def __init__(self, source, predicate, input_columns=None):
        super().__init__(source)
        if not callable(predicate):
            raise errors.type_error(
                "Dataset.filter", f"predicate must be callable, but got {type(predicate).__name__}"
            )
        names = source.get_col_names()
        columns = names if not input_columns else _names("Dataset.filter", "input_columns", input_columns)
        self.predicate = predicate
        self._picked = [names.index(c) for c in columns]

    def get_dataset_size(self):
        return sum(1 for _ in self.rows(0))

    def rows(self, epoch):
        for row in self.children[0].rows(epoch):
            if bool(np.all(self.predicate(*(row[i] for i in self._picked)))):
                yield row


def zip_datasets(datasets) -> ZipDataset:
    """Columns of the datasets in a tuple side by side."""
    if not isinstance(datasets, tuple):
        raise errors.type_error(
            "zip", f"datasets must be a tuple of datasets, but got {type(datasets).__name__}"
        )
    return ZipDataset(datasets)
