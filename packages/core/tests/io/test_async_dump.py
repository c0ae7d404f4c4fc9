"""Files of asynchronous dumps: what is written is read, damaged ones are refused by name."""

from __future__ import annotations

import os
import struct

import numpy as np
import pytest

from mycelia import dtypes
from mycelia.errors import FileFormatError
from mycelia.io import async_dump, device_formats
from mycelia.io.async_dump import DumpRecord, DumpTensor


def record() -> DumpRecord:
    image = np.arange(2 * 3 * 4 * 5, dtype=np.float16).reshape(2, 3, 4, 5)
    there = device_formats.to_device(image, "NC1HWC0")
    return DumpRecord(
        op_name="Default/net.0/conv-Conv2d/Conv2D-op1", op_type="Conv2D", task_id=7, stream_id=2,
        time_us=1_700_000_000_000_000, status=1,
        inputs=(DumpTensor(dtypes.bool_, np.array(True)), DumpTensor(dtypes.int8, np.zeros((0, 3), np.int8))),
        outputs=(
            DumpTensor(dtypes.float16, there, "NC1HWC0", image.shape),
            DumpTensor(dtypes.bfloat16, np.array([0x3F80, 0xC000], np.uint16)),
        ),
    )  # fmt: skip


def test_a_record_comes_back(tmp_path):
    path = async_dump.write(tmp_path, record())
    assert os.path.basename(path) == "Conv2D.Default_net_0_conv-Conv2d_Conv2D-op1.7.2.1700000000000000"
    found = async_dump.read(path)
    for name in ("op_name", "op_type", "task_id", "stream_id", "time_us", "status"):
        assert getattr(found, name) == getattr(record(), name)
    want = [*record().inputs, *record().outputs]
    for got, one in zip([*found.inputs, *found.outputs], want, strict=True):
        assert (got.dtype, got.format) == (one.dtype, one.format)
        np.testing.assert_array_equal(got.data, one.data)
    image, bits = (t.plain() for t in found.outputs)
    np.testing.assert_array_equal(image, np.arange(120, dtype=np.float16).reshape(2, 3, 4, 5))
    assert bits.tolist() == [1, -2] and found.outputs[0].data.shape == (2, 1, 4, 5, 16)


def test_the_layout_is_what_the_module_says(tmp_path):
    content = async_dump.to_bytes(
        DumpRecord("a", "Add", outputs=(DumpTensor(dtypes.uint8, np.array([1, 2, 3], np.uint8)),))
    )
    (length,) = struct.unpack_from("<Q", content)
    assert content[8 : 8 + 5] == b"\x0a\x031.0" and content[8 + length :] == b"\x01\x02\x03"


def test_every_cut_is_refused(tmp_path):
    content = async_dump.to_bytes(record())
    file = tmp_path / "cut"
    for size in [*range(0, 300, 7), len(content) - 1]:
        file.write_bytes(content[:size])
        with pytest.raises(FileFormatError, match="cut"):
            async_dump.read(file)
    file.write_bytes(content + b"x")
    with pytest.raises(FileFormatError, match="1 bytes are left"):
        async_dump.read(file)


@pytest.mark.fuzz(300)
def test_changed_bytes_are_refused_or_read(seed, tmp_path):
    rng = np.random.default_rng(seed)
    content = bytearray(async_dump.to_bytes(record()))
    for place in rng.integers(0, 400, rng.integers(1, 4)):
        content[place] = rng.integers(0, 256)
    file = tmp_path / "changed"
    file.write_bytes(content)
    try:
        found = async_dump.read(file)
    except FileFormatError as error:
        assert "changed" in str(error)
    else:
        for tensor in (*found.inputs, *found.outputs):
            try:
                tensor.plain()
            except ValueError:
                pass
