"""Schedulers that change the learning rates of an `experimental.optim` optimizer.

All arithmetic is on float32 scalars and conditions are `where`: a step may be part of a compiled function.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter

from mycelia import ops
from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.control_flow.state import assign, assign_add, assign_sub
from mycelia.engine.tensors.tensor import Parameter, Tensor
from mycelia.faces.experimental.optim.optimizer import Optimizer

__all__ = [
    "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR",
    "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "PolynomialLR",
    "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip


def _check(owner: str, name: str, value, kinds) -> None:
    if not isinstance(value, kinds):
        kinds = kinds if isinstance(kinds, tuple) else (kinds,)
        wanted = " or ".join(k.__name__ for k in kinds)
        raise errors.type_error(owner, f"{name} must be a {wanted}, but got {value!r:.60}")


def _require_optimizer(owner: str, optimizer) -> None:
    if not isinstance(optimizer, Optimizer):
        raise errors.type_error(
            owner,
            "optimizer must be one of mycelia.experimental.optim, but got " + type(optimizer).__name__,
        )


def _per_group(owner: str, optimizer, value, name: str) -> list:
    n = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [value] * n
    if len(value) != n:
        raise errors.value_error(owner, f"{name} must have {n} values, one per group, but has {len(value)}")
    return list(value)


def _counter(owner, value) -> Parameter:
    return Parameter(Tensor(value, dtypes.float32), name=f"last_epoch_{type(owner).__name__}")


class LRScheduler:
    """Base class: ``step()`` counts `last_epoch` up and gives each group the rate that `get_lr` returns.

    `last_epoch`: -1 begins with the rates of the optimizer; else its groups must have 'initial_lr'.
    Errors: TypeError for another optimizer, ValueError for last_epoch below -1, KeyError.
    """

    def __init__(self, optimizer, last_epoch: int = -1):
        owner = type(self).__name__
        _require_optimizer(owner, optimizer)
        _check(owner, "last_epoch", last_epoch, int)
        if last_epoch < -1:
            raise errors.value_error(owner, f"last_epoch must be at least -1, but got {last_epoch}")
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"].value())
            elif "initial_lr" not in group:
                raise errors.error(
                    errors.MyceliaKeyError, owner, f"parameter group {i} has no 'initial_lr' to go on from"
                )
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.optimizer = optimizer
        self._last_lr = list(optimizer.lrs)
        self.groups_num = len(optimizer.param_groups)
        self.last_epoch = _counter(self, last_epoch)
        self.step()

    def get_lr(self) -> list:
        """The rates of `last_epoch`, one per group."""
        raise NotImplementedError(f"{type(self).__name__} does not define get_lr()")

    def get_last_lr(self) -> list[Tensor]:
        """The rates in force, one per group."""
        return [lr.value() for lr in self._last_lr]

    def step(self, epoch=None) -> bool:
        """Go on by one epoch, or to `epoch`."""
        if epoch is None:
            assign_add(self.last_epoch, 1.0)
            values = self.get_lr()
        else:
            assign(self.last_epoch, epoch)
            values = getattr(self, "_get_closed_form_lr", self.get_lr)()
        for lr, value in zip(self._last_lr, values):
            assign(lr, value)
        return True

    def _times(self, factor) -> list:
        """The rates in force times one factor."""
        return [lr * factor for lr in self._last_lr]

    def _base_times(self, factor) -> list:
        return [lr * factor for lr in self.base_lrs]


class StepLR(LRScheduler):
    """Rates times `gamma` every `step_size` epochs."""

    def __init__(self, optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1):
        _check("StepLR", "step_size", step_size, int)
        _check("StepLR", "gamma", gamma, float)
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
        _check("LinearLR", "total_iters", total_iters, int)
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
        _check("ExponentialLR", "gamma", gamma, float)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        return self._times(ops.where(self.last_epoch == 0, 1.0, self.gamma))

    def _get_closed_form_lr(self):
        return self._base_times(self.gamma**self.last_epoch)


class PolynomialLR(LRScheduler):
    """Rates that go to zero in `total_iters` epochs as a polynomial of degree `power`."""

    def __init__(self, optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1):
        _check("PolynomialLR", "power", power, float)
        if power < 0:
            raise errors.value_error("PolynomialLR", f"power must be at least 0, but got {power}")
        _check("PolynomialLR", "total_iters", total_iters, int)
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
        self.lr_lambdas = _per_group("LambdaLR", optimizer, lr_lambda, "lr_lambda")
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        return [base * f(self.last_epoch) for f, base in zip(self.lr_lambdas, self.base_lrs)]


class MultiplicativeLR(LRScheduler):
    """Rates times ``lr_lambda(epoch)`` every epoch; a function, or one per group."""

    def __init__(self, optimizer, lr_lambda, last_epoch: int = -1):
        self.lr_lambdas = _per_group("MultiplicativeLR", optimizer, lr_lambda, "lr_lambda")
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        begun = self.last_epoch > 0
        return [
            lr * ops.where(begun, f(self.last_epoch), 1.0) for f, lr in zip(self.lr_lambdas, self._last_lr)
        ]


class MultiStepLR(LRScheduler):
    """Rates times `gamma` at each of the epochs in `milestones`."""

    def __init__(self, optimizer, milestones: list[int], gamma: float = 0.1, last_epoch: int = -1):
        _check("MultiStepLR", "milestones", milestones, list)
        for milestone in milestones:
            _check("MultiStepLR", "each of the milestones", milestone, int)
        _check("MultiStepLR", "gamma", gamma, (float, int))
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
        _check("ConstantLR", "total_iters", total_iters, int)
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        epoch = self.last_epoch
        back = ops.where(epoch == self.total_iters, 1.0 / self.factor if self.factor else math.inf, 1.0)
        return self._times(ops.where(epoch == 0, self.factor, back))

    def _get_closed_form_lr(self):
        return self._base_times(ops.where(self.last_epoch >= self.total_iters, 1.0, self.factor))


class CosineAnnealingLR(LRScheduler):
    """Rates that follow a cosine down to `eta_min` in `T_max` epochs and up again (Loshchilov and Hutter
    2017).
    """

    def __init__(self, optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1):
        _check("CosineAnnealingLR", "eta_min", eta_min, (float, int))
        _check("CosineAnnealingLR", "T_max", T_max, int)
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
        _check(owner, "eta_min", eta_min, (float, int))
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
        _require_optimizer("CyclicLR", optimizer)
        bases = _per_group("CyclicLR", optimizer, base_lr, "base_lr")
        if last_epoch == -1:
            for lr, group in zip(bases, optimizer.param_groups):
                assign(group["lr"], float(lr))
        self.max_lrs = _per_group("CyclicLR", optimizer, max_lr, "max_lr")
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
        self.last_epoch = _counter(self, last_epoch + 1)
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
        _require_optimizer(owner, optimizer)
        if mode not in ("min", "max"):
            raise errors.one_of(mode, ["min", "max"], subject=owner, what="mode")
        if threshold_mode not in ("rel", "abs"):
            raise errors.one_of(threshold_mode, ["rel", "abs"], subject=owner, what="threshold_mode")
        self.min_lrs = [float(lr) for lr in _per_group(owner, optimizer, min_lr, "min_lr")]
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
