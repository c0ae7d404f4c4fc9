"""The .ckpt layout against files of MindSpore, against protobuf, and against damage."""

import importlib.util
import io
import json
import pathlib
import random

import numpy as np
import pytest

from mycelia.io import ckpt
from mycelia.io.raw import Raw

FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures/formats/ckpt"
KEY = b"0123456789abcdef"


def raw(array, dtype=None):
    array = np.asarray(array)
    return Raw(dtype or array.dtype.name, array.shape, array)


def written(entries, **options):
    file = io.BytesIO()
    ckpt.write(file, entries.items(), **options)
    return file.getvalue()


def read_bytes(tmp_path, data, **options):
    path = tmp_path / "x.ckpt"
    path.write_bytes(data)
    return ckpt.read(str(path), **options)


def assert_same(a, b):
    assert list(a) == list(b)
    for name in a:
        if isinstance(a[name], str):
            assert a[name] == b[name]
        else:
            assert (a[name].dtype, a[name].shape) == (b[name].dtype, b[name].shape)
            np.testing.assert_array_equal(a[name].array, b[name].array)


def test_reads_names_order_dtypes_and_values_of_a_mindspore_file():
    expected = np.load(FIXTURES / "lenet_params.npz")
    entries = ckpt.read(str(FIXTURES / "lenet.ckpt"))
    assert list(entries) == expected.files
    for name in expected.files:
        assert entries[name].dtype == expected[name].dtype.name
        np.testing.assert_array_equal(entries[name].array, expected[name])


def test_reads_appended_values():
    entries = ckpt.read(str(FIXTURES / "lenet_append.ckpt"))
    for row in json.loads((FIXTURES / "lenet_append.json").read_text(encoding="utf-8")):
        value = entries[row["name"]]
        if "str" in row:
            assert value == row["str"]
        else:
            assert value.dtype == row["dtype"].lower() and list(value.shape) == row["shape"]
            np.testing.assert_allclose(value.array.ravel()[:4], row["values"])


@pytest.mark.parametrize("name", ["lenet", "lenet_append", "lenet_crc", "trained_with_optimizer"])
def test_writes_the_bytes_that_mindspore_writes(name):
    path = FIXTURES / f"{name}.ckpt"
    assert written(ckpt.read(str(path)), crc_check=name == "lenet_crc") == path.read_bytes()


def test_agrees_with_protobuf():
    spec = importlib.util.spec_from_file_location(
        "checkpoint_pb2", pathlib.Path(__file__).with_name("checkpoint_pb2.py")
    )
    schema = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(schema)
    message = schema.Checkpoint.FromString((FIXTURES / "lenet_append.ckpt").read_bytes())
    entries = ckpt.read(str(FIXTURES / "lenet_append.ckpt"))
    assert [v.tag for v in message.value] == list(entries)
    for v in message.value:
        if v.tensor.tensor_type != "str":
            assert bytes(entries[v.tag].data) == v.tensor.tensor_content
            assert list(entries[v.tag].shape) == list(v.tensor.dims)


@pytest.mark.parametrize(
    "dtype",
    [
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float16",
        "float32",
        "float64",
        "complex64",
    ],
)
@pytest.mark.parametrize("shape", [(), (1,), (2, 3)])
def test_every_dtype_survives(tmp_path, dtype, shape):
    entries = {"a": raw(np.arange(np.prod(shape)).reshape(shape).astype(dtype)), "b.c": raw(np.float32(1))}
    assert_same(read_bytes(tmp_path, written(entries)), entries)


def test_bfloat16_is_kept_as_its_two_bytes(tmp_path):
    data = written({"b": raw(np.array([0x3FC0, 0x4000], np.uint16), "bfloat16")})
    assert data == b"\n\x17\n\x01b\x12\x12\x08\x02\x12\x08BFloat16\x1a\x04\xc0?\x00@"
    assert read_bytes(tmp_path, data)["b"].dtype == "bfloat16"


def test_an_empty_tensor_makes_no_record_and_an_empty_file_has_no_entries(tmp_path):
    assert written({"e": raw(np.ones((0, 3), np.float32))}) == b""
    assert read_bytes(tmp_path, b"") == {}


def test_large_values_are_cut_and_joined(tmp_path, monkeypatch):
    monkeypatch.setattr(ckpt, "PIECE_SIZE", 100)
    entries = {"a": raw(np.arange(130, dtype=np.float32).reshape(13, 10)), "b": raw(np.arange(3))}
    data = written(entries)
    assert data.count(b"Float32") == 6
    assert_same(read_bytes(tmp_path, data), entries)


def test_a_piece_that_is_missing_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(ckpt, "PIECE_SIZE", 100)
    whole = written({"a": raw(np.zeros(50, np.float32))})
    with pytest.raises(ValueError, match="'a' lacks 100 bytes"):
        read_bytes(tmp_path, whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="'a' lacks 100 bytes"):
        read_bytes(tmp_path, whole[: len(whole) // 2] + written({"b": raw(np.zeros(3, np.float32))}))


def test_scalars_of_old_files_have_dims_zero(tmp_path):
    data = b"\n\x14\n\x01x\x12\x0f\x08\x00\x12\x05Int32\x1a\x04\x07\x00\x00\x00"
    entry = read_bytes(tmp_path, data)["x"]
    assert entry.shape == () and entry.array == 7


def test_a_changed_byte_is_found_by_the_crc_only_when_asked(tmp_path):
    data = bytearray((FIXTURES / "lenet_crc.ckpt").read_bytes())
    data[5000] ^= 1
    assert list(read_bytes(tmp_path, bytes(data))) == ["conv1.weight", "conv2.weight"]
    with pytest.raises(ValueError, match="CRC"):
        read_bytes(tmp_path, bytes(data), crc_check=True)


def test_a_cut_file_is_an_error_unless_the_cut_is_between_records(tmp_path):
    data = (FIXTURES / "lenet_append.ckpt").read_bytes()
    whole = ckpt.read(str(FIXTURES / "lenet_append.ckpt"))
    between, at = set(), 0
    for name, value in whole.items():
        between.add(at)
        at += len(written({name: value}))
    for cut in range(1, len(data), 7):
        if cut not in between:
            with pytest.raises(ValueError):
                read_bytes(tmp_path, data[:cut])


def test_garbage_gives_value_errors_and_nothing_else(tmp_path):
    data = (FIXTURES / "lenet_append.ckpt").read_bytes()[-400:]
    rng = random.Random(1)
    for _ in range(2000):
        broken = bytearray(data)
        for _ in range(rng.randint(1, 6)):
            broken[rng.randrange(len(broken))] = rng.randrange(256)
        try:
            read_bytes(tmp_path, bytes(broken))
        except ValueError:
            pass


def test_map_parameters_are_refused_by_name(tmp_path):
    with pytest.raises(ValueError, match="'m' is a map parameter"):
        read_bytes(tmp_path, b"\n\x05\n\x01m\x1a\x00")


@pytest.mark.parametrize("mode", ["AES-GCM", "AES-CBC"])
def test_encrypted_files_open_with_the_key_only(tmp_path, monkeypatch, mode):
    pytest.importorskip("cryptography")
    monkeypatch.setattr(ckpt.crypto, "BLOCK_SIZE", 1000)  # several blocks
    entries = {"a": raw(np.arange(600, dtype=np.int64)), "b": "text"}
    data = written(entries, key=KEY, mode=mode)
    assert_same(read_bytes(tmp_path, data, key=KEY, mode=mode), entries)
    with pytest.raises(ValueError, match="encrypted"):
        read_bytes(tmp_path, data)
    with pytest.raises(ValueError):
        read_bytes(tmp_path, data, key=b"fedcba9876543210", mode=mode)
    with pytest.raises(ValueError, match="damaged|cut off"):
        read_bytes(tmp_path, data[:-5], key=KEY, mode=mode)
    with pytest.raises(ValueError, match="encrypted with"):
        read_bytes(tmp_path, data, key=KEY, mode="AES-CBC" if mode == "AES-GCM" else "AES-GCM")


@pytest.mark.parametrize(
    "key, mode, message",
    [(b"short", "AES-GCM", "16 or 24 or 32"), (KEY, "XX", "enc_mode"), (KEY[:15], "AES-CBC", "has 15")],
)
def test_wrong_keys_and_modes_are_explained(key, mode, message):
    with pytest.raises(ValueError, match=message):
        written({"a": raw(np.zeros(2))}, key=key, mode=mode)
    with pytest.raises(TypeError, match="must be bytes"):
        written({"a": raw(np.zeros(2))}, key="text")
