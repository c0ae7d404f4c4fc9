"""Dataset nodes: each reads rows from its sources and passes them on.

A row is a tuple of NumPy arrays, one per column. Nodes are built lazily and read once per epoch; nothing is
computed before an iterator asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from mycelia import errors
from mycelia.dataset import config, nodes


class Dataset:
    """Base of all nodes. `children` are the nodes it reads."""

    def __init__(self, *children: Dataset):
        for child in children:
            if not isinstance(child, Dataset):
                raise errors.type_error(
                    type(self).__name__, f"a dataset was expected, but got {type(child).__name__}"
                )
        self.children = list(children)
        self.parent: list[Dataset] = []
        for child in self.children:
            child.parent.append(self)
        self._input_indexs = ()
        self._init_step = 0
        self._epochs: DatasetIterator | None = None

    def walk(self) -> Iterator[Dataset]:
        """This node and all that it reads."""
        yield self
        for child in self.children:
            yield from child.walk()

    def salt(self) -> int:
        """Number of this node's random stream: its height, so that equal pipelines have equal orders."""
        return 1 + max((child.salt() for child in self.children), default=0)

    def seed(self) -> int:
        """The seed of this run: the one that was set, or an arbitrary one."""
        return config.stream_seed()

    def generator(self, epoch: int) -> np.random.Generator:
        """Random numbers of this node for one epoch: its order of rows, not their values."""
        return np.random.default_rng((self.seed(), epoch, self.salt()))

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

    def get_class_indexing(self) -> dict:
        """Number of each class by name, where the source knows it, else {}."""
        return self.children[0].get_class_indexing() if self.children else {}

    @property
    def input_indexs(self):
        """Which columns a network takes, as the user set it: nothing here depends on it."""
        for node in self.walk():
            if node._input_indexs != ():
                return node._input_indexs
        return ()

    @input_indexs.setter
    def input_indexs(self, value) -> None:
        self._input_indexs = value

    # ---- operations ----------------------------------------------------------------------------------------

    def batch(
        self, batch_size, drop_remainder: bool = False, num_parallel_workers: int | None = None, **kwargs
    ) -> Dataset:
        """Stack `batch_size` rows (an int, or a function of a BatchInfo).

        `per_batch_map(column..., batch_info)` with `input_columns` and `output_columns` changes each batch.
        """
        from mycelia.dataset.batching import BatchDataset

        return BatchDataset(self, batch_size, drop_remainder, num_parallel_workers, **kwargs)

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
        from mycelia.dataset.batching import PaddedBatchDataset

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
        from mycelia.dataset.batching import BucketBatchDataset

        return BucketBatchDataset(
            self, column_names, bucket_boundaries, bucket_batch_sizes, element_length_function, pad_info,
            pad_to_bucket_boundary, drop_remainder,
        )  # fmt: skip

    def map(
        self,
        operations,
        input_columns=None,
        output_columns=None,
        num_parallel_workers: int | None = None,
        **kwargs,
    ) -> Dataset:
        """Apply a function or a list of them to the input columns (default: the first)."""
        return _node(
            "MapDataset", self, operations, input_columns, output_columns, num_parallel_workers, **kwargs
        )

    def flat_map(self, func: Callable) -> Dataset:
        """The datasets that `func` makes of each row, one after the other."""
        from mycelia.dataset.operations import flat_map

        return flat_map(self, func)

    def shuffle(self, buffer_size: int) -> Dataset:
        """Random order within a sliding window of `buffer_size` rows. RuntimeError behind `sync_wait`."""
        self._nothing_waits("shuffle")
        return _node("ShuffleDataset", self, buffer_size)

    def _nothing_waits(self, operation: str) -> None:
        from mycelia.dataset.operations import SyncWaitDataset

        if any(isinstance(node, SyncWaitDataset) for node in self.walk()):
            raise errors.runtime_error(f"Dataset.{operation}", f"{operation} cannot follow sync_wait")

    def repeat(self, count: int | None = None) -> Dataset:
        """`count` passes as one epoch; None or -1: no end."""
        return _node("RepeatDataset", self, count)

    def take(self, count: int = -1) -> Dataset:
        """The first `count` rows; -1: all."""
        return _node("TakeDataset", self, count)

    def skip(self, count: int) -> Dataset:
        """All but the first `count` rows."""
        return _node("SkipDataset", self, count)

    def zip(self, datasets) -> Dataset:
        """Columns of several datasets side by side; the shortest decides the size."""
        nodes.of_type("Dataset.zip", "datasets", datasets, tuple, Dataset)
        others = datasets if isinstance(datasets, tuple) else (datasets,)
        return _node("ZipDataset", (self, *others))

    def concat(self, datasets) -> Dataset:
        """The rows of several datasets one after the other."""
        nodes.of_type("Dataset.concat", "datasets", datasets, list, Dataset)
        others = datasets if isinstance(datasets, list) else [datasets]
        return _node("ConcatDataset", (self, *others))

    def __add__(self, other: Dataset) -> Dataset:
        return self.concat(other)

    def project(self, columns) -> Dataset:
        """Only these columns, in this order."""
        return _node("ProjectDataset", self, columns)

    def rename(self, input_columns, output_columns) -> Dataset:
        """Other names for columns."""
        return _node("RenameDataset", self, input_columns, output_columns)

    def filter(
        self, predicate: Callable, input_columns=None, num_parallel_workers: int | None = None
    ) -> Dataset:
        """Only rows for which ``predicate(columns...)`` is true."""
        return _node("FilterDataset", self, predicate, input_columns, num_parallel_workers)

    def split(self, sizes: list, randomize: bool = True) -> list[Dataset]:
        """Parts of the given sizes: ints that sum to the size, or fractions that sum to 1."""
        from mycelia.dataset.operations import split

        return split(self, sizes, randomize)

    def apply(self, apply_func: Callable[[Dataset], Dataset]) -> Dataset:
        """``apply_func(self)``."""
        if not callable(apply_func):
            raise errors.type_error("Dataset.apply", f"apply_func must be a function, but got {apply_func!r}")
        return nodes.of_type("Dataset.apply", "what apply_func returns", apply_func(self), Dataset)

    def sync_wait(self, condition_name: str, num_batch: int = 1, callback: Callable | None = None) -> Dataset:
        """A gate for `sync_update` of the same name, which hands its data to `callback`."""
        return _node("SyncWaitDataset", self, condition_name, num_batch, callback)

    def sync_update(self, condition_name: str, num_batch: int | None = None, data=None) -> None:
        """Open the gate `condition_name` for the next rows. RuntimeError for an unknown name."""
        from mycelia.dataset.operations import SyncWaitDataset

        nodes.of_type("Dataset.sync_update", "condition_name", condition_name, str)
        for node in self.walk():
            if isinstance(node, SyncWaitDataset) and node.condition_name == condition_name:
                node.update(num_batch, data)
                return
        raise errors.runtime_error("Dataset.sync_update", f"there is no condition {condition_name!r}")

    def save(self, file_name: str, num_files: int = 1, file_type: str = "mindrecord") -> None:
        """Write all rows to MindRecord files. TypeError, ValueError; RuntimeError for what cannot be."""
        nodes.of_type("Dataset.save", "file_name", file_name, str)
        nodes.integer("Dataset.save", "num_files", num_files, 1, 1000)
        if file_type != "mindrecord":
            raise errors.value_error("Dataset.save", f"file_type must be 'mindrecord', but got {file_type!r}")
        from mycelia.dataset.export import to_mindrecord

        to_mindrecord(self, file_name, num_files)

    def to_json(self, filename: str = "") -> dict:
        """The pipeline as a dict, also written to the file if one is named."""
        from mycelia.dataset.serialize import serialize

        return serialize(self, filename)

    # ---- reading -------------------------------------------------------------------------------------------

    def create_tuple_iterator(
        self, columns=None, num_epochs: int = -1, output_numpy: bool = False, do_copy: bool = False
    ) -> DatasetIterator:
        """An iterator over rows as lists of Tensors (arrays with `output_numpy`);
        one ``for`` loop is one epoch.
        """
        source = self if columns is None else self.project(columns)
        return DatasetIterator(source, num_epochs, output_numpy, do_copy, as_dict=False)

    def create_dict_iterator(
        self, num_epochs: int = -1, output_numpy: bool = False, do_copy: bool = False
    ) -> DatasetIterator:
        """An iterator over rows as dicts by column name; one ``for`` loop is one epoch."""
        return DatasetIterator(self, num_epochs, output_numpy, do_copy, as_dict=True)

    def next_epoch(self) -> DatasetIterator:
        """One epoch for a training loop: each call goes on to the next epoch's order."""
        if self._epochs is None:
            self._epochs = self.create_tuple_iterator()
        return self._epochs.next_epoch()

    def __iter__(self):
        return iter(self.create_tuple_iterator(num_epochs=1))

    def __len__(self) -> int:
        return self.get_dataset_size()

    def reset(self) -> None:
        """Start from the first epoch again: every iterator does, so there is nothing left to do."""

    def get_init_step(self) -> int:
        """Step that an iterator starts from."""
        return self._init_step

    def set_init_step(self, init_step: int) -> None:
        """Start iterators from this step (over all epochs)."""
        self._init_step = nodes.integer("Dataset.set_init_step", "init_step", init_step, 0)

    def _first_row(self) -> tuple:
        row = next(self.rows(0), None)
        if row is None:
            raise errors.runtime_error(type(self).__name__, "the dataset is empty")
        return row

    def output_shapes(self, estimate: bool = False) -> list[list]:
        """Shape of each column in the first row; with `estimate` None where rows differ."""
        nodes.of_type("Dataset.output_shapes", "estimate", estimate, bool)
        shapes = [_shape(c) for c in self._first_row()]
        if estimate:
            for row in self.rows(0):
                for shape, other in zip(shapes, map(_shape, row)):
                    if len(shape) != len(other):
                        raise errors.runtime_error("Dataset.output_shapes", "the ranks of a column differ")
                    shape[:] = [a if a == b else None for a, b in zip(shape, other)]
        return shapes

    def output_types(self) -> list[np.dtype]:
        """NumPy dtype of each column."""
        return [_type(c) for c in self._first_row()]


def _shape(column) -> list:
    return [0] if isinstance(column, dict) else list(np.shape(column))


def _type(column) -> np.dtype:
    dtype = np.asarray(column).dtype
    return np.dtype(dtype.kind) if dtype.kind in "SU" else dtype  # texts of any length


def _node(name: str, *args, **kwargs) -> Dataset:
    from mycelia.dataset import operations

    return getattr(operations, name)(*args, **kwargs)


class DatasetIterator:
    """Rows of a dataset, epoch after epoch, `num_epochs` of them (-1: no limit).
    A loop that was left goes on where it was.

    Errors: RuntimeError for columns that are not there, and for one epoch too many.
    """

    def __init__(
        self,
        dataset: Dataset,
        num_epochs: int,
        output_numpy: bool,
        do_copy: bool = False,
        as_dict: bool = False,
    ):
        nodes.of_type("create_iterator", "num_epochs", num_epochs, int)
        nodes.of_type("create_iterator", "output_numpy", output_numpy, bool)
        nodes.of_type("create_iterator", "do_copy", do_copy, bool)
        if num_epochs < 1 and num_epochs != -1:
            raise errors.runtime_error(
                "create_iterator", f"num_epochs must be positive or -1, but got {num_epochs!r}"
            )
        self._dataset, self._epochs, self._numpy = dataset, num_epochs, output_numpy
        names = dataset.get_col_names()
        self._names = names if as_dict else None
        self._epoch = 0
        self._skip = 0
        if dataset._init_step:
            self._epoch, self._skip = divmod(dataset._init_step, max(1, dataset.get_dataset_size()))
        self._rows: Iterator | None = None

    def __iter__(self):
        return self

    def next_epoch(self) -> DatasetIterator:
        """Leave the rest of the epoch that was begun."""
        self._rows = None
        return self

    def _start(self) -> None:
        if self._epochs != -1 and self._epoch >= self._epochs:
            raise errors.runtime_error(
                "create_iterator",
                f"all {self._epochs} epochs (num_epochs) are read",
                hint="make a new iterator, or give a larger num_epochs",
            )
        self._rows = self._dataset.rows(self._epoch)
        self._epoch += 1
        for _ in range(self._skip):
            next(self._rows, None)
        self._skip = 0

    def __next__(self):
        if self._rows is None:
            self._start()
        try:
            row = next(self._rows)
        except StopIteration:
            self._rows = None
            raise
        values = [_to_numpy(c) for c in row] if self._numpy else [_to_tensor(c) for c in row]
        return values if self._names is None else dict(zip(self._names, values))

    def stop(self) -> None:
        """Give up the rest."""
        self._rows, self._epochs = None, self._epoch

    def release(self) -> None:
        """Give up the rest."""
        self.stop()

    def get_dataset_size(self) -> int:
        """Rows of one epoch."""
        return self._dataset.get_dataset_size()


def _to_numpy(column):
    # MindSpore's int64 arrays have C's type "long long", and NumPy prints it: array(0, dtype=int64).
    if isinstance(column, np.ndarray) and column.dtype.char == "l" and column.dtype.itemsize == 8:
        return column.view(np.longlong)
    return column


def _to_tensor(column):
    from mycelia.tensor import Tensor

    if isinstance(column, dict):
        return {k: _to_tensor(v) for k, v in column.items()}
    if isinstance(column, (list, tuple)):
        return type(column)(_to_tensor(v) for v in column)
    array = np.asarray(column)
    if array.dtype.kind in "USO":  # texts stay arrays: Tensors hold numbers
        return array
    return Tensor(array)
