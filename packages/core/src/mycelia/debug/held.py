"""How much memory tensors keep from being used again, where a bound is set to it: the ring buffer of a dump,
the last steps of a debugged training.

Blocks of memory count once, however many tensors lie in them. A block is as large as the tensor that fills
it: what it is rounded up by is memory that nobody has touched.
"""

from __future__ import annotations

from collections.abc import Iterable

from mycelia.engine.tensors.tensor import Tensor

_ROUNDED = 0.25  # part of a block that no tensor may need: there are four sizes per power of two


class HeldMemory:
    """The blocks of all tensors that were added, and not removed as often; None is no tensor."""

    def __init__(self) -> None:
        self.size_bytes = 0
        self._blocks: dict[int, list[int]] = {}  # address -> how often it is used, and its size

    def add(self, tensors: Iterable[Tensor | None]) -> None:
        for tensor in tensors:
            if tensor is None:
                continue
            address, size = tensor._memory
            block = self._blocks.get(address)
            if block is None:
                rest = size - tensor.nbytes
                block = self._blocks[address] = [0, tensor.nbytes if rest <= size * _ROUNDED else size]
                self.size_bytes += block[1]
            block[0] += 1

    def remove(self, tensors: Iterable[Tensor | None]) -> None:
        for tensor in tensors:
            if tensor is None:
                continue
            address, _ = tensor._memory
            block = self._blocks[address]
            block[0] -= 1
            if not block[0]:
                self.size_bytes -= block[1]
                del self._blocks[address]
