"""Small files that unpack to large ones are refused before they take memory."""

import gzip
import io
import struct
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

from mycelia import dataset as ds
from mycelia.dataset import vision
from mycelia.dataset.sources.vision import matfile
from mycelia.io.crc32c import crc32c, masked
from mycelia.io.idx import read_idx

sys.path.insert(0, str(Path(__file__).parents[1]))

from mutations import limits

MUCH = 400 << 20
ROOM = 150 << 20  # far less than what the files unpack to
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is limited as on Linux")


def zeros(head=b"", wbits=31, size=MUCH):
    """`head` and many zeros, compressed; the end is missing, up to which nobody should come."""
    engine = zlib.compressobj(9, wbits=wbits)
    start = engine.compress(head) + engine.flush(zlib.Z_FULL_FLUSH)
    block = engine.compress(bytes(1 << 20)) + engine.flush(zlib.Z_FULL_FLUSH)
    return start + block * (size >> 20)


def refused(read, match):
    with limits(ROOM), pytest.raises(RuntimeError, match=match):
        read()


def idx_head(*shape):
    return bytes([0, 0, 8, len(shape)]) + struct.pack(f">{len(shape)}I", *shape)


@pytest.mark.parametrize(
    "head, match",
    [
        (idx_head(3), "i.gz: the IDX file should hold 3 bytes of data, but holds more"),
        (
            idx_head(1 << 31),
            r"i.gz: the header promises \[2147483648\] of uint8, more than the file can hold",
        ),
        (idx_head(1 << 31, 1 << 31, 1 << 31), "more than the file can hold"),
        (b"", "i.gz: the IDX file should hold|i.gz: not an IDX file"),
    ],
)
def test_idx(tmp_path, head, match):
    path = tmp_path / "i.gz"
    path.write_bytes(zeros(head))
    refused(lambda: read_idx(path), match)


def test_an_idx_file_that_keeps_its_promise_is_read_in_its_own_size(tmp_path):
    path = tmp_path / "i.gz"
    path.write_bytes(gzip.compress(idx_head(MUCH // 4) + bytes(MUCH // 4), 1))
    with limits(ROOM):
        assert read_idx(path).nbytes == MUCH // 4


def length(size):
    data = struct.pack("<Q", size)
    return data + struct.pack("<I", masked(crc32c(data)))


@pytest.mark.parametrize("compression, wbits", [("GZIP", 31), ("ZLIB", 15)])
@pytest.mark.parametrize("head", [b"", length(1 << 40), length(1 << 63)])
def test_tfrecord(tmp_path, compression, wbits, head):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(zeros(head, wbits))
    source = ds.TFRecordDataset(str(path), compression_type=compression, shuffle=False)
    refused(lambda: list(source.create_tuple_iterator(num_epochs=1)), "a.tfrecord.*record 0")


def png(width, height):
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(bytes(1000)))
        + chunk(b"IEND", b"")
    )


def other(form, width, height):
    """An image whose header promises another size."""
    image = pytest.importorskip("PIL.Image")
    file = io.BytesIO()
    image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(file, form)
    data = bytearray(file.getvalue())
    if form == "JPEG":
        at = data.index(b"\xff\xc0") + 5
        data[at : at + 4] = struct.pack(">HH", height, width)
    elif form == "BMP":
        data[18:26] = struct.pack("<ii", width, height)
    else:
        data[6:10] = struct.pack("<HH", width, height)
    return bytes(data)


@pytest.mark.parametrize(
    "data",
    [
        png(12000, 12000),
        png(1 << 30, 1 << 30),
        *(pytest.param((form, 12000, 12000), id=form) for form in ("JPEG", "BMP", "GIF")),
        pytest.param(("JPEG", 65500, 65500), id="large JPEG"),
    ],
)
def test_images(tmp_path, data):
    pytest.importorskip("PIL")
    path = tmp_path / "c" / "x.img"
    path.parent.mkdir()
    path.write_bytes(data if isinstance(data, bytes) else other(*data))
    source = ds.ImageFolderDataset(str(tmp_path), decode=True)
    refused(lambda: list(source.create_tuple_iterator(num_epochs=1)), "x.img")
    refused(lambda: vision.read_image(str(path)), "x.img")


@pytest.mark.parametrize("size", [100, 1 << 31])
def test_matlab(tmp_path, size):
    path = tmp_path / "a.mat"
    body = zeros(struct.pack("<II", 14, size), 15)
    path.write_bytes(bytes(124) + b"\0\1IM" + struct.pack("<II", 15, len(body)) + body)
    with limits(ROOM), pytest.raises(ValueError, match="a.mat is damaged"):
        matfile.load(path)


def test_plain_gzip_of_a_text_is_no_idx(tmp_path):
    path = tmp_path / "t.gz"
    path.write_bytes(gzip.compress(b"hello"))
    refused(lambda: read_idx(path), "t.gz: not an IDX file")
