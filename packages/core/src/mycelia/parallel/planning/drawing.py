"""Plans as curves over the number of ranks: efficiency, and memory of a rank, as an SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from mycelia.parallel.planning.prices import Plan
from mycelia.parallel.planning.report import size

_WIDTH, _HEIGHT, _LEFT, _TOP = 330, 190, 70, 34  # of a panel, in pixels, and what is around it
_COLOURS = ("#1f77b4", "#d9730d", "#2b8a3e", "#9c36b5")  # told apart by those who see few colours, too
_DASHES = ("", "7 4", "2 4", "9 4 2 4")


def svg(plans: Sequence[Plan]) -> str:
    """One curve a strategy in each of two panels. A curve is a ``<polyline>`` with the class of its strategy.

    Errors: ValueError without plans.
    """
    if not plans:
        raise ValueError("there are no plans to draw")
    names = list(dict.fromkeys(plan.strategy for plan in plans))
    most = max(plan.bytes for plan in plans)
    width, height = 2 * (_LEFT + _WIDTH) + 30, _TOP + _HEIGHT + 40 + 20 * len(names)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        f'font-size="12">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        *_panel(plans, names, _LEFT, "efficiency", lambda p: p.efficiency, 1.0, lambda v: f"{100 * v:.0f} %"),
        *_panel(plans, names, 2 * _LEFT + _WIDTH, "memory of a rank", lambda p: p.bytes, most, size),
    ]
    for i, name in enumerate(names):
        y = _TOP + _HEIGHT + 50 + 20 * i
        line = _line([(_LEFT, y), (_LEFT + 36, y)], i, "key")
        parts += [line, f'<text x="{_LEFT + 46}" y="{y + 4}">{name}</text>']
    return "\n".join([*parts, "</svg>", ""])


def _panel(
    plans: Sequence[Plan], names: Sequence[str], left: float, title: str, value: Callable[[Plan], float],
    most: float, text: Callable[[float], str],
) -> list[str]:  # fmt: skip
    """Axes, marks and curves: ranks to the right, each step twice as many, and `value` upwards from 0."""
    ranks = sorted({plan.ranks for plan in plans})
    widest = max(1.0, math.log2(ranks[-1]))
    right = lambda count: left + _WIDTH * math.log2(count) / widest
    up = lambda v: _TOP + _HEIGHT * (1 - v / (most or 1))
    parts = [f'<text x="{left}" y="{_TOP - 14}" font-weight="bold">{title}</text>']
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = up(share * most)
        parts.append(f'<path d="M{left:.1f} {y:.1f}h{_WIDTH}" stroke="#d0d0d0"/>')
        label = text(share * most)
        parts.append(f'<text x="{left - 6:.1f}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
    step = -(-len(ranks) // 7)  # few enough numbers to stand side by side
    for count in ranks[::-1][::step]:
        parts.append(
            f'<text x="{right(count):.1f}" y="{_TOP + _HEIGHT + 18}" text-anchor="middle">{count:,}</text>'
        )
    for i, name in enumerate(names):
        points = [(right(p.ranks), up(value(p))) for p in plans if p.strategy == name]
        parts.append(_line(points, i, name))
    return parts


def _line(points: Sequence[tuple[float, float]], number: int, kind: str) -> str:
    places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    i = number % len(_COLOURS)
    return (
        f'<polyline class="{kind}" points="{places}" fill="none" stroke="{_COLOURS[i]}" stroke-width="2" '
        f'stroke-dasharray="{_DASHES[i]}"/>'
    )
