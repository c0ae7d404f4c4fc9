"""The debugger over running trainings: real processes, real sockets, asked as a page asks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("grpc", reason="the debugger's connection is gRPC")

from mycelia import debug

sys.path.insert(0, str(Path(__file__).parent))
from desk import SCRIPT, SESSION, Desk


@pytest.fixture
def desk(tmp_path):
    found = Desk(tmp_path)
    yield found
    found.close()


@pytest.mark.parametrize("options", [(), ("--eager",)], ids=["graph", "eager"])
def test_a_training_steps_hits_its_nan_tells_the_line_and_ends(desk, options):
    assert desk.client.post("/v1/mindinsight/debugger/sessions", {"session_type": "ONLINE"}).json() == "0"
    training = desk.train("--bad", "4", *options)
    begin = 1 if options else 0  # the graph of eager calls is known after a step
    assert desk.until("waiting")["step"] == begin
    for step in range(begin + 1, 3):
        desk.go(1)
        assert desk.until("waiting", step)["step"] == step
    (log,) = [n for n in desk.nodes(name="Log-op") if n["type"] == "Log"]
    (pool,) = [n["name"] for n in desk.nodes(name="MaxPool-op1") if n["type"] == "MaxPool"]
    told = desk.client.get(f"/api/v1/debugger/0/graph/node?rank=0&graph=graph_0&name={pool[8:]}").json()
    assert told["attributes"]["kernel"] == "(2, 2)"
    nodes = desk.client.get("/api/v1/debugger/0/nodes?rank=0&known=-1").json()["nodes"]
    assert all(node["attributes"] == told["attributes"] for node in nodes if node["name"] == pool[8:])
    desk.ask("create-watchpoint", {
        "condition": {"id": "tensor_overflow", "params": []}, "watch_nodes": [log["name"]],
    })  # fmt: skip
    desk.go(-1)
    assert desk.until("waiting")["step"] == 4
    (hit,) = desk.ask("search-watchpoint-hits", {})["watch_point_hits"]
    assert hit["node_name"] == log["name"]
    assert np.isnan(desk.value(f"{log['name']}:0"))
    assert desk.value(f"{log['name']}:input:0") == -1
    told = desk.ask(f"tensors?name={log['name']}:0")["tensor_value"]["value"]
    assert told == "NAN"  # JSON has no number for it
    (node,) = desk.ask("tensor-graphs?tensor_name=" + log["name"] + ":0")["graph"]["nodes"][:1] or [None]
    stack = [n for n in desk.ask(f"tensor-graphs?tensor_name={log['name']}:0")["graph"]["nodes"]
             if n["name"] == log["name"]][0]["stack_info"]  # fmt: skip
    assert stack[0]["file_path"] == str(SCRIPT) and "ops.log(scale)" in stack[0]["code_line"]
    desk.go(-1)
    output, errors = training.communicate()
    assert training.returncode == 0 and "trained" in output, errors
    assert desk.until("pending")["training_done"] is True


def test_nodes_are_stepped_steps_are_looked_back_at_and_compared(desk):
    desk.train("--steps", "6", MYCELIA_DEBUGGER_STEPS="3")
    desk.until("waiting", 0)
    desk.ask("control", {"mode": "continue", "level": "node"})
    first = desk.until("waiting", 1)["node_name"]
    relus = [n["name"] for n in desk.nodes(name="ReLU-op", node_category="activation")]
    desk.ask("control", {"mode": "continue", "level": "node", "name": relus[0]})
    desk.until("waiting", 1)
    while (at := desk.ask("retrieve", {"mode": "all"})["metadata"])["node_name"] != relus[0]:
        assert at["node_name"] == first  # it has not gone on yet
    made = desk.ask("tensor-history", {"name": relus[0]})["tensor_history"][-1]
    assert made["type"] == "output" and made["shape"] == [4, 6, 28, 28]
    later = desk.ask("tensor-history", {"name": relus[1]})["tensor_history"]
    assert all("value" not in row for row in later)  # it has not run in this step
    desk.go(1)
    desk.until("waiting", 1)
    while desk.ask("retrieve", {"mode": "all"})["metadata"]["node_name"]:
        pass  # the rest of the step runs
    weight = next(n["name"] for n in desk.nodes(name="fc3.weight", node_category="weight"))
    values = {1: desk.value(f"{weight}:0", "[0, :]")}
    for step in (2, 3, 4):
        desk.go(1)
        desk.until("waiting", step)
        values[step] = desk.value(f"{weight}:0", "[0, :]")
    told = np.array(desk.ask(f"tensor-comparisons?name={weight}:0&shape=[0,:]")["tensor_value"]["diff"])
    np.testing.assert_allclose(told[:, :2], np.stack([values[4], values[3]], 1), rtol=1e-6)
    assert told[:, 2].any()
    desk.ask("control", {"mode": "reset", "steps": 1}, code="5054B081")  # three steps are kept
    for step in (2, 3):
        desk.ask("control", {"mode": "reset", "steps": step})
        assert desk.ask("retrieve", {"mode": "all"})["metadata"]["step"] == step
        np.testing.assert_array_equal(desk.value(f"{weight}:0", "[0, :]"), values[step])
    desk.go(1)  # through what is kept
    assert desk.until("waiting", 4)["step"] == 4
    runs = desk.ask("ranks/0/graph-runs")["graph_runs"]
    assert [r["count"] for r in runs if r["has_data"]] == [2, 3, 4]


def test_steps_that_run_after_a_watchpoint_was_made_need_no_other_check(desk):
    training = desk.train("--steps", "4")
    desk.until("waiting", 0)
    desk.ask("set-recommended-watch-points", {"set_recommended": True, "watch_points": [
        {"id": "tensor_overflow"}, {"id": "weight_change_too_large", "params": [
            {"name": "abs_mean_update_ratio_gt", "value": 1e9}]},
    ]})  # fmt: skip
    assert desk.ask("retrieve", {"mode": "all"})["metadata"]["enable_recheck"] is False  # nothing has run
    desk.go(1)
    assert desk.until("waiting", 1)["enable_recheck"] is False  # it was checked as it ran
    assert desk.ask("search-watchpoint-hits", {})["outdated"] is False
    desk.ask("delete-watchpoint", {"watch_point_id": 2})
    assert desk.ask("retrieve", {"mode": "all"})["metadata"]["enable_recheck"] is True
    desk.go(1)
    assert desk.until("waiting", 2)["enable_recheck"] is False
    desk.ask("control", {"mode": "reset", "steps": 1})
    assert desk.ask("retrieve", {"mode": "all"})["metadata"]["enable_recheck"] is False  # looked at: checked
    desk.ask("control", {"mode": "reset", "steps": 2})
    desk.go(-1)
    assert training.wait() == 0
    desk.until("pending", 4)
    desk.ask("control", {"mode": "reset", "steps": 2})  # of a training that has ended
    assert desk.ask("retrieve", {"mode": "all"})["metadata"]["step"] == 2
    desk.ask("recheck", {}, code="5054B186")


def test_the_last_step_of_a_training_that_ended_is_there_though_nobody_asked_for_it(desk):
    training = desk.train("--steps", "3", "--bad", "3", "--evaluate")
    desk.until("waiting", 0)
    desk.go(4)
    desk.until("waiting", 4)
    weight = next(n["name"] for n in desk.nodes(name="fc3.bias", node_category="weight"))
    refused = desk.ask(f"tensor-comparisons?name={weight}:0", code="5054B185")["error_msg"]
    assert "no elements in step 4" in refused  # it is of inference
    desk.ask("control", {"mode": "reset", "steps": 3})
    before = np.array(desk.ask(f"tensor-comparisons?name={weight}:0")["tensor_value"]["diff"])
    assert before[:, 2].any()  # the step before is step 1: inference ran in between
    desk.go(1)
    desk.until("waiting", 4)
    desk.go(-1)
    output, errors = training.communicate()
    assert training.returncode == 0 and "trained" in output, errors
    assert desk.until("pending", 6)["training_done"] is True
    (log,) = [n["name"] for n in desk.nodes(name="Log-op") if n["name"].startswith("graph_1/")]
    assert np.isnan(desk.value(f"{log}:0")) and desk.value(f"{log}:input:0") == -1
    rows = desk.ask("tensor-history", {"name": log})["tensor_history"]
    assert [row["value"] for row in rows] == ["-1.0", "nan"]
    why = desk.client.get(f"/api/v1/debugger/0/why?rank=0&step=6&name={log}").json()
    assert [row["node"] for row in why["way"]] == [log] and "ops.log(scale)" in why["way"][0]["source"][0]
    assert desk.client.get("/api/v1/debugger/0/health?rank=0&step=6").json()["bad"] > 0
    # Of earlier steps there is what was asked for, and the rest says why it is not there.
    assert desk.client.get("/api/v1/debugger/0/health?rank=0&step=2").status_code == 400
    desk.ask("control", {"mode": "reset", "steps": 3})
    assert desk.value(f"{weight}:0").size == 10
    other = next(n["name"] for n in desk.nodes(name="fc2.bias", node_category="weight"))
    assert "the training is gone" in desk.ask(f"tensors?name={other}:0", code="5054B081")["error_msg"]
    assert all("value" not in row for row in desk.ask("tensor-history", {"name": other})["tensor_history"])


def test_watchpoints_compare_with_the_step_before_and_are_checked_again(desk):
    desk.train("--steps", "4")
    desk.until("waiting", 0)
    weight = next(n["name"] for n in desk.nodes(name="fc3.weight", node_category="weight"))
    change = {"id": "weight_change_too_small", "params": [{"name": "abs_mean_update_ratio_lt", "value": 1e6}]}
    made = desk.ask("create-watchpoint", {"condition": change, "watch_nodes": [weight]})
    desk.go(-1)
    desk.until("waiting", 1)
    (hit,) = desk.ask("search-watchpoint-hits", {})["watch_point_hits"]
    assert hit["tensors"][0]["watch_points"][0]["error_code"] == 4  # there is no step before
    desk.go(-1)
    desk.until("waiting", 2)
    (hit,) = desk.ask("search-watchpoint-hits", {})["watch_point_hits"]
    (param,) = hit["tensors"][0]["watch_points"][0]["watch_condition"]["params"]
    assert param["value"] == 1e6 and 0 < param["actual_value"] < 1
    desk.ask("delete-watchpoint", {"watch_point_id": made["id"]})
    large = {"id": "tensor_too_large", "params": [{"name": "max_gt", "value": -1e9}]}
    desk.ask("create-watchpoint", {"condition": large, "watch_nodes": [weight]})
    assert desk.ask("retrieve", {"mode": "all"})["metadata"]["enable_recheck"] is True
    desk.ask("recheck", {})
    (hit,) = desk.ask("search-watchpoint-hits", {})["watch_point_hits"]
    assert hit["tensors"][0]["watch_points"][0]["watch_condition"]["id"] == "tensor_too_large"
    desk.ask("control", {"mode": "reset", "steps": 1})
    assert desk.ask("search-watchpoint-hits", {})["total"] == 1


@pytest.mark.parametrize("options", [(), ("--eager",)], ids=["graph", "eager"])
def test_an_operator_runs_again_on_other_inputs_and_leaves_as_a_script(desk, tmp_path, options):
    desk.train("--bad", "2", "--steps", "3", *options)
    desk.until("waiting", 1 if options else 0)
    desk.go(1 if options else 2)
    desk.until("waiting", 2)
    health = desk.client.get("/api/v1/debugger/0/health?step=2").json()
    assert health["bad"] > 0 and health["nan"] > 0
    (log,) = [n["name"] for n in desk.nodes(name="Log-op") if n["type"] == "Log"]
    why = desk.client.get("/api/v1/debugger/0/why?step=2").json()["rows"][0]
    assert why["node"] == log and why["born"] is True and "debugged.py" in why["source"][0]
    (again,) = desk.ask("rerun-operator", {"name": log, "edits": []})["outputs"]
    assert again["different"] == 0
    edit = {"slot": 0, "value": 1.0}
    (again,) = desk.ask("rerun-operator", {"name": log, "edits": [edit]})["outputs"]
    assert again["value"] == 0.0 and again["different"] == 1
    desk.ask("rerun-operator", {"name": log, "edits": [{**edit, "slot": 7}]}, code="5054B081")
    dense = next(n["name"] for n in desk.nodes(name="fc1") if n["type"] == "Dense")
    for name in (log, dense):
        script = tmp_path / "operator.py"
        script.write_bytes(desk.client.get(f"{SESSION}/operator-script?name={name}").body)
        ran = subprocess.run([sys.executable, script], capture_output=True, text=True)
        assert ran.returncode == 0 and "as recorded" in ran.stdout, ran.stderr
        assert "not as recorded" not in ran.stdout


@pytest.mark.parametrize("options", [(), ("--eager",)], ids=["graph", "eager"])
def test_a_weight_is_edited_between_steps(desk, options):
    desk.train("--steps", "3", *options)
    begin = 1 if options else 0
    desk.until("waiting", begin)
    weight = next(n["name"] for n in desk.nodes(name="fc3.bias", node_category="weight"))
    desk.ask("edit-tensor", {"name": weight, "index": "[2]", "value": 42.0})
    desk.go(1)
    desk.until("waiting", begin + 1)
    assert desk.value(f"{weight}:0", "[:]")[2] == 42
    desk.ask("edit-tensor", {"name": weight, "index": "[99]", "value": 1}, code="5054B081")
    desk.ask("edit-tensor", {"name": weight, "value": [1, 2, 3]}, code="5054B081")


def watch(desk, condition: str, node: str, **params: float) -> int:
    """The number of a new watchpoint."""
    given = [{"name": name, "value": value} for name, value in params.items()]
    wanted = {"condition": {"id": condition, "params": given}, "watch_nodes": [node]}
    return desk.ask("create-watchpoint", wanted)["id"]


def test_two_eager_networks_that_take_turns_are_two_graphs_as_in_a_dump(desk, tmp_path):
    fields = {"path": str(tmp_path / "dump"), "net_name": "gan", "iteration": "0-1", "input_output": 0}
    settings = tmp_path / "dump.json"
    settings.write_text(json.dumps({
        "common_dump_settings": {"dump_mode": 0, "saved_data": "tensor", **fields},
        "e2e_dump_settings": {"enable": True},
    }))  # fmt: skip
    script = Path(__file__).with_name("adversaries.py")
    training = desk.train(script=script, MYCELIA_DUMP_CONFIG=str(settings))
    desk.until("waiting", 1)
    desk.go(1)
    desk.until("waiting", 2)
    telling, fooling = desk.ask("retrieve", {"mode": "all"})["graph"]["graph_names"]
    kinds = {g: {n["type"] for n in desk.nodes(graph_name=g)} for g in (telling, fooling)}
    assert "Tanh" in kinds[fooling] and "Tanh" not in kinds[telling]
    # One name, two graphs: the discriminator reads real samples in one, the generator's in the other.
    weight = "discriminator.fc.weight"
    names = {n["name"] for n in desk.nodes(name=weight) if n["name"].endswith(f"/{weight}")}
    assert names == {f"{telling}/{weight}", f"{fooling}/{weight}"}
    log = {g: next(n["name"] for n in desk.nodes(name="Log-op", graph_name=g) if n["type"] == "Log")
           for g in (telling, fooling)}  # fmt: skip
    assert desk.value(f"{log[fooling]}:0").shape == (5, 1)
    runs = desk.ask("ranks/0/graph-runs")["graph_runs"]
    assert [(r["graph_name"], r["count"]) for r in runs if r["has_data"]] == [(telling, 1), (fooling, 2)]

    # The rate of one is 0: its weight never changes between steps of its graph, the other one's does.
    watch(desk, "weight_not_changed", f"{telling}/{weight}", rtol=1e-5)
    watch(desk, "weight_not_changed", f"{fooling}/generator.fc.weight", rtol=1e-5)
    desk.go(-1)
    desk.until("waiting", 3)
    (hit,) = desk.ask("search-watchpoint-hits", {})["watch_point_hits"]
    assert (hit["graph_name"], hit["node_name"]) == (telling, f"{telling}/{weight}")
    assert not hit["tensors"][0]["watch_points"][0]["error_code"]  # step 1 is the one before
    desk.go(1)
    desk.until("waiting", 4)
    told = desk.ask("search-watchpoint-hits", {})["watch_point_hits"]
    assert all(h["graph_name"] != fooling or h["tensors"][0]["watch_points"][0]["error_code"] for h in told)

    desk.ask("edit-tensor", {"name": f"{telling}/discriminator.fc.bias", "index": "[0]", "value": 42.0})
    desk.ask("delete-watchpoint", {"watch_point_id": None})
    desk.go(1)
    desk.until("waiting", 5)
    assert desk.value(f"{telling}/discriminator.fc.bias:0", "[:]")[0] == 42
    desk.ask("control", {"mode": "continue", "level": "node", "name": log[fooling]})
    while (at := desk.ask("retrieve", {"mode": "all"})["metadata"])["node_name"] != log[fooling]:
        assert at["step"] < 7
    assert at["step"] == 6
    desk.go(-1)
    output, errors = training.communicate()
    assert training.returncode == 0 and "trained 42.0" in output, errors

    from mycelia.debug import DumpAnalyzer

    dumped = {f"graph_{n.graph}/{n.name}" for n in DumpAnalyzer(str(tmp_path / "dump")).select_nodes("")}
    assert dumped == {n["name"] for g in (telling, fooling) for n in desk.nodes(graph_name=g)}


@pytest.mark.parametrize("options", [(), ("--eager",)], ids=["graph", "eager"])
def test_a_step_is_written_as_a_dump_while_it_waits_and_while_it_runs(desk, tmp_path, options):
    training = desk.train("--steps", "100000", *options, MS_DIAGNOSTIC_DATA_PATH=str(tmp_path / "data"))
    desk.until("waiting", 1 if options else 0)
    desk.go(2)
    step = desk.until("waiting", 3 if options else 2)["step"]
    bias = next(n["name"] for n in desk.nodes(name="fc3.bias", node_category="weight"))
    relu = next(n["name"] for n in desk.nodes(name="ReLU-op", node_category="activation"))
    told = desk.ask("dump-step", {})
    assert told == {"folder": str(tmp_path / "data" / "debugger_dump"), "step": step}
    desk.ask("dump-step", {"rank_id": 7}, code="5054B081")
    dump = debug.DumpAnalyzer(told["folder"])
    assert dump.get_iterations() == [step - 1]
    weight = next(t for t in dump.select_tensors("fc3.bias") if t.node.kind == "Parameter")
    np.testing.assert_array_equal(weight.value(), desk.value(f"{bias}:0"))
    (node,) = [n for n in dump.select_nodes("ReLU-op") if relu.endswith(n.name)]
    (made,) = node.get_output_tensors()
    np.testing.assert_array_equal(made.value()[0, 0], desk.value(f"{relu}:0"))
    assert node.stack[0].file == str(SCRIPT) and node.get_input_tensors()[0].value() is not None
    ((again, before),) = dump.rerun_operator(node, step - 1)
    np.testing.assert_array_equal(again, before)
    desk.go(-1)
    desk.until("running")
    later = desk.ask("dump-step", {})["step"]
    assert later > step and training.poll() is None
    assert debug.DumpAnalyzer(told["folder"]).get_iterations() == [step - 1, later - 1]
