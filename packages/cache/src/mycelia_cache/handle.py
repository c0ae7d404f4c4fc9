"""A joined cache as a client sees it: which rows are there, reading and storing them.

On the server's host rows are read from its memory without asking it; elsewhere they come in messages.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import threading
import weakref
import zlib
from collections.abc import Callable

import numpy as np

from mycelia_cache import index as table
from mycelia_cache import rows as form
from mycelia_cache.index import IndexReader
from mycelia_cache.proto import cache_pb2 as pb
from mycelia_cache.protocol import Refused, State, Unreachable
from mycelia_cache.store import Place

_FLUSH_ROWS = 256
_BLOCK_ROWS = 4096
_FLUSH_BYTES = 4 << 20
_IOV_MAX = 512


class Handle:
    """What both kinds share. `lost` is called with the reason when server or session are gone."""

    def __init__(self, channel, joined, lost: Callable[[Exception], None]):
        self.channel, self.cache, self._lost = channel, joined.cache, lost
        self.shared_store = joined.shared_store
        self.room = joined.room
        self.alive = True
        self.hits = self.misses = 0
        self._reported = (0, 0)
        self._lock = threading.RLock()
        self._waiting: dict[int, tuple[int, list]] = {}  # rows not sent yet: number -> (bytes, pieces)
        self._waiting_bytes = 0
        self._blocks: list[tuple[np.ndarray, np.ndarray]] = []  # numbers of rows, and their bytes
        self._block_rows = 0

    # ---- what the kinds define ---------------------------------------------------------------------------

    def present(self, rows: np.ndarray) -> np.ndarray:
        """Which rows are stored."""
        raise NotImplementedError

    def read(self, rows: np.ndarray) -> list[tuple | None]:
        """Copies of rows; None for those that are not there."""
        raise NotImplementedError

    def _store(self, items: list[tuple[int, int, list]]) -> None:
        raise NotImplementedError

    def _store_blocks(self, blocks: list[tuple[np.ndarray, np.ndarray]]) -> None:
        raise NotImplementedError

    # ---- calls that must not end a pipeline --------------------------------------------------------------

    def _call(self, **body):
        return self.channel.call(pb.Request(**body))

    def _tried(self, work, default=None, *, tell: bool = True):
        if not self.alive:
            return default
        try:
            return work()
        except (Refused, Unreachable) as e:
            self.alive = False
            self._waiting.clear()
            if tell:
                self._lost(e)
            return default

    # ---- storing -----------------------------------------------------------------------------------------

    def put(self, row: int, columns: tuple) -> None:
        """Store a row, some time before `flush` returns."""
        if not self.alive:
            return
        layout = form.layout_of(columns)
        if layout.size > self.room and not self.shared_store:
            return
        pieces = form.encoded(row, columns, layout)
        with self._lock:
            self._waiting[row] = (layout.size, pieces)
            self._waiting_bytes += layout.size
            if len(self._waiting) >= _FLUSH_ROWS or self._waiting_bytes >= _FLUSH_BYTES:
                self.flush()

    def put_batch(self, rows: np.ndarray, columns: list[np.ndarray]) -> None:
        """Store rows of one shape, given as stacked columns, some time before `flush` returns."""
        rows = np.ascontiguousarray(rows, np.int64)
        layout = form.layout_of([c[:1].reshape(c.shape[1:]) for c in columns])
        if not self.alive or (layout.size > self.room and not self.shared_store):
            return
        with self._lock:
            self._blocks.append((rows, form.encoded_block(rows, columns, layout)))
            self._block_rows += len(rows)
            size = sum(block.nbytes for _, block in self._blocks)
            if self._block_rows >= _BLOCK_ROWS or size >= _FLUSH_BYTES or len(self._blocks) >= _IOV_MAX:
                self.flush()

    def flush(self) -> None:
        """Send what waits."""
        with self._lock:
            blocks, self._blocks, self._block_rows = self._blocks, [], 0
            if blocks:
                self._tried(lambda: self._store_blocks(blocks))
            items = [(row, *value) for row, value in self._waiting.items()]
            if items:
                self._tried(lambda: self._store(items))
            self._waiting.clear()
            self._waiting_bytes = 0

    def waiting(self, row: int) -> tuple | None:
        """A row that was put and is not sent yet, as a copy."""
        with self._lock:
            found = self._waiting.get(row)
        return None if found is None else form.decoded(b"".join(found[1]), 0, row, found[0])

    # ---- the rest ----------------------------------------------------------------------------------------

    def report(self, *, tell: bool = True) -> bool:
        """Tell the server how often rows were there; whether it answers. `tell`: say so if it does not."""
        hits, misses, self._reported = self.hits, self.misses, self.counts()
        self.hits = self.misses = 0
        body = pb.Report(cache=self.cache, hits=hits, misses=misses)
        return self._tried(lambda: self._call(report=body), tell=tell) is not None

    def counts(self) -> tuple[int, int]:
        """All hits and misses so far."""
        return self._reported[0] + self.hits, self._reported[1] + self.misses

    def lease(self, **wish) -> tuple[State, bool, int]:
        """The state of a build. Raises Refused, Unreachable."""
        reply = self._call(lease=pb.Lease(cache=self.cache, **wish)).lease
        return State(reply.state), reply.mine, reply.rows


class LocalHandle(Handle):
    """A cache of a server on this host, mapped."""

    def __init__(self, channel, joined, fds: list[int], lost):
        super().__init__(channel, joined, lost)
        self.index = IndexReader(fds[0])
        self._data_fd = fds[1]
        memory = mmap.mmap(self._data_fd, joined.data_bytes, mmap.MAP_SHARED, mmap.PROT_READ)
        self._view = memoryview(memory)
        self._data = np.frombuffer(memory, np.uint8)
        self._spill_fd = -1
        if joined.spill_file:
            with contextlib.suppress(OSError):
                self._spill_fd = os.open(joined.spill_file, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        weakref.finalize(self, _close, [*fds, self._spill_fd])

    @property
    def gone(self) -> bool:
        """Whether the session was destroyed or the server was stopped in an orderly way."""
        return self.index.gone

    @property
    def clients(self) -> int:
        """How many clients use the cache."""
        return self.index.clients

    def present(self, rows):
        states = self.index.states(rows)
        there = (states == table.IN_MEMORY) | (states == table.ON_DISK)
        if self.shared_store and not there.all():
            there |= self._shared_present(rows)
        return there

    def _shared_present(self, rows):
        none = np.zeros(len(rows), bool)
        body = pb.Present(cache=self.cache, rows=rows.tobytes())
        reply = self._tried(lambda: self._call(present=body).mask.present)
        return none if reply is None else np.frombuffer(reply, bool)

    def alike(self, rows: np.ndarray) -> bool:
        """Whether all these rows are in memory and of one length, so that `gather` may give them."""
        if not len(rows) or not (self.index.states(rows) == table.IN_MEMORY).all():
            return False
        lengths = self.index.places(rows)["length"]
        return bool((lengths == lengths[0]).all())

    def gather(self, rows: np.ndarray) -> list[np.ndarray] | None:
        """Stacked columns of rows; None unless all are in memory and of one shape."""
        if not len(rows) or not (self.index.states(rows) == table.IN_MEMORY).all():
            return None
        places = self.index.places(rows)
        length = int(places["length"][0])
        if not (places["length"] == length).all():
            return None
        return form.gathered(self._data, places["offset"].astype(np.int64), rows, length)

    def read(self, rows):
        states = self.index.states(rows)
        if len(rows) > 1 and (states == table.IN_MEMORY).all():
            alike = self._read_alike(rows)
            if alike is not None:
                return alike
        found: list[tuple | None] = [None] * len(rows)
        there = np.flatnonzero((states == table.IN_MEMORY) | (states == table.ON_DISK))
        damaged = []
        for i, entry in zip(there.tolist(), self.index.places(rows[there])):
            row, at, length = int(rows[i]), int(entry["offset"]), int(entry["length"])
            if states[i] == table.IN_MEMORY:
                found[i] = form.decoded(self._view, at, row, length)
                continue
            found[i] = self._from_disk(at, row, length, int(entry["crc"]))
            if found[i] is None:
                damaged.append(row)
        if damaged:
            body = pb.Forget(cache=self.cache, rows=np.array(damaged, np.int64).tobytes())
            self._tried(lambda: self._call(forget=body))
        if self.shared_store and len(there) < len(rows):
            missing = np.flatnonzero([f is None for f in found])
            for i, row in zip(missing.tolist(), _fetch(self, rows[missing])):
                found[i] = row
        return found

    def _read_alike(self, rows) -> list[tuple] | None:
        """Small rows of one shape, copied together; None for others."""
        places = self.index.places(rows)
        length = int(places["length"][0])
        if length > form.SMALL_ROW or not (places["length"] == length).all():
            return None
        columns = form.gathered(self._data, places["offset"].astype(np.int64), rows, length)
        return None if columns is None else form.split(columns)

    def _from_disk(self, at: int, row: int, length: int, crc: int) -> tuple | None:
        try:
            data = os.pread(self._spill_fd, length, at)
        except OSError:
            return None
        if len(data) != length or zlib.crc32(data) != crc:
            return None
        return form.decoded(data, 0, row, length)

    def _store(self, items):
        rows = np.array([i[0] for i in items], np.int64)
        lengths = np.array([i[1] for i in items], np.uint64)
        ticket, places, offsets = self._reserve(rows, lengths)
        if ticket:
            given = np.flatnonzero((places == Place.MEMORY) | (places == Place.DISK)).tolist()
            pieces = [items[i][2] for i in given]
            self._write(ticket, pieces, places[given], offsets[given], lengths[given])
        if self.shared_store:
            self._send_refused(items, places)

    def _send_refused(self, items, places) -> None:
        """Rows that find no place on this host go to the store beyond."""
        full = [items[i] for i in np.flatnonzero(places == Place.FULL).tolist()]
        if full:
            _send(self, full)

    def _reserve(self, rows, lengths):
        body = pb.Reserve(cache=self.cache, rows=rows.tobytes(), lengths=lengths.tobytes())
        reply = self._call(reserve=body).reserved
        self.room = reply.room
        return reply.ticket, np.frombuffer(reply.places, np.uint8), np.frombuffer(reply.offsets, "<u8")

    def _write(self, ticket: int, pieces: list[list], places, offsets, lengths) -> None:
        count = len(pieces)
        written, crcs = np.zeros(count, np.uint8), np.zeros(count, np.uint32)
        ends = offsets + lengths
        joined = len(places) > 0 and (places == Place.MEMORY).all() and (ends[:-1] == offsets[1:]).all()
        if joined and sum(map(len, pieces)) <= _IOV_MAX:
            flat = [p for row in pieces for p in row]
            written[:] = _pwritev(self._data_fd, flat, int(offsets[0]), int(lengths.sum()))
        else:
            for i, row in enumerate(pieces):
                on_disk = places[i] == Place.DISK
                crcs[i] = form.checksum(row) if on_disk else 0
                fd = self._spill_fd if on_disk else self._data_fd
                written[i] = _pwritev(fd, row, int(offsets[i]), int(lengths[i]))
        self._commit(ticket, written, crcs)

    def _commit(self, ticket, written, crcs) -> None:
        body = pb.Commit(cache=self.cache, ticket=ticket, written=written.tobytes(), checksums=crcs.tobytes())
        self._call(commit=body)

    def _store_blocks(self, blocks):
        rows, lengths = _numbers_and_lengths(blocks)
        ticket, places, offsets = self._reserve(rows, lengths)
        whole = len(rows) and (places == Place.MEMORY).all()
        if whole and (offsets[:-1] + lengths[:-1] == offsets[1:]).all():
            pieces = [memoryview(block).cast("B") for _, block in blocks]
            done = _pwritev(self._data_fd, pieces, int(offsets[0]), int(lengths.sum()))
            self._commit(ticket, np.full(len(rows), done, np.uint8), np.zeros(len(rows), np.uint32))
            return
        single = [memoryview(row) for _, block in blocks for row in block]
        given = np.flatnonzero((places == Place.MEMORY) | (places == Place.DISK))
        if ticket:
            pieces = [[single[i]] for i in given.tolist()]
            self._write(ticket, pieces, places[given], offsets[given], lengths[given])
        if self.shared_store:
            items = zip(rows.tolist(), lengths.tolist(), ([bytes(p)] for p in single))
            self._send_refused(list(items), places)


def _numbers_and_lengths(blocks) -> tuple[np.ndarray, np.ndarray]:
    rows = np.concatenate([rows for rows, _ in blocks])
    return rows, np.concatenate([np.full(len(r), b.shape[1], np.uint64) for r, b in blocks])


def _close(fds: list[int]) -> None:
    for fd in fds:
        if fd >= 0:
            os.close(fd)


def _pwritev(fd: int, pieces: list, at: int, length: int) -> bool:
    """Whether all bytes could be written."""
    try:
        done = os.pwritev(fd, pieces, at)
        while done < length:  # a write may stop short, at 2 GB for one
            rest = b"".join(bytes(p) for p in pieces)[done:]
            more = os.pwrite(fd, rest, at + done)
            if not more:
                return False
            done += more
    except OSError:
        return False
    return True


def _fetch(handle: Handle, rows: np.ndarray) -> list[tuple | None]:
    """Rows in a message from the server."""
    body = pb.Get(cache=handle.cache, rows=rows.tobytes())
    reply = handle._tried(lambda: handle._call(get=body).rows)
    return [None] * len(rows) if reply is None else _unpacked(rows, reply)


def _unpacked(rows: np.ndarray, reply) -> list[tuple | None]:
    lengths = np.frombuffer(reply.lengths, "<u8").tolist()
    data, at, found = reply.data, 0, []
    for row, length in zip(rows.tolist(), lengths):
        found.append(form.decoded(data, at, row, length) if length else None)
        at += length
    return found


def _send(handle: Handle, items) -> None:
    """Rows in a message to the server."""
    rows = np.array([i[0] for i in items], np.int64)
    lengths = np.array([i[1] for i in items], np.uint64)
    data = b"".join([p for item in items for p in item[2]])
    body = pb.Put(cache=handle.cache, rows=rows.tobytes(), lengths=lengths.tobytes(), data=data)
    handle.room = handle._call(put=body).reserved.room


class RemoteHandle(Handle):
    """A cache of a server on another host. `ahead`: rows of a request; `connections`: requests under way."""

    gone = False
    clients = 2  # as good as known: rows may come from others at any time

    def __init__(self, channel, joined, lost, ahead: int, connections: int):
        super().__init__(channel, joined, lost)
        self._ahead, self._connections = ahead, connections

    def present(self, rows):
        body = pb.Present(cache=self.cache, rows=rows.tobytes())
        reply = self._tried(lambda: self._call(present=body).mask.present)
        return np.zeros(len(rows), bool) if reply is None else np.frombuffer(reply, bool)

    def alike(self, rows):
        """Whether all these rows are there; only fetching them tells whether they are of one length."""
        return bool(len(rows)) and bool(self.present(rows).all())

    def read(self, rows):
        return self._tried(lambda: self._read(rows), [None] * len(rows))

    def _read(self, rows):
        parts = [rows[at : at + self._ahead] for at in range(0, len(rows), self._ahead)]
        found, under_way = [], []
        for i in range(len(parts) + self._connections):
            if i < len(parts):
                body = pb.Get(cache=self.cache, rows=parts[i].tobytes())
                under_way.append(self.channel.later(pb.Request(get=body)))
            k = i - self._connections
            if k >= 0:
                found += _unpacked(parts[k], under_way[k]().rows)
                under_way[k] = None
        return found

    def gather(self, rows):
        """Stacked columns of rows of one shape; None if they are not."""
        body = pb.Get(cache=self.cache, rows=rows.tobytes())
        reply = self._tried(lambda: self._call(get=body).rows)
        if reply is None:
            return None
        lengths = np.frombuffer(reply.lengths, "<u8")
        if not len(lengths) or not lengths[0] or not (lengths == lengths[0]).all():
            return None
        offsets = np.arange(len(rows), dtype=np.int64) * int(lengths[0])
        return form.gathered(np.frombuffer(reply.data, np.uint8), offsets, rows, int(lengths[0]))

    def _store(self, items):
        _send(self, items)

    def _store_blocks(self, blocks):
        rows, lengths = _numbers_and_lengths(blocks)
        data = b"".join([memoryview(block).cast("B") for _, block in blocks])
        body = pb.Put(cache=self.cache, rows=rows.tobytes(), lengths=lengths.tobytes(), data=data)
        self.room = self._call(put=body).reserved.room
