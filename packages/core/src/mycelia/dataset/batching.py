"""Nodes that stack rows to batches: plain, padded, and by buckets of lengths."""

from __future__ import annotations

import itertools
from collections import deque

import numpy as np

from mycelia.dataset import nodes
from mycelia.dataset.execution.worker_pool import computed, located, pool_spec, title
from mycelia.dataset.execution.workers import Work
from mycelia.dataset.pipeline import Dataset
from mycelia.engine.base import errors


class BatchInfo:
    """What `per_batch_map` and a batch size function learn: the batch's number and the epoch."""

    __slots__ = ("_epoch", "_number")

    def __init__(self, number: int = 0, epoch: int = 0):
        self._number, self._epoch = number, epoch

    def get_batch_num(self) -> int:
        """Number of the batch in the epoch, from 0."""
        return self._number

    def get_epoch_num(self) -> int:
        """Number of the epoch, from 0."""
        return self._epoch


def stacked(values, name: str, owner: str):
    """The values of one column as one array (dicts: per key). RuntimeError for different shapes or dtypes."""
    if isinstance(values, (np.ndarray, dict)):  # per_batch_map made it whole
        return nodes.column(values, owner)
    if values and isinstance(values[0], dict):
        try:
            return {k: stacked([v[k] for v in values], f"{name}.{k}", owner) for k in values[0]}
        except errors.MyceliaRuntimeError as e:
            if not e.message.startswith("Batch:"):
                e.message = f"Batch: failed to create a NumPy array with primitive types: {e.message}"
            raise
    arrays = [np.asarray(v) for v in values]
    shapes = {a.shape for a in arrays}
    if len(shapes) > 1:
        raise errors.runtime_error(
            owner,
            "Inconsistent batch shapes: Cannot batch tensors with different shapes, but column "
            f"'{name}' has rows of {sorted(shapes)}",
            hint="bring them to one shape with map, or use padded_batch",
        )  # fmt: skip
    kinds = {a.dtype for a in arrays if a.dtype.kind not in "SU"}
    if len(kinds) > 1:
        raise errors.runtime_error(
            owner,
            "Inconsistent batch types: Cannot batch tensors with different types, but column "
            f"'{name}' has rows of {sorted(map(str, kinds))}",
        )
    # On arrays of one shape and dtype np.array does what np.stack does, without a Python step for each.
    return np.array(arrays) if len(kinds) == 1 and kinds.pop().kind in "biufc" else np.stack(arrays)


class BatchWork(Work):
    """The columns of a batch as `per_batch_map` makes them."""

    unit = "batch"

    def __init__(self, owner: str, function, outputs: list[str], seed: int, salt: int, passes: int):
        super().__init__(owner, f"batch with {title([function])}", seed, salt)
        self._function, self._outputs, self._passes = function, outputs, passes

    def apply(self, epoch, number, item):
        try:
            made = self._function(*item, BatchInfo(number, epoch // self._passes if self._passes else 0))
        except Exception as e:
            raise nodes.failed(self.owner, "per_batch_map", e) from e
        made = made if isinstance(made, tuple) else (made,)
        if len(made) != len(self._outputs):
            raise errors.runtime_error(
                self.owner,
                "the number of columns returned in 'per_batch_map' function should be "
                f"{len(self._outputs)}, but got {len(made)}",
            )
        self._alike(made)
        return tuple([self._column(values, name) for values, name in zip(made, self._outputs)])

    def _alike(self, made: tuple) -> None:
        """RuntimeError for a batch that is whole in one column (a dict) and in rows in another."""
        if any(isinstance(v, dict) for v in made) and not all(
            isinstance(v, (dict, np.ndarray)) for v in made
        ):
            kinds = [type(v).__name__ for v in made]
            raise errors.runtime_error(self.owner, f"mismatched types returned from per_batch_map: {kinds}")
        rows = next((len(v) for v in made if isinstance(v, list) and v and isinstance(v[0], dict)), None)
        for values, name in zip(made, self._outputs):
            if rows is not None and isinstance(values, np.ndarray) and len(values) < rows:
                raise errors.runtime_error(
                    self.owner,
                    f"Invalid data, column: {name} expects: {rows} rows returned from 'per_batch_map', "
                    f"but got {len(values)}",
                )

    def _column(self, values, name: str):
        if isinstance(values, list) and values and isinstance(values[0], dict):  # lists of the user's own
            return nodes.column({k: [v[k] for v in values] for k in values[0]}, self.owner)
        return stacked(values, name, self.owner)


class BatchDataset(Dataset):
    """Rows stacked to batches."""

    _owner = "Dataset.batch"

    def __init__(
        self,
        source,
        batch_size,
        drop_remainder=False,
        num_parallel_workers=None,
        per_batch_map=None,
        input_columns=None,
        output_columns=None,
        **kwargs,
    ):
        super().__init__(source)
        owner = self._owner
        nodes.keywords(owner, kwargs, nodes.PARALLEL)
        if not callable(batch_size):
            if not isinstance(batch_size, int):
                raise errors.type_error(
                    owner, f"batch_size should either be an int or a callable, but got {batch_size!r}"
                )
            if batch_size != -1:
                nodes.integer(owner, "batch_size", int(batch_size), 1)
        nodes.of_type(owner, "drop_remainder", drop_remainder, bool)
        nodes.workers(owner, num_parallel_workers)
        self.batch_size, self.drop_remainder, self.per_batch_map = batch_size, drop_remainder, per_batch_map
        self.input_columns = [] if input_columns is None else nodes.names(
            owner, "input_columns", input_columns, empty=True
        )  # fmt: skip
        self.output_columns = [] if output_columns is None else nodes.names(
            owner, "output_columns", output_columns, empty=True
        )  # fmt: skip
        self.num_parallel_workers = num_parallel_workers
        self.python_multiprocessing = bool(kwargs.get("python_multiprocessing"))
        self.max_rowsize = kwargs.get("max_rowsize")
        self._counted: int | None = None
        for node in source.walk():
            if hasattr(node, "batched") and not callable(batch_size):  # a gate counts in batches
                node.batched(int(batch_size))

    def get_col_names(self):
        names = self.children[0].get_col_names()
        if self.per_batch_map is None:
            return names
        inputs = self.input_columns or names
        outputs = self.output_columns or inputs
        unknown = [n for n in inputs if n not in names]
        if unknown:
            raise errors.runtime_error(
                self._owner, f"'{unknown[0]}' of 'input_columns' doesn't exist in {names}"
            )
        if set(outputs) & (set(names) - set(inputs)):
            raise errors.runtime_error(
                self._owner,
                "columns that are not involved in 'per_batch_map' should not be in output_columns",
            )
        if len(inputs) == len(outputs):
            table = dict(zip(inputs, outputs))
            return [table.get(n, n) for n in names]
        return [*outputs, *(n for n in names if n not in inputs)]

    def get_batch_size(self):
        return -1 if callable(self.batch_size) else int(self.batch_size)

    def get_dataset_size(self):
        if callable(self.batch_size):
            if self._counted is None:
                self._counted = sum(1 for _ in self._groups(0))
            return self._counted
        rows = self.children[0].get_dataset_size()
        self._known_size()
        return rows // self.batch_size if self.drop_remainder else -(-rows // self.batch_size)

    def _groups(self, epoch, start=0):
        """The rows of each batch, with its number."""
        if start and not callable(self.batch_size):
            number, rows = start, self.children[0].rows_from(epoch, start * self.batch_size)
        else:
            number, rows = 0, iter(self.children[0].rows(epoch))
        while group := list(itertools.islice(rows, size := self._size(number, epoch))):
            if len(group) < size and self.drop_remainder:
                return
            if number >= start:
                yield number, group
            number += 1

    def rows(self, epoch):
        return self.rows_from(epoch, 0)

    def _known_size(self) -> None:
        """-1 stands for what a batch_sampler gives, which batches by itself. RuntimeError anywhere else."""
        if not callable(self.batch_size) and self.batch_size == -1:
            raise errors.runtime_error(self._owner, "Batch size cannot be -1 without using batch sampler.")

    def rows_from(self, epoch, start):
        names = self.children[0].get_col_names()
        self._known_size()
        nodes.places(self._owner, self.input_columns, names)
        if self.per_batch_map is not None:
            return self._mapped(epoch, start, names)
        # A map would compute the rows before `start`: it leaves them out row by row.
        by_rows = callable(self.batch_size) or (start and any(hasattr(n, "operations") for n in self.walk()))
        if type(self) is BatchDataset and not by_rows:
            made = nodes.batches(self.children[0], epoch, self.batch_size, self.drop_remainder)
            if made is not None:
                return itertools.islice(made, start, None)
        return self._stacked(epoch, start, names)

    def makes_arrays(self):
        return self.per_batch_map is None

    def origin(self, epoch, number):
        size = self.get_batch_size()
        return self.children[0].origin(epoch, number * size) if not callable(self.batch_size) else ""

    def _stacked(self, epoch, start, names):
        for number, group in self._groups(epoch, start):
            try:
                yield self._stack(group, names, number, epoch)
            except errors.MyceliaRuntimeError as e:
                raise located(e, self, epoch, number, "batch") from e.__cause__

    def _stack(self, rows: list[tuple], names: list[str], number: int, epoch: int) -> tuple:
        return tuple([stacked(list(c), n, self._owner) for c, n in zip(zip(*rows), names)])

    def _mapped(self, epoch, start, names):
        inputs = self.input_columns or names
        outputs = self.output_columns or inputs
        others = [n for n in names if n not in inputs]
        waiting: deque[tuple] = deque()

        def items():
            for _, group in self._groups(epoch, start):
                columns = dict(zip(names, zip(*group)))
                waiting.append(tuple([list(columns[n]) for n in others]))
                yield tuple([list(columns[n]) for n in inputs])

        work = BatchWork(
            self._owner, self.per_batch_map, outputs, self.seed(), self.salt(), self.passes_above
        )
        spec = pool_spec(self, work, processes=self.python_multiprocessing, max_rowsize=self.max_rowsize)
        order = self.get_col_names()
        for made in computed(self, work, epoch, start, items(), spec):
            ready = dict(zip(outputs, made))
            for name, values in zip(others, waiting.popleft()):
                ready[name] = stacked(values, name, self._owner)
            yield tuple([ready[n] for n in order])

    def _size(self, number: int, epoch: int) -> int:
        if not callable(self.batch_size):
            return int(self.batch_size)
        try:
            size = self.batch_size(BatchInfo(number, self.epoch_of_user(epoch)[0]))
        except Exception as e:
            raise nodes.failed(self._owner, "the function batch_size", e) from e
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 1:
            raise errors.runtime_error(
                self._owner, f"the function batch_size must return a positive int, but returned {size!r}"
            )
        return int(size)


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
