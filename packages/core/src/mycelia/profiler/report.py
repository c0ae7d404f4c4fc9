"""Rows of a profile, as a table and as a Chrome trace."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mycelia.io.files import atomic_write
from mycelia.profiler.peaks import Peaks


@dataclass(slots=True)
class Row:
    """What was measured of one op, or of one op at one signature, all calls together: times in seconds,
    `flops` operations and `bytes` read and written, both as the op's cost rule counts them.
    """

    name: str
    where: str  # "eager" or "compiled"
    types: str = ""
    calls: int = 0
    seconds: float = 0.0
    flops: float = 0.0
    bytes: float = 0.0
    limit: float = 0.0  # seconds that the roofline allows; only of calls whose cost is known
    costed: float = 0.0  # seconds of those calls

    def add(self, calls: int, seconds: float, cost, peaks: Peaks) -> None:
        """Add calls that took `seconds` together, each of `cost` (None: not known)."""
        self.calls += calls
        self.seconds += seconds
        if cost is not None:
            self.flops += calls * cost.flops
            self.bytes += calls * cost.bytes
            self.limit += calls * peaks.seconds(cost.flops, cost.bytes)
            self.costed += seconds


HEAD = ("op", "where", "calls", "total ms", "mean us", "GFLOP/s", "GB/s", "of peak", "share")


def cells(row: Row, total: float) -> tuple[str, ...]:
    """The row's columns as text; `total` is the time that shares refer to."""
    costed = row.costed or float("inf")
    return (
        f"{row.name} {row.types}".strip(),
        row.where,
        str(row.calls),
        f"{row.seconds * 1e3:.3f}",
        f"{row.seconds / row.calls * 1e6:.1f}",
        f"{row.flops / costed / 1e9:.1f}",
        f"{row.bytes / costed / 1e9:.1f}",
        f"{100 * row.limit / costed:.0f} %" if row.costed else "-",
        f"{100 * row.seconds / total:.1f} %" if total else "-",
    )


def table(
    rows: Iterable[Row],
    peaks: Peaks,
    limit: int | None = None,
    seconds: float = 0.0,
    compiling: float = 0.0,
) -> str:
    """Rows as text, the slowest first, and below what the percentages refer to, and what else took time:
    `seconds` is the whole, `compiling` the part of capturing and compiling, 0 where not known. GFLOP/s and
    GB/s are of 10^9, and of the calls whose cost is known.
    """
    rows = sorted(rows, key=lambda row: row.seconds, reverse=True)
    total = sum(row.seconds for row in rows)
    shown = [HEAD, *(cells(row, total) for row in rows[:limit])]
    widths = [max(len(line[i]) for line in shown) for i in range(len(HEAD))]
    lines = []
    for line in shown:
        texts = (c.ljust(w) if i < 2 else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths)))
        lines.append("  ".join(texts).rstrip())
    hidden = len(rows) - len(shown) + 1
    if hidden:
        lines.append(f"... and {hidden} more, {sum(r.seconds for r in rows[limit:]) * 1e3:.3f} ms")
    sizes = ", ".join(f"{rate / 1e9:.0f} GB/s at {size >> 10} KB" for size, rate in peaks.bandwidth)
    lines.append(
        f"total {total * 1e3:.3f} ms in ops; peak {peaks.flops / 1e9:.0f} GFLOP/s; copy {sizes}; "
        "of peak = least time by the roofline / time"
    )
    if seconds:
        rest = seconds - total - compiling
        lines.append(
            f"of {seconds:.3f} s: {total:.3f} s in ops, {compiling:.3f} s capturing and compiling, "
            + (
                f"{rest:.3f} s Python and the rest"
                if rest >= 0
                else "more than all: threads ran side by side"
            )
        )
    return "\n".join(lines)


def write_trace(path: str | Path, events: Iterable[dict]) -> None:
    """Write Chrome trace events, times in microseconds, as a file that chrome://tracing and Perfetto show.

    Errors: OSError if it cannot be written.  Source: "Trace Event Format", Google.
    """
    with atomic_write(os.fspath(path)) as file:
        file.write(json.dumps({"displayTimeUnit": "ms", "traceEvents": list(events)}).encode())
