"""Forests of decision trees."""

from __future__ import annotations

from mycelia_lite.micro.lower import Builder, lowers
from mycelia_lite.micro.program import Step


@lowers("trees")
def trees(b: Builder, step: Step) -> None:
    """What the leaves of all trees have together."""
    x, _, _, roots, leaves = step.inputs
    rows, features = b.shape(x)
    fields = {
        "rows": rows, "features": features, "trees": b.shape(roots)[0], "targets": b.shape(leaves)[1],
        "how": step.attributes["how"],
    }  # fmt: skip
    b.call(step, "micro_trees_f32", "micro_forest", fields)
