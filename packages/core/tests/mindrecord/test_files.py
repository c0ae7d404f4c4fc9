"""MindRecord files: those of MindSpore are read, ours have the same bytes, damaged ones are refused."""

from __future__ import annotations

import json
import pathlib
import shutil
import sqlite3
import struct

import numpy as np
import pytest

from mycelia import mindrecord
from mycelia.mindrecord import FileReader, FileWriter, MindPage

FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures/formats/mindrecord"
MIXED = {
    "file_name": {"type": "string"}, "label": {"type": "int32"}, "weight": {"type": "float64"},
    "image": {"type": "float32", "shape": [1, 8, 8]}, "boxes": {"type": "int32", "shape": [-1, 4]},
    "data": {"type": "bytes"},
}  # fmt: skip
TOKENS = {"label": {"type": "int64"}, "token": {"type": "int64", "shape": [-1]}}


def mixed_rows() -> list[dict]:
    with np.load(FIXTURES / "mixed.npz") as values:
        return [
            {
                "file_name": f"img_{i:02d}.png",
                "label": i % 4,
                "weight": i / 7,
                "image": values[f"image_{i}"],
                "boxes": values[f"boxes_{i}"],
                "data": values[f"data_{i}"].tobytes(),
            }
            for i in range(24)
        ]


def token_rows() -> list[dict]:
    return [{"label": i, "token": np.array([i, -i, 300 * i, 2**33 + i])} for i in range(11)]


def write(path, schema, rows, shards=1, index=None, description="", overwrite=False) -> str:
    writer = FileWriter(str(path), shards, overwrite)
    writer.set_header_size(1 << 14)
    writer.set_page_size(1 << 15)
    writer.add_schema(schema, description)
    if index:
        writer.add_index(index)
    writer.write_raw_data(rows)
    writer.commit()
    return str(path) if shards == 1 else f"{path}0"


def read(path, **options) -> list[dict]:
    reader = FileReader(str(path), **options)
    rows = list(reader.get_next())
    reader.close()
    return rows


def assert_same_rows(found, expected):
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        assert a.keys() == b.keys()
        for name in a:
            np.testing.assert_array_equal(a[name], b[name])
            assert getattr(a[name], "dtype", None) == getattr(b[name], "dtype", None)


def test_rows_of_mindspore_are_read():
    assert_same_rows(read(FIXTURES / "mixed.mindrecord"), mixed_rows())
    assert_same_rows(read(FIXTURES / "shards.mindrecord1"), token_rows())  # any file names them all


def test_a_list_of_files_reads_only_these():
    reader = FileReader([str(FIXTURES / "shards.mindrecord1")])
    assert reader.len() == 6 and next(reader.get_next())["label"] == 5
    assert reader.schema() == TOKENS


def test_the_same_rows_give_the_bytes_that_mindspore_writes(tmp_path):
    write(tmp_path / "shards.mindrecord", TOKENS, token_rows(), 2, None, "two shards, one blob")
    for name in ("shards.mindrecord0", "shards.mindrecord1"):
        found, expected = (tmp_path / name).read_bytes(), (FIXTURES / name).read_bytes()
        (size,) = struct.unpack_from("<Q", expected)
        assert found[16384:] == expected[16384:] and len(found) == len(expected)
        header = json.loads(found[8:16384].rstrip(b"\0"))
        assert header.pop("generation")  # ours; MindSpore passes over it
        assert header == json.loads(expected[8 : 8 + size])
        indexes = []
        for folder in (tmp_path, FIXTURES):
            connection = sqlite3.connect(f"file:{folder / name}.db?mode=ro", uri=True)
            tables = ("INDEXES", "SHARD_NAME")
            indexes.append([connection.execute(f"SELECT * FROM {table}").fetchall() for table in tables])
            connection.close()
        assert indexes[0] == indexes[1]


def test_columns_and_their_errors():
    assert list(read(FIXTURES / "mixed.mindrecord", columns=["data", "label"])[3]) == ["label", "data"]
    with pytest.raises(RuntimeError, match="can not found in schema"):
        FileReader(str(FIXTURES / "mixed.mindrecord"), columns=["nothing"])
    with pytest.raises(mindrecord.ParamTypeError):
        FileReader(str(FIXTURES / "mixed.mindrecord"), columns="label")
    with pytest.raises(RuntimeError, match="not exists"):
        FileReader("nofile")


def test_many_pages_and_appended_rows(tmp_path):
    rows = mixed_rows() * 4
    path = write(tmp_path / "a.mindrecord", MIXED, rows[:50])
    writer = FileWriter.open_for_append(path)
    with pytest.raises(mindrecord.MRMAddSchemaError):
        writer.add_schema(MIXED)
    writer.write_raw_data(rows[50:])
    assert len(read(path)) == 50  # nothing changes before commit
    writer.commit()
    assert_same_rows(read(path), rows)
    with pytest.raises(RuntimeError, match="flushed"):
        writer.write_raw_data(rows)


def test_existing_files_are_replaced_only_on_request_and_only_by_commit(tmp_path):
    path = write(tmp_path / "a.mindrecord", TOKENS, token_rows())
    with pytest.raises(RuntimeError, match="files already exist"):
        write(path, TOKENS, token_rows()[:2])
    writer = FileWriter(path, overwrite=True)
    writer.add_schema(TOKENS)
    writer.write_raw_data(token_rows()[:2])
    del writer
    assert len(read(path)) == 11
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.mindrecord", "a.mindrecord.db"]
    write(path, TOKENS, token_rows()[:2], overwrite=True)
    assert len(read(path)) == 2


def test_rows_that_do_not_fit_are_left_out(tmp_path):
    schema = {"a": {"type": "int32"}, "x": {"type": "float32", "shape": [2, -1]}}
    good = {"a": 1, "x": np.ones((2, 3), np.float32)}
    bad = [{"a": "1"}, {"a": True}, {"a": np.int64(1)}, {"x": [1, 2]}, {"x": np.ones(3, np.float32)}]
    bad += [{"x": np.ones((2, 2))}]
    path = write(tmp_path / "a", schema, [{**good, **change} for change in bad] + [good, {"a": 1}])
    assert_same_rows(read(path), [good])
    writer = FileWriter(str(tmp_path / "b"))
    writer.add_schema(schema)
    with pytest.raises(RuntimeError, match="no valid data"):
        writer.write_raw_data([{"a": 1}])
    with pytest.raises(mindrecord.ParamTypeError):
        writer.write_raw_data(good)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ({}, "MRMInvalidSchemaError"),
        ({"a": {"type": "int8"}}, "MRMInvalidSchemaError"),
        ({"a-b": {"type": "int32"}}, "MRMInvalidSchemaError"),
        ({"a": {"type": "bytes", "shape": [1]}}, "MRMInvalidSchemaError"),
        ({"a": {"type": "int32", "shape": [-1, -1]}}, "MRMBuildSchemaError"),
        ({"a": {"type": "int32", "shape": [0]}}, "MRMBuildSchemaError"),
    ],
)
def test_bad_schemas(content, kind):
    with pytest.raises(getattr(mindrecord, kind), match=kind):
        FileWriter("a").add_schema(content)


def test_bad_arguments_of_the_writer():
    for arguments in (("",), (3,), ("a*",), ("a", 0), ("a", "1"), ("a", 1, 1)):
        with pytest.raises(mindrecord.ParamValueError):
            FileWriter(*arguments)
    writer = FileWriter("a")
    for size in (1 << 13, 1 << 28, (1 << 14) + 2):
        with pytest.raises(RuntimeError):
            writer.set_header_size(size)
    with pytest.raises(mindrecord.MRMGetMetaError):
        writer.add_index(["a"])
    writer.add_schema(MIXED)
    with pytest.raises(mindrecord.MRMDefineIndexError):
        writer.add_index(["data"])


def test_a_row_larger_than_a_page(tmp_path):
    with pytest.raises(RuntimeError, match="set_page_size"):
        write(tmp_path / "a", {"data": {"type": "bytes"}}, [{"data": bytes(40000)}])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "numbers", [[], [0], [127, -128, 128, -129, 32767, 32768], [2**31, -(2**63), 2**63 - 1]]
)
def test_ints_take_the_fewest_bytes_and_come_back(tmp_path, numbers):
    schema = {"n": {"type": "int64", "shape": [-1]}, "b": {"type": "bytes"}}
    rows = [{"n": np.array(numbers, np.int64), "b": b""}]
    assert_same_rows(read(write(tmp_path / "a", schema, rows)), rows)


def test_pages_of_a_class():
    page = MindPage(str(FIXTURES / "mixed.mindrecord"))
    assert page.candidate_fields == ["file_name", "label"]
    with pytest.raises(mindrecord.MRMDefineCategoryError):
        page.category_field = "weight"
    page.category_field = "label"
    assert page.read_category_info() == (
        '{"categories":[{"count":6,"id":0,"name":"0"},{"count":6,"id":1,"name":"1"},'
        '{"count":6,"id":2,"name":"2"},{"count":6,"id":3,"name":"3"}],"key":"label_0"}'
    )
    assert [row["file_name"] for row in page.read_at_page_by_id(1, 1, 2)] == ["img_09.png", "img_13.png"]
    assert [row["weight"] for row in page.read_at_page_by_name("3", 2, 2)] == [19 / 7, 23 / 7]
    with pytest.raises(RuntimeError, match="page no"):
        page.read_at_page_by_id(0, 2, 4)
    with pytest.raises(mindrecord.ParamValueError):
        page.read_at_page_by_id(-1, 0, 1)


# ---- damage --------------------------------------------------------------------------------------------


@pytest.fixture
def copy(tmp_path):
    for name in ("mixed.mindrecord", "mixed.mindrecord.db"):
        shutil.copy(FIXTURES / name, tmp_path / name)
    return tmp_path / "mixed.mindrecord"


@pytest.mark.parametrize("size", [0, 5, 100, 16384, 40000, 83000])
def test_cut_off_files_are_refused(copy, size):
    copy.write_bytes(copy.read_bytes()[:size])
    with pytest.raises(RuntimeError, match="cut off|lower limit"):
        read(copy)


@pytest.mark.parametrize("at", [3, 20, 16384, 16400])
def test_changed_bytes_are_refused(copy, at):
    data = bytearray(copy.read_bytes())
    data[at] ^= 0xFF
    copy.write_bytes(data)
    with pytest.raises(RuntimeError, match="header|damaged|wants|cut off"):
        read(copy)


def test_a_damaged_or_foreign_index_is_refused(copy):
    index = copy.with_name("mixed.mindrecord.db")
    whole = index.read_bytes()
    for content in (
        b"",
        b"not a database" * 100,
        whole[:5000],
        (FIXTURES / "shards.mindrecord0.db").read_bytes(),
    ):
        index.write_bytes(content)
        with pytest.raises(RuntimeError, match="index"):
            read(copy)
    index.unlink()
    with pytest.raises(RuntimeError, match="not exists"):
        read(copy)


# ---- encryption ----------------------------------------------------------------------------------------


@pytest.fixture
def settings():
    """Later tests write plain files, whatever becomes of this one."""
    yield
    mindrecord.set_enc_key(None)
    mindrecord.set_enc_mode("AES-GCM")
    mindrecord.set_dec_mode(None)


@pytest.fixture
def key(settings):
    pytest.importorskip("cryptography")
    mindrecord.set_enc_key("0123456789abcdef")


def test_encrypted_files_need_their_key(tmp_path, key):
    path = write(tmp_path / "a", TOKENS, token_rows())
    assert_same_rows(read(path), token_rows())
    mindrecord.set_enc_key("another key 1234")
    with pytest.raises(RuntimeError, match="wrong key"):
        read(path)
    mindrecord.set_enc_key(None)
    with pytest.raises(RuntimeError, match="encrypted"):
        read(path)


def flipped(source, size, target, key):
    """Encryption and decryption at once."""
    target.write(bytes(byte ^ ord(key[0]) for byte in source.read(size)))


def flipped_back(source, size, target, key):
    flipped(source, size - 11, target, key)  # the end says how the file is encrypted


def test_files_encrypted_by_a_function(tmp_path, settings):
    mindrecord.set_enc_key("k" * 16)
    mindrecord.set_enc_mode(flipped)
    path = write(tmp_path / "a", TOKENS, token_rows())
    assert pathlib.Path(path).read_bytes().endswith(bytes(4) + b"UDF-ENCENCRYPT")
    with pytest.raises(RuntimeError, match="set_dec_mode"):
        read(path)
    mindrecord.set_dec_mode(flipped_back)
    assert_same_rows(read(path), token_rows())
    mindrecord.set_dec_mode("AES-GCM")
    with pytest.raises(RuntimeError, match="encrypted with UDF-ENC"):
        read(path)


def test_settings_of_the_encryption(settings):
    for bad in ("short", 3, b"0123456789012345"):
        with pytest.raises(ValueError):
            mindrecord.set_enc_key(bad)
    with pytest.raises(ValueError):
        mindrecord.set_enc_mode("AES-CBC")
