"""What a debugged training keeps: the values of its last steps, as aliases of what the run has anyway."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mycelia.debug.held import HeldMemory
from mycelia.debug.messages.graphs import Call
from mycelia.engine.observing.observers import Watched
from mycelia.engine.tensors.tensor import Tensor

INPUT = "input:"  # in front of the number of a slot that a node reads


@dataclass(slots=True)
class GraphValues:
    """Of one graph in one step: the Parameters and arguments as they were before, the operators in order.

    `outline`: of eager calls all, in order, whether or not there was room for their values. `of`: what ran;
    `roles`: of Parameters, see `Run.roles`.
    """

    of: Watched | None = None
    roles: Mapping[str, str] = field(default_factory=dict)
    parameters: dict[str, Tensor] = field(default_factory=dict)
    calls: dict[str, Call] = field(default_factory=dict)  # of an operator that ran several times the last
    outline: list[Call] = field(default_factory=list)

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

    def begin(self, iteration: int, graph: int) -> GraphValues:
        """A place for what a run of a graph has; the oldest steps go."""
        while len(self.steps) >= self.count + (iteration in self.steps):
            self._drop(next(iter(self.steps)))
        step, found = self.steps.setdefault(iteration, {}), GraphValues()
        if graph in step:  # it runs again
            self._let_go(step[graph])
        step[graph] = found
        self.is_full = False
        return found

    def move(self, iteration: int, values: GraphValues, graph: int) -> None:
        """What a run has is of another graph than it was begun for, as eager calls show."""
        step = self.steps.get(iteration, {})
        before = next((number for number, one in step.items() if one is values), graph)
        if before != graph:
            if graph in step:
                self._let_go(step[graph])
            step[graph] = step.pop(before)

    def keep(self, iteration: int, tensors: Sequence[Tensor | None]) -> bool:
        """Whether there is room for these in this step; they count from now on."""
        self.memory.add(tensors)
        while self.memory.size_bytes > self.most_bytes and next(iter(self.steps), iteration) != iteration:
            self._drop(next(iter(self.steps)))
        if self.memory.size_bytes > self.most_bytes:
            self.memory.remove(tensors)
            self.is_full = True
            return False
        return True

    def before(self, iteration: int, graph: int, name: str, slot: str) -> Iterator[Tensor]:
        """A graph's tensor in the steps before `iteration` that ran it, the last first, up to one that lacks
        it.
        """
        for step in sorted((i for i in self.steps if i < iteration), reverse=True):
            values = self.steps[step].get(graph)
            if values is None:
                continue
            found = values.find(name, slot)
            if found is None:
                return
            yield found

    def add_parameter(self, iteration: int, values: GraphValues, name: str, tensor: Tensor) -> None:
        """Keep a Parameter or argument, if there is room."""
        if name in values.parameters:
            return
        if self.keep(iteration, [tensor]):
            values.parameters[name] = tensor

    def add_call(self, iteration: int, values: GraphValues, call: Call) -> bool:
        """Keep what an operator read and made, if there is room; whether there was."""
        operator, inputs, outputs = call
        if not self.keep(iteration, [*inputs, *outputs]):
            return False
        before = values.calls.get(operator.name)
        values.calls[operator.name] = call
        if before is not None:
            self.memory.remove([*before[1], *before[2]])
        return True

    def _drop(self, iteration: int) -> None:
        for values in self.steps.pop(iteration).values():
            self._let_go(values)

    def _let_go(self, values: GraphValues) -> None:
        self.memory.remove(values.parameters.values())
        for _, inputs, outputs in values.calls.values():
            self.memory.remove([*inputs, *outputs])
