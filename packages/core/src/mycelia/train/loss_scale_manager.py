"""Managers of the factor that a loss is multiplied by in mixed precision training."""

from __future__ import annotations

from mycelia.engine.base import errors
from mycelia.nn.wrap.loss_scale import DynamicLossScaleUpdateCell, FixedLossScaleUpdateCell, positive_int

__all__ = ["DynamicLossScaleManager", "FixedLossScaleManager", "LossScaleManager"]


class LossScaleManager:
    """Base class: derive from it and define the methods."""

    def get_loss_scale(self):
        """The present scale."""

    def update_loss_scale(self, overflow):
        """Take note of a step, which overflowed or not."""

    def get_update_cell(self):
        """The Cell that a training step updates the scale with, or None."""


class FixedLossScaleManager(LossScaleManager):
    """A scale that stays; steps that overflow are left out unless `drop_overflow_update` is False.

    Errors: ValueError for a scale below 1.
    """

    def __init__(self, loss_scale: float = 128.0, drop_overflow_update: bool = True):
        if loss_scale < 1:
            raise errors.value_error(
                "FixedLossScaleManager", f"loss_scale must be at least 1, but got {loss_scale}"
            )
        self._loss_scale = loss_scale
        self._drop_overflow_update = drop_overflow_update

    def get_loss_scale(self):
        return self._loss_scale

    def get_drop_overflow_update(self) -> bool:
        """Whether steps that overflow are left out."""
        return self._drop_overflow_update

    def get_update_cell(self):
        return FixedLossScaleUpdateCell(self._loss_scale) if self._drop_overflow_update else None


class DynamicLossScaleManager(LossScaleManager):
    """A scale that an overflow divides by `scale_factor` (to 1 at least) and `scale_window` steps
    without one multiply by it.

    Errors: ValueError for a scale below 1, a window that is no positive int, a factor that is not positive.
    """

    def __init__(self, init_loss_scale: float = 2**24, scale_factor: int = 2, scale_window: int = 2000):
        if init_loss_scale < 1:
            raise errors.value_error(
                "DynamicLossScaleManager", f"init_loss_scale must be at least 1, but got {init_loss_scale}"
            )
        if scale_factor <= 0:
            raise errors.value_error(
                "DynamicLossScaleManager", f"scale_factor must be positive, but got {scale_factor}"
            )
        self.loss_scale = init_loss_scale
        self.scale_window = positive_int("DynamicLossScaleManager", "scale_window", scale_window)
        self.scale_factor = self.increase_ratio = scale_factor
        self.decrease_ratio = 1 / scale_factor
        self.cur_iter, self.last_overflow_iter = 1, 0
        self.bad_step, self.bad_step_max = 0, 1000

    def get_loss_scale(self):
        return self.loss_scale

    def update_loss_scale(self, overflow) -> None:
        """Take note of a step. Errors: RuntimeError after too many overflows in a row."""
        if overflow:
            self.loss_scale = max(self.loss_scale * self.decrease_ratio, 1)
            self.last_overflow_iter = self.cur_iter
            self.bad_step += 1
        else:
            if (self.cur_iter - self.last_overflow_iter) % self.scale_window == 0:
                self.loss_scale *= self.increase_ratio
            self.bad_step = 0
        if self.bad_step > self.bad_step_max:
            raise errors.error(
                errors.MyceliaRuntimeError,
                "DynamicLossScaleManager",
                f"{self.bad_step} steps in a row overflowed, more than {self.bad_step_max}",
            )
        self.cur_iter += 1

    def get_drop_overflow_update(self) -> bool:
        """Steps that overflow are always left out."""
        return True

    def get_update_cell(self):
        return DynamicLossScaleUpdateCell(self.loss_scale, self.scale_factor, self.scale_window)
