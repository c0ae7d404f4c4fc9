"""Large and compressed requests: read beside the thread that serves the others, and in pieces."""

from __future__ import annotations

import zlib
from concurrent.futures import ThreadPoolExecutor

LARGE = 256 << 10  # bytes of a request that is read in a thread of its own,
LARGE_PACKED = 4 << 10  # and of a compressed one
_IN, _OUT = 64 << 10, 1 << 20  # bytes of a piece


def is_large(body: bytes, packed: bool) -> bool:
    """Whether to read a request takes so long that others would wait."""
    return len(body) > (LARGE_PACKED if packed else LARGE)


def executor() -> ThreadPoolExecutor:
    """The threads that read large requests; each of them needs much memory for a while, so they are few."""
    return ThreadPoolExecutor(2, thread_name_prefix="serving-large")


class Bomb(Exception):
    """Unpacked it would be larger than the limit."""


def unpack(data: bytes, window_bits: int, limit: int) -> bytes:
    """What was compressed, of at most `limit` bytes. window_bits: as zlib's, that say which form it has.

    Errors: Bomb; zlib.error for what is damaged or cut off.
    """
    unpacker = zlib.decompressobj(window_bits)
    parts, size = [], 0
    for at in range(0, len(data), _IN):
        piece = memoryview(data)[at : at + _IN]
        while True:  # also without input: there may be more output than fitted
            part = unpacker.decompress(piece, _OUT)
            piece = unpacker.unconsumed_tail
            size += len(part)
            if size > limit:
                raise Bomb
            parts.append(part)
            if unpacker.eof:
                return b"".join(parts)
            if len(part) < _OUT and not piece:
                break
    raise zlib.error("it is cut off")
