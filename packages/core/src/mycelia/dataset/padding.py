"""Rows of different shapes in one batch: filled up to one shape, or gathered by their length."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mycelia.dataset import nodes
from mycelia.dataset.batching import BatchDataset, stacked
from mycelia.dataset.pipeline import Dataset, dataset_methods
from mycelia.engine.base import errors


def check_pad_info(owner: str, pad_info) -> dict | None:
    """`pad_info` as given: {column: (shape, value)}; a shape of None is the longest, a value of None 0."""
    if pad_info is None:
        return None
    nodes.of_type(owner, "pad_info", pad_info, dict)
    for name, entry in pad_info.items():
        nodes.of_type(owner, "a key of pad_info", name, str)
        if entry is None:
            continue
        if not hasattr(entry, "__len__"):
            raise errors.type_error(owner, f"pad_info[{name!r}] must be (shape, value), but got {entry!r}")
        if len(entry) != 2:
            raise errors.value_error(
                owner, f"pad_info[{name!r}] must have two elements, shape and value, but got {entry!r}"
            )
        shape = entry[0]
        if shape is not None:
            nodes.of_type(owner, f"the shape of pad_info[{name!r}]", shape, list, tuple)
            for size in shape:
                if size is not None:
                    nodes.integer(owner, f"a size of pad_info[{name!r}]", size, 1)
    return pad_info


def padded(values: list[np.ndarray], name: str, shape, fill, owner: str) -> np.ndarray:
    """Rows of different lengths as one array: filled up, and cut where longer than `shape`."""
    rank = values[0].ndim
    if any(v.ndim != rank for v in values):
        raise errors.runtime_error(owner, f"column '{name}' has rows of different ranks within one batch")
    longest = [max(v.shape[i] for v in values) for i in range(rank)]
    if shape is not None:
        if len(shape) != rank:
            raise errors.runtime_error(
                owner, f"pad_info of column '{name}' has rank {len(shape)}, but its rows have rank {rank}"
            )
        longest = [size if size is not None else most for size, most in zip(shape, longest)]
    if fill is None:
        fill = b"" if values[0].dtype.kind == "S" else "" if values[0].dtype.kind == "U" else 0
    dtype = values[0].dtype
    if dtype.kind in "SU":
        dtype = np.result_type(np.asarray(fill).dtype, *(v.dtype for v in values))
    out = np.full((len(values), *longest), fill, dtype)
    for i, value in enumerate(values):
        part = tuple(slice(0, min(a, b)) for a, b in zip(longest, value.shape))
        out[(i, *part)] = value[part]
    return out


class PaddedBatchDataset(BatchDataset):
    """Rows of different shapes, filled up to one shape and stacked."""

    _owner = "Dataset.padded_batch"

    def __init__(self, source, batch_size, drop_remainder=False, num_parallel_workers=None, pad_info=None):
        super().__init__(source, batch_size, drop_remainder, num_parallel_workers)
        self.pad_info = check_pad_info(self._owner, pad_info)

    def _stack(self, rows, names, number, epoch):
        return pad_rows(rows, names, self.pad_info, self._owner)


def pad_rows(rows: list[tuple], names: list[str], pad_info: dict | None, owner: str) -> tuple:
    """One batch of rows. None: no padding; {}: every column to its longest; else only the columns named."""
    if pad_info is not None:
        nodes.places(owner, list(pad_info), names)
    out = []
    for name, values in zip(names, zip(*rows)):
        if pad_info is None or (pad_info and name not in pad_info):
            out.append(stacked(list(values), name, owner))
            continue
        shape, fill = pad_info.get(name) or (None, None)
        out.append(padded([np.asarray(v) for v in values], name, shape, fill, owner))
    return tuple(out)


class BucketBatchDataset(Dataset):
    """Rows gathered by length; a bucket that is full becomes a batch."""

    def __init__(
        self,
        source,
        column_names,
        bucket_boundaries,
        bucket_batch_sizes,
        element_length_function=None,
        pad_info=None,
        pad_to_bucket_boundary=False,
        drop_remainder=False,
    ):
        super().__init__(source)
        owner = self._owner = "Dataset.bucket_batch_by_length"
        nodes.of_type(owner, "column_names", column_names, list)
        nodes.names(owner, "column_names", column_names)
        for name, value in (
            ("bucket_boundaries", bucket_boundaries),
            ("bucket_batch_sizes", bucket_batch_sizes),
        ):
            nodes.of_type(owner, name, value, list)
            if not value:
                raise errors.value_error(owner, f"{name} cannot be empty.")
            if any(isinstance(item, bool) or not isinstance(item, int) for item in value):
                raise errors.type_error(owner, f"{name} should be a list of int. It is {value}")
            if min(value) <= 0:
                need = "must only contain" if name == "bucket_boundaries" else "should be a list of"
                raise errors.value_error(owner, f"{name} {need} positive numbers. They are {value}")
        if any(a >= b for a, b in zip(bucket_boundaries, bucket_boundaries[1:])):
            raise errors.value_error(
                owner, f"bucket_boundaries should be strictly increasing. They are {bucket_boundaries}"
            )
        if len(bucket_batch_sizes) != len(bucket_boundaries) + 1:
            raise errors.value_error(
                owner,
                "bucket_batch_sizes must contain one element more than bucket_boundaries. There are "
                f"{len(bucket_batch_sizes)} and {len(bucket_boundaries)}",
            )
        if element_length_function is None and len(column_names) != 1:
            raise errors.value_error(
                owner,
                "If element_length_function is not specified, exactly one column name should be passed. "
                f"They are {column_names}",
            )
        if element_length_function is not None and not callable(element_length_function):
            raise errors.type_error(owner, "element_length_function object is not callable.")
        nodes.of_type(owner, "pad_to_bucket_boundary", pad_to_bucket_boundary, bool)
        nodes.of_type(owner, "drop_remainder", drop_remainder, bool)
        self.column_names, self.boundaries = column_names, bucket_boundaries
        self.batch_sizes, self.length_of = bucket_batch_sizes, element_length_function
        self.pad_info = check_pad_info(owner, pad_info)
        self.pad_to_boundary, self.drop_remainder = pad_to_bucket_boundary, drop_remainder

    def get_dataset_size(self):
        return sum(1 for _ in self.rows(0))

    def rows(self, epoch):
        names = self.children[0].get_col_names()
        picked = nodes.places(self._owner, self.column_names, names)
        buckets: list[list[tuple]] = [[] for _ in self.batch_sizes]
        for row in self.children[0].rows(epoch):
            index = int(
                np.searchsorted(self.boundaries, self._length([row[i] for i in picked]), side="right")
            )
            bucket = buckets[index]
            bucket.append(row)
            if len(bucket) == self.batch_sizes[index]:
                yield self._batch(bucket, index, names)
                buckets[index] = []
        if not self.drop_remainder:
            for index, bucket in enumerate(buckets):
                if bucket:
                    yield self._batch(bucket, index, names)

    def _length(self, values: list) -> int:
        if self.length_of is None:
            return len(values[0])
        try:
            return int(self.length_of(*values))
        except Exception as e:
            raise nodes.failed(self._owner, "element_length_function", e) from e

    def _batch(self, rows, index, names):
        pad_info = {} if self.pad_info is None else self.pad_info
        if self.pad_to_boundary:
            if index == len(self.boundaries):
                raise errors.runtime_error(
                    self._owner,
                    "pad_to_bucket_boundary: a row is not shorter than the last boundary "
                    f"{self.boundaries[-1]}, so there is nothing to pad it to",
                )
            longest = self.boundaries[index] - 1
            pad_info = {
                name: (tuple(longest if s is None else s for s in entry[0]), entry[1])
                if entry is not None and entry[0] is not None
                else entry
                for name, entry in pad_info.items()
            }
        return pad_rows(rows, names, pad_info, self._owner)


@dataset_methods
class Padding:
    """Methods that batch rows of different shapes."""

    def padded_batch(
        self,
        batch_size,
        drop_remainder: bool = False,
        num_parallel_workers: int | None = None,
        pad_info: dict | None = None,
    ) -> Dataset:
        """Fill rows up to one shape and stack them. `pad_info`: {column: (shape, value)}, None in a shape for
        the longest row of the batch, {} for all columns; longer rows are cut.
        """
        return PaddedBatchDataset(self, batch_size, drop_remainder, num_parallel_workers, pad_info)

    def bucket_batch_by_length(
        self,
        column_names,
        bucket_boundaries,
        bucket_batch_sizes,
        element_length_function: Callable | None = None,
        pad_info: dict | None = None,
        pad_to_bucket_boundary: bool = False,
        drop_remainder: bool = False,
    ) -> Dataset:
        """Gather rows by length (of the one column, or what the function gives); a full bucket is a batch."""
        return BucketBatchDataset(
            self, column_names, bucket_boundaries, bucket_batch_sizes, element_length_function, pad_info,
            pad_to_bucket_boundary, drop_remainder,
        )  # fmt: skip
