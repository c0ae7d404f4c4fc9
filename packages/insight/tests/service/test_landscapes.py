"""Loss landscapes that MindSpore computed, by both interfaces; damaged ones are refused."""

from __future__ import annotations

import math
import shutil
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
from asgi import Client  # noqa: E402
from event_files import field, landscape, tensor, write  # noqa: E402
from test_lineages import lineage_run  # noqa: E402
from test_media import recorded  # noqa: E402

from mycelia_insight.records.landscapes import decode  # noqa: E402
from mycelia_insight.records.wire import Broken  # noqa: E402
from mycelia_insight.runs.library import Library  # noqa: E402
from mycelia_insight.service.app import make_app  # noqa: E402
from mycelia_insight.service.settings import Settings  # noqa: E402

FIXTURE = HERE.parent / "fixtures" / "landscape"
OWN, OLD = "/api/v1", "/v1/mindinsight/datavisual/landscape"
WAY = {3: (0.0, 1.0, 0.25), 9: (2.0, 0.0, 0.5)}


@pytest.fixture
def client(tmp_path):
    shutil.copytree(FIXTURE, tmp_path / "runs" / "theirs")
    lineage_run(tmp_path / "runs" / "trained", 0.001, 0.3, "Adam", 0.7)
    odd = landscape([0, 1, 2], [0, 1], [0, 1, math.nan, math.inf, -math.inf, 5], WAY, unit="epoch")
    older = landscape([0, 1], [0, 1], range(4), WAY)
    many = [("landscape_[3, 9]", older), ("landscape_[3, 9]", odd), ("short", field(1, field(1, b"")))]
    write(tmp_path / "runs" / "trained", [recorded(10, tag, one, 0) for tag, one in many])
    write(tmp_path / "runs" / "none", [])
    library = Library(str(tmp_path / "runs"), str(tmp_path / "workspace"), 0)
    library.look()
    while library.read():
        pass
    return Client(make_app(Settings(), library))


def test_landscapes_of_mindspore_are_listed_and_shown(client):
    rows = client.get(f"{OWN}/runs/theirs/landscapes").json()["landscapes"]
    assert [row["tag"] for row in rows] == ["landscape_[1, 5]", "landscape_[5, 8]", "landscape_[8]"]
    assert rows[0]["steps"] == [1, 2, 3, 4, 5] and rows[2]["steps"] == []
    assert {row["unit"] for row in rows} == {"step"} and rows[0]["steps_per_epoch"] == 4
    shown = client.get(f"{OWN}/runs/theirs/landscapes/view", {"tag": "landscape_[1, 5]"}).json()
    assert shown["decomposition"] == "PCA" and len(shown["x"]) == len(shown["y"]) == len(shown["z"]) == 5
    assert shown["z"][0][:2] == pytest.approx([2.6493764, 2.9330668]) and shown["end"][:2] == [0, 0]
    assert shown["path"]["z"][-1] == shown["end"][2] == pytest.approx(2.8671679)
    result = client.get(f"{OWN}/runs/theirs/landscapes/view", {"tag": "landscape_[8]"}).json()
    assert result["path"] is None and result["x"][0] == -1


def test_mindinsights_interface_answers_as_mindinsight_did(client):
    """The answers of MindInsight 2.3.1 to the same file; the ids of intervals are free."""
    intervals = client.get(f"{OLD}/intervals?train_id=./theirs").json()["intervals"]
    assert [one["value"] for one in intervals] == [[1, 5], [5, 8]]
    assert len({one["id"] for one in intervals}) == 2
    asked = [("train_id", "./theirs"), ("train_id", "theirs"), ("train_id", "./none")]
    asked.append(("interval_id", intervals[0]["id"]))
    found, *refused = client.get(f"{OLD}/landscapes", asked).json()["landscapes"]
    assert refused == [
        {"error_code": "50540002", "train_id": "theirs"},
        {"error_code": "50545017", "train_id": "./none"},
    ]  # fmt: skip
    assert found["points"]["z"][0][0] == 2.649376392364502 and found["points"]["x"][4] == 0.6164620518684387
    assert found["path"]["intervals"] == [1, 2, 3, 4, 5] and found["path"]["x"][-1] == 0
    assert found["convergence_point"] == [0, 0, 2.8671679496765137]
    assert found["metadata"] == {
        "decomposition": "PCA", "unit": "step", "step_per_epoch": 4, "network": None, "learning_rate": None,
        "optimizer": None, "metric": {},
    }  # fmt: skip
    final = client.get(f"{OLD}/landscapes", {"train_id": "./theirs", "type": "final"}).json()["landscapes"][0]
    assert "path" not in final and final["metadata"]["decomposition"] == "Random"
    assert client.get(f"{OLD}/intervals?train_id=./none").json() == {"intervals": []}
    assert client.get(f"{OLD}/landscapes").json() == {"landscapes": []}
    assert client.get(f"{OLD}/landscapes?train_id=./gone").json()["error_code"] == "50545005"
    assert client.get(f"{OLD}/intervals").json()["error_code"] == "50540003"


def test_the_last_landscape_of_a_tag_with_what_was_trained(client):
    (row,) = [r for r in client.get(f"{OWN}/runs/trained/landscapes").json()["landscapes"] if r["steps"]]
    assert row["unit"] == "epoch"
    shown = client.get(f"{OWN}/runs/trained/landscapes/view", {"tag": row["tag"]}).json()
    assert shown["z"] == [[0, 1, "NaN"], ["Infinity", "-Infinity", 5]]
    (one,) = client.get(f"{OLD}/intervals?train_id=./trained").json()["intervals"]
    asked = {"train_id": "./trained", "interval_id": one["id"]}
    found = client.get(f"{OLD}/landscapes", asked).json()["landscapes"][0]
    assert found["points"]["z"] == [[0, 1, None], [None, None, 5]] and one["value"] == [3, 9]
    assert found["metadata"]["learning_rate"] == "1.000000e-03" and found["metadata"]["optimizer"] == "Adam"
    assert found["metadata"]["metric"] and found["metadata"]["loss"] == "3.000000e-01"


def test_what_is_no_landscape_is_refused(client):
    view = f"{OWN}/runs/trained/landscapes/view"
    assert client.get(view, {"tag": "short"}).status_code == 422
    assert client.get(view, {"tag": "gone"}).status_code == 404
    assert client.get(view).status_code == 400


def points(*axes: bytes) -> bytes:
    return b"".join(field(i, axis) for i, axis in enumerate(axes, 1))


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (b"", "has no grid"),
        (field(1, points(tensor([0, 1]), tensor([0, 1]), tensor([0] * 6, 2, 3))), "has losses of"),
        (field(1, points(tensor([]), tensor([]), tensor([], 0, 0))), "has losses of"),
        (landscape([0, 1], [0, 1], range(4), WAY)[:-20] + b"\x0a\xff", "longer than"),
        (
            landscape([0, 1], [0, 1], range(4)) + field(2, b"\x08\x01" + field(2, points(tensor([1])))),
            "a path of",
        ),
        (field(1, points(tensor([0] * 5000), tensor([0]), tensor([0] * 5000, 1, 5000))), "at most 4096"),
    ],
)
def test_damaged_messages_are_told(message, text):
    with pytest.raises(Broken, match=text):
        decode(message)
