"""Schedulers that go one way: by steps, along a line, a power or a polynomial, or by a function."""

from __future__ import annotations

import math
from collections import Counter

from mycelia import ops
from mycelia.engine.base import errors
from mycelia.faces.experimental.optim.lr_scheduler.base import (
    LRScheduler,
    check,
    per_group,
)


class StepLR(LRScheduler):
    """Rates times `gamma` every `step_size` epochs."""

    def __init__(self, optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1):
        check("StepLR", "step_size", step_size, int)
        check("StepLR", "gamma", gamma, float)
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        due = ops.logical_and(self.last_epoch > 0, self.last_epoch % self.step_size == 0)
        return self._times(ops.where(due, self.gamma, 1.0))

    def _get_closed_form_lr(self):
        return self._base_times(self.gamma ** (self.last_epoch // self.step_size))


class LinearLR(LRScheduler):
    """Rates times a factor that goes from `start_factor` to `end_factor` in `total_iters` epochs."""

    def __init__(
        self, optimizer, start_factor=1.0 / 3, end_factor=1.0, total_iters: int = 5, last_epoch: int = -1
    ):
        if not 0 < start_factor <= 1.0:
            raise errors.value_error("LinearLR", f"start_factor must be in (0, 1], but got {start_factor}")
        if not 0 <= end_factor <= 1.0:
            raise errors.value_error("LinearLR", f"end_factor must be in [0, 1], but got {end_factor}")
        check("LinearLR", "total_iters", total_iters, int)
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        epoch, gain = self.last_epoch, self.end_factor - self.start_factor
        factor = 1.0 + gain / (self.total_iters * self.start_factor + (epoch - 1) * gain)
        factor = ops.where(epoch > self.total_iters, 1.0, factor)
        return self._times(ops.where(epoch == 0, self.start_factor, factor))

    def _get_closed_form_lr(self):
        part = ops.minimum(self.last_epoch, self.total_iters) / self.total_iters
        return self._base_times(self.start_factor + (self.end_factor - self.start_factor) * part)


class ExponentialLR(LRScheduler):
    """Rates times `gamma` every epoch."""

    def __init__(self, optimizer, gamma: float, last_epoch: int = -1):
        check("ExponentialLR", "gamma", gamma, float)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        return self._times(ops.where(self.last_epoch == 0, 1.0, self.gamma))

    def _get_closed_form_lr(self):
        return self._base_times(self.gamma**self.last_epoch)


class PolynomialLR(LRScheduler):
    """Rates that go to zero in `total_iters` epochs as a polynomial of degree `power`."""

    def __init__(self, optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1):
        check("PolynomialLR", "power", power, float)
        if power < 0:
            raise errors.value_error("PolynomialLR", f"power must be at least 0, but got {power}")
        check("PolynomialLR", "total_iters", total_iters, int)
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        epoch, n = self.last_epoch, self.total_iters
        idle = ops.logical_or(epoch == 0, epoch > n)
        before = ops.where(idle, 1.0, 1.0 - (epoch - 1) / n)
        factor = ((1.0 - epoch / n) / before) ** self.power
        return self._times(ops.where(idle, 1.0, factor))

    def _get_closed_form_lr(self):
        part = ops.minimum(self.last_epoch, self.total_iters) / self.total_iters
        return self._base_times((1.0 - part) ** self.power)


class LambdaLR(LRScheduler):
    """First rates times ``lr_lambda(epoch)``; a function, or one per group."""

    def __init__(self, optimizer, lr_lambda, last_epoch: int = -1):
        self.lr_lambdas = per_group("LambdaLR", optimizer, lr_lambda, "lr_lambda")
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        return [base * f(self.last_epoch) for f, base in zip(self.lr_lambdas, self.base_lrs)]


class MultiplicativeLR(LRScheduler):
    """Rates times ``lr_lambda(epoch)`` every epoch; a function, or one per group."""

    def __init__(self, optimizer, lr_lambda, last_epoch: int = -1):
        self.lr_lambdas = per_group("MultiplicativeLR", optimizer, lr_lambda, "lr_lambda")
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        begun = self.last_epoch > 0
        return [
            lr * ops.where(begun, f(self.last_epoch), 1.0) for f, lr in zip(self.lr_lambdas, self._last_lr)
        ]


class MultiStepLR(LRScheduler):
    """Rates times `gamma` at each of the epochs in `milestones`."""

    def __init__(self, optimizer, milestones: list[int], gamma: float = 0.1, last_epoch: int = -1):
        check("MultiStepLR", "milestones", milestones, list)
        for milestone in milestones:
            check("MultiStepLR", "each of the milestones", milestone, int)
        check("MultiStepLR", "gamma", gamma, (float, int))
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        factor = 1.0
        for milestone, times in self.milestones.items():
            factor = ops.where(self.last_epoch == milestone, float(self.gamma**times), factor)
        return self._times(factor)

    def _get_closed_form_lr(self):
        factor = 1.0
        for milestone, times in self.milestones.items():
            factor = factor * ops.where(self.last_epoch >= milestone, float(self.gamma**times), 1.0)
        return self._base_times(factor)


class ConstantLR(LRScheduler):
    """Rates times `factor` for the first `total_iters` epochs."""

    def __init__(self, optimizer, factor=1.0 / 3, total_iters: int = 5, last_epoch: int = -1):
        if not 0 <= factor <= 1.0:
            raise errors.value_error("ConstantLR", f"factor must be in [0, 1], but got {factor}")
        check("ConstantLR", "total_iters", total_iters, int)
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        epoch = self.last_epoch
        back = ops.where(epoch == self.total_iters, 1.0 / self.factor if self.factor else math.inf, 1.0)
        return self._times(ops.where(epoch == 0, self.factor, back))

    def _get_closed_form_lr(self):
        return self._base_times(ops.where(self.last_epoch >= self.total_iters, 1.0, self.factor))
