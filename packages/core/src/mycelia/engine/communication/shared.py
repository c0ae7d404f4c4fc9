"""Memory that processes of one machine share, for arrays of collectives: written once, read where it is.

A segment is memory without a name in any file system. Others of the same user open it by way of its owner's
``/proc/PID/fd`` (Linux), so nothing is left behind whoever ends, and however. Elsewhere, and between
processes that do not see each other so (other machines, other PID namespaces), sockets carry the bytes.
"""

from __future__ import annotations

import itertools
import mmap
import os
import secrets
import weakref
from collections.abc import Iterable, Mapping, Sequence, Sized
from typing import NamedTuple

import numpy as np

#: Arrays above this size go by shared memory: below a copy through a socket is as quick.
LEAST_BYTES = 32 << 10
#: What a collective may put there; more goes through sockets, for the memory is kept for the next one.
MOST_BYTES = 512 << 20
_NAME = "mycelia-collective"
ALIGNMENT = 64  # bytes: a line of the cache


class Placed(NamedTuple):
    """An array that lies in its sender's shared memory: the segment's number, its file descriptor there, its
    size, and where the array begins, in bytes.
    """

    dtype: np.dtype
    shape: tuple[int, ...]
    segment: int
    descriptor: int
    size: int
    offset: int


class Segment:
    """Memory of this process that others can read. Errors: OSError if there is none to be had."""

    _numbers = itertools.count(1)

    def __init__(self, size: int) -> None:
        self.number, self.size = next(self._numbers), size
        self.known_to: set[int] = set()  # members that have opened it
        self.descriptor = os.memfd_create(_NAME, os.MFD_CLOEXEC)
        self._close = weakref.finalize(self, os.close, self.descriptor)
        os.posix_fallocate(self.descriptor, 0, size)  # here, where it is an error, and not a signal later
        self.bytes = np.frombuffer(mmap.mmap(self.descriptor, size), np.uint8)


def open_segment(pid: int, descriptor: int, size: int) -> np.ndarray:
    """The bytes of another process's segment, to be read. Errors: OSError if this process cannot see it."""
    path = f"/proc/{pid}/fd/{descriptor}"
    # On another machine the path may lead to anything, which opening could change or wait for.
    if not os.readlink(path).startswith(f"/memfd:{_NAME}"):
        raise OSError(f"{path} is no segment")
    opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if os.fstat(opened).st_size < size:
            raise OSError(f"{path} is smaller than {size} bytes")
        return np.frombuffer(mmap.mmap(opened, size, prot=mmap.PROT_READ), np.uint8)
    finally:
        os.close(opened)


class Proof:
    """How two processes find out whether they see one another's memory: by a secret in a segment."""

    _BYTES = 16

    def __init__(self) -> None:
        self._segment: Segment | None = None
        self._secret = secrets.token_bytes(self._BYTES)
        if hasattr(os, "memfd_create"):
            try:
                self._segment = Segment(self._BYTES)
                self._segment.bytes[:] = np.frombuffer(self._secret, np.uint8)
            except OSError:
                self._segment = None

    def told(self) -> dict[str, object]:
        """What the other process gets to know; empty where there is no such memory."""
        if self._segment is None:
            return {}
        return {"pid": os.getpid(), "descriptor": self._segment.descriptor, "secret": self._secret.hex()}

    @classmethod
    def sees(cls, told: Mapping[str, object]) -> bool:
        """Whether this process sees the memory of the one that `told` comes from."""
        try:
            found = open_segment(int(told["pid"]), int(told["descriptor"]), cls._BYTES)
            return found.tobytes().hex() == told["secret"]
        except (OSError, KeyError, TypeError, ValueError):
            return False


class Shelf:
    """Where a member of a group lays what others of the machine take in an exchange.

    Whoever gets to know a segment opens it and says so, before which its owner does not go on: an open one
    outlives its owner.

    Two segments by turns. What was laid down in exchange i may be overwritten in exchange i + 2: whoever has
    come to exchange i + 1 has taken all of exchange i, and i + 2 begins when all have come to i + 1.
    """

    def __init__(self, processes: Mapping[int, int]) -> None:
        """`processes`: the number of the process of each member that sees this one's memory."""
        self.processes = dict(processes)
        self._own: list[Segment | None] = [None, None]
        self._others: dict[tuple[int, int], tuple[int, np.ndarray]] = {}

    def lay(self, exchange: int, arrays: Sequence[np.ndarray]) -> list[Placed] | None:
        """Copies arrays; where they are. None if there is no memory for so much."""
        offsets, end = [], 0
        for array in arrays:
            offsets.append(end)
            end += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
        segment = self._room(exchange % 2, end)
        if segment is None:
            return None
        for array, offset in zip(arrays, offsets, strict=True):
            place = segment.bytes[offset : offset + array.nbytes]
            place.view(array.dtype).reshape(array.shape)[...] = array
        return [
            Placed(array.dtype, array.shape, segment.number, segment.descriptor, segment.size, offset)
            for array, offset in zip(arrays, offsets, strict=True)
        ]

    def new_to(self, exchange: int, members: Iterable[int]) -> set[int]:
        """Which of the members, who get something in this exchange, open the segment for it."""
        segment = self._own[exchange % 2]
        assert segment is not None  # by `lay`
        new = set(members) - segment.known_to
        segment.known_to |= new
        return new

    def give_up(self) -> None:
        """An exchange has failed: others may still read there when this member begins something else."""
        self._own = [None, None]

    def _room(self, turn: int, size: int) -> Segment | None:
        segment = self._own[turn]
        if segment is not None and segment.size >= size:
            return segment
        if size > MOST_BYTES:
            return None
        self._own[turn] = None  # its memory first
        try:
            self._own[turn] = Segment(-(-size // mmap.PAGESIZE) * mmap.PAGESIZE)
        except OSError:
            return None
        return self._own[turn]

    def take(self, exchange: int, member: int, place: Placed) -> tuple[np.ndarray, bool]:
        """What a member has laid down, to be read before this one comes to the next exchange, and whether
        the segment was opened for it.

        Errors: OSError if the member's process has ended.
        """
        number, found = self._others.get((member, exchange % 2), (0, None))
        is_new = found is None or number != place.segment
        if is_new:
            found = open_segment(self.processes[member], place.descriptor, place.size)
            self._others[member, exchange % 2] = place.segment, found
        size = int(np.prod(place.shape, dtype=np.int64)) * place.dtype.itemsize
        return found[place.offset : place.offset + size].view(place.dtype).reshape(place.shape), is_new


#: Of memory below a size a few are used by turns: writing is slow where another core has just read.
_SMALL_BYTES, _TURNS = 1 << 20, 4


class _Kept:
    """Memory, and the number of the last reduction that it was for."""

    __slots__ = ("memory", "last", "_seen", "_as")

    def __init__(self, memory: Segment | np.ndarray, last: int) -> None:
        self.memory, self.last = memory, last
        self._seen: np.ndarray | None = None
        self._as: tuple[int, int, np.dtype] | None = None

    def array(self, offset: int, count: int, dtype: np.dtype) -> np.ndarray:
        """`count` elements from that byte on."""
        if self._seen is None or self._as != (offset, count, dtype):
            memory = self.memory.bytes if isinstance(self.memory, Segment) else self.memory
            self._as = offset, count, dtype
            self._seen = memory[offset : offset + count * dtype.itemsize].view(dtype)
        return self._seen


class Pool:
    """Where a member of a group lays what it starts to reduce, and what it sees of the others' pools.

    Several reductions are on their way at a time, so each has a segment of its own until nobody reads it any
    more. `processes`: as of a `Shelf`.
    """

    def __init__(self, processes: Mapping[int, int]) -> None:
        self._processes = dict(processes)
        self._own: list[_Kept] = []
        self._others: dict[tuple[int, int], _Kept] = {}

    def room(
        self, number: int, free: int, dtype: np.dtype, count: int
    ) -> tuple[np.ndarray, Placed, set[int]] | None:
        """Memory for `count` elements of reduction `number`, where it is, and to whom it is new. That of
        reductions below `free` may be written again. None if there is no memory for so much.
        """
        size = count * dtype.itemsize
        oldest = self._own[0] if len(self._own) == _TURNS else None
        if (
            oldest is not None and size < _SMALL_BYTES and oldest.last < free
            and oldest.memory.size == -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        ):  # fmt: skip
            self._own.append(self._own.pop(0))
            return self._given(oldest, number, dtype, count)
        fitting = [kept for kept in self._own if kept.last < free and kept.memory.size >= size]
        if len(fitting) < (_TURNS if size < _SMALL_BYTES else 1):
            fitting = []
        best = min(fitting, key=lambda kept: (kept.memory.size, kept.last), default=None)
        old = number - _unused_for(self._own)
        self._own = [kept for kept in self._own if kept is best or kept.last >= min(free, old)]
        if best is None:
            if size > MOST_BYTES:
                return None
            try:
                best = _Kept(Segment(-(-size // mmap.PAGESIZE) * mmap.PAGESIZE), number)
            except OSError:
                return None
            self._own.append(best)
        return self._given(best, number, dtype, count)

    def _given(
        self, kept: _Kept, number: int, dtype: np.dtype, count: int
    ) -> tuple[np.ndarray, Placed, set[int]]:
        kept.last, segment = number, kept.memory
        new = self._processes.keys() - segment.known_to
        if new:
            segment.known_to |= new
        place = Placed(dtype, (count,), segment.number, segment.descriptor, segment.size, 0)
        return kept.array(0, count, dtype), place, new

    def take(self, number: int, member: int, place: Placed) -> tuple[np.ndarray, bool]:
        """What a member has laid down for reduction `number`, and whether its segment was opened for it.

        Errors: OSError if the member's process has ended.
        """
        kept = self._others.get((member, place.segment))
        is_new = kept is None
        if kept is None:
            old = number - _unused_for(self._others)
            self._others = {key: one for key, one in self._others.items() if one.last >= old}
            opened = open_segment(self._processes[member], place.descriptor, place.size)
            kept = self._others[member, place.segment] = _Kept(opened, number)
        kept.last = number
        return kept.array(place.offset, place.shape[0], place.dtype), is_new

    def memory(self, member: int, segment: int) -> np.ndarray:
        """The bytes of a segment that a member has laid something into, which was taken."""
        memory = self._others[member, segment].memory
        assert isinstance(memory, np.ndarray)
        return memory


def _unused_for(kept: Sized) -> int:
    """After how many reductions memory is let go that none of them has used."""
    return max(64, 4 * len(kept))
