"""The watchpoints that are offered when a session begins: numbers as MindSpore's, in one table."""

from __future__ import annotations

import math
from collections.abc import Mapping

from mycelia.debug.conditions.catalogue import ACTIVATION, GRADIENT, LOSS, WEIGHT, Condition
from mycelia.debug.conditions.check import (
    NOTHING_KNOWN,
    is_activation,
    is_gradient,
    is_loss,
    is_shared,
    is_weight,
)

_TARGETS = {WEIGHT: is_weight, GRADIENT: is_gradient, ACTIVATION: is_activation, LOSS: is_loss}

#: Condition, its parameters, and the type of operator that it is meant for; "": all that it is about.
RECOMMENDED: tuple[tuple[str, dict[str, float], str], ...] = (
    ("weight_initialization", {"zero_percentage_ge": 100}, ""),
    ("weight_change_too_large", {"abs_mean_update_ratio_gt": 1}, ""),
    ("gradient_vanishing", {"abs_mean_lt": 1e-9}, ""),
    ("tensor_overflow", {}, ""),
    ("tensor_all_zero", {"zero_percentage_ge": 100}, ""),
    ("activation_range",
     {"range_start_inclusive": math.tanh(-8.8), "range_end_inclusive": math.tanh(8.8),
      "range_percentage_lt": 0.1}, "tanh"),
    ("activation_range",
     {"range_start_inclusive": 1 / (1 + math.exp(16.2)), "range_end_inclusive": 1 / (1 + math.exp(-16.2)),
      "range_percentage_lt": 0.1}, "sigmoid"),
    ("activation_range",
     {"range_start_inclusive": -1, "range_end_inclusive": 0, "range_percentage_gt": 99.9}, "relu"),
)  # fmt: skip


def suits(
    wanted: Condition,
    kind: str,
    name: str,
    operator: str = "",
    attributes: Mapping[str, str] = NOTHING_KNOWN,
) -> bool:
    """Whether a condition is about a node of this type, full name and attributes; `operator`: about such
    alone.
    """
    test = is_shared if wanted.compares_ranks else _TARGETS.get(wanted.target)
    is_meant = not operator or kind.lower().removesuffix("v2") == operator
    is_meant = is_meant and (not wanted.kinds or kind.lower() in wanted.kinds)
    return is_meant and (test is None or test(kind, name, attributes))
