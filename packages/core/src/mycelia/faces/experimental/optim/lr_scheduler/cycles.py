"""Schedulers that go down and up again: half waves of the cosine, and ramps."""

from __future__ import annotations

import math

from mycelia import ops
from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.control_flow.state import assign
from mycelia.engine.tensors.tensor import Parameter, Tensor
from mycelia.faces.experimental.optim.lr_scheduler.base import (
    LRScheduler,
    check,
    per_group,
    require_optimizer,
)


class CosineAnnealingLR(LRScheduler):
    """Rates that follow a cosine down to `eta_min` in `T_max` epochs and up again (Loshchilov and Hutter
    2017).
    """

    def __init__(self, optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1):
        check("CosineAnnealingLR", "eta_min", eta_min, (float, int))
        check("CosineAnnealingLR", "T_max", T_max, int)
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def _wave(self, epoch):
        return 1 + ops.cos(math.pi * epoch / self.T_max)

    def get_lr(self):
        epoch, low = self.last_epoch, self.eta_min
        begin = epoch == 0
        turn = (epoch - 1 - self.T_max) % (2 * self.T_max) == 0  # the wave was at its lowest: add, not scale
        before = self._wave(epoch - 1)
        factor = self._wave(epoch) / ops.where(ops.logical_or(begin, turn), 1.0, before)
        rise = (1 - math.cos(math.pi / self.T_max)) / 2
        rates = []
        for base, lr in zip(self.base_lrs, self._last_lr):
            moved = ops.where(turn, lr + (base - low) * rise, factor * (lr - low) + low)
            rates.append(ops.where(begin, lr, moved))
        return rates

    def _get_closed_form_lr(self):
        wave = self._wave(self.last_epoch) / 2
        return [self.eta_min + (base - self.eta_min) * wave for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Rates that fall along a cosine to `eta_min` in `T_0` epochs and start again, each time `T_mult` times
    as long (Loshchilov and Hutter 2017).
    """

    def __init__(self, optimizer, T_0: int, T_mult: int = 1, eta_min=0, last_epoch: int = -1):
        owner = "CosineAnnealingWarmRestarts"
        for name, value in (("T_0", T_0), ("T_mult", T_mult)):
            if not isinstance(value, int) or value < 1:
                raise errors.value_error(owner, f"{name} must be an int of at least 1, but got {value}")
        check(owner, "eta_min", eta_min, (float, int))
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, float(eta_min)
        self.T_i = Parameter(Tensor(T_0, dtypes.float32), name="T_i")
        self.T_cur = Parameter(Tensor(last_epoch, dtypes.float32), name="T_cur")
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        wave = (1 + ops.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * wave for base in self.base_lrs]

    def step(self, epoch=None) -> bool:
        """Go on by one epoch, or to `epoch`, which may be a fraction."""
        if epoch is None:
            epoch = self.last_epoch + 1
            current = self.T_cur + 1
            over = current >= self.T_i
            assign(self.T_cur, ops.where(over, current - self.T_i, current))
            assign(self.T_i, ops.where(over, self.T_i * self.T_mult, self.T_i))
        else:
            epoch = float(epoch)
            if epoch < 0:
                raise errors.value_error(
                    "CosineAnnealingWarmRestarts", f"epoch must be at least 0, but got {epoch}"
                )
            done, length = self._round_of(epoch)
            assign(self.T_cur, epoch - done)
            assign(self.T_i, float(length))
            epoch = Tensor(epoch, dtypes.float32)
        assign(self.last_epoch, ops.floor(epoch))
        for lr, value in zip(self._last_lr, self.get_lr()):
            assign(lr, value)
        return True

    def _round_of(self, epoch: float) -> tuple[float, float]:
        """Where the round of `epoch` begins, and how long it is."""
        if epoch < self.T_0:
            return 0.0, self.T_0
        if self.T_mult == 1:
            return epoch // self.T_0 * self.T_0, self.T_0
        rounds = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
        factor = self.T_mult**rounds
        return self.T_0 * (factor - 1) / (self.T_mult - 1), self.T_0 * factor


class CyclicLR(LRScheduler):
    """Rates that go up from `base_lr` to `max_lr` and down again (Smith 2017).

    `mode`: "triangular", "triangular2" (half as high each cycle) or "exp_range" (``gamma**epoch``), or a
    function `scale_fn` of the cycle or, with `scale_mode` "iterations", of the epoch.
    """

    def __init__(
        self,
        optimizer,
        base_lr,
        max_lr,
        step_size_up=2000,
        step_size_down=None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn=None,
        scale_mode: str = "cycle",
        last_epoch: int = -1,
    ):
        require_optimizer("CyclicLR", optimizer)
        bases = per_group("CyclicLR", optimizer, base_lr, "base_lr")
        if last_epoch == -1:
            for lr, group in zip(bases, optimizer.param_groups):
                assign(group["lr"], float(lr))
        self.max_lrs = per_group("CyclicLR", optimizer, max_lr, "max_lr")
        up = float(step_size_up)
        self.total_step_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_up_ratio = up / self.total_step_size
        known = {
            "triangular": ("cycle", lambda x: 1.0),
            "triangular2": ("cycle", lambda x: 1 / 2.0 ** (x - 1)),
            "exp_range": ("iterations", lambda x: gamma**x),
        }
        if scale_fn is not None:
            self.scale_mode, self.scale_fn = scale_mode, scale_fn
        elif mode in known:
            self.scale_mode, self.scale_fn = known[mode]
        else:
            raise errors.one_of(mode, list(known), subject="CyclicLR", what="mode")
        self.mode, self.gamma = mode, gamma
        super().__init__(optimizer, last_epoch)
        self.base_lrs = [Tensor(float(lr), dtypes.float32) for lr in bases]

    def get_lr(self):
        through = self.last_epoch / self.total_step_size
        cycle = ops.floor(1 + through)
        x = 1.0 + through - cycle
        up = self.step_up_ratio
        height = ops.where(x <= up, x / up, (x - 1) / (up - 1) if up < 1 else 1.0)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        return [base + (top - base) * height * scale for base, top in zip(self.base_lrs, self.max_lrs)]
