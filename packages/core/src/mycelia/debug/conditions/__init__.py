"""Watch conditions: what may be wrong with a tensor, by the formulas of MindSpore's debugger and beyond
them.
"""

from mycelia.debug.conditions.catalogue import CATALOGUE, Condition, Parameter, condition
from mycelia.debug.conditions.check import (
    IS_INF,
    IS_NAN,
    NO_PREVIOUS,
    NO_VALUE,
    OUT_OF_MEMORY,
    Hit,
    ParameterHit,
    check,
    error_texts,
    is_activation,
    is_gradient,
    is_weight,
)

__all__ = [
    "CATALOGUE", "IS_INF", "IS_NAN", "NO_PREVIOUS", "NO_VALUE",
    "OUT_OF_MEMORY", "Condition", "Hit", "Parameter",
    "ParameterHit", "check", "condition", "error_texts", "is_activation", "is_gradient", "is_weight",
]  # fmt: skip
