"""Whether a tensor hits a watch condition.

Comparisons are strict but for `_ge`; ranges include both ends. Several parameters are alternatives. Numbers
are taken over the whole tensor: where it has NaN or infinities, every condition but those about them tells an
error instead of a hit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mycelia.debug.conditions.catalogue import Condition

IS_NAN, IS_INF, NO_PREVIOUS, OUT_OF_MEMORY, NO_HISTORY, NO_VALUE = 1, 2, 4, 8, 16, 32  # error bits

_TEXTS = {
    IS_NAN: "the tensor has NaN",
    IS_INF: "the tensor has infinities",
    NO_PREVIOUS: "there is no value of the step before",
    OUT_OF_MEMORY: "the memory limit is reached",
    NO_HISTORY: "the graph has no history",
    NO_VALUE: "there is no value",
}
_OVERFLOWS = ("tensor_overflow", "weight_overflow", "gradient_exploding", "operator_overflow")
_ACTIVATIONS = frozenset(
    """elu fastgelu gelu hsigmoid hswish leakyrelu logsigmoid logsoftmax prelu relu relu6 reluv2 sigmoid
    softmax tanh""".split()
)


@dataclass(frozen=True, slots=True)
class ParameterHit:
    """A parameter of a condition: its bound, what the tensor has there, and whether that is a hit."""

    name: str
    value: float | bool
    actual: float
    hit: bool


@dataclass(frozen=True, slots=True)
class Hit:
    """What a check found: a hit, or an error, or neither."""

    hit: bool
    error_code: int = 0
    parameters: tuple[ParameterHit, ...] = ()


def error_texts(code: int) -> list[str]:
    """What the bits of an error code say."""
    return [text for bit, text in _TEXTS.items() if code & bit]


def check(
    condition: Condition,
    given: Mapping[str, Any],
    array: np.ndarray | None,
    previous: np.ndarray | None = None,
    step: int = 0,
) -> Hit:
    """Whether `array` hits `condition` with the parameters `given`.

    `previous`: the values of the step before, `step`: from 0, for conditions about initial values.
    Errors: ValueError, TypeError for parameters that do not fit.
    """
    values = condition.values(given)
    if array is None:
        return Hit(False, NO_VALUE)
    if condition.first_step_only and step:
        return Hit(False)
    error = _error_of(array)
    if condition.id in _OVERFLOWS:
        return Hit(error != 0)
    if condition.needs_previous:
        error |= NO_PREVIOUS if previous is None else _error_of(previous)
    if error or not array.size:
        return Hit(False, error)
    actual = _measured(condition, values, array, previous)
    found = tuple(ParameterHit(n, values[n], a, _is_hit(n, a, values[n])) for n, a in actual.items())
    return Hit(any(p.hit for p in found), 0, found)


def _error_of(array: np.ndarray) -> int:
    if array.dtype.kind not in "fc":
        return 0
    return (IS_NAN if np.isnan(array).any() else 0) | (IS_INF if np.isinf(array).any() else 0)


def _is_hit(name: str, actual: float, bound: float | bool) -> bool:
    if name == "rtol":  # of the elements, that all are within it
        return actual == 1.0
    if name.endswith("_ge"):
        return actual >= bound
    return actual > bound if name.endswith("_gt") else actual < bound


def _measured(
    condition: Condition, values: Mapping[str, Any], array: np.ndarray, previous: np.ndarray | None
) -> dict[str, float]:
    """What each parameter in force, but for hidden and supporting ones, is compared with."""
    x = array.astype(np.float64) if array.dtype.kind != "c" else np.abs(array)
    if condition.id == "weight_not_changed":
        return {"rtol": float(_unchanged(x, np.asarray(previous, np.float64), values))}
    ways = {
        "max": lambda: x.max(),
        "min": lambda: x.min(),
        "mean": lambda: x.mean(),
        "abs_mean": lambda: np.abs(x).mean(),
        "zero_percentage": lambda: 100.0 * np.count_nonzero(x == 0) / x.size,
        "max_min": lambda: x.max() - x.min(),
        "range_percentage": lambda: _share(x, values),
        "abs_mean_update_ratio": lambda: _update_ratio(
            x, np.asarray(previous, np.float64), values["epsilon"]
        ),
    }
    hidden = {p.name for p in condition.parameters if p.hidden or p.support}
    return {name: float(ways[name.rpartition("_")[0]]()) for name in values if name not in hidden}


def _unchanged(x: np.ndarray, before: np.ndarray, values: Mapping[str, Any]) -> bool:
    return bool((np.abs(x - before) <= values["atol"] + values["rtol"] * np.abs(before)).all())


def _update_ratio(x: np.ndarray, before: np.ndarray, epsilon: float) -> float:
    return np.abs(x - before).mean() / (np.abs(before).mean() + epsilon)


def _share(x: np.ndarray, values: Mapping[str, Any]) -> float:
    inside = (x >= values["range_start_inclusive"]) & (x <= values["range_end_inclusive"])
    return 100.0 * np.count_nonzero(inside) / x.size


#: States that optimizers keep of a weight by a prefix to its name, but for prefixes that layers may be called
#: by. MindSpore's debugger takes them for weights, and warns of each Momentum that begins as zeros.
_STATES = re.compile(
    r"(moments?[12]?|accum(_update)?|mean_(grad|square)|exp_avg(_sq)?|vhat|step_size|(adam|lamb)_[mv])\..+\."
)


def is_weight(kind: str, name: str) -> bool:
    """Whether a node is a weight, by its type and full name."""
    lower = name.lower()
    ends = lower.endswith((".weight", ".bias")) and not _STATES.match(lower)
    return kind == "Parameter" and ends and "optimizer-" not in lower and "gradients/" not in lower


def is_gradient(kind: str, name: str) -> bool:
    """Whether a node computes a gradient."""
    return kind not in ("Parameter", "Const") and name.lower().startswith("gradients/")


def is_activation(kind: str, name: str) -> bool:
    """Whether a node is an activation function of the forward pass."""
    return kind.lower() in _ACTIVATIONS and "gradients/" not in name.lower()
