"""The summary of a comparison, and a page that shows it: where the runs part, and how the error grows."""

from __future__ import annotations

import html
import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mycelia.debug.precision.comparison import FAIL, Comparison
from mycelia.engine.base import errors

_WIDTH, _HEIGHT, _LEFT = 960, 260, 60  # of the plot, in pixels


@dataclass(slots=True)
class OperatorSummary:
    """An operator of a table; `inputs` and `outputs`: (slot, cosine as the table has it)."""

    index: int
    name: str
    right: str
    inputs: list[tuple[str, str]] = field(default_factory=list)
    outputs: list[tuple[str, str]] = field(default_factory=list)

    def is_below(self, cosine: float) -> bool:
        """Whether a tensor of it is less alike than `cosine`; what has no number is not."""
        return any(_number(cell) < cosine for _, cell in (*self.inputs, *self.outputs))


def _number(cell: str) -> float:
    """Both a missing number and one that is not finite count as not alike: -1; an empty cell as alike."""
    try:
        value = float(cell)
    except ValueError:
        return math.inf
    return -1.0 if not math.isfinite(value) else value


def summarize(rows: list[dict[str, Any]], cosine: float) -> list[OperatorSummary]:
    """The operators of a table with a tensor below `cosine`, in order of execution.  Errors: ValueError for
    rows of something else.
    """
    found: dict[str, OperatorSummary] = {}
    for row in rows:
        try:
            name, io, slot = row["TensorIndex"].rsplit(":", 2)
            index = int(row["Index"])
        except ValueError:
            raise errors.value_error(
                "table", f"a row is of {row['TensorIndex']!r}, number {row['Index']!r}, not of NAME:output:0"
            ) from None
        if row[FAIL].startswith(("No bench data", "shape unmatched", "statistics", "no data")):
            continue
        operator = found.setdefault(name, OperatorSummary(index, name, row["RightOp"]))
        (operator.inputs if io == "input" else operator.outputs).append((slot, row["CosineSimilarity"]))
    return [operator for operator in found.values() if operator.is_below(cosine)]


def write(comparison: Comparison, rows: list[dict[str, Any]], path: str | os.PathLike) -> None:
    """One file that opens without a network.  Errors: OSError."""
    target = Path(path)
    partial = target.with_name(f".{target.name}.partial")
    partial.write_text(_page(comparison, rows), encoding="utf-8")
    os.replace(partial, target)


def _page(comparison: Comparison, rows: list[dict[str, Any]]) -> str:
    first = comparison.divergence
    alike = "The runs are alike." if comparison.compared else "Nothing could be compared."
    told = alike if first is None else f"First divergence: {_safe(first.operator)}"
    stack = "" if first is None else "".join(f"<div class=line>{_safe(line)}</div>" for line in first.lines)
    columns = ["TensorIndex", "Shape", "DataType(L)", "OverFlow", *comparison.columns, FAIL]
    head = "".join(f"<th>{_safe(c)}</th>" for c in columns)
    body = "".join(_table_row(row, columns, comparison.unlike_rows) for row in rows)
    return (
        "<!doctype html><html lang=en><meta charset=utf-8>"
        '<meta name=viewport content="width=device-width, initial-scale=1">'
        "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>Precision: {_safe(comparison.left.folder.name)}</title><style>{_STYLE}</style>"
        f"<h1>{_safe(str(comparison.left.folder))} against {_safe(str(comparison.right.folder))}</h1>"
        f"<p class=told>{told}</p>{stack}<p>{comparison.compared} tensors compared, {comparison.unlike} not "
        f"alike (an angle or a length beyond that of the cosine {comparison.threshold:g}).</p>"
        "<h2>Relative distance of outputs, in order</h2>"
        f"{_plot(comparison.growth)}<h2>Tensors</h2><div class=wide><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div></html>\n"
    )


def _safe(text: str) -> str:
    return html.escape(text)


def _table_row(row: dict[str, Any], columns: list[str], unlike: set[int]) -> str:
    cells = "".join(f"<td>{_safe(row[c])}</td>" for c in columns)
    return f"<tr{' class=unlike' if int(row['Index']) in unlike else ''}>{cells}</tr>"


def _plot(growth: list[tuple[str, float]]) -> str:
    """A line over the operators, logarithmic, from 1e-9 to 1e3."""
    if not growth:
        return "<p>No outputs were compared.</p>"
    low, high = -9.0, 3.0
    points, marks = [], []
    for i, (name, value) in enumerate(growth):
        x = _LEFT + i * (_WIDTH - _LEFT - 10) / max(1, len(growth) - 1)
        level = high if not math.isfinite(value) else math.log10(value) if value > 0 else low
        y = 10 + (high - min(high, max(low, level))) / (high - low) * (_HEIGHT - 30)
        points.append(f"{x:.1f},{y:.1f}")
        title = f"<title>{_safe(name)}: {value:.3g}</title>"
        marks.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3">{title}</circle>')
    lines = "".join(
        f'<line x1="{_LEFT}" x2="{_WIDTH}" y1="{y:.1f}" y2="{y:.1f}" class="grid" />'
        f'<text x="4" y="{y + 4:.1f}">1e{e}</text>'
        for e in range(-9, 4, 3)
        for y in [10 + (high - e) / (high - low) * (_HEIGHT - 30)]
    )
    curve = f'<polyline points="{" ".join(points)}" />'
    size = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="error growth"'
    return f"<svg {size}>{lines}{curve}{''.join(marks)}</svg>"


_STYLE = (
    ":root{color-scheme:light dark}body{font:14px system-ui;margin:24px;max-width:1200px}"
    "body{overflow-wrap:anywhere}h1{font-size:18px}"
    "@media(max-width:600px){body{margin:12px}svg text{font-size:26px}}"
    "h2{font-size:15px}.told{font-weight:600}.line{font-family:monospace}.wide{overflow-x:auto}"
    "table{border-collapse:collapse;font-size:12px}td,th{padding:2px 8px;text-align:right;white-space:nowrap}"
    "td:first-child,th:first-child{text-align:left}.unlike{background:#d33a2c33}svg{width:100%;overflow:visible}"
    "polyline{fill:none;stroke:#2a6fdb;stroke-width:1.5}circle{fill:#2a6fdb}.grid{stroke:#8884}"
    "text{font-size:11px;fill:currentColor}"
)
