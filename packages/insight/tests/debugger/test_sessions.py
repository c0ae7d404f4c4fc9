"""The offline debugger over dumps of core, as clients of MindInsight ask it."""

from __future__ import annotations

import asyncio
import io
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
from mycelia import debug, nn
from mycelia_insight.debugger import DumpAnalyzer, TensorTooLargeCondition, Watchpoint
from mycelia_insight.debugger.offline import OfflineSession
from mycelia_insight.runs.library import Library
from mycelia_insight.service.app import make_app
from mycelia_insight.service.settings import Settings

sys.path.insert(0, str(Path(__file__).parents[1] / "service"))
from asgi import Client

PATH = "/v1/mindinsight/debugger/sessions"
STEPS = 4


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Dense(3, 4)
        self.relu = nn.ReLU()
        self.fc2 = nn.Dense(4, 2)

    def construct(self, x):
        return self.fc2(self.relu(self.fc1(x)))


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
    """A folder of runs with one dump of four training steps; in the third the data have a NaN."""
    folder = tmp_path_factory.mktemp("runs")
    ms.set_seed(1)
    loss = nn.WithLossCell(Net(), nn.MSELoss())
    step = nn.TrainOneStepCell(loss, nn.SGD(loss.trainable_params(), 0.1))
    rng = np.random.default_rng(0)
    from mycelia.engine import observing

    with ms.config.context(mode=ms.GRAPH_MODE), debug.dump({"path": str(folder / "run_dump")}):
        observing.set_iteration(0)
        for i in range(STEPS):
            x = rng.standard_normal((5, 3)).astype(np.float32)
            if i == 2:
                x[0, 0] = np.nan
            step(ms.Tensor(x), ms.Tensor(np.ones((5, 2), np.float32)))
    return folder


@pytest.fixture
def client(base, tmp_path) -> Client:
    return Client(make_app(Settings(), Library(str(base), str(tmp_path), 0)))


@pytest.fixture
def session(client) -> str:
    answer = client.post(PATH, {"session_type": "OFFLINE", "dump_dir": "./run_dump"})
    assert answer.status_code == 200, answer.text
    return f"{PATH}/{answer.json()}"


def ask(client, path, body=None, code=None):
    """The answer to a POST, or to a GET without a body; `code`: of the refusal that is expected."""
    answer = client.get(path) if body is None else client.post(path, body)
    if code:
        assert answer.status_code == 400 and answer.json()["error_code"] == code, answer.text
        return answer.json()
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.fixture
def relu(client, session) -> str:
    """The name of the ReLU of the network, in the step whose data have a NaN."""
    ask(client, f"{session}/control", {"mode": "reset", "steps": 3})
    found = ask(client, f"{session}/search?name=ReLU-op&node_category=activation")["nodes"]
    return next(leaves(found))["name"]


def test_an_operator_of_a_dump_runs_again_on_other_inputs(client, session, relu):
    (again,) = ask(client, f"{session}/rerun-operator", {"name": relu, "edits": []})["outputs"]
    assert again["different"] == 0 and again["value"] == again["recorded"]
    assert again["value"][0] == ["NaN"] * 4 and again["statistics"]["nan_count"] == 4
    edit = {"slot": 0, "index": "[0, 1:3]", "value": [[-1, "Infinity"]]}
    (again,) = ask(client, f"{session}/rerun-operator", {"name": relu, "edits": [edit]})["outputs"]
    assert again["value"][0] == ["NaN", 0, "Infinity", "NaN"] and again["different"] == 2
    wrong_edits = ({"slot": 9, "value": 1}, {"slot": 0, "value": "x"}, {"slot": 0},
                   {"slot": 0, "index": 3, "value": 1}, {"slot": 0, "index": "[9]", "value": 1})  # fmt: skip
    for wrong in ("x", [1], *([edit] for edit in wrong_edits)):
        told = ask(client, f"{session}/rerun-operator", {"name": relu, "edits": wrong}, code="5054B081")
        assert "Traceback" not in told["error_msg"]
    weight = next(leaves(ask(client, f"{session}/search?name=fc1.weight")["nodes"]))["name"]
    ask(client, f"{session}/rerun-operator", {"name": weight, "edits": []}, code="5054B081")
    told = ask(client, f"{session}/edit-tensor", {"name": weight, "value": 1}, code="5054B081")
    assert "does not train" in told["error_msg"]


def test_an_operator_of_a_dump_leaves_as_a_script(client, session, relu, tmp_path):
    (tmp_path / "one.py").write_bytes(client.get(f"{session}/operator-script?name={relu}").body)
    ran = subprocess.run([sys.executable, tmp_path / "one.py"], capture_output=True, text=True)
    assert ran.returncode == 0 and "as recorded" in ran.stdout, ran.stderr
    assert "not as recorded" not in ran.stdout and "in iteration 2" in (tmp_path / "one.py").read_text()


def leaves(nodes):
    for node in nodes:
        yield from leaves(node["nodes"]) if node["nodes"] else [node]


def test_many_pages_that_wait_hold_up_nobody(client, session, monkeypatch):
    changed = threading.Event()
    monkeypatch.setattr(OfflineSession, "poll", lambda self, position: changed.wait() and {"metadata": {}})

    async def ask_all():
        waiting = [asyncio.create_task(client.asked("GET", f"{session}/poll-data?pos=0")) for _ in range(60)]
        try:
            answer = await asyncio.wait_for(client.asked("GET", f"{session}/condition-collections"), 60)
            assert answer.status_code == 200 and not any(one.done() for one in waiting)
        finally:
            changed.set()
        assert all(one.status_code == 200 for one in await asyncio.gather(*waiting))

    asyncio.run(ask_all())


def test_sessions_are_opened_once_listed_and_closed(client, session):
    assert ask(client, PATH, {"session_type": "OFFLINE", "dump_dir": "./run_dump"}) == session[-1] == "1"
    assert ask(client, PATH) == {"train_jobs": {"./run_dump": "1"}}
    assert ask(client, f"{session}/delete", {}) == {}
    assert ask(client, PATH) == {"train_jobs": {}}
    ask(client, f"{session}/retrieve", {"mode": "all"}, code="5054B282")


def test_no_more_sessions_than_allowed(client, base):
    import shutil

    for i in range(2):
        shutil.copytree(base / "run_dump", base / f"copy{i}", dirs_exist_ok=True)
    for name in ("run_dump", "copy0"):
        ask(client, PATH, {"session_type": "OFFLINE", "dump_dir": name})
    ask(client, PATH, {"session_type": "OFFLINE", "dump_dir": "copy1"}, code="5054B280")


@pytest.mark.parametrize(
    "body",
    [
        {"session_type": "OFFLINE", "dump_dir": "../../etc"}, {"session_type": "OFFLINE", "dump_dir": "none"},
        {"session_type": "OFFLINE"}, {"session_type": "ONLINE"}, {}, {"session_type": 3, "dump_dir": []},
        {"session_type": "OFFLINE", "dump_dir": "/etc"}, {"session_type": "OFFLINE", "dump_dir": "a\0b"},
    ],
)  # fmt: skip
def test_what_is_no_dump_is_refused(client, body):
    assert client.post(PATH, body).status_code == 400


def test_all_of_a_session(client, session):
    found = ask(client, f"{session}/retrieve", {"mode": "all"})
    meta = found["metadata"]
    assert (meta["state"], meta["step"], meta["recommendation_confirmed"]) == ("waiting", 1, False)
    (device,) = found["devices"]
    (graph,) = found["graph"]["graph_names"]
    assert device["rank_id"] == 0 and device["total_step_num"] == {graph: STEPS}
    assert [n["name"] for n in found["graph"]["nodes"]] == [graph]
    inside = ask(client, f"{session}/retrieve", {"mode": "node", "params": {"name": graph}})["graph"]["nodes"]
    assert {"Default", "Gradients"} <= {n["name"].rpartition("/")[2] for n in inside}


def test_nodes_are_searched_by_name_category_and_line(client, session):
    weights = leaves(ask(client, f"{session}/search?node_category=weight")["nodes"])
    names = {n["name"].split("/", 1)[1] for n in weights}
    assert names >= {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"}
    relu = [
        n["type"]
        for n in leaves(ask(client, f"{session}/search?name=RELU&node_category=activation")["nodes"])
    ]
    assert relu == ["ReLU"]
    by_line = leaves(ask(client, f"{session}/search?stack_info_key_word=self.fc2(self.relu")["nodes"])
    assert {"ReLU", "Dense"} <= {n["type"] for n in by_line}
    gradients = leaves(ask(client, f"{session}/search?node_category=gradient")["nodes"])
    assert all("Gradients/" in n["name"] for n in gradients)
    ask(client, f"{session}/search?node_category=odd", code="5054B081")


def relu_of(client, session) -> str:
    (node,) = leaves(ask(client, f"{session}/search?name=relu&node_category=activation")["nodes"])
    return node["name"]


def test_tensors_of_a_node_and_their_values(client, session, base):
    name = relu_of(client, session)
    history = ask(client, f"{session}/tensor-history", {"name": name})
    assert history["metadata"] == {"step": 1}
    read, made = history["tensor_history"]
    assert (read["type"], made["type"], made["shape"], made["dtype"]) == (
        "input",
        "output",
        [5, 4],
        "float32",
    )
    told = ask(client, f"{session}/tensors?name={made['name']}&detail=data&shape=[1:3,:]")["tensor_value"]
    (path,) = (base / "run_dump").rglob("0/ReLU.*.output.0.*")
    array = np.load(path)
    np.testing.assert_array_equal(np.float32(told["value"]), array[1:3])
    assert told["statistics"]["overall_max"] == pytest.approx(array.max())
    download = client.get(f"{session}/tensor-files/download?name={made['name']}")
    np.testing.assert_array_equal(np.load(io.BytesIO(download.body)), array)
    assert ask(client, f"{session}/tensor-files/load", {"name": made["name"]}) == {"in_memory": True}


def test_the_step_before_is_compared(client, session, base):
    weights = leaves(ask(client, f"{session}/search?name=fc2.weight&node_category=weight")["nodes"])
    (name,) = [f"{n['name']}:0" for n in weights if n["name"].endswith("/fc2.weight")]
    ask(client, f"{session}/tensor-comparisons?name={name}", code="5054B185")
    ask(client, f"{session}/control", {"mode": "continue", "level": "step", "steps": 1})
    told = ask(client, f"{session}/tensor-comparisons?name={name}&shape=[0,:]")["tensor_value"]
    diff = np.array(told["diff"])
    np.testing.assert_allclose(diff[:, 2], np.abs(diff[:, 0] - diff[:, 1]))
    assert told["statistics"]["different"] > 0
    alike = ask(client, f"{session}/tensor-comparisons?name={name}&shape=[0,:]&tolerance=1000")[
        "tensor_value"
    ]
    assert not np.any(np.array(alike["diff"])[:, 2])


def test_a_watchpoint_finds_the_nan_in_its_step(client, session):
    made = ask(client, f"{session}/create-watchpoint", {
        "condition": {"id": "tensor_overflow", "params": []},
        "watch_nodes": [relu_of(client, session)], "rank_id": 0,
    })  # fmt: skip
    assert made["id"] == 1 and made["metadata"]["enable_recheck"] is True
    assert ask(client, f"{session}/recheck", {})["metadata"]["enable_recheck"] is False
    assert ask(client, f"{session}/search-watchpoint-hits", {})["total"] == 0
    ask(client, f"{session}/control", {"mode": "continue", "level": "recheck", "steps": -1})
    found = ask(client, f"{session}/search-watchpoint-hits", {"group_condition": {"limit": 5, "offset": 0}})
    assert ask(client, f"{session}/retrieve", {"mode": "all"})["metadata"]["step"] == 3
    (hit,) = found["watch_point_hits"]
    (point,) = hit["tensors"][0]["watch_points"]
    assert point["watch_condition"] == {"id": "tensor_overflow", "abbr": "TO", "params": []}
    again = ask(client, f"{session}/tensor-hits?tensor_name={hit['node_name']}:0")["watch_points"]
    assert again == [point]


def test_scopes_are_ticked_with_and_without_their_graph(client, session):
    condition = {"id": "tensor_too_large", "params": [{"name": "max_gt", "value": -1e9}]}
    whole = relu_of(client, session)
    graph, _, bare = whole.partition("/")
    totals = []
    for ticked in (whole.rpartition("/")[0], bare.rpartition("/")[0], graph, whole, bare):
        given = {"condition": condition, "watch_nodes": [ticked], "graph_name": graph, "rank_id": 0}
        made = ask(client, f"{session}/create-watchpoint", given)["id"]
        ask(client, f"{session}/recheck", {})
        hits = ask(
            client, f"{session}/search-watchpoint-hits", {"group_condition": {"limit": 99, "offset": 0}}
        )
        totals.append(hits["total"])
        ask(client, f"{session}/delete-watchpoint", {"watch_point_id": made})
    assert totals[0] == totals[1] > 0 and totals[3] == totals[4] == 1 and totals[2] > totals[0]
    given = {"condition": condition, "watch_nodes": [whole, "Default/nothing"], "rank_id": 0}
    ask(client, f"{session}/create-watchpoint", given, code="5054B180")


def test_bounds_are_told_with_what_the_tensor_has(client, session):
    made = ask(client, f"{session}/create-watchpoint", {
        "condition": {"id": "tensor_too_large", "params": [{"name": "max_gt", "value": 0.0}]},
        "watch_nodes": [relu_of(client, session)],
    })  # fmt: skip
    ask(client, f"{session}/recheck", {})
    (hit,) = ask(client, f"{session}/search-watchpoint-hits", {})["watch_point_hits"]
    (param,) = hit["tensors"][0]["watch_points"][0]["watch_condition"]["params"]
    assert param["name"] == "max_gt" and param["value"] == 0.0 and param["actual_value"] > 0.0
    ask(client, f"{session}/control", {"mode": "reset", "steps": 3})
    (hit,) = ask(client, f"{session}/search-watchpoint-hits", {})["watch_point_hits"]
    assert hit["tensors"][0]["watch_points"][0]["error_code"] == 1
    ask(
        client,
        f"{session}/update-watchpoint",
        {"watch_point_id": made["id"], "watch_nodes": [hit["node_name"]], "mode": 0},
    )
    ask(client, f"{session}/recheck", {})
    assert ask(client, f"{session}/search-watchpoint-hits", {})["total"] == 0
    ask(client, f"{session}/delete-watchpoint", {"watch_point_id": made["id"]})
    ask(client, f"{session}/delete-watchpoint", {"watch_point_id": made["id"]}, code="5054B182")


@pytest.mark.parametrize(
    "condition",
    [
        {"id": "nothing", "params": []}, {"id": "tensor_too_large", "params": []}, None, {"id": 3},
        {"id": "tensor_too_large", "params": [{"name": "max_gt", "value": "1"}]},
        {"id": "tensor_all_zero", "params": [{"name": "zero_percentage_ge", "value": 101}]},
        {"id": "tensor_range", "params": [{"name": "range_percentage_lt", "value": 1}]},
    ],
)  # fmt: skip
def test_conditions_that_are_none_are_refused(client, session, condition):
    ask(client, f"{session}/create-watchpoint", {"condition": condition, "watch_nodes": []}, code="5054B180")


def test_recommended_watchpoints(client, session):
    found = ask(client, f"{session}/set-recommended-watch-points", {"requestBody": {"set_recommended": True}})
    assert len(found["id"]) == 6 and found["metadata"]["recommendation_confirmed"] is True
    points = ask(client, f"{session}/retrieve", {"mode": "all"})["watch_points"]
    assert [p["watch_condition"]["abbr"] for p in points] == ["WI", "WCL", "GV", "TO", "TZ", "AR"]
    assert ask(client, f"{session}/set-recommended-watch-points", {"set_recommended": False})["id"] == []


def test_recommended_watchpoints_with_other_numbers(client, session):
    offered = {one["id"]: one for one in ask(client, f"{session}/recommended-watch-points")["watch_points"]}
    assert len(offered) == 8 and offered["activation_range:tanh"]["nodes"] == 0  # this network has none
    relu = offered["activation_range:relu"]
    assert relu["nodes"] == 1 and relu["operator"] == "relu"
    assert {"name": "range_percentage_gt", "value": 99.9} in relu["condition"]["params"]
    chosen = [
        {"id": "activation_range:relu", "params": [{"name": "range_percentage_gt", "value": 10}]},
        {"id": "tensor_overflow"},
    ]
    add = f"{session}/set-recommended-watch-points"
    made = ask(client, add, {"requestBody": {"set_recommended": True, "watch_points": chosen}})["id"]
    points = ask(client, f"{session}/retrieve", {"mode": "all"})["watch_points"][-len(made) :]
    told = {p["watch_condition"]["abbr"]: p["watch_condition"]["params"] for p in points}
    assert told["TO"] == [] and told.keys() == {"TO", "AR"}
    bounds = {p["name"]: p["value"] for p in told["AR"]}
    assert bounds == {"range_start_inclusive": -1, "range_end_inclusive": 0, "range_percentage_gt": 10}
    for number in made:
        ask(client, f"{session}/delete-watchpoint", {"watch_point_id": number})
    for wrong, code in (
        ([{"id": "nothing"}], "5054B180"),
        ([{"id": "tensor_all_zero", "params": [{"name": "zero_percentage_ge", "value": 101}]}], "5054B180"),
        ([{"id": "tensor_all_zero", "params": [{"name": "zero_percentage_ge", "value": "x"}]}], "5054B180"),
        ([{"id": "tensor_overflow", "params": [{"name": "max_gt", "value": 1}]}], "5054B180"),
        ("all", "5054B081"), ([{}], "5054B081"), ([{"id": "tensor_overflow", "params": [1]}], "5054B081"),
    ):  # fmt: skip
        ask(client, add, {"set_recommended": True, "watch_points": wrong}, code=code)
    assert ask(client, f"{session}/retrieve", {"mode": "all"})["watch_points"] == []


def test_conditions_are_listed_with_their_parameters(client, session):
    groups = {g["id"]: g["conditions"] for g in ask(client, f"{session}/condition-collections")}
    assert set(groups) == {
        f"{t}_condition_collection" for t in ("tensor", "weight", "activation", "gradient", "loss")
    }
    beyond = {c["id"] for g in groups.values() for c in g if c.get("beyond")}
    assert beyond >= {"dead_relu", "expression", "rank_mismatch", "loss_not_decreasing"}
    assert sum(len(c) for c in groups.values()) - len(beyond) == 17  # those of MindInsight, as it has them
    (own,) = next(c for c in groups["tensor_condition_collection"] if c["id"] == "expression")["parameters"]
    assert (own["name"], own["type"], own["default_value"]) == ("expression", "STRING", None)
    changed = next(c for c in groups["weight_condition_collection"] if c["id"] == "weight_not_changed")
    assert [p["name"] for p in changed["parameters"]] == ["rtol"]


def watched(client, session, name, step, **params):
    """What hits a condition on all that it is about in a step: rows with a node's name and its point."""
    given = {"id": name, "params": [{"name": k, "value": v} for k, v in params.items()]}
    graphs = ask(client, f"{session}/retrieve", {"mode": "all"})["graph"]["graph_names"]
    made = ask(client, f"{session}/create-watchpoint", {"condition": given, "watch_nodes": graphs})["id"]
    ask(client, f"{session}/control", {"mode": "reset", "steps": step})
    hits = ask(client, f"{session}/search-watchpoint-hits", {"group_condition": {"limit": 99, "offset": 0}})
    ask(client, f"{session}/delete-watchpoint", {"watch_point_id": made})
    return [
        (hit["node_name"], point) for hit in hits["watch_point_hits"] for tensor in hit["tensors"]
        for point in tensor["watch_points"]
    ]  # fmt: skip


def test_conditions_beyond_mindinsight(client, session):
    born = watched(client, session, "nan_born", 3)
    assert born and all(p["reason"] == "NaN or infinities of finite inputs" for _, p in born)
    assert len(born) < len(watched(client, session, "tensor_overflow", 3))
    assert not watched(client, session, "nan_born", 2)
    ((name, point),) = watched(client, session, "dead_relu", 2, dead_percentage_ge=0, steps=2)
    assert "ReLU" in name and point["watch_condition"]["params"][0]["actual_value"] in (0, 25, 50, 75, 100)
    text = "previous.nan == 0 and nan > 0"
    grown = watched(client, session, "expression", 3, expression=text)
    (param,) = grown[0][1]["watch_condition"]["params"]
    assert param["value"] == text and grown[0][1]["reason"].startswith("previous.nan = 0, nan = ")
    losses = watched(client, session, "loss_not_decreasing", 2, window=1, min_rel_drop=1)
    assert losses and all(p["error_code"] == 0 for _, p in losses)
    assert {p["error_code"] for _, p in watched(client, session, "loss_not_decreasing", 2)} == {4}
    assert {p["error_code"] for _, p in watched(client, session, "rank_mismatch", 2)} == {128}
    assert watched(client, session, "update_ratio", 2, update_ratio_gt=0)
    assert watched(client, session, "gradient_norm", 2, l2norm_gt=0)


def test_an_expression_that_is_wrong_is_refused_with_its_place(client, session):
    given = {"id": "expression", "params": [{"name": "expression", "value": "max > "}]}
    told = ask(
        client, f"{session}/create-watchpoint", {"condition": given, "watch_nodes": []}, code="5054B180"
    )
    assert "at position 7" in str(told)


def test_lines_of_code(client, session):
    found = ask(client, f"{session}/stacks?key_word=self.fc2(self.relu")
    (file,) = found["stack_infos"]
    assert file["file_path"] == __file__
    assert any("return self.fc2" in item["code_line"] for item in file["items"])


def test_the_graph_around_a_tensor_and_runs_of_graphs(client, session):
    name = f"{relu_of(client, session)}:0"
    nodes = ask(client, f"{session}/tensor-graphs?tensor_name={name}")["graph"]["nodes"]
    assert {"ReLU", "Dense"} <= {n["type"] for n in nodes}
    runs = ask(client, f"{session}/ranks/0/graph-runs")["graph_runs"]
    assert [r["count"] for r in runs if r["has_data"]] == [1, 2, 3, 4]


def test_a_page_hears_of_changes(client, session):
    position = ask(client, f"{session}/retrieve", {"mode": "all"})["metadata"]["pos"]
    ask(client, f"{session}/recheck", {})
    assert ask(client, f"{session}/poll-data?pos={position}")["metadata"]["pos"] != position


@pytest.mark.parametrize(
    "path, body",
    [
        ("control", {"mode": "jump"}), ("control", {"mode": "reset", "steps": 99}),
        ("control", {"mode": "reset", "steps": "x"}), ("tensor-history", {"rank_id": "a"}),
        ("retrieve", {"mode": "what"}), ("retrieve", {"mode": "all", "params": {"rank_id": 7}}),
        ("tensor-history", {"name": "nowhere"}), ("tensor-history", {"name": 3}),
        ("search-watchpoint-hits", {"group_condition": {"limit": -1}}),
        ("update-watchpoint", {"watch_point_id": 9}),
        ("tensors?name=nowhere:0", None), ("tensors?name=x", None), ("tensors", None),
        ("ranks/x/graph-runs", None), ("stacks?limit=0", None), ("tensor-graphs", None),
    ],
)  # fmt: skip
def test_wrong_requests_are_refused_with_a_code(client, session, path, body):
    answer = client.get(f"{session}/{path}") if body is None else client.post(f"{session}/{path}", body)
    assert answer.status_code == 400 and answer.json()["error_code"].startswith("5054"), answer.text


def test_paths_and_methods_that_are_none(client, session):
    assert client.get(f"{session}/nothing").json()["error_code"] == "50545001"
    assert client.get(f"{session}/control").json()["error_code"] == "50545002"
    assert client.post(f"{session}/control", content=b"{").status_code == 400
    assert client.post(f"{session}/control", []).status_code == 400


def test_a_service_that_debugs_nothing_loads_no_tensors():
    script = (
        "import sys; from mycelia_insight.service.app import make_app; "
        "from mycelia_insight.runs.library import Library; "
        "from mycelia_insight.service.settings import Settings; "
        "make_app(Settings(), Library('.', '.', 0)); print('mycelia.engine.ops' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr


def test_the_names_of_mindinsights_debugger(base):
    dump = DumpAnalyzer(base / "run_dump")
    point = Watchpoint(dump.select_tensors("ReLU-op0", iterations=[0]), TensorTooLargeCondition(max_gt=0.0))
    (hit,) = dump.check_watchpoints([point])
    assert hit.get_hit_detail().startswith("The setting for watchpoint is max_gt = 0.0. The actual value")


JUNK = ([], {}, [[]], {"a": 1}, "x", 1e308, True, -1)


@pytest.mark.parametrize("junk", JUNK, ids=repr)
def test_what_is_of_another_type_is_refused_and_no_error_of_the_service(client, session, junk):
    for path, body in (
        ("retrieve", {"mode": "node", "params": junk}),
        ("retrieve", {"mode": junk}),
        ("retrieve", {"mode": "watchpoint", "params": {"watch_point_id": junk}}),
        ("update-watchpoint", {"watch_point_id": junk, "watch_nodes": junk, "mode": junk}),
        ("delete-watchpoint", {"watch_point_id": junk}),
        ("create-watchpoint", {"condition": {"id": "tensor_overflow"}, "watch_nodes": junk}),
        ("create-watchpoint", {"condition": {"id": "tensor_overflow"}, "search_pattern": junk}),
        ("create-watchpoint", {"condition": {"id": "tensor_overflow"}, "search_pattern": {"name": junk}}),
        ("create-watchpoint", {"condition": {"id": junk, "params": junk}}),
        ("control", {"mode": junk, "level": junk, "steps": junk}),
        ("tensor-history", {"name": junk, "rank_id": junk}),
    ):
        assert client.post(f"{session}/{path}", body).status_code in (200, 400), (path, body)


@pytest.mark.parametrize("shape", ["x", "[", "[0,0,0,0]", "[99,0]", "null", "%00", "[::0]"])
def test_slices_that_do_not_fit_are_refused(client, session, shape):
    weight = next(n["name"] for n in leaves(ask(client, f"{session}/search?name=fc1.weight")["nodes"]))
    ask(client, f"{session}/control", {"mode": "reset", "steps": 2})
    for path in ("tensors", "tensor-comparisons"):
        ask(client, f"{session}/{path}?name={weight}:0&shape={shape}", code="5054B081")


def test_watchpoints_take_of_what_is_ticked_what_the_search_shows(client, session):
    """As MindInsight's page sends a scope that is ticked while a search is shown."""

    def watched(**more):
        body = {"condition": {"id": "tensor_overflow", "params": []}, "rank_id": 0, **more}
        number = ask(client, f"{session}/create-watchpoint", body)["id"]
        asked = {"mode": "watchpoint", "params": {"watch_point_id": number}}
        return {n["name"].rpartition("/")[2] for n in leaves(
            ask(client, f"{session}/retrieve", asked)["graph"]["nodes"])}  # fmt: skip

    (graph,) = ask(client, f"{session}/retrieve", {"mode": "all"})["graph"]["graph_names"]
    scope = {"watch_nodes": ["Default"], "graph_name": graph}
    assert len(watched(**scope)) > 2
    assert watched(**scope, search_pattern={"name": "relu-op"}) == {"ReLU-op0"}
    assert watched(**scope, search_pattern={"node_category": "activation"}) == {"ReLU-op0"}
    wrong = {"condition": {"id": "tensor_overflow"}, "watch_nodes": ["Default"], "graph_name": "graph_99"}
    ask(client, f"{session}/create-watchpoint", wrong, code="5054B180")
