"""Short messages between processes that share memory: a place where each writes what the others look for.

Whoever looks often enough needs no system call; who waits long says on its own board what for (`Board.say`),
and is woken. What one core writes must be seen by others in that order, as it is on x86.
"""

from __future__ import annotations

import platform
import struct
import threading
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from mycelia.engine import _C
from mycelia.engine.communication.shared import Placed, Segment, open_segment

#: Entries that stand at a time: entry k is written over by entry k + TURNS.
TURNS = 64  # as in native/src/direct_sums.cc, and so are sizes and words
_LINE = 512  # bytes of an entry: words of 8 bytes, and the text
_TEXT = 64
#: Behind the number: ended, segment, descriptor, size, offset, elements, length of the text.
_FIELDS = struct.Struct("=7q")
SIZE = (TURNS + 1) * _LINE  # the last line: what its owner waits for
#: What the owner of a board waits for: nothing, that an entry of others is written, or messages.
NOTHING, ENTRIES, MESSAGES = range(3)
_fence = threading.Lock()


def is_possible() -> bool:
    """Whether memory is seen by others in the order in which it is written."""
    return platform.machine().lower() in ("x86_64", "amd64")


class Entry(NamedTuple):
    """What was written for a number: how far its writer has come, where its elements lie, and the call."""

    ended: int
    place: tuple[int, int, int, int]  # segment, descriptor, size, offset
    elements: int
    what: bytes


class Board:
    """One process's entries for a group, its own or another's."""

    def __init__(self, memory: Segment | np.ndarray) -> None:
        self._owner = memory  # a segment is there for others as long as it is held
        self.memory = memory.bytes if isinstance(memory, Segment) else memory
        raw = memoryview(self.memory)[:SIZE]
        self._bytes, self._words = raw.cast("B"), raw.cast("B").cast("q")

    @classmethod
    def of(cls, process: int, place: Placed) -> Board:
        """Another process's. Errors: OSError if it has ended."""
        return cls(open_segment(process, place.descriptor, place.size))

    def write(self, number: int, ended: int, place: Placed, elements: int, what: bytes) -> bool:
        """Whether the entry has room for its text."""
        if len(what) > _LINE - _TEXT:
            return False
        line = number % TURNS * _LINE
        self._words[line >> 3] = -1
        fields = (ended, place.segment, place.descriptor, place.size, place.offset, elements, len(what))
        _FIELDS.pack_into(self._bytes, line + 8, *fields)
        self._bytes[line + _TEXT : line + _TEXT + len(what)] = what
        self._words[line >> 3] = number + 1  # memory begins with zeros
        return True

    def read(self, number: int) -> Entry | None:
        line = number % TURNS * _LINE
        if self._words[line >> 3] != number + 1:
            return None
        ended, *place, elements, length = _FIELDS.unpack_from(self._bytes, line + 8)
        what = self._bytes[line + _TEXT : line + _TEXT + length].tobytes()
        return Entry(ended, tuple(place), elements, what)

    def wait(self, number: int, looks_s: float, sleeps_s: float) -> bool:
        """Whether its owner has written the entry: it is looked at all the time first, then slept until it
        changes. Who sleeps must say so before (`say`), and look again.
        """
        line = number % TURNS * _LINE
        return _C.await_word(self.memory, line, (number + 1) & 0xFFFFFFFF, looks_s, sleeps_s)

    def wake(self, number: int) -> None:
        """Those go on who wait for this entry."""
        _C.wake_word(self.memory, number % TURNS * _LINE)

    @property
    def said(self) -> int:
        """What its owner waits for; asked after `see`."""
        return self._words[TURNS * _LINE >> 3]

    def say(self, what: int) -> None:
        """Its owner says what it waits for; afterwards it looks once more before it sleeps."""
        self._words[TURNS * _LINE >> 3] = what
        see()


def see() -> None:
    """What was written before is seen before what is read afterwards."""
    with _fence:
        pass


class Boards:
    """The own board of a member of a group, and those of the others, by member, as far as they are known.

    A member reads another's board when it has been told of it, and writes for one that has said so.
    """

    def __init__(self, processes: Mapping[int, int]) -> None:
        self._processes = dict(processes)
        self.own: Board | None = None
        self.place: Placed | None = None
        self.others: dict[int, Board] = {}
        self.readers: set[int] = set()
        if processes and is_possible():
            try:
                segment = Segment(-(-SIZE // 4096) * 4096)
            except OSError:
                return
            self.own = Board(segment)
            here = segment.number, segment.descriptor, segment.size, 0
            self.place = Placed(np.dtype(np.uint8), (SIZE,), *here)

    def open(self, member: int, place: Placed) -> bool:
        """Whether the board of a member can be seen from now on."""
        try:
            self.others[member] = Board.of(self._processes[member], place)
        except (OSError, KeyError):
            return False
        return True
