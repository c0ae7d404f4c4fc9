"""One run: the event files of a folder, as columns that follow them."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from mycelia_insight._native import DamagedIndex, Index
from mycelia_insight.runs.discovery import EventFile, Found
from mycelia_insight.runs.kinds import Dialect, Kind

_AT_ONCE = 32 << 20  # bytes of a file that are read before others have their turn
_MOST_SERVICES = 100  # that share a workspace


@dataclass(frozen=True)
class Tag:
    """The values of one name and kind; times are seconds since 1970."""

    kind: Kind
    name: str
    count: int
    first_step: int
    last_step: int
    first_time: float
    last_time: float
    last_value: float


@dataclass(frozen=True)
class Points:
    """Of a scalar: steps int64 [n], times float64 [n] in seconds, values and smoothed values float32 [n]."""

    steps: np.ndarray
    times: np.ndarray
    values: np.ndarray
    smoothed: np.ndarray


@dataclass(frozen=True)
class Moment:
    """When a value was recorded; the time is in seconds since 1970."""

    step: int
    time: float


@dataclass(frozen=True)
class Entry(Moment):
    """Where a value that is no scalar lies: `size` bytes at `offset` of a file."""

    source: str
    dialect: Dialect
    offset: int
    size: int
    width: int  # of an image, as far as its message says so in front
    height: int


class Run:
    """A run's columns lie in `<workspace>/index/<digest of its path>`; its own folder is only read.

    Of services that share a workspace each has columns of its own: none writes to those of another.
    """

    def __init__(self, folder: str, name: str, workspace: str):
        """`folder`: absolute; `name`: the path below the base folder, "" for that itself."""
        self.folder, self.name = folder, name
        digest = hashlib.sha256(os.fsencode(os.path.realpath(folder))).hexdigest()[:32]
        self.place, self._index = _opened(os.path.join(workspace, "index", digest))
        self._order: list[str] = [source[0] for source in self._index.sources()]
        self._reading = threading.Lock()  # one reader; those that ask for points do not wait for it
        self._unkept = 0
        self._state: tuple | None = None  # of the files when all that was in them had been read
        self._seen: dict[str, _FileState] = {}  # of the files that are there, in their order
        self.dumps: tuple[str, ...] = ()  # paths below the base folder, by name
        self.has_graph_files = False
        self._made = 0.0  # without event files, when it was written to

    @property
    def id(self) -> str:
        """`./` and the path below the base folder; bytes that are no UTF-8 are written as `\\xNN`."""
        return "./" + os.fsencode(self.name).decode("utf-8", "backslashreplace")

    def note(self, found: Found) -> bool:
        """Take what lies in its folder beside event files; whether that is new."""
        was = self.dumps, self.has_graph_files, self._made
        self.dumps, self.has_graph_files, self._made = found.dumps, found.has_graphs, found.written
        return was != (self.dumps, self.has_graph_files, self._made)

    def refresh(self, files: Sequence[EventFile]) -> bool:
        """Read what has come to the run's files; whether more is to be read at once."""
        with self._reading:
            state = tuple(_state(os.path.join(self.folder, file.name)) for file in files)
            paths = [os.path.join(self.folder, file.name) for file in files]
            self._seen = {path: one for path, one in zip(paths, state, strict=True) if one}
            gone = [path for path in self._order if path not in paths]
            # A file that belongs before others that have been read: their order decides which points count.
            if gone or self._order != paths[: len(self._order)]:
                self._begin_anew()
            more = False
            for path in paths:
                if path not in self._order:
                    self._order.append(path)
                try:
                    done, replaced, _, read = self._index.scan(path, _AT_ONCE)
                except OSError as error:
                    if error.errno in (errno.ENOENT, errno.EACCES, errno.EINVAL):
                        continue  # gone since it was listed, or not ours to read
                    self._begin_anew()  # it may have been read in part
                    raise
                if replaced:
                    self._begin_anew()
                    return True
                self._unkept += read
                more |= not done
                if not done:
                    break  # files are read in their order
            if self._unkept and (not more or self._unkept > 8 * _AT_ONCE):
                self._keep()
            if not more:
                self._state = state
            return more

    def is_current(self, files: Sequence[EventFile]) -> bool:
        """Whether all that is in these files has been read."""
        return self._state == tuple(_state(os.path.join(self.folder, file.name)) for file in files)

    @property
    def is_closed(self) -> bool:
        """Whether the last file of values was closed: writers of MindSpore's format leave it read-only."""
        known = [state for path, state in self._seen.items() if not path.endswith("_lineage")]
        return bool(known) and known[-1].mode & 0o222 == 0

    @property
    def written(self) -> float:
        """When a file of it was written to last, in seconds since 1970; 0 before anything is known."""
        return max((state.written / 1e9 for state in self._seen.values()), default=self._made)

    def tags(self) -> list[Tag]:
        return [Tag(Kind(kind), *rest) for kind, *rest in self._guarded(self._index.summaries)]

    def points(
        self,
        tag: str,
        *,
        by_time: bool = False,
        low: float = -np.inf,
        high: float = np.inf,
        columns: int = 0,
        smoothing: float = 0,
    ) -> Points | None:
        """Points of a scalar between `low` and `high`, steps or seconds; None if there is no such scalar.

        columns: parts of the range, of each of which the first, last, least, greatest and all points that are
        not finite are given; 0 for all points. smoothing: weight of what came before in the moving average,
        0 to less than 1; its begin is corrected, values that are not finite are passed over.
        """
        found = self._guarded(lambda: self._index.points(tag, int(by_time), low, high, columns, smoothing))
        if found is None:
            return None
        dtypes = (np.int64, np.float64, np.float32, np.float32)
        return Points(*(np.frombuffer(data, dtype) for data, dtype in zip(found, dtypes, strict=True)))

    def walk(self, tag: str, at_once: int = 1 << 16) -> Iterator[Points]:
        """All points of a scalar in their order, about `at_once` at a time; they are not smoothed."""
        at, rest = 0, 1
        while rest:
            found = self._guarded(partial(self._index.stored, tag, at, at_once))
            if found is None:
                return
            *parts, rest = found
            at += at_once
            dtypes = (np.int64, np.float64, np.float32)
            steps, times, values = (np.frombuffer(d, dtype) for d, dtype in zip(parts, dtypes, strict=True))
            if len(steps):
                yield Points(steps, times, values, values)

    def entries(self, kind: Kind, tag: str = "") -> list[Entry] | None:
        """Values of a kind that is no scalar, in the order of the files; None if there is no such tag."""
        found = self._guarded(lambda: self._index.entries(int(kind), tag))
        if found is None:
            return None
        sources = [(path, Dialect(dialect)) for path, _, dialect, _, _ in self._index.sources()]
        return [Entry(step, time, *sources[number], *rest) for step, time, number, *rest in found]

    def read(self, entry: Entry, most: int | None = None) -> bytes:
        """The message of a value, or its first `most` bytes.  Errors: OSError; ValueError if the file is
        shorter than it was.
        """
        size = entry.size if most is None else min(most, entry.size)
        with open(entry.source, "rb") as file:
            file.seek(entry.offset)
            data = file.read(size)
        if len(data) != size:
            raise ValueError(f"{entry.source} is shorter than when it was read")
        return data

    def dialect(self, entry: Entry) -> Dialect:
        """Whose messages the file of a value has."""
        found = (Dialect(kind) for path, _, kind, *_ in self._index.sources() if path == entry.source)
        return next(found, Dialect.UNKNOWN)

    def dialects(self) -> set[Dialect]:
        """Whose messages the run's files have."""
        return {Dialect(kind) for _, _, kind, *_ in self._index.sources()}

    def broken(self) -> list[tuple[str, int, list[tuple[int, str]]]]:
        """(file, number of broken records, (offset, what) of the first ones) of files that have such."""
        return [(path, count, first) for path, _, _, count, first in self._index.sources() if count]

    def file_count(self, *, lineage: bool) -> int:
        """How many event files were read, of values or of lineage."""
        return sum(path.endswith("_lineage") == lineage for path, *_ in self._index.sources())

    def _guarded(self, ask):
        try:
            return ask()
        except DamagedIndex:
            with self._reading:
                self._begin_anew()
            return ask()

    def _begin_anew(self) -> None:
        self._index.clear()
        self._order.clear()
        self._unkept, self._state = 0, None

    def _keep(self) -> None:
        # Without room in the workspace the columns live in memory; they are read again after a start.
        with contextlib.suppress(OSError):
            self._index.commit()
            self._unkept = 0


class _FileState(NamedTuple):
    size: int
    written: int  # in nanoseconds since 1970
    inode: int
    mode: int


def _opened(place: str) -> tuple[str, Index]:
    """A folder and the index in it: `place`, or, while another service has that, the next free one."""
    for number in range(_MOST_SERVICES):
        folder = f"{place}.{number}" if number else place
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with contextlib.suppress(BlockingIOError):
            return folder, Index(folder)
    raise OSError(errno.EMFILE, f"{_MOST_SERVICES} services have the columns of one run open", place)


def _state(path: str) -> _FileState | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return _FileState(found.st_size, found.st_mtime_ns, found.st_ino, found.st_mode)
