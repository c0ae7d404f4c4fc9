"""Lineage by both interfaces: queries, conditions, notes that outlive the service, importance."""

from __future__ import annotations

import json
import random
import shutil
import sys
from pathlib import Path

import pytest

from mycelia.train.summary.lineage import DatasetGraph, EvaluationLineage, TrainLineage, UserDefinedInfo
from mycelia_insight.runs.library import Library
from mycelia_insight.service.app import make_app
from mycelia_insight.service.settings import Settings

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
from asgi import Client
from event_files import event, field, framed, scalar, write

FIXTURE = Path(__file__).parents[1] / "fixtures" / "summary"
OLD = "/v1/mindinsight"


def lineage_run(folder: Path, rate: float, loss: float, optimizer: str, accuracy: float, **user) -> None:
    """A run with all four messages; its pipeline has a batch of 32 for Adam, of 64 for others."""
    write(folder, [scalar("loss", step, loss + 1 / (step + 1)) for step in range(3)])
    train = TrainLineage(
        optimizer=optimizer, learning_rate=rate, loss_function="L1", epoch=2, batch_size=32, network="Net",
        loss=loss, dataset_path="/data", dataset_size=10,
    )  # fmt: skip
    batch = {"op_type": "Batch", "batch_size": 32 if optimizer == "Adam" else 64, "children": []}
    messages = {
        9: DatasetGraph(batch), 10: UserDefinedInfo(user), 6: train,
        7: EvaluationLineage(json.dumps({"acc": accuracy}), "/test", 5),
    }  # fmt: skip
    (folder / "events.out.events.summary.1700000000.0.host_lineage").write_bytes(
        b"".join(framed(event(0, 1.7e9, field(n, m.SerializeToString()))) for n, m in messages.items())
    )


def client_of(base: Path, workspace: Path) -> Client:
    library = Library(str(base), str(workspace), 0)
    library.look()
    while library.read():
        pass
    library.loaded = True
    return Client(make_app(Settings(), library))


@pytest.fixture
def client(tmp_path):
    base = tmp_path / "runs"
    lineage_run(base / "a", 0.1, 0.3, "Adam", 0.7, note="x", size=1)
    lineage_run(base / "b", 0.01, 0.2, "Adam", 0.8, note="y", size=2)
    lineage_run(base / "c", 0.001, 0.1, "SGD", 0.9, note="z", size=3)
    write(base / "d", [scalar("loss", 1, 0.05)])
    return client_of(base, tmp_path / "workspace")


def names(client, query: str) -> list[str]:
    answer = client.get("/api/v1/runs", params={"query": query})
    assert answer.status_code == 200, answer.text
    return sorted(row["run"] for row in answer.json()["runs"])


def test_a_query_chooses_runs(client):
    assert names(client, 'loss < 0.25 and optimizer == "Adam"') == ["b"]
    assert names(client, "loss < 0.25") == ["b", "c", "d"]  # d has no lineage, but a scalar
    assert names(client, "acc > 0.75 and size >= 3") == ["c"]
    assert names(client, "metric/acc > 0.75 and user_defined/note != 'z'") == ["b"]
    assert names(client, "run == 'd' or step < 1") == ["d"]
    refused = client.get("/api/v1/runs", params={"query": "loss <"})
    assert refused.status_code == 400
    assert refused.json()["error"] == (
        "'query': a number, a text in quotes, true, false or none is expected, not the end at character 7"
    )


def test_the_table_of_lineage(client):
    found = client.get("/api/v1/lineages").json()
    assert {row["run"] for row in found["rows"]} == {"a", "b", "c"}
    kinds = {column["name"]: column["type"] for column in found["columns"]}
    assert list(kinds)[:3] == ["metric/acc", "loss", "network"]
    assert (kinds["learning_rate"], kinds["optimizer"], kinds["user_defined/note"]) == (
        "number",
        "text",
        "text",
    )
    row = next(row for row in found["rows"] if row["run"] == "c")
    assert row["values"]["learning_rate"] == 0.001 and row["values"]["metric/acc"] == 0.9
    assert found["datasets"][row["dataset"]]["batch_size"] == 64 and len(found["datasets"]) == 2


def test_remarks_and_tags_outlive_the_service(client, tmp_path):
    before = sorted((tmp_path / "runs").rglob("*"))
    answer = client.put("/api/v1/runs/a/notes", json={"remark": "good_1", "tag": 3})
    assert answer.json() == {"run": "a", "remark": "good_1", "tag": 3, "labels": [], "archived": False}
    assert client.put(f"{OLD}/lineagemgr/lineages?train_id=./b", json={"tag": 4}).json() == {
        "status": "success"
    }
    again = client_of(tmp_path / "runs", tmp_path / "workspace")
    rows = {row["run"]: (row["remark"], row["tag"]) for row in again.get("/api/v1/lineages").json()["rows"]}
    assert rows == {"a": ("good_1", 3), "b": (None, 4), "c": (None, 0)}
    assert names(again, "tag > 0 and remark == 'good_1'") == ["a"]
    assert sorted((tmp_path / "runs").rglob("*")) == before
    assert not list((tmp_path / "workspace" / "notes").glob("*.new"))


@pytest.mark.parametrize(
    "body",
    [
        {"remark": "a b"},
        {"remark": "x" * 129},
        {"remark": ""},
        {"tag": 11},
        {"tag": True},
        {"tag": "1"},
        [1],
        {"labels": "a"},
        {"labels": [""]},
        {"labels": ["x" * 41]},
        {"labels": [str(i) for i in range(11)]},
        {"labels": ["a\nb"]},
        {"labels": [1]},
        {"archived": 1},
    ],
)
def test_a_bad_note_is_refused(client, body):
    assert client.put("/api/v1/runs/a/notes", json=body).status_code == 400
    old = client.put(f"{OLD}/lineagemgr/lineages?train_id=./a", json=body)
    assert (old.status_code, old.json()["error_code"]) == (400, "50540002")


def test_labels_and_the_archive_outlive_the_service(client, tmp_path):
    client.put("/api/v1/runs/a/notes", json={"labels": ["best so far", " b ", "b"], "archived": True})
    again = client_of(tmp_path / "runs", tmp_path / "workspace")
    row = again.get("/api/v1/runs/a").json()
    assert (row["labels"], row["archived"], row["remark"]) == (["best so far", "b"], True, None)
    assert [r["run"] for r in again.get("/api/v1/runs?query=labels contains 'best'").json()["runs"]] == ["a"]
    assert {r["run"] for r in again.get("/api/v1/runs?query=archived == false").json()["runs"]} == set("bcd")


def test_a_body_that_is_no_json_or_too_long_is_refused(client):
    assert client.put("/api/v1/runs/a/notes", content=b"{").status_code == 400
    assert client.put("/api/v1/runs/a/notes", content=b" " * 70000).status_code == 413
    assert client.post(f"{OLD}/lineagemgr/lineages", content=b"{").json()["error_code"] == "50540002"


def search(client, **condition):
    answer = client.post(f"{OLD}/lineagemgr/lineages", json=condition)
    return answer.json() if answer.status_code == 200 else answer.json()["error_code"]


def ids(found) -> list[str]:
    return [one["summary_dir"] for one in found["object"]]


def test_conditions_of_mindinsight(client):
    assert sorted(ids(search(client))) == ["./a", "./b", "./c"]
    assert ids(search(client, loss={"lt": 0.25}, optimizer={"eq": "Adam"})) == ["./b"]
    assert ids(search(client, **{"metric/acc": {"ge": 0.9}})) == ["./c"]
    assert ids(search(client, **{"user_defined/note": {"in": ["x"]}})) == ["./a"]
    assert sorted(ids(search(client, summary_dir={"not_in": ["./a"]}))) == ["./b", "./c"]
    by_rate = search(client, sorted_name="learning_rate", sorted_type="descending", limit=2, offset=0)
    assert ids(by_rate) == ["./a", "./b"] and by_rate["count"] == 3
    assert ids(search(client, sorted_name="metric/acc", limit=2, offset=1)) == ["./c"]
    (only,) = search(client, summary_dir={"eq": "./c"}, lineage_type={"eq": "dataset"})["object"]
    assert set(only) == {"summary_dir", "dataset_graph", "added_info"}
    custom = search(client)["customized"]
    assert custom["metric/acc"] == {"label": "metric/acc", "required": True, "type": "float"}
    assert custom["user_defined/size"]["type"] == "int" and not custom["user_defined/note"]["required"]
    marks = {one["summary_dir"]: one["model_lineage"]["dataset_mark"] for one in search(client)["object"]}
    assert marks["./a"] == marks["./b"] != marks["./c"]


@pytest.mark.parametrize(
    "condition",
    [
        {"loss": 0.1}, {"loss": {"about": 1}}, {"nothing": {"eq": 1}}, {"loss": {"eq": "a"}},
        {"epoch": {"eq": 1.5}}, {"optimizer": {"lt": "a"}}, {"optimizer": {"in": "a"}}, {"limit": 0},
        {"limit": 101}, {"limit": "1"}, {"offset": -1}, {"offset": 100001}, {"sorted_name": "x"},
        {"sorted_type": "ascending"}, {"metric/": {"eq": 1}}, {"sorted_name": "loss", "sorted_type": "up"},
        {"lineage_type": {"eq": "x"}},
        {"metric/acc": {"lt": "a"}},
    ],
)  # fmt: skip
def test_a_wrong_condition_has_its_code(client, condition):
    assert search(client, **condition) == "50542218"


def test_answers_equal_those_of_mindinsight(tmp_path):
    shutil.copytree(FIXTURE / "run1", tmp_path / "runs" / "run1")
    client = client_of(tmp_path / "runs", tmp_path / "workspace")
    expected = json.loads((FIXTURE / "run1.expected.json").read_text())["lineage"]
    (found,) = search(client)["object"]
    assert found["added_info"] == {}
    assert {**found["model_lineage"]} == {**expected, "dataset_mark": "2"}
    graph = client.get(f"{OLD}/datasets/dataset_graph", params={"train_id": "./run1"}).json()
    assert graph == {"dataset_graph": found["dataset_graph"], "summary_dir": "./run1"}


def test_importance_by_both_interfaces(client):
    found = client.post(f"{OLD}/optimizer/targets/search", json={}).json()
    assert [one["name"] for one in found["targets"]] == ["[M]acc", "loss"]
    assert sorted(found["metadata"]["train_ids"]) == ["./a", "./b", "./c"]
    parameters = {one["name"]: one for one in found["targets"][1]["hyper_parameters"]}
    assert parameters["[U]size"]["importance"] == pytest.approx(1, abs=1e-6)
    assert parameters["epoch"] == {"name": "epoch", "importance": 0.0, "reason_code": 3}
    assert sum(count for *_, count in found["targets"][0]["buckets"]) == 3
    assert found["metadata"]["unrecognized_params"] == [
        {"name": "[U]note", "unselected": True, "reason_code": 1}
    ]
    own = client.get("/api/v1/targets", params={"target": "loss"}).json()
    told = {one["name"]: one for one in own["parameters"]}
    assert told["user_defined/size"]["correlation"] == pytest.approx(1, abs=1e-6)
    assert told["user_defined/note"]["reason"] == 1 and own["count"] == 3
    assert "forest" not in told["epoch"]
    own = client.get("/api/v1/targets", params={"target": "loss", "forest": "true"}).json()
    assert {one["forest"] for one in own["parameters"]} == {None}  # of three runs
    assert client.get("/api/v1/targets", params={"target": "optimizer"}).status_code == 404


def test_a_thousand_runs_are_listed(tmp_path):
    rng = random.Random(1)
    drawn = {f"r{i}": (rng.random(), rng.random(), rng.choice(["Adam", "SGD"])) for i in range(1000)}
    for i, (name, (loss, accuracy, optimizer)) in enumerate(drawn.items()):
        lineage_run(tmp_path / "runs" / name, 0.1, loss, optimizer, accuracy, size=i)
    client = client_of(tmp_path / "runs", tmp_path / "workspace")
    found = client.get("/api/v1/lineages").json()["rows"]
    assert {row["run"] for row in found} == set(drawn)
    found = client.get("/api/v1/runs", params={"query": "acc > 0.1 and optimizer == 'Adam'"}).json()["runs"]
    expected = {name for name, (_, acc, optimizer) in drawn.items() if acc > 0.1 and optimizer == "Adam"}
    assert {run["run"] for run in found} == expected and 100 < len(expected) < 900
    of_loss = client.get("/api/v1/targets", params={"target": "loss", "forest": "true"}).json()
    forest = {one["name"]: one["forest"] for one in of_loss["parameters"] if one["forest"] is not None}
    assert of_loss["count"] == 1000 and max(forest.values()) < 0.1  # all was drawn by chance
    same = {one["name"] for one in of_loss["parameters"] if one["forest_reason"] == 3}
    assert "learning_rate" in same and "optimizer" in forest and not same & forest.keys()
