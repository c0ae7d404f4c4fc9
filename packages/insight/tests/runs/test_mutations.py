"""Event files changed at random, read while they grow: what is right in them is found, to the bit, and what
is broken is named, as `reference_reader` has it.

`python tools/fuzz.py packages/insight/tests/runs/test_mutations.py` goes on with new cases.
"""

from __future__ import annotations

import random
import struct
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
import reference_reader as reference  # noqa: E402
from event_files import (  # noqa: E402
    MINDSPORE,
    TENSORBOARD,
    double,
    event,
    field,
    framed,
    number,
    path_of,
    single,
    varint,
)

from mycelia.io.crc32c import crc32c, masked  # noqa: E402
from mycelia_insight.runs import run as run_module  # noqa: E402
from mycelia_insight.runs.kinds import Kind  # noqa: E402
from mycelia_insight.runs.library import Library  # noqa: E402

FIXTURE = HERE.parent / "fixtures" / "summary" / "run1"
REAL = [path.read_bytes() for path in sorted(FIXTURE.glob("*summary*"))]
TAGS = (b"loss", b"", b"a/b", b"\xff\xfe", "损失".encode(), b"loss" * 40)
#: That lie, with the right checksum.
LENGTHS = [
    struct.pack("<QI", size, masked(crc32c(struct.pack("<Q", size))))
    for size in (0, 1, 200, 2**20, 2**40, 2**63 - 17, 2**63 - 16, 2**64 - 1)
]
ENDS = (b"\x0b", b"\x0c", b"\x00\x01", b"\x0f", b"\x80" * 10 + b"\x01")  # no fields
ODD = (0, 1, -1, 127, 128, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1, -(2**63), 2**64 - 1)


class Draw(random.Random):
    """Messages and changes of them."""

    def odd(self) -> int:
        return self.choice(ODD) if self.random() < 0.5 else self.randrange(200)

    def number(self) -> float:
        return self.choice([self.gauss(0, 1), float("nan"), float("inf"), -float("inf"), 1e300, -0.0])

    def value(self, is_tensorboard: bool) -> bytes:
        tag = field(1, self.choice(TAGS)) if self.random() < 0.95 else b""
        data = field(self.choice([4, 5, 6, 8, 9, 10]), self.message(2))
        if not is_tensorboard:
            return tag + self.choice([single(3, self.gauss(0, 1)), single(3, float("nan")), data])
        plugin = self.choice([b"scalars", b"images", b"text", b"hparams", b"histograms", b"audio", b"own"])
        told = field(9, field(1, field(1, plugin))) if self.random() < 0.5 else b""
        tensor = number(1, self.choice([1, 2, 3])) + self.choice([
            single(5, self.gauss(0, 1)), field(5, self.randbytes(self.choice([3, 4, 8]))),
            double(6, self.number()), number(7, self.odd()), number(10, self.odd()),
            field(4, self.randbytes(self.choice([4, 8, 5]))), b"",
        ])  # fmt: skip
        return (
            tag + told + self.choice([single(2, self.gauss(0, 1)), field(8, tensor), field(8, tensor), data])
        )

    def message(self, depth: int) -> bytes:
        """Fields of any number, not always what they seem."""
        found = b""
        for _ in range(self.randrange(4)):
            n = self.choice([*range(1, 12), 2**29 - 1])
            found += self.choice([
                lambda n=n: number(n, self.odd()), lambda n=n: double(n, self.number()),
                lambda n=n: single(n, 1.5),
                lambda n=n: field(n, self.message(depth - 1) if depth else self.randbytes(self.randrange(9))),
            ])()  # fmt: skip
        return found

    def record(self, step: int, is_tensorboard: bool) -> bytes:
        """The message of an event."""
        values = b"".join(field(1, self.value(is_tensorboard)) for _ in range(self.choice([1, 1, 3, 0])))
        other = field(self.choice([3, 4, 6, 7, 9, 10, 15, 16]), self.message(2))
        body = field(5, values) if self.random() < 0.9 else other
        step = self.odd() if self.random() < 0.03 else step
        return event(step, self.choice([1.7e9 + step % 1000, self.number()]), body)

    def changed(self, message: bytes) -> bytes:
        """A message in which something is wrong, or written in a way that nobody writes."""
        data = bytearray(message)
        at = self.randrange(len(data) + 1)
        change: Callable[[], None] = self.choice([
            lambda: data.__setitem__(slice(at, at + 1), self.randbytes(1)),
            lambda: data.__delitem__(slice(at, at + self.choice([1, 2, 50]))),
            lambda: data.__setitem__(slice(at, at), self.randbytes(self.choice([1, 4]))),
            lambda: data.__setitem__(slice(at, at), varint(self.odd())),
            lambda: data.__setitem__(slice(0, 0), b"\x88\x80\x80\x80\x00\x05"),  # a field's number, too long
            lambda: data.extend(self.choice(ENDS)),
            lambda: data.extend(self.message(1)),
            lambda: data.extend(data[at:]),
        ])  # fmt: skip
        change()
        return bytes(data)

    def file(self, begin: int) -> bytes:
        """An event file whose records' messages, or whose bytes, were changed."""
        is_tensorboard = self.random() < 0.4
        heads = [TENSORBOARD if is_tensorboard else MINDSPORE] if self.random() < 0.9 else []
        if self.random() < 0.15:
            found = self.choice(REAL)[: self.choice([900, 40_000])]
        else:
            messages = [self.record(begin + i, is_tensorboard) for i in range(self.choice([1, 5, 40]))]
            share = self.choice([0, 0.05, 0.5])
            messages = [self.changed(one) if self.random() < share else one for one in messages]
            parts = [*heads, *map(framed, messages)]
            if self.random() < 0.3:  # between records: a length that lies, and something behind it
                end = self.randbytes(self.choice([0, 3, 4, 5, 30]))
                parts.insert(self.randrange(len(parts) + 1), self.choice(LENGTHS) + end)
            found = b"".join(parts)
        data = bytearray(found)
        for _ in range(self.choice([0, 0, 1, 3])):
            at = self.randrange(len(data) + 1)
            change: Callable[[], None] = self.choice([
                lambda at=at: data.__setitem__(slice(at, at + 1), self.randbytes(1)),
                lambda at=at: data.__delitem__(slice(at, at + self.choice([1, 16, 100]))),
                lambda at=at: data.__setitem__(slice(at, at), self.randbytes(self.choice([1, 12, 16]))),
                lambda at=at: data.__delitem__(slice(at, None)),
                lambda at=at: data.__setitem__(slice(at, at), self.choice(LENGTHS)),
            ])  # fmt: skip
            change()
        return bytes(data)


def grown(draw: Draw, folder: Path, files: list[bytes], workspace: Path) -> Library:
    """The library after the files have come piece by piece, in any order, and were read in between."""
    library = Library(str(folder.parent), str(workspace), 0)
    there = [0] * len(files)
    paths = [path_of(folder, 1700000000 + i) for i in range(len(files))]
    whole = draw.random() < 0.3
    while True:
        open_ones = [i for i, data in enumerate(files) if there[i] < len(data) or not paths[i].exists()]
        if not open_ones:
            return library
        # What a tag of TensorBoard's holds is told with its first value: such files come one after the other.
        i = open_ones[0] if any(b"brain." in data for data in files) else draw.choice(open_ones)
        piece = draw.choice([1, 13, 100, 5000, 10**6])
        end = len(files[i]) if whole else min(len(files[i]), there[i] + piece)
        with paths[i].open("ab") as file:
            file.write(files[i][there[i] : end])
        there[i] = end
        if draw.random() < 0.1:  # the service is started anew
            library = None
            library = Library(str(folder.parent), str(workspace), 0)
        if draw.random() < 0.5:
            read(library)


def read(library: Library) -> None:
    library.look()
    while library.read():
        pass


def shown(tag: bytes) -> str:
    return tag.decode("utf-8", "backslashreplace")


@pytest.mark.fuzz(60)
def test_changed_files_say_what_is_right_in_them(tmp_path, monkeypatch, seed):
    draw = Draw(seed)
    monkeypatch.setattr(run_module, "_AT_ONCE", draw.choice([1, 1000, 32 << 20]))
    begins = [0]
    for _ in range(draw.choice([0, 0, 1, 2])):
        begins.append(max(0, begins[-1] + draw.choice([-20, 0, 3, 40, 100])))
    files = [draw.file(begin) for begin in begins]
    library = grown(draw, tmp_path / "base" / "run", files, tmp_path / "workspace")
    read(library)
    run = library.get("./run")
    wanted = reference.read(files)
    values = reference.columns(wanted)

    found = {path: (count, first) for path, count, first in run.broken()}
    for i, file in enumerate(wanted):
        path = str(path_of(tmp_path / "base" / "run", 1700000000 + i))
        expected = (len(file.broken), file.broken[:20])
        assert found.pop(path, (0, [])) == expected, f"file {i}"
    assert found == {}

    tags = {(tag.kind, tag.name): tag for tag in run.tags()}
    names = Counter((kind, shown(tag)) for kind, tag in values)
    assert tags.keys() == names.keys()
    for (kind, tag), expected in values.items():
        name = shown(tag)
        if names[kind, name] > 1:  # two tags that are shown alike
            continue
        if kind == Kind.SCALAR:
            points = run.points(name)
            columns = (points.steps, points.times, points.values)
            got = [(int(s), t.tobytes(), v.tobytes()) for s, t, v in zip(*columns, strict=True)]
        else:
            entries = run.entries(kind, name)
            got = [(one.step, struct.pack("<d", one.time), run.read(one)) for one in entries]
        assert got == expected, (kind, tag)
        told = tags[kind, name]
        ends = (told.count, told.first_step, told.last_step)
        assert ends == (len(expected), expected[0][0], expected[-1][0]), (kind, tag)
        for time, (_, bits, _) in ((told.first_time, expected[0]), (told.last_time, expected[-1])):
            assert struct.pack("<d", time) == bits or time != time
