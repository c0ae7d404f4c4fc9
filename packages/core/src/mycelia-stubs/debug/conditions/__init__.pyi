# Written by tools/gen_stubs.py.
from mycelia.debug.conditions.around import Around as Around, Memory as Memory
from mycelia.debug.conditions.catalogue import (
    Condition as Condition, Parameter as Parameter, condition as condition,
)
from mycelia.debug.conditions.check import (
    check as check, error_texts as error_texts, is_activation as is_activation, is_gradient as is_gradient,
    is_loss as is_loss, is_weight as is_weight,
)
from mycelia.debug.conditions.found import Hit as Hit, ParameterHit as ParameterHit

__all__ = [
    "CATALOGUE", "IS_INF", "IS_NAN", "NO_INPUTS", "NO_PREVIOUS", "NO_RANKS", "NO_VALUE", "OUT_OF_MEMORY",
    "ROLE", "Around", "Condition", "Hit", "Memory", "Parameter", "ParameterHit", "check", "condition",
    "error_texts", "is_activation", "is_gradient", "is_loss", "is_weight",
]

CATALOGUE: dict
IS_INF: int
IS_NAN: int
NO_INPUTS: int
NO_PREVIOUS: int
NO_RANKS: int
NO_VALUE: int
OUT_OF_MEMORY: int
ROLE: str
