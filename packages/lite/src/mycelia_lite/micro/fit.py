"""Calls and places of a program, so that its arena fits a limit."""

from __future__ import annotations

import random

from mycelia_lite import picture
from mycelia_lite.micro import bands
from mycelia_lite.micro.layout import Layout, layout, least_bytes
from mycelia_lite.micro.lower import Call, Map, lower
from mycelia_lite.micro.prepare import prepare
from mycelia_lite.micro.program import Program
from mycelia_lite.micro.states import settle_states

_MOST_LAYOUTS = 12  # that are tried: each is a search
_MOST_VALUES = 4  # that an error names
_MOST_WAYS = 4  # at random, of how variables lie
_ENOUGH = 1.03  # times the least memory that is possible

Fitted = tuple[Program, list[Call | Map], Layout]


def fitted(program: Program, most: int | None) -> Fitted:
    """The program prepared, as it is or in bands, its calls and their places, in at most so many bytes.

    Errors: NotImplementedError for steps without C code, ValueError that tells by how much it does not fit,
    and what lies in memory then.
    """
    best, prepared = _smallest(program)
    if most is None or best[2].placement.arena_bytes <= most:
        return best
    tried, smallest = 0, (best[2].placement.least_bytes, None)
    for cut in bands.cuts(prepared):
        changed = prepared.copy()
        bands.apply(changed, cut)
        items = _calls(changed)
        least = least_bytes(changed, items)
        if least < smallest[0]:
            smallest = least, (changed, items)
        if least > most or tried == _MOST_LAYOUTS:
            continue
        tried += 1
        found = changed, items, layout(changed, items)
        if found[2].placement.arena_bytes <= most:
            return found
    if smallest[1] is not None:
        best = *smallest[1], layout(*smallest[1])
    raise ValueError(_misfit(best, most))


def _smallest(program: Program) -> tuple[Fitted, Program]:
    """With variables at either end of what they are joined to; and the program so prepared."""
    found: tuple[Fitted, Program] | None = None
    chance = random.Random(0)
    ways: list[set[int]] = [set()]
    while ways:
        prepared = program.copy()
        movable = prepare(prepared, ways.pop(0))
        made = _laid_out(prepared.copy())
        if found is None:
            ways = [set(m) for m in (movable[1::2], movable[::2], movable)] if len(movable) > 1 else []
            random_ways = range(_MOST_WAYS if ways else 0)
            ways += [{s for s in movable if chance.random() < 0.5} for _ in random_ways]
        if found is None or made[2].placement.arena_bytes < found[0][2].placement.arena_bytes:
            found = made, prepared
        placement = found[0][2].placement
        if placement.arena_bytes <= placement.least_bytes * _ENOUGH:
            break
    return found


def _calls(program: Program) -> list[Call | Map]:
    items = lower(program)
    settle_states(program, items)
    return items


def _laid_out(program: Program) -> Fitted:
    items = _calls(program)
    return program, items, layout(program, items)


def _misfit(best: Fitted, most: int) -> str:
    _, _, where = best
    arena, plan = where.placement.arena_bytes, where.plan
    live = plan.live_bytes
    worst = max(range(len(live)), key=live.__getitem__)
    there: list[picture.Value] = []
    for v in sorted(plan.values, key=lambda v: -v.bytes):
        over = any(v.place < w.place + w.bytes and w.place < v.place + v.bytes for w in there)
        if v.first <= worst <= v.last and not over:  # else it lies in the place of a larger one
            there.append(v)
    named = ", ".join(f"{v.type} of {v.bytes:,} bytes" for v in there[:_MOST_VALUES])
    step = plan.steps[worst]
    return (
        f"the arena takes {arena:,} bytes, {arena - most:,} more than the limit of {most:,}: when node "
        f"'{step.node}' ({step.kind}) runs, {named} lie there"
    )
