"""Watch conditions: what may be wrong with a tensor, by the formulas of MindSpore's debugger and beyond
them.
"""

from mycelia.debug.conditions.around import Around, Memory
from mycelia.debug.conditions.catalogue import CATALOGUE, Condition, Parameter, condition
from mycelia.debug.conditions.check import (
    IS_INF,
    IS_NAN,
    NO_INPUTS,
    NO_PREVIOUS,
    NO_RANKS,
    NO_VALUE,
    OUT_OF_MEMORY,
    ROLE,
    check,
    error_texts,
    is_activation,
    is_gradient,
    is_loss,
    is_weight,
)
from mycelia.debug.conditions.found import Hit, ParameterHit

__all__ = [
    "CATALOGUE", "IS_INF", "IS_NAN", "NO_INPUTS", "NO_PREVIOUS", "NO_RANKS", "NO_VALUE", "OUT_OF_MEMORY",
    "ROLE", "Around", "Condition", "Hit", "Memory", "Parameter", "ParameterHit", "check", "condition",
    "error_texts", "is_activation", "is_gradient", "is_loss", "is_weight",
]  # fmt: skip
