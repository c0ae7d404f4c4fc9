"""Learning rates as lists, one per step: for optimizers that take a list."""

from __future__ import annotations

import math

from mycelia.engine.base import errors


def _check(owner: str, total_step, step_per_epoch, **positive) -> None:
    for name, value in {"total_step": total_step, "step_per_epoch": step_per_epoch, **positive}.items():
        if isinstance(value, bool) or not isinstance(value, int):
            raise errors.type_error(owner, f"{name} must be an int, but got {value!r}")
        if value < 1:
            raise errors.value_error(owner, f"{name} must be positive, but got {value}")


def _check_rate(owner: str, open_low: bool = True, **rates) -> None:
    for name, value in rates.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise errors.type_error(owner, f"{name} must be a float, but got {value!r}")
        if value < 0 or (open_low and value == 0):
            raise errors.value_error(
                owner, f"{name} must be {'positive' if open_low else 'at least 0'}, but got {value}"
            )


def piecewise_constant_lr(milestone, learning_rates) -> list[float]:
    """``learning_rates[i]`` for the steps before ``milestone[i]``."""
    if not isinstance(milestone, (list, tuple)) or not isinstance(learning_rates, (list, tuple)):
        raise errors.type_error("piecewise_constant_lr", "milestone and learning_rates must be lists")
    if len(milestone) != len(learning_rates):
        raise errors.value_error(
            "piecewise_constant_lr",
            f"{len(milestone)} milestones need as many learning_rates, but got {len(learning_rates)}",
        )
    rates: list[float] = []
    last = 0
    for until, rate in zip(milestone, learning_rates):
        if isinstance(until, bool) or not isinstance(until, int) or until < last or until < 1:
            raise errors.value_error(
                "piecewise_constant_lr",
                f"milestone must be positive ints in ascending order, but got {milestone}",
            )
        _check_rate("piecewise_constant_lr", learning_rate=rate)
        rates.extend([rate] * (until - last))
        last = until
    return rates


def _epochs(total_step: int, step_per_epoch: int):
    return (step // step_per_epoch for step in range(total_step))


def exponential_decay_lr(
    learning_rate, decay_rate, total_step, step_per_epoch, decay_epoch, is_stair=False
) -> list[float]:
    """``learning_rate * decay_rate ** (epoch / decay_epoch)``;
    the exponent is rounded down with `is_stair`.
    """
    _check("exponential_decay_lr", total_step, step_per_epoch, decay_epoch=decay_epoch)
    _check_rate("exponential_decay_lr", learning_rate=learning_rate, decay_rate=decay_rate)
    power = (lambda e: e // decay_epoch) if is_stair else (lambda e: e / decay_epoch)
    return [learning_rate * decay_rate ** power(e) for e in _epochs(total_step, step_per_epoch)]


def natural_exp_decay_lr(
    learning_rate, decay_rate, total_step, step_per_epoch, decay_epoch, is_stair=False
) -> list[float]:
    """``learning_rate * exp(-decay_rate * epoch)``;
    with `is_stair` the epoch is rounded down to decay_epoch.
    """
    _check("natural_exp_decay_lr", total_step, step_per_epoch, decay_epoch=decay_epoch)
    _check_rate("natural_exp_decay_lr", learning_rate=learning_rate, decay_rate=decay_rate)
    at = (lambda e: e // decay_epoch * decay_epoch) if is_stair else (lambda e: e)
    return [learning_rate * math.exp(-decay_rate * at(e)) for e in _epochs(total_step, step_per_epoch)]


def inverse_decay_lr(
    learning_rate, decay_rate, total_step, step_per_epoch, decay_epoch, is_stair=False
) -> list[float]:
    """``learning_rate / (1 + decay_rate * epoch / decay_epoch)``;
    the quotient is rounded down with `is_stair`.
    """
    _check("inverse_decay_lr", total_step, step_per_epoch, decay_epoch=decay_epoch)
    _check_rate("inverse_decay_lr", learning_rate=learning_rate, decay_rate=decay_rate)
    quotient = (lambda e: e // decay_epoch) if is_stair else (lambda e: e / decay_epoch)
    return [learning_rate / (1 + decay_rate * quotient(e)) for e in _epochs(total_step, step_per_epoch)]


def cosine_decay_lr(min_lr, max_lr, total_step, step_per_epoch, decay_epoch) -> list[float]:
    """From max_lr to min_lr along half a cosine over decay_epoch epochs, constant within an epoch."""
    _check("cosine_decay_lr", total_step, step_per_epoch, decay_epoch=decay_epoch)
    _check_rate("cosine_decay_lr", open_low=False, min_lr=min_lr)
    _check_rate("cosine_decay_lr", max_lr=max_lr)
    if min_lr >= max_lr:
        raise errors.value_error(
            "cosine_decay_lr", f"min_lr must be less than max_lr, but got {min_lr} and {max_lr}"
        )
    half = 0.5 * (max_lr - min_lr)
    return [
        min_lr + half * (1 + math.cos(math.pi * min(e, decay_epoch) / decay_epoch))
        for e in _epochs(total_step, step_per_epoch)
    ]


def polynomial_decay_lr(
    learning_rate, end_learning_rate, total_step, step_per_epoch, decay_epoch, power, update_decay_epoch=False
) -> list[float]:
    """From learning_rate to end_learning_rate by ``(1 - epoch / decay_epoch) ** power``.

    With `update_decay_epoch` decay_epoch grows to the next multiple that covers the epoch.
    """
    _check("polynomial_decay_lr", total_step, step_per_epoch, decay_epoch=decay_epoch)
    _check_rate("polynomial_decay_lr", learning_rate=learning_rate, power=power)
    _check_rate("polynomial_decay_lr", open_low=False, end_learning_rate=end_learning_rate)
    rates = []
    for epoch in _epochs(total_step, step_per_epoch):
        span = decay_epoch * max(1, math.ceil(epoch / decay_epoch)) if update_decay_epoch else decay_epoch
        left = 1 - min(epoch, span) / span
        rates.append((learning_rate - end_learning_rate) * left**power + end_learning_rate)
    return rates


def warmup_lr(learning_rate, total_step, step_per_epoch, warmup_epoch) -> list[float]:
    """Grows linearly to learning_rate over warmup_epoch epochs (0: at once) and stays there."""
    _check("warmup_lr", total_step, step_per_epoch)
    _check_rate("warmup_lr", learning_rate=learning_rate)
    if isinstance(warmup_epoch, bool) or not isinstance(warmup_epoch, int) or warmup_epoch < 0:
        raise errors.value_error(
            "warmup_lr", f"warmup_epoch must be an int of at least 0, but got {warmup_epoch!r}"
        )
    if not warmup_epoch:
        return [float(learning_rate)] * total_step
    return [learning_rate * min(e, warmup_epoch) / warmup_epoch for e in _epochs(total_step, step_per_epoch)]
