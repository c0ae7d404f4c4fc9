"""Rows that wait for the program: sync_wait and the updates that let them through."""

from __future__ import annotations

import threading
from collections.abc import Callable

from mycelia.dataset import config, nodes
from mycelia.dataset.pipeline import Dataset, dataset_methods
from mycelia.engine.base import errors, log


class Gate:
    """Lets rows through as far as updates allow; a thread that waits too long opens it for good."""

    def __init__(self, name: str, rows: int, callback):
        self._name, self._rows, self._callback = name, rows, callback
        self._size = 1  # rows of a batch above the gate: it counts in these
        self._left, self._given_up, self._disabled = rows, False, False
        self._changed = threading.Condition()

    def open(self) -> None:
        """Hold nothing up any more, in later epochs and iterators neither."""
        with self._changed:
            self._disabled = True
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
            if not self._changed.wait_for(self._lets_through, seconds):
                log.logger("mycelia.dataset").warning(
                    "sync_wait: no sync_update(%r) came within the %s s of callback_timeout; rows are not "
                    "held up any more", self._name, seconds,
                )  # fmt: skip
                self._given_up = True
            self._left -= 1

    def _lets_through(self) -> bool:
        return self._left > 0 or self._given_up or self._disabled


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


def nothing_waits(node: Dataset, operation: str) -> None:
    """RuntimeError for an operation that cannot stand above a gate."""
    if any(isinstance(below, SyncWaitDataset) for below in node.walk()):
        raise errors.runtime_error(f"Dataset.{operation}", f"No {operation} after sync operators (sync_wait)")


@dataset_methods
class Gates:
    """Methods that hold rows back and let them through."""

    def sync_wait(self, condition_name: str, num_batch: int = 1, callback: Callable | None = None) -> Dataset:
        """A gate for `sync_update` of the same name, which hands its data to `callback`."""
        return SyncWaitDataset(self, condition_name, num_batch, callback)

    def sync_update(self, condition_name: str, num_batch: int | None = None, data=None) -> None:
        """Open the gate `condition_name` for the next rows. RuntimeError for an unknown name."""
        nodes.of_type("Dataset.sync_update", "condition_name", condition_name, str)
        for node in self.walk():
            if isinstance(node, SyncWaitDataset) and node.condition_name == condition_name:
                node.update(num_batch, data)
                return
        raise errors.runtime_error("Dataset.sync_update", f"Condition name not found: {condition_name!r}")

    def disable_sync(self) -> None:
        """Open all gates of `sync_wait` for good."""
        for node in self.walk():
            if isinstance(node, SyncWaitDataset):
                node.open()
