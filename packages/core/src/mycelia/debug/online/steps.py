"""What a debugged training keeps: the values of its last steps, as aliases of what the run has anyway."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mycelia.debug.held import HeldMemory
from mycelia.debug.messages.graphs import Call
from mycelia.engine.observing import Operator
from mycelia.engine.tensors.tensor import Tensor

INPUT = "input:"  # in front of the number of a slot that a node reads


@dataclass(slots=True)
class GraphValues:
    """Of one graph in one step: the Parameters and arguments as they were before, the operators in order.

    `is_eager`: they are eager calls, whose program may be another one in each step; `is_cut`: memory was too
    short for some of them.
    """

    is_eager: bool = False
    is_cut: bool = False
    parameters: dict[str, Tensor] = field(default_factory=dict)
    calls: dict[str, Call] = field(default_factory=dict)  # of an operator that ran several times the last

    def find(self, name: str, slot: str) -> Tensor | None:
        """The tensor at ``"0"``, an output, or ``"input:0"``; None if there is none."""
        if not slot.removeprefix(INPUT).isdecimal():
            return None
        index = int(slot.removeprefix(INPUT))
        if name in self.parameters:
            return self.parameters[name] if slot == "0" else None
        if name not in self.calls:
            return None
        _, inputs, outputs = self.calls[name]
        tensors: Sequence[Tensor | None] = inputs if slot.startswith(INPUT) else outputs
        return tensors[index] if index < len(tensors) else None

    def lines(self, name: str) -> tuple:
        """What tells an eager operator from others of its name: the lines that called it."""
        return self.calls[name][0].stack if self.is_eager and name in self.calls else ()

    def names(self) -> list[str]:
        """Of all that makes something, in order."""
        return [*self.parameters, *self.calls]

    def outputs(self, name: str) -> list[Tensor]:
        """All that a node makes."""
        if name in self.parameters:
            return [self.parameters[name]]
        return list(self.calls[name][2]) if name in self.calls else []


Step = dict[int, GraphValues]  # by the number of the graph


class Steps(Mapping[int, Step]):
    """The last `count` steps by their iterations, within `most_bytes`: older steps go, and what a step has
    beyond that is not kept at all (`is_full`).
    """

    def __init__(self, count: int, most_bytes: int) -> None:
        self.count, self.most_bytes = count, most_bytes
        self.steps: dict[int, Step] = {}
        self.is_full = False
        self.memory = HeldMemory()  # of all that is kept

    @property
    def size_bytes(self) -> int:
        return self.memory.size_bytes

    def __getitem__(self, iteration: int) -> Step:
        return self.steps[iteration]

    def __iter__(self) -> Iterator[int]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def begin(self, iteration: int, graph: int, is_eager: bool = False) -> GraphValues:
        """A place for what a run of a graph has; the oldest steps go."""
        while len(self.steps) >= self.count + (iteration in self.steps):
            self._drop(next(iter(self.steps)))
        step, found = self.steps.setdefault(iteration, {}), GraphValues(is_eager)
        if graph in step:  # it runs again
            self._let_go(step[graph])
        step[graph] = found
        self.is_full = False
        return found

    def keep(self, iteration: int, tensors: Sequence[Tensor | None]) -> bool:
        """Whether there is room for these in this step; they count from now on."""
        self.memory.add(tensors)
        while self.memory.size_bytes > self.most_bytes and next(iter(self.steps)) != iteration:
            self._drop(next(iter(self.steps)))
        if self.memory.size_bytes > self.most_bytes:
            self.memory.remove(tensors)
            self.is_full = True
            return False
        return True

    def before(self, iteration: int, graph: int, name: str, slot: str, lines: tuple) -> Iterator[Tensor]:
        """A graph's tensor in the steps before `iteration` that ran it, the last first, up to one that lacks
        it. `lines`: those of an eager operator, whose steps may run other programs.
        """
        for step in sorted((i for i in self.steps if i < iteration), reverse=True):
            values = self.steps[step].get(graph)
            if values is None:
                continue
            found = values.find(name, slot) if values.lines(name) == lines else None
            if found is not None:
                yield found
            elif values.is_cut or not values.is_eager:
                return

    def add_parameter(self, iteration: int, values: GraphValues, name: str, tensor: Tensor) -> None:
        """Keep a Parameter or argument, if there is room."""
        if name in values.parameters:
            return
        if self.keep(iteration, [tensor]):
            values.parameters[name] = tensor
        else:
            values.is_cut = True

    def add_call(self, iteration: int, values: GraphValues, operator: Operator, call: Call) -> None:
        """Keep what an operator read and made, if there is room."""
        if not self.keep(iteration, [*call[1], *call[2]]):
            values.is_cut = True
        else:
            before = values.calls.get(operator.name)
            values.calls[operator.name] = call
            if before is not None:
                self.memory.remove([*before[1], *before[2]])

    def _drop(self, iteration: int) -> None:
        for values in self.steps.pop(iteration).values():
            self._let_go(values)

    def _let_go(self, values: GraphValues) -> None:
        self.memory.remove(values.parameters.values())
        for _, inputs, outputs in values.calls.values():
            self.memory.remove([*inputs, *outputs])
