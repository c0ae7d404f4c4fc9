"""The two pipelines of passes, and how they run."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

from mycelia.engine.backends import registry
from mycelia.engine.backends.base import Pass
from mycelia.engine.base import config, errors, log, plugins
from mycelia.engine.compile.passes.graph_files import GraphFiles
from mycelia.engine.compile.passes.selection import is_off, switched_off
from mycelia.engine.ir.graph import Graph
from mycelia.engine.ir.verify import verify
from mycelia.engine.ir.walk import all_graphs, clone

STAGES = ("optimize", "lower")
_LATER = ("fuse", "recompute")  # may be named without being in the pipeline: the backend, the program decides
_checked = ""  # the text of the setting `passes` whose names are known to exist


def _check_names(backend: registry.LoadedBackend) -> None:
    """Raises ValueError if the setting `passes` names what is no pass and no stage."""
    global _checked
    text = config.get("passes")
    if text == _checked:
        return
    known = {*STAGES, *(step.name for stage in STAGES for step in _steps(stage, backend)), *_LATER}
    for name in sorted(switched_off()):
        if name not in known:
            raise errors.one_of(name, sorted(known), subject="passes", what="the pass")
    _checked = text


def _steps(stage: str, backend: registry.LoadedBackend, stable: Collection[int] = ()) -> list[Pass]:
    """All passes of a stage, those of the backend and of plugins included."""
    if stage == "optimize":
        steps = _optimizing()
    else:
        steps = _lowering(backend, stable)
        for own in backend.backend.passes(stable):
            steps.insert(_place_of(own, steps, backend.backend.name), own)
    plugins.manager().hook.mycelia_passes(pipeline=steps, stage=stage, backend=backend)
    return steps


def _place_of(own: Pass, steps: Sequence[Pass], backend: str) -> int:
    """Where a pass that `backend` brings joins `steps`. Raises ValueError if it names no other pass."""
    wanted = own.before or own.after
    places = [i for i, step in enumerate(steps) if step.name == wanted]
    if not wanted:
        return len(steps)
    if not places:
        known = sorted({step.name for step in steps})
        raise errors.one_of(wanted, known, subject=f"pass {own.name} of backend {backend}", what="the pass")
    return places[0] if own.before else places[-1] + 1


def _optimizing() -> list[Pass]:
    from mycelia.engine.compile.passes import cse, dce, fold, inline, simplify

    return [
        Pass("fold", fold.run),
        Pass("inline", inline.run),
        Pass("simplify", simplify.run),
        Pass("cse", cse.run),
        Pass("dce", dce.run),
    ]


def _lowering(backend: registry.LoadedBackend, stable: Collection[int]) -> list[Pass]:
    """Passes that may introduce an op only where `backend` has a kernel for it."""
    from mycelia.engine.compile.passes import (
        cse,
        dce,
        epilogue,
        fold,
        fuse,
        layout,
        norms,
        products,
        separable,
        simplify,
        widen,
    )

    return [
        Pass("widen", partial(widen.run, backend=backend)),
        Pass("simplify", simplify.run_device),
        Pass("layout", partial(layout.run, backend=backend)),
        Pass("simplify", simplify.run_device),
        Pass("cse", cse.run_device),
        Pass("products", partial(products.run, backend=backend, stable=stable)),
        Pass("epilogue", epilogue.run),
        Pass("separable", partial(separable.run, backend=backend)),
        Pass("norms", partial(norms.run, backend=backend)),
        Pass("fold", fold.run),
        Pass("dce", dce.run),
        Pass("fuse", partial(fuse.run, backend=backend)),
    ]


def pipeline(
    stage: str, backend: registry.LoadedBackend | None = None, stable: Collection[int] = ()
) -> list[Pass]:
    """The passes of `stage` that are switched on, in order, for `backend` (default: the present target).

    `stable`: positions of parameters that seldom change.

    Errors: ValueError if the setting `passes` names an unknown pass.
    """
    backend = registry.target() if backend is None else backend
    _check_names(backend)
    return [] if is_off(stage) else [s for s in _steps(stage, backend, stable) if not is_off(s.name)]


def checks() -> bool:
    """Whether graphs are verified after each pass."""
    return config.get("check") or config.get("debug_level") == config.DEBUG


def optimize(graph: Graph, passes: Sequence[Pass] | None = None) -> None:
    """Runs `passes` (default: the pipeline) on `graph` and its regions, in place."""
    own_regions(graph)
    files = GraphFiles(graph)
    files.write("captured")
    for step in pipeline("optimize") if passes is None else passes:
        before = len(graph.nodes)
        changes = sum(step.run(part) for part in list(all_graphs(graph)))
        _show_pass(graph, step, changes, before)
        if checks():
            verify(graph)
        if changes:
            files.write(step.name)
    files.write("validate")


def lower(graph: Graph, backend: registry.LoadedBackend, stable: Collection[int] = ()) -> Graph:
    """A copy of `graph` in the forms that `backend` runs best; regions stay as they are.

    `stable`: positions of parameters that seldom change. What depends on nothing else is computed only when
    they do, and may cost.
    """
    steps = pipeline("lower", backend, stable)
    if is_off("lower"):
        return graph
    lowered = clone(graph)
    files = GraphFiles(lowered)
    for step in steps:
        before = len(lowered.nodes)
        changes = step.run(lowered)
        _show_pass(lowered, step, changes, before)
        if changes:
            files.write(f"lower_{step.name}")
        if checks():
            verify(lowered)
    files.write("lowered")
    return lowered


def _show_pass(graph: Graph, step: Pass, changes: int, before: int) -> None:
    if config.get("debug") >= 3:
        text = f"{graph.name}: pass {step.name}: {changes} changes, {before} -> {len(graph.nodes)} nodes"
        log.show(__name__, text)


def own_regions(graph: Graph) -> None:
    """Gives nodes copies of regions that others hold as well:
    gradients are kept with the region they belong to.
    """
    for node in graph.nodes:
        for name, attr in list(node.attrs.items()):
            if isinstance(attr, Graph):
                node.attrs = {**node.attrs, name: clone(attr)}
        for region in node.regions:
            own_regions(region)
