"""Which run made which file: the list of a run's folder, the graph, the interface, `which`."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import mycelia as ms
from mycelia import nn
from mycelia.train import SummaryRecord
from mycelia_insight.cli import app
from mycelia_insight.records import artifacts

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "service"))
from event_files import scalar, write
from test_lineages import client_of

FILES = {
    name: hashlib.sha256(name.encode()).hexdigest() for name in ("first", "last", "next", "model", "data")
}


def line(kind: str, session: str, role: str | None = None, name: str | None = None, **more) -> dict:
    found = {"line": kind, "session": session, **({"role": role} if role else {}), **more}
    return {**found, "path": f"/ck/{name}.ckpt", "sha256": FILES[name], "size": 5} if name else found


def listed(folder: Path, *lines: dict) -> None:
    write(folder, [scalar("loss", 0, 1.0)])
    (folder / artifacts.FILE).write_text("".join(json.dumps(one) + "\n" for one in lines))


@pytest.fixture
def runs(tmp_path):
    """Run a makes three checkpoints from data, b goes on from the first and exports; c stands alone."""
    base = tmp_path / "runs"
    data = {"sources": [{"kind": "ImageFolderDataset", "paths": ["/data/cats"]}], "files": 3, "size": 9}
    listed(
        base / "a",
        line("run", "s1", mode="train", network="Net", time=1e9, git_commit="abc", git_dirty=True),
        {**line("input", "s1", "data", "data"), **data, "path": None},
        *(
            line("artifact", "s1", "checkpoint", one, step=i)
            for i, one in enumerate(("first", "next", "last"))
        ),
    )
    listed(
        base / "b",
        line("run", "s2", mode="train", time=2e9),
        {**line("input", "s2", "data", "data"), **data, "path": None},
        line("input", "s2", "checkpoint", "first"),
        line("artifact", "s2", "export", "model", parents=[{"path": "/ck/b.ckpt", "sha256": None}]),
    )
    listed(
        base / "c", line("run", "s3", mode="eval"), line("input", "s3", "data", sources=[{"kind": "Memory"}])
    )
    write(base / "d", [scalar("loss", 0, 1.0)])
    return base


@pytest.fixture
def client(runs, tmp_path):
    return client_of(runs, tmp_path / "workspace")


def graph(client, query: str = "", **more) -> tuple[dict, set]:
    answer = client.get("/api/v1/artifacts", params={"query": query, **more})
    assert answer.status_code == 200, answer.text
    nodes = answer.json()["nodes"]
    names = [node["run"] or node["label"] for node in nodes]
    return dict(zip(names, nodes, strict=True)), {(names[a], names[b]) for a, b in answer.json()["edges"]}


def test_the_graph_has_data_runs_and_files(client):
    nodes, edges = graph(client)
    assert edges == {
        ("cats", "a"), ("cats", "b"), ("a", "first.ckpt"), ("a", "last.ckpt"), ("first.ckpt", "b"),
        ("b", "model.ckpt"), ("b.ckpt", "model.ckpt"), ("Memory", "c"),
    }  # fmt: skip
    assert nodes["a"]["left_out"] == 1 and nodes["a"]["git_dirty"] and nodes["a"]["network"] == "Net"
    assert nodes["cats"]["files"] == 3 and nodes["cats"]["kind"] == "data"
    assert nodes["first.ckpt"]["sha256"] == FILES["first"] and nodes["model.ckpt"]["kind"] == "export"
    assert ("a", "next.ckpt") in graph(client, all="true")[1]


def test_a_query_leaves_what_leads_to_its_runs_and_comes_of_them(client):
    assert set(graph(client, "run == 'b'")[0]) == {"cats", "a", "first.ckpt", "b", "b.ckpt", "model.ckpt"}
    assert set(graph(client, "run == 'c'")[0]) == {"Memory", "c"}
    assert graph(client, "run == 'd'") == ({}, set())


def test_a_file_is_found_by_its_hash(client):
    found = client.get(f"/api/v1/files/{FILES['first'].upper()}").json()
    assert [one["run"] for one in found["made_by"]] == ["./a"] and found["made_by"][0]["step"] == 0
    assert [one["run"] for one in found["used_by"]] == ["./b"]
    (data, parent) = found["used_by"][0]["inputs"]
    assert parent["made_by"] == ["./a"] and data["sources"] == ["ImageFolderDataset"]
    for other in ("0" * 64, "x", FILES["data"]):
        refused = client.get(f"/api/v1/files/{other}")
        assert (
            refused.status_code == 404 and "no run lists a file with the SHA-256" in refused.json()["error"]
        )


HOSTILE = [
    b'{"line": "run", "sess', b"[" * 100_000, b"null", b"7", b"\xff\xfe", b'{"line": "artifact"}',
    b'{"line": "artifact", "session": ["s1"], "role": "export"}',
    b'{"line": "artifact", "session": "s1", "role": "export", "path": 7, "sha256": "../..", "size": -1}',
    b'{"line": "artifact", "session": "s1", "role": "export", "parents": [7, null, {"sha256": {}}],'
    b' "step": 1e400}',
    b'{"line": "artifact", "session": "s1", "role": "virus", "path": "x"}',
    b'{"line": "input", "session": "s1", "role": "data", "sources": [{"paths": 3}, 4, {"kind": "\\ud800"}]}',
    b'{"line": "input", "session": "s1", "role": "run", "from_session": "s1"}',
    b'{"line": "input", "session": "s1", "role": "run", "from_session": "nobody"}',
    b'{"line": "run", "session": "s1", "time": NaN, "versions": [1], "network": "<script>",'
    b' "git_dirty": "no"}',
]  # fmt: skip


def test_lines_of_others_harm_nothing(client, runs):
    ours = (runs / "a" / artifacts.FILE).read_bytes()
    (runs / "a" / artifacts.FILE).write_bytes(b"\n".join(HOSTILE) + b"\n" + ours)
    nodes, edges = graph(client)
    assert ("a", "first.ckpt") in edges and ("a", "a") in edges  # a session that goes on with itself
    assert nodes["a"]["network"] == "Net" and nodes["a"]["time"] == 1e9
    (runs / "a" / artifacts.FILE).unlink()
    (runs / "a" / artifacts.FILE).mkdir()
    os.mkfifo(runs / "c" / "x")
    os.replace(runs / "c" / "x", runs / "c" / artifacts.FILE)
    assert set(graph(client)[0]) >= {"b", "model.ckpt"}


def test_many_nodes_are_cut_and_counted(client, runs):
    made = [line("artifact", "s1", "export", sha256=f"{i:064x}", path=f"/x/{i}") for i in range(2500)]
    listed(runs / "a", *made)
    answer = client.get("/api/v1/artifacts", params={"query": "run == 'a'"}).json()
    assert len(answer["nodes"]) == 2000 and answer["more"] == 501 and len(answer["edges"]) == 1999


def which(*words: str):
    return CliRunner().invoke(app, ["which", *map(str, words)])


def test_which_names_the_run_that_made_a_file(tmp_path, runs):
    net = nn.Dense(2, 1)
    with SummaryRecord(str(tmp_path / "runs" / "real")):
        ms.save_checkpoint(net, str(tmp_path / "x.ckpt"))
    os.replace(tmp_path / "x.ckpt", tmp_path / "moved.bin")  # its content counts, not its name
    found = which(tmp_path / "moved.bin", "--summary-base-dir", runs)
    assert found.exit_code == 0 and found.output.startswith("./real made it: checkpoint, "), found.output
    other = nn.Dense(2, 1)
    with SummaryRecord(str(tmp_path / "runs" / "later")):
        ms.save_checkpoint(net, str(tmp_path / "parent.ckpt"))
    ms.load_checkpoint(str(tmp_path / "parent.ckpt"), other)
    with SummaryRecord(str(tmp_path / "runs" / "last")):
        ms.export(
            other, ms.Tensor(np.ones((1, 2), np.float32)), file_name=str(tmp_path / "m"), file_format="ONNX"
        )
    told = json.loads(which(tmp_path / "m.onnx", "--summary-base-dir", runs, "--json").output)
    assert [one["run"] for one in told["made_by"]] == ["./last"]
    assert told["made_by"][0]["inputs"][0]["made_by"] == ["./real", "./later"]  # both wrote these bytes
    text = which(tmp_path / "m.onnx", "--summary-base-dir", runs).output
    assert "  parent " in text and "made by ./real, ./later" in text


def test_which_says_that_none_did(tmp_path, runs):
    (tmp_path / "other").write_bytes(b"x")
    found = which(tmp_path / "other", "--summary-base-dir", runs)
    assert found.exit_code == 1 and "no run below" in found.output
    for wrong, said in ((tmp_path / "nothing", "is not there"), (tmp_path, "is no file")):
        found = which(wrong, "--summary-base-dir", runs)
        assert found.exit_code == 2 and said in found.output, found.output


def test_what_a_file_says_is_printed_without_control_characters(tmp_path):
    (tmp_path / "f").write_bytes(b"first")
    listed(tmp_path / "r", line("run", "s", network="\x1b[31mNet"), line("artifact", "s", "export", "first"))
    found = which(tmp_path / "f", "--summary-base-dir", tmp_path)
    assert found.exit_code == 0 and "\x1b" not in found.output and "\\x1b[31mNet" in found.output
