"""Worker threads and processes: order, random values, errors, what is left when a pipeline ends."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from mycelia import dataset as ds
from mycelia import log
from mycelia.dataset import vision

WORKERS = [
    {},
    {"num_parallel_workers": 1},
    {"num_parallel_workers": 2},
    {"num_parallel_workers": 1, "python_multiprocessing": True},
    {"num_parallel_workers": 2, "python_multiprocessing": True},
]
PARALLEL = WORKERS[2::2]


@pytest.fixture(autouse=True)
def settings(monkeypatch):
    """Every test has two cores' worth of workers, a seed, and leaves the settings as they were."""
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(ds.config, "_state", dict(ds.config._state))
    ds.config._state["seed"] = 5


def numbers(n=40, **kwargs):
    return ds.NumpySlicesDataset(np.arange(n), ["x"], shuffle=kwargs.pop("shuffle", False), **kwargs)


def read(dataset, epochs=1):
    """The first column of every epoch."""
    iterator = dataset.create_tuple_iterator(num_epochs=epochs, output_numpy=True)
    passes = [[row[0].tolist() for row in iterator] for _ in range(epochs)]
    return passes[0] if epochs == 1 else passes


class Squares:
    """A source with numbered rows of two columns."""

    def __init__(self, n=50):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return np.array([i, i * i]), float(i)


def uneven(x):
    """Takes longer for some rows than for others."""
    time.sleep(0.002 if x % 5 == 0 else 0)
    return x * 2


# ---- order and values --------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", WORKERS)
def test_rows_keep_their_order(workers):
    mapped = numbers(shuffle=True).map(uneven, **workers)
    order = read(numbers(shuffle=True), 2)
    assert read(mapped, 2) == [[2 * x for x in epoch] for epoch in order]


@pytest.mark.parametrize("workers", WORKERS[1:])
def test_random_values_do_not_depend_on_workers(workers):
    images = np.random.default_rng(0).integers(0, 255, (12, 24, 24, 3), np.uint8)
    operations = [
        vision.RandomCrop(16), vision.RandomHorizontalFlip(), vision.RandomColorAdjust(0.4, 0.4),
        ds.transforms.RandomChoice([vision.RandomRotation(20), vision.RandomVerticalFlip()]),
        lambda image: image,
    ]  # fmt: skip

    def values(**workers):
        source = ds.NumpySlicesDataset(images, ["image"], shuffle=False)
        return read(source.map(operations, **workers).map(vision.RandomInvert(0.5), **workers), 2)

    expected = values()
    assert values(**workers) == expected
    assert expected[0] != expected[1]  # every epoch draws anew


def test_pil_transforms_have_the_same_values_too():
    pytest.importorskip("PIL")
    images = np.random.default_rng(0).integers(0, 255, (8, 24, 24, 3), np.uint8)
    operations = [vision.ToPIL(), vision.RandomCrop(16), vision.RandomRotation(30), vision.ToNumpy()]

    def values(**workers):
        return read(ds.NumpySlicesDataset(images, ["image"], shuffle=False).map(operations, **workers))

    assert values() == values(num_parallel_workers=2) == values(**WORKERS[4])


def test_processes_give_a_users_random_numbers_to_rows():
    def draw(x):
        return np.append(np.random.rand(2), x)

    one, two = (read(numbers(20).map(draw, **workers), 2) for workers in WORKERS[3:])
    assert one == two and one[0] != one[1]
    assert len({row[0] for row in one[0]}) == 20


@pytest.mark.parametrize("workers", [{}, {"num_parallel_workers": 2, "python_multiprocessing": False},
                                     {"num_parallel_workers": 3}])  # fmt: skip
@pytest.mark.parametrize("shuffle", [False, True])
def test_a_generator_with_workers(workers, shuffle):
    expected = read(ds.GeneratorDataset(Squares(), ["a", "b"], shuffle=shuffle), 2)
    source = ds.GeneratorDataset(Squares(), ["a", "b"], shuffle=shuffle, **workers)
    assert read(source, 2) == expected
    batches = read(source.batch(8), 2)
    assert [row for batch in batches[1] for row in batch] == expected[1]
    assert [len(batch) for batch in batches[0]] == [8] * 6 + [2]
    assert len(read(source.batch(8, drop_remainder=True))) == 6


def test_batch_sampler_with_workers():
    source = ds.GeneratorDataset(
        Squares(9), ["a", "b"], batch_sampler=[[0, 1], [5, 4]], num_parallel_workers=2
    )
    assert read(source) == [[[0, 0], [1, 1]], [[5, 25], [4, 16]]]


@pytest.mark.parametrize("workers", WORKERS[1:])
def test_per_batch_map_and_filter_with_workers(workers):
    both = ds.NumpySlicesDataset((np.arange(10), np.arange(10) * 10), ["a", "b"], shuffle=False)

    def double(a, info):
        return [2 * v + info.get_batch_num() for v in a]

    made = both.batch(4, per_batch_map=double, input_columns=["a"], **workers)
    rows = [r.tolist() for row in made.create_tuple_iterator(num_epochs=1, output_numpy=True) for r in row]
    assert rows == [[0, 2, 4, 6], [0, 10, 20, 30], [9, 11, 13, 15], [40, 50, 60, 70], [18, 20], [80, 90]]
    count = workers["num_parallel_workers"]
    assert read(numbers(20).filter(lambda x: x % 3 == 0, num_parallel_workers=count)) == list(range(0, 20, 3))


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("max_rowsize", [None, 1, [1, 1]])
def test_large_and_odd_rows_travel_between_processes(shared, max_rowsize, monkeypatch):
    ds.config.set_enable_shared_mem(shared)
    warned = []
    monkeypatch.setattr(log.logger("mycelia.dataset"), "warning", lambda *a: warned.append(a))

    def grow(x):
        return np.full((int(x) * 40_000 + 1,), x, np.float64).reshape(1, -1).T, np.array(f"text {x}"), x > 2

    made = numbers(6).map(
        grow, ["x"], ["big", "text", "flag"], num_parallel_workers=2, python_multiprocessing=True,
        max_rowsize=max_rowsize,
    )  # fmt: skip
    rows = list(made.create_tuple_iterator(num_epochs=1, output_numpy=True))
    assert [r[0].shape for r in rows] == [(i * 40_000 + 1, 1) for i in range(6)]
    assert all((r[0] == i).all() and r[0].flags.writeable for i, r in enumerate(rows))
    assert [str(r[1]) for r in rows] == [f"text {i}" for i in range(6)]
    assert [bool(r[2]) for r in rows] == [False] * 3 + [True] * 3
    assert bool(warned) == (shared and max_rowsize is not None)  # rows of more than 1 MB are announced, once
    assert len(warned) <= 1


def test_rows_are_read_ahead_no_further_than_the_prefetch_size():
    taken = []

    def source():
        for i in range(200):
            taken.append(i)
            yield (np.array(i),)

    ds.config.set_prefetch_size(3)
    rows = iter(
        ds.GeneratorDataset(source, ["x"])
        .map(lambda x: x, num_parallel_workers=2)
        .create_tuple_iterator(output_numpy=True)
    )
    for i in range(50):
        next(rows)
        assert len(taken) <= i + 1 + 2 * 3
    assert len(taken) > 50  # and it does read ahead


def test_spawned_workers(tmp_path):
    script = tmp_path / "spawned.py"
    script.write_text(
        textwrap.dedent(
            """
            import numpy as np
            from mycelia import dataset as ds

            def double(x):
                return 2 * x

            if __name__ == "__main__":
                ds.config.set_multiprocessing_start_method("spawn")
                rows = ds.NumpySlicesDataset(np.arange(5), ["x"], shuffle=False)
                made = rows.map(double, num_parallel_workers=1, python_multiprocessing=True)
                print([int(r[0]) for r in made.create_tuple_iterator(num_epochs=1, output_numpy=True)])
                try:
                    next(rows.map(lambda x: x, num_parallel_workers=1, python_multiprocessing=True)
                         .create_tuple_iterator())
                except RuntimeError as e:
                    print("top of a module" in str(e))
            """
        )
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert done.stdout.split("\n")[:2] == ["[0, 2, 4, 6, 8]", "True"], done.stderr


# ---- errors ------------------------------------------------------------------------------------------------


def bad_seven(x):
    if x == 7:
        raise ValueError("no sevens")
    return x


@pytest.mark.parametrize("workers", WORKERS)
def test_errors_carry_traceback_row_and_origin(workers):
    iterator = (
        numbers(shuffle=True).map(bad_seven, **workers).create_tuple_iterator(num_epochs=1, output_numpy=True)
    )
    place = read(numbers(shuffle=True)).index(7)
    rows = []
    with pytest.raises(RuntimeError, match="no sevens") as caught:
        rows.extend(int(row[0]) for row in iterator)
    text = str(caught.value)
    assert 'raise ValueError("no sevens")' in text and "in bad_seven" in text
    assert f"in row {place} of epoch 1: row 7 of NumpySlicesDataset" in text
    assert "test_workers.py" in text.rsplit("\n  at ", 1)[1]


def test_rows_before_an_error_come_first():
    for workers in PARALLEL:
        iterator = numbers().map(bad_seven, **workers).create_tuple_iterator(num_epochs=1, output_numpy=True)
        assert [int(next(iterator)[0]) for _ in range(7)] == list(range(7))
        with pytest.raises(RuntimeError, match="row 7"):
            next(iterator)


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("mode, expected", [("SKIP", [5, 6, 8, 9]), ("REPLACE", [5, 6, 8, 9, 5])])
def test_error_samples_mode(workers, mode, expected):
    ds.config.set_error_samples_mode(ds.config.ErrorSamplesMode[mode])
    assert read(numbers(10).skip(5).map(bad_seven, **workers)) == expected


def test_errors_of_a_generator_in_processes():
    class Source(Squares):
        def __getitem__(self, i):
            return (bad_seven(i),)

    source = ds.GeneratorDataset(Source(20), ["x"], shuffle=False, num_parallel_workers=2)
    with pytest.raises(
        RuntimeError, match=r"(?s)source\[7\] raised ValueError: no sevens.*in row 7 of epoch 1"
    ):
        read(source)
    with pytest.raises(RuntimeError, match=r"(?s)source\[7\].*in batch 1 of epoch 1"):
        read(source.batch(4))


def test_a_result_that_cannot_travel():
    class Own(np.ndarray):
        def __reduce__(self):
            raise TypeError("no pickles of these")

    with pytest.raises(RuntimeError, match="cannot be sent to another process: TypeError: no pickles"):
        read(numbers().map(lambda x: np.zeros(3).view(Own), **WORKERS[4]))


def test_a_killed_worker_is_named_within_seconds():
    def die(x):
        if x == 9:
            os.kill(os.getpid(), signal.SIGKILL)
        return x

    start = time.monotonic()
    with pytest.raises(
        RuntimeError, match=r"worker process \d+ \(\d of 2\) of map \[die\] was killed by SIGKILL"
    ):
        read(numbers().map(die, **WORKERS[4]))
    assert time.monotonic() - start < 30

    def leave(x):
        os._exit(3)

    with pytest.raises(RuntimeError, match=r"map \[leave\] ended with exit code 3 while it had row 0"):
        read(numbers().map(leave, **WORKERS[4]))


@pytest.mark.parametrize("workers", PARALLEL)
def test_a_stuck_worker_is_named(workers, monkeypatch):
    warned = []
    monkeypatch.setattr(log.logger("mycelia.dataset"), "warning", lambda text, *a: warned.append(text % a))
    ds.config._state["multiprocessing_timeout_interval"] = 1

    def stuck(x):
        if x == 3:
            time.sleep(2.5)
        return x

    assert read(numbers(6).map(stuck, **workers)) == list(range(6))
    named = [
        w for w in warned if re.search(r"of map \[stuck\] has given nothing .* row (3|\d to [3-5])\b", w)
    ]
    assert named and any("in stuck" in text for text in named)  # and where it is
    ds.config.set_enable_watchdog(False)
    warned.clear()
    read(numbers(6).map(stuck, **workers))
    assert not warned


# ---- what is left ------------------------------------------------------------------------------------------


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def _gone(pids, seconds=60) -> bool:
    end = time.monotonic() + seconds
    while any(map(_alive, pids)) and time.monotonic() < end:
        time.sleep(0.05)
    return not any(map(_alive, pids))


def test_workers_end_with_their_iterator():
    def pid_of(x):
        return np.array(os.getpid())

    dataset = numbers(1000).map(pid_of, **WORKERS[4])
    iterator = dataset.create_tuple_iterator(output_numpy=True)
    pids = {int(next(iterator)[0]) for _ in range(20)}
    assert len(pids) == 2 and os.getpid() not in pids and all(map(_alive, pids))
    del iterator
    assert _gone(pids)
    for row in dataset.create_tuple_iterator(output_numpy=True):
        pids = {int(row[0])}
        break
    assert _gone(pids)
    iterator = dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)
    pids = {int(row[0]) for row in iterator}
    assert _gone(pids)  # at the end of the last epoch, though the iterator is still there
    iterator = dataset.create_tuple_iterator(output_numpy=True)
    pids = {int(next(iterator)[0])}
    iterator.stop()
    assert _gone(pids)


def test_worker_threads_end_with_their_iterator():
    before = {t for t in threading.enumerate() if t.name.startswith("mycelia map")}
    iterator = numbers(1000).map(lambda x: x, num_parallel_workers=2).create_tuple_iterator()
    next(iterator)
    mine = {t for t in threading.enumerate() if t.name.startswith("mycelia map")} - before
    assert len(mine) == 2
    del iterator
    for thread in mine:
        thread.join(60)
        assert not thread.is_alive()


_READER = """
import multiprocessing, sys, time
import numpy as np
from mycelia import dataset as ds

def work(x):
    time.sleep(0.01)
    return x + np.zeros((300, 300))

rows = ds.NumpySlicesDataset(np.arange(100_000), ["x"], shuffle=False)
rows = rows.map(work, num_parallel_workers=1, python_multiprocessing=True)
for i, row in enumerate(rows.create_tuple_iterator(num_epochs=1, output_numpy=True)):
    if i == 3:
        print(*[p.pid for p in multiprocessing.active_children()], flush=True)
    if i > 3 and sys.argv[1] == "exit":
        sys.exit(3)
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
@pytest.mark.parametrize("end, code", [("exit", 3), ("SIGINT", None), ("SIGTERM", -15), ("SIGKILL", -9)])
def test_no_process_and_no_memory_outlives_the_reader(end, code):
    before = set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()
    reader = subprocess.Popen(
        [sys.executable, "-c", _READER, end], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        workers = [int(pid) for pid in reader.stdout.readline().split()]
        assert len(workers) == 1
        if end != "exit" and hasattr(os, "memfd_create"):
            assert "memfd:mycelia-rows" in Path(f"/proc/{workers[0]}/maps").read_text()
        if end == "SIGINT":
            os.killpg(reader.pid, signal.SIGINT)  # as Ctrl-C does
        elif end != "exit":
            reader.send_signal(getattr(signal, end))
        _, errors = reader.communicate(timeout=60)
        assert code is None or reader.returncode == code
        assert end != "SIGINT" or "KeyboardInterrupt" in errors
        assert _gone(workers)
    finally:
        reader.kill()
        reader.wait()
    left = set(os.listdir("/dev/shm")) - before if before else set()
    assert not [name for name in left if "mycelia" in name]
