"""What a check finds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ParameterHit:
    """A parameter of a condition: its bound, what the tensor has there, and whether that is a hit. Of an
    expression the bound is its text, and `actual` 1 or 0.
    """

    name: str
    value: float | bool | str
    actual: float
    hit: bool


@dataclass(frozen=True, slots=True)
class Hit:
    """What a check found: a hit, or an error, or neither. `reason`: what bounds alone do not tell."""

    hit: bool
    error_code: int = 0
    parameters: tuple[ParameterHit, ...] = ()
    reason: str = ""
