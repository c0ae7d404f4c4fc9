"""Well-known data sets as MindRecord files; the sources are small ones of the same form."""

from __future__ import annotations

import gzip
import io
import pickle
import struct
from types import SimpleNamespace

import numpy as np
import pytest

from mycelia import mindrecord
from mycelia.io.crc32c import crc32c, masked
from mycelia.mindrecord import FileReader


def read(path) -> list[dict]:
    return list(FileReader(str(path)).get_next())


def pixels(jpeg: bytes) -> np.ndarray:
    return np.asarray(pytest.importorskip("PIL.Image").open(io.BytesIO(jpeg)))


def test_cifar(tmp_path):
    pytest.importorskip("PIL")
    (tmp_path / "c").mkdir()
    flat = np.repeat(np.arange(3, dtype=np.uint8) * 80, 1024)[None].repeat(2, 0)
    batch = {b"labels": [3, 5], b"data": flat}
    for name in ("data_batch_1", "data_batch_2", "test_batch"):
        (tmp_path / "c" / name).write_bytes(pickle.dumps(batch))
    batch = {b"fine_labels": [30, 50], b"coarse_labels": [1, 2], b"data": flat}
    for name in ("train", "test"):
        (tmp_path / "c" / name).write_bytes(pickle.dumps(batch))
    mindrecord.Cifar10ToMR(str(tmp_path / "c"), str(tmp_path / "a")).transform(["label"])
    rows = read(tmp_path / "a")
    assert [(r["id"], r["label"]) for r in rows] == [(0, 3), (1, 5), (2, 3), (3, 5)]
    assert np.abs(pixels(rows[0]["data"])[0, 0].astype(int) - [0, 80, 160]).max() <= 3
    assert len(read(tmp_path / "a_test")) == 2
    mindrecord.Cifar100ToMR(str(tmp_path / "c"), str(tmp_path / "b")).transform()
    assert [(r["fine_label"], r["coarse_label"]) for r in read(tmp_path / "b")] == [(30, 1), (50, 2)]
    (tmp_path / "c" / "train").write_bytes(pickle.dumps(SimpleNamespace()))
    with pytest.raises(RuntimeError, match="no place"):
        mindrecord.Cifar100ToMR(str(tmp_path / "c"), str(tmp_path / "d")).transform()
    with pytest.raises(mindrecord.PathNotExistsError):
        mindrecord.Cifar10ToMR(str(tmp_path), str(tmp_path / "d"))


def test_mnist(tmp_path):
    pytest.importorskip("PIL")
    for part, count in (("train", 3), ("t10k", 2)):
        images = struct.pack(">4i", 2051, count, 28, 28) + bytes([200]) * (count * 784)
        (tmp_path / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(images))
        labels = struct.pack(">2i", 2049, count) + bytes(range(count))
        (tmp_path / f"{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels))
    mindrecord.MnistToMR(str(tmp_path), str(tmp_path / "m")).transform()
    rows = read(tmp_path / "m_train.mindrecord")
    assert [r["label"] for r in rows] == [0, 1, 2]
    assert pixels(rows[0]["data"]).shape == (28, 28) and pixels(rows[0]["data"])[3, 3] == 200
    assert len(read(tmp_path / "m_test.mindrecord")) == 2


def test_imagenet(tmp_path):
    for directory in ("n01", "n02"):
        (tmp_path / "i" / directory).mkdir(parents=True)
        (tmp_path / "i" / directory / "a.JPEG").write_bytes(directory.encode())
    (tmp_path / "map").write_text("n01 0\nn02 7\n")
    arguments = [str(tmp_path / name) for name in ("map", "i", "o")]
    mindrecord.ImageNetToMR(*arguments, 2).transform()
    assert [(r["label"], r["image"]) for r in read(tmp_path / "o0")] == [(0, b"n01"), (7, b"n02")]
    with pytest.raises(OSError, match="not exists"):
        mindrecord.ImageNetToMR(str(tmp_path / "no"), *arguments[1:]).transform()


def test_csv(tmp_path):
    (tmp_path / "a.csv").write_text('age,name,w\n1,ann,1.5\n-3,"c,d",\n')
    mindrecord.CsvToMR(str(tmp_path / "a.csv"), str(tmp_path / "a")).transform()
    rows = read(tmp_path / "a")
    assert [(r["age"], r["name"]) for r in rows] == [(1, "ann"), (-3, "c,d")]
    assert rows[0]["w"] == 1.5 and np.isnan(rows[1]["w"])
    with pytest.raises(RuntimeError, match="not among"):
        mindrecord.CsvToMR(str(tmp_path / "a.csv"), str(tmp_path / "b"), ["no"]).transform()


def field(number: int, data: bytes) -> bytes:
    return bytes([number << 3 | 2, len(data)]) + data


def test_tfrecord(tmp_path):
    values = {
        "name": field(1, field(1, b"x.png")),
        "raw": field(1, field(1, b"\xff\x00")),
        "n": field(3, field(1, b"\x07")),
        "f": field(2, field(1, struct.pack("<2f", 0.5, 2))),
    }
    entries = (field(1, field(1, k.encode()) + field(2, v)) for k, v in values.items())
    example = field(1, b"".join(entries))
    length = struct.pack("<Q", len(example))
    record = b"".join(part + struct.pack("<I", masked(crc32c(part))) for part in (length, example))
    (tmp_path / "t").write_bytes(record * 2)

    def feature(shape, dtype):
        return SimpleNamespace(shape=shape, dtype=SimpleNamespace(name=dtype))

    features = {"name": feature([], "string"), "raw": feature([], "string"), "n": feature([], "int64")}
    features["f"] = feature([2], "float32")
    mindrecord.TFRecordToMR(str(tmp_path / "t"), str(tmp_path / "o"), features, ["raw"]).transform()
    rows = read(tmp_path / "o")
    assert len(rows) == 2 and rows[1]["f"].tolist() == [0.5, 2]
    assert (rows[0]["name"], rows[0]["raw"], rows[0]["n"]) == ("x.png", b"\xff\x00", 7)
    (tmp_path / "t").write_bytes(record[:-8])
    with pytest.raises(RuntimeError, match="cut off"):
        mindrecord.TFRecordToMR(str(tmp_path / "t"), str(tmp_path / "p"), features).transform()


def test_imagenet_takes_the_endings_that_mindspore_takes(tmp_path):
    for folder, names in (
        ("a", ["1.JPEG", "2.jpeg", "3.jpg", "4.JPG", "5.png", "6"]),
        ("b", ["x.JPEG", "e.jpg"]),
    ):
        (tmp_path / "images" / folder).mkdir(parents=True)
        for name in names:
            (tmp_path / "images" / folder / name).write_bytes(b"" if name == "e.jpg" else b"q")
    (tmp_path / "map").write_text("a 0\nb 1\nmissing 2\n")
    arguments = str(tmp_path / "map"), str(tmp_path / "images"), str(tmp_path / "m")
    mindrecord.ImageNetToMR(*arguments).transform()
    reader = mindrecord.FileReader(str(tmp_path / "m"))
    found = [(row["file_name"].rpartition("/")[2], row["label"]) for row in reader.get_next()]
    reader.close()
    assert found == [("1.JPEG", 0), ("3.jpg", 0), ("x.JPEG", 1)]


COLUMNS = {  # what pandas makes of them, and MindSpore of that
    "int32": [["True", "False", "True"], ["true", "FALSE", "TRUE"]],
    "int64": [["1", "-2", "+3"], ["001", " 2", "3 "]],
    "float64": [["1.5", "", "-3e2"], ["1", "NA", "inf"], ["", "", ""]],
    "string": [["True", "", "False"], ["True", "1", "0"], ["0x1", "2", "3"], ["1_000", "2", "3"],
               ["99999999999999999999", "1", "2"], ["x", "1", "2.5"]],
}  # fmt: skip


@pytest.mark.parametrize("kind", COLUMNS)
def test_columns_of_a_table_get_types(tmp_path, kind):
    for number, values in enumerate(COLUMNS[kind]):
        (tmp_path / "a.csv").write_text("c,d\n" + "".join(f"{v},{k}\n" for k, v in enumerate(values)))
        target = str(tmp_path / f"m{number}")
        mindrecord.CsvToMR(str(tmp_path / "a.csv"), target).transform()
        reader = mindrecord.FileReader(target)
        assert reader.schema()["c"] == {"type": kind}, values
        found = [row["c"] for row in reader.get_next()]
        reader.close()
        if kind == "int32":
            assert found == [int(v.lower() == "true") for v in values]
        elif kind != "float64":
            assert found == [int(v) for v in values] if kind == "int64" else values
