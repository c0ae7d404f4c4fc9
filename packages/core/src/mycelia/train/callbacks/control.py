"""Callbacks that steer training by a watched value: EarlyStopping, ReduceLROnPlateau,
LearningRateScheduler."""

from __future__ import annotations

import numpy as np

from mycelia.engine.base import errors, log
from mycelia.engine.tensors.tensor import Parameter, Tensor
from mycelia.train.callbacks.base import Callback
from mycelia.train.callbacks.monitor import loss_value

_SMALLER_IS_BETTER = (
    "loss",
    "eval_loss",
    "mae",
    "mse",
    "perplexity",
    "hausdorff_distance",
    "mean_surface_distance",
    "root_mean_square_distance",
    "error",
)


def _number(owner: str, name: str, value) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise errors.type_error(owner, f"{name} must be a number, but got {value!r}")


def _flag(owner: str, name: str, value) -> None:
    if not isinstance(value, bool):
        raise errors.type_error(owner, f"{name} must be a bool, but got {value!r}")


def _count(owner: str, name: str, value) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise errors.type_error(owner, f"{name} must be an int, but got {value!r}")
    if value < 0:
        raise errors.value_error(owner, f"{name} must be at least 0, but got {value}")


class _Watch(Callback):
    """Follows one value over the epochs and knows when it got better."""

    kept_attributes = ("wait", "best")

    def __init__(self, monitor: str, min_delta: float, patience: int, verbose: bool, mode: str):
        super().__init__()
        owner = type(self).__name__
        if not isinstance(monitor, str):
            raise errors.type_error(owner, f"monitor must be a str, but got {monitor!r}")
        _count(owner, "patience", patience)
        _number(owner, "min_delta", min_delta)
        _flag(owner, "verbose", verbose)
        if mode not in ("auto", "min", "max"):
            raise errors.one_of(mode, ["auto", "min", "max"], subject=owner, what="mode")
        self.monitor, self.min_delta, self.patience, self.verbose, self.mode = (
            monitor,
            abs(min_delta),
            patience,
            verbose,
            mode,
        )
        self._smaller = mode == "min" or (mode == "auto" and monitor in _SMALLER_IS_BETTER)
        self.wait = 0
        self.best = np.inf if self._smaller else -np.inf

    def is_improvement(self, value: float, reference: float) -> bool:
        """Whether `value` beats `reference` by more than min_delta."""
        return value < reference - self.min_delta if self._smaller else value > reference + self.min_delta

    def current(self, params) -> float | None:
        """The watched value of this epoch; None (with a warning) when it is not there."""
        results = params.get("eval_results") or {}
        if self.monitor == "loss":  # of the training; the evaluation's is called eval_loss
            value = loss_value(params.net_outputs)
            if value is not None:
                return value
        else:
            if self.monitor in results:
                return float(np.mean(results[self.monitor]))
        log.logger(__name__).warning(
            "%s: '%s' is not among the results %s; use Model.fit with that metric",
            type(self).__name__,
            self.monitor,
            sorted(results),
        )
        return None


class EarlyStopping(_Watch):
    """Stops training when `monitor` has not got better by `min_delta` for `patience` epochs.

    `baseline`: waiting starts until it is beaten; `restore_best_weights`:
    at the stop the best epoch's weights return.
    """

    def __init__(
        self,
        monitor="eval_loss",
        min_delta=0,
        patience=0,
        verbose=False,
        mode="auto",
        baseline=None,
        restore_best_weights=False,
    ):
        super().__init__(monitor, min_delta, patience, verbose, mode)
        if baseline is not None:
            _number("EarlyStopping", "baseline", baseline)
        _flag("EarlyStopping", "restore_best_weights", restore_best_weights)
        self.baseline, self.restore_best_weights = baseline, restore_best_weights
        self.stopped_epoch = 0
        self._best_weights: dict | None = None

    def on_train_begin(self, run_context):
        self.wait, self.stopped_epoch = 0, 0
        self.best = np.inf if self._smaller else -np.inf
        self._best_weights = None

    def on_train_epoch_end(self, run_context):
        params = run_context.original_args()
        value = self.current(params)
        if value is None:
            return
        if self.restore_best_weights and self._best_weights is None:
            self._remember(params)
        self.wait += 1
        if self.is_improvement(value, self.best):
            self.best = value
            if self.restore_best_weights:
                self._remember(params)
            if self.baseline is None or self.is_improvement(value, self.baseline):
                self.wait = 0
        if self.wait >= self.patience:
            self.stopped_epoch = params.cur_epoch_num
            run_context.request_stop()
            if self.restore_best_weights and self._best_weights is not None:
                if self.verbose:
                    print("Restoring model weights from the end of the best epoch.")
                for p in params.train_network.get_parameters():
                    if p.name in self._best_weights:
                        p.set_data(Tensor(self._best_weights[p.name], p.dtype))

    def _remember(self, params) -> None:
        self._best_weights = {p.name: p.asnumpy().copy() for p in params.train_network.get_parameters()}

    def on_train_end(self, run_context):
        if self.stopped_epoch > 0 and self.verbose:
            print(f"Epoch {self.stopped_epoch:05d}: early stopping")


def _fixed_rate(optimizer, owner: str) -> Parameter:
    if optimizer is None or not hasattr(optimizer, "learning_rate"):
        raise errors.value_error(owner, "the model has no optimizer with a learning rate")
    if getattr(optimizer, "dynamic_lr", False):
        raise errors.value_error(
            owner, "a dynamic learning rate cannot be changed by a callback; give the optimizer a number"
        )
    if getattr(optimizer, "is_group_lr", False):
        raise errors.value_error(owner, "learning rates by parameter group cannot be changed by a callback")
    return optimizer.learning_rate


class ReduceLROnPlateau(_Watch):
    """Multiplies the learning rate by `factor` when `monitor` has not got better for `patience` epochs.

    The rate never falls below `min_lr`; after a reduction `cooldown` epochs are rest. Errors: ValueError
    for a dynamic or grouped learning rate, or factor outside (0, 1).
    """

    kept_attributes = (*_Watch.kept_attributes, "cooldown_counter")

    def __init__(
        self,
        monitor="eval_loss",
        factor=0.1,
        patience=10,
        verbose=False,
        mode="auto",
        min_delta=1e-4,
        cooldown=0,
        min_lr=0,
    ):
        super().__init__(monitor, min_delta, patience, verbose, mode)
        if not 0 < factor < 1:
            raise errors.value_error("ReduceLROnPlateau", f"factor must be in (0, 1), but got {factor}")
        _count("ReduceLROnPlateau", "cooldown", cooldown)
        _number("ReduceLROnPlateau", "min_lr", min_lr)
        self.factor, self.cooldown, self.min_lr = factor, cooldown, min_lr
        self.cooldown_counter = 0

    def on_train_begin(self, run_context):
        self.wait = self.cooldown_counter = 0
        self.best = np.inf if self._smaller else -np.inf

    def on_train_epoch_end(self, run_context):
        params = run_context.original_args()
        rate = _fixed_rate(params.optimizer, "ReduceLROnPlateau")
        value = self.current(params)
        if value is None:
            return
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.wait = 0
        if self.is_improvement(value, self.best):
            self.best = value
            self.wait = 0
        elif self.cooldown_counter <= 0:
            self.wait += 1
            if self.wait >= self.patience:
                old = np.float32(rate.asnumpy())
                if old > np.float32(self.min_lr):
                    new = max(old * np.float32(self.factor), np.float32(self.min_lr))
                    rate.set_data(Tensor(new, rate.dtype))
                    if self.verbose:
                        print(
                            f"Epoch {params.cur_epoch_num:05d}: ReduceLROnPlateau reducing learning rate "
                            f"to {new!s}."
                        )
                self.cooldown_counter = self.cooldown
                self.wait = 0


class LearningRateScheduler(Callback):
    """After each step sets the learning rate to ``function(rate, step)``. A fixed learning rate only."""

    def __init__(self, learning_rate_function):
        super().__init__()
        if not callable(learning_rate_function):
            raise errors.type_error(
                "LearningRateScheduler",
                f"learning_rate_function must be callable, but got {learning_rate_function!r}",
            )
        self.learning_rate_function = learning_rate_function

    def step_end(self, run_context):
        params = run_context.original_args()
        rate = _fixed_rate(params.optimizer, "LearningRateScheduler")
        old = float(rate.asnumpy())
        new = float(self.learning_rate_function(old, params.cur_step_num))
        if new != old:
            rate.set_data(Tensor(new, rate.dtype))
