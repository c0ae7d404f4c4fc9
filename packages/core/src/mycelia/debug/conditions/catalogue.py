"""Which watch conditions there are, for what kind of tensor, and with which parameters.

Names, targets and defaults are those of MindSpore's debugger; those marked `beyond` are ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mycelia.debug.conditions.expression import parse
from mycelia.engine.base import errors

TENSOR, WEIGHT, GRADIENT, ACTIVATION = "tensor", "weight", "gradient", "activation"
LOSS = "loss"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A bound of a condition. `default` None: not set unless given. `support`: it says what another measures,
    and is no bound by itself. `hidden`: pages do not show it. `low`, `high`: which values it takes, both ends
    included. `whole`: it takes whole numbers. `read`: it takes a text, which this reads (ValueError for one
    that is wrong).
    """

    name: str
    default: float | bool | None = None
    support: bool = False
    hidden: bool = False
    low: float = -math.inf
    high: float = math.inf
    required: tuple[str, ...] = ()
    whole: bool = False
    read: Callable[[str], Any] | None = None

    @property
    def type(self) -> str:
        """BOOL, STRING, INT64 or FLOAT64."""
        if self.read:
            return "STRING"
        return "BOOL" if isinstance(self.default, bool) else "INT64" if self.whole else "FLOAT64"

    def checked(self, value: Any, subject: str) -> float | bool | str:
        if self.read:
            if not isinstance(value, str):
                raise errors.type_error(subject, f"{self.name} must be a text, but got {value!r}")
            self.read(value)
            return value
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
        if self.whole and value != int(value):
            raise errors.value_error(subject, f"{self.name} must be a whole number, but got {value!r}")
        return int(value) if self.whole else value


@dataclass(frozen=True, slots=True)
class Condition:
    """A watch condition. `needs_previous`: it compares with the step before; `first_step_only`: it is about
    initial values; `reads_inputs`: it looks at what the operator read, too; `compares_ranks`: and at the
    other ranks' values. `kinds`: types of operators, in lower case, that alone it is about; empty: all.
    """

    id: str
    abbr: str
    target: str
    parameters: tuple[Parameter, ...] = ()
    needs_previous: bool = False
    first_step_only: bool = False
    beyond: bool = False
    reads_inputs: bool = False
    compares_ranks: bool = False
    kinds: frozenset[str] = frozenset()

    def depth(self, values: Mapping[str, Any]) -> int:
        """How many steps before it looks at, with parameters as `values` returns them."""
        if self.id == "dead_relu":
            return values["steps"] - 1
        if self.id == "loss_not_decreasing":
            return 2 * values["window"] - 1
        if self.id == "expression":
            return int(parse(values["expression"]).needs_previous)
        return int(self.needs_previous)

    def values(self, given: Mapping[str, Any]) -> dict[str, Any]:
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
            if (parameter.hidden or parameter.support) and parameter.default is not None:
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

#: Least and greatest value of activations that saturate; None: it has no such end.
SATURATION: dict[str, tuple[float | None, float]] = {
    "tanh": (-1.0, 1.0), "sigmoid": (0.0, 1.0), "hsigmoid": (0.0, 1.0), "relu6": (None, 6.0),
}  # fmt: skip

CATALOGUE: dict[str, Condition] = {
    c.id: c
    for c in (
        Condition("tensor_overflow", "TO", TENSOR),
        Condition("weight_overflow", "WO", WEIGHT),
        Condition("gradient_exploding", "GE", GRADIENT),
        Condition("operator_overflow", "OO", TENSOR, reads_inputs=True),
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
        Condition(
            "dead_relu", "DR", ACTIVATION,
            (
                _percentage("dead_percentage_ge", 50),
                Parameter("steps", 5, support=True, low=1, high=1000, whole=True),
            ),
            beyond=True, kinds=frozenset(("relu", "relu6", "reluv2")),
        ),
        Condition(
            "saturated_activation", "SA", ACTIVATION,
            (
                _percentage("saturated_percentage_ge", 90),
                Parameter("margin", 1e-3, support=True, low=0, high=0.5),
            ),
            beyond=True, kinds=frozenset(SATURATION),
        ),
        Condition(
            "loss_not_decreasing", "LND", LOSS,
            (
                Parameter("min_rel_drop", 0.0, low=0, high=1),
                Parameter("window", 100, support=True, low=1, high=100_000, whole=True),
            ),
            beyond=True,
        ),
        Condition(
            "gradient_norm", "GN", GRADIENT, (_at_least("l2norm_gt"), _at_least("l2norm_lt")), beyond=True,
        ),
        Condition(
            "update_ratio", "UR", WEIGHT,
            (_at_least("update_ratio_gt", 0.1), _at_least("update_ratio_lt"), _EPSILON),
            needs_previous=True, beyond=True,
        ),
        Condition(
            "rank_mismatch", "RM", WEIGHT, (_at_least("max_difference_gt", 0.0),),
            compares_ranks=True, beyond=True,
        ),
        Condition("nan_born", "NB", TENSOR, reads_inputs=True, beyond=True),
        Condition("expression", "EX", TENSOR, (Parameter("expression", read=parse),), beyond=True),
    )
}  # fmt: skip


def condition(name: str) -> Condition:
    """The condition with this id.  Errors: ValueError for a name that is none."""
    found = CATALOGUE.get(name)
    if found is None:
        raise errors.one_of(name, sorted(CATALOGUE), subject="conditions", what="the condition")
    return found
