"""FlexBuffers: how custom operators of TensorFlow Lite write their options. Maps of numbers are read."""

from __future__ import annotations

import struct

_INT, _UINT, _FLOAT, _INDIRECT, _MAP, _BOOL = 1, 2, 3, (6, 7, 8), 9, 26
# By the width in bytes.
_FORMATS = {_INT: " bh i   q", _UINT: " BH I   Q", _FLOAT: "  e f   d", _BOOL: " BH I   Q"}


def numbers(data: memoryview) -> dict[str, int | float | bool]:
    """The numbers of a map by their names. Errors: ValueError for what is no such map."""
    try:
        return _Reader(bytes(data)).root()
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise ValueError(f"its options are no FlexBuffers: {error}") from None


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data

    def root(self) -> dict[str, int | float | bool]:
        """The value is at the end, behind it its type and its width."""
        width, packed = self.data[-1], self.data[-2]
        if packed >> 2 != _MAP:
            raise ValueError(f"its options are no map but of the type {packed >> 2}")
        return self.map(self.follow(len(self.data) - 2 - width, width), 1 << (packed & 3))

    def number(self, kind: int, at: int, width: int) -> int | float:
        form = _FORMATS[kind][width : width + 1].strip() if width < 9 else ""
        if not form or at < 0:
            raise ValueError(f"its options have a number of {width} bytes at {at}")
        return struct.unpack_from(f"<{form}", self.data, at)[0]

    def follow(self, at: int, width: int) -> int:
        """Where an offset leads: it counts backwards."""
        return at - int(self.number(_UINT, at, width))

    def map(self, at: int, width: int) -> dict[str, int | float | bool]:
        """In front of the values are their number, where the keys are and how wide; behind them the types."""
        count = int(self.number(_UINT, at - width, width))
        keys = self.follow(at - 3 * width, width)
        key_width = int(self.number(_UINT, at - 2 * width, width))
        if count > len(self.data):
            raise ValueError(f"its options are a map of {count} values in {len(self.data)} bytes")
        found = {}
        for i in range(count):
            name = self.text(self.follow(keys + i * key_width, key_width))
            found[name] = self.value(name, self.data[at + count * width + i], at + i * width, width)
        return found

    def text(self, at: int) -> str:
        if not 0 <= at < len(self.data):
            raise ValueError(f"its options have a name at {at}")
        return self.data[at : self.data.index(b"\0", at)].decode()

    def value(self, name: str, packed: int, at: int, width: int) -> int | float | bool:
        kind = packed >> 2
        if kind in _INDIRECT:
            at, width, kind = self.follow(at, width), 1 << (packed & 3), kind - 5
        if kind not in _FORMATS:
            raise ValueError(f"its option '{name}' has the type {kind}, which is no number")
        found = self.number(kind, at, width)
        return bool(found) if kind == _BOOL else found
