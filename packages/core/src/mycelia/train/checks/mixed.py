"""Checks of mixed precision (mp)."""

from __future__ import annotations

from typing import Any

from mycelia.train.checks.facts import Facts
from mycelia.train.checks.results import FOUND, NEEDS_YOU, NOT_FOUND, Said, check

_HALVES = ("float16", "bfloat16")


def is_mixed(facts: Facts) -> bool:
    """Whether the script asks for it, or products run in 16 bits."""
    asked = getattr(facts.model, "_amp_level", "O0") not in (None, "O0")
    return asked or any(facts.products[h] for h in _HALVES)


@check("mp.01", "overflow")
def overflow(facts: Facts, reference: Any) -> Said:
    if facts.overflows:
        steps = sorted({step for step, _ in facts.overflows})
        said = f"{len(steps)} of {len(facts.losses)} steps are not finite, the first is {steps[0]}: "
        said += str(facts.overflows[0][1])
        # A dynamic scale begins too high, and is tried higher from time to time: some steps overflow for it.
        half = len(facts.losses) // 2
        late = sum(step > half for step in steps)
        settled = len(set(facts.scales)) > 1 and facts.scales[-1] > 1 and late <= 0.25 * half
        return (NOT_FOUND if settled else FOUND), said
    return NOT_FOUND, f"all that {len(facts.losses)} steps computed is finite"


@check("mp.02", "loss scale")
def loss_scale(facts: Facts, reference: Any) -> Said:
    if not is_mixed(facts):
        return NOT_FOUND, "nothing is computed in 16 bits"
    if not facts.products["float16"] and facts.products["bfloat16"]:
        return NOT_FOUND, "bfloat16 has the range of float32"
    if not facts.scales:
        return FOUND, "products run in float16, and the loss is not scaled"
    if facts.scales[-1] <= 1.0:
        return FOUND, f"the scale has fallen from {facts.scales[0]:g} to {facts.scales[-1]:g}"
    falls = sum(b < a for a, b in zip(facts.scales, facts.scales[1:]))
    steps = len(facts.scales)
    said = f"from {facts.scales[0]:g} to {facts.scales[-1]:g}, {falls} times lowered in {steps} steps"
    return (FOUND if falls > 0.25 * steps and falls > 3 else NOT_FOUND), said


@check("ref.05", "mixed precision is really on")
def really_mixed(facts: Facts, reference: Any) -> Said:
    level = getattr(facts.model, "_amp_level", "O0")
    counted = ", ".join(f"{n} in {dtype}" for dtype, n in sorted(facts.products.items())) or "none"
    said = f"level {level}; convolutions and products: {counted}"
    halves = sum(facts.products[h] for h in _HALVES)
    if level not in (None, "O0") and facts.products:
        return (NOT_FOUND if halves else FOUND), said
    return (NOT_FOUND if not halves or level in (None, "O0") else NEEDS_YOU), said


@check("ref.06", "loss scale is really on")
def really_scaled(facts: Facts, reference: Any) -> Said:
    if not is_mixed(facts):
        return NOT_FOUND, "nothing is computed in 16 bits"
    if facts.scales and max(facts.scales) > 1:
        return NOT_FOUND, f"the scale is {facts.scales[-1]:g} after {len(facts.scales)} steps"
    return FOUND, "no step has a scale above 1"
