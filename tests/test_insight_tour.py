"""The tour's gallery in a short form: each kind of thing that Insight shows is in it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def test_the_tour_makes_a_run_of_every_kind(tmp_path):
    pytest.importorskip("mlxtend")
    library = pytest.importorskip("mycelia_insight.runs.library")
    from mycelia import debug
    from mycelia_insight.records.precision import operators
    from mycelia_insight.runs.graphs import Graphs, sources
    from mycelia_insight.runs.kinds import Kind

    command = [sys.executable, str(ROOT / "examples" / "insight_tour.py"), "--output", str(tmp_path)]
    command += ["--epochs", "1", "--trainings", "2", "--landscape-size", "3"]
    done = subprocess.run(command, text=True, capture_output=True, env={**os.environ})
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"mycelia-insight start --summary-base-dir {tmp_path / 'runs'}" in done.stdout
    found = library.Library(str(tmp_path / "runs"), str(tmp_path / "workspace"), 0)
    found.look()
    while found.read():
        pass
    runs = {run.id: {(tag.kind, tag.name) for tag in run.tags()} for run in found.runs()}
    assert set(runs) == {
        "./lenet/momentum-0.01-32", "./lenet/adam-0.001-32", "./lenet/tuned", "./lenet/diverges",
        "./mixed precision", "./landscape", "./compile stages", "./media",
        "./debugged",
    }  # fmt: skip
    trained = runs["./lenet/adam-0.001-32"]
    kinds = {kind for kind, _ in trained}
    assert kinds >= {
        Kind.SCALAR, Kind.IMAGE, Kind.HISTOGRAM, Kind.GRAPH, Kind.TRAIN_LINEAGE, Kind.EVALUATION_LINEAGE,
        Kind.DATASET_GRAPH, Kind.USER_DEFINED,
    }  # fmt: skip
    assert (Kind.SCALAR, "system/process_memory_MiB") in trained
    (tuned,) = [one for one in found.sessions.of(found.get("./lenet/tuned")) if one.facts["mode"] == "train"]
    assert [one.role for one in tuned.inputs] == ["checkpoint", "data"] and tuned.inputs[1].files == 4
    assert tuned.outputs[-1].path == str((tmp_path / "files" / "lenet5.mindir").resolve())
    losses = found.get("./lenet/diverges").points("loss/auto").values
    assert not all(abs(loss) < 1e30 for loss in losses.tolist())
    graph = Graphs().get(found.get("./mixed precision"), "")
    assert graph is not None
    reduced = {graph.leaves[one.leaf].type for one in operators(graph) if one.is_reduced}
    assert reduced >= {"conv", "mat_mul", "relu"}
    assert sum(kind == Kind.LANDSCAPE for kind, _ in runs["./landscape"]) == 2
    assert {kind for kind, _ in runs["./media"]} >= {Kind.TENSOR, Kind.TEXT, Kind.AUDIO, Kind.IMAGE}
    analyzer = debug.DumpAnalyzer(tmp_path / "runs" / "debugged" / "dump")
    assert len(analyzer.get_iterations()) == 6 and analyzer.trace_nonfinite()
    stages = [source.id for source in sources(found.get("./compile stages"))]
    assert sum(id.endswith(".ir") for id in stages) > 3
