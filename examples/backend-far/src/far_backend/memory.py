"""The memory of the device: blocks that kernels reach by their addresses, and nobody else.

The addresses lie in a mapping without any rights: a program of the host that reads or writes there ends at
once. What the blocks hold lies elsewhere. Fresh memory is full of rubbish, and what was freed is gone.
"""

from __future__ import annotations

import bisect
import mmap

import numpy as np

SPACE = 1 << 36  # bytes of addresses; they cost nothing
RUBBISH = 0xA5
ALIGNMENT = 64


class Memory:
    """Blocks by address."""

    def __init__(self) -> None:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
        self.mapping = mmap.mmap(-1, SPACE, flags=flags, prot=0)
        self.start = np.frombuffer(self.mapping, np.uint8).__array_interface__["data"][0]
        self.next = self.start
        self.addresses: list[int] = []  # of the blocks, in order
        self.blocks: dict[int, np.ndarray] = {}

    def allocate(self, size: int) -> int:
        """The address of a new block; no address is given twice. Raises MemoryError."""
        address, self.next = self.next, self.next + -(-size // ALIGNMENT) * ALIGNMENT
        if self.next > self.start + SPACE:
            raise MemoryError(f"the far device has no {size} bytes")
        self.addresses.append(address)  # it is the highest
        self.blocks[address] = np.full(size, RUBBISH, np.uint8)
        return address

    def free(self, address: int) -> None:
        """Forget a block. Raises KeyError if there is none at this address."""
        del self.blocks[address]
        del self.addresses[bisect.bisect_left(self.addresses, address)]

    def bytes_at(self, address: int, size: int) -> np.ndarray:
        """The bytes of a part of one block. Raises IndexError if it is not within one."""
        place = bisect.bisect_right(self.addresses, address) - 1
        block = self.blocks[self.addresses[place]] if place >= 0 else np.empty(0, np.uint8)
        offset = address - self.addresses[place] if place >= 0 else 0
        if offset + size > block.size:
            raise IndexError(f"{size} bytes at {address:#x} are not within a block of the far device")
        return block[offset : offset + size]
