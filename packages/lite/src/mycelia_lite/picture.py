"""The memory plan of a model: as a table, and as a page with a picture that needs nothing else.

In the picture time goes to the right, step by step, and memory upwards: a box is a value, as long as it lives
and as high as its bytes.
"""

from __future__ import annotations

import html
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mycelia_lite.format import Table
from mycelia_lite.model import Model
from mycelia_lite.show import bytes_text

_WIDTH, _HEIGHT, _LEFT, _ABOVE, _BELOW = 1000, 440, 80, 30, 40  # of the picture, in pixels


@dataclass(frozen=True)
class Value:
    """Where a value lies: bytes from `place` on, from step `first` to step `last`."""

    place: int
    bytes: int
    first: int
    last: int
    type: str


@dataclass(frozen=True)
class Step:
    """A call of a kernel for a node of the file."""

    kernel: str
    node: str
    kind: str


@dataclass(frozen=True)
class MemoryPlan:
    """The first stage of a model's run: what later stages need is known only while it runs."""

    arena_bytes: int
    steps: tuple[Step, ...]
    values: tuple[Value, ...]

    @property
    def live_bytes(self) -> list[int]:
        """Bytes of the values that live during each step."""
        return [sum(v.bytes for v in self.values if v.first <= s <= v.last) for s in range(len(self.steps))]


def plan_of(model: Model) -> MemoryPlan:
    """The plan for the present shapes. Errors: RuntimeError for a model that is not built."""
    steps, values = [], []
    for line in model.get_model_info("memory_plan").splitlines():
        kind, *fields = line.split("\t")
        if kind == "step":
            steps.append(Step(*fields))
        else:
            values.append(Value(*map(int, fields[:4]), fields[4]))
    return MemoryPlan(int(model.get_model_info("arena_bytes")), tuple(steps), tuple(values))


def _color(name: str, light: int = 62) -> str:
    return f"hsl({zlib.crc32(name.encode()) * 137 % 360} 55% {light}%)"


def svg(plan: MemoryPlan) -> str:
    """The picture; the dashed line is what lives at once."""
    count = max(1, len(plan.steps))
    across = (_WIDTH - _LEFT) / count
    floor = _HEIGHT - _BELOW
    up = (floor - _ABOVE) / max(1, plan.arena_bytes)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
    ]
    for part in range(5):
        size = plan.arena_bytes * part / 4
        y = floor - size * up
        parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{bytes_text(size)}</text>')
    for value in plan.values:
        step = plan.steps[value.first]
        kind = step.kind or step.kernel
        title = html.escape(
            f"{step.node or step.kernel} ({kind}): {value.type}, {bytes_text(value.bytes)} at {value.place}, "
            f"steps {value.first} to {value.last}"
        )
        width, height = max(1, (value.last - value.first + 1) * across), max(0.5, value.bytes * up)
        parts.append(
            f'<rect x="{_LEFT + value.first * across:.2f}" y="{floor - value.place * up - height:.2f}" '
            f'width="{width:.2f}" height="{height:.2f}" fill="{_color(kind)}" stroke="{_color(kind, 35)}" '
            f'stroke-width="0.6"><title>{title}</title></rect>'
        )
    line = " ".join(
        f"{_LEFT + (s + side) * across:.2f},{floor - size * up:.2f}"
        for s, size in enumerate(plan.live_bytes)
        for side in (0, 1)
    )
    parts.append(f'<polyline points="{line}" fill="none" stroke="black" stroke-dasharray="4 3"/>')
    for s in range(0, count, max(1, count // 10)):
        x = _LEFT + (s + 0.5) * across
        parts.append(f'<text x="{x:.1f}" y="{floor + 16}" text-anchor="middle">{s}</text>')
    x = _LEFT
    makers = [plan.steps[v.first] for v in plan.values]
    for kind in dict.fromkeys(step.kind or step.kernel for step in makers):
        if x > _WIDTH - 120:
            break
        parts.append(f'<circle cx="{x + 6}" cy="12" r="5" fill="{_color(kind)}"/>')
        parts.append(f'<text x="{x + 15}" y="16">{html.escape(kind)}</text>')
        x += 30 + 7 * len(kind)
    parts.append(f'<text x="{(_LEFT + _WIDTH) / 2}" y="{_HEIGHT - 6}" text-anchor="middle">step</text></svg>')
    return "\n".join(parts)


def page(path: Path, model: Table, built: Model, loops: int = 0) -> str:
    """A page of HTML about a model: borders, memory plan, its nodes, with times of `loops` runs."""
    plan = plan_of(built)
    times = (
        {name: (ms / max(1, calls), calls) for name, _, ms, calls in built.profile(loops)} if loops else {}
    )
    peak = max(plan.live_bytes, default=0)
    borders = [
        (kind, t.name, t.dtype.name.lower(), str(t.shape))
        for kind, tensors in (("input", built.get_inputs()), ("output", built.get_outputs()))
        for t in tensors
    ]
    nodes = []
    for i, node in enumerate(model.nodes):
        outputs = [model.allTensors[int(o)] for o in node.outputIndex]
        shapes = ", ".join(f"{t.dataType.name.lower()} {list(map(int, t.dims))}" for t in outputs)
        kernels = ", ".join(s.kernel for s in plan.steps if s.node == node.name)
        row = [str(i), node.name, node.primitive.kind if node.primitive else "none", shapes, kernels]
        nodes.append([*row, f"{times[node.name][0]:.4f}" if node.name in times else ""])
    title = html.escape(path.name)
    weights = bytes_text(int(built.get_model_info("weight_bytes")))
    facts = (
        f"{len(model.nodes)} operators, {len(plan.steps)} steps; weights {weights}; arena "
        f"{bytes_text(plan.arena_bytes)}, at most {bytes_text(peak)} live at once (dashed); kernels for "
        f"{built.get_model_info('isa')}"
    )
    head = ["number", "node", "operator", "outputs", "kernels", "ms"]
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
body {{ font-family: sans-serif; margin: 2em auto; padding: 0 1em; max-width: 1100px; color: #222 }}
table {{ border-collapse: collapse; font-size: 13px; width: 100% }}
td, th {{ border-bottom: 1px solid #ddd; padding: 3px 8px; text-align: left; vertical-align: top }}
svg {{ width: 100%; border: 1px solid #ddd }}
</style></head><body>
<h1>{title}</h1><p>{html.escape(facts)}</p>
{_grid(["", "name", "type", "shape"], borders)}
<h2>Memory plan</h2>
{svg(plan)}
<h2>Nodes</h2>
{_grid(head, nodes)}
</body></html>
"""


def _grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def line(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    return f"<table>{line(head, 'th')}{''.join(line(row, 'td') for row in rows)}</table>"
