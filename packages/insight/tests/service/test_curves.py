"""Curves of the own interface: many runs at once, other axes and smoothers, all points as CSV."""

from __future__ import annotations

import csv
import io
import math
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
from event_files import scalar, write
from test_lineages import client_of

ODD = {5: math.nan, 6: math.inf, 7: -math.inf}
SPIKE = 1234


def value(step: int) -> float:
    return 9.0 if step == SPIKE else ODD.get(step, 1 / (1 + step))


@pytest.fixture
def client(tmp_path):
    base = tmp_path / "runs"
    records = [scalar("loss", s, value(s), 1e9 + 2 * s) for s in range(3000)]
    records += [scalar("epoch", s, s / 100, 1e9 + 2 * s) for s in range(0, 3000, 2)]
    write(base / "a", records)
    write(base / "b", [scalar("loss", s, 2.0, 2e9 + s) for s in range(10)])
    write(base / "c", [scalar("other", 0, 1.0)])
    return client_of(base, tmp_path / "workspace")


def series(client, **query):
    asked = [(k, v) for k, vs in query.items() for v in (vs if isinstance(vs, list) else [vs])]
    answer = client.get("/api/v1/scalars", asked)
    assert answer.status_code == 200, answer.text
    return answer.json()["series"]


def test_one_request_brings_a_scalar_of_many_runs(client):
    found = series(client, run=["b", "a", "c"], tag="loss", points=100)
    assert [one["run"] for one in found] == ["b", "a"]
    alone = client.get("/api/v1/runs/a/scalars", {"tag": "loss", "points": 100}).json()["series"][0]
    assert found[1] == alone and alone["count"] == 3000
    assert client.get("/api/v1/scalars", {"run": "nothing", "tag": "loss"}).status_code == 404


def test_a_relative_axis_begins_with_the_first_point(client):
    (one,) = series(client, run="a", tag="loss", axis="relative", **{"from": 100, "to": 110})
    assert one["steps"] == [50, 51, 52, 53, 54, 55]


def test_a_scalar_can_be_the_axis(client):
    (one,) = series(client, run="a", tag="loss", axis="scalar", x="epoch", **{"from": 0.5, "to": 1})
    assert one["steps"] == list(range(50, 101, 2))  # where both have a value
    assert one["x"] == pytest.approx([step / 100 for step in one["steps"]])
    assert series(client, run=["b"], tag="loss", axis="scalar", x="epoch") == []
    drawn = series(client, run="a", tag="loss", axis="scalar", x="epoch", points=20)[0]
    assert len(drawn["steps"]) <= 4 * 20 + len(ODD) and {0, SPIKE, 2998} <= set(drawn["steps"])
    assert "Infinity" in drawn["values"]  # of step 6; the others are odd steps, where no epoch is known


@pytest.mark.parametrize("smoother", ["average", "gaussian"])
def test_other_smoothers_keep_what_a_drawing_needs(client, smoother):
    (whole,) = series(client, run="a", tag="loss", smoother=smoother, smoothing=50)
    (one,) = series(client, run="a", tag="loss", smoother=smoother, smoothing=50, points=30)
    assert {0, SPIKE, 2999, *ODD} <= set(one["steps"]) and len(one["steps"]) <= 4 * 30 + len(ODD)
    at = {step: value for step, value in zip(whole["steps"], whole["smoothed"], strict=True)}
    assert [at[step] for step in one["steps"]] == one["smoothed"]
    assert at[SPIKE] < 1 and one["values"][one["steps"].index(SPIKE)] == 9
    drawing = {"smoother": smoother, "smoothing": 50, "from": 2000, "to": 2010}
    (zoomed,) = series(client, run="a", tag="loss", **drawing)
    assert zoomed["smoothed"] == pytest.approx([at[step] for step in range(2000, 2011)])


@pytest.mark.parametrize(
    "query, text",
    [
        ({"axis": "x"}, "'axis' must be one of"),
        ({"axis": "scalar"}, "'x' is the scalar of the axis"),
        ({"x": "epoch"}, "'x' is the scalar of the axis"),
        ({"smoother": "median"}, "'smoother' must be one of"),
        ({"smoothing": "1"}, "a weight below 1"),
        ({"smoothing": "-1"}, "'smoothing' must be"),
    ],
)
def test_wrong_drawings_are_refused(client, query, text):
    answer = client.get("/api/v1/scalars", {"run": "a", "tag": "loss", **query})
    assert answer.status_code == 400 and text in answer.json()["error"]


def test_all_points_come_as_csv(client):
    answer = client.get("/api/v1/scalars.csv", [("run", "a"), ("run", "b"), ("tag", "loss"), ("tag", "no")])
    rows = list(csv.reader(io.StringIO(answer.text)))
    assert rows[0] == ["run", "tag", "step", "wall_time", "value"] and len(rows) == 1 + 3000 + 10
    assert [row[4] for row in rows[6:9]] == ["nan", "inf", "-inf"]
    assert rows[4] == ["./a", "loss", "3", "1000000006.0", "0.25"] and rows[-1][:3] == ["./b", "loss", "9"]


def test_what_can_be_compared(client):
    client.put("/api/v1/runs/c/notes", json={"archived": True})
    found = client.get("/api/v1/comparison").json()
    rows = {row["run"]: (sorted(found["sets"][row["set"]]), row["archived"]) for row in found["runs"]}
    assert rows == {"a": (["epoch", "loss"], False), "b": (["loss"], False), "c": (["other"], True)}
    assert [row["run"] for row in found["runs"]] == ["c", "a", "b"]  # by age
    only = client.get("/api/v1/comparison", {"query": "run == 'b'"}).json()
    assert [row["run"] for row in only["runs"]] == ["b"]


def test_tags_come_one_by_one_or_with_commas(client):
    asked = lambda **query: client.get("/api/v1/runs/a/scalars", query)
    both = asked(tags="loss,epoch", points=10).json()["series"]
    assert [one["tag"] for one in both] == ["loss", "epoch"]
    assert [one["tag"] for one in asked(tag="loss", tags="epoch").json()["series"]] == ["loss", "epoch"]
    assert asked(tags="loss,none").status_code == 404
    assert asked(tags=",").status_code == 400 and "'tag' is required" in asked(points=3).json()["error"]


ARROW = {"Accept": "application/vnd.apache.arrow.stream"}


def arrow_table(client, path: str, asked: list[tuple[str, object]]):
    ipc = pytest.importorskip("pyarrow.ipc")
    answer = client.ask("GET", path, asked, headers=ARROW)
    assert answer.status_code == 200 and answer.headers["content-type"] == ARROW["Accept"], answer.body
    return ipc.open_stream(answer.body).read_all()


def test_points_are_a_table_of_arrow_for_those_who_ask(client):
    asked = [("tag", "loss"), ("tag", "epoch"), ("points", 50), ("smoothing", 0.5)]
    table = arrow_table(client, "/api/v1/runs/a/scalars", asked)
    told = client.get("/api/v1/runs/a/scalars", asked).json()["series"]
    assert table.column_names == ["run", "tag", "step", "wall_time", "value", "smoothed"]
    columns = table.to_pydict()
    assert columns["step"] == [step for one in told for step in one["steps"]]
    assert columns["tag"] == [one["tag"] for one in told for _ in one["steps"]]
    words = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
    values = [words.get(value, value) for one in told for value in one["values"]]
    assert columns["value"] == pytest.approx(values, nan_ok=True)
    assert {math.inf, -math.inf} < {*columns["value"]}
    assert columns["wall_time"] == [time for one in told for time in one["times"]]


def test_an_axis_or_no_points_are_in_the_table_too(client):
    drawn = [("run", "b"), ("run", "a"), ("tag", "loss"), ("axis", "scalar"), ("x", "epoch")]
    table = arrow_table(client, "/api/v1/scalars", drawn)
    assert set(table.to_pydict()["run"]) == {"a"} and "x" in table.column_names
    none = arrow_table(client, "/api/v1/scalars", [("run", "c"), ("tag", "loss")])
    assert none.num_rows == 0 and none.column_names[:3] == ["run", "tag", "step"]


def test_without_pyarrow_the_table_is_refused(client, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    asked = {"run": "a", "tag": "loss"}
    answer = client.ask("GET", "/api/v1/scalars", asked, headers=ARROW)
    assert answer.status_code == 406 and "pyarrow" in answer.json()["error"]
    assert client.get("/api/v1/scalars", asked).status_code == 200
