"""Features of many tf.train.Example messages at once.

The messages are walked side by side: every step reads the same tag or length of all of them. Messages written
in an unusual way (unpacked numbers, lists of several byte strings) are named as odd, for `tfrecord.example`.
"""

from __future__ import annotations

import numpy as np

from mycelia.io.tfrecord import BYTES, FLOATS, INTS
from mycelia.io.windows import Windows, spread

_FIRST, _SECOND, _THIRD = 0x0A, 0x12, 0x1A  # tags of fields 1, 2, 3 that hold bytes
_KINDS = np.zeros(256, np.uint8)
_KINDS[[_FIRST, _SECOND, _THIRD]] = BYTES, FLOATS, INTS

Found = dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]


class _Walk:
    """Steps in messages that end at `end`. A byte behind an end can be read: a checksum follows."""

    def __init__(self, windows: Windows, at: np.ndarray, end: np.ndarray):
        self.windows, self.at, self.end = windows, at, end
        self.bad = np.zeros(len(at), bool)

    def byte(self) -> np.ndarray:
        found = self.windows.take("u1", np.minimum(self.at, self.end))
        self.at = self.at + 1
        return found

    def size(self) -> np.ndarray:
        """A length below 2**35."""
        byte = self.byte()
        value = (byte & 0x7F).astype(np.int64)
        for shift in (7, 14, 21, 28):
            more = byte >= 0x80
            if not more.any():
                break
            byte = np.where(more, self.windows.take("u1", np.minimum(self.at, self.end)), 0).astype(np.uint8)
            value |= (byte & 0x7F).astype(np.int64) << shift
            self.at = self.at + more
        return value

    def bytes_of(self, tag: int, limit: np.ndarray) -> np.ndarray:
        """Step over a tag and a length to the bytes that follow; where they end, inside of `limit`."""
        self.bad |= self.byte() != tag
        return self._until(limit)

    def _until(self, limit: np.ndarray) -> np.ndarray:
        size = self.size()
        self.bad |= size > limit - self.at
        return np.where(self.bad, self.at, self.at + size)

    def feature(self, limit: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The kind of a Feature that fills the bytes up to `limit`, where its value or packed values begin,
        and whether it has just these.
        """
        kind = _KINDS[self.byte()]
        self.bad |= (kind == 0) | (self._until(limit) != limit)
        before, self.bad = self.bad, self.bad.copy()
        alone = self.bytes_of(_FIRST, limit) == limit
        alone &= ~self.bad
        self.bad = before
        return kind, self.at, alone


def features(windows: Windows, begins, ends, names: list[str]) -> tuple[Found, np.ndarray]:
    """{name: (kind, begin, end) of its values in each message}, and which messages are odd or lack a name."""
    shape, dtypes = len(begins), (np.uint8, np.int64, np.int64)
    found = {name: tuple(np.zeros(shape, dtype) for dtype in dtypes) for name in names}
    keys = {name: np.frombuffer(name.encode(), np.uint8) for name in names}
    odd, rows = np.zeros(shape, bool), np.arange(shape)
    walk = _Walk(windows, begins, ends)
    walk.bad |= walk.bytes_of(_FIRST, ends) != ends
    while len(rows):
        odd[rows[walk.bad]] = True
        left = ~walk.bad & (walk.at < walk.end)
        if not left.all():
            rows, walk = rows[left], _Walk(windows, walk.at[left], walk.end[left])
        if len(rows):
            _entry(walk, rows, keys, found)
    for kind, _, _ in found.values():
        odd |= kind == 0
    return found, odd


def _entry(walk: _Walk, rows: np.ndarray, keys: dict[str, np.ndarray], found: Found) -> None:
    """The next entry of the map of each message."""
    entry_end = walk.bytes_of(_FIRST, walk.end)
    key_end = walk.bytes_of(_FIRST, entry_end)
    key_begin, walk.at = walk.at, key_end
    walk.bad |= walk.bytes_of(_SECOND, entry_end) != entry_end
    kind, begin, alone = walk.feature(entry_end)
    walk.at = entry_end
    for name, key in keys.items():
        same = ~walk.bad & (key_end - key_begin == key.size)
        if key.size and same.any():
            chosen = slice(None) if same.all() else np.flatnonzero(same)
            equal = (walk.windows.rows(key.size, key_begin[chosen]) == key).all(1)
            same[chosen] = equal
            walk.bad |= same & ~alone
        for column, value in zip(found[name], (kind, begin, entry_end)):
            if same.all():
                column[rows] = value
            else:
                column[rows[same]] = value[same]


def int_columns(windows: Windows, begins, ends) -> tuple[np.ndarray, np.ndarray] | None:
    """Packed varints as int64, those of all rows one behind the other, and how many each row has; None for
    numbers that are cut off.
    """
    sizes = ends - begins
    raw = windows.take("u1", spread(begins, sizes))
    last = raw < 0x80
    stops = np.flatnonzero(last) + 1
    row_ends = np.cumsum(sizes)
    filled = sizes > 0
    if not last[row_ends[filled] - 1].all():
        return None
    starts = np.concatenate([[0], stops[:-1]]) if len(stops) else stops
    widths = stops - starts
    if len(widths) and int(widths.max()) > 10:
        return None
    values = (raw[starts] & 0x7F).astype(np.uint64)
    for k in range(1, int(widths.max()) if len(widths) else 0):
        longer = np.flatnonzero(widths > k)
        values[longer] |= (raw[starts[longer] + k] & 0x7F).astype(np.uint64) << np.uint64(7 * k)
    counts = np.diff(np.concatenate([[0], np.searchsorted(stops, row_ends, "right")]))
    return values.view(np.int64), counts
