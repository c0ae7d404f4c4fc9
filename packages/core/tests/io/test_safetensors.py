"""The safetensors layout: MindSpore's order and metadata, and damage."""

import io
import json
import struct

import numpy as np
import pytest

from mycelia.io import safetensors
from mycelia.io.raw import Raw


def raw(array, dtype=None):
    array = np.asarray(array)
    return Raw(dtype or array.dtype.name, array.shape, array)


ENTRIES = {
    "weight": raw(np.ones((2, 3), np.float32)),
    "epoch": raw(np.int64(3)),
    "bias": raw(np.zeros(2, np.float32)),
    "mask": raw(np.array([True])),
    "b": raw(np.array([0x3F80], np.uint16), "bfloat16"),
    "empty": raw(np.ones((0, 3), np.float32)),
}


def written(entries, **options):
    file = io.BytesIO()
    safetensors.write(file, entries, **options)
    return file.getvalue()


def read_bytes(tmp_path, data, **options):
    path = tmp_path / "x.safetensors"
    path.write_bytes(data)
    return safetensors.read(str(path), **options)


def test_layout_and_order():
    data = written(
        {
            "weight": raw(np.ones((2, 3), np.float32)),
            "bias": raw(np.zeros(2, np.float32)),
            "epoch": raw(np.int64(3)),
            "lr": raw(np.float32(0.1)),
        }
    )
    (size,) = struct.unpack_from("<Q", data)
    assert size % 8 == 0
    assert data[8 : 8 + size].decode().rstrip() == (
        '{"__metadata__":{"format":"ms"},"epoch":{"dtype":"I64","shape":[],"data_offsets":[0,8]},'
        '"bias":{"dtype":"F32","shape":[2],"data_offsets":[8,16]},"lr":{"dtype":"F32","shape":[],"data_offsets":[16,20]},'
        '"weight":{"dtype":"F32","shape":[2,3],"data_offsets":[20,44]}}'
    )
    assert data[8 + size : 16 + size] == struct.pack("<q", 3)


def test_entries_survive_with_crc(tmp_path):
    entries, metadata = read_bytes(tmp_path, written(ENTRIES, crc_check=True), crc_check=True)
    assert sorted(entries) == sorted(ENTRIES) and metadata["format"] == "ms"
    for name, value in ENTRIES.items():
        assert (entries[name].dtype, entries[name].shape) == (value.dtype, value.shape)
        np.testing.assert_array_equal(entries[name].array, value.array)


def test_crc_is_the_one_mindspore_computes():
    """Recorded from MindSpore 2.10 for an int64 'b' [7] and a float32 'a' [1, 2]."""
    data = written({"b": raw(np.array([7])), "a": raw(np.array([1, 2], np.float32))}, crc_check=True)
    (size,) = struct.unpack_from("<Q", data)
    assert json.loads(data[8 : 8 + size])["__metadata__"]["crc_num"] == "984422046"


def test_a_changed_byte_is_found(tmp_path):
    data = bytearray(written(ENTRIES, crc_check=True))
    data[-2] ^= 1
    read_bytes(tmp_path, bytes(data))
    with pytest.raises(ValueError, match="CRC"):
        read_bytes(tmp_path, bytes(data), crc_check=True)


def test_cut_and_broken_files_are_errors(tmp_path):
    data = written(ENTRIES)
    for cut in (0, 5, 60, len(data) - 1):
        with pytest.raises(ValueError):
            read_bytes(tmp_path, data[:cut])
    with pytest.raises(ValueError, match="header"):
        read_bytes(tmp_path, struct.pack("<Q", 1 << 60) + data[8:])
    with pytest.raises(ValueError, match="header"):
        read_bytes(tmp_path, data[:8] + b"[" + data[9:])
    with pytest.raises(ValueError, match="F8_E4M3"):
        read_bytes(tmp_path, _with_type(data))


def _with_type(data):
    (size,) = struct.unpack_from("<Q", data)
    header = data[8 : 8 + size].replace(b'"BOOL"', b'"F8_E4M3"')
    return struct.pack("<Q", len(header)) + header + data[8 + size :]


def test_types_outside_the_layout_are_refused():
    with pytest.raises(TypeError, match="'z' is complex128"):
        written({"z": raw(np.zeros(1, np.complex128))})
