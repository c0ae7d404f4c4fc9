"""The operators that ran last, with their tensors: those of eager calls as they come, those of a compiled
function by running it once more, operator by operator, when it has failed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from mycelia.debug.statistics import Statistics, statistics
from mycelia.engine.base import log
from mycelia.engine.ir.walk import all_graphs
from mycelia.engine.observing import NOTHING, VALUES, Observer, Operator, Run, graphs
from mycelia.engine.tensors.tensor import Tensor

LENGTH = 64  # operators that are kept; their tensors live as long


class Seen(NamedTuple):
    """One operator that ran, or raised `error`."""

    iteration: int
    graph: str
    operator: Operator
    inputs: Sequence[Tensor | None]
    outputs: Sequence[Tensor]
    error: BaseException | None

    def tensors(self) -> Iterator[tuple[str, int, Tensor]]:
        """("input" or "output", slot, tensor)."""
        for io, given in (("input", self.inputs), ("output", self.outputs)):
            for slot, tensor in enumerate(given):
                if tensor is not None:
                    yield io, slot, tensor


class Bad(NamedTuple):
    """The first operator that went wrong: it raised, or made what is not finite of finite inputs."""

    seen: Seen
    slot: int
    reason: str

    def as_dict(self) -> dict[str, Any]:
        """As `first_bad.json` has it."""
        return {
            "step": self.seen.iteration,
            "graph": self.seen.graph,
            "operator": self.seen.operator.name,
            "type": self.seen.operator.type,
            "slot": self.slot,
            "reason": self.reason,
            "source": [f"{file}:{line}" for file, line, _ in self.seen.operator.stack],
        }


class LastOperators(Observer):
    """Keeps the last `LENGTH` operators that it is told of; `journal` hears of each before it runs."""

    def __init__(self, journal: Callable[[str], None]) -> None:
        self.ring: deque[Seen] = deque(maxlen=LENGTH)
        self.journal = journal
        self.note = ""  # why there are none of a compiled function
        self.repeats = False

    def wants(self, run: Run) -> int:
        if run.of.graph is None or self.repeats:
            return VALUES
        self.journal(f"step {run.iteration}: the compiled function {run.of.name}")
        return NOTHING

    def before(self, run: Run, operator: Operator, inputs: Sequence[Tensor | None]) -> None:
        types = ", ".join("none" if t is None else f"{t.dtype.name}{list(t.shape)}" for t in inputs)
        self.journal(f"step {run.iteration}: {operator.name}({types})")

    def seen(
        self, run: Run, operator: Operator, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
    ) -> None:
        self.ring.append(Seen(run.iteration, run.of.name, operator, inputs, outputs, None))

    def failed(
        self, run: Run, operator: Operator, inputs: Sequence[Tensor | None], error: BaseException
    ) -> None:
        self.ring.append(Seen(run.iteration, run.of.name, operator, inputs, (), error))

    def repeat(self, function: Any, tensors: Sequence[Tensor]) -> None:
        """See the operators of a compiled function that failed, by a run that changes nothing."""
        if function is None:
            self.note = "It was being compiled, so no operator of it ran."
            return
        graph = function.graph
        effects = {n.op.name for g in all_graphs(graph) for n in g.nodes if n.op.definition.effect}
        if effects:
            names = ", ".join(sorted(effects))
            self.note = f"Its operators were not run again, since {names} would act twice."
            return
        self.repeats = True
        try:
            run, _ = graphs.asks(graph, list(tensors), list(function.inputs))
            graphs.run_watched(run, [self], (), 0)
        except Exception as error:  # as it did before
            log.logger(__name__).info("the function fails again: %s", error)
        finally:
            self.repeats = False

    def kept(self) -> list[Seen]:
        """Those that are kept now: other threads may go on."""
        return list(self.ring)

    def first_bad(self) -> Bad | None:
        """Among those that are kept."""
        for seen in self.kept():
            if seen.error is not None:
                return Bad(seen, 0, f"{type(seen.error).__name__}: {seen.error}")
            if all(t is None or _kinds(statistics(t)) == [] for t in seen.inputs):
                for slot, tensor in enumerate(seen.outputs):
                    kinds = _kinds(statistics(tensor))
                    if kinds:
                        return Bad(seen, slot, " and ".join(kinds))
        return None


def _kinds(numbers: Statistics) -> list[str]:
    counts = ("nan", numbers.nan), ("inf", numbers.positive_inf), ("-inf", numbers.negative_inf)
    return [kind for kind, count in counts if count]
