"""Learning rates as functions of the step: cells called with the global step."""

from __future__ import annotations

import math

from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.elementwise import clipping as _clipping
from mycelia.engine.ops.elementwise import math as _math
from mycelia.engine.ops.elementwise import powers as _powers
from mycelia.engine.ops.elementwise.cast import cast
from mycelia.engine.ops.elementwise.rounding import floor
from mycelia.engine.tensors.tensor import Tensor
from mycelia.nn.cell import Cell


def _number(owner: str, positive: bool = False, **values) -> None:
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise errors.type_error(owner, f"{name} must be a float, but got {value!r}")
        if value < 0 or (positive and value == 0):
            raise errors.value_error(
                owner, f"{name} must be {'positive' if positive else 'at least 0'}, but got {value}"
            )


def _steps(owner: str, **values) -> None:
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int):
            raise errors.type_error(owner, f"{name} must be an int, but got {value!r}")
        if value < 1:
            raise errors.value_error(owner, f"{name} must be positive, but got {value}")


class LearningRateSchedule(Cell):
    """Base class: ``construct(global_step)`` returns the learning rate as a 0-d or
    one-element float32 Tensor.
    """

    def construct(self, global_step):
        raise errors.error(
            errors.NotSupportedError, type(self).__name__, "construct(global_step) is not defined"
        )


def _float_step(global_step: Tensor) -> Tensor:
    return cast(global_step, dtype=dtypes.float32)


class _Decay(LearningRateSchedule):
    """Settings of the three decays by a rate."""

    def __init__(self, learning_rate, decay_rate, decay_steps, is_stair=False):
        super().__init__()
        owner = type(self).__name__
        _number(owner, positive=True, learning_rate=learning_rate, decay_rate=decay_rate)
        _steps(owner, decay_steps=decay_steps)
        if not isinstance(is_stair, bool):
            raise errors.type_error(owner, f"is_stair must be a bool, but got {is_stair!r}")
        self.learning_rate, self.decay_rate, self.decay_steps, self.is_stair = (
            learning_rate,
            decay_rate,
            decay_steps,
            is_stair,
        )

    def _progress(self, global_step):
        p = _math.div(_float_step(global_step), float(self.decay_steps))
        return floor(p) if self.is_stair else p


class ExponentialDecayLR(_Decay):
    """``learning_rate * decay_rate ** (step / decay_steps)``;
    the exponent is rounded down with `is_stair`.
    """

    def construct(self, global_step):
        return _math.mul(_powers.pow(float(self.decay_rate), self._progress(global_step)), self.learning_rate)


class NaturalExpDecayLR(_Decay):
    """``learning_rate * exp(-decay_rate * step)``;
    with `is_stair` the step is rounded down to decay_steps.
    """

    def construct(self, global_step):
        step = _float_step(global_step)
        if self.is_stair:
            step = _math.mul(floor(_math.div(step, float(self.decay_steps))), float(self.decay_steps))
        return _math.mul(_powers.exp(_math.mul(step, -float(self.decay_rate))), self.learning_rate)


class InverseDecayLR(_Decay):
    """``learning_rate / (1 + decay_rate * step / decay_steps)``;
    the quotient is rounded down with `is_stair`.
    """

    def construct(self, global_step):
        return _math.div(
            float(self.learning_rate), _math.add(_math.mul(self._progress(global_step), self.decay_rate), 1.0)
        )


class CosineDecayLR(LearningRateSchedule):
    """From max_lr down to min_lr along half a cosine over decay_steps (Loshchilov and Hutter 2017)."""

    def __init__(self, min_lr, max_lr, decay_steps):
        super().__init__()
        _number("CosineDecayLR", min_lr=min_lr)
        _number("CosineDecayLR", positive=True, max_lr=max_lr)
        _steps("CosineDecayLR", decay_steps=decay_steps)
        if min_lr >= max_lr:
            raise errors.value_error(
                "CosineDecayLR", f"min_lr must be less than max_lr, but got {min_lr} and {max_lr}"
            )
        self.min_lr, self.max_lr, self.decay_steps = min_lr, max_lr, decay_steps

    def construct(self, global_step):
        from mycelia.engine.ops.elementwise.trig import cos

        step = _clipping.minimum(_float_step(global_step), float(self.decay_steps))
        wave = cos(_math.mul(step, math.pi / self.decay_steps))
        return _math.add(_math.mul(_math.add(wave, 1.0), 0.5 * (self.max_lr - self.min_lr)), self.min_lr)


class PolynomialDecayLR(LearningRateSchedule):
    """From learning_rate to end_learning_rate by ``(1 - step / decay_steps) ** power``.

    With `update_decay_steps` decay_steps grows to the next multiple that covers the step.
    """

    def __init__(self, learning_rate, end_learning_rate, decay_steps, power, update_decay_steps=False):
        super().__init__()
        _number("PolynomialDecayLR", positive=True, learning_rate=learning_rate, power=power)
        _number("PolynomialDecayLR", end_learning_rate=end_learning_rate)
        _steps("PolynomialDecayLR", decay_steps=decay_steps)
        if end_learning_rate >= learning_rate:
            raise errors.value_error("PolynomialDecayLR", "end_learning_rate must be less than learning_rate")
        self.learning_rate, self.end_learning_rate, self.decay_steps = (
            learning_rate,
            end_learning_rate,
            decay_steps,
        )
        self.power, self.update_decay_steps = power, update_decay_steps

    def construct(self, global_step):
        from mycelia.engine.ops.elementwise.rounding import ceil

        step, total = _float_step(global_step), float(self.decay_steps)
        if self.update_decay_steps:
            total = _math.mul(_clipping.maximum(ceil(_math.div(step, total)), 1.0), total)
        else:
            step = _clipping.minimum(step, total)
        left = _powers.pow(_math.sub(1.0, _math.div(step, total)), float(self.power))
        return _math.add(_math.mul(left, self.learning_rate - self.end_learning_rate), self.end_learning_rate)


class WarmUpLR(LearningRateSchedule):
    """Grows linearly to learning_rate over warmup_steps and stays there."""

    def __init__(self, learning_rate, warmup_steps):
        super().__init__()
        _number("WarmUpLR", learning_rate=learning_rate)
        _steps("WarmUpLR", warmup_steps=warmup_steps)
        self.learning_rate, self.warmup_steps = learning_rate, warmup_steps

    def construct(self, global_step):
        step = _clipping.minimum(_float_step(global_step), float(self.warmup_steps))
        return _math.mul(step, self.learning_rate / self.warmup_steps)
