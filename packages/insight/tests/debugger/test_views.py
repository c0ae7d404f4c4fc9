"""What the debugger's pages ask of the service's own interface."""

from __future__ import annotations

import shutil
import sys
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import numpy as np
import pytest

from mycelia_insight.debugger.offline import DumpSource, OfflineSession
from mycelia_insight.runs.dumps import find_dumps
from mycelia_insight.runs.library import Library
from mycelia_insight.service.app import make_app
from mycelia_insight.service.settings import Settings

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "service")]
from asgi import Client  # noqa: E402
from dump_folders import BAD_STEP, STEPS, dump_training  # noqa: E402

SESSIONS = "/v1/mindinsight/debugger/sessions"


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    dump_training(folder / "deep" / "dump", ranks=2)
    return folder


@pytest.fixture
def client(base, tmp_path) -> Client:
    return Client(make_app(Settings(), Library(str(base), str(tmp_path), 0)))


@pytest.fixture
def ask(client):
    """Asks a session of the dump: `ask(path, name=value)`; `status` of the answer."""
    opened = client.post(SESSIONS, {"session_type": "OFFLINE", "dump_dir": "./deep/dump"})
    assert opened.status_code == 200, opened.text

    def asked(path: str, status: int = 200, **query):
        text = "&".join(f"{name}={value}" for name, value in query.items())
        answer = client.get(f"/api/v1/debugger/{opened.json()}/{path}?{text}")
        assert answer.status_code == status, answer.text
        return answer.json()

    return asked


def relu(ask) -> str:
    found = ask("graph/search", text="ReLU-op0")["nodes"]
    return graph(ask) + next(n["name"] for n in found if n["type"] == "ReLU")


def graph(ask) -> str:
    """The graph's name, a number that grows in a process, with the slash that follows it."""
    (name,) = ask("steps")["steps"][0]["graphs"]
    return f"{name}/"


def test_dumps_below_the_base_folder_are_found(client, base):
    assert find_dumps(str(base)) == [("./deep/dump", [0, 1])]
    found = client.get("/api/v1/debugger/dumps").json()
    assert found == {"dumps": [{"dump": "./deep/dump", "ranks": [0, 1], "session": None}]}
    assert client.get("/api/v1/debugger").json() == {"sessions": SESSIONS, "limit": 2, "online": False}
    client.post(SESSIONS, {"session_type": "OFFLINE", "dump_dir": "./deep/dump"})
    assert client.get("/api/v1/debugger/dumps").json()["dumps"][0]["session"] == "1"


def test_links_and_folders_without_steps_are_no_dumps(tmp_path):
    (tmp_path / "empty" / "rank_0").mkdir(parents=True)
    (tmp_path / "rank_x" / ".dump_metadata").mkdir(parents=True)
    (tmp_path / "loop").symlink_to(tmp_path)
    assert find_dumps(str(tmp_path)) == []
    assert find_dumps(str(tmp_path / "nothing")) == []
    (tmp_path / "real" / "rank_3" / ".dump_metadata").mkdir(parents=True)
    assert find_dumps(str(tmp_path)) == [("./real", [3])]


def test_steps_and_their_health(ask):
    steps = ask("steps", rank=1)["steps"]
    assert [s["step"] for s in steps] == [1, 2, 3, 4] and len(steps[0]["graphs"]) == 1
    healths = [ask("health", step=step) for step in range(1, STEPS + 1)]
    assert [h["bad"] > 0 for h in healths] == [False, False, True, True]
    assert healths[BAD_STEP - 1]["nan"] > 0 and healths[0]["tensors"] == healths[1]["tensors"] > 10
    assert ask("health", step=BAD_STEP) == healths[BAD_STEP - 1]  # of what was kept
    assert "step 9" in ask("health", 400, step=9)["error"]


def test_why_leads_back_to_where_it_was_born(ask):
    node = relu(ask)
    found = ask("why", step=BAD_STEP, name=node)
    way = [row["node"] for row in found["way"]]
    assert way[0] == node and len(way) > 2
    assert found["way"][-1]["op_type"] == "Parameter"  # the data, which nothing in the step made
    assert all(row["kind"] == "nan" and row["step"] == BAD_STEP for row in found["way"])
    assert any("self.fc2(self.relu" in line for line in found["way"][0]["source"])
    assert found["total"] >= len(found["rows"]) > len(way)
    assert ask("why", step=1, name=node) == {"step": 1, "total": 0, "rows": [], "way": []}
    ask("why", 400, step=1, name="nowhere")


def test_a_slice_of_a_tensor_keeps_nan_and_what_is_infinite(ask, base):
    name = f"{relu(ask)}:0"
    found = ask("tensor", name=name, step=BAD_STEP)
    assert (found["shape"], found["dtype"], found["dims"]) == ([5, 4], "float32", "[:, :]")
    (path,) = (base / "deep/dump/rank_0").rglob(f"{BAD_STEP - 1}/ReLU.*.output.0.*")
    array = np.load(path)
    assert np.isnan(array[0]).all()
    np.testing.assert_array_equal(np.array(found["rows"], np.float64), array.astype(np.float64))
    assert found["rows"][0] == ["NaN"] * 4 and found["overall"]["nan_count"] == 4
    assert found["steps"] == [1, 2, 3, 4]
    part = ask("tensor", name=name, step=1, dims="[1, 2:4]")
    assert len(part["rows"]) == 1 and len(part["rows"][0]) == 2
    assert part["free"] == [{"dimension": 1, "start": 2, "size": 2}]
    for wrong in ({"dims": "[9, 0]"}, {"step": 77}, {"name": "x"}, {"name": f"{name}9"}, {"rank": 5}):
        ask("tensor", 400, **{"name": name, "step": 1, **wrong})


def test_steps_are_compared_with_a_tolerance(ask):
    weights = graph(ask) + next(
        n["name"] for n in ask("graph/search", text="fc2.weight")["nodes"] if n["kind"] == "parameter"
    )
    name = f"{weights}:0"
    found = ask("tensor", name=name, step=2, other=1)
    now, then, apart = (np.array(found[k]) for k in ("rows", "before", "apart"))
    np.testing.assert_allclose(apart, now - then)
    assert found["different"] == np.count_nonzero(now != then) > 0
    assert found["greatest"] == pytest.approx(np.abs(apart).max())
    assert found["alike"] == (now == then).tolist()
    assert ask("tensor", name=name, step=2, other=1, tolerance=1000)["different"] == 0
    same = ask("tensor", name=f"{relu(ask)}:0", step=BAD_STEP, other=BAD_STEP)
    assert same["different"] == 0  # NaN beside NaN
    ask("tensor", 400, name=name, step=2, other=40)
    ask("tensor", 400, name=name, step=2, other=1, tolerance=-1)


def test_the_history_of_a_tensor(ask):
    rows = ask("history", name=f"{relu(ask)}:0")["steps"]
    assert [row["step"] for row in rows] == [1, 2, 3, 4]
    assert [row["nan_count"] > 0 for row in rows] == [False, False, True, True]
    reads = ask("history", name=f"{relu(ask)}:input:0")["steps"]
    assert len(reads) == 4 and reads[0]["min"] < 0 <= rows[0]["min"]


def test_graphs_fold_as_those_of_runs(ask):
    top = ask("graph")
    assert {n["name"] for n in top["nodes"]} >= {"Default", "Gradients"} and top["leaves"] > 20
    inner = ask("graph", open="Default")
    assert {n["name"] for n in inner["nodes"]} > {n["name"] for n in top["nodes"]}
    info = ask("graph/node", name=relu(ask).removeprefix(graph(ask)))
    assert (
        info["type"] == "ReLU" and info["inputs"] and info["outputs"] and "dump_folders.py:" in info["source"]
    )
    assert info["stack"][0]["code_line"].startswith("return self.fc2(self.relu(")
    assert ask("graph/node", name="Default")["stack"] == []
    ask("graph/node", 404, name="nothing")
    ask("graph", 400, graph="graph_x")


def test_sessions_that_are_closed_are_not_found(client, ask):
    assert ask("steps")["steps"]
    client.post(f"{SESSIONS}/1/delete", {})
    ask("steps", 404)


def test_who_asks_while_nodes_are_read_waits_for_them(base, monkeypatch):
    inside, go_on = threading.Event(), threading.Event()
    nodes = DumpSource.nodes

    def slow(source):
        inside.set()
        go_on.wait(60)
        return nodes.fget(source)

    monkeypatch.setattr(DumpSource, "nodes", property(slow))
    session = OfflineSession(base / "deep" / "dump")
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(session.tree, 0)
        inside.wait(60)
        second = pool.submit(session.tree, 1)
        wait([second], 0.2)  # it has time to be wrong
        go_on.set()
        assert first.result().graphs == second.result().graphs != []


def test_the_interface_tells_of_the_debugger(client):
    paths = client.get("/api/v1/openapi.json").json()["paths"]
    assert {"/debugger/dumps", "/debugger/{session}/tensor", "/debugger/{session}/graph/node"} <= set(paths)


# ---- comparisons


@pytest.fixture
def two(base, tmp_path):
    """Asks the first of two sessions, over dumps of which the second has another step 2."""
    copy = base / "deep" / "other"
    if not copy.exists():
        shutil.copytree(base / "deep" / "dump", copy)
        (relu,) = [
            p for p in copy.glob("rank_0/*/*/1/ReLU.*ReLU-op0*.output.0.*.npy") if "Grad" not in p.name
        ]
        value = np.load(relu)
        value[0, 0] += 0.25
        relu.unlink()  # it may be a link to what others read
        np.save(relu, value)
        (gone,) = [p for p in copy.glob("rank_0/*/*/1/Dense.*fc1*.output.0.*.npy") if "Grad" not in p.name]
        gone.unlink()
    client = Client(make_app(Settings(), Library(str(base), str(tmp_path), 0)))
    numbers = [
        client.post(SESSIONS, {"session_type": "OFFLINE", "dump_dir": f"./deep/{name}"}).json()
        for name in ("dump", "other")
    ]

    def asked(path: str, status: int = 200, **query):
        text = "&".join(f"{name}={value}" for name, value in {"against": numbers[1], **query}.items())
        answer = client.get(f"/api/v1/debugger/{numbers[0]}/{path}?{text}")
        assert answer.status_code == status, answer.text
        return answer.json()

    return asked


def test_two_dumps_are_compared_where_they_go_apart_first(two):
    same = two("difference", step=1, other=1)
    assert same["values"] == same["missing"] == same["shape"] == 0 and same["compared"] > 20
    found = two("difference", step=2, other=2)
    assert (found["values"], found["missing"], found["compared"]) == (1, 1, same["compared"] - 1)
    gone, apart = found["rows"]
    assert "fc1" in gone["node"] and gone["kind"] == "missing"
    assert "ReLU-op0" in apart["node"] and (apart["different"], apart["size"]) == (1, 20)
    assert apart["greatest"] == pytest.approx(0.25)
    values = two("tensor", step=2, other=2, name=f"{apart['node']}:0")
    assert values["different"] == 1 and values["alike"][0][0] is False and values["alike"][1][0] is True
    assert values["apart"][0][0] == pytest.approx(-0.25)
    assert two("difference", step=2, other=2, tolerance=1e9)["values"] == 0
    assert len(two("difference", step=2, other=2, limit=1)["rows"]) == 1


def test_two_steps_are_compared_and_nan_is_like_nan(ask):
    found = ask("difference", step=1, other=2)
    assert found["values"] == len([r for r in found["rows"] if r["kind"] == "values"]) > 10
    order = [row["node"] for row in found["rows"]]
    assert order.index(next(n for n in order if "fc1-Dense/" in n)) < order.index(
        next(n for n in order if "fc2-Dense/" in n)
    )
    bad = ask("difference", step=BAD_STEP, other=BAD_STEP)
    assert bad["values"] == 0


def test_a_comparison_with_what_is_not_there_is_refused(two):
    assert "no session" in two("difference", 404, step=1, other=1, against=99)["error"]
    two("difference", 400, step=1, other=0)
    two("difference", 400, step=1, other=1, rank=7)
    assert two("difference", step=1, other=9)["compared"] == 0  # nothing was recorded in it
    two("tensor", 400, step=1, other=9, name="graph_0/none:0")
