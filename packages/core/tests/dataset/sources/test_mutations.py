"""Sources of rows, given files changed at random: see tests/mutations.py."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import random
import runpy
import struct
import sys
import zlib
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import mycelia as ms
from mycelia import dataset as ds
from mycelia import mindrecord
from mycelia.dataset import text, vision
from mycelia.engine.base import wire
from mycelia.io import crypto
from mycelia.io.crc32c import crc32c, masked
from mycelia.io.idx import read_idx, write_idx

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

from mutations import count_of, faults  # noqa: E402

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


# ---- TFRecord ----------------------------------------------------------------------------------------------


def record_of(data):
    length = struct.pack("<Q", len(data))
    sums = [struct.pack("<I", masked(crc32c(part))) for part in (length, data)]
    return length + sums[0] + data + sums[1]


def example(k):
    def feature(name, kind, payload):
        return wire.field(1, wire.field(1, name) + wire.field(2, wire.field(kind, payload)))

    floats = wire.field(1, np.arange(k % 3 + 1, dtype="<f4").tobytes())
    packed = wire.field(1, b"".join(wire.varint(n) for n in (k, -k, 300)))
    parts = feature(b"b", 1, wire.field(1, b"abc")), feature(b"f", 2, floats), feature(b"i", 3, packed)
    return wire.field(1, b"".join(parts))


TFRECORDS = b"".join(record_of(example(k)) for k in range(30))
COMPRESSED = {
    "": bytes,
    "GZIP": lambda data: gzip.compress(data, 1, mtime=0),
    "ZLIB": zlib.compress,
}


@pytest.mark.parametrize("compression", COMPRESSED)
@pytest.mark.parametrize("inside", [False, True])
def test_tfrecord(tmp_path, compression, inside):
    path = tmp_path / "a.tfrecord"
    pack = COMPRESSED[compression]
    path.write_bytes(pack(TFRECORDS))
    read = lambda: rows(ds.TFRecordDataset(str(path), shuffle=False, compression_type=compression))
    seal = pack if compression else bytes
    inner = TFRECORDS if inside else None
    report(faults(path, read, count_of(80), inner=inner, seal=seal if inside else bytes))


@pytest.mark.parametrize("kind", ["plain", "schema", "converter"])
def test_examples_of_tfrecord(tmp_path, kind):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(TFRECORDS)
    seal = lambda data: record_of(data) + b"".join(record_of(example(k)) for k in range(20)) + record_of(data)
    schema = ds.Schema()
    schema.add_column("b", ms.uint8, [3])
    schema.add_column("f", ms.float32, [1])
    schema.add_column("i", ms.int64, [3])

    def read():
        rows(ds.TFRecordDataset(str(path), schema if kind == "schema" else None, shuffle=False))

    def convert():
        features = {
            "b": SimpleNamespace(shape=[], dtype="string"),
            "f": SimpleNamespace(shape=[1], dtype="float32"),
            "i": SimpleNamespace(shape=[3], dtype="int64"),
        }
        for old in tmp_path.glob("m*"):
            old.unlink()
        mindrecord.TFRecordToMR(str(path), str(tmp_path / "m"), features).transform()

    count = count_of(20 if kind == "converter" else 100)
    report(faults(path, convert if kind == "converter" else read, count, inner=example(3), seal=seal))


# ---- pictures and numbers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["plain", "gzip", "inside"])
def test_idx(tmp_path, kind):
    path = tmp_path / ("i-ubyte" if kind == "plain" else "i-ubyte.gz")
    write_idx(path, np.arange(60, dtype=np.uint8).reshape(3, 4, 5))
    data = path.read_bytes()
    if kind != "plain":
        path.write_bytes(gzip.compress(data, mtime=0))
    inner, seal = (data, lambda d: gzip.compress(d, 1, mtime=0)) if kind == "inside" else (None, bytes)
    report(faults(path, lambda: read_idx(path), count_of(200), inner=inner, seal=seal))


def image(form):
    pillow = pytest.importorskip("PIL.Image")
    pixels = np.arange(12 * 9 * 3, dtype=np.uint8).reshape(12, 9, 3)
    file = io.BytesIO()
    pillow.fromarray(pixels).save(file, form)
    return file.getvalue()


@pytest.mark.parametrize("form", ["JPEG", "PNG", "BMP", "GIF", "TIFF", "WEBP", "PPM"])
def test_images(tmp_path, form):
    path = tmp_path / "c" / "picture.img"
    path.parent.mkdir()
    path.write_bytes(image(form))
    folder = str(tmp_path)

    def read():
        rows(ds.ImageFolderDataset(folder, decode=True, shuffle=False))

    report(faults(path, read, count_of(60)))
    report(faults(path, lambda: vision.read_image(str(path)), count_of(60)))
    report(faults(path, lambda: rows(ds.ImageFolderDataset(folder).map(vision.Decode())), count_of(30)))


@pytest.mark.parametrize("kind", ["10", "100"])
def test_pickled_cifar(tmp_path, kind):
    content = {b"data": np.zeros((2, 3072), np.uint8), b"labels": [1, 2]}
    content |= {b"fine_labels": [1, 2], b"coarse_labels": [0, 1]}
    names = ["data_batch_1", "test_batch"] if kind == "10" else ["train", "test"]
    for name in names:
        (tmp_path / name).write_bytes(pickle.dumps(content, 2))

    def convert():
        for old in tmp_path.glob("m*"):
            old.unlink()
        kind_of = mindrecord.Cifar10ToMR if kind == "10" else mindrecord.Cifar100ToMR
        kind_of(str(tmp_path), str(tmp_path / "m")).transform()

    small = pickle.dumps(content, 2).replace(bytes(1000), b"")
    report(faults(tmp_path / names[0], convert, count_of(20)))
    report(faults(tmp_path / names[0], convert, count_of(50), inner=small))


# ---- texts -------------------------------------------------------------------------------------------------

TABLE = 'a,b,c\n1,2.5,"x, y"\n3,4.5,z\n-7,1e3,"q ""r"""\n'


@pytest.mark.parametrize("kind", ["csv", "typed", "converter"])
def test_csv(tmp_path, kind):
    path = tmp_path / "a.csv"
    path.write_text(TABLE)

    def convert():
        for old in tmp_path.glob("m*"):
            old.unlink()
        mindrecord.CsvToMR(str(path), str(tmp_path / "m")).transform()

    defaults = [1, 1.0, ""] if kind == "typed" else None
    read = lambda: rows(ds.CSVDataset(str(path), column_defaults=defaults, shuffle=False))
    count = count_of(18 if kind == "converter" else 150)
    report(faults(path, convert if kind == "converter" else read, count))


def test_vocabularies_and_vectors(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("one,1\ntwo,2\nthree,ä\n")
    report(faults(path, lambda: text.Vocab.from_file(str(path), ","), count_of(100)))
    path.write_text("one 1.5 2 3\ntwo 4 5 6\nthree -1 0 1e3\n")
    for kind in (text.Vectors, text.GloVe, text.FastText):
        name = {text.GloVe: "glove.6B.50d.txt", text.FastText: "wiki.en.vec"}.get(kind, "words.txt")
        other = path.rename(path.with_name(name))
        report(faults(other, partial(kind.from_file, str(other)), count_of(60)))
        path = other


def test_descriptions_in_json(tmp_path):
    path = tmp_path / "d.json"
    (tmp_path / "images").mkdir()
    image = ds.ImageFolderDataset("images").map(vision.Resize(3), ["image"]).batch(2)
    ds.serialize(image, str(path))
    report(faults(path, lambda: ds.deserialize(json_filepath=str(path)), count_of(100)))
    schema = {
        "numRows": 3,
        "columns": {"a": {"type": "int32", "rank": 1, "shape": [2]}, "b": {"type": "uint8"}},
    }
    path.write_text(json.dumps(schema))
    report(faults(path, lambda: ds.Schema(str(path)), count_of(150)))


# ---- published sets ----------------------------------------------------------------------------------------

SOURCE_FILES = SimpleNamespace(**runpy.run_path(str(HERE / "source_files.py")))
EXPECTED = HERE / "sources_expected.jsonl"


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    root = tmp_path_factory.mktemp("sources")
    SOURCE_FILES.make(root)
    for path in root.rglob("*.manifest"):  # what it names is found from the directory of all sets
        path.write_text(path.read_text().replace(f"{root}/", ""))
    return root


def good_cases():
    """The calls of each source that give rows, two of each at most."""
    found = {}
    for line in EXPECTED.read_text().splitlines():
        case, expected = json.loads(line)
        if expected.get("rows"):
            found.setdefault(case[0], []).append(case)
    return {name: [cases[0], *cases[-1:]] if len(cases) > 1 else cases for name, cases in found.items()}


CASES = good_cases()


def read_set(name, arguments):
    source = getattr(ds, name)(shuffle=False, num_parallel_workers=1, **arguments)
    rows(source)
    source.get_dataset_size()


@pytest.mark.parametrize("name", sorted(CASES))
def test_published_sets(sets, name, monkeypatch):
    monkeypatch.chdir(sets)
    found = {}
    for _, folder, given in CASES[name]:
        arguments = {k: str(sets / v[1:]) if str(v).startswith("@") else v for k, v in given.items()}
        named = [Path(v) for k, v in arguments.items() if str(given[k]).startswith("@")]
        if folder is not None:
            arguments["dataset_dir"] = str(sets / folder)
        files = sorted({*named, *((sets / folder).rglob("*") if folder is not None else ())})
        files = [f for f in files if f.is_file()]
        if len(files) > 12:  # of many, those that describe the others, and some of the others
            files = sorted(files, key=lambda f: (f.suffix in (".png", ".jpg", ".wav"), f.name))[:12]

        read = partial(read_set, name, arguments)
        for path in files:
            names = {str(sets / folder)} if folder is not None else {str(path)}
            found |= faults(path, read, count_of(240) // 12 // len(files) + 1, names=names)
    report(found)
