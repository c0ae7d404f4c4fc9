"""The files of a step of a dump: large ones that go past the page cache, parts that a thread writes while the
step runs, values that are in a file already.
"""

from __future__ import annotations

import csv
import errno
import io
import itertools
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.debug.dump import files, parse, step_folder
from mycelia.debug.dump.groups import Group
from mycelia.debug.dump.step_folder import StepFolder
from mycelia.debug.dump.tensor_files import TensorFiles

LARGE = 256 << 10  # bytes from which files go past the page cache
HEAD = 128  # of the .npy files here
SIZES = [
    0, 1, 511, 512, 513, 4095, 4096, 4097, LARGE - HEAD - 1, LARGE - HEAD, LARGE - HEAD + 1, LARGE,
    LARGE + 4096 - HEAD, LARGE + 4095, (2 << 20) - HEAD, (2 << 20) - 1, 2 << 20, (2 << 20) + 4097, 5_000_001,
]  # fmt: skip


@pytest.fixture(autouse=True)
def eager_again():
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


def arrays(sizes=SIZES):
    return [np.random.default_rng(size).integers(0, 256, size, np.uint8) for size in sizes]


def folder_at(path: Path, **fields) -> StepFolder:
    return StepFolder(str(path / "step"), TensorFiles(parse({"path": str(path), **fields})))


def group(name: str, *tensors: Tensor) -> Group:
    return Group("Add", name, files.CLOCK.take(len(tensors)), (), tensors)


def npy(array: np.ndarray) -> bytes:
    saved = io.BytesIO()
    np.save(saved, array)
    return saved.getvalue()


def saved(path: Path) -> list[Path]:
    return sorted((path / "step").glob("*.npy"), key=lambda p: p.name.split(".")[4])


def places() -> list[str]:
    """Folders on a disk, and in memory where the system has some."""
    return ["disk", "memory"] if os.path.isdir("/dev/shm") else ["disk"]


@pytest.fixture(params=places())
def place(request, tmp_path):
    if request.param == "disk":
        yield tmp_path
        return
    path = Path("/dev/shm") / f"mycelia_test_{os.getpid()}"
    path.mkdir()
    yield path
    shutil.rmtree(path)


@pytest.mark.parametrize("most", [0, 64 << 20], ids=["by a thread", "at once"])
def test_files_of_all_sizes_are_those_of_numpy(place, monkeypatch, most):
    monkeypatch.setattr(step_folder, "_MOST_WAITING", most)
    folder = folder_at(place)
    for array in arrays():
        folder.add(group("x", Tensor(array)))
    folder.publish()
    for path, array in zip(saved(place), arrays(), strict=True):
        assert path.read_bytes() == npy(array)


def test_a_value_is_one_file_in_all_parts_of_a_step_until_somebody_writes_there(tmp_path, monkeypatch):
    pytest.importorskip("mycelia_backend_cpu", reason="updates in place")
    monkeypatch.setattr(step_folder, "_MOST_WAITING", 0)
    x, y = ms.Parameter(np.zeros(1000, np.float32)), Tensor(np.full(1000, 9.0, np.float32))
    folder, addresses = folder_at(tmp_path, saved_data="full"), set()
    for more in (0.0, 1.0, 0.0, 1.0):
        if more:
            ops.assign_add(x, Tensor(np.full(1000, more, np.float32)))
        addresses.add(x._data_ptr)
        for tensor in (x, y, y):  # after the third the thread holds x no more
            folder.add(group("x", tensor._detach()))
    folder.publish()
    assert len(addresses) == 1
    assert [np.load(path)[0] for path in saved(tmp_path)] == [0, 9, 9, 1, 9, 9, 1, 9, 9, 2, 9, 9]
    table = io.StringIO(folder.tensors.header + b"".join(folder.rows).decode())
    assert [float(row["Max Value"]) for row in csv.DictReader(table)] == [0, 9, 9, 1, 9, 9, 1, 9, 9, 2, 9, 9]
    assert len({path.stat().st_ino for path in saved(tmp_path)}) == 4


def test_memory_that_numpy_may_write_into_is_read_each_time(tmp_path, monkeypatch):
    monkeypatch.setattr(step_folder, "_MOST_WAITING", 0)
    array = np.zeros(1000, np.float32)
    x, y, folder = Tensor.from_numpy(array), Tensor([1.0]), folder_at(tmp_path)
    for value in (1.0, 2.0, 3.0):
        for tensor in (x, y, y):
            folder.add(group("x", tensor))
        array[:] = value
    folder.publish()
    assert [np.load(path)[0] for path in saved(tmp_path)] == [0, 1, 1, 1, 1, 1, 2, 1, 1]


_SYSTEM_CALLS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

ssize_t write(int file, const void* data, size_t bytes) {
  ssize_t (*real)(int, const void*, size_t) = dlsym(RTLD_NEXT, "write");
  const char* before = getenv("BEFORE");
  if (!before || !(fcntl(file, F_GETFL) & O_DIRECT)) return real(file, data, bytes);
  if (atoi(before) > 0) {
    const char less[2] = {before[0] - 1, 0};
    setenv("BEFORE", less, 1);
    return real(file, data, bytes);
  }
  const int what = atoi(getenv("WHAT"));
  if (what > 0) {
    errno = what;
    return -1;
  }
  fcntl(file, F_SETFL, 0);
  const ssize_t done = bytes < (size_t)-what ? bytes : (size_t)-what;
  return done ? real(file, data, done) : 0;
}

int statx(int folder, const char* path, int flags, unsigned mask, struct statx* found) {
  int (*real)(int, const char*, int, unsigned, struct statx*) = dlsym(RTLD_NEXT, "statx");
  const int done = real(folder, path, flags, mask, found);
  if (mask & STATX_DIOALIGN) {
    found->stx_mask |= STATX_DIOALIGN;
    found->stx_dio_mem_align = found->stx_dio_offset_align = 512;
  }
  return done;
}
"""

_ODD_WRITES = """
import itertools, os, sys
import numpy as np
import mycelia as ms
from mycelia import debug, ops
from mycelia.debug.dump import step_folder

net = ms.jit(lambda x: ops.exp(ops.sin(x)))
x = ms.Tensor(np.linspace(0, 1, 1_000_000, dtype=np.float32))
for what, before, most in itertools.product(eval(sys.argv[2]), (0, 1, 3), (0, 64 << 20)):
    os.environ["WHAT"], os.environ["BEFORE"] = str(what), str(before)
    step_folder._MOST_WAITING = most
    with debug.dump({"path": os.path.join(sys.argv[1], f"{what} {before} {most}")}):
        for _ in range(2):
            net(x)
print("went on")
"""


@pytest.fixture
def calls(tmp_path):
    """A library before the system's, in which direct writes come out as the environment says."""
    folder = tmp_path
    if sys.platform != "linux" or not shutil.which("cc"):
        pytest.skip("a compiler, LD_PRELOAD")
    try:
        os.close(os.open(folder / "file", os.O_WRONLY | os.O_CREAT | os.O_DIRECT))
    except OSError:
        pytest.skip("a file system that has direct writes")
    (folder / "calls.c").write_text(_SYSTEM_CALLS)
    command = ["cc", "-shared", "-fPIC", "-o", folder / "calls.so", folder / "calls.c", "-ldl"]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip("a C library that knows of direct writes")
    return folder / "calls.so"


def test_direct_writes_that_go_wrong(tmp_path, calls):
    """What the system does not write, or not all of, goes through the page cache; a disk that is full or
    broken ends the dump. By a thread while the step runs, and at its end.
    """
    ends = errno.ENOSPC, errno.EIO
    whats = [errno.EINVAL, errno.EOPNOTSUPP, 0, -7, -4096, *ends]
    done = subprocess.run(
        [sys.executable, "-c", _ODD_WRITES, tmp_path, str(whats)],
        env={**os.environ, "LD_PRELOAD": str(calls)},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "went on\n", done.stderr
    x = np.linspace(0, 1, 1_000_000, dtype=np.float32)
    values = [x, x, np.sin(x), np.sin(x), np.exp(np.sin(x))]
    for what, before, most in itertools.product(whats, (0, 1, 3), (0, 64 << 20)):
        folder = tmp_path / f"{what} {before} {most}"
        found = sorted(folder.glob("rank_0/*/*/*/*.npy"), key=lambda p: p.name.split(".")[4])
        for path, value in zip(found, values * 2):
            assert np.allclose(np.load(path), value, rtol=1e-6, atol=0)
        whole = {0: 0, 1: 0, 3: 2}[before]  # a file takes two writes, its input is a link to it
        assert len(found) == (whole if what in ends else 10), (what, before, most)
        assert not list(folder.rglob("*.tmp"))
    assert done.stderr.count("data dump ends here") == 12


def descriptors_and_threads() -> tuple[int, int]:
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))


@pytest.mark.skipif(sys.platform != "linux", reason="/proc, a limit on the size of files")
def test_nothing_stays_open_whatever_becomes_of_a_step(tmp_path, monkeypatch):
    import resource

    monkeypatch.setattr(step_folder, "_MOST_WAITING", 0)

    def step(number: int, publish: bool = True) -> None:
        folder = folder_at(tmp_path / str(number))
        (tmp_path / str(number)).mkdir()
        for array in arrays(SIZES[-6:]):
            folder.add(group("x", Tensor(array)))
        if publish:
            folder.publish()

    step(0)
    before = descriptors_and_threads()
    for number in range(1, 4):
        step(number)
    step(4, publish=False)  # what an error of the program leaves
    assert descriptors_and_threads() == before
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            step(5)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert descriptors_and_threads() == before
    assert all(path.stat().st_size < 1 << 20 for path in (tmp_path / "5").rglob("*.npy"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_fork_in_the_middle_of_a_step_waits_for_no_thread(tmp_path, monkeypatch):
    monkeypatch.setattr(step_folder, "_MOST_WAITING", 0)
    folder, values = folder_at(tmp_path), arrays(SIZES[-4:])
    folder.add(group("x", Tensor(values[0])))
    child = os.fork()
    if not child:
        signal.alarm(60)
        code = 1
        try:
            folder.add(group("x", Tensor(values[1])))
        except OSError as cause:
            code = 0 if cause.errno == errno.EPIPE else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    for array in values[1:]:
        folder.add(group("x", Tensor(array)))
    folder.publish()
    assert [path.read_bytes() for path in saved(tmp_path)] == [npy(array) for array in values]
