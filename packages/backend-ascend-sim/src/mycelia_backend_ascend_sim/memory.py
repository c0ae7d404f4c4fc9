"""The device's memory: blocks by address, and what of them lies in a layout of the device's own.

Addresses are numbers that no processor of a host maps, so that a host which reads there is stopped. What a
cube reads or writes lies in its layout (`formats`); the plain bytes of that place are out of date then, and
are made the first time that somebody asks for them.
"""

from __future__ import annotations

import bisect

import numpy as np

from mycelia.io.device_formats import Formatted

FIRST = 1 << 55
ALIGNMENT = 512  # bytes, as the device's allocator


class Block:
    """Bytes from `address` on. `formatted` holds parts in the device's layouts, by address: (part, size of
    its plain bytes, whether these are up to date)."""

    __slots__ = ("address", "content", "formatted")

    def __init__(self, address: int, size: int) -> None:
        self.address = address
        self.content = np.empty(size, np.uint8)
        self.formatted: dict[int, tuple[Formatted, int, bool]] = {}


class Memory:
    """Blocks of at most `capacity` bytes in all."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.used = 0
        self.converted = 0  # how many tensors were brought back from a layout of the device
        self.next = FIRST
        self.addresses: list[int] = []
        self.blocks: dict[int, Block] = {}

    def allocate(self, size: int) -> int:
        """The address of a new block; none is given twice. Raises MemoryError."""
        if self.used + size > self.capacity:
            raise MemoryError(
                f"{size} bytes are asked for, but of the device's {self.capacity} bytes {self.used} are taken"
            )
        address = self.next
        block = Block(address, size)  # may raise: nothing has changed yet
        self.next += -(-size // ALIGNMENT) * ALIGNMENT
        self.addresses.append(address)
        self.blocks[address] = block
        self.used += size
        return address

    def free(self, address: int) -> None:
        """Forget a block. Raises KeyError if none begins at this address."""
        self.used -= self.blocks.pop(address).content.size
        del self.addresses[bisect.bisect_left(self.addresses, address)]

    def _block(self, address: int, size: int) -> Block:
        place = bisect.bisect_right(self.addresses, address) - 1
        block = self.blocks[self.addresses[place]] if place >= 0 else None
        if block is None or address + size > block.address + block.content.size:
            raise IndexError(f"{size} bytes at {address:#x} are not within a block of the device")
        return block

    def read(self, address: int, size: int) -> np.ndarray:
        """The plain bytes there; not to be written. Raises IndexError outside of blocks."""
        block = self._block(address, size)
        for start, (part, length, fresh) in list(block.formatted.items()):
            if not fresh and start < address + size and address < start + length:
                offset = start - block.address
                block.content[offset : offset + length] = part.plain().reshape(-1).view(np.uint8)
                block.formatted[start] = part, length, True
                self.converted += 1
        offset = address - block.address
        return block.content[offset : offset + size]

    def to_write(self, address: int, size: int) -> np.ndarray:
        """The plain bytes there, all of which the caller writes. Raises IndexError outside of blocks."""
        block = self._block(address, size)
        self._overwrite(block, address, size)
        offset = address - block.address
        return block.content[offset : offset + size]

    def _overwrite(self, block: Block, address: int, size: int) -> None:
        for start, (_, length, fresh) in list(block.formatted.items()):
            if start < address + size and address < start + length:
                if not fresh and not (address <= start and start + length <= address + size):
                    self.read(start, length)  # a part of it stays
                del block.formatted[start]

    def put(self, address: int, size: int, part: Formatted) -> None:
        """Let `part` lie there in its layout, in place of `size` plain bytes."""
        block = self._block(address, size)
        self._overwrite(block, address, size)
        if size:
            block.formatted[address] = part, size, False

    def formatted(self, address: int, shape: tuple[int, ...], size: int) -> Formatted | None:
        """What lies there in a layout of the device's own, if that is a tensor of this shape and size."""
        found = self._block(address, size).formatted.get(address)
        return found[0] if found and found[1] == size and found[0].shape == shape else None
