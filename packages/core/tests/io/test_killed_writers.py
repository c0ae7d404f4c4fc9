"""A writer that is killed at any moment leaves the old files or the new ones, never a mix; what else it
leaves is removed by the next writer, unless its own writer still lives.
"""

import contextlib
import gzip
import io
import os
import shutil
import signal
import struct

import numpy as np
import pytest

import mycelia as ms
from mycelia import dataset as ds
from mycelia import mindrecord, nn
from mycelia.io import files
from mycelia.io.idx import read_idx, write_idx
from mycelia.mindrecord import FileReader, FileWriter, MnistToMR
from mycelia.train.callbacks.base import CallbackParam

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the writers are forked")
CALLS = ("fsync", "replace", "rename", "link", "unlink", "chmod")


class Counter:
    """Calls of the system that change files, counted; the process is killed before number `last`."""

    def __init__(self, last=None):
        self.count, self.last = 0, last

    def __call__(self):
        if self.count == self.last:
            os.kill(os.getpid(), signal.SIGKILL)
        self.count += 1

    def before(self, call):
        def counted(*args, **options):
            self()
            return None if call is FSYNC else call(*args, **options)  # what is killed needs no disk

        return counted

    def open(self, handle, mode):
        counter = self

        class File(io.BufferedRandom):
            def write(self, data):
                counter()
                written = super().write(data)
                self.flush()
                return written

        return File(io.FileIO(handle, "w+b"))


FSYNC = os.fsync


def killed(write, last):
    """Runs a writer in a process of its own up to its call `last`: how many calls it made, None if killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            counter = Counter(last)
            for name in CALLS:
                setattr(os, name, counter.before(getattr(os, name)))
            os.fdopen = counter.open
            write()
            os.write(writing, struct.pack("<q", counter.count))
            os._exit(0)
        except BaseException as e:
            os.write(2, repr(e).encode())
            os._exit(1)
    os.close(writing)
    _, status = os.waitpid(child, 0)
    told = os.read(reading, 8)
    os.close(reading)
    if os.WIFSIGNALED(status):
        return None
    assert status == 0, "the writer failed"
    return struct.unpack("<q", told)[0]


@pytest.fixture(autouse=True)
def small_headers(monkeypatch):
    init = FileWriter.__init__

    def made(self, *args, **options):
        init(self, *args, **options)
        self._header_size, self._page_size = 16 << 10, 32 << 10

    monkeypatch.setattr(FileWriter, "__init__", made)


# ---- writers: (write(folder, k), read(folder) -> k); k: 0 nothing, 1 the old files, 2 the new


def put_rows(folder, k, shards=3, **options):
    writer = FileWriter(f"{folder}/a.mr", shards, overwrite=True)
    writer.add_schema({"k": {"type": "int64"}, "b": {"type": "bytes"}})
    # The same number and size of rows: old pages read by a new index would go unnoticed.
    writer.write_raw_data([{"k": k, "b": bytes([k]) * 50} for _ in range(9)])
    writer.commit()


def append_rows(folder, k):
    if k == 1:
        put_rows(folder, 1, 2)
    else:
        writer = FileWriter.open_for_append(f"{folder}/a.mr1")
        writer.write_raw_data([{"k": 2, "b": b"x"}] * 9)
        writer.commit()


def rows_of(path):
    reader = FileReader(path)
    found = [row["k"] for row in reader.get_next()]
    reader.close()
    return found


def read_rows(folder):
    found = {tuple(rows_of(f"{folder}/a.mr{k}")) for k in (2, 0)}
    assert found in ({(1,) * 9}, {(2,) * 9}), found
    return found.pop()[0]


def read_appended(folder):
    found = {tuple(sorted(rows_of(f"{folder}/a.mr{k}"))) for k in range(2)}
    assert len(found) == 1
    rows = found.pop()
    assert rows[:9] == (1,) * 9 and set(rows[9:]) <= {2} and len(rows) in (9, 18, 27), rows
    return 1 if len(rows) == 9 else 2


def save_dataset(folder, k):
    if k == 2:
        ds.NumpySlicesDataset({"k": np.full(7, 2)}, shuffle=False).save(f"{folder}/d.mr", 2)


def read_dataset(folder):
    return read_parts(lambda path: len(rows_of_saved(path)), [f"{folder}/d.mr0", f"{folder}/d.mr1"], {7})


def rows_of_saved(path):
    return list(ds.MindDataset(path, shuffle=False).create_tuple_iterator(num_epochs=1))


def read_parts(read, paths, whole):
    """0 if none of the files is there, 2 if all are, each as it should be."""
    found = set()
    for path in paths:
        try:
            found.add(read(path))
        except (RuntimeError, ValueError) as e:
            assert "exist" in str(e), e
            found.add(0)
    assert found in ({0}, whole), found
    return 2 if found == whole else 0


def convert_mnist(folder, k):
    if k == 1:
        for part, count in (("train", 4), ("t10k", 4)):
            images, labels = np.zeros((count, 28, 28), np.uint8), np.arange(count, dtype=np.uint8)
            for name, array in ((f"{part}-images-idx3", images), (f"{part}-labels-idx1", labels)):
                write_idx(f"{folder}/{name}", array)
                with open(f"{folder}/{name}", "rb") as plain:
                    with open(f"{folder}/{name}-ubyte.gz", "wb") as file:
                        file.write(gzip.compress(plain.read()))
    else:
        MnistToMR(str(folder), f"{folder}/m").transform()


def read_mnist(folder):
    paths = [f"{folder}/m_{part}.mindrecord" for part in ("test", "train")]
    return read_parts(lambda path: len(rows_of_saved(path)), paths, {4})


def put_encrypted(folder, k):
    mindrecord.set_enc_key("0123456789abcdef")
    try:
        put_rows(folder, k, 1)
    finally:
        mindrecord.set_enc_key(None)


def read_encrypted(folder):
    mindrecord.set_enc_key("0123456789abcdef")
    try:
        found = set(rows_of(f"{folder}/a.mr"))
        assert len(found) == 1
        return found.pop()
    finally:
        mindrecord.set_enc_key(None)


def put_checkpoint(folder, k, format="ckpt", **options):
    values = {name: ms.Tensor(np.full(100, k, np.float32)) for name in "ab"}
    ms.save_checkpoint(values, f"{folder}/c.{format}", append_dict={"k": k}, format=format, **options)


def read_checkpoint(folder, format="ckpt"):
    values = ms.load_checkpoint(f"{folder}/c.{format}", format=format)
    (found,) = {int(value.asnumpy().ravel()[0]) for value in values.values()}
    assert list(values) == ["a", "b", "k"]
    return found


def train(folder, k):
    config = ms.train.CheckpointConfig(1, keep_checkpoint_max=1)
    callback = ms.train.ModelCheckpoint("n", str(folder / "run"), config)
    params = CallbackParam(train_network=nn.Dense(2, 2), batch_num=1, mode="train")
    for step in range(1, 2 * k):
        params.update(cur_epoch_num=step, cur_step_num=step)
        callback._save(params)


def read_trained(folder):
    found = [name for name in os.listdir(folder / "run") if not name.startswith(".")]
    assert found, "no checkpoint is left"
    for name in found:
        assert len(ms.load_checkpoint(f"{folder}/run/{name}")) == 2
    return 2 if any("-3_" in name for name in found) else 1


def put_idx(folder, k):
    write_idx(folder / "i-ubyte", np.full((5, 5), k, np.uint8))


def read_put_idx(folder):
    (found,) = set(read_idx(folder / "i-ubyte").ravel().tolist())
    return found


WRITERS = {
    "mindrecord": (put_rows, read_rows),
    "mindrecord append": (append_rows, read_appended),
    "mindrecord encrypted": (put_encrypted, read_encrypted),
    "Dataset.save": (save_dataset, read_dataset),
    "MnistToMR": (convert_mnist, read_mnist),
    "ckpt": (put_checkpoint, read_checkpoint),
    "safetensors": (
        lambda folder, k: put_checkpoint(folder, k, "safetensors"),
        lambda folder: read_checkpoint(folder, "safetensors"),
    ),
    "ModelCheckpoint": (train, read_trained),
    "idx": (put_idx, read_put_idx),
}


@pytest.mark.parametrize("kind", WRITERS)
def test_a_killed_writer_leaves_all_or_nothing(tmp_path, kind, monkeypatch):
    write, read = WRITERS[kind]
    if kind == "mindrecord encrypted":
        pytest.importorskip("cryptography")
    old, now = tmp_path / "old", tmp_path / "now"
    old.mkdir()
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # for time
    write(old, 1)
    before = read(old) if kind not in ("Dataset.save", "MnistToMR") else 0
    found = []
    while True:
        shutil.rmtree(now, ignore_errors=True)
        shutil.copytree(old, now)
        calls = killed(lambda: write(now, 2), len(found))
        found.append(read(now))
        if calls is not None:
            break
        if len(found) % 4 and found[-1] == found[-2:][0]:
            continue  # what comes next is looked at now and then, and where the files became new
        with contextlib.suppress(RuntimeError):  # converters do not overwrite
            write(now, 2)
        assert not [name for name in os.listdir(now) if name.startswith(".")], len(found)
        assert read(now) == 2
    assert found[-1] == 2 and found == sorted(found) and {before, 2} == set(found)
    assert len(found) == calls + 1 > 4


def test_a_living_writer_keeps_its_files(tmp_path):
    def started(k):
        writer = FileWriter(str(tmp_path / "a.mr"), 2, overwrite=True)
        writer.add_schema({"k": {"type": "int64"}, "b": {"type": "bytes"}})
        writer.write_raw_data([{"k": k, "b": b""}] * 4)
        return writer

    first, second = started(1), started(2)
    with files.atomic_write(str(tmp_path / "a.mr0")) as file:  # another writer of one of the files
        file.write(b"x")
    second.commit()
    assert rows_of(str(tmp_path / "a.mr0")) == [2] * 4
    first.commit()
    assert rows_of(str(tmp_path / "a.mr1")) == [1] * 4
    assert sorted(os.listdir(tmp_path)) == ["a.mr0", "a.mr0.db", "a.mr1", "a.mr1.db"]


def test_readers_see_whole_files_while_they_are_replaced(tmp_path):
    put_rows(tmp_path, 1)
    child = os.fork()
    if child == 0:
        try:
            for k in range(30):
                put_rows(tmp_path, 2 - k % 2)
            os._exit(0)
        finally:
            os._exit(1)
    seen = set()
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        reader = FileReader(str(tmp_path / "a.mr1"))
        found = {row["k"] for row in reader.get_next()}
        reader.close()
        assert len(found) == 1
        seen |= found
    assert seen <= {1, 2}


def test_files_that_were_not_written_together_are_refused(tmp_path):
    for name, k in (("one", 1), ("two", 2)):
        (tmp_path / name).mkdir()
        put_rows(tmp_path / name, k)
    shutil.copy(tmp_path / "two/a.mr1", tmp_path / "one/a.mr1")
    with pytest.raises(RuntimeError, match=r"a\.mr1\.db: the index was not written together with .*a\.mr1"):
        FileReader(str(tmp_path / "one/a.mr0"))
    shutil.copy(tmp_path / "two/a.mr1.db", tmp_path / "one/a.mr1.db")
    with pytest.raises(RuntimeError, match=r"a\.mr0: the file was not written together with .*a\.mr1"):
        FileReader(str(tmp_path / "one/a.mr0"))


def test_a_reader_without_permission_says_who_can_help(tmp_path, monkeypatch):
    names = [str(tmp_path / name) for name in "ab"]
    temporaries = [files.Temporary(name) for name in names]
    renames = [[os.path.basename(t.name), os.path.basename(t.path)] for t in temporaries]
    files._published(files._journal(names[0]), {"files": renames, "others": []}).file.close()

    def refused(*args):
        raise PermissionError(13, "Permission denied", *args)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", refused)
        with pytest.raises(RuntimeError, match="a.mycelia-commit: the writing of files was interrupted"):
            files.settle(names[0])
    files.settle(names[0])
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


@pytest.mark.parametrize("call", range(6))
def test_an_error_in_the_middle_of_the_renames_is_settled_later(tmp_path, monkeypatch, call):
    put_rows(tmp_path, 1)
    replace, calls = os.replace, []

    def failing(*args):
        calls.append(args)
        if len(calls) > call:
            raise OSError(5, "Input/output error", *args[:1])
        replace(*args)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", failing)
        with pytest.raises(RuntimeError, match="Input/output error"):
            put_rows(tmp_path, 2)
        with pytest.raises(RuntimeError, match="interrupted, and cannot be finished by you"):
            read_rows(tmp_path)
    assert read_rows(tmp_path) == 2
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]


def test_a_directory_in_the_place_of_a_file_is_noticed_before(tmp_path):
    put_rows(tmp_path, 1)
    os.remove(tmp_path / "a.mr2.db")
    (tmp_path / "a.mr2.db").mkdir()
    with pytest.raises(RuntimeError, match=r"Is a directory.*a\.mr2\.db"):
        put_rows(tmp_path, 2)
    (tmp_path / "a.mr2.db").rmdir()
    assert sorted(os.listdir(tmp_path)) == ["a.mr0", "a.mr0.db", "a.mr1", "a.mr1.db", "a.mr2"]
    assert rows_of([str(tmp_path / "a.mr0")]) == [1] * 3


def test_a_journal_names_files_beside_it_only(tmp_path):
    (tmp_path / ".a.mycelia-commit").write_text('{"files": [["x.tmp", "../b"]], "others": []}')
    with pytest.raises(ValueError, match=r"\.a\.mycelia-commit: .* damaged: a name with a directory"):
        files.settle(str(tmp_path / "a"))


def test_names_of_any_length_can_be_written(tmp_path):
    path = tmp_path / ("n" * 250 + ".ckpt")
    ms.save_checkpoint({"a": ms.Tensor([1.0])}, str(path))
    assert os.listdir(tmp_path) == [path.name]
