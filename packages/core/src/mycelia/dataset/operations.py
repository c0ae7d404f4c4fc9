"""Nodes that change, choose or arrange rows: map, filter, shuffle, repeat, take, skip, zip, concat, ..."""

from __future__ import annotations

import inspect
import itertools

import numpy as np

from mycelia import errors
from mycelia.dataset import config, nodes, streams
from mycelia.dataset.callback import DSCallback, Runner
from mycelia.dataset.debug import DebugHook
from mycelia.dataset.pipeline import Dataset
from mycelia.dataset.samplers import BuiltinSampler, DistributedSampler, RandomSampler

_SPARE_ROWS = 64  # good rows that stand in for failed ones, in mode REPLACE


class MapDataset(Dataset):
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
        if cache is not None:
            raise errors.type_error(owner, f"cache must be a DatasetCache or None, but got {cache!r}")
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
        callbacks = callbacks if isinstance(callbacks, (list, tuple)) else [callbacks]
        self.callbacks = [c for c in callbacks if c is not None]
        for c in self.callbacks:
            nodes.of_type(owner, "callbacks", c, DSCallback)
        self.num_parallel_workers = num_parallel_workers

    def get_col_names(self):
        names = self.children[0].get_col_names()
        inputs = self.input_columns or names[:1]
        outputs = self.output_columns or inputs
        nodes.places("Dataset.map", inputs, names)
        if len(inputs) == len(outputs):
            table = dict(zip(inputs, outputs))
            return [table.get(n, n) for n in names]
        return [*outputs, *(n for n in names if n not in inputs)]

    def _chain(self) -> list:
        """The operations of this run, with the hooks of debug mode."""
        if not config.get_debug_mode():
            return [op for op in self.operations if not isinstance(op, DebugHook)]
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
        names = self.children[0].get_col_names()
        inputs = self.input_columns or names[:1]
        wanted = len(self.output_columns or inputs)
        picked = nodes.places("Dataset.map", inputs, names)
        kept = [i for i, n in enumerate(names) if n not in inputs]
        operations = self._chain()
        base = streams.base_key(self.seed(), epoch, self.salt())
        mode = config.get_error_samples_mode()
        good, failed_rows = [], 0
        runner = Runner(self.callbacks, epoch)
        for number, row in enumerate(runner.steps(self.children[0].rows(epoch))):
            streams.enter(streams.row_key(base, number))
            try:
                values = self._applied(operations, tuple(row[i] for i in picked), wanted)
            except errors.MyceliaRuntimeError:
                if mode == config.ErrorSamplesMode.RETURN:
                    raise
                failed_rows += 1
                continue
            finally:
                streams.leave()
            if wanted == len(inputs):
                out = list(row)
                for i, v in zip(picked, values):
                    out[i] = v
                made = tuple(out)
            else:
                made = (*values, *(row[i] for i in kept))
            if mode == config.ErrorSamplesMode.REPLACE and len(good) < _SPARE_ROWS:
                good.append(made)
            yield made
        if mode == config.ErrorSamplesMode.REPLACE and good:
            yield from itertools.islice(itertools.cycle(good), failed_rows)

    def _applied(self, operations, values: tuple, wanted: int) -> tuple:
        for operation in operations:
            try:
                values = operation(*values)
            except errors.MyceliaRuntimeError:
                raise
            except Exception as e:
                name = getattr(operation, "__name__", type(operation).__name__)
                raise nodes.failed("Dataset.map", f"the operation {name}", e) from e
            if not isinstance(values, tuple):
                values = (values,)
        if len(values) != wanted:
            raise errors.runtime_error(
                "Dataset.map",
                f"the operations gave {len(values)} columns, but output_columns needs {wanted}",
            )
        return tuple(nodes.column(v, "Dataset.map") for v in values)


class ShuffleDataset(Dataset):
    """Random order within a sliding window."""

    def __init__(self, source, buffer_size):
        super().__init__(source)
        self.buffer_size = nodes.integer("Dataset.shuffle", "buffer_size", buffer_size, 2)

    def rows(self, epoch):
        rng = self.generator(epoch)
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
        nodes.of_type("Dataset.repeat", "count", count, int, type(None))
        count = -1 if count is None else count
        if count != -1 and not 1 <= count <= nodes.INT32_MAX:
            raise errors.value_error("Dataset.repeat", f"count must be positive or -1, but got {count}")
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
    """The first rows; -1: all."""

    def __init__(self, source, count):
        super().__init__(source)
        nodes.of_type("Dataset.take", "count", count, int)
        if count != -1 and not 1 <= count <= nodes.INT32_MAX:
            raise errors.value_error("Dataset.take", f"count must be positive or -1, but got {count}")
        self.count = count

    def get_dataset_size(self):
        size = self.children[0].get_dataset_size()
        return size if self.count == -1 else min(self.count, size)

    def rows(self, epoch):
        rows = self.children[0].rows(epoch)
        return rows if self.count == -1 else itertools.islice(rows, self.count)


class SkipDataset(Dataset):
    """All but the first rows."""

    def __init__(self, source, count):
        super().__init__(source)
        self.count = nodes.integer("Dataset.skip", "count", count, 0)

    def get_dataset_size(self):
        return max(0, self.children[0].get_dataset_size() - self.count)

    def rows(self, epoch):
        return itertools.islice(self.children[0].rows(epoch), self.count, None)


class ZipDataset(Dataset):
    """Columns side by side."""

    def __init__(self, datasets):
        super().__init__(*datasets)
        names = self.get_col_names()
        self._twice = sorted({n for n in names if names.count(n) > 1})

    def get_col_names(self):
        return [name for child in self.children for name in child.get_col_names()]

    def get_dataset_size(self):
        return min(child.get_dataset_size() for child in self.children)

    def rows(self, epoch):
        if self._twice:
            raise errors.runtime_error(
                "zip", f"the datasets share the column names {self._twice}; rename them first"
            )
        for parts in zip(*(child.rows(epoch) for child in self.children)):
            yield tuple(itertools.chain.from_iterable(parts))


class ConcatDataset(Dataset):
    """Rows one after the other; `use_sampler` shares or shuffles all of them."""

    def __init__(self, datasets):
        super().__init__(*datasets)
        self.sampler: BuiltinSampler | None = None

    def get_dataset_size(self):
        total = sum(child.get_dataset_size() for child in self.children)
        return len(self._share(range(total)))

    def use_sampler(self, sampler: BuiltinSampler) -> None:
        """Read every n-th of all rows (a `DistributedSampler`), or all in random order (a `RandomSampler`
        without replacement). Errors: TypeError for another sampler, ValueError for its arguments.
        """
        if not isinstance(sampler, (DistributedSampler, RandomSampler)):
            raise errors.type_error(
                "concat.use_sampler",
                f"a DistributedSampler or RandomSampler is taken, but got {type(sampler).__name__}",
            )
        if isinstance(sampler, RandomSampler) and sampler.replacement:
            raise errors.value_error("concat.use_sampler", "the RandomSampler must be without replacement")
        if sampler.num_samples:
            raise errors.value_error("concat.use_sampler", "the sampler's num_samples must not be given")
        self.sampler = sampler

    def _all(self, epoch):
        names = self.children[0].get_col_names()
        for child in self.children:
            if child.get_col_names() != names:
                raise errors.runtime_error(
                    "concat", f"the datasets have different columns: {names} and {child.get_col_names()}"
                )
            yield from child.rows(epoch)

    def rows(self, epoch):
        if self.sampler is None:
            yield from self._all(epoch)
            return
        rng = self.generator(epoch)
        rows = list(self._all(epoch))
        for i in self._share(rng.permutation(len(rows)) if self.sampler.is_shuffled() else range(len(rows))):
            yield rows[int(i)]

    def _share(self, order):
        """What is this process's, without filling up: the shares of processes may differ by a row."""
        if isinstance(self.sampler, DistributedSampler):
            return order[self.sampler.shard_id :: self.sampler.num_shards]
        return order


class ProjectDataset(Dataset):
    """Some columns."""

    def __init__(self, source, columns):
        super().__init__(source)
        self.columns = nodes.names("Dataset.project", "columns", columns)

    def get_col_names(self):
        nodes.places("Dataset.project", self.columns, self.children[0].get_col_names())
        return list(self.columns)

    def rows(self, epoch):
        picked = nodes.places("Dataset.project", self.columns, self.children[0].get_col_names())
        for row in self.children[0].rows(epoch):
            yield tuple(row[i] for i in picked)


class RenameDataset(Dataset):
    """Other column names."""

    def __init__(self, source, input_columns, output_columns):
        super().__init__(source)
        self.input_columns = nodes.names("Dataset.rename", "input_columns", input_columns)
        self.output_columns = nodes.names("Dataset.rename", "output_columns", output_columns)
        if len(self.input_columns) != len(self.output_columns):
            raise errors.value_error(
                "Dataset.rename",
                f"input_columns {self.input_columns} cannot become output_columns {self.output_columns}",
            )

    def get_col_names(self):
        names = self.children[0].get_col_names()
        nodes.places("Dataset.rename", self.input_columns, names)
        table = dict(zip(self.input_columns, self.output_columns))
        renamed = [table.get(n, n) for n in names]
        twice = sorted({n for n in renamed if renamed.count(n) > 1})
        if twice:
            raise errors.runtime_error("Dataset.rename", f"the new names {twice} are there already")
        return renamed

    def rows(self, epoch):
        self.get_col_names()
        return self.children[0].rows(epoch)


class FilterDataset(Dataset):
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

    def get_dataset_size(self):
        return sum(1 for _ in self.rows(0))

    def rows(self, epoch):
        names = self.children[0].get_col_names()
        picked = nodes.places("Dataset.filter", self.input_columns or names, names)
        for row in self.children[0].rows(epoch):
            try:
                passed = self.predicate(*(row[i] for i in picked))
            except Exception as e:
                raise nodes.failed("Dataset.filter", "predicate", e) from e
            if bool(np.all(passed)) and passed is not None:
                yield row


class SyncWaitDataset(Dataset):
    """A gate: lets `num_batch` rows through, then asks for an update.

    Rows are read when the iterator asks for them, so an update that comes between two rows is in force for
    the next one; a reader that gives none is not held up.
    """

    def __init__(self, source, condition_name, num_batch=1, callback=None):
        super().__init__(source)
        nodes.of_type("Dataset.sync_wait", "condition_name", condition_name, str)
        nodes.integer("Dataset.sync_wait", "num_batch", num_batch, 1)
        for node in source.walk():
            if isinstance(node, SyncWaitDataset) and node.condition_name == condition_name:
                raise errors.runtime_error(
                    "Dataset.sync_wait", f"condition_name {condition_name!r} is already in use"
                )
        self.condition_name, self.num_batch, self.callback = condition_name, num_batch, callback

    def update(self, num_batch=None, data=None) -> None:
        """Hand `data` to the callback."""
        if num_batch is not None:
            self.num_batch = nodes.integer("Dataset.sync_update", "num_batch", num_batch, 1)
        if self.callback is not None:
            self.callback(data)

    def rows(self, epoch):
        return self.children[0].rows(epoch)


class SplitDataset(Dataset):
    """One part of a split. All parts read the same order in every epoch, so that they never mix."""

    def __init__(self, source, order, start: int, count: int):
        super().__init__(source)
        self._order, self._start, self._count = order, start, count

    def get_dataset_size(self):
        return self._count

    def rows(self, epoch):
        source = self.children[0]
        order = self._order(source.get_dataset_size())
        if order is None:
            yield from itertools.islice(source.rows(0), self._start, self._start + self._count)
            return
        chosen = order[self._start : self._start + self._count]
        wanted = set(chosen.tolist())
        found = {i: row for i, row in enumerate(source.rows(0)) if i in wanted}
        for i in chosen.tolist():
            yield found[i]


def split(source: Dataset, sizes, randomize: bool) -> list[Dataset]:
    """Parts of a dataset; see `Dataset.split`."""
    nodes.of_type("Dataset.split", "sizes", sizes, list)
    nodes.of_type("Dataset.split", "randomize", randomize, bool)
    counts = _split_counts(sizes, source.get_dataset_size)
    seed = int(np.random.default_rng(config.given_seed()).integers(2**31))

    def order(size):
        return np.random.default_rng(seed).permutation(size) if randomize else None

    starts = itertools.accumulate(counts, initial=0)
    return [SplitDataset(source, order, start, count) for start, count in zip(starts, counts)]


def _split_counts(sizes: list, total_of) -> list[int]:
    owner = "Dataset.split"
    if not sizes:
        raise errors.value_error(owner, "sizes must not be empty")
    ints = all(isinstance(s, int) and not isinstance(s, bool) for s in sizes)
    if not ints and not all(isinstance(s, float) for s in sizes):
        raise errors.value_error(owner, f"sizes must be a list of ints or of floats, but got {sizes}")
    if min(sizes) <= 0 or (not ints and max(sizes) > 1):
        raise errors.value_error(
            owner, f"sizes must be positive ints or fractions in (0, 1], but got {sizes}"
        )
    if not ints and abs(sum(sizes) - 1) > 1e-9:
        raise errors.value_error(owner, f"the fractions must sum to 1, but {sizes} do not")
    total = total_of()
    if total <= 0:
        raise errors.runtime_error(owner, "the dataset is empty")
    if ints:
        if sum(sizes) != total:
            raise errors.runtime_error(owner, f"sizes sum to {sum(sizes)}, but the dataset has {total} rows")
        return sizes
    counts = [round(s * total) for s in sizes]
    if min(counts) == 0:
        raise errors.runtime_error(owner, f"a part of {sizes} of {total} rows would be empty")
    # Rounding may leave rows over or take too many: one row each, from the first part on.
    spare = total - sum(counts)
    for i in itertools.cycle(range(len(counts))):
        if spare == 0:
            break
        step = 1 if spare > 0 else -1
        if counts[i] + step >= 1:
            counts[i] += step
            spare -= step
    return counts


def flat_map(source: Dataset, func) -> Dataset:
    """The datasets that `func` makes of each row, one after the other."""
    if not callable(func) or inspect.isclass(func):
        raise errors.type_error("Dataset.flat_map", f"func must be a function, but got {func!r}")
    made = []
    for row in source.create_tuple_iterator(num_epochs=1, output_numpy=True):
        dataset = func(*row)
        nodes.of_type("Dataset.flat_map", "what func returns", dataset, Dataset)
        made.append(dataset)
    if not made:
        raise errors.runtime_error("Dataset.flat_map", "the dataset is empty")
    return made[0] if len(made) == 1 else ConcatDataset(made)


def zip_datasets(datasets) -> ZipDataset:
    """Columns of the datasets in a tuple side by side."""
    nodes.of_type("zip", "datasets", datasets, tuple)
    if len(datasets) < 2:
        raise errors.value_error("zip", f"at least two datasets are needed, but got {len(datasets)}")
    return ZipDataset(datasets)
