"""Passes over graphs and the two pipelines that run them.

Stage "optimize" works on differentiable ops, in place: its result is kept and differentiated. Stage "lower"
turns a copy into device forms for one backend, right before the program is built: layouts, packed weights,
fused ops. A pass is a function `(graph) -> number of changes`; "optimize" runs it on regions first, "lower"
on one graph at a time, since a region gets a program, and so a lowering, of its own.

The setting `passes` switches passes off by name, plugins add some through the hook `mycelia_passes`. With the
setting `check` every pass is followed by the verifier; with `save_graphs` the text after each stage is
written to `save_graphs_path`.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from mycelia.engine.backends import registry
from mycelia.engine.base import config, errors, log, plugins
from mycelia.engine.ir.graph import Graph
from mycelia.engine.ir.text import to_dot, to_text
from mycelia.engine.ir.verify import verify
from mycelia.engine.ir.walk import all_graphs, clone

STAGES = ("optimize", "lower")
SETTINGS = (  # of effect on passes
    "passes", "enable_graph_kernel", "graph_kernel_flags", "accuracy", "strict_accuracy",
    "disable_format_transform", "jit_config",
)  # fmt: skip
_LATER = ("fuse", "recompute")  # may be named without being in the pipeline: the backend, the program decides
_graph_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Pass:
    """A named step of a pipeline."""

    name: str
    run: Callable[[Graph], int]


# ---- what is switched on -----------------------------------------------------------------------------------


class Asked(NamedTuple):
    """What one function asks for in place of the settings: which algorithms may be chosen, "" for the
    setting's, and the passes and stages to leave out, None for those of the setting `jit_config`.
    """

    accuracy: str = ""
    without: frozenset[str] | None = None


NOTHING = Asked()


class _Choice:
    """The settings that change what passes do, as a key for caches: reading it costs an attribute."""

    off: frozenset[str] = frozenset()
    by_level: frozenset[str] = frozenset()  # left out where a function does not ask for another level
    keys: dict[Asked, tuple] = {}
    checked = ""  # the text of the setting `passes` whose names are known to exist


class _Own(threading.local):
    asked = NOTHING


_own = _Own()


def choice() -> tuple:
    """A key that differs where passes would give another result: part of the key of every compiled form."""
    own = _own.asked
    found = _Choice.keys.get(own)
    if found is None:
        off = _Choice.off | (_Choice.by_level if own.without is None else own.without)
        strict = config.get("strict_accuracy")
        found = off, "strict" if strict else own.accuracy or config.get("accuracy")
        _Choice.keys[own] = found
    return found


def accuracy() -> str:
    """Which algorithms may be chosen: "strict", "normal" or "fast", see the setting of this name."""
    return choice()[1]


def asked() -> Asked:
    """What the function that is compiled or run asked for."""
    return _own.asked


@contextlib.contextmanager
def with_asked(own: Asked) -> Iterator[None]:
    """In this block of this thread `own`, the wishes of one function, is what is compiled with. The settings
    `passes` and `strict_accuracy` stand over it.
    """
    before, _own.asked = _own.asked, own
    try:
        yield
    finally:
        _own.asked = before


def is_off(name: str) -> bool:
    """Whether settings, or the function that is compiled, switch the pass or stage `name` off."""
    return name in choice()[0]


def _choose(_: object) -> None:
    text = config.get("passes")
    off = {entry[1:].strip() for entry in filter(None, map(str.strip, text.split(",")))}
    flags = config.get("graph_kernel_flags").split()
    if config.is_set("enable_graph_kernel") and not config.get("enable_graph_kernel"):
        off.add("fuse")
    if "--opt_level=0" in flags:
        off.add("fuse")
    if config.get("disable_format_transform"):
        off.add("layout")
    _Choice.off = frozenset(off)
    _Choice.by_level = frozenset(("lower",) if config.get("jit_config").get("jit_level") == "O0" else ())
    _Choice.keys = {}


for _setting in SETTINGS:
    config.on_change(_setting, _choose)


def _check_names(backend: registry.LoadedBackend) -> None:
    """Raises ValueError if the setting `passes` names what is no pass and no stage."""
    text = config.get("passes")
    if text == _Choice.checked:
        return
    known = {*STAGES, *(step.name for stage in STAGES for step in _steps(stage, backend)), *_LATER}
    for name in sorted(_Choice.off):
        if name not in known:
            raise errors.one_of(name, sorted(known), subject="passes", what="the pass")
    _Choice.checked = text


# ---- the pipelines -----------------------------------------------------------------------------------------


def _steps(stage: str, backend: registry.LoadedBackend, stable: Collection[int] = ()) -> list[Pass]:
    """All passes of a stage, plugins' included."""
    steps = _optimizing() if stage == "optimize" else _lowering(backend, stable)
    plugins.manager().hook.mycelia_passes(pipeline=steps, stage=stage, backend=backend)
    return steps


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
    stages = _Stages(graph)
    stages.write("captured")
    for step in pipeline("optimize") if passes is None else passes:
        before = len(graph.nodes)
        changes = sum(step.run(part) for part in list(all_graphs(graph)))
        _show_pass(graph, step, changes, before)
        if checks():
            verify(graph)
        if changes:
            stages.write(step.name)
    stages.write("validate")


def lower(graph: Graph, backend: registry.LoadedBackend, stable: Collection[int] = ()) -> Graph:
    """A copy of `graph` in the forms that `backend` runs best; regions stay as they are.

    `stable`: positions of parameters that seldom change. What depends on nothing else is computed only when
    they do, and may cost.
    """
    steps = pipeline("lower", backend, stable)
    if is_off("lower"):
        return graph
    lowered = clone(graph)
    stages = _Stages(lowered)
    for step in steps:
        before = len(lowered.nodes)
        changes = step.run(lowered)
        _show_pass(lowered, step, changes, before)
        if changes:
            stages.write(f"lower_{step.name}")
        if checks():
            verify(lowered)
    stages.write("lowered")
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


_MAIN_STAGES = ("captured", "validate", "lowered")


class _Stages:
    """Writes `<number>_<graph>_<k>_<stage>.ir` files when graphs are to be saved: level 1 the main stages,
    2 all, 3 with a picture each for Graphviz, `.dot`."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.count = 0
        config.read_again("save_graphs", "save_graphs_path")  # MindSpore reads the environment here, too
        self.level = config.get("save_graphs")
        self.directory = config.get("save_graphs_path") if self.level else None
        self.prefix = ""

    def write(self, stage: str) -> None:
        if self.directory is None or (self.level == 1 and stage not in _MAIN_STAGES):
            return
        if not self.prefix:
            os.makedirs(self.directory, exist_ok=True)
            name = re.sub(r"\W+", "_", self.graph.name)
            self.prefix = f"{next(_graph_numbers):04d}_{name}"
        path = os.path.join(self.directory, f"{self.prefix}_{self.count:02d}_{stage}")
        self.count += 1
        with open(f"{path}.ir", "w", encoding="utf-8") as file:
            file.write(to_text(self.graph) + "\n")
        if self.level == 3:
            with open(f"{path}.dot", "w", encoding="utf-8") as file:
                file.write(to_dot(self.graph))
