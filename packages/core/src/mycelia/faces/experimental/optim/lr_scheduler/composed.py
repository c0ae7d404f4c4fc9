"""A sequence of schedulers, and the one that waits for a number to stop falling."""

from __future__ import annotations

import math
from bisect import bisect_right

from mycelia import ops
from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.control_flow.state import assign, assign_add, assign_sub
from mycelia.engine.tensors.tensor import Parameter, Tensor
from mycelia.faces.experimental.optim.lr_scheduler.base import (
    counter,
    per_group,
    require_optimizer,
)


class SequentialLR:
    """Schedulers one after the other: the next one begins anew at each of the epochs in `milestones`."""

    def __init__(self, optimizer, schedulers: list, milestones: list[int], last_epoch: int = -1):
        if any(s.optimizer is not optimizer for s in schedulers):
            raise errors.value_error("SequentialLR", "all schedulers must belong to the optimizer given")
        needed = len(schedulers) - 1
        if len(milestones) != needed:
            raise errors.value_error(
                "SequentialLR", f"{needed} milestones are needed between them, but got {len(milestones)}"
            )
        self._schedulers, self.milestones, self.optimizer = schedulers, milestones, optimizer
        self.last_epoch = counter(self, last_epoch + 1)
        for group in optimizer.param_groups:
            assign(group["lr"], group["initial_lr"])
        for scheduler in schedulers:  # each took a step when it was made
            assign_sub(scheduler.last_epoch, 1.0)
        schedulers[0].step()
        self._last_lr = schedulers[0]._last_lr

    def step(self) -> None:
        """Go on by one epoch."""
        assign_add(self.last_epoch, 1.0)
        epoch = int(self.last_epoch)
        current = bisect_right(self.milestones, epoch)
        if current > 0 and self.milestones[current - 1] == epoch:
            self._schedulers[current].step(0)
        else:
            self._schedulers[current].step()

    def get_last_lr(self) -> list[Tensor]:
        """The rates in force, one per group."""
        return [lr.value() for lr in self._last_lr]


class ReduceLROnPlateau:
    """Rates times `factor` when a measure did not get better for more than `patience` epochs.

    `mode`: "min" or "max" is better; `threshold` with `threshold_mode` "rel" or "abs": how much better;
    `cooldown`: epochs without counting after a reduction; `min_lr`: least rate, one or one per group;
    `eps`: least change.
    """

    def __init__(
        self,
        optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr=0,
        eps: float = 1e-8,
    ):
        owner = "ReduceLROnPlateau"
        if factor >= 1.0:
            raise errors.value_error(owner, f"factor must be less than 1, but got {factor}")
        require_optimizer(owner, optimizer)
        if mode not in ("min", "max"):
            raise errors.one_of(mode, ["min", "max"], subject=owner, what="mode")
        if threshold_mode not in ("rel", "abs"):
            raise errors.one_of(threshold_mode, ["rel", "abs"], subject=owner, what="threshold_mode")
        self.min_lrs = [float(lr) for lr in per_group(owner, optimizer, min_lr, "min_lr")]
        self.optimizer, self.factor, self.patience, self.eps = optimizer, factor, patience, eps
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode
        self.cooldown = cooldown
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.last_epoch = Parameter(Tensor(0, dtypes.int32), name=f"last_epoch_{owner}")
        self.best = Parameter(Tensor(self.mode_worse, dtypes.float32), name="best")
        self.cooldown_counter = Parameter(Tensor(0, dtypes.float32), name="cooldown_counter")
        self.wait = Parameter(Tensor(0, dtypes.float32), name="wait")
        self._last_lr = [group["lr"] for group in optimizer.param_groups]

    def step(self, metrics) -> bool:
        """Go on by one epoch with its measure, a number or a scalar Tensor."""
        current = ops.cast(metrics, dtypes.float32)
        assign_add(self.last_epoch, 1)
        better = self._is_improvement(current, self.best)
        assign(self.best, ops.where(better, current, self.best))
        wait = ops.where(better, 0.0, self.wait + 1.0)
        cooling = self.in_cooldown()
        left = ops.where(cooling, self.cooldown_counter - 1.0, self.cooldown_counter)
        wait = ops.where(cooling, 0.0, wait)
        due = wait > float(self.patience)
        for lr, least in zip(self._last_lr, self.min_lrs):
            lower = ops.maximum(lr * self.factor, least)
            assign(lr, ops.where(ops.logical_and(due, lr > lower + self.eps), lower, lr))
        assign(self.cooldown_counter, ops.where(due, float(self.cooldown), left))
        assign(self.wait, ops.where(due, 0.0, wait))
        return True

    def in_cooldown(self):
        """Whether epochs do not count at present, as a Tensor."""
        return self.cooldown_counter > 0

    def _is_improvement(self, current, best):
        sign = -1.0 if self.mode == "min" else 1.0
        if self.threshold_mode == "rel":
            bound = best * (1.0 + sign * self.threshold)
        else:
            bound = best + sign * self.threshold
        return current < bound if self.mode == "min" else current > bound

    def get_last_lr(self) -> list[Tensor]:
        """The rates in force, one per group."""
        return [lr.value() for lr in self._last_lr]
