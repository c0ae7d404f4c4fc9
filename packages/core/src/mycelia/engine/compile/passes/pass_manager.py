"""The pipeline of passes: one list in three stages, and how it runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial

from mycelia.engine.backends import registry
from mycelia.engine.backends.base import Pass
from mycelia.engine.base import config, errors, log, plugins
from mycelia.engine.compile.draft import Draft
from mycelia.engine.compile.passes.graph_files import GraphFiles
from mycelia.engine.compile.passes.selection import is_off, switched_off
from mycelia.engine.ir.graph import Graph
from mycelia.engine.ir.verify import verify
from mycelia.engine.ir.walk import all_graphs, clone
from mycelia.engine.observing.operator_names import number_operators

STAGES = ("optimize", "lower", "order")
_checked: frozenset[str] = frozenset()  # what is switched off, and known to exist


def _check_names(backend: registry.LoadedBackend) -> None:
    """Raises ValueError if the settings `passes` and `pass_off` name what is no pass and no stage."""
    global _checked
    off = switched_off()
    if off == _checked:
        return
    known = {*STAGES, *(step.name for stage in STAGES for step in _steps(stage, backend))}
    known.update(step.name for other in registry.available().values() for step in other.passes(()))
    for name in sorted(off):
        if name not in known:
            raise errors.one_of(name, sorted(known), subject="passes", what="the pass")
    _checked = off


def _steps(
    stage: str,
    backend: registry.LoadedBackend,
    frozen: Collection[int] = (),
    draft: Draft | None = None,
) -> list[Pass]:
    """All passes of a stage, those of the backend and of plugins included."""
    from mycelia.engine.compile.passes import claim

    steps = _pipeline(backend, frozen, draft)[stage]
    if stage == "lower":
        for own in backend.backend.passes(frozen):
            steps.insert(_place_of(own, steps, backend.backend.name), own)
        steps.append(Pass("claim", partial(claim.run, backend=backend.backend)))
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


def _pipeline(
    backend: registry.LoadedBackend, frozen: Collection[int], draft: Draft | None
) -> dict[str, list[Pass]]:
    """All passes of the compiler by stage, in the order in which they run.

    Those of the stage "lower" may introduce an op only where `backend` has a kernel for it; `frozen` are
    positions of parameters that seldom change. Those of the stage "order" decide what `draft` holds.
    """
    from mycelia.engine.compile.passes import (
        cse,
        dce,
        early,
        epilogue,
        fold,
        fuse,
        inline,
        inter_op,
        layout,
        matmul,
        norms,
        recompute,
        schedule,
        separable,
        simplify,
        widen,
    )

    return {
        "optimize": [
            Pass("fold", fold.run),
            Pass("inline", inline.run),
            Pass("simplify", simplify.run),
            Pass("cse", cse.run),
            Pass("dce", dce.run),
        ],
        "lower": [
            Pass("widen", partial(widen.run, backend=backend)),
            Pass("simplify", simplify.run_device),
            Pass("layout", partial(layout.run, backend=backend)),
            Pass("simplify", simplify.run_device),
            Pass("cse", cse.run_device),
            Pass("matmul", partial(matmul.run, backend=backend, frozen=frozen)),
            Pass("epilogue", partial(epilogue.run, backend=backend, frozen=frozen)),
            Pass("separable", partial(separable.run, backend=backend)),
            Pass("norms", partial(norms.run, backend=backend)),
            Pass("fold", fold.run),
            Pass("dce", dce.run),
            Pass("fuse", partial(fuse.run, backend=backend)),
        ],
        "order": [
            Pass("early", partial(early.run, draft=draft)),
            Pass("schedule", partial(schedule.run, draft=draft)),
            Pass("recompute", partial(recompute.run, draft=draft)),
            Pass("inter_op", partial(inter_op.run, draft=draft)),
        ],
    }


def pipeline(
    stage: str,
    backend: registry.LoadedBackend | None = None,
    frozen: Collection[int] = (),
    draft: Draft | None = None,
) -> list[Pass]:
    """The passes of `stage` that are switched on, in order, for `backend` (default: the present target).

    `frozen`: positions of parameters that seldom change. `draft`: what the passes of the stage "order" work
    on; without it they only have names.

    Errors: ValueError if the setting `passes` names an unknown pass.
    """
    backend = registry.target() if backend is None else backend
    _check_names(backend)
    if is_off(stage):
        return []
    return [step for step in _steps(stage, backend, frozen, draft) if not is_off(step.name)]


def checks() -> bool:
    """Whether graphs are verified after each pass."""
    return config.get("check") or config.get("debug_level") == config.DEBUG


def optimize(graph: Graph, passes: Sequence[Pass] | None = None) -> None:
    """Runs `passes` (default: the pipeline) on `graph` and its regions, in place."""
    own_regions(graph)
    number_operators(graph)
    files = GraphFiles(graph)
    files.stage("captured")
    for number, step in enumerate(pipeline("optimize") if passes is None else passes):
        if _run(step, graph, lambda run: sum(map(run, list(all_graphs(graph)))), verify):
            files.opt_pass(number, step.name)
    files.stage("validate")


def lower(graph: Graph, backend: registry.LoadedBackend, frozen: Collection[int] = ()) -> Graph:
    """A copy of `graph` in the forms that `backend` runs best; regions stay as they are.

    `frozen`: positions of parameters that seldom change. What depends on nothing else is computed only when
    they do, and may cost.
    """
    steps = pipeline("lower", backend, frozen)
    lowered = clone(graph)
    if is_off("lower"):
        return lowered
    files = GraphFiles(lowered)
    files.before(backend.backend.name)
    for number, step in enumerate(steps):
        if _run(step, lowered, lambda run: run(lowered), verify):
            files.device_pass("lower", number, step.name)
    files.after(backend.backend.name, "lower", "lowered")
    return lowered


def order(graph: Graph, backend: registry.LoadedBackend, draft: Draft) -> None:
    """Puts the nodes of a lowered `graph`, which nobody else has, into the order in which they run on
    `backend`, and decides what else `draft` holds.
    """
    files = GraphFiles(graph)
    for number, step in enumerate(pipeline("order", backend, draft=draft)):
        if _run(step, graph, lambda run: run(graph), draft.verify):
            files.device_pass("order", number, step.name)
    files.ordered()


def _run(
    step: Pass,
    graph: Graph,
    apply: Callable[[Callable[[Graph], int]], int],
    valid: Callable[[Graph], None],
) -> bool:
    """Lets one pass run by `apply`, tells of it, checks the graph with `valid`; whether something changed."""
    before = len(graph.nodes)
    changes = apply(step.run)
    if log.wants(11000, debug=3):
        text = f"{graph.name}: pass {step.name}: {changes} changes, {before} -> {len(graph.nodes)} nodes"
        log.show(__name__, text, 11000)
    if checks():
        valid(graph)
    if changes:
        for node in graph.nodes:
            if node.parts and not node.made_by:
                node.made_by = step.name
    return bool(changes)


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
