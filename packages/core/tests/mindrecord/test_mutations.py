"""Readers of MindRecord, given files changed at random: see tests/mutations.py."""

from __future__ import annotations

import json
import random
import struct
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from mycelia import dataset as ds
from mycelia import mindrecord
from mycelia.io import crypto

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from mutations import count_of, faults  # noqa: E402

KEY = b"0123456789abcdef"
pytestmark = [
    pytest.mark.fuzz,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is limited as on Linux"),
]


@pytest.fixture(autouse=True)
def same_files(tmp_path, monkeypatch):
    """Files whose bytes depend on nothing but the test: no names of temporary directories, no random keys."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(crypto, "os", SimpleNamespace(urandom=random.Random(0).randbytes))


def rows(source):
    return list(source.create_tuple_iterator(num_epochs=1, output_numpy=True))


def report(found):
    assert not found, "\n".join(f"{why}\n    {mutation}" for why, mutation in found.items())


# ---- MindRecord --------------------------------------------------------------------------------------------


@pytest.fixture
def record(tmp_path):
    path = tmp_path / "a.mr"
    writer = mindrecord.FileWriter(str(path))
    writer.set_header_size(16 << 10)
    writer.set_page_size(32 << 10)
    writer.add_schema(
        {
            "n": {"type": "int64"},
            "t": {"type": "string"},
            "f": {"type": "float32"},
            "b": {"type": "bytes"},
            "a": {"type": "int32", "shape": [-1]},
            "g": {"type": "float32", "shape": [2, 2]},
        }
    )
    writer.write_raw_data(
        [
            {
                "n": k, "t": "t" * (k % 3), "f": 0.5, "b": bytes(k % 4),
                "a": np.arange(k % 5 + 1, dtype=np.int32), "g": np.ones((2, 2), np.float32),
            }
            for k in range(20)
        ]
    )  # fmt: skip
    writer.commit()
    return path


def read_record(path):
    reader = mindrecord.FileReader(str(path))
    try:
        list(reader.get_next())
    finally:
        reader.close()
    rows(ds.MindDataset(str(path), shuffle=False))


def read_pages(path):
    pages = mindrecord.MindPage(str(path))
    pages.category_field = "n"
    info = json.loads(pages.read_category_info())
    for category in info["categories"][:3]:
        pages.read_at_page_by_id(category["id"], 0, 5)


@pytest.mark.parametrize("kind", ["header", "pages", "index", "classes"])
def test_mindrecord(record, kind):
    path = record.with_name("a.mr.db") if kind in ("index", "classes") else record
    whole, read = path.read_bytes(), read_pages if kind == "classes" else read_record
    inner, seal = None, bytes
    if kind == "header":  # without the zeros behind it
        (size,) = struct.unpack_from("<Q", whole)
        inner = whole[: 8 + size]
        seal = lambda data: data.ljust(16384, b"\0") + whole[16384:]
    elif kind == "pages":
        inner = whole[16384:18000] + whole[49152:]
        seal = lambda data: whole[:16384] + data[:1616].ljust(32768, b"\0") + data[1616:]
    report(faults(path, lambda: read(record), count_of(100), inner=inner, seal=seal, names={"a.mr"}))


def test_encrypted_mindrecord(record):
    pytest.importorskip("cryptography")
    mindrecord.set_enc_key(KEY.decode())
    try:
        path = record.with_name("e.mr")
        writer = mindrecord.FileWriter(str(path))
        writer.set_header_size(16 << 10)
        writer.set_page_size(32 << 10)
        writer.add_schema({"n": {"type": "int64"}})
        writer.write_raw_data([{"n": 1}] * 20)
        writer.commit()
        for name in ("e.mr", "e.mr.db"):
            changed = path.with_name(name)
            report(faults(changed, lambda: read_record(path), count_of(40), names={"e.mr"}))
    finally:
        mindrecord.set_enc_key(None)
