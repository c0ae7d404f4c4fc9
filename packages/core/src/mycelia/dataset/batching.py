"""Rows stacked to batches, and the batches of `per_batch_map`."""

from __future__ import annotations

import itertools
from collections import deque

import numpy as np

from mycelia.dataset import nodes
from mycelia.dataset.execution.worker_pool import computed, located, pool_spec, title
from mycelia.dataset.execution.workers import Work
from mycelia.dataset.pipeline import Dataset, dataset_methods
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


@dataset_methods
class Batching:
    """The method that stacks rows."""

    def batch(
        self, batch_size, drop_remainder: bool = False, num_parallel_workers: int | None = None, **kwargs
    ) -> Dataset:
        """Stack `batch_size` rows (an int, or a function of a BatchInfo).

        `per_batch_map(column..., batch_info)` with `input_columns` and `output_columns` changes each batch.
        """
        return BatchDataset(self, batch_size, drop_remainder, num_parallel_workers, **kwargs)
