"""Short sums that are started and taken by one native call each (`native/src/direct_sums.cc`), by members
that all see one another's memory and boards, and have started such sums before.

The first ones go as `reducing.py` says. They use the memory that later ones use by turns, so that all have
opened it when these come. What an entry on a board says is the same in either way, so each member goes its
own; who does not find what it needs in time goes on as `reducing.py` says.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence

import numpy as np

from mycelia.engine import _C
from mycelia.engine.base.dtypes import as_dtype
from mycelia.engine.communication import reductions
from mycelia.engine.communication.board import Boards
from mycelia.engine.communication.recipes import Recipe
from mycelia.engine.communication.shared import Placed, Segment

_MOST_BYTES = 1 << 20  # of what is summed at once: the call is no longer what it costs
MOST = 16  # sums of different sizes; each keeps memory
ROOMS = 4  # used by turns: writing is slow where another core has just read
_LISTENS = 256  # what `start` adds where a member waits for messages
_LOOKS_S, _NAPS, _NAP_S = 1e-5, 5, 4e-3  # who comes wakes those who sleep; messages wait meanwhile


def is_possible(recipe: Recipe, dtype: np.dtype) -> bool:
    """Whether sums may go so: those of which each member adds all."""
    return (
        hasattr(_C, "DirectSums")
        and not recipe.cuts and not recipe.scatters and recipe.reduction == "sum"
        and dtype in reductions.NATIVE and recipe.count * dtype.itemsize < _MOST_BYTES
    )  # fmt: skip


class Direct:
    """The sums of one recipe. `members`: the others, in order of their ranks; `rank`: of this process."""

    def __init__(
        self, recipe: Recipe, dtype: np.dtype, boards: Boards, members: Sequence[int], rank: int
    ) -> None:
        """Errors: OSError if there is no memory."""
        assert boards.own is not None
        self.recipe, self._dtype = recipe, dtype
        self._places = {member: i for i, member in enumerate(members)}
        size = -(-recipe.count * dtype.itemsize // mmap.PAGESIZE) * mmap.PAGESIZE
        self._segments = [Segment(size) for _ in range(ROOMS)]
        self._shown: set[int] = set()  # that others have been told of
        self.rooms: list[int] = []  # that others have opened
        self.sums = _C.DirectSums(
            boards.own.memory, [boards.others[member].memory for member in members], rank, recipe.told,
            recipe.offsets, tuple(shape for *_, shape in recipe.results), recipe.count, as_dtype(dtype),
            recipe.divisor,
        )  # fmt: skip

    def array(self, room: int) -> np.ndarray:
        """The elements of this process in a room."""
        size = self.recipe.count * self._dtype.itemsize
        return self._segments[room].bytes[:size].view(self._dtype)

    def place(self, room: int) -> Placed:
        """Where they are."""
        segment = self._segments[room]
        return Placed(self._dtype, (self.recipe.count,), segment.number, segment.descriptor, segment.size, 0)

    def shown(self) -> tuple[int, np.ndarray, Placed, set[int]] | None:
        """A room that nobody knows yet, its elements, where these are, and to whom it is new; None if all
        were shown.
        """
        room = len(self._shown)
        if room == ROOMS:
            return None
        self._shown.add(room)
        return room, self.array(room), self.place(room), set(self._places)

    def opened(self, room: int, number: int) -> None:
        """All others have opened a room that was shown, for reduction `number`."""
        segment = self._segments[room]
        self.rooms.append(room)
        self.sums.room(segment.bytes, segment.number, segment.descriptor, segment.size, number)

    def learn(self, member: int, segment: int, memory: np.ndarray) -> None:
        """Memory of another member."""
        self.sums.knows(self._places[member], segment, memory)


class Directs:
    """Those of a group. `others`: the other members, `rank`: this one."""

    def __init__(self, boards: Boards, others: Sequence[int], rank: int) -> None:
        self._boards, self._others, self._rank = boards, others, rank
        self._ways: dict[tuple, Direct] = {}  # by what is known of the tensors of a call
        self._started: dict[int, tuple[Direct, int]] = {}  # and the rooms, as `sums` counts them

    def way(self, kind: tuple, recipe: Recipe, dtype: np.dtype) -> Direct | None:
        """By which sums of such tensors go; None if by none."""
        found, boards, others = self._ways.get(kind), self._boards, set(self._others)
        if found is not None or not is_possible(recipe, dtype) or len(self._ways) >= MOST:
            return found
        if boards.own is None or not (others <= boards.readers and others <= boards.others.keys()):
            return None
        try:
            self._ways[kind] = found = Direct(recipe, dtype, boards, self._others, self._rank)
        except OSError:
            return None
        return found

    def start(
        self, kind: tuple, number: int, ended: int, free: int, tensors: tuple[_C.Tensor, ...]
    ) -> tuple[Direct, bool] | None:
        """The way that these sums go, and whether a member waits for a message; None if they go another."""
        way = self._ways.get(kind)
        if way is None or len(way.rooms) < ROOMS:
            return None
        found = way.sums.start(number, ended, free, tensors)
        if found < 0:
            return None
        self._started[number] = way, found % _LISTENS
        return way, found >= _LISTENS

    def finish(self, number: int) -> tuple[int, tuple[_C.Tensor, ...]] | None:
        """How far all others have come, and the sums; None if they are not there soon, or go another way."""
        way, room = self._started.get(number, (None, 0))
        if way is None:
            return None
        found = way.sums.finish(number, room, _LOOKS_S, _NAPS, _NAP_S)
        if found is not None:
            del self._started[number]
        return found

    def take_back(self, number: int) -> tuple[Direct, np.ndarray, Placed] | None:
        """What was started goes another way from now on: its elements, and where they are; None if it did
        before.
        """
        way, index = self._started.pop(number, (None, 0))
        if way is None:
            return None
        room = way.rooms[index]
        return way, way.array(room), way.place(room)
