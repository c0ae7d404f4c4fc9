"""Steps in memory that are written only when there is trouble: the ring buffer of a dump.

Its size is that of the memory it keeps from being used again (`HeldMemory`), and of the objects that tell of
it.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Iterator

from mycelia.debug.dump.groups import Group, Step
from mycelia.debug.held import HeldMemory
from mycelia.engine.tensors.tensor import Tensor


class Kept:
    """The last `most_steps` steps (None: any number) within `most_bytes` (0: any size).

    Where memory is short the oldest operators go, one by one, at last the first ones of the step that runs:
    `Step.lost` counts what a step lacks.
    """

    def __init__(self, most_steps: int | None, most_bytes: int) -> None:
        self.most_steps, self.most_bytes = most_steps, most_bytes
        self.steps: deque[Step] = deque()  # that have ended, the oldest first
        self.memory = HeldMemory()
        self.object_bytes = 0

    @property
    def size_bytes(self) -> int:
        return self.memory.size_bytes + self.object_bytes

    def add(self, step: Step, group: Group) -> None:
        """Take one more operator of a step that runs."""
        step.groups.append(group)
        self._count(group)
        while self.most_bytes and self.size_bytes > self.most_bytes:
            self._drop_first(step)

    def end(self, step: Step) -> None:
        """`step` has ended."""
        self.steps.append(step)
        while self.most_steps is not None and len(self.steps) > self.most_steps:
            self._forget(self.steps.popleft())

    def clear(self) -> None:
        for _ in self.take():
            pass

    def take(self) -> Iterator[Step]:
        """The steps that have ended, the oldest first; each is forgotten when the next one is asked for."""
        while self.steps:
            step = self.steps.popleft()
            yield step
            self._forget(step)

    def _drop_first(self, running: Step) -> None:
        while self.steps and not self.steps[0].groups:
            self.steps.popleft()
        step = self.steps[0] if self.steps else running
        group = step.groups.popleft()
        step.lost += len(group.tensors)
        self._discount(group)

    def _forget(self, step: Step) -> None:
        while step.groups:
            self._discount(step.groups.popleft())

    def _count(self, group: Group) -> None:
        self.object_bytes += _objects(group)
        for tensors in _held(group):
            self.memory.add(tensors)

    def _discount(self, group: Group) -> None:
        self.object_bytes -= _objects(group)
        for tensors in _held(group):
            self.memory.remove(tensors)


def _objects(group: Group) -> int:
    """Bytes of the objects that a group is made of."""
    parts = (group, group.stamp, group.inputs, group.outputs, *group.tensors)
    return sum(map(sys.getsizeof, parts))


def _held(group: Group) -> Iterator[Iterable[Tensor | None]]:
    yield group.tensors
    if group.call is not None:
        yield from group.call[1:]
