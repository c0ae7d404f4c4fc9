"""A callback of the training and of its pipeline at once."""

from __future__ import annotations

import threading

from mycelia.dataset import config
from mycelia.dataset.callback import DSCallback
from mycelia.engine.base import errors
from mycelia.train.callbacks.base import Callback


class WaitedDSCallback(Callback, DSCallback):
    """Waits in the pipeline until the training has finished the step or epoch before; given to `map` and to
    `Model.train`.

    `sync_epoch_begin` runs after the training's epoch end, `sync_step_begin` after its step end. A wait of
    more than `dataset.config.get_callback_timeout()` seconds, in a pipeline that runs ahead in a thread of
    its own, ends in a RuntimeError; one that the training's thread reads is never ahead and does not wait.
    """

    def __init__(self, step_size: int = 1):
        DSCallback.__init__(self, step_size)
        self._reader = threading.get_ident()
        self._step_done = threading.Semaphore(0)
        self._epoch_done = threading.Semaphore(0)
        self._train_context = None
        self._stopped = False

    def sync_epoch_begin(self, train_run_context, ds_run_context):
        """Before an epoch of the pipeline, after the training's epoch before."""

    def sync_step_begin(self, train_run_context, ds_run_context):
        """Before a step of the pipeline, after the training's step before."""

    def epoch_end(self, run_context):
        """Let the next epoch of the pipeline begin."""
        self._train_context = run_context
        self._epoch_done.release()

    def step_end(self, run_context):
        """Let the next step of the pipeline begin."""
        self._train_context = run_context
        self._step_done.release()

    def end(self, run_context):
        """The training is over: nothing waits any more."""
        self._stopped = True
        self._epoch_done.release()
        self._step_done.release()

    def ds_begin(self, ds_run_context):
        self._stopped = False

    def ds_epoch_begin(self, ds_run_context):
        """Wait for the training's epoch, then `sync_epoch_begin`."""
        if ds_run_context.cur_epoch_num > 1:
            self._wait(self._epoch_done, "epoch")
            self.sync_epoch_begin(self._train_context, ds_run_context)

    def ds_step_begin(self, ds_run_context):
        """Wait for the training's step, then `sync_step_begin`."""
        if ds_run_context.cur_step_num > self.step_size:
            self._wait(self._step_done, "step")
            self.sync_step_begin(self._train_context, ds_run_context)

    def _wait(self, done: threading.Semaphore, what: str) -> None:
        if self._stopped or done.acquire(blocking=False) or threading.get_ident() == self._reader:
            return
        seconds = config.get_callback_timeout()
        if not done.acquire(timeout=seconds):
            raise errors.runtime_error(
                type(self).__name__,
                f"the training did not end its {what} within the {seconds} s of callback_timeout",
            )
