"""Many rows at once are what they are one by one: their bytes, and what is read of them."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import mycelia as ms
from mycelia import dataset as ds
from mycelia.mindrecord import FileReader, FileWriter, msgpack, packing
from mycelia.mindrecord.schema import Schema, check, pack_ints
from mycelia.mindrecord.shard import Shards

FIELDS = {
    "text": {"type": "string"}, "i": {"type": "int32"}, "long": {"type": "int64"}, "f": {"type": "float32"},
    "d": {"type": "float64"}, "raw": {"type": "bytes"}, "more": {"type": "bytes"},
    "boxes": {"type": "int32", "shape": [-1, 2]}, "ids": {"type": "int64", "shape": [3]},
    "x": {"type": "float32", "shape": [2, 2]}, "y": {"type": "float64", "shape": [-1]},
}  # fmt: skip
EDGES = [0, 127, 128, 255, 256, 65535, 65536, 2**31 - 1, -1, -32, -33, -128, -129, -32768, -32769, -(2**31)]
LONGS = [*EDGES, 2**32 - 1, 2**32, 2**63 - 1, -(2**31) - 1, -(2**63)]
DOUBLES = [0.0, -0.5, 1 / 3, 1e300, float("inf"), float("nan"), 16777217.0]


def rows(count: int, **same) -> list[dict]:
    """Rows whose fields take every form; `same` fixes the lengths of some."""
    rng = np.random.default_rng(5)
    made = []
    for k in range(count):
        row = {
            "text": ["", "abc", "größer" * 6, "x" * (k % 300), "nul\0"][k % 5],
            "i": EDGES[k % len(EDGES)],
            "long": np.int64(LONGS[k % len(LONGS)]) if k % 2 else LONGS[k % len(LONGS)],
            "f": float(np.float32(k / 3)),
            "d": DOUBLES[k % len(DOUBLES)],
            "raw": rng.integers(0, 256, k % 40, dtype=np.uint8).tobytes(),
            "more": bytes(k % 3),
            "boxes": rng.integers(-70000, 70000, (k % 4 + 1, 2)).astype(np.int32),
            "ids": rng.integers(-(2**62), 2**62, 3) // 10 ** (k % 15),
            "x": rng.normal(size=(2, 2)).astype(np.float32).T,
            "y": rng.normal(size=k % 5 + 1),
        }
        made.append({**row, **same})
    return made


@pytest.fixture
def seeded(monkeypatch):
    monkeypatch.setitem(ds.config._state, "seed", 5)


def write(path, fields, data, shards=1, page=1 << 15) -> str:
    writer = FileWriter(str(path), shards)
    writer.set_header_size(1 << 16)
    writer.set_page_size(page)
    writer.add_schema(fields, "")
    for at in range(0, len(data), 70):
        writer.write_raw_data(data[at : at + 70])
    writer.commit()
    return str(path) if shards == 1 else f"{path}0"


def assert_equal(a, b):
    assert type(a) is type(b) and getattr(a, "dtype", None) == getattr(b, "dtype", None)
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("names", [list(FIELDS), ["i", "f"], ["raw"], ["boxes"], ["text", "x", "more"]])
def test_rows_packed_together_have_the_bytes_of_rows_packed_alone(names):
    schema = Schema(check({name: FIELDS[name] for name in names}))
    data = [{name: row[name] for name in names} for row in rows(50)]
    together = packing.pack_rows(schema, data, schema.scalars)
    alone = [packing.pack_rows(schema, [row], schema.scalars) for row in data]
    assert together.raw == b"".join(p.raw for p in alone)
    assert together.blob == b"".join(p.blob for p in alone)
    for part in ("raw_sizes", "blob_sizes"):
        assert getattr(together, part).tolist() == [int(getattr(p, part)[0]) for p in alone]
    assert together.saved == sum(p.saved for p in alone)
    assert str(together.keys) == str([[p.keys[k][0] for p in alone] for k in range(len(schema.scalars))])


def test_numbers_of_every_size():
    for value in LONGS:
        assert msgpack.unpack(msgpack.pack(value)) == value
    arrays = [np.array(LONGS[:n], np.int64) for n in (1, 4, 5, 0, len(LONGS))]
    flat, sizes = packing.pack_int_arrays(arrays)
    assert flat.tobytes() == b"".join(map(pack_ints, arrays))
    assert sizes.tolist() == [len(pack_ints(a)) for a in arrays]


@pytest.mark.parametrize("shards", [1, 3])
def test_columns_are_the_rows(tmp_path, shards):
    path = write(tmp_path / "a", FIELDS, rows(300), shards)
    files = Shards.open(path)
    order = np.random.default_rng(0).permutation(len(files))
    found = files.columns(order, set(FIELDS))
    for k, number in enumerate(order.tolist()):
        row = files.row(number)
        for name, spec in FIELDS.items():
            if "shape" in spec:
                assert_equal(np.asarray(found[name][k]), row[name])
            elif spec["type"] == "bytes":
                assert bytes(found[name][k]) == row[name]
            elif spec["type"] == "string":
                assert found[name][k] == row[name]
            else:
                assert_equal(found[name][k], np.array(row[name]).astype(spec["type"])[()])
    files.close()


SAME = {"raw": b"raw", "boxes": np.array([[1, 300]], np.int32), "y": np.ones(2), "text": "some\0text"}


LONG_TEXT = "9" * 30
_PACKED = {"None": b"\xc0", "True": b"\xc3", "{}": b"\x80", "b'x'": b"\xc4\x01x"}
_PACKED |= {str(n): b"\xcf" + n.to_bytes(8, "big") for n in (2**63, 2**64 - 1)}


@pytest.mark.parametrize("count", [3, 40])  # a few rows are read one by one, many at once
@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("i", 2**31 - 1, 2**31 - 1), ("i", -(2**31), -(2**31)), ("i", 2**31, None), ("i", -(2**31) - 1, None),
        ("long", 2**63, None), ("long", 2**64 - 1, None), ("long", "12", 12), ("long", LONG_TEXT, None),
        ("i", "x", None), ("i", 1.5, None), ("i", True, None), ("i", None, None), ("i", {}, None),
        ("f", 2, 2.0), ("f", "1.5", 1.5), ("f", "", None), ("f", None, None), ("f", True, None),
        ("text", 5, None), ("text", None, None), ("text", b"x", None),
    ],
)  # fmt: skip
def test_other_values_are_read_as_the_type_or_refused(tmp_path, monkeypatch, name, value, found, count):
    """`found`: what a field holds for `value` in the file; None where that is an error, as in MindSpore."""
    packed = _PACKED.get(str(value)) or msgpack.pack(value)
    row = msgpack.map_head(1) + msgpack.pack(name) + packed
    monkeypatch.setattr(Schema, "encode_scalars", lambda *_: row)
    for pack in ("_texts", "_floats", "_ints"):
        monkeypatch.setattr(packing, pack, lambda values: [packing._same(packed, len(values))])
    usual = {"f": 0.0, "text": ""}.get(name, 0)
    path = write(tmp_path / "a.mr", {name: FIELDS[name]}, [{name: usual}] * count)
    shards = Shards.open(path)
    if found is None:
        with pytest.raises(ms.errors.MyceliaError, match=rf"a\.mr.*row 0.*'{name}'"):
            shards.columns(np.arange(count), [name])
    else:
        column = shards.columns(np.arange(count), [name])[name]
        assert column.dtype == FIELDS[name]["type"] and (column == found).all()
    shards.close()


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("size, drop", [(1, False), (7, False), (64, True), (500, False)])
def test_batches_are_stacked_rows(tmp_path, seeded, shuffle, size, drop):
    path = write(tmp_path / "a", FIELDS, rows(150, **SAME), 2)
    dataset = ds.MindDataset(path, shuffle=shuffle)
    expected = list(dataset.rows(1))
    at = 0
    for batch in dataset.batches(1, size, drop):
        for name, column, *values in zip(dataset.get_col_names(), batch, *expected[at : at + size]):
            if name != "more":  # byte strings of different lengths get one dtype
                assert_equal(column, np.stack(values))
        at += len(batch[0])
    assert at == (len(expected) // size * size if drop else len(expected))


def test_rows_of_different_shapes_are_no_batch(tmp_path):
    dataset = ds.MindDataset(write(tmp_path / "a", {"y": FIELDS["y"]}, rows(40)), shuffle=False)
    with pytest.raises(RuntimeError, match="different shapes"):
        next(iter(dataset.batch(8)))
    assert [len(row[0]) for row in dataset.create_tuple_iterator(output_numpy=True, num_epochs=1)][:3] == [
        1,
        2,
        3,
    ]


def test_open_files_belong_to_one_process(tmp_path):
    files = Shards.open(write(tmp_path / "a", FIELDS, rows(20)))
    assert copy.copy(files) is files and copy.deepcopy(files) is files
    other = pickle.loads(pickle.dumps(files))
    assert other is not files and same_rows(other, files)
    other.close()
    files.close()


def same_rows(a: Shards, b: Shards) -> bool:
    return all(str(a.row(k)) == str(b.row(k)) for k in range(len(b)))


FULL = """
import resource, signal, sys
import numpy as np
from mycelia.mindrecord import FileWriter
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
writer = FileWriter(sys.argv[1])
writer.set_page_size(1 << 15)
writer.set_header_size(1 << 14)
writer.add_schema({"a": {"type": "bytes"}, "n": {"type": "int32"}})
writer.write_raw_data([{"a": bytes(1000), "n": k} for k in range(100)])
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
try:
    for _ in range(100):
        writer.write_raw_data([{"a": bytes(1000), "n": k} for k in range(100)])
    writer.commit()
except RuntimeError as e:
    print("refused:", e)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits of file sizes are POSIX")
def test_a_full_disk_leaves_nothing(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path / "full")], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.startswith("refused:") and "full" in done.stdout, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_file_reader_gives_the_rows(tmp_path):
    data = rows(60)
    found = list(FileReader(write(tmp_path / "a", FIELDS, data)).get_next())
    for a, b in zip(found, data, strict=True):
        assert a["text"] == b["text"] and a["long"] == b["long"] and a["raw"] == b["raw"]
        np.testing.assert_array_equal(a["boxes"], b["boxes"])
        np.testing.assert_array_equal(a["x"], b["x"])
