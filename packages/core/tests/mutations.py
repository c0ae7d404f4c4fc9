"""Files changed at random, and what a reader must do with them: read them, or say what is wrong with which.

`faults` runs a reader over mutations of a file and tells those for which it broke: an error that is none of
ours or does not name the file, memory far beyond the file's size, an end that does not come.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

from mycelia import errors

_STARTS = (
    b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0", b"PK\3\4", b"\x1f\x8b\x08\0", b"RIFF",
    b"SQLite format 3\0", b"\0\0\x08\x03", b"{", b"[" * 3000, b"\x93NUMPY\1\0", b"\xef\xbb\xbf", b"\xff\xfe",
    b"GIF89a", b"BM",
)  # fmt: skip
_NUMBERS = (
    b"-1",
    b"0",
    b"99999999999999999999",
    b"1e999",
    b"NaN",
    b"null",
    b"true",
    b'"x"',
    b"[]",
    b"{}",
    b"4294967296",
)
_TEXTS = (
    b'"',
    b"\\",
    b"\0",
    b"\xff",
    b"\xc3\x28",
    b",",
    b"\n",
    b"]",
    b"}",
    b"<",
    b"&",
    b"'",
    b"\xed\xa0\x80",
    b"",
)
_ROOM = 1 << 30  # bytes of address space that reading may take besides what is taken already
_SECONDS = 60  # in which a small file must be read: what takes longer hangs
FIRST = int(os.environ.get("MYCELIA_FUZZ_SEED", 0))  # number of the first mutation


def mutated(data: bytes, rng: random.Random) -> bytes:
    """`data` with one to three changes: bits, numbers of 1 to 8 bytes, parts moved, cut off, put in, ..."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        size = len(changed)
        if not size:
            return bytes(changed)
        # Headers lie in front, trailers at the end.
        at = rng.choice(
            (rng.randrange(size), rng.randrange(min(size, 64)), rng.randrange(max(0, size - 64), size))
        )
        kind = rng.randrange(10)
        if kind == 0:
            changed[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            changed[at] = rng.randrange(256)
        elif kind == 2:  # a length or an offset
            width = rng.choice("BHIQ")
            top = 1 << 8 * struct.calcsize(width)
            value = rng.choice(
                (
                    0,
                    1,
                    2,
                    top - 1,
                    top // 2,
                    top // 2 - 1,
                    top // 4,
                    rng.randrange(top),
                    size,
                    size + 1,
                    1000000,
                )
            )
            number = struct.pack(rng.choice("<>") + width, value % top)
            changed[at : at + len(number)] = number
        elif kind == 3:
            del changed[at:]
        elif kind == 4:
            del changed[at : at + rng.randrange(1, 40)]
        elif kind == 5:
            changed[at:at] = rng.choice(
                (rng.randbytes(rng.randrange(1, 20)), changed[at : at + rng.randrange(1, 60)])
            )
        elif kind == 6:
            other, count = rng.randrange(size), rng.randrange(1, 32)
            changed[at : at + count], changed[other : other + count] = (
                changed[other : other + count],
                changed[at : at + count],
            )
        elif kind == 7:
            start = rng.choice(_STARTS)
            changed[: len(start)] = start
        elif kind == 8:  # a number in a text
            found = list(re.finditer(rb"-?\d+(\.\d+)?", changed[:20000]))
            if found:
                place = rng.choice(found)
                changed[place.start() : place.end()] = rng.choice(_NUMBERS)
        else:
            changed[at : at + rng.randrange(2)] = rng.choice(_TEXTS)
    return bytes(changed)


@contextlib.contextmanager
def limits(room: int = _ROOM) -> Iterator[None]:
    """Little memory, little time."""
    import resource

    def late(*_):
        raise TimeoutError(f"not done after {_SECONDS} s")

    with open("/proc/self/statm") as file:
        taken = int(file.read().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    before = signal.signal(signal.SIGALRM, late)
    resource.setrlimit(resource.RLIMIT_AS, (taken + room, hard))
    signal.alarm(_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.signal(signal.SIGALRM, before)


def problem(read: Callable[[], object], names: set[str]) -> str:
    """What is wrong with how `read` ends, "" if nothing is: a result, or our error about one of the files."""
    try:
        with limits():
            read()
    except (errors.MyceliaError, OSError) as e:
        text = str(e)
        if isinstance(e, MemoryError):
            return f"memory: {text[:300]}"
        if not any(name in text for name in names):
            return f"names no file: {type(e).__mro__[0].__module__}.{type(e).__qualname__}: {text[:300]}"
        raw = re.search(r"Exception thrown from user defined|Python Call Stack", text)
        return f"an error inside of ours: {text[:1500]}" if raw else ""
    except Exception as e:
        while e.__cause__ is not None or e.__context__ is not None:
            e = e.__cause__ or e.__context__
        place = e.__traceback__
        while place is not None and place.tb_next is not None:
            place = place.tb_next
        where = f"{Path(place.tb_frame.f_code.co_filename).name}:{place.tb_lineno}" if place else ""
        return f"{type(e).__name__} at {where}: {str(e)[:300]}"
    return ""


def faults(
    path: Path,
    read: Callable[[], object],
    count: int,
    *,
    inner: bytes | None = None,
    seal: Callable[[bytes], bytes] = bytes,
    names: set[str] = frozenset(),
) -> dict[str, str]:
    """Problem -> the first mutation that gave it, of `count` mutations of the file at `path`.

    The file is good again at the end. A mutation depends on the file's name and content and on its own
    number, not on those before it: MYCELIA_FUZZ=1 and its number as MYCELIA_FUZZ_SEED try it alone.
    `inner`, `seal`: mutate these bytes, and make the file of them, with its checksums and compression.
    `names`: how an error may call the file, besides by its name.
    """
    good = path.read_bytes()
    inner = good if inner is None else inner
    assert str(path.absolute().parent).encode() not in inner, "the content names a temporary directory"
    found: dict[str, str] = {}
    try:
        for number in range(FIRST, FIRST + count):
            content = seal(mutated(inner, random.Random(f"{path.name} {number}")))
            path.write_bytes(content)
            if why := problem(read, {path.name, *names}):
                kind = re.sub(r"0x[0-9a-f]+|\d+", "#", why)
                found.setdefault(kind, f"mutation {number} of {path.name}: {content[:200]!r}")
    finally:
        path.write_bytes(good)
    return found


def count_of(quick: int) -> int:
    """How many mutations a test tries: a few, or as many as tools/fuzz.py asks for."""
    return int(os.environ.get("MYCELIA_FUZZ", quick))
