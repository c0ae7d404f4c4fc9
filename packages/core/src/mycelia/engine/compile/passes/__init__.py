"""Passes over graphs and the pipeline that runs them, in three stages.

Stage "optimize" works on differentiable ops, in place: its result is kept and differentiated. Stage "lower"
turns a copy into device forms for one backend, right before the program is built: layouts, packed weights,
fused ops. Stage "order" works on what is left without constant parts: the order in which nodes run, which
updates are in place, what is computed twice or at the same time. A pass is a function
`(graph) -> number of changes`; "optimize" runs it on regions first, the others on one graph at a time, since
a region gets a program, and so a lowering, of its own.

The setting `passes` switches passes off by name, plugins add some through the hook `mycelia_passes`. With the
setting `check` every pass is followed by the verifier; with `save_graphs` the text after each stage is
written to `save_graphs_path`.
"""

from mycelia.engine.compile.passes.pass_manager import (
    Pass,
    checks,
    lower,
    optimize,
    order,
    own_regions,
    pipeline,
)
from mycelia.engine.compile.passes.selection import (
    NOTHING,
    SETTINGS,
    Asked,
    accuracy,
    asked,
    choice,
    is_off,
    unfolded,
    with_asked,
    without_folding,
)

__all__ = [
    "NOTHING", "SETTINGS", "Asked", "Pass", "accuracy", "asked", "checks", "choice", "is_off", "lower",
    "optimize", "order", "own_regions", "pipeline", "unfolded", "with_asked",
    "without_folding",
]  # fmt: skip
