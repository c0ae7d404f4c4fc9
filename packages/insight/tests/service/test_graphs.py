"""Graphs over both interfaces."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from urllib.parse import quote
from urllib.request import urlopen

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "records"))
from event_files import appended, field, number
from test_graph import node
from test_service import FIXTURE, Command, until
from test_sheet import cells_of

CONV = "Default/network-WithLossCell/_backbone-TrainNet/net-LeNet5/conv1-Conv2d/Conv2D-op0"
RELU = "Default/network-WithLossCell/_backbone-TrainNet/net-LeNet5/relu-ReLU/ReLU-op0"
SCRIPT = "<script>alert(1)</script>\x07"
OWN, MINDINSIGHT = "/api/v1/runs/run1", "/v1/mindinsight"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    made = Command(tmp_path_factory.mktemp("graphs"))
    base = tmp_path_factory.mktemp("runs")
    shutil.copytree(FIXTURE, base, dirs_exist_ok=True)
    (base / "run1" / "stages").mkdir()
    changed = node("0", "Conv2D", CONV.rpartition("/")[0]) + node("7", "Exp", "Added", "0")
    (base / "run1" / "stages" / "changed.pb").write_bytes(changed)
    marked = changed
    for key, kind, scope, flag in (("8", "Log", "Added", "high"), ("9", "Cast", SCRIPT, "precision_reduce")):
        attribute = field(5, field(1, "precision_flag") + field(2, number(1, 13) + field(7, flag)))
        marked += appended(node(key, kind, scope, *(["7"] if key == "9" else [])), attribute)
    (base / "run1" / "stages" / "marked.pb").write_bytes(marked)
    measured = {"version": 1, "graph": "", "steps": 2, "unattributed": 8, "watched": True, "nodes": {
        CONV: {"calls": 2, "nanoseconds": 1000, "step": 7, "nan": 3, "inf": 0, "-inf": 1, "first": True},
        RELU: {"in": CONV},
    }}  # fmt: skip
    (base / "run1" / "node_measurements.5.json").write_text(json.dumps(measured))
    assert made.start(base).returncode == 0
    until(lambda: "graph" in made.get(f"{OWN}/tags")["kinds"])
    yield made
    made("stop", "--port", str(made.port))


def test_the_own_interface(service):
    listed = service.get(f"{OWN}/graphs")["graphs"]
    assert [one["id"] for one in listed] == ["event-0", "stages/changed.pb", "stages/marked.pb"]
    view = service.get(f"{OWN}/graphs/view?graph=event-0&open=Default")
    by_name = {one["name"]: one for one in view["nodes"]}
    assert by_name["Default"]["open"] and not by_name["Gradients"]["open"]
    assert by_name["Default/optimizer-Momentum"]["parent"] == by_name["Default"]["id"]
    ends = {one["id"] for one in view["nodes"]} - {by_name["Default"]["id"]}
    assert view["edges"] and all({edge["from"], edge["to"]} <= ends for edge in view["edges"])
    found = service.get(f"{OWN}/graphs/search?text=CONV2D-op0")
    assert found["nodes"][0]["name"] == CONV and found["nodes"][0]["path"][0] == "Default"
    info = service.get(f"{OWN}/graphs/node?name={quote(CONV)}")
    assert info["shape"] == [4, 6, 28, 28] and len(info["inputs"]) == 2 and info["attributes"]["group"] == "1"
    assert (info["output_bytes"], info["unknown_outputs"]) == (4 * 6 * 28 * 28 * 4, 0)
    outputs = service.get(f"{OWN}/graphs/outputs?graph=event-0&open=Default")["outputs"]
    assert set(outputs) == {str(one["id"]) for one in view["nodes"]}
    inside = [outputs[str(n["id"])] for n in view["nodes"] if n["parent"] == by_name["Default"]["id"]]
    whole = outputs[str(by_name["Default"]["id"])]
    assert whole["bytes"] == sum(one["bytes"] or 0 for one in inside) > 0
    assert whole["unknown"] == sum(one["unknown"] for one in inside)
    assert set(whole["dtypes"]) >= {"float32"}
    measures = service.get(f"{OWN}/graphs/measures?graph=event-0&open=Default&nonfinite=true")
    assert service.get(f"{OWN}/graphs")["measures"] == {"times": True, "nonfinite": True}
    assert measures["times"] == {"steps": 2, "nodes": 1, "unattributed": 8}
    assert measures["faults"] == {"dump": None, "looked": None, "iterations": None}
    assert set(measures["nodes"]) == set(outputs)
    assert measures["nodes"][str(by_name["Default"]["id"])] == {
        "nanoseconds": 1000, "fused": 1, "in": "",
        "nonfinite": {
            "nodes": 1, "first": 1, "nan": 3, "inf": 0, "-inf": 1, "step": 7, "within": [],
            },
    }  # fmt: skip
    assert measures["nodes"][str(by_name["Gradients"]["id"])]["nanoseconds"] is None
    unasked = service.get(f"{OWN}/graphs/measures?graph=event-0")
    assert unasked["faults"] is None and all(one["nonfinite"] is None for one in unasked["nodes"].values())
    other = service.get(f"{OWN}/graphs/measures?graph={quote('stages/changed.pb')}&nonfinite=true")
    assert other["times"]["nodes"] == 1  # the node that both have
    assert service.refused(f"{OWN}/graphs/measures?graph=../x.pb")[0] == 404
    assert service.get(f"{OWN}/pipelines")["pipelines"][0]["graph"]["op_type"] == "Batch"
    assert service.refused(f"{OWN}/graphs/node?name=none")[0] == 404
    assert service.refused(f"{OWN}/graphs/view?graph=../x.pb")[0] == 404
    assert service.refused(f"{OWN}/graphs/search")[0] == 400


def test_operators_by_their_precision(service):
    asked = f"{OWN}/graphs/precision"
    marked = quote("stages/marked.pb")
    told = service.get(f"{asked}?graph={marked}&limit=2")
    assert (told["total"], told["reduced"], told["flagged"]) == (4, 1, 2)
    first, second = told["operators"]
    assert (first["id"], first["type"], first["flag"], first["reduced"]) == (
        4,
        "Cast",
        "precision_reduce",
        True,
    )
    assert first["inputs"] == ["Added/Exp-op7 float32[2, ?]"] and first["name"] == f"{SCRIPT}/Cast-op9"
    assert (second["flag"], second["reduced"], second["outputs"]) == ("high", False, [])
    rest = service.get(f"{asked}?graph={marked}&offset=2")["operators"]
    assert [one["reduced"] for one in rest] == [None, None] and rest[1]["outputs"] == [
        f"{SCRIPT}/Cast-op9 float32[2, ?]"
    ]
    assert service.get(f"{asked}?graph={marked}&text=EXP-op")["total"] == 1
    assert service.get(asked)["flagged"] == 0 and service.get(asked)["total"] > 40
    assert service.refused(f"{asked}?limit=0")[0] == 400 and service.refused(f"{asked}?graph=none")[0] == 404
    with urlopen(f"http://127.0.0.1:{service.port}{asked}.xlsx?graph={marked}") as answer:
        assert answer.headers["Content-Disposition"] == 'attachment; filename="run1-precision.xlsx"'
        rows = cells_of(answer.read())
    assert [row[0] for row in rows] == ["ID", 4.0, 3.0, 1.0, 2.0]
    assert rows[1][2] == f"{SCRIPT}/Cast-op9".replace("\x07", "\ufffd")  # which XML does not have


def test_two_graphs_as_one(service):
    asked = f"{OWN}/graphs/difference"
    alike = service.get(f"{asked}/view?other_run=run1&open=Default")
    assert alike["difference"]["same"] == alike["leaves"] and {one["side"] for one in alike["edges"]} == {
        "both"
    }
    assert service.get(f"{asked}/nodes?other_run=run1") == {"total": 0, "nodes": []}
    both = f"other_run=run1&other={quote('stages/changed.pb')}"
    view = service.get(f"{asked}/view?{both}")
    by_name = {one["name"]: one["difference"] for one in view["nodes"]}
    assert by_name["Added"] == {"same": 0, "changed": 0, "left": 0, "right": 1}
    assert by_name["Gradients"]["left"] > 20 and view["difference"]["left"] > 60
    listed = service.get(f"{asked}/nodes?{both}&limit=1000")["nodes"]
    (added,) = [one for one in listed if one["state"] == "right"]
    assert (added["name"], added["type"], added["path"]) == ("Added/Exp-op7", "Exp", ["Added"])
    info = service.get(f"{asked}/node?{both}&name={quote(CONV)}")
    assert info["difference"]["changed"] == 1 and {one["what"] for one in info["changes"]} >= {
        "output",
        "inputs",
    }
    assert service.get(f"{asked}/search?{both}&text=exp-op7")["nodes"][0]["name"] == "Added/Exp-op7"
    assert service.refused(f"{asked}/view")[0] == 400
    assert service.refused(f"{asked}/view?other_run=none")[0] == 404
    assert service.refused(f"{asked}/view?other_run=run1&other=none")[0] == 404
    assert service.refused(f"{asked}/node?other_run=run1&name=none")[0] == 404


def test_the_interface_of_mindinsight(service):
    asked = f"{MINDINSIGHT}/datavisual/graphs"
    top = service.get(f"{asked}/nodes?train_id=./run1&mode=normal")["nodes"]
    assert [one["name"] for one in top] == ["Default", "Gradients"]
    assert top[0]["type"] == "name_scope" and top[0]["subnode_count"] > 4
    assert set(top[0]) == {
        "name", "type", "attr", "input", "output", "output_i", "proxy_input", "proxy_output", "subnode_count",
        "independent_layout", "is_dynamic_shape_node", "stack_info",
    }  # fmt: skip
    (tree,) = service.get(f"{asked}/nodes/names?train_id=./run1&search=Conv2D-op0&limit=1")["nodes"]
    while tree["nodes"]:
        (tree,) = tree["nodes"]
    assert tree["name"] == CONV and tree["type"] == "Conv2D"
    level = service.get(f"{asked}/single-node?train_id=./run1&name={quote(CONV)}")
    scopes = [level["scope_name"]]
    while level.get("children"):
        level = level["children"]
        scopes.append(level["scope_name"])
    assert scopes[0] == "" and scopes[-1] == CONV.rpartition("/")[0]
    conv = next(one for one in level["nodes"] if one["name"] == CONV)
    edge = next(iter(conv["input"].values()))
    assert set(edge) == {"data_type", "edge_type", "independent_layout", "shape"}
    everything = service.get(f"{asked}/nodes/all?train_id=./run1")["all_nodes_detail"]
    assert sum(one["type"] == "Conv2D" for one in everything) == 2
    found = service.get(f"{MINDINSIGHT}/datasets/dataset_graph?train_id=./run1")
    assert found["dataset_graph"]["op_type"] == "Batch" and found["summary_dir"] == "./run1"
    status, text = service.refused(f"{asked}/nodes?train_id=./run1&name=none")
    assert status == 400 and "50545009" in text
    assert service.refused(f"{asked}/nodes?train_id=./run1&mode=other")[0] == 400
