"""Dataset, the base of all nodes: each reads rows from its sources and passes them on.

A row is a tuple of NumPy arrays, one per column. Nodes are built lazily and read once per epoch; nothing is
computed before an iterator asks for it. What an iterator reads is a copy of the nodes that belongs to its
`Run` (see rewrite.py); one that belongs to none computes its rows without workers, and gives the same.

Methods that put a node above another, or read it, stand beside that node: `dataset_methods` adds them.
"""

from __future__ import annotations

import itertools
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from mycelia.dataset import config, nodes
from mycelia.engine.base import errors

if TYPE_CHECKING:  # what reads this file without running it finds the methods that are added
    from mycelia.dataset.batching import Batching
    from mycelia.dataset.columns import Columns
    from mycelia.dataset.combining import Combining
    from mycelia.dataset.execution.iterator import DatasetIterator, Reading
    from mycelia.dataset.execution.profiling import Profiling
    from mycelia.dataset.execution.transfer import Transfer
    from mycelia.dataset.export import Export
    from mycelia.dataset.gates import Gates
    from mycelia.dataset.mapping import Mapping
    from mycelia.dataset.padding import Padding
    from mycelia.dataset.selection import Selection
    from mycelia.dataset.serialize import Serialization

    class _Added(
        Batching, Padding, Mapping, Selection, Columns, Combining, Gates,
        Reading, Transfer, Export, Profiling, Serialization,
    ): ...  # fmt: skip
else:
    _Added = object

_Holder = TypeVar("_Holder", bound=type)


class Dataset(_Added):
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

    def apply(self, apply_func: Callable[[Dataset], Dataset]) -> Dataset:
        """``apply_func(self)``."""
        if not callable(apply_func):
            raise errors.type_error("Dataset.apply", f"apply_func must be a function, but got {apply_func!r}")
        return nodes.of_type("Dataset.apply", "what apply_func returns", apply_func(self), Dataset)

    # ---- what is asked of it -------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self.get_dataset_size()

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


def dataset_methods(holder: _Holder) -> _Holder:
    """Decorator of a class: each dataset gets its methods. The class itself is never made."""
    for name, method in vars(holder).items():
        if isinstance(method, types.FunctionType):
            method.__qualname__ = f"Dataset.{name}"
            setattr(Dataset, name, method)
    return holder
