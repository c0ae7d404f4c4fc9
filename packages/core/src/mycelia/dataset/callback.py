"""Callbacks in a pipeline: a map tells them where it is. The one that waits: train/callbacks/waited.py."""

from __future__ import annotations

from collections.abc import Iterator

from mycelia.dataset import nodes


class RunContext:
    """Where a map is, from 1: `cur_epoch_num`, `cur_step_num` (of all epochs), `cur_step_num_in_epoch`."""

    __slots__ = ("cur_epoch_num", "cur_step_num", "cur_step_num_in_epoch")

    def __init__(self, epoch: int, step: int, step_in_epoch: int):
        self.cur_epoch_num, self.cur_step_num, self.cur_step_num_in_epoch = epoch, step, step_in_epoch

    def __str__(self) -> str:
        return (
            f"cur_epoch_num: {self.cur_epoch_num}, cur_step_num_in_epoch: {self.cur_step_num_in_epoch}, "
            f"cur_step_num: {self.cur_step_num}"
        )


class DSCallback:
    """Base of callbacks given to `map`: override its events; `step_size`: rows between two step events.

    Errors: TypeError, ValueError for a `step_size` that is no positive int.
    """

    _rows_before = 0  # rows of the epochs that a map has read
    _rows_of_epoch = 0  # rows of the epoch that it reads

    def __init__(self, step_size: int = 1):
        nodes.integer(type(self).__name__, "step_size", step_size, 1)
        self.step_size = step_size

    def ds_begin(self, ds_run_context):
        """Before the first row of all."""

    def ds_epoch_begin(self, ds_run_context):
        """Before the first row of an epoch."""

    def ds_epoch_end(self, ds_run_context):
        """After the last row of an epoch."""

    def ds_step_begin(self, ds_run_context):
        """Before a row."""

    def ds_step_end(self, ds_run_context):
        """After a row."""

    def create_runtime_obj(self) -> DSCallback:
        """What the pipeline calls: this object."""
        return self


class Runner:
    """Calls the callbacks of one map around the rows of one epoch, or of one of its passes below `repeat`."""

    def __init__(self, callbacks: list[DSCallback], epoch: int, number: int = 0, passes: int = 1):
        self._callbacks, self._epoch, self._pass, self._passes = callbacks, epoch, number, passes

    def steps(self, rows: Iterator[tuple]) -> Iterator[tuple]:
        """The rows, with the events of the callbacks around them."""
        if not self._callbacks:
            yield from rows
            return
        runtime = [c.create_runtime_obj() for c in self._callbacks]
        first = self._callbacks[0]
        done, step = first._rows_before if self._epoch else 0, first._rows_of_epoch if self._pass else 0
        if self._epoch == self._pass == 0:
            self._call(runtime, "ds_begin", done, 0)
        if self._pass == 0:
            self._call(runtime, "ds_epoch_begin", done, 0)
        try:
            for row in rows:
                step += 1
                self._call(runtime, "ds_step_begin", done + step, step)
                yield row
                self._call(runtime, "ds_step_end", done + step, step)
        finally:  # a training may leave an epoch after its last row, without asking for more
            first._rows_of_epoch = step
            if self._pass + 1 == self._passes:
                first._rows_before = done + step
        if self._pass + 1 == self._passes:
            self._call(runtime, "ds_epoch_end", done + step, step)

    def _call(self, runtime, event: str, step: int, step_in_epoch: int) -> None:
        epoch = 0 if event == "ds_begin" else self._epoch + 1
        context = RunContext(epoch, step, step_in_epoch)
        for callback in runtime:
            if "step" in event and (step_in_epoch - 1) % callback.step_size:
                continue
            getattr(callback, event)(context)
