"""Steps in memory that are written only when there is trouble: the ring buffer of a dump.

Its size is that of the memory it keeps from being used again: blocks of tensors, each once however many
tensors lie in it, and the objects that tell of them. A block is as large as the tensor that fills it: what
it is rounded up by is memory that nobody has touched.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator

from mycelia.debug.dump.writer import Group, Step
from mycelia.engine.tensors.tensor import Tensor

_ROUNDED = 0.25  # part of a block that no tensor may need: there are four sizes per power of two


class Kept:
    """The last `most_steps` steps (None: any number) within `most_bytes` (0: any size).

    Where memory is short the oldest operators go, one by one, at last the first ones of the step that runs:
    `Step.lost` counts what a step lacks.
    """

    def __init__(self, most_steps: int | None, most_bytes: int) -> None:
        self.most_steps, self.most_bytes = most_steps, most_bytes
        self.steps: deque[Step] = deque()  # that have ended, the oldest first
        self.size_bytes = 0
        self._blocks: dict[int, list[int]] = {}  # address -> how often it is used, and its size

    def add(self, step: Step, group: Group) -> None:
        """Take one more operator of a step that runs."""
        step.groups.append(group)
        self._count(group, 1)
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
        step.lost += len(group.records)
        self._count(group, -1)

    def _forget(self, step: Step) -> None:
        while step.groups:
            self._count(step.groups.popleft(), -1)

    def _count(self, group: Group, sign: int) -> None:
        for record in group.records:
            self.size_bytes += sign * sum(map(sys.getsizeof, (record, record.stamp, record.tensor)))
        for tensor in _tensors(group):
            address, size = tensor._memory
            block = self._blocks.get(address)
            if block is None:
                rest = size - tensor.nbytes
                block = self._blocks[address] = [0, tensor.nbytes if rest <= size * _ROUNDED else size]
                self.size_bytes += block[1]
            block[0] += sign
            if not block[0]:
                self.size_bytes -= block[1]
                del self._blocks[address]


def _tensors(group: Group) -> Iterator[Tensor]:
    for record in group.records:
        yield record.tensor
    if group.call is not None:
        _, inputs, outputs = group.call
        yield from (t for t in (*inputs, *outputs) if t is not None)
