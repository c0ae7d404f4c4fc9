"""Rows of the user's own Python objects."""

from __future__ import annotations

import numpy as np

from mycelia import errors
from mycelia.dataset import nodes
from mycelia.dataset.batching import stacked
from mycelia.dataset.sources import MappableDataset


class GeneratorDataset(MappableDataset):
    """Rows from a Python object: a function that returns an iterator, an iterable, or one with
    `__getitem__` and `__len__`.

    `column_names` or `schema`: the columns; `column_types`: dtypes that rows must have. With `batch_sampler`
    (lists of row numbers) each of its lists becomes a batch, by `collate_fn` (lists of columns -> columns) or
    stacked. A column may be a dict. Errors: TypeError for another source; RuntimeError when a row has another
    number of columns, another dtype, or the source raises.
    """

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
                "source must be callable, iterable or have __getitem__ and __len__, but got "
                f"{type(source).__name__}",
            )
        if column_names is None and schema is None:
            raise errors.value_error(owner, "column_names or schema must be given")
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
        nodes.of_type(owner, "max_rowsize", max_rowsize, int, list, type(None))
        self._random_access = hasattr(source, "__getitem__")
        if not self._random_access:
            for name, value in (("sampler", sampler), ("num_shards", num_shards), ("shard_id", shard_id)):
                if value is not None:
                    raise errors.value_error(owner, f"{name} needs a source with __getitem__")
        if collate_fn is not None and batch_sampler is None:
            raise errors.value_error(owner, "collate_fn needs batch_sampler")
        if batch_sampler is not None:
            if not self._random_access:
                raise errors.value_error(owner, "batch_sampler needs a source with __getitem__")
            if any(v is not None for v in (num_samples, shuffle, sampler, num_shards, shard_id)):
                raise errors.value_error(
                    owner,
                    "batch_sampler cannot be given together with num_samples, shuffle, sampler or shards",
                )
        super().__init__(names, num_samples, shuffle, sampler, num_shards, shard_id, num_parallel_workers)
        self.source, self.num_samples = source, num_samples
        self.batch_sampler, self.collate_fn = batch_sampler, collate_fn
        self._types = types
        self._counted: int | None = None

    def _shuffles_by_default(self):
        return self._random_access

    def source_size(self):
        return len(self.source)

    def _checked(self, row) -> tuple:
        owner = "GeneratorDataset"
        row = tuple(row) if isinstance(row, (tuple, list)) else (row,)
        if len(row) != len(self._columns):
            # A text such as 'x,y' names columns, of which a row may have fewer only if it is the one column.
            raise errors.runtime_error(
                owner, f"a row has {len(row)} columns, but column_names names {len(self._columns)}"
            )
        arrays = tuple(nodes.column(c, owner) for c in row)
        for array, dtype, name in zip(arrays, self._types or (), self._columns):
            if isinstance(array, np.ndarray) and array.dtype != dtype:
                raise errors.runtime_error(
                    owner, f"column '{name}' has dtype {array.dtype}, but column_types says {dtype}"
                )
        return arrays

    def row(self, index):
        try:
            row = self.source[index]
        except Exception as e:
            raise nodes.failed("GeneratorDataset", f"source[{index}]", e) from e
        return self._checked(row)

    def rows(self, epoch):
        if self.batch_sampler is not None:
            for indices in self.batch_sampler:
                yield self._batch([self.row(int(i)) for i in indices])
        elif self._random_access:
            yield from super().rows(epoch)
        else:
            yield from self._from_iterator()

    def _from_iterator(self):
        count = 0
        try:
            iterator = iter(self.source() if callable(self.source) else self.source)
        except Exception as e:
            raise nodes.failed("GeneratorDataset", "the source", e) from e
        while not self.num_samples or count < self.num_samples:
            try:
                row = next(iterator)
            except StopIteration:
                return
            except Exception as e:
                raise nodes.failed("GeneratorDataset", f"the source, at row {count},", e) from e
            yield self._checked(row)
            count += 1

    def _batch(self, rows: list[tuple]) -> tuple:
        columns = [list(c) for c in zip(*rows)]
        if self.collate_fn is None:
            return tuple(stacked(c, n, "GeneratorDataset") for c, n in zip(columns, self._columns))
        try:
            made = self.collate_fn(*columns)
        except Exception as e:
            raise nodes.failed("GeneratorDataset", "collate_fn", e) from e
        return self._checked(made)

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


def _np_type(value):
    from mycelia.dtypes import as_dtype

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
