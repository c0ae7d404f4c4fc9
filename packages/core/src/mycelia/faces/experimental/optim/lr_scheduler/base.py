"""`LRScheduler`, and the checks of what schedulers are made with."""

from __future__ import annotations

from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.control_flow.state import assign, assign_add
from mycelia.engine.tensors.tensor import Parameter, Tensor
from mycelia.faces.experimental.optim.optimizer import Optimizer


def check(owner: str, name: str, value, kinds) -> None:
    if not isinstance(value, kinds):
        kinds = kinds if isinstance(kinds, tuple) else (kinds,)
        wanted = " or ".join(k.__name__ for k in kinds)
        raise errors.type_error(owner, f"{name} must be a {wanted}, but got {value!r:.60}")


def require_optimizer(owner: str, optimizer) -> None:
    if not isinstance(optimizer, Optimizer):
        raise errors.type_error(
            owner,
            "optimizer must be one of mycelia.experimental.optim, but got " + type(optimizer).__name__,
        )


def per_group(owner: str, optimizer, value, name: str) -> list:
    n = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [value] * n
    if len(value) != n:
        raise errors.value_error(owner, f"{name} must have {n} values, one per group, but has {len(value)}")
    return list(value)


def counter(owner, value) -> Parameter:
    return Parameter(Tensor(value, dtypes.float32), name=f"last_epoch_{type(owner).__name__}")


class LRScheduler:
    """Base class: ``step()`` counts `last_epoch` up and gives each group the rate that `get_lr` returns.

    `last_epoch`: -1 begins with the rates of the optimizer; else its groups must have 'initial_lr'.
    Errors: TypeError for another optimizer, ValueError for last_epoch below -1, KeyError.
    """

    def __init__(self, optimizer, last_epoch: int = -1):
        owner = type(self).__name__
        require_optimizer(owner, optimizer)
        check(owner, "last_epoch", last_epoch, int)
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
        self.last_epoch = counter(self, last_epoch)
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
