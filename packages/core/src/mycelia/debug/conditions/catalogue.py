"""Which watch conditions there are, for what kind of tensor, and with which parameters.

Names, targets and defaults are those of MindSpore's debugger; those marked `beyond` are ours.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mycelia.engine.base import errors

TENSOR, WEIGHT, GRADIENT, ACTIVATION = "tensor", "weight", "gradient", "activation"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A bound of a condition. `default` None: not set unless given. `support`: it says what another measures,
    and is no bound by itself. `hidden`: pages do not show it. `low`, `high`: which values it takes, both ends
    included.
    """

    name: str
    default: float | bool | None = None
    support: bool = False
    hidden: bool = False
    low: float = -math.inf
    high: float = math.inf
    required: tuple[str, ...] = ()

    def checked(self, value: Any, subject: str) -> float | bool:
        if isinstance(self.default, bool):
            if not isinstance(value, bool):
                raise errors.type_error(subject, f"{self.name} must be a bool, but got {value!r}")
            return value
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise errors.type_error(subject, f"{self.name} must be a number, but got {value!r}")
        if not math.isfinite(value) or not self.low <= value <= self.high:
            raise errors.value_error(
                subject,
                f"{self.name} must be finite and from {self.low:g} to {self.high:g}, but got {value!r}",
            )
        return value


@dataclass(frozen=True, slots=True)
class Condition:
    """A watch condition. `needs_previous`: it compares with the step before; `first_step_only`: it is about
    initial values.
    """

    id: str
    abbr: str
    target: str
    parameters: tuple[Parameter, ...] = ()
    needs_previous: bool = False
    first_step_only: bool = False
    beyond: bool = False

    def values(self, given: Mapping[str, Any]) -> dict[str, float | bool]:
        """All parameters that are in force, the defaults of those that `given` leaves out among them.

        Errors: ValueError for a name that is none, or a value out of its range; TypeError for another type.
        """
        known = {p.name: p for p in self.parameters}
        for name in given:
            if name not in known:
                raise errors.one_of(name, sorted(known) or ["none"], subject=self.id, what="the parameter")
        found = {n: known[n].checked(v, self.id) for n, v in given.items() if v is not None}
        for parameter in self.parameters:
            for other in parameter.required:
                if parameter.name in found and other not in found:
                    raise errors.value_error(self.id, f"{parameter.name} needs {other}, which is not given")
        bounds = [p for p in self.parameters if not p.support and not p.hidden]
        if bounds and not any(p.name in found for p in bounds):
            found.update((p.name, p.default) for p in bounds if p.default is not None)
            if not any(p.name in found for p in bounds):
                raise errors.value_error(self.id, f"one of {', '.join(p.name for p in bounds)} must be given")
        for parameter in self.parameters:
            if parameter.hidden and parameter.default is not None:
                found.setdefault(parameter.name, parameter.default)
        return found


def _percentage(name: str, default: float | None = None, required: tuple[str, ...] = ()) -> Parameter:
    return Parameter(name, default, low=0, high=100, required=required)


def _at_least(name: str, default: float | None = None, hidden: bool = False) -> Parameter:
    return Parameter(name, default, low=0, hidden=hidden)


_LARGE = (_at_least("abs_mean_gt"), Parameter("max_gt"), Parameter("min_gt"), Parameter("mean_gt"))
_SMALL = (_at_least("abs_mean_lt"), Parameter("max_lt"), Parameter("min_lt"), Parameter("mean_lt"))
_ENDS = ("range_start_inclusive", "range_end_inclusive")
_RANGE = (
    Parameter("range_start_inclusive", support=True),
    Parameter("range_end_inclusive", support=True),
    _percentage("range_percentage_lt", required=_ENDS),
    _percentage("range_percentage_gt", required=_ENDS),
    Parameter("max_min_lt", low=math.nextafter(0.0, 1.0)),
    _at_least("max_min_gt"),
)
_EPSILON = _at_least("epsilon", 1e-9, hidden=True)

CATALOGUE: dict[str, Condition] = {
    c.id: c
    for c in (
        Condition("tensor_overflow", "TO", TENSOR),
        Condition("weight_overflow", "WO", WEIGHT),
        Condition("gradient_exploding", "GE", GRADIENT),
        Condition("operator_overflow", "OO", TENSOR),
        Condition(
            "weight_initialization", "WI", WEIGHT,
            (_percentage("zero_percentage_ge", 100), Parameter("max_gt"), Parameter("min_lt")),
            first_step_only=True,
        ),
        Condition("weight_too_large", "WL", WEIGHT, _LARGE),
        Condition("gradient_too_large", "GL", GRADIENT, _LARGE),
        Condition("tensor_too_large", "TL", TENSOR, _LARGE),
        Condition("weight_too_small", "WS", WEIGHT, _SMALL),
        Condition("gradient_vanishing", "GV", GRADIENT, _SMALL),
        Condition("tensor_too_small", "TS", TENSOR, _SMALL),
        Condition("tensor_all_zero", "TZ", TENSOR, (_percentage("zero_percentage_ge", 100),)),
        Condition(
            "weight_not_changed", "WNC", WEIGHT,
            (
                _at_least("rtol", 1e-5), _at_least("atol", 1e-8, hidden=True),
                Parameter("equal_nan", False, hidden=True),
            ),
            needs_previous=True,
        ),
        Condition(
            "weight_change_too_large", "WCL", WEIGHT,
            (_at_least("abs_mean_update_ratio_gt", 0.1), _EPSILON), needs_previous=True,
        ),
        Condition(
            "weight_change_too_small", "WCS", WEIGHT,
            (_at_least("abs_mean_update_ratio_lt", 1e-4), _EPSILON), needs_previous=True,
        ),
        Condition("activation_range", "AR", ACTIVATION, _RANGE),
        Condition("tensor_range", "TR", TENSOR, _RANGE),
    )
}  # fmt: skip


def condition(name: str) -> Condition:
    """The condition with this id.  Errors: ValueError for a name that is none."""
    found = CATALOGUE.get(name)
    if found is None:
        raise errors.one_of(name, sorted(CATALOGUE), subject="conditions", what="the condition")
    return found
