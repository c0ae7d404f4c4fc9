"""Fields of messages against a decoder that is written down plainly here, whole and damaged ones."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from event_files import double, field, number, single

from mycelia_insight.records.wire import BYTES, VARINT, Broken, fields, plain, varints


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for i, byte in enumerate(data[at : at + 10]):
        value |= (byte & 127) << (7 * i)
        if byte < 128:
            return value % 2**64, at + i + 1
    raise ValueError


def decoded(data: bytes) -> list[tuple[int, int, int | bytes]]:
    found, at = [], 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if not 1 <= key >> 3 < 2**29 or kind in (3, 4, 6, 7):
            raise ValueError
        if kind == VARINT:
            value, at = varint(data, at)
            found.append((key >> 3, kind, value))
            continue
        size, at = varint(data, at) if kind == BYTES else ({1: 8, 5: 4}[kind], at)
        if at + size > len(data):
            raise ValueError
        found.append((key >> 3, kind, data[at : at + size]))
        at += size
    return found


def outcome(decode, data: bytes):
    try:
        return decode(data)
    except ValueError:
        return None


def native(data: bytes) -> list[tuple[int, int, int | bytes]]:
    return [(n, k, v if isinstance(v, int) else bytes(v)) for n, k, v in fields(data)]


def test_random_and_damaged_messages_are_what_the_format_says():
    rng = random.Random(3)
    whole = broken = 0
    for _ in range(5000):
        parts = [
            rng.choice((
                number(rng.randrange(1, 40), rng.randrange(2 ** rng.choice((7, 32, 64)))),
                field(rng.randrange(1, 3000), rng.randbytes(rng.choice((0, 3, 200)))),
                double(rng.randrange(1, 9), rng.random()),
                single(rng.randrange(1, 9), rng.random()),
            ))
            for _ in range(rng.randrange(6))
        ]  # fmt: skip
        data = bytearray(b"".join(parts))
        if data and rng.random() < 0.6:
            data[rng.randrange(len(data))] = rng.randrange(256)
        data = bytes(data[: rng.randrange(len(data) + 1)] if rng.random() < 0.2 else data)
        expected = outcome(decoded, data)
        assert outcome(native, data) == expected, data
        whole, broken = whole + (expected is not None), broken + (expected is None)
    assert whole > 1000 and broken > 1000


def test_plain_values_are_numbers_and_bytes():
    data = number(1, 2**64 - 1) + field(2, b"ab") + double(3, 0.1) + single(4, 0.5)
    assert list(plain(data)) == [(1, 2**64 - 1), (2, b"ab"), (3, 0.1), (4, 0.5)]
    assert list(plain(memoryview(data)[11:15])) == [(2, b"ab")]
    assert list(plain(b"")) == list(fields(b"")) == []


def test_views_outlive_what_gave_them():
    found = [value for _, _, value in fields(bytearray(field(1, b"abc") * 100))]
    assert {bytes(one) for one in found} == {b"abc"}


@pytest.mark.parametrize(
    "data, expected",
    [
        (b"\x00\x01", "no valid number"),
        (b"\x0c", "unknown type 4"),
        (b"\x0a\x05ab", "longer than its message"),
        (b"\x09\x00", "longer than its message"),
        (b"\x08\xff", "cut off"),
        (b"\x08" + b"\xff" * 11, "cut off"),
    ],
)
def test_what_is_broken_is_named(data, expected):
    for iterator in (fields(data), plain(data)):
        with pytest.raises(Broken, match=expected):
            list(iterator)


def test_repeated_varints():
    packed = b"\x01\xff\x01" + b"\xff" * 9 + b"\x01"
    assert varints([memoryview(packed)]).tolist() == [1, 255, -1]
    assert varints([7, 2**64 - 2]).tolist() == [7, -2]
    assert varints([7, memoryview(packed), 2**63]).tolist() == [7, 1, 255, -1, -(2**63)]
    assert varints([]).dtype == varints([memoryview(b"")]).dtype == np.int64
    for data in (b"\x01\xff", b"\xff" * 11):
        with pytest.raises(Broken, match="cut off"):
            varints([memoryview(data)])
    with pytest.raises(TypeError):
        fields("text")  # type: ignore[arg-type]
