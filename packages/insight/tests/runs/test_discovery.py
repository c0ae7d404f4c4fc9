"""Which folders are runs besides those with event files: as in MindInsight, those with a graph or a dump."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "service")]
from asgi import Client  # noqa: E402
from event_files import scalar, write  # noqa: E402

from mycelia_insight.runs.discovery import Found, find  # noqa: E402
from mycelia_insight.runs.library import Library  # noqa: E402
from mycelia_insight.service.app import make_app  # noqa: E402
from mycelia_insight.service.settings import Settings  # noqa: E402


def touch(path: Path, seconds: float = 1.6e9) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.utime(path, (seconds, seconds))


def dump(folder: Path) -> None:
    (folder / "rank_0" / ".dump_metadata").mkdir(parents=True)


def runs(base: Path) -> dict[str, Found]:
    return {one.name: one for one in find(str(base))}


def test_a_graph_or_a_dump_makes_a_run(tmp_path):
    write(tmp_path / "trained", [scalar("loss", 0, 1.0)])
    touch(tmp_path / "trained" / "stages" / "a.ir")
    dump(tmp_path / "trained" / "dump")
    touch(tmp_path / "graph" / "x.pb")
    dump(tmp_path / "dumped" / "data")
    touch(tmp_path / "memory" / "memory_usage_3.pb")
    touch(tmp_path / "stage" / "a.ir")
    touch(tmp_path / "too" / "deep" / "x.pb")
    (tmp_path / "empty" / "rank_0").mkdir(parents=True)
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "x.pb").symlink_to(tmp_path / "graph" / "x.pb")
    found = runs(tmp_path)
    assert found.keys() == {"trained", "graph", "dumped"}
    assert found["trained"].dumps == ("trained/dump",) and found["trained"].has_graphs
    assert found["graph"] == Found("graph", (), (), True, 1.6e9)
    assert found["dumped"].dumps == ("dumped/data",) and not found["dumped"].has_graphs


def test_what_lies_in_a_run_is_no_run(tmp_path):
    write(tmp_path, [scalar("loss", 0, 1.0)])
    touch(tmp_path / "stages" / "x.pb")
    dump(tmp_path / "dump")
    write(tmp_path / "inner", [scalar("loss", 0, 1.0)])
    dump(tmp_path / "inner" / "dump")
    found = runs(tmp_path)
    assert found.keys() == {"", "inner"}
    assert found[""].dumps == ("dump",) and found[""].has_graphs
    assert found["inner"].dumps == ("inner/dump",)


def test_both_interfaces_have_them(tmp_path):
    base = tmp_path / "runs"
    write(base / "trained", [scalar("loss", 0, 1.0)])
    dump(base / "trained" / "dump")
    touch(base / "graph" / "x.pb")
    library = Library(str(base), str(tmp_path / "workspace"), 0)
    library.look()
    while library.read():
        pass
    client = Client(make_app(Settings(), library))
    jobs = {
        job["train_id"]: job
        for job in client.get("/v1/mindinsight/datavisual/train-jobs").json()["train_jobs"]
    }
    assert jobs["./trained"]["dump_dir"] == "./trained/dump" and jobs["./graph"]["dump_dir"] is None
    assert (jobs["./graph"]["graph_files"], jobs["./graph"]["summary_files"]) == (1, 0)
    assert jobs["./graph"]["plugins"]["graph"] == ["x.pb"]
    rows = {row["run"]: row for row in client.get("/api/v1/runs").json()["runs"]}
    assert rows["trained"]["dumps"] == ["./trained/dump"] and rows["graph"]["dumps"] == []
    assert rows["graph"]["updated"] == 1.6e9 and rows["graph"]["tags"] == {"graph": 1}
    told: list[str] = []
    library.listen(told.append)
    touch(base / "trained" / "y.pb")
    library.look()
    assert told == ["./trained"]  # pages that follow it ask again
    assert client.get("/api/v1/runs/trained/tags").json()["kinds"]["graph"][0]["tag"].startswith("*.pb")


def test_trainings_may_connect_if_the_service_takes_them(tmp_path):
    library = Library(str(tmp_path), str(tmp_path / "workspace"), 0)
    for online in (None, object()):
        client = Client(make_app(Settings(), library, online))
        told = client.get("/v1/mindinsight/ui-config").json()
        assert told == {"enable_debugger": online is not None}
