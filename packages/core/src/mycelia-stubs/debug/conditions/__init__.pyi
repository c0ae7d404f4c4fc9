# Written by tools/gen_stubs.py.
from mycelia.debug.conditions.catalogue import (
    Condition as Condition, Parameter as Parameter, condition as condition,
)
from mycelia.debug.conditions.check import (
    Hit as Hit, ParameterHit as ParameterHit, check as check, error_texts as error_texts,
    is_activation as is_activation, is_gradient as is_gradient, is_weight as is_weight,
)

__all__ = [
    "CATALOGUE", "IS_INF", "IS_NAN", "NO_PREVIOUS", "NO_VALUE", "OUT_OF_MEMORY", "Condition", "Hit",
    "Parameter", "ParameterHit", "check", "condition", "error_texts", "is_activation", "is_gradient",
    "is_weight",
]

CATALOGUE: dict
IS_INF: int
IS_NAN: int
NO_PREVIOUS: int
NO_VALUE: int
OUT_OF_MEMORY: int
