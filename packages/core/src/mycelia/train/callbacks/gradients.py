"""`GradWatch`: tells of gradients that leave what they were, though they are finite."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from mycelia.debug.statistics import statistics
from mycelia.engine.base import errors, log
from mycelia.engine.compile import measuring
from mycelia.engine.observing import Observer, Operator, Run, watch_calls
from mycelia.engine.tensors.tensor import Tensor
from mycelia.train.callbacks.base import Callback

_ACTIONS = ("warn", "raise", "stop")
_MAX, _MIN, _L2 = 1, 2, 4  # columns of what is measured
_LEAST = 0.01  # of the mean: a deviation counts as no smaller, so that equal norms are no alarm
_DECAY = 0.95  # weight of what was before


class WrongGradient(ArithmeticError):
    """A step of training has gradients beyond the bounds that a GradWatch has."""


@dataclass(slots=True)
class _Usual:
    """Running mean and variance of a norm, older values counting less."""

    mean: float = 0.0
    variance: float = 0.0
    seen: int = 0

    @property
    def sigma(self) -> float:
        return max(math.sqrt(self.variance), _LEAST * abs(self.mean))

    def add(self, value: float) -> None:
        self.seen += 1
        weight = max(1.0 / self.seen, 1.0 - _DECAY)
        change = value - self.mean
        self.mean += weight * change
        self.variance = (1.0 - weight) * (self.variance + weight * change * change)


class _Eager(Observer):
    def __init__(self, sizes: dict[str, tuple[float, float]]) -> None:
        self.sizes = sizes

    def seen(
        self, run: Run, operator: Operator, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
    ) -> None:
        if not operator.name.startswith("Gradients/"):
            return
        for slot, tensor in enumerate(outputs):
            if tensor.dtype.is_floating and tensor.size:
                found = statistics(tensor)
                sizes = max(abs(found.max), abs(found.min)), found.l2norm
                self.sizes[f"{operator.name}:{slot}"] = sizes if found.is_finite else (math.inf, math.inf)


class GradWatch(Callback):
    """Looks at what every operator of the backward pass makes, by two levels: it is wrong if an absolute
    value exceeds `absolute`, or if its norm exceeds the running mean of its norm by `sigmas` deviations.

    The second level begins after `warmup` steps; a deviation counts as 1 % of the mean at least. What is not
    finite exceeds both. `action`: "warn" once a step, "raise" WrongGradient, or "stop" the training after the
    step. `steps`: (step, operator and output, what is wrong) of each step that had such values.
    The rule is that of Ascend's detection of silent corruption (NPU_ASD_UPPER_THRESH, NPU_ASD_SIGMA_THRESH).
    Errors: ValueError for bounds that are not positive, or another action.
    """

    def __init__(
        self, absolute: float = 1e6, sigmas: float = 100.0, warmup: int = 10, action: str = "warn"
    ) -> None:
        super().__init__()
        for name, value in (("absolute", absolute), ("sigmas", sigmas), ("warmup", warmup)):
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
                raise errors.value_error("GradWatch", f"{name} must be a positive number, but got {value!r}")
        if action not in _ACTIONS:
            raise errors.one_of(action, _ACTIONS, subject="GradWatch", what="action")
        self.absolute, self.sigmas, self.warmup, self.action = absolute, sigmas, warmup, action
        self.steps: list[tuple[int, str, str]] = []
        self._usual: dict[str, _Usual] = {}
        self._sizes: dict[str, tuple[float, float]] = {}  # of this step: largest absolute value, norm
        self._stack = ExitStack()

    def begin(self, run_context: Any) -> None:
        self._stack.enter_context(measuring.measuring(self._measured, measuring.STATISTICS))
        self._stack.enter_context(watch_calls(_Eager(self._sizes)))

    def step_begin(self, run_context: Any) -> None:
        self._sizes.clear()

    def end(self, run_context: Any) -> None:
        self._stack.close()

    def __exit__(self, *error: Any) -> None:
        self._stack.close()  # an exception ended the training

    def _measured(self, found: measuring.Measured) -> None:
        table, bad = found.table, found.nonfinite.any(axis=1)
        for (operator, slot), row, is_bad in zip(found.rows, table, bad):
            parts = operator.parts or (operator,)
            if row[0] and any(part.name.startswith("Gradients/") for part in parts):
                sizes = (math.inf, math.inf) if is_bad else (max(abs(row[_MAX]), abs(row[_MIN])), row[_L2])
                self._sizes[f"{operator.name}:{slot}"] = float(sizes[0]), float(sizes[1])

    def step_end(self, run_context: Any) -> None:
        wrong = [(name, text) for name, sizes in self._sizes.items() if (text := self._judge(name, *sizes))]
        if not wrong:
            return
        params = run_context.original_args()
        name, text = wrong[0]
        self.steps.append((params.cur_step_num, name, text))
        message = f"GradWatch: step {params.cur_step_num}: {name} {text}"
        if self.action == "raise":
            raise WrongGradient(message)
        log.logger(__name__).warning("%s", message)
        if self.action == "stop":
            run_context.request_stop()

    def _judge(self, name: str, largest: float, norm: float) -> str:
        """What is wrong with a value; empty if nothing is, and then it is one of the usual ones."""
        usual = self._usual.setdefault(name, _Usual())
        if largest > self.absolute or math.isinf(largest):
            return f"has {largest:.4g}, more than {self.absolute:g}"
        if usual.seen >= self.warmup and norm > usual.mean + self.sigmas * usual.sigma:
            return f"has the norm {norm:.4g}; it was {usual.mean:.4g}, with a deviation of {usual.sigma:.4g}"
        usual.add(norm)
        return ""
