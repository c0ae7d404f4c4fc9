"""Short arrays that all members of a group exchange at once, through memory of one machine: each writes its
own into a slot of its memory, and reads those of the others. No message is sent where all come in time.

Who waits long tells those that are missing what it waits for by a message (`NOTICE`), so that members that
call something else find out, as they do from messages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mycelia.engine import _C
from mycelia.engine.communication import board, reductions
from mycelia.engine.communication.shared import Segment, open_segment

_LOOKS_S = 1e-4  # that is waited awake: longer than waking up takes, else each sleeps when the other comes
_NAP_S = 1e-3  # that is slept for one member, at most
NAPS = 3  # before others are told
_LONG_NAP_S = 2e-3  # that is slept between two looks for messages


def is_possible() -> bool:
    """Whether this machine has such memory."""
    return board.is_possible() and hasattr(_C, "exchange_short")


#: Bytes of an array, and of what is called in words, at most.
MOST_BYTES, MOST_TEXT = (_C.SHORT_DATA_BYTES, _C.SHORT_TEXT_BYTES) if is_possible() else (0, 0)


class Short:
    """The memories of the members of a group, this process's at `rank`."""

    def __init__(self, own: Segment, rank: int, others: dict[int, np.ndarray]) -> None:
        self._own, self._rank = own, rank
        self._memories = [others.get(i, own.bytes) for i in range(len(others) + 1)]
        self._views: dict[tuple, list[list[np.ndarray]]] = {}

    @classmethod
    def of(cls, rank: int, near: dict[int, int], gather: Callable[[object], Sequence]) -> Short | None:
        """For a group whose other members are the processes `near`, by member; None if one of them cannot see
        all. `gather` gives what all members told; all call this together.
        """
        own = None
        try:
            own = Segment(-(-_C.SHORT_BYTES // 4096) * 4096)
        except OSError:
            pass
        told = gather(None if own is None else (own.descriptor, own.size))
        others: dict[int, np.ndarray] = {}
        try:
            for member, process in near.items():
                if told[member] is not None:
                    others[member] = open_segment(process, *told[member])
        except OSError:
            others.clear()
        is_whole = own is not None and len(others) == len(near)
        if not all(gather(is_whole)) or own is None:
            return None
        return cls(own, rank, others)

    def exchange(self, number: int, what: bytes, array: np.ndarray) -> None | int | tuple:
        """None if all have come to exchange `number`, else a member that has not; or one that calls something
        else than `what`, and that.
        """
        return _C.exchange_short(self._memories, self._rank, number, what, array, _LOOKS_S, _NAP_S)

    def nap(self, number: int, what: bytes, array: np.ndarray) -> None | int | tuple:
        """As `exchange`, which was called before: asleep until a member comes, or for a while."""
        return _C.exchange_short(self._memories, self._rank, number, what, array, 0, _LONG_NAP_S)

    def combined(self, number: int, like: np.ndarray, reduction: str) -> np.ndarray:
        """What `exchange` was given by all members, combined: flat."""
        key = like.size, like.dtype
        views = self._views.get(key)
        if views is None:
            if len(self._views) > 16:
                self._views.clear()
            views = self._views[key] = [self._seen(turn, like) for turn in (0, 1)]
        parts = views[number % 2]
        if reduction in ("sum", "avg") and like.dtype in reductions.NATIVE:
            total = np.empty(like.size, like.dtype)
            _C.add_up(parts, len(parts) if reduction == "avg" else 1, total)
            return total
        return reductions.combine(parts, reduction)

    def _seen(self, turn: int, like: np.ndarray) -> list[np.ndarray]:
        begin = (turn + 1) * _C.SHORT_SLOT_BYTES - MOST_BYTES
        return [memory[begin : begin + like.nbytes].view(like.dtype) for memory in self._memories]
