"""Data dumps of single functions: every field of the configuration has its effect."""

from __future__ import annotations

import csv
import errno
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import OrderedDict

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, debug, nn, ops
from mycelia.debug.dump import parse, step_folder
from mycelia.debug.dump.groups import Group
from mycelia.debug.dump.step_folder import StepFolder
from mycelia.debug.dump.tensor_files import TensorFiles


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(4, 3)
        self.relu = nn.ReLU()

    def construct(self, x):
        return ops.exp(self.relu(self.fc(x)))


@pytest.fixture(autouse=True)
def graph_mode():
    from mycelia.engine import observing

    observing.set_iteration(0)
    ms.set_context(mode=ms.GRAPH_MODE)
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


X = np.arange(8, dtype=np.float32).reshape(2, 4)


def dumped(folder, steps=1, net=None, x=X, **fields):
    """The files of the dump of some calls of a network: folder -> names, sorted by time."""
    net = net or Net()
    with debug.dump({"path": str(folder), **fields}):
        for _ in range(steps):
            net(Tensor(x))
    return sorted((p for p in folder.rglob("*.npy") if "constants" not in p.parts), key=stamp)


def stamp(path):
    return path.name.split(".")[4]


def kinds(paths):
    return [p.name.split(".")[0] for p in paths]


def test_everything_is_dumped_in_order_of_execution(tmp_path):
    found = dumped(tmp_path)
    assert kinds(found) == ["Parameter"] * 3 + ["Dense"] * 4 + ["ReLU"] * 2 + ["Exp"] * 2
    assert [p.name.split(".")[5:7] for p in found[3:7]] == [
        ["input", "0"],
        ["input", "1"],
        ["input", "2"],
        ["output", "0"],
    ]
    assert np.load(found[-2]).tobytes() == np.load(found[-3]).tobytes()  # what ReLU made is what Exp read
    assert np.load(found[-1]) == pytest.approx(np.exp(np.load(found[-2])), rel=1e-6)


def test_iterations_are_chosen_and_numbered(tmp_path):
    dumped(tmp_path, steps=6, iteration="0|3-4")
    assert sorted(p.name for p in (tmp_path / "rank_0/Net").glob("*/*") if p.name.isdigit()) == [
        "0",
        "3",
        "4",
    ]
    other = tmp_path / "other"
    dumped(other, steps=2, iteration="107", initial_iteration=100)
    assert [p.name for p in (other / "rank_0/Net").glob("*/*")] == ["107"]  # six ran before


@pytest.mark.parametrize(
    ("kernels", "expected"),
    [
        (["Default/relu-ReLU/ReLU-op0"], {"ReLU"}),
        (["exp"], {"Exp"}),
        (["name-regex(.*fc-.*)"], {"Dense"}),
        (["relu", "Default/Exp-op0"], {"ReLU", "Exp"}),
        (["Default/none-op0"], set()),
    ],
)
def test_kernels_are_names_types_or_expressions(tmp_path, kernels, expected):
    assert set(kinds(dumped(tmp_path, dump_mode=1, kernels=kernels))) == expected


def test_targets_are_cells_and_primitives(tmp_path):
    net = Net()
    ms.set_dump(net.relu)
    assert set(kinds(dumped(tmp_path, net=net, dump_mode=2))) == {"ReLU"}


def test_a_primitive_is_a_target(tmp_path):
    class Plain(nn.Cell):
        def __init__(self):
            super().__init__()
            self.add = ops.Add()

        def construct(self, x):
            return ops.exp(self.add(x, x))

    net = Plain()
    ms.set_dump(net.add)
    assert set(kinds(dumped(tmp_path, net=net, dump_mode=2))) == {"Add"}


@pytest.mark.parametrize(("which", "expected"), [(1, {"input"}), (2, {"output"}), (0, {"input", "output"})])
def test_inputs_and_outputs_are_chosen(tmp_path, which, expected):
    found = dumped(tmp_path, input_output=which)
    assert {p.name.split(".")[5] for p in found if not p.name.startswith("Parameter")} == expected


def test_statistics_are_those_of_numpy_without_what_is_not_finite(tmp_path):
    class Plain(nn.Cell):
        def construct(self, x):
            return x * 2.0

    x = np.array([1.0, -2.0, 0.0, np.nan, np.inf, -np.inf, 5.0], np.float32)
    categories = [
        "max", "min", "avg", "l2norm", "count", "nan count", "negative inf count", "positive inf count",
        "zero count", "negative zero count", "positive zero count", "md5",
    ]  # fmt: skip
    assert dumped(tmp_path, net=Plain(), x=x, saved_data="statistic", statistic_category=categories) == []
    (table,) = tmp_path.rglob("statistic.csv")
    rows = list(csv.DictReader(table.open()))
    row = next(r for r in rows if r["IO"] == "output" and r["Op Type"] == "Mul")
    finite = 2 * x[np.isfinite(x)].astype(np.float64)
    for column, expected in (
        ("Max Value", finite.max()), ("Min Value", finite.min()), ("Avg Value", finite.mean()),
        ("L2Norm Value", np.linalg.norm(finite)),
    ):  # fmt: skip
        assert float(row[column]) == pytest.approx(expected, rel=1e-6)
    counts = "Count", "NaN Count", "Negative Inf Count", "Positive Inf Count", "Zero Count"
    assert [int(row[c]) for c in counts] == [7, 1, 1, 1, 1]
    assert (row["Negative Zero Count"], row["Positive Zero Count"]) == ("2", "3")  # infinities included
    assert row["MD5"] == hashlib.md5((2 * x).tobytes()).hexdigest()
    assert (row["Data Size"], row["Data Type"], row["Shape"]) == ("28", "float32", "(7)")
    assert list(rows[0])[:10] == [
        "Op Type", "Op Name", "Task ID", "Stream ID", "Timestamp", "IO", "Slot", "Data Size", "Data Type",
        "Shape",
    ]  # fmt: skip


def test_full_has_tensors_and_statistics(tmp_path):
    found = dumped(tmp_path, saved_data="full")
    (table,) = tmp_path.rglob("statistic.csv")
    assert len(list(csv.DictReader(table.open()))) == len(found) == 11


def test_only_operators_that_overflow_are_dumped_up_to_a_number(tmp_path):
    class Bad(nn.Cell):
        def construct(self, x):
            y = ops.relu(x)
            return ops.log(y - 100.0) + ops.log(y - 200.0)

    assert set(kinds(dumped(tmp_path / "a", net=Bad(), op_debug_mode=3))) == {"Log", "Add"}
    assert kinds(dumped(tmp_path / "b", net=Bad(), op_debug_mode=3, overflow_number=1)) == ["Log"] * 2


def test_the_inputs_of_an_operator_that_raised_are_dumped(tmp_path):
    class Bad(nn.Cell):
        def construct(self, x):
            return ops.gather(ops.relu(x), ms.Tensor([0]) + x.sum().astype(ms.int32), 0)

    with pytest.raises(Exception, match="index|out of"):
        dumped(tmp_path, net=Bad(), op_debug_mode=4)
    found = [p for p in tmp_path.rglob("*.npy") if "constants" not in p.parts]
    assert sorted(p.name.split(".")[0] + p.name.split(".")[5] for p in found) == ["Gatherinput"] * 2


def test_the_old_layout_has_raw_data_and_the_shape_in_the_name(tmp_path):
    class Plain(nn.Cell):
        def construct(self, x):
            return x + 1.0

    dumped(tmp_path, net=Plain(), layout="bin", net_name="ResNet50")
    path = (
        tmp_path
        / "ResNet50/device_0/iteration_0/Default--Add-op0_input_0_shape_2_4_Float32_DefaultFormat.bin"
    )
    assert np.fromfile(path, np.float32).tobytes() == X.tobytes()


def test_bfloat16_is_saved_as_float32(tmp_path):
    class Plain(nn.Cell):
        def construct(self, x):
            return x.astype(ms.bfloat16) * 2.0

    found = [p for p in dumped(tmp_path, net=Plain()) if p.name.startswith("Mul") and ".output." in p.name]
    assert found[0].name.endswith(".Float32.npy") and np.load(found[0]).tolist() == (2 * X).tolist()


def test_attributes_are_written_if_asked(tmp_path):
    class Plain(nn.Cell):
        def construct(self, x):
            return ops.softmax(x, 1)

    config = {
        "common_dump_settings": {"path": str(tmp_path), "iteration": "all"},
        "e2e_dump_settings": {"enable": True, "save_kernel_args": True},
    }
    with debug.dump(config):
        Plain()(Tensor(X))
    (path,) = tmp_path.rglob("Softmax.*.json")
    assert json.loads(path.read_text())["axis"] in (1, [1])


def test_constants_are_dumped_once(tmp_path):
    class Plain(nn.Cell):
        def construct(self, x):
            return x * Tensor(np.array([1, 2, 3, 4], np.float32))

    dumped(tmp_path, net=Plain(), steps=2)
    (path,) = tmp_path.rglob("constants/*.npy")
    assert np.load(path).tolist() == [1, 2, 3, 4] and path.name.startswith("Parameter.data-0.0.0.")


def test_eager_operators_are_dumped_step_by_step(tmp_path):
    ms.set_context(mode=ms.PYNATIVE_MODE)
    found = dumped(tmp_path)
    # A Parameter is there before the operator that reads it first.
    assert kinds(found) == ["Parameter"] * 2 + ["Dense"] * 4 + ["ReLU"] * 2 + ["Exp"] * 2
    (text,) = tmp_path.rglob("*.ir")
    assert "# Fullname with scope: (Default/relu-ReLU/ReLU-op0)" in text.read_text()
    assert dumped(tmp_path / "off", eager=False) == []


def test_conditions_on_weights_are_watched_in_eager_code(tmp_path):
    net = nn.SequentialCell(nn.Dense(4, 3))
    gradient = ms.value_and_grad(lambda x: net(x).sum(), None, net.trainable_params())
    optimizer = nn.SGD(net.trainable_params(), 0.0)
    watch = {"condition": "weight_change_too_large", "params": {"abs_mean_update_ratio_gt": 0.5}}
    with debug.dump({"path": str(tmp_path), "conditions": [watch]}):
        for step in range(4):
            net[0].weight.set_data(Tensor(np.full((3, 4), 1.0 if step < 3 else 2.0, np.float32)))
            optimizer(gradient(Tensor(X))[1])
    paths = sorted(tmp_path.rglob("Parameter.0_weight.*.npy"))
    assert [p.parent.name for p in paths] == ["6", "7"]  # the gradient's run, and the optimizer's
    assert all(np.load(path).tolist() == [[2.0] * 4] * 3 for path in paths)


def test_ranks_that_are_not_supported_dump_nothing(tmp_path):
    assert dumped(tmp_path, support_device=[1, 2]) == []
    assert list(tmp_path.iterdir()) == []


def test_the_rank_is_in_the_path(tmp_path, monkeypatch):
    from mycelia.engine.base import settings

    monkeypatch.setitem(settings._from_env, "rank", 3)
    dumped(tmp_path, support_device=[3])
    assert [p.name for p in tmp_path.iterdir()] == ["rank_3"]


@pytest.mark.parametrize("letter", ["A", "\u03b1"])
def test_long_names_are_cut_and_mapped(tmp_path, letter):
    long, tensors = letter * 300, TensorFiles(parse({"path": str(tmp_path)}))
    for number, array in enumerate((X, X + 1)):  # the second time the folder is there
        folder = StepFolder(str(tmp_path / "f"), tensors)
        folder.add(Group("Add", long, number, (), [Tensor(array)]))
        folder.add_text("short.txt", [b"%d" % number])
        folder.publish()
    rows = list(csv.reader((tmp_path / "f/mapping.csv").open(encoding="utf-8")))
    ending = ".output.0.DefaultFormat.Float32.npy"
    assert [full for _, full in rows] == [f"Add.{long}.0.0.{number:016d}{ending}" for number in (0, 1)]
    for (short, _), array in zip(rows, (X, X + 1), strict=True):
        assert len(short.encode()) <= 255 and np.load(tmp_path / "f" / short).tolist() == array.tolist()
    assert (tmp_path / "f/short.txt").read_text() == "1"
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


def test_long_scopes_are_dumped_and_found_again(tmp_path):
    class Inner(nn.Cell):
        def construct(self, x):
            return ops.log(x - 100.0)

    name = "a_rather_long_name_of_a_cell_" * 8
    outer = nn.SequentialCell(OrderedDict([(name, Inner())]))
    with debug.dump({"path": str(tmp_path)}):
        outer(Tensor(X))
    assert list(tmp_path.rglob("mapping.csv"))
    first = debug.DumpAnalyzer(tmp_path).trace_nonfinite()[0]
    assert first["op_full_name"] == f"Default/{name}-Inner/Log-op0"


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="limits on the size of files")
def test_a_full_disk_ends_the_dump_with_one_warning(tmp_path, caplog):
    """Files may have 1000 bytes: the second exponential is cut in its middle."""
    import resource

    net = ms.jit(lambda x: ops.exp(ops.tile(ops.exp(x), (100,))))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with caplog.at_level("WARNING", logger="mycelia"):
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
        try:
            found = dumped(tmp_path, steps=3, net=net, x=X[0])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    told = [r for r in caplog.records if "data dump ends here" in r.getMessage()]
    assert len(told) == 1 and "File too large" in told[0].getMessage()
    assert kinds(found) == ["Parameter", "Exp", "Exp", "Tile"] and not list(tmp_path.rglob("*.tmp"))
    assert np.load(found[-2]) == pytest.approx(np.exp(X[0]), rel=1e-6)


@pytest.mark.skipif(sys.platform != "linux", reason="an attribute of file systems of Linux")
@pytest.mark.parametrize("layout, steps", [("npy", "rank_0/Net/*"), ("bin", "Net/device_0")])
@pytest.mark.parametrize("takes_it", [True, False], ids=["ext4", "without attributes"])
def test_a_file_system_may_place_each_step_by_itself(tmp_path, monkeypatch, layout, steps, takes_it):
    import fcntl

    asked, top = [], 0x20000

    def ioctl(file, request, flags):
        asked.append((os.fstat(file).st_ino, request, flags[0]))
        if not takes_it:
            raise OSError(errno.ENOTTY, "no such attributes")
        flags[0] |= 0x80000  # another one, which stays

    monkeypatch.setattr(fcntl, "ioctl", ioctl)
    dumped(tmp_path, steps=2, layout=layout)
    (parent,) = (p for p in tmp_path.glob(steps) if p.is_dir())
    assert len([p for p in parent.iterdir() if p.name != "constants"]) == 2
    there = [(request, flags) for folder, request, flags in asked if folder == parent.stat().st_ino]
    assert there == [(0x80086601, 0), (0x40086602, 0x80000 | top)][: 1 + takes_it]


def test_values_that_are_the_same_memory_are_one_file(tmp_path):
    found = dumped(tmp_path, saved_data="full")
    files_of = {(p.stat().st_ino, np.load(p).tobytes()) for p in found}
    # The weight, the bias and x, as arguments and as what Dense reads; three results, two of them read again.
    assert len(found) == 11 and len(files_of) == len({inode for inode, _ in files_of}) == 6


_SYSTEM_CALLS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>

static int number(const char* name) {
  const char* text = getenv(name);
  return text ? atoi(text) : 0;
}

ssize_t writev(int file, const struct iovec* parts, int count) {
  ssize_t (*real)(int, const struct iovec*, int) = dlsym(RTLD_NEXT, "writev");
  struct iovec some = parts[0];
  if (!number("WRITTEN_AT_ONCE")) return real(file, parts, count);
  if (some.iov_len > (size_t)number("WRITTEN_AT_ONCE")) some.iov_len = number("WRITTEN_AT_ONCE");
  return real(file, &some, 1);
}

int linkat(int from, const char* name, int to, const char* other, int flags) {
  int (*real)(int, const char*, int, const char*, int) = dlsym(RTLD_NEXT, "linkat");
  errno = number("LINK_FAILS_WITH");
  return errno ? -1 : real(from, name, to, other, flags);
}
"""

_ODD_SYSTEMS = """
import errno, os, sys
import numpy as np
import mycelia as ms
from mycelia import debug, ops

net = ms.jit(lambda x: ops.exp(ops.sin(x)))
codes = errno.EMLINK, errno.EPERM, errno.EIO
cases = [("WRITTEN_AT_ONCE", 7), *(("LINK_FAILS_WITH", code) for code in codes)]
for name, value in cases:
    os.environ[name] = str(value)
    with debug.dump({"path": os.path.join(sys.argv[1], f"{name}_{value}")}):
        net(ms.Tensor(np.linspace(0, 1, 50, dtype=np.float32)))
    del os.environ[name]
"""


@pytest.mark.skipif(not shutil.which("cc") or sys.platform != "linux", reason="a compiler, LD_PRELOAD")
def test_systems_that_write_parts_or_have_no_links(tmp_path):
    """A library before the system's writes 7 bytes at once, or refuses links: then each value is a file."""
    source, library = tmp_path / "calls.c", tmp_path / "calls.so"
    source.write_text(_SYSTEM_CALLS)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    environment = {**os.environ, "LD_PRELOAD": str(library)}
    done = subprocess.run(
        [sys.executable, "-c", _ODD_SYSTEMS, str(tmp_path)], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found = {}
    for folder in tmp_path.glob("*_*"):
        paths = sorted((p for p in folder.rglob("*.npy") if "constants" not in p.parts), key=stamp)
        found[folder.name] = kinds(paths), len({p.stat().st_ino for p in paths})
        x = np.linspace(0, 1, 50, dtype=np.float32)
        for path, value in zip(paths, (x, x, np.sin(x), np.sin(x), np.exp(np.sin(x)))):
            assert np.load(path) == pytest.approx(value, rel=1e-6)
    whole = ["Parameter", "Sin", "Sin", "Exp", "Exp"]
    assert found.pop(f"LINK_FAILS_WITH_{errno.EIO}") == (["Parameter"], 1)
    assert found.pop("WRITTEN_AT_ONCE_7") == (whole, 3)
    assert list(found.values()) == [(whole, 5)] * 2
    assert done.stderr.count("data dump ends here") == 1


def test_what_waits_for_the_disk_is_bounded(tmp_path, monkeypatch):
    sizes = []
    flush = StepFolder.flush
    monkeypatch.setattr(step_folder, "_MOST_WAITING", 4000)
    counted = lambda self, at_once=True: (sizes.append(self.size), flush(self, at_once))
    monkeypatch.setattr(StepFolder, "flush", counted)

    class Deep(nn.Cell):
        def construct(self, x):
            for _ in range(20):
                x = ops.exp(x) - 1.0
            return x

    x = np.linspace(0, 1e-3, 500, dtype=np.float32)
    found = dumped(tmp_path, net=Deep(), x=x, saved_data="full")
    assert len(sizes) > 10 and sorted(sizes)[-2] < 6100  # one has statistic.csv, too
    (table,) = tmp_path.rglob("statistic.csv")
    for path, row in zip(found, csv.DictReader(table.open()), strict=True):
        assert float(row["Max Value"]) == pytest.approx(float(np.load(path).max()), rel=1e-6)


_KILLED = """
import os, signal, sys
import numpy as np
import mycelia as ms
from mycelia import debug, ops
from mycelia.debug.dump import step_folder
from mycelia.engine import observing

class Kills(observing.Observer):
    def seen(self, run, operator, inputs, outputs):
        if run.iteration == 1 and operator.type == "Sin":
            os.kill(os.getpid(), signal.SIGKILL)

step_folder._MOST_WAITING = 0  # each file is written at once
net = ms.jit(lambda x: ops.sin(ops.exp(x)))
with debug.dump({"path": sys.argv[1]}):
    observing.watch(Kills())
    for _ in range(3):
        net(ms.Tensor(np.ones(4, np.float32)))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="a signal of POSIX")
def test_a_killed_process_leaves_whole_steps(tmp_path):
    done = subprocess.run([sys.executable, "-c", _KILLED, str(tmp_path)])
    assert done.returncode == -signal.SIGKILL
    (graph,) = (tmp_path / "rank_0/Net").iterdir()
    assert [p.name for p in graph.iterdir() if not p.name.startswith(".")] == ["0"]
    assert kinds(sorted(graph.glob("0/*.npy"), key=stamp)) == ["Parameter", "Exp", "Exp", "Sin", "Sin"]
    assert list(graph.glob(".1.*.tmp/Exp.*.npy"))  # what it had so far, by no final name
    assert debug.DumpAnalyzer(tmp_path).get_iterations() == [0]


def test_the_last_steps_are_written_only_on_trouble(tmp_path):
    class Grows(nn.Cell):
        def construct(self, x):
            return ops.exp(x * 10.0)

    net = Grows()
    with debug.dump({"path": str(tmp_path), "last_steps": 2}):
        for scale in (1.0, 2.0, 3.0):
            net(Tensor(np.full(2, scale, np.float32)))
        assert list(tmp_path.rglob("*.npy")) == []
        net(Tensor(np.full(2, 50.0, np.float32)))
        net(Tensor(np.full(2, 1.0, np.float32)))
    steps = sorted({p.parent.name for p in tmp_path.rglob("Exp*.npy")})
    assert steps == ["2", "3"]  # the one with trouble and the one before
    assert debug.DumpAnalyzer(tmp_path).trace_nonfinite()[0]["iteration"] == 3


def test_an_error_writes_the_last_steps(tmp_path):
    class Bad(nn.Cell):
        def construct(self, x, index):
            return ops.gather(ops.relu(x), index, 0)

    net = Bad()
    with debug.dump({"path": str(tmp_path), "last_steps": 3}), pytest.raises(Exception, match="index|out of"):
        for index in (0, 1, 9):
            net(Tensor(X), Tensor([index], ms.int32))
    assert sorted({p.parent.name for p in tmp_path.rglob("ReLU*.npy")}) == ["0", "1", "2"]


def test_a_condition_starts_the_dump_with_steps_around_it(tmp_path):
    class Plain(nn.Cell):
        def construct(self, x):
            return x * 2.0

    net = Plain()
    watch = {"condition": "tensor_too_large", "params": {"max_gt": 10.0}, "nodes": ["Mul"]}
    with debug.dump({"path": str(tmp_path), "conditions": [watch], "before": 1, "after": 2}):
        for value in (1.0, 2.0, 5.0, 5.5, 1.0, 1.0, 1.0):  # 2 * 5 is no hit: bounds are strict
            net(Tensor(np.full(2, value, np.float32)))
    assert sorted({p.parent.name for p in tmp_path.rglob("Mul*.npy")}) == ["2", "3", "4", "5"]


def test_weights_that_do_not_change_are_a_condition(tmp_path):
    net = Net()
    watch = {"condition": "weight_not_changed", "nodes": ["fc.weight"]}
    with debug.dump({"path": str(tmp_path), "conditions": [watch]}):
        for change in (1.0, 1.0, 0.0):
            net.fc.weight.set_data(net.fc.weight + change)
            net(Tensor(X))
    assert sorted({p.parent.name for p in tmp_path.rglob("Dense*.npy")}) == ["2"]


@pytest.mark.parametrize(
    ("operation", "values", "watch"),
    [
        (ops.relu, (1.0, 0.0, 0.0), {"condition": "dead_relu", "params": {"steps": 2}}),
        (ops.relu, (1.0, 1.0, 0.5), {"condition": "expression",
                                     "params": {"expression": "max < previous.max"}}),
        (lambda x: x + x, (1, 2**30 - 1, 2**30), {"condition": "operator_overflow"}),
        (ops.log, (1.0, np.inf, 0.0), {"condition": "nan_born", "nodes": ["Log"]}),
    ],
    ids=["dead_relu", "expression", "operator_overflow", "nan_born"],
)  # fmt: skip
def test_conditions_look_back_and_at_inputs(tmp_path, operation, values, watch):
    class Plain(nn.Cell):
        def construct(self, x):
            return operation(x)

    net = Plain()
    with debug.dump({"path": str(tmp_path), "conditions": [watch]}):
        for value in values:
            net(Tensor(np.full(2, value, np.int32 if isinstance(value, int) else np.float32)))
    assert {p.parent.name for p in tmp_path.rglob("*.npy")} == {"2"}


def test_ranks_are_compared_by_a_reader_of_their_dumps(tmp_path):
    watch = {"condition": "rank_mismatch"}
    with (
        pytest.raises(ValueError, match="ask a DumpAnalyzer"),
        debug.dump({"path": str(tmp_path), "conditions": [watch]}),
    ):
        Net()(Tensor(X))


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="a signal of POSIX")
def test_a_signal_asks_for_the_next_step(tmp_path):
    net = Net()
    with debug.dump({"path": str(tmp_path), "signal": "SIGUSR1"}):
        net(Tensor(X))
        os.kill(os.getpid(), signal.SIGUSR1)
        net(Tensor(X))
        net(Tensor(X))
    assert sorted({p.parent.name for p in tmp_path.rglob("ReLU*.npy")}) == ["1"]


def test_the_path_may_come_from_the_environment(tmp_path, monkeypatch):
    from mycelia.engine.base import settings

    monkeypatch.setitem(settings._from_env, "diagnostic_data_path", str(tmp_path))
    with debug.dump({"path": ""}):
        Net()(Tensor(X))
    assert list((tmp_path / "debug_dump/rank_0").rglob("ReLU*.npy"))


def test_outputs_without_elements_are_left_out(tmp_path):
    class Plain(nn.Cell):
        def construct(self, x):
            return x[0:0] + 1.0

    assert not [p for p in dumped(tmp_path, net=Plain()) if p.name.startswith("Add") and ".output." in p.name]


def synchronous(path, e2e, **common):
    return {
        "common_dump_settings": {"path": str(path), **common},
        "e2e_dump_settings": {"enable": True, **e2e},
    }


def test_samples_are_the_first_elements_of_larger_tensors(tmp_path):
    net = Net()
    with debug.dump(synchronous(tmp_path, {"sample_mode": 1, "sample_num": 5}, saved_data="full")):
        y = net(Tensor(X))
    (path,) = tmp_path.rglob("Exp.*.output.0.*.npy")
    assert np.array_equal(np.load(path), y.asnumpy().reshape(-1)[:5])
    (bias,) = tmp_path.rglob("Parameter.*bias.*.npy")
    assert np.load(bias).shape == net.trainable_params()[1].shape  # as small as it is
    (table,) = tmp_path.rglob("statistic.csv")
    row = next(r for r in csv.DictReader(table.open()) if r["Op Type"] == "Exp" and r["IO"] == "output")
    assert row["Shape"] == "(5)" and float(row["Max Value"]) == pytest.approx(np.load(path).max())
    dump = debug.DumpAnalyzer(tmp_path)
    with pytest.raises(ValueError, match="samples of tensors"):
        dump.rerun_operator(dump.select_nodes("ReLU-op0")[0], 0, [])


@pytest.mark.parametrize("precision", ["high", "low"])
def test_statistics_of_the_device_are_those_of_all_elements_in_its_precision(tmp_path, precision):
    values = np.float16([300.0, -200.0, 1.5])
    e2e = {"stat_calc_mode": "device", "device_stat_precision_mode": precision}
    categories = ["max", "min", "avg", "l2norm"]
    with debug.dump(synchronous(tmp_path, e2e, saved_data="statistic", statistic_category=categories)):
        ms.jit(lambda x: ops.relu(x) / 0.0)(Tensor(values))
    (table,) = tmp_path.rglob("statistic.csv")
    rows = {(r["Op Type"], r["IO"]): r for r in csv.DictReader(table.open())}
    read = rows["ReLU", "input"]
    numbers = [float(read[c]) for c in ("Max Value", "Min Value", "Avg Value")]
    assert numbers == pytest.approx([300, -200, 33.83], rel=1e-3)
    norm = float(read["L2Norm Value"])  # 130,002 has no float16
    assert norm == (pytest.approx(360.56, rel=1e-3) if precision == "high" else float("inf"))
    made = rows["RealDiv", "output"]
    assert np.isnan(float(made["Max Value"])) and not list(tmp_path.rglob("*Net/*/0/*.npy"))


def test_names_of_the_kernels_that_no_operator_has_are_told_at_the_end(tmp_path, caplog):
    kernels = ["ReLU", "Default/Nothing-op0", "Conv3D", "name-regex(.*fc9.*)"]
    with caplog.at_level("WARNING", logger="mycelia"):
        with debug.dump({"path": str(tmp_path), "dump_mode": 1, "kernels": kernels}):
            Net()(Tensor(X))
    assert "meets 'Default/Nothing-op0', 'Conv3D', 'name-regex(.*fc9.*)' in 'kernels'" in caplog.text


class Twice(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Dense(4, 4), nn.Dense(4, 4)

    def construct(self, x):
        return ops.relu(self.second(self.first(x)))


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
def test_names_of_2_0_have_numbers_of_their_own_in_the_graph(tmp_path, mode):
    net = Twice()
    with (
        ms.config.context(mode=mode),
        debug.dump({"path": str(tmp_path), "naming": "2.0", "saved_data": "full"}),
    ):
        y = net(Tensor(np.ones((2, 4), np.float32)))
    (rank,) = tmp_path.glob("rank_0")
    names = sorted(p.name for p in rank.glob("Net/*/*/*.output.0.*.npy"))
    assert [re.sub(r"\d{16}", "T", n) for n in names if n[0] in "DR"] == [
        "Dense.Dense-op0.0.0.T.output.0.DefaultFormat.npy",
        "Dense.Dense-op1.0.0.T.output.0.DefaultFormat.npy",
        "ReLU.ReLU-op2.0.0.T.output.0.DefaultFormat.npy",
    ]
    assert any(n.startswith("Parameter.first.weight.0.0.") for n in names)
    (order,) = rank.glob("execution_order/ms_execution_order_graph_*.csv")
    full = ["Default/first-Dense/Dense-op0", "Default/second-Dense/Dense-op1", "Default/ReLU-op2"]
    assert order.read_text().split()[1:] == full
    dump = debug.DumpAnalyzer(tmp_path)
    assert [n.name for n in dump.select_nodes("Dense-op")] == full[:2]
    (second,) = dump.select_tensors("Dense-op1", slots=[0])
    with ms.config.context(mode=mode):
        assert np.array_equal(np.maximum(second.value(), 0), y.asnumpy())
    made, read = dump.rerun_operator(second.node, second.iteration, [])[0]
    assert np.array_equal(made, read)
    (table,) = rank.rglob("statistic.csv")
    assert {"first.weight", "Dense-op1"} <= {r["Op Name"] for r in csv.DictReader(table.open())}
