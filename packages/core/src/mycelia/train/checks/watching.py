"""Watching a script's trainings, whichever way it trains, to fill `Facts`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from mycelia.engine import observing
from mycelia.engine.base import plugins
from mycelia.engine.base.hookspecs import hookimpl
from mycelia.engine.compile import executable
from mycelia.engine.ops.type_names import type_name
from mycelia.io import into_net
from mycelia.train.callbacks.base import Callback
from mycelia.train.checks.facts import Collector, Facts
from mycelia.train.checks.loops import Loop

_PRODUCTS = ("Conv2D", "MatMul", "BatchMatMul", "Dense")  # what mixed precision computes in 16 bits


class _Products(observing.Observer):
    """Counts eager convolutions and products by dtype."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    def seen(self, run: Any, operator: Any, inputs: Any, outputs: Any) -> None:
        if operator.type in _PRODUCTS and inputs[0] is not None:
            self.facts.products[inputs[0].dtype.name] += 1


def _count_compiled(facts: Facts) -> None:
    for program in executable.live_programs():
        for node in program.nodes:
            for part in node.parts or (node,):
                value = part.inputs[0] if part.inputs else None
                if value is not None and type_name(part.op, len(value.type.shape)) in _PRODUCTS:
                    facts.products[value.type.dtype.name] += 1


@contextmanager
def collecting(source: Path | None = None) -> Iterator[Facts]:
    """Watch the trainings in this block. `source`: the script, for what is read in its text."""

    class Plugin:
        @hookimpl
        def mycelia_callbacks(self, model: Any) -> list[Callback]:
            return [Collector(facts, model)]

    facts, plugin = Facts(source), Plugin()
    with ExitStack() as stack:
        plugins.manager().register(plugin)
        stack.callback(plugins.manager().unregister, plugin)
        told = lambda *names: facts.loads.append(names)
        into_net.listeners.append(told)
        stack.callback(into_net.listeners.remove, told)
        facts.calls = stack.enter_context(observing.watch_calls(_Products(facts)))
        stack.enter_context(Loop(facts, lambda: facts.at_work > 0 or facts.model is not None))
        try:
            yield facts
        finally:
            _count_compiled(facts)
