"""The profiler: what it counts, what it writes, and that programs run as without it."""

import json
import subprocess
import sys
import threading

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn, ops
from mycelia.profiler import Profiler, peaks, profile, tensorboard_trace_handler


def floats(*shape):
    return ms.Tensor(np.random.default_rng(0).normal(size=shape).astype(np.float32))


def by_name(profiler):
    return {(row.name, row.where): row for row in profiler.rows()}


def test_eager_ops_are_counted_with_their_cost():
    x, y = floats(8, 16), floats(16, 4)
    with Profiler() as profiler:
        for _ in range(3):
            ops.matmul(x, y)
    row = by_name(profiler)["mat_mul", "eager"]
    assert row.calls == 3
    assert row.flops == 3 * 2 * 8 * 16 * 4
    assert row.bytes == 3 * 4 * (8 * 16 + 16 * 4 + 8 * 4)
    assert 0 < row.seconds <= profiler.seconds


def test_results_and_gradients_are_those_without_a_profiler():
    x = floats(5, 3)
    function = lambda x: ops.sum(ops.tanh(x) * x)
    expected = ms.grad(function)(x).asnumpy()
    with Profiler():
        found = ms.grad(function)(x).asnumpy()
    np.testing.assert_array_equal(found, expected)


def test_time_of_ops_inside_a_composed_op_counts_once():
    x = ms.Tensor(np.ones((3, 4), np.int32))
    with Profiler() as profiler:
        ops.add(x, floats(3, 4))  # casts x by a call of another op
    rows = by_name(profiler)
    assert {"add", "cast"} <= {name for name, _ in rows}
    assert sum(row.seconds for row in rows.values()) <= profiler.seconds


def test_compiled_programs_are_measured_by_instruction():
    net = nn.SequentialCell(nn.Dense(16, 32), nn.ReLU(), nn.Dense(32, 4)).set_train(False)
    run, x = ms.jit(net), floats(8, 16)
    run(x)  # one program exists before, one is built while it is measured
    with Profiler() as profiler:
        for _ in range(5):
            run(x)
        run(floats(3, 16))
    rows = [row for row in profiler.rows() if row.where == "compiled"]
    assert sum(row.flops for row in rows) >= 5 * 2 * 8 * (16 * 32 + 32 * 4)
    assert max(row.calls for row in rows) >= 5


def test_measuring_ends_with_stop():
    x = floats(4)
    profiler = Profiler()
    ops.exp(x)
    profiler.stop()
    ops.exp(x)
    assert by_name(profiler)["exp", "eager"].calls == 1
    profiler.start()
    ops.exp(x)
    profiler.stop()
    assert by_name(profiler)["exp", "eager"].calls == 2


def test_an_exception_in_an_op_leaves_the_profiler_usable():
    x = floats(4)
    with Profiler() as profiler:
        with pytest.raises(ValueError, match="mat_mul|matmul"):
            ops.matmul(floats(2, 3), floats(2, 3))
        ops.exp(x)
    assert by_name(profiler)["exp", "eager"].calls == 1


def test_graph_mode_still_compiles():
    class Net(nn.Cell):
        def construct(self, x):
            return ops.tanh(x) + 1

    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        with Profiler() as profiler:
            Net()(floats(3))
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    assert all(row.where == "compiled" for row in profiler.rows())


def test_a_branch_is_measured_by_what_ran_inside():
    @ms.jit
    def choose(x):
        return ops.exp(x) if ops.sum(x) > 0 else ops.tanh(x)

    with Profiler() as profiler:
        choose(ms.Tensor([1.0, 2.0]))
    names = {row.name for row in profiler.rows()}
    assert "cond" not in names
    assert "tanh" not in names


def test_misuse_is_told():
    profiler = Profiler(start_profile=False)
    with pytest.raises(RuntimeError, match="before start"):
        profiler.stop()
    profiler.start()
    with pytest.raises(RuntimeError, match="twice"):
        profiler.start()
    with pytest.raises(RuntimeError, match="after stop"):
        profiler.rows()
    profiler.stop()


def test_table_names_ops_limits_and_what_is_left_out():
    with Profiler() as profiler:
        x = ops.exp(floats(64, 64))
        ops.softmax(ops.matmul(x, x), -1)
    text = profiler.table(2)
    assert text.splitlines()[0].split()[:3] == ["op", "where", "calls"]
    assert "... and 1 more" in text
    assert "GFLOP/s" in text
    assert "64x64, 64x64) -> 64x64" in profiler.table(by_signature=True)


def test_trace_holds_calls_steps_and_programs(tmp_path):
    run = ms.jit(lambda x: ops.exp(x) @ x)
    with profile(on_trace_ready=tensorboard_trace_handler(str(tmp_path))) as profiler:
        ops.tanh(floats(3))
        run(floats(4, 4))
        profiler.step()
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert {"tanh", "exp", "step"} <= {e["name"] for e in events}
    assert all(e["dur"] >= 0 for e in events if e["ph"] == "X")


def test_analyse_writes_what_was_measured(tmp_path, capsys):
    profiler = Profiler(output_path=str(tmp_path / "out"), profiler_level=1)
    ops.exp(floats(3))
    profiler.add_metadata("run", "first")
    profiler.analyse(pretty=True)
    assert "exp" in capsys.readouterr().out
    summary = json.loads((tmp_path / "out" / "profile.json").read_text())
    assert summary["metadata"] == {"run": "first"}
    assert [row["name"] for row in summary["rows"]] == ["exp"]
    assert {"profile.txt", "trace.json"} <= {p.name for p in (tmp_path / "out").iterdir()}
    assert json.loads(profiler.op_analyse(["exp"]))[0]["calls"] == 1


def test_command_profiles_a_script_with_its_arguments(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, mycelia as ms\n"
        "for _ in range(int(sys.argv[1])):\n    ms.ops.exp(ms.Tensor([1.0, 2.0]))\n"
    )
    trace = tmp_path / "trace.json"
    # A process of its own: the command takes over `__main__`, sys.argv and the import of `mindspore`.
    command = [sys.executable, "-m", "mycelia", "profile", "--trace", str(trace), str(script), "7"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("exp"))
    assert line.split()[1:3] == ["eager", "7"]
    assert trace.exists()


def test_command_refuses_a_trace_that_could_not_be_written(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("print('it ran')\n")
    command = [sys.executable, "-m", "mycelia", "profile", "--trace", str(tmp_path / "no" / "trace.json")]
    done = subprocess.run([*command, str(script)], capture_output=True, text=True)
    assert done.returncode == 2 and "there is no folder" in done.stderr
    assert "it ran" not in done.stdout


def test_threads_that_begin_meanwhile_are_measured(tmp_path):
    before, go = threading.Event(), threading.Event()

    def work():
        for _ in range(3):
            ops.tanh(floats(4, 4))
            before.set()
            go.wait()

    with Profiler() as profiler:
        ops.exp(floats(4, 4))
        thread = threading.Thread(target=work, name="helper")
        thread.start()
        before.wait()
    go.set()  # the thread goes on after the measurement
    thread.join()
    assert by_name(profiler)["tanh", "eager"].calls == 1
    assert by_name(profiler)["exp", "eager"].calls == 1
    assert threading.getprofile() is None
    profiler.export_chrome_tracing(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    threads = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert {threads[e["tid"]] for e in events if e["name"] == "tanh"} == {"helper"}


def test_capturing_and_compiling_is_told():
    step = ms.jit(lambda x: ops.softmax(x * 2, -1))
    with Profiler() as first:
        step(floats(8, 4))
    with Profiler() as second:
        step(floats(8, 4))
    assert 0 < first.compile_seconds < first.seconds
    assert second.compile_seconds == 0
    assert "capturing and compiling" in first.table()


def test_peaks_are_positive_and_kept():
    found = peaks()
    assert all(rate > 0 for _, rate in found.bandwidth)
    assert peaks() is found
    assert found.seconds(0, 1e9) == pytest.approx(1e9 / found.bytes_at(1e9))


def test_notes_in_json_come_into_the_summary(tmp_path):
    profiler = Profiler(output_path=str(tmp_path))
    profiler.add_metadata_json("net", '{"layers": 3}')
    profiler.add_metadata_json("other", "{")
    profiler.analyse()
    assert json.loads((tmp_path / "profile.json").read_text())["metadata"] == {"net": {"layers": 3}}
    Profiler.offline_analyse(str(tmp_path))
