"""Iterators over a pipeline: epochs, Tensors or arrays, and the place to go on from."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mycelia.dataset import config, nodes
from mycelia.dataset.execution import prefetch, profiling, rewrite
from mycelia.dataset.execution.autotune import Tuner
from mycelia.dataset.execution.reshard import go_on, place
from mycelia.dataset.execution.run import Run
from mycelia.dataset.pipeline import Dataset, dataset_methods
from mycelia.engine.base import errors

_STATE_VERSION = 1
#: Who hears of the dataset of which an epoch begins.
listeners: list[Callable[[Any], None]] = []
ITERATORS_LIST: list[weakref.ref] = []  # those that are there, as scripts of MindSpore ask for them


def _forget(reference: weakref.ref) -> None:
    with contextlib.suppress(ValueError):  # scripts may have emptied the list
        ITERATORS_LIST.remove(reference)


def _cleanup() -> None:
    """Stop all iterators that are there."""
    for reference in list(ITERATORS_LIST):
        iterator = reference()
        if iterator is not None:
            iterator.stop()


def _unset_iterator_cleanup() -> None:
    """Nothing is left to undo: an iterator that was stopped is known as before."""


class DatasetIterator:
    """Rows of a dataset, epoch after epoch, `num_epochs` of them (-1: no limit).
    A loop that was left goes on where it was.

    Errors: RuntimeError for columns that are not there, and for one epoch too many.
    """

    def __init__(
        self,
        dataset,
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
        self._copy = do_copy or config.get_iterator_mode()["do_copy"]
        names = dataset.get_col_names()
        self._names = names if as_dict else None
        self._stopped = False
        self._epoch = 0  # that the next row belongs to
        self._row = 0  # rows of it that were given
        if dataset._init_step:
            self._epoch, self._row = divmod(dataset._init_step, max(1, dataset.get_dataset_size()))
        self._start(Run())
        self._rows: Iterator | None = None
        ITERATORS_LIST.append(weakref.ref(self, _forget))

    def _start(self, run: Run) -> None:
        self._run = run
        run.own(self)
        self._tree = rewrite.executable(self._dataset, run)
        run.watch = profiling.watched(self._tree)
        if config.get_enable_autotune():
            run.tuner = Tuner(run, self._tree)
        self._pace = prefetch.pace(self._tree, run)
        # Arrays that only this iterator knows become Tensors as they are.
        self._share = not self._copy and self._tree.makes_arrays()

    def __iter__(self):
        return self

    def next_epoch(self) -> DatasetIterator:
        """Leave the rest of the epoch that was begun."""
        if self._rows is not None:
            self._end_epoch()
        return self

    def _end_epoch(self) -> None:
        rows, self._rows = self._rows, None
        if hasattr(rows, "close"):
            rows.close()
        self._epoch, self._row = self._epoch + 1, 0
        self._run.epoch_ended()
        if self._epoch == self._epochs:
            self._run.close()

    def _begin_epoch(self) -> None:
        if self._stopped:
            raise errors.error(
                errors.MyceliaAttributeError,
                "create_iterator",
                "the iterator was stopped: this object has no attribute '_runtime_context' any more",
            )
        if self._epochs != -1 and self._epoch >= self._epochs:
            raise errors.runtime_error(
                "create_iterator",
                "EOF buffer encountered. User tries to fetch data beyond the specified number of epochs. All "
                f"{self._epochs} of num_epochs are read",
                hint="make a new iterator, or give a larger num_epochs",
            )
        for listener in listeners:
            listener(self._dataset)
        if self._row and config.get_fast_recovery():
            self._rows = iter(self._tree.rows_from(self._epoch, self._row))
        else:
            self._rows = iter(self._tree.rows(self._epoch))
            for _ in range(self._row):
                next(self._rows, None)
        if self._pace is not None:
            self._keep(self._pace.begun(self._rows))

    def _keep(self, rows: Iterator) -> None:
        """Read `rows` from here on. What ends the run ends a thread that makes them."""
        self._rows, self._run.reader = rows, rows if isinstance(rows, prefetch.Ahead) else None

    def __next__(self):
        if self._rows is None:
            self._begin_epoch()
        try:
            if self._pace is None or self._pace.settled:
                row = next(self._rows)
            else:
                row, rows = self._pace.next(self._rows)
                self._keep(rows)
        except StopIteration:
            self._end_epoch()
            raise
        except BaseException:
            self._give_up()
            raise
        self._row += 1
        if self._run.tuner is not None:
            self._run.tuner.row_given()
        if self._numpy:
            values = [_to_numpy(c) for c in row]
        else:
            values = [_to_tensor(c, self._share) for c in row]
        return values if self._names is None else dict(zip(self._names, values))

    def state_dict(self) -> dict:
        """Where this iterator is: `load_state_dict` of an iterator over an equal pipeline goes on there, with
        the same order and the same random values. The pipeline may have another number of shards, if all
        ranks have read equally far: the rest of the epoch is then dealt out anew.
        """
        return {
            "version": _STATE_VERSION, "seed": self._run.seed, "shared_seed": self._run.shared_seed,
            "epoch": self._epoch, "row": self._row,
            "columns": self._dataset.get_col_names(), **place(self._tree, self._epoch),
        }  # fmt: skip

    def load_state_dict(self, state: dict) -> None:
        """Go on where `state_dict` was called. TypeError, ValueError for what is no such state."""
        owner = "load_state_dict"
        nodes.of_type(owner, "state", state, dict)
        if state.get("version") != _STATE_VERSION:
            raise errors.value_error(owner, f"version {state.get('version')!r} of a state is not known")
        if state["columns"] != self._dataset.get_col_names():
            raise errors.value_error(
                owner,
                f"the state is of a pipeline with columns {state['columns']}, but this one has "
                f"{self._dataset.get_col_names()}",
            )
        epoch = nodes.integer(owner, "epoch", state["epoch"], 0)
        nodes.integer(owner, "row", state["row"], 0, 2**63 - 1)
        self._close_rows()
        self._run.close()
        self._start(Run(state["seed"], state.get("shared_seed", state["seed"])))
        self._epoch, self._row = epoch, go_on(self._tree, state)

    def _close_rows(self) -> None:
        rows, self._rows = self._rows, None
        if hasattr(rows, "close"):
            rows.close()

    def stop(self) -> None:
        """Give up the rest, and end all workers. AttributeError, as in MindSpore, when it is asked again."""
        self._stopped = True
        self._give_up()

    def _give_up(self) -> None:
        self._close_rows()
        self._epochs = self._epoch
        self._run.close()

    def release(self) -> None:
        """Give up the rest."""
        self.stop()

    def get_dataset_size(self) -> int:
        """Rows of one epoch."""
        return self._dataset.get_dataset_size()


def _tensor(array: np.ndarray):
    global _tensor
    from mycelia.engine.tensors.tensor import (
        Tensor,  # it takes its time to load, which pipelines of arrays need not spend
    )

    _tensor = Tensor
    return Tensor(array)


def _shared_tensor(array: np.ndarray):
    from mycelia.engine.tensors.tensor import from_numpy

    return from_numpy(array)


def _to_numpy(column):
    # MindSpore's int64 arrays have C's type "long long", and NumPy prints it: array(0, dtype=int64).
    if isinstance(column, np.ndarray) and column.dtype.char == "l" and column.dtype.itemsize == 8:
        return column.view(np.longlong)
    return column


def _to_tensor(column, share: bool):
    if type(column) is np.ndarray:
        if column.dtype.kind in "USO":  # texts stay arrays: Tensors hold numbers
            return column
        return _shared_tensor(column) if share and column.base is None else _tensor(column)
    if isinstance(column, dict):
        return {k: _to_tensor(v, share) for k, v in column.items()}
    if isinstance(column, (list, tuple)):
        return type(column)(_to_tensor(v, share) for v in column)
    return _to_tensor(np.asarray(column), share)


@dataset_methods
class Reading:
    """Methods that read the rows."""

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

    def reset(self) -> None:
        """Start from the first epoch again, also in a training loop; every iterator does anyway."""
        self._epochs = None
