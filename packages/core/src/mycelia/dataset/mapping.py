"""`map` and `filter`: functions on the columns of each row, by the reader's thread or by workers."""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from mycelia.dataset import config, nodes
from mycelia.dataset.cache import checked as checked_cache
from mycelia.dataset.callback import DSCallback, Runner
from mycelia.dataset.debug import DebugHook
from mycelia.dataset.execution import rng_streams
from mycelia.dataset.execution.fuse import Fused, fused
from mycelia.dataset.execution.in_place_batch import Batches
from mycelia.dataset.execution.worker_pool import (
    TRIED_ROWS,
    WORTH_S,
    located,
    own_transform,
    pool_spec,
    title,
)
from mycelia.dataset.execution.workers import Failure, Work, in_order
from mycelia.dataset.pipeline import Dataset, dataset_methods
from mycelia.engine.base import errors

_SPARE_ROWS = 64  # good rows that stand in for failed ones, in mode REPLACE


class MapWork(Work):
    """Operations one after the other on the values of a row. A value more than `inputs` is the place of the
    result in its batch, or None (see `straight`).
    """

    def __init__(self, operations: list, inputs: int, wanted: int, name: str, seed: int, salt: int):
        super().__init__("Dataset.map", f"map {name}", seed, salt)
        self.operations, self.inputs, self.wanted = operations, inputs, wanted
        self.own = all(map(own_transform, operations))

    def apply(self, epoch, number, item):
        if len(item) == self.inputs:
            return self._applied(item)
        rng_streams.set_place(item[-1])
        try:
            return self._applied(item[:-1])
        finally:
            rng_streams.set_place(None)

    def _applied(self, values: tuple) -> tuple:
        for operation in self.operations:
            try:
                values = operation(*values)
            except Exception as e:
                raise nodes.operation_failed(operation, own_transform(operation), e) from e
            if not isinstance(values, tuple):
                values = (values,)
        if len(values) != self.wanted:
            raise errors.runtime_error(
                self.owner,
                "Invalid columns, the number of columns returned in 'map' operations should match the number "
                f"of 'output_columns': {len(values)} and {self.wanted}",
            )
        return tuple([nodes.column(v, self.owner) for v in values])


class _Computed(Dataset):
    """A node whose rows are computed by a `Work`."""

    _work: Work | None = None

    def _pairs(
        self, work: Work, epoch: int, start: int, rows: Iterable[tuple], picked: list[int], spec
    ) -> Iterator[tuple]:
        """Each row with the result of its picked values, or a `Failure`."""
        if spec is None:
            return self._by_itself(work, epoch, start, rows, picked)
        pool = self._run.pool(self, spec.start)
        return self._by_workers(pool, epoch, start, rows, picked)

    def _by_itself(self, work, epoch, start, rows, picked):
        base = work.base(epoch)
        try:
            for number, row in enumerate(rows, start):
                rng_streams.enter(base, number)
                try:
                    made = work.apply(epoch, number, tuple([row[i] for i in picked]))
                except errors.MyceliaError as e:
                    made = Failure(e)
                finally:
                    rng_streams.leave()
                yield row, made
        finally:
            if hasattr(rows, "close"):
                rows.close()

    def _by_workers(self, pool, epoch, start, rows, picked):
        waiting: deque[tuple] = deque()

        def values():
            for row in rows:
                waiting.append(row)
                yield tuple([row[i] for i in picked])

        for _, made in in_order(pool, epoch, start, values(), self._ahead):
            yield waiting.popleft(), made

    def _ahead(self, workers: int, job: int) -> int:
        return self._run.ahead(workers, job)


class MapDataset(_Computed):
    """Functions applied to columns."""

    def __init__(
        self,
        source,
        operations,
        input_columns=None,
        output_columns=None,
        num_parallel_workers=None,
        callbacks=None,
        cache=None,
        **kwargs,
    ):
        super().__init__(source)
        owner = "Dataset.map"
        nodes.workers(owner, num_parallel_workers)
        nodes.keywords(owner, kwargs, nodes.PARALLEL)
        self.cache = checked_cache(owner, cache)
        operations = list(operations) if isinstance(operations, (list, tuple)) else [operations]
        for operation in operations:
            if not callable(operation):
                raise errors.value_error(
                    owner,
                    "every operation must be a Python function or an object that can be called, but got "
                    f"{operation!r}",
                )
        self.operations = operations
        self.input_columns = [] if input_columns is None else nodes.names(
            owner, "input_columns", input_columns, empty=True
        )  # fmt: skip
        self.output_columns = [] if output_columns is None else nodes.names(
            owner, "output_columns", output_columns, empty=True
        )  # fmt: skip
        many = isinstance(callbacks, (list, tuple))
        self.callbacks = list(callbacks) if many else [] if callbacks is None else [callbacks]
        for i, callback in enumerate(self.callbacks):
            nodes.of_type(owner, f"callbacks[{i}]" if many else "callbacks", callback, DSCallback)
        self.num_parallel_workers = num_parallel_workers
        self.python_multiprocessing = bool(kwargs.get("python_multiprocessing"))
        self.max_rowsize = kwargs.get("max_rowsize")

    def get_col_names(self):
        names = self.children[0].get_col_names()
        inputs = self.input_columns or names[:1]
        outputs = self.output_columns or inputs
        nodes.places("Dataset.map", inputs, names)
        if len(inputs) == len(outputs):
            table = dict(zip(inputs, outputs))
            return [table.get(n, n) for n in names]
        return [*outputs, *(n for n in names if n not in inputs)]

    def origin(self, epoch, number):
        return self.children[0].origin(epoch, number)

    def _chain(self) -> list:
        """The operations of this run: native ones in one step, or each with the hooks of debug mode."""
        if not config.get_debug_mode():
            operations = [op for op in self.operations if not isinstance(op, DebugHook)]
            return fused(operations) if config.get_enable_fusion() else operations
        chain, before = [], None
        for operation in self.operations:
            extra = [] if isinstance(operation, DebugHook) else config.debug_hooks()
            if isinstance(operation, DebugHook):
                operation.set_previous_op_name(before)
            else:
                before = getattr(operation, "__name__", type(operation).__name__)
            for hook in extra:
                hook.set_previous_op_name(before)
            chain += [operation, *extra]
        return chain

    def rows(self, epoch):
        return self._mapped(epoch, 0)

    def rows_from(self, epoch, start):
        if self.callbacks or config.get_error_samples_mode() != config.ErrorSamplesMode.RETURN:
            return itertools.islice(self._mapped(epoch, 0), start, None)  # every row counts
        return self._mapped(epoch, start)

    def _mapped(self, epoch, start):
        names = self.children[0].get_col_names()
        inputs = self.input_columns or names[:1]
        wanted = len(self.output_columns or inputs)
        picked = nodes.places("Dataset.map", inputs, names)
        kept = [i for i, n in enumerate(names) if n not in inputs]
        replaced = sorted(zip(picked, range(wanted))) if wanted == len(inputs) else None
        work = self._mapping(len(inputs), wanted)
        mode = config.get_error_samples_mode()
        good, failed_rows, number = [], 0, start - 1
        for row, values in self._results(work, epoch, start, picked):
            number += 1
            if type(values) is Failure:
                if mode == config.ErrorSamplesMode.RETURN:
                    raise located(values.error, self, epoch, number)
                failed_rows += 1
                continue
            if replaced is not None:
                out = list(row)
                for i, j in replaced:
                    out[i] = values[j]
                made = tuple(out)
            else:
                made = (*values, *[row[i] for i in kept])
            if mode == config.ErrorSamplesMode.REPLACE and len(good) < _SPARE_ROWS:
                good.append(made)
            yield made
        if mode == config.ErrorSamplesMode.REPLACE and good:
            yield from itertools.islice(itertools.cycle(good), failed_rows)

    def batches(self, epoch: int, size: int, drop_remainder: bool) -> Iterator[tuple] | None:
        """Batches whose images are written where they belong; None where the last step makes no image so."""
        if self.callbacks or config.get_error_samples_mode() != config.ErrorSamplesMode.RETURN:
            return None
        names = self.children[0].get_col_names()
        inputs = self.input_columns or names[:1]
        if len(inputs) != 1 or len(self.output_columns or inputs) != 1:
            return None
        work = self._mapping(1, 1)
        if not isinstance(work.operations[-1], Fused):
            return None
        picked = nodes.places("Dataset.map", inputs, names)
        made = Batches(size, self.get_col_names(), picked[0])
        rows = made.placed(iter(self.children[0].rows(epoch)))
        pairs = self._results(work, epoch, 0, [*picked, len(names)], rows)
        return made.joined(pairs, drop_remainder, lambda f, number: located(f.error, self, epoch, number))

    def _mapping(self, inputs: int, wanted: int) -> MapWork:
        """What its workers do: the same for all epochs of a run."""
        if self._work is None or self._run is None:
            chain = self._chain()
            self._work = MapWork(chain, inputs, wanted, title(self.operations), self.seed(), self.salt())
        return self._work

    def _results(self, work, epoch, start, picked, rows=None) -> Iterator[tuple]:
        source = self.children[0]
        if rows is None:
            rows = source.rows_from(epoch, start) if start else source.rows(epoch)
        # Who only asks for shapes or counts does not run the callbacks.
        told = self.callbacks and self._run is not None
        rows = (
            Runner(self.callbacks, *self.epoch_of_user(epoch), self.passes_above).steps(rows)
            if told
            else iter(rows)
        )
        spec = pool_spec(self, work, processes=self.python_multiprocessing, max_rowsize=self.max_rowsize)
        if spec is None or not spec.optional:
            return self._pairs(work, epoch, start, rows, picked, spec)
        return self._tried(work, epoch, start, rows, picked, spec)

    def _tried(self, work, epoch, start, rows, picked, spec):
        """A few rows in this thread first: threads only where a row is worth being handed over."""
        spent = 0.0
        for row in itertools.islice(rows, TRIED_ROWS):
            began = time.perf_counter()
            pair = next(self._by_itself(work, epoch, start, iter((row,)), picked))
            spent += time.perf_counter() - began
            yield pair
            start += 1
        spec = spec if spent >= WORTH_S * TRIED_ROWS else None
        yield from self._pairs(work, epoch, start, rows, picked, spec)

    def _ahead(self, workers, job):
        # A callback is told of a row before it is computed and after: rows one by one then.
        return 1 if self.callbacks else super()._ahead(workers, job)


class FilterWork(Work):
    """The answer of a predicate."""

    def __init__(self, predicate, seed: int, salt: int):
        super().__init__("Dataset.filter", f"filter {title([predicate])}", seed, salt)
        self.predicate = predicate

    def apply(self, epoch, number, item):
        try:
            passed = self.predicate(*item)
        except Exception as e:
            raise nodes.failed(self.owner, "predicate", e) from e
        return bool(np.all(passed)) and passed is not None


class FilterDataset(_Computed):
    """Rows that pass a test."""

    def __init__(self, source, predicate, input_columns=None, num_parallel_workers=None):
        super().__init__(source)
        nodes.workers("Dataset.filter", num_parallel_workers)
        if not callable(predicate):
            raise errors.type_error(
                "Dataset.filter", f"predicate must be callable, but got {type(predicate).__name__}"
            )
        self.input_columns = [] if input_columns is None else nodes.names(
            "Dataset.filter", "input_columns", input_columns, empty=True
        )  # fmt: skip
        self.predicate = predicate
        self.num_parallel_workers = num_parallel_workers

    def get_dataset_size(self):
        return sum(1 for _ in self.rows(0))

    def rows(self, epoch):
        names = self.children[0].get_col_names()
        picked = nodes.places("Dataset.filter", self.input_columns or names, names)
        if self._work is None or self._run is None:
            self._work = FilterWork(self.predicate, self.seed(), self.salt())
        spec = pool_spec(self, self._work)
        rows = self.children[0].rows(epoch)
        pairs = self._pairs(self._work, epoch, 0, rows, picked, spec)
        for number, (row, passed) in enumerate(pairs):
            if type(passed) is Failure:
                raise located(passed.error, self.children[0], epoch, number)
            if passed:
                yield row


@dataset_methods
class Mapping:
    """Methods that compute on each row."""

    def map(
        self,
        operations,
        input_columns=None,
        output_columns=None,
        num_parallel_workers: int | None = None,
        **kwargs,
    ) -> Dataset:
        """Apply a function or a list of them to the input columns (default: the first)."""
        return MapDataset(self, operations, input_columns, output_columns, num_parallel_workers, **kwargs)

    def filter(
        self, predicate: Callable, input_columns=None, num_parallel_workers: int | None = None
    ) -> Dataset:
        """Only rows for which ``predicate(columns...)`` is true."""
        return FilterDataset(self, predicate, input_columns, num_parallel_workers)
