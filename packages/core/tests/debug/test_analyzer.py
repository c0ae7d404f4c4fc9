"""`DumpAnalyzer` over dumps of ours, of MindSpore's form, and of damaged folders."""

from __future__ import annotations

import csv
import shutil

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, debug, nn, ops
from mycelia.engine import observing


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(4, 3)

    def construct(self, x):
        return ops.log(ops.relu(self.fc(x)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("dump")
    net = Net()
    net.fc.weight.set_data(Tensor(np.ones((3, 4), np.float32)))
    ms.set_context(mode=ms.GRAPH_MODE)
    observing.set_iteration(0)
    try:
        with debug.dump({"path": str(path), "saved_data": "full"}):
            net(Tensor(np.ones((2, 4), np.float32)))
            net(Tensor(-np.ones((2, 4), np.float32)))
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    return path


def test_nodes_are_found_by_name_and_by_line(folder):
    dump = debug.DumpAnalyzer(folder)
    assert dump.get_ranks() == [0] and dump.get_iterations() == [0, 1]
    assert [n.kind for n in dump.select_nodes("default/", case_sensitive=False)] == ["Dense", "ReLU", "Log"]
    assert [n.name for n in dump.select_nodes(r"op\d$", use_regex=True)][-1] == "Default/Log-op0"
    assert len(dump.select_nodes("ops.log(ops.relu", select_by="code_stack")) == 3
    with pytest.raises(ValueError, match=r"ranks must be of \[0\]"):
        dump.select_nodes("Default/", ranks=[1])
    with pytest.raises(ValueError, match="select_by"):
        dump.select_nodes("x", select_by="line")
    with pytest.raises(ValueError, match="regular expression"):
        dump.select_nodes("(", use_regex=True)


def test_nodes_know_their_neighbours(folder):
    dump = debug.DumpAnalyzer(folder)
    (relu,) = dump.select_nodes("ReLU")
    assert [n.kind for n in dump.get_input_nodes(relu)] == ["Dense"]
    assert [n.kind for n in dump.get_output_nodes(relu)] == ["Log"]
    assert [n.kind for n in dump.list_affected_nodes(relu.get_output_tensors()[0])] == ["Log"]
    (dense,) = dump.select_nodes("Dense")
    assert [n.name for n in dump.get_input_nodes(dense)] == ["inputs0", "fc.weight", "fc.bias"]


def test_tensors_have_values_and_statistics(folder):
    (tensor,) = debug.DumpAnalyzer(folder).select_tensors("ReLU", iterations=[1])
    assert tensor.value().tolist() == np.zeros((2, 3)).tolist() and tensor.rank == 0
    assert (tensor.statistics().zero, tensor.statistics().max) == (6, 0.0)


def test_what_is_not_finite_is_traced_to_its_birth(folder):
    dump = debug.DumpAnalyzer(folder)
    (found,) = dump.trace_nonfinite()
    assert (found["op_full_name"], found["kind"], found["count"]) == ("Default/Log-op0", "-inf", 6)
    assert found["iteration"] == 1 and found["born"] and "ops.log" in found["source"][0]
    assert dump.trace_nonfinite(iteration=0) == []


def test_watchpoints_hit_with_details(folder):
    dump = debug.DumpAnalyzer(folder)
    tensors = dump.select_tensors("Dense-op0")
    point = debug.Watchpoint(tensors, debug.TensorTooLargeCondition(max_gt=3.0))
    (hit,) = dump.check_watchpoints([point])
    assert hit.tensor.iteration == 0 and hit.error_code == 0 and hit.error_msg == []
    assert hit.get_threshold() == {"max_gt": 3.0}
    expected = "The setting for watchpoint is max_gt = 3.0. The actual value of the tensor is max_gt = "
    assert hit.get_hit_detail().startswith(expected)
    logs = dump.select_tensors("Log")
    (hit,) = dump.check_watchpoints([debug.Watchpoint(logs, debug.TensorOverflowCondition())])
    assert hit.tensor.iteration == 1
    (hit,) = dump.check_watchpoints([debug.Watchpoint(logs, debug.TensorTooSmallCondition(max_lt=-9.0))])
    assert hit.error_code == 2 and hit.error_msg == ["the tensor has infinities"]


def test_unchanged_weights_need_the_step_before(folder):
    dump = debug.DumpAnalyzer(folder)
    weights = dump.select_tensors("fc.weight")
    found = dump.check_watchpoints([debug.Watchpoint(weights, debug.TensorUnchangedCondition())])
    assert [(h.tensor.iteration, h.error_code) for h in found] == [(0, 4), (1, 0)]


def test_statistics_are_summed_up(folder, tmp_path):
    dump = debug.DumpAnalyzer(folder)
    statistics = dump.select_tensor_statistics(iterations=1, ranks=0)
    assert list(statistics) == [0] and list(statistics[0]) == [1]
    by_name = statistics[0][1]
    assert {row["Op Type"] for (row,) in by_name.values()} == {"Parameter", "Dense", "ReLU", "Log"}
    (row,) = by_name["Default_Log-op0:output:0"]
    assert row["Negative Inf Count"] == 6 and row["Slot"] == 0 and row["Count"] == 6
    path = dump.summary_statistics(statistics, overflow_value=2.0, out_path=tmp_path / "new")
    lines = {line["tensor_name"]: line for line in csv.DictReader(path.open())}
    assert len(lines) == len(by_name)
    log = lines["Default_Log-op0:output:0"]
    assert [log[c] for c in ("inf_number", "nan_number", "none_overflow_number")] == ["1", "0", "0"]
    everything = dump.summary_statistics(dump.select_tensor_statistics(), out_path=tmp_path)
    lines = {line["tensor_name"]: line for line in csv.DictReader(everything.open())}
    assert lines["Default_Log-op0:output:0"]["total_iterations"] == "2"


@pytest.mark.parametrize("where", ["device", "host"])
def test_what_a_table_does_not_count_is_seen_by_its_extremes(tmp_path, where):
    """Counts are no statistics of a device; without them nothing but extremes tells of NaN."""
    e2e = {"enable": True, "stat_calc_mode": where}
    common = {"path": str(tmp_path), "saved_data": "statistic", "statistic_category": ["max", "min"]}
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        with debug.dump({"common_dump_settings": common, "e2e_dump_settings": e2e}):
            ms.jit(lambda x, y, z: (ops.exp(x), ops.abs(y), ops.neg(z)))(
                Tensor([np.nan, np.nan]), Tensor([1.0, -np.inf]), Tensor([1.0, 2.0])
            )
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    dump = debug.DumpAnalyzer(tmp_path)
    path = dump.summary_statistics(dump.select_tensor_statistics(), out_path=tmp_path)
    with path.open() as file:
        lines = {(line["op_type"], line["tensor_name"].split(":")[1]): line for line in csv.DictReader(file)}
    columns = ("nan_number", "inf_number", "none_overflow_number")
    found = {key: tuple(int(line[c]) for c in columns) for key, line in lines.items()}
    assert found["Exp", "output"] == (1, 0, 0)
    assert found["Neg", "output"] == (0, 0, 1)
    # The host's extremes are of finite elements: that there are others is not known.
    assert found["Abs", "output"] == ((0, 1, 0) if where == "device" else (0, 0, 1))


@pytest.mark.parametrize(
    "limit, kind",
    [("2048", TypeError), (True, TypeError), (2047, ValueError), (-1, ValueError), (2**31, ValueError)],
)
def test_the_limit_of_memory_is_an_int_in_range(folder, limit, kind):
    assert debug.DumpAnalyzer(folder, mem_limit=2048).get_ranks() == [0]
    with pytest.raises(kind, match="mem_limit must be"):
        debug.DumpAnalyzer(folder, mem_limit=limit)


def test_numbers_may_be_one_or_several_and_must_be_there(folder):
    dump = debug.DumpAnalyzer(folder)
    (tensor,) = dump.select_tensors("Log-op0", iterations=1, ranks=0, slots=0)
    assert tensor.iteration == 1 and dump.get_iterations(ranks=0) == [0, 1]
    assert tensor.node.get_output_tensors(slots=[0], iterations={1})[0].iteration == 1
    for wrong in ({"iterations": 9}, {"ranks": [0, 3]}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            dump.select_tensors("Log", **wrong)
    with pytest.raises(TypeError, match="slots must be ints"):
        dump.select_tensors("Log", slots=["0"])
    with pytest.raises(TypeError, match="query_string"):
        dump.select_nodes(5)
    with pytest.raises(TypeError, match="condition must be"):
        debug.Watchpoint([tensor], "tensor_overflow")
    with pytest.raises(TypeError, match="tensors must be"):
        debug.Watchpoint(["Log"], debug.TensorOverflowCondition())


def test_what_scripts_for_mindinsight_read_is_there(folder, tmp_path, monkeypatch):
    dump = debug.DumpAnalyzer(folder)
    (tensor,) = dump.select_tensors("Dense-op0", iterations=[0])
    line = tensor.node.stack[0]
    assert line["file_path"].endswith("test_analyzer.py") and line["line_no"] == line.line
    assert line["code_line"] == line.code and tensor.node.graph_name == f"kernel_graph_{tensor.node.graph}"
    wanted = debug.TensorTooLargeCondition(abs_mean_gt=0.0)
    assert (wanted.name, wanted.param_dict) == ("tensor_too_large", {"abs_mean_gt": 0.0})
    (hit,) = dump.check_watchpoints([debug.Watchpoint([tensor], wanted)])
    told = str(hit).splitlines()
    assert told[0] == "Watchpoint TensorTooLarge triggered on tensor:"
    assert told[3:7] == [
        f"node_name: {tensor.node.name}", "slot: 0", "iteration: 0", "Threshold: {'abs_mean_gt': 0.0}",
    ]  # fmt: skip
    assert told[7].startswith("Hit detail: The setting for watchpoint is abs_mean_gt = 0.0. The actual")
    monkeypatch.chdir(tmp_path)
    assert all(path.exists() for path in dump.export_graphs())


def test_tensors_without_values_are_told_of_on_request(tmp_path):
    with debug.dump({"path": str(tmp_path), "saved_data": "statistic"}):
        Net()(Tensor(np.ones((2, 4), np.float32)))
    dump = debug.DumpAnalyzer(tmp_path)
    point = debug.Watchpoint(dump.select_tensors("Dense-op0"), debug.TensorTooLargeCondition(max_gt=0.0))
    assert dump.check_watchpoints([point]) == []
    (hit,) = dump.check_watchpoints([point], error_on_no_value=True)
    assert hit.error_code == 32 and hit.error_msg == ["there is no value"]


@pytest.mark.parametrize("iterations, born", [("0|1|2", True), ("0|2", False)])
def test_a_weight_that_goes_bad_between_dumped_steps_is_where_it_began(tmp_path, iterations, born):
    net = Net()
    net.fc.weight.set_data(Tensor(np.ones((3, 4), np.float32)))
    ms.set_context(mode=ms.GRAPH_MODE)
    observing.set_iteration(0)
    try:
        with debug.dump({"path": str(tmp_path), "iteration": iterations}):
            for step in range(3):
                if step == 2:
                    net.fc.weight.set_data(net.fc.weight * np.nan)
                net(Tensor(np.ones((2, 4), np.float32)))
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    weight = next(r for r in debug.DumpAnalyzer(tmp_path).trace_nonfinite() if r["op_type"] == "Parameter")
    # Where the step before was not dumped, an operator of it may have made that.
    assert (weight["op_full_name"], weight["iteration"], weight["born"]) == ("fc.weight", 2, born)


def test_an_argument_that_is_not_finite_came_from_outside(tmp_path):
    net = Net()
    net.fc.weight.set_data(Tensor(np.ones((3, 4), np.float32)))
    ms.set_context(mode=ms.GRAPH_MODE)
    observing.set_iteration(0)
    try:
        with debug.dump({"path": str(tmp_path), "iteration": "0|3"}):
            for value in (1.0, 1.0, 1.0, np.inf):
                net(Tensor(np.full((2, 4), value, np.float32)))
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    first = debug.DumpAnalyzer(tmp_path).trace_nonfinite()[0]
    assert (first["op_full_name"], first["iteration"], first["born"]) == ("inputs0", 3, True)


def test_graphs_can_be_exported(folder, tmp_path):
    made = debug.DumpAnalyzer(folder).export_graphs(tmp_path)
    assert any(p.suffix == ".ir" for p in made) and all(p.exists() for p in made)


def test_a_dump_without_dtypes_in_names_is_read(folder, tmp_path):
    """MindSpore 2.0: the last part of the scope, no dtype."""
    step = tmp_path / "rank_0/Net/0/0"
    step.mkdir(parents=True)
    np.save(step / "Log.Log-op3.0.0.1700000000000001.input.0.DefaultFormat.npy", np.zeros(3, np.float32))
    made = np.full(3, -np.inf, np.float32)
    np.save(step / "Log.Log-op3.0.0.1700000000000002.output.0.DefaultFormat.npy", made)
    name = "Parameter.conv1.weight.0.0.1700000000000000.output.0.DefaultFormat.npy"
    np.save(step / name, np.ones(2, np.float32))
    dump = debug.DumpAnalyzer(tmp_path)
    (found,) = dump.trace_nonfinite()
    assert (found["op_full_name"], found["kind"], found["born"]) == ("Log-op3", "-inf", True)
    assert [t.value().tolist() for t in dump.select_tensors("conv1.weight")] == [[1, 1]]


def test_a_truncated_array_is_an_error_that_names_the_file(tmp_path):
    step = tmp_path / "rank_0/Net/0/0"
    step.mkdir(parents=True)
    path = step / "Log.Default_Log-op0.0.0.1700000000000002.output.0.DefaultFormat.Float32.npy"
    np.save(path, np.zeros(300, np.float32))
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(ValueError, match="Default_Log-op0"):
        debug.DumpAnalyzer(tmp_path).trace_nonfinite()


def test_names_that_are_no_dump_and_pickles_are_not_read(tmp_path):
    step = tmp_path / "rank_0/Net/0/0"
    step.mkdir(parents=True)
    name = "Log.x.0.0.1700000000000002.output.0.DefaultFormat.Float32.npy"
    np.save(step / name, np.array([{}]), allow_pickle=True)
    (step / "notes.txt").write_text("hello")
    with pytest.raises(ValueError, match="cannot be read"):
        debug.DumpAnalyzer(tmp_path).trace_nonfinite()


def test_statistics_without_counts_say_what_to_dump(tmp_path):
    net = Net()
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        with debug.dump({"path": str(tmp_path), "saved_data": "statistic"}):
            net(Tensor(np.ones((2, 4), np.float32)))
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    with pytest.raises(ValueError, match="nan count"):
        debug.DumpAnalyzer(tmp_path).trace_nonfinite()


def test_a_folder_without_a_dump_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="holds no dump"):
        debug.DumpAnalyzer(tmp_path)


def test_weights_are_compared_over_ranks(folder, tmp_path):
    shutil.copytree(folder / "rank_0", tmp_path / "rank_0")
    shutil.copytree(folder / "rank_0", tmp_path / "rank_1")
    wanted = debug.WatchCondition("rank_mismatch")
    alike = debug.DumpAnalyzer(tmp_path)
    assert alike.check_watchpoints([debug.Watchpoint(alike.select_tensors("fc."), wanted)]) == []
    (file,) = (tmp_path / "rank_1").rglob("*/1/Parameter.fc_weight*.npy")
    content = np.load(file)
    content[0, 0] += 0.5
    file.unlink()  # it may be one file with another name
    np.save(file, content)
    apart = debug.DumpAnalyzer(tmp_path)
    hits = apart.check_watchpoints([debug.Watchpoint(apart.select_tensors("fc."), wanted)])
    assert [(h.tensor.rank, h.tensor.iteration, h.tensor.node.name) for h in hits] == [
        (0, 1, "fc.weight"), (1, 1, "fc.weight"),
    ]  # fmt: skip
    assert "max_difference_gt = 0.5" in hits[0].get_hit_detail()
    bound = debug.WatchCondition("rank_mismatch", max_difference_gt=0.5)
    assert apart.check_watchpoints([debug.Watchpoint(apart.select_tensors("fc."), bound)]) == []


def test_conditions_beyond_mindspores_have_what_they_look_at(folder):
    dump = debug.DumpAnalyzer(folder)

    def hits(text, name, **values):
        point = debug.Watchpoint(dump.select_tensors(text), debug.WatchCondition(name, **values))
        return [
            (h.tensor.node.kind, h.tensor.iteration, h.error_code) for h in dump.check_watchpoints([point])
        ]

    assert hits("", "nan_born") == [("Log", 1, 0)]  # of 0, not what reads it
    assert hits("ReLU", "dead_relu", steps=1) == [("ReLU", 1, 0)]
    assert hits("ReLU", "dead_relu", steps=2) == []  # it was not in the step before
    assert hits("Dense", "expression", expression="max < previous.max") == [("Dense", 0, 4), ("Dense", 1, 0)]
    with pytest.raises(ValueError, match="position 1 of"):
        debug.WatchCondition("expression", expression="maximum > 1")
    assert repr(debug.WatchCondition("dead_relu", steps=2)) == "WatchCondition('dead_relu', steps=2)"
