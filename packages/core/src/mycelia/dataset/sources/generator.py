"""Rows of the user's own Python objects."""

from __future__ import annotations

import itertools

import numpy as np

from mycelia.dataset import nodes
from mycelia.dataset.batching import stacked
from mycelia.dataset.execution import rng_streams
from mycelia.dataset.execution.worker_pool import computed, integers, pool_spec
from mycelia.dataset.execution.workers import Work
from mycelia.dataset.sources.numbered import MappableDataset
from mycelia.engine.base import errors

_OWNER = "GeneratorDataset"
_NUMBERS = {int: "int64", float: "float64", bool: "bool"}


class GeneratorWork(Work):
    """Rows of a source with `__getitem__`, checked."""

    def __init__(self, source, columns: list[str], types: list | None, seed: int, salt: int):
        super().__init__(_OWNER, f"GeneratorDataset of {type(source).__name__}", seed, salt)
        self._source, self._columns, self._types = source, columns, types

    def get(self, index: int):
        """What the source gives for an index. RuntimeError with the traceback if it raises."""
        try:
            return self._source[index]
        except Exception as e:
            raise nodes.failed(_OWNER, f"source[{index}]", e) from e

    def apply(self, epoch, number, item):
        return self.checked(self.get(item))

    def checked(self, row) -> tuple:
        """A row as arrays. RuntimeError for another number of columns or other dtypes."""
        row = row if isinstance(row, (tuple, list)) else (row,)
        if len(row) != len(self._columns):
            # A text such as 'x,y' names columns, of which a row may have fewer only if it is the one column.
            raise errors.runtime_error(
                _OWNER,
                "the 'source' of 'GeneratorDataset' should return same number of NumPy arrays as "
                f"specified in column_names, the size of column_names is: {len(self._columns)} and number "
                f"of returned NumPy array is: {len(row)}",
            )
        try:
            arrays = tuple([nodes.column(c, _OWNER) for c in row])
        except errors.MyceliaRuntimeError:
            raise self._no_array(row) from None
        for array, dtype, name in zip(arrays, self._types or (), self._columns):
            if dtype is not None and isinstance(array, np.ndarray) and array.dtype != dtype:
                raise errors.runtime_error(
                    _OWNER, f"column '{name}' has dtype {array.dtype}, but column_types says {dtype}"
                )
        return arrays

    def _no_array(self, row) -> BaseException:
        """The error about the first value of a row that cannot be a column."""
        for i, value in enumerate(row):
            try:
                nodes.column(value, _OWNER)
            except errors.MyceliaRuntimeError as e:
                which = f" of {i + 1}th item" if len(row) > 1 or isinstance(value, (set, dict)) else ""
                return errors.runtime_error(
                    _OWNER,
                    f"Invalid Data type. Data type{which} of the input or its converted Numpy array is "
                    f"expected to be numbers, texts or a dict of them: {e.message}",
                )
        raise AssertionError("every value is a column")

    def stacked(self, rows: list) -> tuple:
        """Rows as the source gives them as one batch."""
        if (made := self._quickly(rows)) is not None:
            return made
        columns = zip(*map(self.checked, rows))
        return tuple([stacked(list(c), n, "Dataset.batch") for c, n in zip(columns, self._columns)])

    def _quickly(self, rows: list) -> tuple | None:
        """Columns that are plain numbers or arrays alike, made without a look at each row; else None."""
        if len(self._columns) == 1 and type(rows[0]) not in (tuple, list):
            columns = (rows,)
        elif set(map(type, rows)) == {tuple} and set(map(len, rows)) == {len(self._columns)}:
            columns = zip(*rows)
        else:
            return None
        made = []
        for i, values in enumerate(columns):
            kinds = set(map(type, values))
            kind = kinds.pop()
            if kinds:
                return None
            if kind is np.ndarray:
                if len({v.shape for v in values}) > 1 or len({v.dtype for v in values}) > 1:
                    return None
                dtype = values[0].dtype
            elif kind in _NUMBERS:
                dtype = np.dtype(_NUMBERS[kind])
            elif issubclass(kind, np.number):
                dtype = np.dtype(kind)
            else:
                return None
            array = np.array(values)
            if (
                array.dtype != dtype
                or dtype.kind not in "biufc"
                or (self._types and self._types[i] not in (None, dtype))
            ):
                return None
            made.append(array)
        return tuple(made)


class StackedWork(Work):
    """Batches of `size` rows with the given numbers."""

    unit = "batch"

    def __init__(self, rows: GeneratorWork, size: int):
        super().__init__(_OWNER, rows.title, rows._seed, rows._salt)
        self._rows, self._size = rows, size

    def apply(self, epoch, number, item):
        get, enter, base, made = self._rows.get, rng_streams.enter, self.base(epoch), []
        for row, index in enumerate(item, number * self._size):
            enter(base, row)
            made.append(get(index))
        return self._rows.stacked(made)


class CollatedWork(StackedWork):
    """Batches of rows by `collate_fn`, or stacked without one."""

    def __init__(self, rows: GeneratorWork, collate_fn):
        super().__init__(rows, 0)
        self._collate = collate_fn

    def apply(self, epoch, number, item):
        if self._collate is None:
            return super().apply(epoch, number, item)
        columns = zip(*(self._rows.apply(epoch, number, i) for i in item))
        try:
            made = self._collate(*map(list, columns))
        except Exception as e:
            raise nodes.failed(_OWNER, "collate_fn", e) from e
        return self._rows.checked(made)


class GeneratorDataset(MappableDataset):
    """Rows from a Python object: a function that returns an iterator, an iterable, or one with
    `__getitem__` and `__len__`.

    `column_names` or `schema`: the columns; `column_types`: dtypes that rows must have. With `batch_sampler`
    (lists of row numbers) each of its lists becomes a batch, by `collate_fn` (lists of columns -> columns) or
    stacked. A column may be a dict. Errors: TypeError for another source; RuntimeError when a row has another
    number of columns, another dtype, or the source raises.
    """

    conflict = staticmethod(errors.value_error)
    reads_ahead = False  # the source is the user's

    def __init__(
        self,
        source,
        column_names=None,
        column_types=None,
        schema=None,
        num_samples=None,
        num_parallel_workers=1,
        shuffle=None,
        sampler=None,
        num_shards=None,
        shard_id=None,
        python_multiprocessing=True,
        max_rowsize=None,
        batch_sampler=None,
        collate_fn=None,
    ):
        owner = "GeneratorDataset"
        if not callable(source) and not any(
            hasattr(source, name) for name in ("__iter__", "__next__", "__getitem__")
        ):
            raise errors.type_error(
                owner,
                "Input `source` function of GeneratorDataset should be callable, iterable or random "
                f"accessible, but got {type(source).__name__}",
            )
        if column_names is None and schema is None:
            raise errors.value_error(owner, "Neither columns_names nor schema are provided.")
        if column_names is not None:
            names = nodes.names(owner, "column_names", column_names)
            names = [n.strip() for name in names for n in name.split(",")] if len(names) == 1 else names
            types = None if column_types is None else [_np_type(t) for t in column_types]
        else:
            from mycelia.dataset.schema import Schema

            schema = schema if isinstance(schema, Schema) else Schema(schema)
            names = [c["name"] for c in schema.columns]
            types = [np.dtype(c["type"]) for c in schema.columns]
        nodes.of_type(owner, "python_multiprocessing", python_multiprocessing, bool)
        nodes.row_size(owner, max_rowsize)
        self._random_access = hasattr(source, "__getitem__")
        if not self._random_access:
            for name, value in (("num_shards", num_shards), ("shard_id", shard_id)):
                nodes.of_type(owner, name, value, int, type(None))
            if sampler is not None:
                self._sampler(sampler)  # TypeError for what is no sampler at all
            for name, value in (("sampler", sampler), ("num_shards", num_shards), ("shard_id", shard_id)):
                if value is not None:
                    raise errors.value_error(
                        owner, f"{name} is not supported if source does not have attribute '__getitem__'."
                    )
        if collate_fn is not None and not callable(collate_fn) and batch_sampler is not None:
            raise errors.type_error(owner, f"collate_fn should be callable, but got {collate_fn!r}")
        if collate_fn is not None and batch_sampler is None:
            raise errors.value_error(owner, "collate_fn can be specified only when batch_sampler is set.")
        if batch_sampler is not None:
            if not any(hasattr(batch_sampler, name) for name in ("__iter__", "__getitem__")):
                raise errors.type_error(
                    owner, f"batch_sampler should have __getitem__ or __iter__ method: {batch_sampler!r}"
                )
            if not self._random_access:
                raise errors.value_error(
                    owner, "batch_sampler is not supported if source does not have attribute '__getitem__'."
                )
            if any(v is not None for v in (num_samples, shuffle, sampler, num_shards, shard_id)):
                raise errors.value_error(
                    owner,
                    "batch_sampler is mutually exclusive with num_samples, shuffle, num_shards, shard_id and "
                    "sampler.",
                )
        super().__init__(names, num_samples, shuffle, sampler, num_shards, shard_id, num_parallel_workers)
        self.source, self.num_samples = source, num_samples
        self._once = _Once(source) if _gives_rows_once(source) else None
        self.batch_sampler, self.collate_fn = batch_sampler, collate_fn
        self._types = types
        self.python_multiprocessing, self.max_rowsize = python_multiprocessing, max_rowsize
        self._counted: int | None = None

    def _shuffles_by_default(self):
        return self._random_access

    def source_size(self):
        if not hasattr(self.source, "__len__"):
            raise errors.runtime_error(
                _OWNER, f"'__len__' method is required: {type(self.source).__name__} has none"
            )
        return len(self.source)

    def get_batch_size(self):
        return super().get_batch_size() if self.batch_sampler is None else -1  # its lists decide

    def prepare(self):
        pass  # the user's source may change from epoch to epoch

    def _works(self) -> GeneratorWork:
        return GeneratorWork(self.source, self._columns, self._types, self.seed(), self.salt())

    def _crew(self, work):
        many = (self.num_parallel_workers or 1) > 1 or self._run is None or id(self) in self._run.workers
        processes = self.python_multiprocessing and many
        return pool_spec(self, work, processes=processes, max_rowsize=self.max_rowsize)

    def __getitem__(self, index):
        """What the source gives at a place of the first epoch. RuntimeError where it has no numbered rows."""
        if not self._random_access or self.batch_sampler is not None:
            raise errors.runtime_error(
                _OWNER, "Dataset don't support randomized access. It needs a source with __getitem__ and no "
                "batch_sampler"
            )  # fmt: skip
        return self.source[self._number_at(index)]

    def row(self, index):
        return self._works().apply(0, 0, index)

    def rows_from(self, epoch, start):
        work = self._works()
        if self.batch_sampler is not None:
            lists = itertools.islice(map(_numbers, self.batch_sampler), start, None)
            work = CollatedWork(work, self.collate_fn)
            return computed(self, work, epoch, start, lists, self._crew(work))
        if self._random_access:
            numbers = integers(self.order(epoch)[start:])
            return computed(self, work, epoch, start, numbers, self._crew(work))
        return itertools.islice(self._from_iterator(), start, None)

    def origin(self, epoch, number):
        return super().origin(epoch, number) if self._random_access and self.batch_sampler is None else ""

    def prepare_multiprocessing(self) -> None:
        """Nothing is left to do: an iterator starts the workers that it needs, and ends them."""

    def batches(self, epoch, size, drop_remainder):
        """Batches of rows, stacked where the rows are made: without a step of its own for each of them."""
        if self.batch_sampler is not None:
            return None
        if self._random_access:
            order = self.order(epoch)
            stop = len(order) // size * size if drop_remainder else len(order)
            lists = (order[i : i + size].tolist() for i in range(0, stop, size))
            work = StackedWork(self._works(), size)
            return computed(self, work, epoch, 0, lists, self._crew(work))
        return self._from_iterator_in_batches(size, drop_remainder)

    def _from_iterator_in_batches(self, size, drop_remainder):
        work, rows = self._works(), self._raw()
        while chunk := list(itertools.islice(rows, size)):
            if drop_remainder and len(chunk) < size:
                return
            yield work.stacked(chunk)

    def _from_iterator(self):
        return map(self._works().checked, self._raw())

    def _raw(self):
        """What the source gives, as it is."""
        count = 0
        try:
            source = self._once or self.source
            iterator = iter(source() if callable(source) else source)
        except Exception as e:
            raise nodes.failed("GeneratorDataset", "the source", e) from e
        while not self.num_samples or count < self.num_samples:
            try:
                row = next(iterator)
            except StopIteration:
                return
            except Exception as e:
                raise nodes.failed("GeneratorDataset", f"the source, at row {count},", e) from e
            yield row
            count += 1

    def get_dataset_size(self):
        if self.batch_sampler is not None and hasattr(self.batch_sampler, "__len__"):
            return len(self.batch_sampler)
        if self._random_access and self.batch_sampler is None:
            return super().get_dataset_size()
        if hasattr(self.source, "__len__") and self.batch_sampler is None:
            return min(len(self.source), self.num_samples or len(self.source))
        if self._counted is None:
            self._counted = sum(1 for _ in self.rows(0))
        return self._counted


def _numbers(indices) -> list[int]:
    """What a batch_sampler gives for one batch. RuntimeError for anything but a list of row numbers."""
    if not hasattr(indices, "__iter__"):
        what = "an integer" if isinstance(indices, (int, np.integer)) else f"{indices!r}"
        raise errors.runtime_error(_OWNER, f"Batch sampler should return a list, but got {what}.")
    indices = list(indices)
    for i in indices:
        if isinstance(i, bool) or not isinstance(i, (int, np.integer)):
            raise errors.runtime_error(
                _OWNER, f"Python sampler should return index of type integer, but gave {indices!r}"
            )
    return [int(i) for i in indices]


def _gives_rows_once(source) -> bool:
    """Whether it is an iterator of Python's own (a generator object, `zip`, `map`), which ends for good."""
    return hasattr(source, "__next__") and type(source).__module__ in ("builtins", "itertools")


class _Once:
    """A source that gives its rows only once: they are kept for later epochs."""

    def __init__(self, source):
        self._source = source

    def __iter__(self):
        self._source, rows = itertools.tee(self._source)
        return rows


def _np_type(value):
    """The dtype, or None for a column of any dtype."""
    if value is None:
        return None
    from mycelia.engine.base.dtypes import as_dtype

    try:
        return as_dtype(value).np
    except (TypeError, ValueError, KeyError):
        raise errors.error(
            errors.NotSupportedError, "GeneratorDataset", f"column_types: {value!r} is no dtype"
        ) from None


class PaddedDataset(GeneratorDataset):
    """Rows made by the user, to fill up a dataset: a list of dicts column -> value. TypeError, ValueError."""

    def __init__(self, padded_samples):
        nodes.of_type("PaddedDataset", "padded_samples", padded_samples, list)
        for sample in padded_samples:
            nodes.of_type("PaddedDataset", "every element of padded_samples", sample, dict)
        if not padded_samples:
            raise errors.value_error("PaddedDataset", "padded_samples must not be empty")
        names = list(padded_samples[0])
        rows = [tuple(sample[n] for n in names) for sample in padded_samples]
        super().__init__(rows, names, shuffle=False, num_shards=None)
        self.padded_samples = padded_samples
