"""Dataset nodes: each reads rows from its sources and passes them on.

A row is a tuple of NumPy arrays, one per column. Nodes are built lazily and read once per epoch; nothing is
computed before an iterator asks for it. What an iterator reads is a copy of the nodes that belongs to its
`Run` (see rewrite.py); one that belongs to none computes its rows without workers, and gives the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np

from mycelia.dataset import config, nodes
from mycelia.dataset.execution.iterator import DatasetIterator
from mycelia.engine.base import errors


class Dataset:
    """Base of all nodes. `children` are the nodes it reads."""

    cache = None  # a `DatasetCache` for the rows of this node
    cache_figures: Callable[[], dict] | None = None  # of what serves rows from a cache: hits, misses, bytes
    num_parallel_workers: int | None = None
    reads_ahead = True  # whether a thread may read it before the program asks for its rows
    passes = 1  # over its source in an epoch; 0: without end
    passes_above = 1  # of all nodes above it, in what an iterator reads
    _run = None
    _salt: int | None = None

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
        if self._salt is not None:
            return self._salt
        return 1 + max((child.salt() for child in self.children), default=0)

    def seed(self) -> int:
        """The seed of this run: the one that was set, or an arbitrary one."""
        return config.stream_seed() if self._run is None else self._run.seed

    def epoch_of_user(self, epoch: int) -> tuple[int, int]:
        """(epoch of the iterator, pass in it) for what is an epoch of this node below `repeat`."""
        return divmod(epoch, self.passes_above) if self.passes_above else (0, epoch)

    def generator(self, epoch: int) -> np.random.Generator:
        """Random numbers of this node for one epoch: its order of rows, not their values."""
        seed = self.seed()
        if self.is_sharded():
            seed = config.get_seed() if self._run is None else self._run.shared_seed
        return np.random.default_rng((seed, epoch, self.salt()))

    def is_sharded(self) -> bool:
        """Whether the rows are shared among processes, which must then agree on their order."""
        return False

    # ---- what a node defines -------------------------------------------------------------------------------

    def rows(self, epoch: int) -> Iterator[tuple]:
        """The rows of one epoch."""
        raise errors.error(errors.NotSupportedError, type(self).__name__, "rows(epoch) is not defined")

    def rows_from(self, epoch: int, start: int) -> Iterator[tuple]:
        """The rows of one epoch without the first `start`, which need not be computed."""
        return itertools.islice(self.rows(epoch), start, None)

    def prepare(self) -> None:
        """Find out, once for all iterators, what they would find out each for itself."""

    def makes_arrays(self) -> bool:
        """Whether the arrays of its rows are new ones that nobody else holds."""
        return False

    def origin(self, epoch: int, number: int) -> str:
        """Where a row comes from (a file, a number in the source), for messages; "" if unknown."""
        return ""

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
        from mycelia.dataset.mapping import MapDataset

        return MapDataset(self, operations, input_columns, output_columns, num_parallel_workers, **kwargs)

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
            raise errors.runtime_error(
                f"Dataset.{operation}", f"No {operation} after sync operators (sync_wait)"
            )

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
        from mycelia.dataset.mapping import FilterDataset

        return FilterDataset(self, predicate, input_columns, num_parallel_workers)

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
        raise errors.runtime_error("Dataset.sync_update", f"Condition name not found: {condition_name!r}")

    def disable_sync(self) -> None:
        """Open all gates of `sync_wait` for good."""
        from mycelia.dataset.operations import SyncWaitDataset

        for node in self.walk():
            if isinstance(node, SyncWaitDataset):
                node.open()

    def device_que(
        self, send_epoch_end: bool = True, create_data_info_queue: bool = False, queue_name: str = ""
    ) -> Dataset:
        """A queue that a thread fills with the rows: see `transfer.TransferDataset`."""
        from mycelia.dataset.execution.transfer import TransferDataset

        return TransferDataset(self, send_epoch_end, create_data_info_queue, queue_name)

    def save(self, file_name: str, num_files: int = 1, file_type: str = "mindrecord") -> None:
        """Write all rows to MindRecord files. TypeError, ValueError; RuntimeError for what cannot be."""
        nodes.of_type("Dataset.save", "file_name", file_name, str)
        if not 0 < nodes.of_type("Dataset.save", "num_files", num_files, int) <= 1000:
            raise errors.value_error(
                "Dataset.save", f"num_files should between 0 and 1000. It is {num_files}"
            )
        if nodes.of_type("Dataset.save", "file_type", file_type, str) != "mindrecord":
            raise errors.value_error("Dataset.save", f"{file_type} dataset format is not supported.")
        from mycelia.dataset.export import to_mindrecord

        to_mindrecord(self, file_name, num_files)

    def profile(self, rows: int | None = None, *, show: bool = True):
        """Read the pipeline once and tell where the time goes; see `mycelia.dataset.profile`."""
        from mycelia.dataset.execution.profiling import profile

        return profile(self, rows, show=show)

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
        source = self._shown() if columns is None else self.project(columns)
        return DatasetIterator(source, num_epochs, output_numpy, do_copy, as_dict=False)

    def create_dict_iterator(
        self, num_epochs: int = -1, output_numpy: bool = False, do_copy: bool = False
    ) -> DatasetIterator:
        """An iterator over rows as dicts by column name; one ``for`` loop is one epoch."""
        return DatasetIterator(self._shown(), num_epochs, output_numpy, do_copy, as_dict=True)

    def _shown(self) -> Dataset:
        """This dataset without columns of a source's metadata, which only a rename makes visible."""
        names = self.get_col_names()
        shown = [name for name in names if not name.startswith("_meta-")]
        return self if len(shown) == len(names) else self.project(shown)

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
        """Start from the first epoch again, also in a training loop; every iterator does anyway."""
        self._epochs = None

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
                        raise errors.runtime_error(
                            "Dataset.output_shapes",
                            f"Inconsistent shapes, expect same shape for each data row: {shape} and {other}",
                        )
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
