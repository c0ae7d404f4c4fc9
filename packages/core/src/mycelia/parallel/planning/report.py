"""Plans as a table."""

from __future__ import annotations

from collections.abc import Sequence

from mycelia.parallel.planning.prices import Plan, Step

HEAD = ("ranks", "strategy", "memory", "operators", "sending", "not hidden", "step", "efficiency", "rows/s")


def sizes_of(most: int) -> list[int]:
    """1, 2, 4 ... and `most`."""
    return [*(1 << n for n in range((most - 1).bit_length())), most]


def size(count: float) -> str:
    """Bytes as a person reads them."""
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}" if unit != "B" else f"{count:.0f} B"
        count /= 1000
    return f"{count:.4g} TB"


def duration(seconds: float) -> str:
    """Seconds as a person reads them."""
    for unit, least in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= least:
            return f"{seconds / least:.4g} {unit}"
    return f"{seconds * 1e6:.4g} us"


def table(plans: Sequence[Plan]) -> str:
    """A row a plan."""
    rows = [HEAD]
    for plan in plans:
        rate = plan.rows / plan.seconds if plan.seconds else 0.0
        rows.append((
            str(plan.ranks), plan.strategy, size(plan.bytes), duration(plan.compute),
            duration(plan.communication), duration(plan.exposed), duration(plan.seconds),
            f"{100 * plan.efficiency:.0f} %", f"{rate:,.0f}",
        ))  # fmt: skip
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEAD))]
    adjusted = lambda row: (c.ljust(w) if i == 1 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths)))
    return "\n".join("  ".join(adjusted(row)).rstrip() for row in rows)


def headline(step: Step, compute: float) -> str:
    """What a step of one rank is."""
    parts = (("weights", step.weights), ("gradients", step.gradients), ("states", step.states),
             ("activations", step.activations))  # fmt: skip
    return (
        f"a step of {step.rows} rows on one rank: {step.flops / 1e9:.3g} GFLOP, "
        f"{duration(compute)} in operators; " + ", ".join(f"{name} {size(count)}" for name, count in parts)
    )
