"""Rows of one cache: in memory that clients on the same host map, and on disk what finds no room there.

A row gets its place (`reserve`), is written by whoever has it, and is published (`commit`). Rows never move
and are never replaced while the cache lives; only the places of writers that died are used again.
"""

from __future__ import annotations

import contextlib
import enum
import itertools
import mmap
import os
import threading
import zlib
from dataclasses import dataclass

import numpy as np

from mycelia_cache import index as table
from mycelia_cache import rows as form
from mycelia_cache.index import Index
from mycelia_cache.memory import Budget
from mycelia_cache.protocol import Code, Refused
from mycelia_cache.spill import Holes, SpillFile

_STEP = 16 << 20  # bytes that memory grows by at most beyond what is needed


class Place(enum.IntEnum):
    """What became of a wish to store a row."""

    THERE = 0  # it is stored, or somebody is about to
    MEMORY = 1
    DISK = 2
    FULL = 3


@dataclass(slots=True)
class Ticket:
    """Rows whose writer has not said yet that they are written."""

    client: int
    rows: np.ndarray
    places: np.ndarray
    offsets: np.ndarray
    lengths: np.ndarray


class Store:
    """Memory and disk of one cache. `limit`: bytes of memory for rows and table, 0 for no own limit.

    With a spill file the table lies on its disk: it grows with the rows there, long after memory is full.
    """

    def __init__(self, budget: Budget, limit: int = 0, spill: SpillFile | None = None):
        self._budget, self.limit, self.spill = budget, limit, spill
        self._lock = threading.RLock()
        self._tickets: dict[int, Ticket] = {}
        self._numbers = itertools.count(1)
        self._holes = Holes()  # what dead writers left
        self._end = self._allocated = 0
        self.rows_in_memory = self.rows_on_disk = self.row_bytes = 0
        self.min_row = self.max_row = -1
        self.out_of_memory = self.out_of_disk = False
        self.closed = False
        self.index = Index(None if spill is None else spill.directory)
        self._table_budget = budget if spill is None else spill.quota
        if not self._table_budget.take(self.index.bytes) or (limit and self._table_in_memory > limit):
            raise Refused(Code.BAD_REQUEST, "there is no room for another cache")
        # The whole range is mapped once, by everyone; pages are there only as far as they were allocated.
        self.data_bytes = -(-min(limit or budget.cap, budget.cap) // mmap.PAGESIZE) * mmap.PAGESIZE
        self.data_fd = os.memfd_create("mycelia-cache-rows", os.MFD_CLOEXEC)
        os.ftruncate(self.data_fd, self.data_bytes)
        self._memory = mmap.mmap(self.data_fd, self.data_bytes, mmap.MAP_SHARED, mmap.PROT_READ)
        self._data = np.frombuffer(self._memory, np.uint8)

    # ---- memory ------------------------------------------------------------------------------------------

    @property
    def bytes_in_memory(self) -> int:
        """Rows, and the table if it is there."""
        return self._end + self._table_in_memory

    @property
    def bytes_on_disk(self) -> int:
        """Bytes of the spill file that rows have, and the table."""
        return 0 if self.spill is None else self.spill._end + self.index.bytes

    @property
    def _table_in_memory(self) -> int:
        return self.index.bytes if self.spill is None else 0

    @property
    def room(self) -> int:
        """Bytes of a row that would still find a place."""
        disk = 0 if self.spill is None else self.spill.room
        return max(self._memory_room(), disk)

    def _memory_room(self) -> int:
        left = self._budget.free + self._allocated - self._end
        if self.limit:
            left = min(left, self.limit - self._table_in_memory - self._end)
        return max(0, min(left, self.data_bytes - self._end))

    def _grow_index(self, rows: int) -> bool:
        more = self.index.bytes_for(rows) - self.index.bytes
        if more <= 0:
            return True
        if self.spill is None and self.limit and self._allocated + self.index.bytes + more > self.limit:
            return False
        if not self._table_budget.take(more):
            return False
        try:
            self.index.grow(rows)
        except ValueError as e:
            self._table_budget.give_back(more)
            raise Refused(Code.BAD_REQUEST, str(e)) from None
        except OSError:
            self._table_budget.give_back(more)
            return False
        return True

    def _ensure(self, end: int) -> bool:
        """Whether memory reaches up to `end`."""
        short = end - self._allocated
        if short <= 0:
            return True
        most = self.data_bytes if not self.limit else min(self.data_bytes, self.limit - self._table_in_memory)
        wish = max(short, min(_STEP, max(self._allocated // 4, 64 << 10)))
        for step in (min(wish, most - self._allocated), short):
            if step < short or self._allocated + step > most or not self._budget.take(step):
                continue
            try:
                os.posix_fallocate(self.data_fd, self._allocated, step)
            except OSError:  # the machine has less than the budget says
                self._budget.give_back(step)
                continue
            self._allocated += step
            return True
        return False

    def _memory_for(self, size: int) -> int | None:
        at = self._holes.take(size)
        if at is None and self._ensure(self._end + size):
            at, self._end = self._end, self._end + size
        return at

    def _free(self, at: int, size: int) -> None:
        if at + size == self._end:
            self._end = at
        else:
            self._holes.add(at, size)

    # ---- storing -----------------------------------------------------------------------------------------

    def reserve(self, client: int, rows: np.ndarray, lengths: np.ndarray):
        """Places for rows: (ticket, Place of each, offset of each)."""
        count = len(rows)
        if len(lengths) != count or (rows < 0).any() or (lengths == 0).any() or (lengths % 8).any():
            raise Refused(Code.BAD_REQUEST, "rows need numbers of at least 0 and lengths in steps of 8")
        places = np.full(count, Place.FULL, np.uint8)
        offsets = np.zeros(count, np.uint64)
        with self._lock:
            self._alive()
            if not count:
                return 0, places, offsets
            if not self._grow_index(int(rows.max()) + 1):
                self.out_of_memory = True
                self.out_of_disk = self.spill is not None
                known = rows < self.index.slots
            else:
                known = np.ones(count, bool)
            wanted = np.zeros(count, bool)
            wanted[np.unique(rows, return_index=True)[1]] = True
            states = np.full(count, table.EMPTY, np.uint32)
            states[known] = self.index.entries["state"][rows[known]]
            places[(states != table.EMPTY) | ~wanted] = Place.THERE
            todo = np.flatnonzero((places == Place.FULL) & known)
            self._place(todo, lengths, places, offsets)
            given = (places == Place.MEMORY) | (places == Place.DISK)
            if not given.any():
                return 0, places, offsets
            number = next(self._numbers)
            mine = rows[given]
            self.index.entries["ticket"][mine] = number
            self.index.entries["state"][mine] = table.PENDING
            self._tickets[number] = Ticket(client, mine, places[given], offsets[given], lengths[given])
            return number, places, offsets

    def _place(self, todo: np.ndarray, lengths, places, offsets) -> None:
        """Places for the rows `todo`: all side by side if they fit, else each for itself."""
        if not len(todo):
            return
        sizes = lengths[todo].astype(np.int64)
        start = self._memory_for(int(sizes.sum())) if int(sizes.sum()) <= self._memory_room() else None
        if start is not None:
            places[todo] = Place.MEMORY
            offsets[todo] = start + np.cumsum(sizes) - sizes
            return
        for i, size in zip(todo.tolist(), sizes.tolist()):
            at = self._memory_for(size) if size <= self._memory_room() or self._holes else None
            if at is not None:
                places[i], offsets[i] = Place.MEMORY, at
                continue
            self.out_of_memory = True
            at = None if self.spill is None else self.spill.reserve(int(lengths[i]))
            if at is not None:
                places[i], offsets[i] = Place.DISK, at
            elif self.spill is not None:
                self.out_of_disk = True

    def commit(self, client: int, number: int, written: np.ndarray, crcs: np.ndarray) -> np.ndarray:
        """Publish the rows of a ticket that are written; the others may be stored anew. Returns which are."""
        with self._lock:
            self._alive()
            ticket = self._tickets.pop(number, None)
            if ticket is None or ticket.client != client or len(written) != len(ticket.rows):
                raise Refused(Code.BAD_REQUEST, f"there is no ticket {number} of this client")
            good = written.astype(bool)
            in_memory = ticket.places == Place.MEMORY
            if (~good & ~in_memory).any():  # a disk that failed once is not tried again
                self.spill.full = self.out_of_disk = True
            check = np.flatnonzero(good & in_memory)
            good[check] = self._heads_fit(ticket, check)
            self._publish(ticket, good, crcs)
            for i in np.flatnonzero(~good).tolist():
                self._give_up(ticket, i)
            return ticket.rows[good]

    def _heads_fit(self, ticket: Ticket, chosen: np.ndarray) -> np.ndarray:
        words = self._data.view("<u8")
        at = (ticket.offsets[chosen] // 8).astype(np.int64)
        return (
            ((words[at] & 0xFFFFFFFF) == form.MAGIC)
            & (words[at + 1] == ticket.rows[chosen].astype(np.uint64))
            & (words[at + 2] == ticket.lengths[chosen])
        )

    def _publish(self, ticket: Ticket, good: np.ndarray, crcs: np.ndarray) -> None:
        rows, entries = ticket.rows[good], self.index.entries
        if not len(rows):
            return
        on_disk = ticket.places[good] == Place.DISK
        entries["offset"][rows] = ticket.offsets[good]
        entries["length"][rows] = ticket.lengths[good]
        entries["crc"][rows] = crcs[good]
        entries["state"][rows] = np.where(on_disk, table.ON_DISK, table.IN_MEMORY)
        self._count(rows, ticket.lengths[good], on_disk)
        if on_disk.any():
            self.spill.note(
                rows[on_disk],
                ticket.offsets[good][on_disk],
                ticket.lengths[good][on_disk],
                crcs[good][on_disk],
            )

    def _count(self, rows, lengths, on_disk) -> None:
        self.rows_on_disk += int(on_disk.sum())
        self.rows_in_memory += int((~on_disk).sum())
        self.row_bytes += int(lengths.sum())
        low, high = int(rows.min()), int(rows.max())
        self.min_row = low if self.min_row < 0 else min(self.min_row, low)
        self.max_row = max(self.max_row, high)

    def _give_up(self, ticket: Ticket, i: int) -> None:
        self.index.entries["state"][ticket.rows[i]] = table.EMPTY
        at, size = int(ticket.offsets[i]), int(ticket.lengths[i])
        if ticket.places[i] == Place.MEMORY:
            self._free(at, size)
        else:
            self.spill.free(at, size)

    def abandon(self, client: int) -> None:
        """A client is gone: what it had reserved and not written is free again."""
        with self._lock:
            if self.closed:
                return
            for number in [n for n, t in self._tickets.items() if t.client == client]:
                ticket = self._tickets.pop(number)
                for i in reversed(range(len(ticket.rows))):
                    self._give_up(ticket, i)

    def put(self, client: int, rows: np.ndarray, lengths: np.ndarray, data) -> np.ndarray:
        """Store rows whose bytes came in a message. Returns those that are stored now."""
        if int(lengths.sum()) != len(data):
            raise Refused(Code.BAD_REQUEST, "the lengths of the rows do not add up to the data")
        number, places, offsets = self.reserve(client, rows, lengths)
        if not number:
            return rows[:0]
        starts = (np.cumsum(lengths) - lengths).astype(np.uint64)
        chosen = np.flatnonzero((places == Place.MEMORY) | (places == Place.DISK))
        view = memoryview(data)
        crcs = np.zeros(len(chosen), np.uint32)
        written = np.zeros(len(chosen), np.uint8)
        if len(chosen) == len(rows) and _side_by_side(places, offsets, lengths):
            os.pwrite(self.data_fd, view, int(offsets[0]))
            written[:] = 1
        else:
            for k, i in enumerate(chosen.tolist()):
                piece = view[int(starts[i]) : int(starts[i] + lengths[i])]
                fd = self.data_fd if places[i] == Place.MEMORY else self.spill.fd
                crcs[k] = zlib.crc32(piece) if places[i] == Place.DISK else 0
                with contextlib.suppress(OSError):
                    written[k] = os.pwrite(fd, piece, int(offsets[i])) == len(piece)
        return self.commit(client, number, written, crcs)

    # ---- reading -----------------------------------------------------------------------------------------

    def present(self, rows: np.ndarray) -> np.ndarray:
        """Which rows are stored."""
        with self._lock:
            self._alive()
            inside = (rows >= 0) & (rows < self.index.slots)
            states = np.zeros(len(rows), np.uint32)
            states[inside] = self.index.entries["state"][rows[inside]]
            return (states == table.IN_MEMORY) | (states == table.ON_DISK)

    def get(self, rows: np.ndarray) -> tuple[np.ndarray, bytes]:
        """Lengths of the rows (0: not there) and their bytes, one after the other."""
        there = self.present(rows)
        lengths = np.zeros(len(rows), np.uint64)
        if not there.any():
            return lengths, b""
        with self._lock:
            self._alive()
            entries = self.index.entries[rows[there]]
            data = self._data
        size = int(entries["length"][0])
        same = (entries["length"] == size).all() and (entries["state"] == table.IN_MEMORY).all()
        if same and size <= form.SMALL_ROW:
            at = (entries["offset"] // 8).astype(np.int64)
            lengths[there] = size
            return lengths, data.view("<u8")[at[:, None] + np.arange(size // 8)].tobytes()
        pieces = []
        for i, entry, row in zip(np.flatnonzero(there).tolist(), entries, rows[there].tolist()):
            at, length = int(entry["offset"]), int(entry["length"])
            if entry["state"] == table.IN_MEMORY:
                piece = data[at : at + length].tobytes()
            else:
                piece = self.spill.read(at, length, int(entry["crc"]))
            if piece is None or not form.is_row(piece, row):
                self.forget(rows[i : i + 1])
                continue
            lengths[i] = length
            pieces.append(piece)
        return lengths, b"".join(pieces)

    def forget(self, rows: np.ndarray) -> None:
        """Rows on disk that are damaged: they are to be made and stored anew."""
        with self._lock:
            self._alive()
            for row in rows[(rows >= 0) & (rows < self.index.slots)].tolist():
                entry = self.index.entries[row]
                if entry["state"] == table.ON_DISK:
                    self.index.entries["state"][row] = table.EMPTY
                    self.rows_on_disk -= 1
                    self.row_bytes -= int(entry["length"])

    # ---- life --------------------------------------------------------------------------------------------

    def restore(self) -> None:
        """Take up the rows on disk that an earlier server left."""
        records = self.spill.restored()
        if not len(records):
            return
        with self._lock:
            records = records[::-1]  # the last of several copies of a row is the one that was not damaged
            records = records[np.unique(records["row"], return_index=True)[1]]
            rows = records["row"].astype(np.int64)
            if not self._grow_index(int(rows.max()) + 1):
                return
            entries = self.index.entries
            for name in ("offset", "length", "crc"):
                entries[name][rows] = records[name]
            entries["state"][rows] = table.ON_DISK
            self._count(rows, records["length"], np.ones(len(rows), bool))

    def _alive(self) -> None:
        if self.closed:
            raise Refused(Code.NO_SESSION, "the session was not found: it is destroyed")

    def close(self, *, keep: bool = False) -> None:
        """Give everything back; readers that map the rows keep what they have."""
        with self._lock:
            if self.closed:
                return
            self.closed = True
            self._budget.give_back(self._allocated)
            self._table_budget.give_back(self.index.bytes)
            self.index.close()
            self._data = self._memory = None
            os.close(self.data_fd)
            if self.spill is not None:
                self.spill.close(remove=not keep)


def _side_by_side(places, offsets, lengths) -> bool:
    if not len(places) or (places != Place.MEMORY).any():
        return False
    ends = offsets + lengths
    return bool((ends[:-1] == offsets[1:]).all())
