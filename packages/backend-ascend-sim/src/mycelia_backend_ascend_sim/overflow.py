"""Overflow status: what a task leaves behind, sticky until it is read, and a record for the debug file.

The word has two bits, as the device's own: the AI core's (a result of a cube or vector instruction, R3 of
`arithmetic`) and that of atomic additions to memory.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import asdict, dataclass
from typing import Any

AI_CORE, ATOMIC_ADD = 1, 2  # bits of the status word
KINDS = {AI_CORE: "AI Core", ATOMIC_ADD: "Atomic Add", AI_CORE | ATOMIC_ADD: "AI Core and Atomic Add"}
KEPT = 1024  # records; the oldest go first


@dataclass(frozen=True, slots=True)
class OverflowRecord:
    """One task that overflowed: which, on which stream, its status, where its first such result lies."""

    op: str
    task_id: int
    stream_id: int
    status: int
    address: int
    slots: tuple[int, ...]  # of the results in which it showed

    @property
    def kind(self) -> str:
        """The status in words."""
        return KINDS[self.status]

    def as_dict(self) -> dict[str, Any]:
        """All of it, for a JSON file."""
        return {**asdict(self), "kind": self.kind}


class OverflowStatus:
    """The sticky word of a device and its records."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._word = 0
        self._records: deque[OverflowRecord] = deque(maxlen=KEPT)

    def add(self, record: OverflowRecord) -> None:
        """Note a task that overflowed."""
        with self._lock:
            self._word |= record.status
            self._records.append(record)

    def read(self) -> tuple[int, list[OverflowRecord]]:
        """The word and the records since they were last cleared."""
        with self._lock:
            return self._word, list(self._records)

    def read_and_clear(self) -> tuple[int, list[OverflowRecord]]:
        """As `read`; afterwards there are none. What comes meanwhile is in this answer or in the next."""
        with self._lock:
            found = self._word, list(self._records)
            self._word = 0
            self._records.clear()
        return found
