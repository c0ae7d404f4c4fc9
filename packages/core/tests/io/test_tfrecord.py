"""TFRecord files: checksums, damage, compression; Examples one by one and many at once."""

from __future__ import annotations

import gzip
import struct
import zlib

import numpy as np
import pytest

from mycelia.engine import _data
from mycelia.engine.base.wire import field, varint
from mycelia.io import tfrecord
from mycelia.io.crc32c import crc32c, crc32c_of, masked
from mycelia.io.examples import features, int_columns
from mycelia.io.reading import DamagedFileError
from mycelia.io.windows import Windows


def bitwise_crc(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def framed(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return b"".join(part + struct.pack("<I", masked(crc32c(part))) for part in (length, data))


def feature(values) -> bytes:
    if isinstance(values[0], bytes):
        return field(1, b"".join(field(1, v) for v in values))
    if isinstance(values[0], float):
        return field(2, field(1, np.array(values, "<f4").tobytes()))
    return field(3, field(1, b"".join(varint(v) for v in values)))


def example(**table) -> bytes:
    return field(1, b"".join(field(1, field(1, k.encode()) + field(2, feature(v))) for k, v in table.items()))


def read(path, *options) -> list[bytes]:
    return list(tfrecord.records(str(path), *options))


DATA = np.random.default_rng(3).integers(0, 256, 40_000, dtype=np.uint8).tobytes()


def test_checksums():
    assert crc32c(b"123456789") == 0xE3069283
    assert masked(0xE3069283) == ((0xE3069283 >> 15 | 0xE3069283 << 17) + 0xA282EAD8) & 0xFFFFFFFF
    for size in (0, 1, 127, 128, 1023, 1024, 3000, 20_000):
        assert crc32c(DATA[:size]) == bitwise_crc(DATA[:size])


@pytest.mark.parametrize("tables", [False, True])  # the machine's own instruction, where it has one, or not
def test_checksums_of_many_pieces(tables):
    sizes = np.array([500, 128, 0, 1, 7, 8, 9, 1031])
    begins = np.arange(len(sizes)) * 131
    wanted = [bitwise_crc(DATA[b : b + n]) for b, n in zip(begins, sizes)]
    assert _data.crc32c(DATA, begins, sizes, tables).tolist() == wanted
    assert crc32c_of(DATA, begins, sizes).tolist() == wanted


@pytest.mark.parametrize("begin, size", [(-1, 3), (0, 40_001), (39_999, 2), (0, -1), (2**62, 2**62)])
def test_a_piece_outside_of_the_data_has_no_checksum(begin, size):
    with pytest.raises(ValueError):
        crc32c_of(DATA, np.array([begin]), np.array([size]))


@pytest.mark.parametrize("compression, pack", [("", bytes), ("GZIP", gzip.compress), ("ZLIB", zlib.compress)])
def test_records_in_every_compression(tmp_path, compression, pack):
    rng = np.random.default_rng(0)
    wanted = [DATA[: int(n)] for n in rng.integers(0, 600, 1500)] + [DATA * 30]  # more than one block
    (tmp_path / "a").write_bytes(pack(b"".join(map(framed, wanted))))
    assert read(tmp_path / "a", compression) == wanted
    assert tfrecord.count(str(tmp_path / "a"), compression) == len(wanted)
    (tmp_path / "none").write_bytes(b"")
    assert read(tmp_path / "none", compression) == []


@pytest.mark.parametrize("cut", [1, 5, 20, 40, 44])
def test_a_file_that_ends_inside_of_a_record(tmp_path, cut):
    whole = framed(b"first") + framed(b"0123456789" * 3)
    (tmp_path / "a").write_bytes(whole[:-cut])
    with pytest.raises(RuntimeError, match="record 1 is cut off"):
        read(tmp_path / "a")
    (tmp_path / "z").write_bytes(zlib.compress(whole)[:-cut])
    with pytest.raises(RuntimeError, match="cut off"):
        read(tmp_path / "z", "ZLIB")


@pytest.mark.parametrize("at, what", [(2, "length"), (9, "length"), (14, "data"), (18, "data")])
def test_changed_bytes_are_noticed(tmp_path, at, what):
    data = bytearray(framed(b"first") * 3)
    data[21 + at] ^= 4
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(DamagedFileError, match=f"checksum of the {what} of record 1"):
        read(tmp_path / "a")


def test_other_files_are_refused(tmp_path):
    (tmp_path / "a").write_bytes(b"this is a text, and no records at all")
    for compression in ("", "GZIP", "ZLIB"):
        with pytest.raises(DamagedFileError, match="a"):
            read(tmp_path / "a", compression)


def test_an_example_by_itself():
    found = tfrecord.example(example(s=[b"a", b""], f=[0.5, -2.0], i=[1, -1, 2**40]))
    assert found["s"] == [b"a", b""] and found["f"].tolist() == [0.5, -2]
    assert found["i"].tolist() == [1, -1, 2**40] and found["i"].dtype == np.int64
    for wrong in (b"\x0a\xff", b"abc", example(i=[1])[:-1]):
        with pytest.raises(ValueError):
            tfrecord.example(wrong)


def test_examples_together_are_what_they_are_alone():
    rng = np.random.default_rng(1)
    tables = []
    for k in range(200):
        table = {"f": rng.normal(size=3).tolist(), "i": [int(v) for v in rng.integers(-9, 2**40, 2 + k % 2)]}
        table["longer name" * 20] = [DATA[: int(rng.integers(0, 400))]]
        names = list(table) if k % 3 else list(table)[::-1]
        tables.append({n: table[n] for n in names})
    tables[7]["f"], tables[9]["extra"] = [1, 2, 3], [b"not", b"asked for"]
    data = [example(**table) for table in tables]
    odd = {20: b"", 21: data[21][:-1], 22: b"\xff" * 30, 23: example(i=[1])}
    for k, wrong in odd.items():
        data[k] = wrong
    sizes = np.array([len(d) for d in data])
    ends = np.cumsum(sizes + 4) - 4
    windows = Windows(b"".join(d + bytes(4) for d in data))
    names = ["f", "i", "longer name" * 20]
    found, alone = features(windows, ends - sizes, ends, names)
    assert np.flatnonzero(alone).tolist() == list(odd)
    good = np.flatnonzero(~alone)
    kinds, begins, stops = (part[good] for part in found["i"])
    values, counts = int_columns(windows, begins, stops)
    assert set(kinds.tolist()) == {tfrecord.INTS} and found["f"][0][7] == tfrecord.INTS
    expected = [tfrecord.example(data[k])["i"] for k in good]
    assert counts.tolist() == [len(e) for e in expected]
    assert values.tolist() == np.concatenate(expected).tolist()


def test_numbers_that_are_cut_off():
    windows = Windows(b"\x01\x80\x05" + bytes(8))
    assert int_columns(windows, np.array([0]), np.array([2])) is None
    values, counts = int_columns(windows, np.array([0, 1, 1]), np.array([1, 1, 3]))
    assert values.tolist() == [1, 640] and counts.tolist() == [1, 0, 1]
