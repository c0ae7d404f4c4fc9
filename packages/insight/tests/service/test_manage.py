"""What the list tells of a run: whether it goes on, its loss, its best metric; and deleting it."""

from __future__ import annotations

import math
import os
import sys
import time
from pathlib import Path

import pytest

from mycelia_insight.runs.library import Library
from mycelia_insight.service.app import make_app
from mycelia_insight.service.settings import Settings

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
from asgi import Client
from event_files import TENSORBOARD, event, field, framed, number, path_of, scalar, write
from test_lineages import lineage_run


def client_of(base: Path, workspace: Path, **more) -> Client:
    library = Library(str(base), str(workspace), 0, **more)
    library.look()
    while library.read():
        pass
    library.loaded = True
    return Client(make_app(Settings(), library))


def aged(path: Path, seconds: float) -> None:
    os.utime(path, (time.time() - seconds,) * 2)


def session_end(status: int) -> bytes:
    """TensorBoard's hparams of a session that has ended."""
    content = field(4, number(1, status))
    metadata = field(9, field(1, field(1, "hparams") + field(2, content)))
    return framed(event(0, 1.0, field(5, field(1, field(1, "_hparams_/session_end_info") + metadata))))


def test_status_is_told_by_files(tmp_path):
    base = tmp_path / "runs"
    for name in ("running", "stalled", "slow", "closed"):
        write(
            base / name,
            [scalar("loss", s, 1.0, 1.7e9 + s * (100 if name == "slow" else 1)) for s in range(9)],
        )
    aged(path_of(base / "stalled"), 300)
    aged(path_of(base / "slow"), 300)  # a value every 100 s: it is not late yet
    aged(path_of(base / "closed"), 300)
    path_of(base / "closed").chmod(0o400)
    lineage_run(base / "trained", 0.1, 0.3, "Adam", 0.7)
    aged(path_of(base / "trained"), 300)
    for name, records in {"board": [], "succeeded": [session_end(1)], "failed": [session_end(2)]}.items():
        aged(write(base / name, [scalar("loss", 0, 1.0), *records], first=TENSORBOARD), 300)
    rows = client_of(base, tmp_path / "workspace").get("/api/v1/runs").json()["runs"]
    assert {row["run"]: row["status"] for row in rows} == {
        "running": "running", "stalled": "stalled", "slow": "running", "closed": "finished",
        "trained": "finished", "board": "unknown", "succeeded": "finished", "failed": "failed",
    }  # fmt: skip


@pytest.mark.parametrize(
    "scalars, loss, best",
    [
        ({"loss": [3, 1, 2]}, 2, None),
        ({"val/loss": [5, 4], "train/loss": [3, 1, 2]}, 2, ("val/loss", 4, 1, False)),
        ({"loss/auto": [1, 0.5], "accuracy": [0.1, 0.9, math.nan, 0.8]}, 0.5, ("accuracy", 0.9, 1, True)),
        ({"acc": [0.9], "eval/acc": [0.5, 0.7, 0.7]}, None, ("eval/acc", 0.7, 1, True)),
        ({"gloss": [1], "mse": [4, 2, 3]}, 1, ("mse", 2, 1, False)),
        ({"macro": [1], "accept": [2]}, None, None),
        ({"acc": [math.nan, math.inf]}, None, None),
    ],
)
def test_loss_and_best_metric(tmp_path, scalars, loss, best):
    base = tmp_path / "runs"
    write(base / "a", [scalar(tag, s, v) for tag, values in scalars.items() for s, v in enumerate(values)])
    row = client_of(base, tmp_path / "workspace").get("/api/v1/runs/a").json()
    assert row["loss"] == (pytest.approx(loss) if loss else None)
    found = row["best"] and (
        row["best"]["name"],
        row["best"]["value"],
        row["best"]["step"],
        row["best"]["greatest"],
    )
    assert found == (best and (best[0], pytest.approx(best[1]), *best[2:]))


def test_metrics_of_lineage_stand_in_for_scalars(tmp_path):
    lineage_run(tmp_path / "runs" / "a", 0.1, 0.3, "Adam", 0.75)
    (tmp_path / "runs" / "a" / "events.out.events.summary.1700000000.0.host_MS").unlink()
    row = client_of(tmp_path / "runs", tmp_path / "workspace").get("/api/v1/runs/a").json()
    assert row["loss"] == pytest.approx(0.3)
    assert row["best"] == {"name": "acc", "value": 0.75, "step": None, "greatest": True}
    assert row["values"]["optimizer"] == "Adam" and row["dataset"]["batch_size"] == 32


@pytest.fixture
def old_run(tmp_path):
    folder = tmp_path / "runs" / "group" / "old"
    lineage_run(folder, 0.1, 0.3, "Adam", 0.7)
    (folder / "events.out.tfevents.1700000000.0.host_MS").write_bytes(TENSORBOARD)
    for path in folder.iterdir():
        aged(path, 300)
    return folder


def test_nothing_is_deleted_unless_it_was_allowed(tmp_path, old_run):
    client = client_of(tmp_path / "runs", tmp_path / "workspace")
    before = sorted((tmp_path / "runs").rglob("*"))
    answer = client.delete("/api/v1/runs/group/old", {"confirm": "group/old"})
    assert answer.status_code == 403 and "--allow-delete" in answer.json()["error"]
    assert client.get("/api/v1/runs").json()["may_delete"] is False
    assert sorted((tmp_path / "runs").rglob("*")) == before


def test_a_run_is_deleted_when_its_name_is_said_again(tmp_path, old_run):
    client = client_of(tmp_path / "runs", tmp_path / "workspace", may_delete=True)
    client.put("/api/v1/runs/group/old/notes", json={"labels": ["x"]})
    listed = client.get("/api/v1/runs/group/old/files").json()
    assert listed["folder"] == str(old_run) and len(listed["files"]) == 3 and listed["may_delete"]
    for confirm in ("", "old", "./group/old"):
        assert client.delete("/api/v1/runs/group/old", {"confirm": confirm}).status_code == 400
    assert len(list(old_run.iterdir())) == 3
    answer = client.delete("/api/v1/runs/group/old", {"confirm": "group/old"})
    assert answer.json()["deleted"] == [one["name"] for one in listed["files"]]
    assert not old_run.exists() and old_run.parent.exists()
    assert client.get("/api/v1/runs").json()["runs"] == []
    kept = [path for path in (tmp_path / "workspace").rglob("*") if path.is_file()]
    assert kept == []
    assert client.delete("/api/v1/runs/group/old", {"confirm": "group/old"}).status_code == 404


def test_other_files_links_and_their_goals_stay(tmp_path, old_run):
    elsewhere = write(tmp_path / "elsewhere", [scalar("loss", 0, 1.0)])
    (old_run / "events.out.events.summary.1700000009.0.host_MS").symlink_to(elsewhere)
    (old_run / "model.ckpt").write_bytes(b"weights")
    client = client_of(tmp_path / "runs", tmp_path / "workspace", may_delete=True)
    aged(elsewhere, 300)
    client.delete("/api/v1/runs/group/old", {"confirm": "group/old"})
    assert sorted(path.name for path in old_run.iterdir()) == [
        "events.out.events.summary.1700000009.0.host_MS", "model.ckpt",
    ]  # fmt: skip
    assert elsewhere.exists()


def test_a_run_that_is_written_is_not_deleted(tmp_path):
    path = write(tmp_path / "runs" / "a", [scalar("loss", 0, 1.0)])
    client = client_of(tmp_path / "runs", tmp_path / "workspace", may_delete=True)
    assert client.delete("/api/v1/runs/a", {"confirm": "a"}).status_code == 409
    assert path.exists()


def test_runs_may_be_called_like_addresses(tmp_path):
    names = ["a", "a/tags", "b/files", "c/about", "d/graphs/view"]
    for name in names:
        write(tmp_path / "runs" / name, [scalar(f"of {name}", 0, 1.0)])
    client = client_of(tmp_path / "runs", tmp_path / "workspace")
    for name in names:
        assert client.get(f"/api/v1/runs/{name}/about").json()["run"] == name
        told = client.get(f"/api/v1/runs/{name}/tags").json()
        assert f"of {name}" in str(told) and "error" not in told
    assert client.get("/api/v1/runs/a").json()["run"] == "a"
