"""Callbacks that report: LossMonitor, TimeMonitor, ProgressBar, History, LambdaCallback."""

from __future__ import annotations

import math
import time

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.tensors.tensor import Tensor
from mycelia.train.callbacks.base import Callback


def loss_value(net_outputs) -> float | None:
    """The loss among a step's outputs: the first output, averaged; None when there is none."""
    loss = net_outputs
    if isinstance(loss, (tuple, list)):
        if not loss or not isinstance(loss[0], (Tensor, np.ndarray, float, int)):
            return None
        loss = loss[0]
    if isinstance(loss, Tensor):
        loss = loss.asnumpy()
    if isinstance(loss, np.ndarray):
        return float(loss.item() if loss.size == 1 else np.mean(loss))
    return float(loss) if isinstance(loss, (float, int, np.number)) else None


def place_in_epoch(params) -> int:
    """The 1-based step within the epoch."""
    return (params.cur_step_num - 1) % params.batch_num + 1


class LossMonitor(Callback):
    """Prints the loss every `per_print_times` steps (0: never) and stops training when it is NaN or infinite.

    Errors: ValueError for a loss that is not finite, naming epoch and step.
    """

    def __init__(self, per_print_times: int = 1):
        super().__init__()
        if isinstance(per_print_times, bool) or not isinstance(per_print_times, int):
            raise errors.type_error(
                "LossMonitor", f"per_print_times must be an int, but got {per_print_times!r}"
            )
        if per_print_times < 0:
            raise errors.value_error(
                "LossMonitor", f"per_print_times must be at least 0, but got {per_print_times}"
            )
        self._per_print_times = per_print_times
        self._last_print_time = 0

    def step_end(self, run_context):
        params = run_context.original_args()
        loss = loss_value(params.net_outputs)
        step = place_in_epoch(params)
        if loss is not None and not math.isfinite(loss):
            raise errors.value_error(
                "LossMonitor",
                f"In epoch: {params.cur_epoch_num} step: {step}, loss is NAN or INF, training process "
                "cannot continue, "
                "terminating training.",
                hint="lower the learning rate, clip the gradients, or look for bad samples",
            )
        if params.cur_step_num <= self._last_print_time:  # a new run counts from 1 again
            self._last_print_time = params.cur_step_num - 1
        if self._per_print_times and params.cur_step_num - self._last_print_time >= self._per_print_times:
            self._last_print_time = params.cur_step_num
            print(f"epoch: {params.cur_epoch_num} step: {step}, loss is {loss}", flush=True)

    def on_train_epoch_end(self, run_context):
        params = run_context.original_args()
        if params.get("eval_results"):
            print(f"Eval result: epoch {params.cur_epoch_num}, metrics: {params.metrics}")

    def on_eval_step_end(self, run_context):
        """Evaluation outputs are no loss: nothing to check."""


class TimeMonitor(Callback):
    """Prints each epoch's time in all and per step, in milliseconds;
    with `data_time` also the time spent on data.
    """

    def __init__(self, data_size: int | None = None, data_time: bool = False):
        super().__init__()
        if data_size is not None and (
            isinstance(data_size, bool) or not isinstance(data_size, int) or data_size < 1
        ):
            raise errors.value_error(
                "TimeMonitor", f"data_size must be a positive int or None, but got {data_size!r}"
            )
        self.data_size, self.data_time = data_size, bool(data_time)
        # By mode: the evaluation inside `fit` must not reset the clock of the training epoch around it.
        self._began: dict[str, float] = {}
        self._data_ms: dict[str, float] = {}
        self._step_over: dict[str, float] = {}

    def epoch_begin(self, run_context):
        mode = run_context.original_args().get("mode", "")
        self._began[mode] = self._step_over[mode] = time.time()
        self._data_ms[mode] = 0.0

    def step_begin(self, run_context):
        mode = run_context.original_args().get("mode", "")
        self._data_ms[mode] += (time.time() - self._step_over[mode]) * 1000

    def step_end(self, run_context):
        self._step_over[run_context.original_args().get("mode", "")] = time.time()

    def epoch_end(self, run_context):
        params = run_context.original_args()
        mode = params.get("mode", "")
        total_ms = (time.time() - self._began[mode]) * 1000
        steps = self.data_size or params.get("batch_num") or 1
        text = f"{mode.title()} epoch time: {total_ms:5.3f} ms, per step time: {total_ms / steps:5.3f} ms"
        if self.data_time:
            text += f" (data time: {self._data_ms[mode] / steps:5.3f} ms)"
        print(text, flush=True)


class ProgressBar(Callback):
    """A live progress bar with loss and speed, on a terminal; nothing elsewhere."""

    def __enter__(self):
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[loss]}"),
        )
        self._task = None
        if self._progress.console.is_terminal:
            self._progress.start()
        return self

    def __exit__(self, *err):
        self._progress.stop()

    def on_train_begin(self, run_context):
        params = run_context.original_args()
        self._task = self._progress.add_task("training", total=params.epoch_num * params.batch_num, loss="")

    def on_train_step_end(self, run_context):
        params = run_context.original_args()
        loss = loss_value(params.net_outputs)
        text = "" if loss is None else f"loss {loss:.4f}"
        self._progress.update(
            self._task,
            completed=params.cur_step_num,
            description=f"epoch {params.cur_epoch_num}/{params.epoch_num}",
            loss=text,
        )


class History(Callback):
    """Collects the mean loss and the evaluation results of each epoch in `epoch` and `history`."""

    def __init__(self):
        super().__init__()
        self.history: dict[str, list] = {}
        self.epoch: dict[str, list] = {"epoch": []}

    def begin(self, run_context):
        self.epoch = {"epoch": []}
        self.history = {}

    def on_train_epoch_end(self, run_context):
        params = run_context.original_args()
        self.epoch["epoch"].append(params.get("cur_epoch_num", 1))
        loss = loss_value(params.net_outputs)
        values = {} if loss is None else {"net_output": loss}
        if params.get("eval_results"):
            values |= params.metrics
        for name, value in values.items():
            self.history.setdefault(name, []).append(value)

    def on_eval_begin(self, run_context):
        """Keeps what training collected."""


class LambdaCallback(Callback):
    """Calls plain functions at the twelve events; each gets the RunContext."""

    def __init__(
        self,
        on_train_epoch_begin=None,
        on_train_epoch_end=None,
        on_train_step_begin=None,
        on_train_step_end=None,
        on_train_begin=None,
        on_train_end=None,
        on_eval_epoch_begin=None,
        on_eval_epoch_end=None,
        on_eval_step_begin=None,
        on_eval_step_end=None,
        on_eval_begin=None,
        on_eval_end=None,
    ):
        super().__init__()
        given = dict(locals())
        for name, function in given.items():
            if not name.startswith("on_"):
                continue
            if function is not None and not callable(function):
                raise errors.type_error(
                    "LambdaCallback", f"{name} must be callable or None, but got {type(function).__name__}"
                )
            setattr(self, name, function or _nothing)


def _nothing(run_context) -> None:
    """What an event without function does."""
