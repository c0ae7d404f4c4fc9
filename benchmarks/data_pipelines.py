"""The pipelines of data.py for Mycelia and MindSpore: the same script, on another import."""

import atexit
import contextlib
import subprocess
import sys
from pathlib import Path

import numpy as np
from data_files import BATCH, JPEGS, MEAN, RECORD, RECORDS, ROWS, STD, free_port, not_run
from peers import FILES, Items

COMMANDS = {"mycelia": "cache_admin", "mindspore": "dataset-cache"}


class Rows:
    """A trivial source in Python."""

    def __init__(self, count: int = ROWS):
        self.table = np.arange(8 * count, dtype=np.float32).reshape(count, 8)

    def __len__(self):
        return len(self.table)

    def __getitem__(self, i):
        return self.table[i], i


class CacheServer:
    """A cache server for the time of a case; `pids` to count its CPU time."""

    def __init__(self, framework: str, *options: str, host: str = ""):
        self.framework, self.host = framework, host
        if host:
            options = (*options, "--bind", host)
        self.port = free_port()
        atexit.register(self.stop)
        before = _processes()
        self.admin("--start", "-w", "1", *options)
        started = [pid for pid, line in _processes().items() if pid not in before and "cache" in line]
        self.pids = tuple(started)

    def admin(self, *words: str) -> str:
        command = Path(sys.executable).with_name(COMMANDS[self.framework])
        words = (str(command), *words, "-p", str(self.port))
        done = subprocess.run(words, capture_output=True, text=True, timeout=120)
        if done.returncode:
            raise RuntimeError(f"{' '.join(words)}: {done.stdout} {done.stderr}")
        return done.stdout

    def session(self) -> int:
        return int(self.admin("-g").split()[-1])

    def stop(self) -> None:
        with contextlib.suppress(RuntimeError):
            self.admin("--stop")

    def cache(self, ds, session: int | None):
        host = {"hostname": self.host} if self.host else {}
        return ds.DatasetCache(session_id=session, size=0, port=self.port, **host)


def _processes() -> dict[int, str]:
    found = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    return found


def epoch(dataset, output_numpy: bool = True):
    """A function that reads an epoch and counts rows."""

    def read() -> int:
        rows = 0
        for batch in dataset.create_tuple_iterator(num_epochs=1, output_numpy=output_numpy):
            rows += len(batch[0])
        return rows

    return read


class Cases:
    """Cases by name for `framework`, a package with `dataset` and `mindrecord`."""

    def __init__(self, framework: str, threads: int):
        import importlib

        self.framework = framework
        self.ds = importlib.import_module(f"{framework}.dataset")
        self.vision = importlib.import_module(f"{framework}.dataset.vision")
        self.records = importlib.import_module(f"{framework}.mindrecord")
        self.ds.config.set_num_parallel_workers(threads)
        self.ds.config.set_prefetch_size(4)
        self.server: CacheServer | None = None

    def __call__(self, case: str) -> Items | None:
        if self.server is not None:
            self.server.stop()
            self.server = None
        make = {
            "JPEG evaluation b32": lambda: Items(epoch(self.images(False))),
            "JPEG training b32": lambda: Items(epoch(self.images(True))),
            "JPEG evaluation b32, warm cache": self.cached_images,
            "record write, 784 B": lambda: Items(self.write),
            "record read, b64": lambda: Items(epoch(self.read(False))),
            "record read, shuffled, b64": lambda: Items(epoch(self.read(True))),
            "TFRecord read, b64": lambda: Items(epoch(self.read_tfrecord(False))),
            "TFRecord read, shuffled, b64": lambda: Items(epoch(self.read_tfrecord(True))),
            "GeneratorDataset b64, in process": lambda: Items(epoch(self.generated(1, False), False)),
            "GeneratorDataset b64, 2 processes": lambda: Items(epoch(self.generated(2, True), False)),
            "cache get, same host": lambda: self.small_rows("", warm=True),
            "cache get, remote": lambda: self.small_rows("127.0.0.2", warm=True),
            "cache put, same host": lambda: self.small_rows("", warm=False),
            "cache put, remote": lambda: self.small_rows("127.0.0.2", warm=False),
        }.get(case)
        try:
            return make() if make else None
        except (RuntimeError, OSError, AttributeError, subprocess.SubprocessError) as e:
            not_run(f"{self.framework}, {case}", e)
            return None

    def images(self, train: bool, cache=None):
        ds, v = self.ds, self.vision
        last = [v.Normalize(MEAN, STD), v.HWC2CHW()]
        if train:
            operations = [v.RandomCropDecodeResize(224), v.RandomHorizontalFlip(), *last]
        else:
            operations = [v.Decode(), v.Resize(256), v.CenterCrop(224), *last]
        source = ds.ImageFolderDataset(str(JPEGS), shuffle=train)
        return source.map(operations, "image", cache=cache).batch(32)

    def cached_images(self) -> Items:
        self.server = CacheServer(self.framework)
        cached = self.images(False, self.server.cache(self.ds, self.server.session()))
        read = epoch(cached)
        read(), read()  # MindSpore stores rows in the background: the first epoch does not hold all
        return Items(read, self.server.pids)

    def write(self) -> int:
        writer = self.records.FileWriter(self.file(), 1, True)
        writer.add_schema({"image": {"type": "bytes"}, "label": {"type": "int32"}}, "")
        for _ in range(0, RECORDS, 1000):
            writer.write_raw_data([{"image": RECORD, "label": k} for k in range(1000)])
        writer.commit()
        return RECORDS

    def file(self) -> str:
        return str(FILES / f"{self.framework}.mindrecord")

    def read(self, shuffle: bool):
        if not Path(self.file()).exists():
            self.write()
        return self.ds.MindDataset(self.file(), shuffle=shuffle).batch(BATCH)

    def read_tfrecord(self, shuffle: bool):
        path = FILES / "tf.tfrecord"
        if not path.exists():
            raise RuntimeError("tf.data writes the file, and there is no tf.data")
        return self.ds.TFRecordDataset(str(path), shuffle=shuffle, num_parallel_workers=1).batch(BATCH)

    def generated(self, workers: int, processes: bool):
        return self.ds.GeneratorDataset(
            Rows(), ["x", "i"], shuffle=False, num_parallel_workers=workers, python_multiprocessing=processes
        ).batch(BATCH)

    def small_rows(self, host: str, warm: bool) -> Items:
        """Rows of 128 bytes that come from the cache, or are read from a file and put into it."""
        path = str(FILES / "small.mindrecord")
        if not Path(path).exists():
            writer = self.records.FileWriter(path)
            writer.add_schema({"x": {"type": "int32", "shape": [32]}}, "")
            table = np.random.default_rng(0).integers(1 << 20, 1 << 30, (ROWS, 32)).astype(np.int32)
            writer.write_raw_data([{"x": row} for row in table])
            writer.commit()
        server = self.server = CacheServer(self.framework, host=host)

        def dataset():
            cache = server.cache(self.ds, None)  # a session of its own for each
            return self.ds.MindDataset(path, shuffle=False, cache=cache).batch(BATCH)

        if not warm:
            return Items(lambda: epoch(dataset())(), server.pids)
        read = epoch(dataset())
        read()
        return Items(read, server.pids)
