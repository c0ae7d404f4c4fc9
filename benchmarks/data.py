"""Data pipelines: CPU time of a row, image or record, with all processes counted: workers and servers too.

--case and --table choose by a part of the name. Peers run where the variables of peers.PYTHONS name a Python;
redis needs redis-server besides, warm caches the cache server of each side.
"""

import os
import subprocess
import sys

import data_files
import peers
from peers import Case, Table


def run_mycelia(threads):
    import data_pipelines

    return data_pipelines.Cases("mycelia", threads)


def run_mindspore(threads):
    import data_pipelines

    return data_pipelines.Cases("mindspore", threads)


def run_uncached(threads):
    cases = run_mycelia(threads)
    return lambda case: cases("JPEG evaluation b32")


def run_tf(threads):
    import data_tf

    return data_tf.cases(threads)


def run_torch(threads):
    import data_torch

    return data_torch.cases(threads)


def run_redis(threads):
    import data_redis

    return data_redis.cases(threads)


TABLES = [
    Table(
        "Data: images",
        "CPU time of an image, 500 x 375 JPEGs at quality 90, one worker, batches of 32; ratio to the best.",
        [Case("JPEG evaluation b32", "us", (0.67,)), Case("JPEG training b32", "us", (0.71,))],
        {"mycelia": run_mycelia, "MindSpore": run_mindspore, "tf.data": run_tf, "torch": run_torch},
        do="items",
    ),
    Table(
        "Data: cached images",
        "CPU time of an image of the evaluation pipeline from a warm cache, client and server.",
        [Case("JPEG evaluation b32, warm cache", "us", (0.25, 0.2))],
        {"mycelia": run_mycelia, "MindSpore": run_mindspore, "uncached": run_uncached},
        do="items",
        groups={"to MindSpore": ("MindSpore",), "to ours, uncached": ("uncached",)},
    ),
    Table(
        "Data: records",
        "CPU time of a record of 784 bytes and a number; tf.data writes and reads TFRecord files.",
        [
            Case("record write, 784 B", "us", (0.1, 0.5)),
            Case("record read, b64", "us", (0.03, 0.5)),
            Case("record read, shuffled, b64", "us", (0.03, 0.5)),
            Case("TFRecord read, b64", "us", (None, 0.5)),
            Case("TFRecord read, shuffled, b64", "us", (None, 0.5)),
        ],
        {"mycelia": run_mycelia, "MindSpore": run_mindspore, "tf.data": run_tf},
        do="items",
        groups={"to MindSpore": ("MindSpore",), "to tf.data": ("tf.data",)},
    ),
    Table(
        "Data: rows from Python",
        "CPU time of a trivial row of a Python source, batches of 64 as tensors; torch has 0 and 2 workers.",
        [
            Case("GeneratorDataset b64, in process", "us", (0.667,)),
            Case("GeneratorDataset b64, 2 processes", "us", (0.667,)),
        ],
        {"mycelia": run_mycelia, "torch": run_torch},
        do="items",
    ),
    Table(
        "Data: small rows in the cache",
        "CPU time of a row of 128 bytes, client and server; ours as a pipeline that reads batches of 64 from "
        "the cache (get) or from a file into it (put), redis by pipelines of 64 commands.",
        [
            Case("cache get, same host", "us", (0.333,)),
            Case("cache put, same host", "us", (0.333,)),
            Case("cache get, remote", "us", (1.0,)),
            Case("cache put, remote", "us", (1.0,)),
        ],
        {"mycelia": run_mycelia, "redis": run_redis},
        do="items",
    ),
]

# Anonymous memory, that of files not counted: what is mapped may go at any time.
MEMORY = """
import sys
import numpy as np
import mycelia.dataset as ds
class Rows:
    def __len__(self): return 1_000_000
    def __getitem__(self, i): return np.float32(i), i
def memory():
    status = open("/proc/self/status").read()
    return sum(int(status.split(name + ":")[1].split()[0]) for name in ("RssAnon", "RssShmem")) / 1024
made = ds.GeneratorDataset(Rows(), ["x", "i"], shuffle=True, num_parallel_workers=1)
made = made.map(lambda x: x + 1, "x", num_parallel_workers=1).batch(256)
iterator, found = made.create_tuple_iterator(num_epochs=8, output_numpy=True), []
for epoch in range(8):
    for batch in iterator: pass
    found.append(memory())
print(*found)
"""


def report_memory(write: bool) -> None:
    """Memory after each of 8 epochs of a million rows."""
    done = subprocess.run([sys.executable, "-c", MEMORY], text=True, capture_output=True, check=False)
    if done.returncode:
        data_files.not_run("memory", done.stderr[-2000:])
        return
    found = [float(word) for word in done.stdout.split()]
    growth = max(found[2:]) - found[1]  # the second epoch makes its order while the first one's is there
    row = ["GeneratorDataset, shuffle, map, batch", *(f"{m:.1f} MB" for m in found), f"{growth:+.1f} MB"]
    head = ["case", *(f"epoch {k}" for k in range(1, 9)), "growth", "bar"]
    note = "Resident memory of the process, files not counted, after each epoch of 1 000 000 rows."
    peers.report("Data: memory", [[*row, "<= 2 MB"]], note, head, write)


if __name__ == "__main__":
    if "--side" not in sys.argv:
        data_files.prepare()
        os.environ.setdefault("MYCELIA_CACHE_TOKEN", "of this bench")  # for clients of another host
    peers.main(__file__, TABLES)
    if "--side" not in sys.argv and not peers.option("--case") and peers.option("--table") in "Data: memory":
        report_memory("--no-write" not in sys.argv)
