"""The text interface of `mycelia-debug`: its commands, one at a time, and in a terminal."""

from __future__ import annotations

import csv
import io
import os
import re
import select
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import mycelia as ms
from mycelia import debug, nn
from mycelia.debug.slices import indices
from mycelia.debug.text.commands import COMMANDS, run_line, split
from mycelia.debug.text.place import Place
from mycelia.debug.text.screen import Screen, visible
from mycelia.debug.text.shell import choices
from mycelia.debug.text.source import DumpSource
from mycelia.engine import observing

STEPS = 4
BAD = 2  # the iteration whose data have a NaN
MAIN = "from mycelia.debug.cli import main; main()"


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Dense(3, 4)
        self.relu = nn.ReLU()
        self.fc2 = nn.Dense(4, 2)

    def construct(self, x):
        return self.fc2(self.relu(self.fc1(x)))


@pytest.fixture(scope="module")
def dump(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("dump")
    ms.set_seed(1)
    loss = nn.WithLossCell(Net(), nn.MSELoss())
    step = nn.TrainOneStepCell(loss, nn.SGD(loss.trainable_params(), 0.1))
    rng = np.random.default_rng(0)
    with ms.config.context(mode=ms.GRAPH_MODE), debug.dump({"path": str(folder)}):
        observing.set_iteration(0)
        for i in range(STEPS):
            x = rng.standard_normal((5, 3)).astype(np.float32)
            if i == BAD:
                x[0, 0] = np.nan
            step(ms.Tensor(x), ms.Tensor(np.ones((5, 2), np.float32)))
    return folder


class Session:
    """Runs lines, and has what they wrote."""

    def __init__(self, dump: Path):
        self.place = Place(DumpSource(debug.DumpAnalyzer(dump)))
        self.file = io.StringIO()
        self.screen = Screen(Console(file=self.file, width=200, highlight=False))

    def __call__(self, line: str, right: bool = True) -> str:
        self.file.seek(0)
        self.file.truncate()
        assert run_line(self.place, self.screen, line) is right, self.file.getvalue()
        return self.file.getvalue()


@pytest.fixture
def ask(dump) -> Session:
    return Session(dump)


def test_steps_tell_their_health(ask):
    rows = [line.split() for line in ask("steps").splitlines()[1:]]
    assert [row[-4] for row in rows[:2]] == ["0", "0"] and all(int(row[-4]) > 0 for row in rows[2:])
    assert rows[0][0] == ">" and [row[-5] for row in rows] == [rows[0][-5]] * STEPS
    ask("step last")
    assert ask("steps").splitlines()[-1].startswith(">")


@pytest.mark.parametrize(
    ("level", "of_relu"),
    [
        ("NO_TENSOR", []),
        ("CURT_HEALTH", ["bad"]),
        ("concise_health", ["20", "0", "0", "4"]),
        ("FULL_HEALTH", ["float32", "2", "[5, 4]", "20", "0", "0", "4"]),
        ("SHAPE", ["float32", "2", "[5, 4]"]),
    ],
)
def test_health_has_the_levels_of_tensorflows_debugger(ask, level, of_relu):
    ask(f"step {BAD}")
    told = ask(f"health {level} relu-ReLU/ReLU-op")
    assert told.startswith(f"{level.upper()}, iteration {BAD}")
    (line,) = [line for line in told.splitlines() if line.startswith("relu-ReLU/ReLU-op0:0")]
    found = re.sub(r"^\S+\s+ReLU\s*", "", line).replace(", ", ",").split()
    wanted = [cell.replace(", ", ",") for cell in of_relu]
    assert found[: len(wanted)] == wanted
    if level == "FULL_HEALTH":
        assert sum(map(int, found[-3:])) == 16  # below, at and above zero, beside the NaN
    else:
        assert len(found) == len(wanted)


def test_health_of_all_outputs_and_wrong_words(ask):
    ask("step 0")
    everything = ask("health").splitlines()
    assert len(everything) > 8 and all("ok" in line for line in everything[1:])
    elements = ask("health FULL_TENSOR relu-ReLU/ReLU-op")
    assert "[5, 4]" in elements and "..." in elements
    assert "There is no such output" in ask("health nothing")
    assert "FULL_HEALTH" in ask("health medium relu", right=False)


def test_time_is_travelled(ask):
    assert ask("step 2") == "iteration 2\n" and ask("n") == "iteration 3\n"
    assert "no iteration after" in ask("next", right=False)
    assert ask("b") == "iteration 2\n" and ask("step first") == "iteration 0\n"
    assert "no iteration before" in ask("back", right=False)
    assert "iteration 9 was not dumped" in ask("step 9", right=False)
    assert "did you mean" in ask("step nxt", right=False)
    assert ask("rank") == "rank 0 of 0, iteration 0\n"
    assert "must be one of ['0']" in ask("rank 7", right=False)


def test_a_weight_that_is_also_evaluated_is_that_of_the_graph_that_ran(tmp_path):
    """Iterations 0 and 2 train, 1 and 3 evaluate, with the same names in two graphs."""
    ms.set_seed(1)
    net = Net()
    loss = nn.WithLossCell(net, nn.MSELoss())
    step = nn.TrainOneStepCell(loss, nn.SGD(net.trainable_params(), 0.1))
    x, y = ms.Tensor(np.ones((5, 3), np.float32)), ms.Tensor(np.ones((5, 2), np.float32))
    with ms.config.context(mode=ms.GRAPH_MODE), debug.dump({"path": str(tmp_path)}):
        observing.set_iteration(0)
        for _ in range(2):
            step(x, y)
            net(x)
    ask = Session(tmp_path)
    trains, evaluates = sorted({n.graph for n in ask.place.nodes})
    ask("step 2")
    assert ask.place.node("fc2.bias").graph == trains
    assert "fc2.bias:0: 2 of 2 elements of iteration 2 differ from iteration 0" in ask("compare fc2.bias")
    assert "0 of 2 elements of iteration 2 differ from iteration 1" in ask("compare fc2.bias 1")
    ask("step 3")
    assert ask.place.node("fc2.bias").graph == evaluates
    assert "2 of 2 elements of iteration 3 differ from iteration 1" in ask("compare fc2.bias")
    assert "2 of 2 elements" in ask(f"compare {evaluates}:fc2.bias")
    assert "has nothing in iteration 3" in ask(f"show {trains}:fc2.bias", right=False)
    assert ask(f"show {evaluates}:fc2.bias:0 [0]") == ask("show fc2.bias [0]")
    assert "there is no node '77:fc2.bias'" in ask("show 77:fc2.bias", right=False)
    ask("step 1")
    assert "no iteration before this one that ran its graph" in ask("compare fc2.bias", right=False)
    assert f"{trains}:fc2.weight, " in ask("show fc2", right=False)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_an_index_has_all_tensors(ask, dump, tmp_path, ending):
    target = tmp_path / "below" / f"all.{ending}"
    if ending == "parquet":
        parquet = pytest.importorskip("pyarrow.parquet", reason="Parquet files need pyarrow")
        ask(f"index {target}")
        rows = parquet.read_table(target).to_pylist()
    else:
        ask(f"index {target}")
        rows = list(csv.DictReader(target.open(encoding="utf-8")))
    arrays = sorted(str(p.relative_to(dump)) for p in dump.rglob("*.npy") if "constants" not in p.parts)
    assert sorted(row["file"] for row in rows) == arrays
    assert [p.name for p in target.parent.iterdir()] == [target.name]
    relu = [row for row in rows if row["op_type"] == "ReLU" and row["io"] == "output"]
    assert [int(row["iteration"]) for row in relu] == list(range(STEPS))
    for row in relu:
        value = np.load(dump / row["file"])
        assert row["op_name"].endswith("relu-ReLU/ReLU-op0") and row["shape"] == str(value.shape)
        assert row["source"].startswith(f"{__file__}:") and row["dtype"] == "float32"
        assert int(row["nan"]) == np.isnan(value).sum() and int(row["count"]) == value.size
        finite = value[np.isfinite(value)]
        most = finite.max() if finite.size else np.nan
        assert float(row["max"]) == pytest.approx(most, rel=1e-6, nan_ok=True)


def test_an_index_that_cannot_be_written_is_told(ask, tmp_path):
    assert "must end in .parquet or .csv" in ask(f"index {tmp_path / 'a.txt'}", right=False)
    (tmp_path / "file").write_text("")
    assert "cannot be written" in ask(f"index {tmp_path / 'file' / 'a.csv'}", right=False)


def test_nodes_are_listed_by_what_they_are(ask):
    assert "ReLU-op0" in ask("nodes activations") and len(ask.place.listed) == 1
    weights = ask("nodes weights")
    assert all(name in weights for name in ("fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"))
    ask("nodes gradients matmul")
    assert {n.kind for n in ask.place.listed} == {"MatMul"}
    ask("nodes code=self.fc2(self.relu")
    assert {"ReLU", "Dense"} <= {n.kind for n in ask.place.listed}
    ask("code self.fc2(self.relu")
    assert {"ReLU", "Dense"} <= {n.kind for n in ask.place.listed}
    assert (
        ask("nodes bad") == "There is no such node.\n" and ask("nodes nothing") == "There is no such node.\n"
    )
    ask("step 2")
    assert "not finite" in ask("nodes bad") and ask.place.listed[0].name == "inputs0"


def test_nodes_are_named_by_numbers_ends_and_parts(ask):
    ask("nodes activations")
    by_number = ask("stack 1")
    assert "return self.fc2(self.relu(self.fc1(x)))" in by_number and "test_text.py" in by_number
    assert ask("stack relu-ReLU/ReLU-op0") == by_number
    assert "may be" in ask("stack Dense", right=False)
    assert "no node 'nowhere'" in ask("stack nowhere", right=False)
    assert "no number 9" in ask("stack 9", right=False)
    assert "the framework made it" in ask("stack fc1.weight")


def test_tensors_and_slices(ask, dump):
    told = ask("tensors relu-ReLU/ReLU-op0").splitlines()
    assert told[2].split()[:3] == ["input:0", "float32", "[5,"] and told[3].startswith("output:0")
    (path,) = dump.rglob("0/ReLU.*.output.0.*")
    array = np.load(path)
    shown = ask("show relu-ReLU/ReLU-op0 [1:3, 0]").splitlines()
    assert "float32 [5, 4]" in shown[0]
    with np.printoptions(precision=6):
        assert shown[1] == str(array[1:3, 0])
    assert str(np.load(next(dump.rglob("0/ReLU.*.input.0.*")))[4, 3])[:6] in ask(
        "show ReLU-op0:input:0 [4,3]"
    )
    for wrong in ("show ReLU-op0:7", "show ReLU-op0 [9,0]", "show ReLU-op0 [0,0,0]", "show ReLU-op0 [a]"):
        ask(wrong, right=False)


def test_the_history_of_a_tensor(ask):
    rows = ask("history ReLU-op0:0").splitlines()[2:]
    assert [row.split()[0] for row in rows] == ["0", "1", "2", "3"]
    assert [row.split()[-4] for row in rows] == ["0", "0", "4", "20"]


def test_iterations_are_compared_with_a_tolerance(ask):
    assert "no iteration before" in ask("compare fc2.weight", right=False)
    ask("step 1")
    told = ask("compare fc2.weight")
    assert "8 of 8 elements of iteration 1 differ from iteration 0" in told and "[0, 0]" in told
    assert "0 of 8 elements" in ask("compare fc2.weight 0 tolerance=1000")
    assert "0 of 8 elements" in ask("compare fc2.weight 1")
    ask("step 2")
    assert "nan" in ask("compare ReLU-op0 1")
    assert ask("compare ReLU-op0 2").startswith("relu-ReLU/ReLU-op0:0: 0 of 20")  # NaN beside NaN
    for wrong in ("compare fc2.weight x", "compare fc2.weight 1 tolerance=-1", "compare fc2.weight 44"):
        ask(wrong, right=False)


def test_watchpoints_from_making_to_hits(ask):
    assert "no watchpoints" in ask("watch") and "no watchpoints" in ask("hits", right=False)
    told = ask("watch tensor_too_large max_gt=0.001 relu-relu")
    assert told.splitlines()[1].split() == ["1", "tensor_too_large", "max_gt=0.001", "2"]
    hits = ask("hits")
    assert "relu-ReLU/ReLU-op0:0" in hits and "max_gt: set 0.001, is 1." in hits
    ask("step 2")
    assert "the tensor has NaN" in ask("hits")
    assert ask("unwatch 1") == "0 watchpoints are left.\n"
    ask("unwatch 1", right=False)
    assert len(ask("watch recommended").splitlines()) == 7
    ask("unwatch all")
    change = "tensor_all_zero.zero_percentage_ge=40"
    assert "zero_percentage_ge=40" in ask(f"recommended {change}") and "no watchpoints" in ask("watch")
    assert "zero_percentage_ge=40" in ask(f"watch recommended {change}")
    for wrong in ("tensor_all_zero=40", "tensor_all_zero.max_gt=1", "nothing.max_gt=1", f"{change}0"):
        ask(f"watch recommended {wrong}", right=False)
    assert len(ask("watch").splitlines()) == 7
    ask("unwatch all")
    with ms.config.context(debugger_recommended=f"{change}, gradient_vanishing.abs_mean_lt=1e-5"):
        told = ask("recommended")
    assert "zero_percentage_ge=40" in told and "abs_mean_lt=1e-05" in told
    ask("watch recommended")
    ask("step first")
    assert ask("step hit").startswith("iteration ") and ask.place.iteration > 0
    ask("unwatch all")
    ask("watch tensor_overflow")
    ask("step first")
    assert ask("step hit").startswith(f"iteration {BAD}: ")
    ask("hits")
    assert "was not dumped" not in ask("tensors 1")
    ask("step last")
    assert ask("step hit") == "No later iteration has a hit.\n"
    for wrong in (
        "nothing", "tensor_too_large", "tensor_too_large max_gt=x", "activation_range max_min_gt=1 fc1",
        "tensor_all_zero zero_percentage_ge=101",
    ):  # fmt: skip
        ask(f"watch {wrong}", right=False)
    assert "abs_mean_update_ratio_gt (0.1)" in ask("conditions")


def test_an_expression_is_a_watchpoint(ask):
    ask("unwatch all")
    told = ask("watch expression 'expression=count == 12 and previous.nan == 0' fc1.weight")
    assert "count == 12 and previous.nan == 0" in told
    assert "no value of the step before" in ask("hits")
    ask("step 1")
    assert "count = 12, previous.nan = 0" in ask("hits")
    assert "position 6" in ask("watch expression 'expression=max >'", right=False)
    ask("unwatch all")


def test_why_leads_back(ask):
    assert "All values of iteration 0 are finite" in ask("why")
    ask("step 2")
    assert ask("why").startswith("inputs0:0  nan  1 of 15  was there when the step began")
    way = ask("why relu-ReLU/ReLU-op0")
    order = [way.index(name) for name in ("relu-ReLU/ReLU-op0", "fc1-Dense/Dense-op0", "inputs0")]
    assert order == sorted(order) and "test_text.py" in way
    assert [n.name.rpartition("/")[2] for n in ask.place.listed] == ["ReLU-op0", "Dense-op0", "inputs0"]
    assert "All outputs of fc1.weight are finite" in ask("why fc1.weight")


def test_neighbours_over_levels(ask):
    rows = [line.split()[1:4] for line in ask("neighbours relu-ReLU/ReLU-op0").splitlines()[1:]]
    assert rows[0] == ["reads", "1", "Dense"] and ["read", "by", "1"] in rows
    assert len(ask("graph relu-ReLU/ReLU-op0 2").splitlines()) > len(rows) + 1
    for wrong in ("0", "10", "x"):
        ask(f"neighbours ReLU-op0 {wrong}", right=False)


def test_attributes_of_a_node(ask):
    (line,) = [one for one in ask("attributes SGD-op0").splitlines() if "nesterov" in one]
    assert line.split() == ["nesterov", "False"]
    assert ask("attributes accum.fc1.weight").split()[-3:] == ["role", "optimizer", "state"]
    assert "no attributes" in ask("attributes ReLU-op0")


def test_tensors_are_written_whole_or_not_at_all(ask, dump, tmp_path):
    file = tmp_path / "new" / "relu.npy"
    assert str(file) in ask(f"export ReLU-op0 {file}")
    np.testing.assert_array_equal(np.load(file), np.load(next(dump.rglob("0/ReLU.*.output.0.*"))))
    ask(f"export relu-ReLU/ReLU-op0 {tmp_path / 'all'}")
    assert {path.name for path in (tmp_path / "all").iterdir()} == {"input_0.npy", "output_0.npy"}
    (tmp_path / "taken").write_text("x")
    assert "cannot be written" in ask(f"export ReLU-op0 {tmp_path / 'taken' / 'x.npy'}", right=False)
    (tmp_path / "folder.npy").mkdir()
    ask(f"export ReLU-op0 {tmp_path / 'folder.npy'}", right=False)
    assert {path.name for path in tmp_path.iterdir()} == {"new", "all", "taken", "folder.npy"}


def test_help_names_every_command_and_wrong_lines_are_told(ask):
    listed = ask("help")
    assert all(name in listed for name in COMMANDS)
    assert "also ls" in ask("help nodes") and ask("h nodes") == ask("help nodes")
    for wrong in ("frobnicate", "stack", "steps 3", "show 'x"):
        ask(wrong, right=False)
    assert ask("") == ""


def test_words_in_brackets_are_one():
    assert split("show a [0, :, 2:5]") == ["show", "a", "[0, :, 2:5]"]
    assert split("export a 'b c'") == ["export", "a", "b c"]


@pytest.mark.parametrize(
    "text, picked", [("[0, :]", (0, slice(None))), ("", ()), ("[-1]", (-1,)), ("1:3,::2", None)]
)
def test_slices_are_pythons(text, picked):
    value = np.arange(12).reshape(3, 4)
    expected = value[1:3, ::2] if picked is None else value[picked]
    np.testing.assert_array_equal(value[indices(text, value.shape)], expected)


def test_completion_offers_what_fits(ask):
    assert choices(ask.place, "ne") == ["next", "neighbours"]
    assert choices(ask.place, "show fc2.w") == [n.name for n in ask.place.nodes if "fc2.w" in n.name]
    assert choices(ask.place, "watch tensor_too_l") == ["tensor_too_large"]
    assert choices(ask.place, "watch tensor_too_large ab") == ["abs_mean_gt="]
    assert choices(ask.place, "nothing x") == [] and "recommended" in choices(ask.place, "watch ")


def test_names_move_no_cursor(tmp_path):
    """A dump of hostile names: what would clear the screen is written out."""
    evil = "\x1b[2J\x07evil"
    step = tmp_path / "rank_0" / "net" / "0" / "0"
    step.mkdir(parents=True)
    np.save(
        step / f"Add.{evil}.0.0.1700000000000000.output.0.DefaultFormat.Float32.npy", np.float32([np.nan])
    )
    graphs = tmp_path / "rank_0" / "graphs"
    graphs.mkdir()
    (graphs / "ms_output_trace_code_graph_0.ir").write_text(
        f"  %0(x) = Add() {{}}\n      # Fullname with scope: ({evil})\n"
        f"      # In file {evil}.py:1, 0~1/{evil}/\n"
    )
    ask = Session(tmp_path)
    of_one = [f"{name} 1" for name in ("stack", "tensors", "show", "history", "neighbours")]
    for line in ("nodes", "why", *of_one, "watch tensor_overflow", "hits"):
        told = ask(line)
        assert "\x1b" not in told and "\x07" not in told
        assert line.startswith("watch") or "\\x1b[2J\\x07evil" in told, line
    done = subprocess.run([sys.executable, "-c", MAIN, str(tmp_path)], capture_output=True, text=True)
    assert "\x1b" not in done.stdout and "\\x1b[2J" in done.stdout
    assert visible("a\tb\nc") == "a\\tb\nc"


def test_one_command_as_arguments(dump):
    def run(*words: str) -> subprocess.CompletedProcess:
        return subprocess.run([sys.executable, "-c", MAIN, str(dump), *words], capture_output=True, text=True)

    done = run("why", "--iteration", str(BAD))
    assert done.returncode == 0 and done.stdout.startswith("inputs0:0  nan")
    wrong = run("show", "nowhere")
    assert (wrong.returncode, wrong.stdout) == (1, "") and "there is no node 'nowhere'" in wrong.stderr


def test_pipes_get_the_report_alone(dump):
    done = subprocess.run(
        [sys.executable, "-c", MAIN, str(dump)], input="steps\n", capture_output=True, text=True
    )
    assert done.returncode == 0 and "The first NaN" in done.stdout and "iteration 0>" not in done.stdout


class Terminal:
    """A program that believes it has a terminal."""

    def __init__(self, *command: str):
        fcntl, pty, termios = (pytest.importorskip(name) for name in ("fcntl", "pty", "termios"))
        self.main, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("4H", 40, 120, 0, 0))
        self.process = subprocess.Popen(
            command, stdin=other, stdout=other, stderr=other, env={**os.environ, "TERM": "xterm"},
            start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(other)
        self.seen = ""

    def until(self, text: str) -> str:
        """All that comes until `text` has come; styles and moves of the cursor are left out."""
        while text not in self.seen:
            ready, _, _ = select.select([self.main], [], [], 60)
            assert ready, f"{text!r} did not come: {self.seen!r}"
            try:
                data = os.read(self.main, 65536).decode(errors="replace")
            except OSError:  # the program has ended
                data = ""
            assert data, f"it ended without {text!r}: {self.seen!r}"
            if "\x1b[6n" in data:  # it asks where the cursor is
                os.write(self.main, b"\x1b[1;1R")
            self.seen += re.sub(r"\x1b(\[[0-9;?]*[a-zA-Z]|[()][0-9A-B]|[=>])", "", data)
        found, _, self.seen = self.seen.partition(text)
        return found

    def type(self, text: str) -> None:
        os.write(self.main, text.encode())

    def close(self) -> int:
        os.close(self.main)
        return self.process.wait(60)


@pytest.mark.parametrize("has_toolkit", [True, False])
def test_a_terminal_has_a_prompt(dump, has_toolkit):
    if has_toolkit:
        pytest.importorskip("prompt_toolkit")
    block = "" if has_toolkit else "import sys; sys.modules['prompt_toolkit'] = None; "
    terminal = Terminal(sys.executable, "-c", block + MAIN, str(dump))
    try:
        assert "The first NaN" in terminal.until("Commands over this dump")
        terminal.until("iteration 0>")
        terminal.type("step 2\r" if has_toolkit else "step 2\n")
        terminal.until("iteration 2>")
        if has_toolkit:
            terminal.type("neigh\t relu-ReLU/ReLU-op0\r")  # the tabulator completes
            assert "reads 1" in terminal.until("read by 1")
        terminal.type("nonsense\r" if has_toolkit else "nonsense\n")
        terminal.until("the command must be one of")
        terminal.until("iteration 2>")
        terminal.type("\x03")  # ends the line, not the program
        if not has_toolkit:  # a signal just before the plain line is read is seen when the line ends
            terminal.type("\n")
        terminal.until("iteration 2>")
        terminal.type("quit\r" if has_toolkit else "quit\n")
        assert terminal.process.wait(60) == 0
    finally:
        if terminal.process.poll() is None:
            terminal.process.kill()
        terminal.close()
