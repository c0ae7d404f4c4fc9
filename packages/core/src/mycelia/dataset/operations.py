"""Nodes that choose or arrange rows: shuffle, repeat, take, skip, zip, concat, project, rename, ..."""

from __future__ import annotations

import inspect
import itertools
import threading

import numpy as np

from mycelia.dataset import config, nodes
from mycelia.dataset.pipeline import Dataset
from mycelia.dataset.samplers import BuiltinSampler, DistributedSampler, RandomSampler
from mycelia.engine.base import errors, log


class ShuffleDataset(Dataset):
    """Random order within a sliding window."""

    def __init__(self, source, buffer_size):
        super().__init__(source)
        self.buffer_size = nodes.integer("Dataset.shuffle", "buffer_size", buffer_size, 2)

    def rows(self, epoch):
        return self._shuffled(self.children[0].rows(epoch), epoch)

    def origin(self, epoch, number):
        numbers = self._shuffled(range(self.children[0].get_dataset_size()), epoch)
        below = next(itertools.islice(numbers, number, None), None)
        return "" if below is None else self.children[0].origin(epoch, below)

    def _shuffled(self, rows, epoch):
        rng = self.generator(epoch)
        window: list = []
        for row in rows:
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
            raise errors.value_error(
                "Dataset.repeat",
                f"count should be either -1 or positive integer, range[1, INT32_MAX], but got {count}",
            )
        self.count = count
        self.passes = max(count, 0)

    def get_repeat_count(self):
        return self.count

    def get_dataset_size(self):
        size = self.children[0].get_dataset_size()
        return size if self.count == -1 else size * self.count

    def _epoch(self, epoch: int, i: int) -> int:
        return epoch * max(self.count, 1) + i

    def rows(self, epoch):
        return self.rows_from(epoch, 0)

    def rows_from(self, epoch, start):
        passes = itertools.count() if self.count == -1 else range(self.count)
        size = self.children[0].get_dataset_size() if start else 0
        for i in passes:
            if start and start >= size:
                start -= size
                continue
            source, empty = self.children[0], True
            for row in (
                source.rows_from(self._epoch(epoch, i), start)
                if start
                else source.rows(self._epoch(epoch, i))
            ):
                empty = False
                yield row
            if empty and not start:
                return  # without rows a pipeline that repeats for ever ends too
            start = 0

    def makes_arrays(self):
        return self.children[0].makes_arrays()

    def origin(self, epoch, number):
        i, below = divmod(number, max(1, self.children[0].get_dataset_size()))
        return self.children[0].origin(self._epoch(epoch, i), below)


class TakeDataset(Dataset):
    """The first rows; -1: all."""

    def __init__(self, source, count):
        super().__init__(source)
        nodes.of_type("Dataset.take", "count", count, int)
        if count != -1 and not 1 <= count <= nodes.INT32_MAX:
            raise errors.value_error(
                "Dataset.take",
                "count should be either -1 or within the required interval of "
                f"(0, {nodes.INT32_MAX}], got {count}",
            )
        self.count = count

    def get_dataset_size(self):
        size = self.children[0].get_dataset_size()
        return size if self.count == -1 else min(self.count, size)

    def rows(self, epoch):
        rows = self.children[0].rows(epoch)
        return rows if self.count == -1 else itertools.islice(rows, self.count)

    def rows_from(self, epoch, start):
        rows = self.children[0].rows_from(epoch, start)
        return rows if self.count == -1 else itertools.islice(rows, max(0, self.count - start))

    def origin(self, epoch, number):
        return self.children[0].origin(epoch, number)

    def makes_arrays(self):
        return self.children[0].makes_arrays()


class SkipDataset(Dataset):
    """All but the first rows."""

    def __init__(self, source, count):
        super().__init__(source)
        self.count = nodes.integer("Dataset.skip", "count", count, 0)

    def get_dataset_size(self):
        return max(0, self.children[0].get_dataset_size() - self.count)

    def rows(self, epoch):
        return self.rows_from(epoch, 0)

    def rows_from(self, epoch, start):
        return self.children[0].rows_from(epoch, start + self.count)

    def origin(self, epoch, number):
        return self.children[0].origin(epoch, number + self.count)


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
                "zip", f"Column name: '{self._twice[0]}' is duplicate: rename it in one of the datasets first"
            )
        return self.rows_from(epoch, 0)

    def rows_from(self, epoch, start):
        for parts in zip(*(c.rows_from(epoch, start) if start else c.rows(epoch) for c in self.children)):
            yield tuple(itertools.chain.from_iterable(parts))

    def origin(self, epoch, number):
        return "; ".join(filter(None, (child.origin(epoch, number) for child in self.children)))


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

    def is_sharded(self):
        return self.sampler is not None and self.sampler.is_sharded()

    def _all(self, epoch):
        names, kinds = self.children[0].get_col_names(), None
        for child in self.children:
            if child.get_col_names() != names:
                raise errors.runtime_error(
                    "concat", f"the datasets have different columns: {names} and {child.get_col_names()}"
                )
            rows = iter(child.rows(epoch))
            for first in itertools.islice(rows, 1):
                found = [_kind(column) for column in first]
                kinds = kinds or found
                if found != kinds:
                    raise errors.runtime_error(
                        "concat",
                        f"the datasets have columns of different types or ranks: {kinds} and {{found}}",
                    )
                yield first
            yield from rows

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


def _kind(column) -> tuple[str, int]:
    array = np.asarray(column)
    return ("text" if array.dtype.kind in "SU" else array.dtype.name), array.ndim


class ProjectDataset(Dataset):
    """Some columns."""

    def __init__(self, source, columns):
        super().__init__(source)
        self.columns = nodes.names("Dataset.project", "columns", columns)

    def get_col_names(self):
        nodes.places("Dataset.project", self.columns, self.children[0].get_col_names())
        return list(self.columns)

    def rows(self, epoch):
        return self._picked(self.children[0].rows(epoch))

    def rows_from(self, epoch, start):
        return self._picked(self.children[0].rows_from(epoch, start))

    def batches(self, epoch, size, drop_remainder):
        """The source's fast batches, if it has some, with these columns."""
        made = nodes.batches(self.children[0], epoch, size, drop_remainder)
        return None if made is None else self._picked(made)

    def _picked(self, rows):
        picked = nodes.places("Dataset.project", self.columns, self.children[0].get_col_names())
        for row in rows:
            yield tuple([row[i] for i in picked])

    def origin(self, epoch, number):
        return self.children[0].origin(epoch, number)

    def makes_arrays(self):
        return self.children[0].makes_arrays()


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

    def rows_from(self, epoch, start):
        self.get_col_names()
        return self.children[0].rows_from(epoch, start)

    def batches(self, epoch, size, drop_remainder):
        """The source's fast batches, if it has some."""
        return nodes.batches(self.children[0], epoch, size, drop_remainder)

    def origin(self, epoch, number):
        return self.children[0].origin(epoch, number)

    def makes_arrays(self):
        return self.children[0].makes_arrays()


class Gate:
    """Lets rows through as far as updates allow; a thread that waits too long opens it for good."""

    def __init__(self, name: str, rows: int, callback):
        self._name, self._rows, self._callback = name, rows, callback
        self._size = 1  # rows of a batch above the gate: it counts in these
        self._left, self._given_up = rows, False
        self._changed = threading.Condition()

    def open(self) -> None:
        """Hold nothing up any more."""
        with self._changed:
            self._given_up = True
            self._changed.notify_all()

    def batched(self, size: int) -> None:
        """Rows above become batches."""
        self._size *= size
        self._left *= size

    def update(self, rows: int | None, data) -> None:
        """Hand `data` to the callback and let `rows` more through, by default as many as at the beginning."""
        with self._changed:
            self._left += (self._rows if rows is None else rows) * self._size
            if self._callback is not None:
                self._callback(data)
            self._changed.notify_all()

    def restart(self) -> None:
        """Close a gate again that nobody had opened in time."""
        with self._changed:
            if self._given_up:
                self._left, self._given_up = self._rows * self._size, False

    def passed(self) -> None:
        """Wait until a row may pass."""
        seconds = config.get_callback_timeout()
        with self._changed:
            if not self._changed.wait_for(lambda: self._left > 0 or self._given_up, seconds):
                log.logger("mycelia.dataset").warning(
                    "sync_wait: no sync_update(%r) came within the %s s of callback_timeout; rows are not "
                    "held up any more", self._name, seconds,
                )  # fmt: skip
                self._given_up = True
            self._left -= 1


class SyncWaitDataset(Dataset):
    """A gate: lets `num_batch` rows through, or batches if they are batched above, then waits for an update.

    After `callback_timeout` seconds without one the gate stays open, with a warning. Nothing above it reads
    ahead, so an update that comes between two rows is in force for the next one.
    """

    reads_ahead = False

    def __init__(self, source, condition_name, num_batch=1, callback=None):
        super().__init__(source)
        nodes.of_type("Dataset.sync_wait", "condition_name", condition_name, str)
        if nodes.of_type("Dataset.sync_wait", "num_batch", num_batch, int) < 1:
            raise errors.value_error(
                "Dataset.sync_wait", f"num_batch need to be greater than 0. It is {num_batch}"
            )
        if callback is not None and not callable(callback):
            raise errors.type_error("Dataset.sync_wait", f"callback must be callable, but got {callback!r}")
        for node in source.walk():
            if isinstance(node, SyncWaitDataset) and node.condition_name == condition_name:
                raise errors.runtime_error(
                    "Dataset.sync_wait", f"Condition name is already in use: {condition_name!r}"
                )
        self.condition_name, self.num_batch, self.callback = condition_name, num_batch, callback
        self._gate = Gate(condition_name, num_batch, callback)  # copies of the node share it

    def batched(self, size: int) -> None:
        """Rows above become batches of `size`."""
        self._gate.batched(size)

    def update(self, num_batch=None, data=None) -> None:
        """Hand `data` to the callback and let rows through."""
        if num_batch is not None and not (isinstance(num_batch, int) and num_batch > 0):
            raise errors.runtime_error(
                "Dataset.sync_update",
                f"Sync_update batch size can only be positive integer, got: {num_batch}.",
            )
        self._gate.update(num_batch, data)

    def open(self) -> None:
        """Let all rows through."""
        self._gate.open()

    def rows(self, epoch):
        if self._run is None:  # somebody asks for shapes or counts
            yield from self.children[0].rows(epoch)
            return
        if epoch == 0:
            self._gate.restart()
        for row in self.children[0].rows(epoch):
            self._gate.passed()
            yield row

    def origin(self, epoch, number):
        return self.children[0].origin(epoch, number)

    def makes_arrays(self):
        return self.children[0].makes_arrays()


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
