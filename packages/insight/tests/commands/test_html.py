"""`mycelia-insight html`: what the report holds, what it refuses; for its looks see tests/pages."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
import little_room
from event_files import event, field, framed, number, scalar, write

from mycelia_insight.cli import app
from mycelia_insight.exchange.report import thinned
from mycelia_insight.runs.run import Points
from mycelia_insight.service.app import PAGES

FIXTURE = Path(__file__).parents[1] / "fixtures" / "summary"
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x02\0\0\0\x03\x08\x02\0\0\0"
SCRIPT = "</script><script>document.title='taken'</script><!--"

needs_pages = pytest.mark.skipif(
    not (PAGES / "report" / "report.js").exists(), reason="missing: pages (tools/build_pages.py)"
)


def report(folder: Path, target: Path, *more: str):
    result = CliRunner().invoke(app, ["html", "--summary-dir", str(folder), "-o", str(target), *more])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def data_of(path: Path) -> dict:
    (text,) = re.findall(
        r'<script type="application/json" id="report-data">([^<]*)</script>', path.read_text()
    )
    return json.loads(text)


@needs_pages
def test_a_report_of_a_run_of_mindspore(tmp_path):
    result = report(FIXTURE, tmp_path / "r.html")
    assert result.exit_code == 0 and result.stderr == ""
    size = (tmp_path / "r.html").stat().st_size
    assert result.stdout == f"1 run in {tmp_path / 'r.html'}, {size:,} bytes\n"
    told = data_of(tmp_path / "r.html")
    expected = json.loads((FIXTURE / "run1.expected.json").read_text())
    assert told["title"] == "summary" and told["left"] == []
    (run,) = told["runs"]
    assert run["name"] == "run1" and run["values"]["optimizer"] == "Momentum"
    assert told["columns"][:2] == ["metric/acc", "loss"]
    for tag, points in expected["scalar"].items():
        series = run["scalars"][tag.removesuffix("/scalar")]
        assert series["steps"] == points["steps"]
        assert np.float32(series["values"]).tolist() == np.float32(points["values"]).tolist()
    for tag, one in expected["image"].items():
        name = tag.removesuffix("/image")
        assert run["media"][name]["steps"] == one["steps"]
        assert run["media"][name]["sizes"] == [[one["width"], one["height"]]] * len(one["steps"])
        for step in one["steps"]:
            kind, _, encoded = run["images"][name][f"{step}/0"].partition(",")
            assert kind == "data:image/png;base64"
            assert base64.b64decode(encoded)[:8] == b"\x89PNG\r\n\x1a\n"
    for tag, one in expected["histogram"].items():
        assert run["histograms"][tag.removesuffix("/histogram")]["steps"] == one["steps"]


@needs_pages
def test_nothing_but_its_own_script_may_run_and_nothing_is_asked_of_anyone(tmp_path):
    write(tmp_path / "runs" / SCRIPT.replace("/", "_"), [scalar(SCRIPT, 1, 1.0), scalar("__proto__", 1, 2.0)])
    assert report(tmp_path / "runs", tmp_path / "r.html", "--title", SCRIPT).exit_code == 0
    text = (tmp_path / "r.html").read_text()
    assert text.count("<script") == text.count("</script") == 3
    assert "<!--" not in text and "document.title='taken'</script>" not in text
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'" and rules["img-src"] == rules["connect-src"] == "data:"
    for name, pattern in (("script-src", r"<script>(.*)</script>"), ("style-src", r"<style>(.*)</style>")):
        (inside,) = re.findall(pattern, text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert rules[name] == f"'sha256-{digest}'"
    assert not re.findall(r"<(?:link|iframe|object|embed|base)\b|@import|url\(\s*['\"]?http", text)
    told = data_of(tmp_path / "r.html")
    assert told["title"] == SCRIPT and set(told["runs"][0]["scalars"]) == {SCRIPT, "__proto__"}
    assert "Permission is hereby granted" in text  # licences of what it contains


@needs_pages
def test_steps_that_fall_and_times_that_no_clock_shows(tmp_path):
    rows = [scalar("down", 9 - i, i, 1e300 if i == 3 else math.inf) for i in range(10)]
    write(tmp_path / "run", [*rows, scalar("one", 5, 1.0, math.nan)])
    assert report(tmp_path / "run", tmp_path / "r.html").exit_code == 0
    (run,) = data_of(tmp_path / "r.html")["runs"]
    assert sorted(run["scalars"]["down"]["steps"]) == list(range(10)) and run["scalars"]["one"]["values"] == [
        1
    ]


@needs_pages
def test_runs_and_tags_are_chosen(tmp_path):
    for name, loss in (("a/one", 0.1), ("a/two", 0.9), ("b", 0.5)):
        write(tmp_path / "runs" / name, [scalar("loss", 1, loss), scalar("acc", 1, 1.0)])
    for more, names in ((["--runs", "^a/"], ["a/one", "a/two"]), (["--query", "loss < 0.6"], ["a/one", "b"])):
        assert report(tmp_path / "runs", tmp_path / "r.html", "--force", "--tags", "^l", *more).exit_code == 0
        told = data_of(tmp_path / "r.html")["runs"]
        assert [run["name"] for run in told] == names
        assert all(list(run["scalars"]) == ["loss"] for run in told)


def test_curves_keep_their_extremes_and_what_is_not_finite():
    draw = np.random.default_rng(0)
    values = draw.standard_normal(5000).astype(np.float32)
    values[::3], values[1000], values[1001], values[3000] = np.nan, np.inf, -np.inf, 99
    steps = np.arange(5000) * 7
    thin = thinned(Points(steps, steps * 0.5, values, values), 10)
    finite = np.isfinite(thin.values)
    assert finite.sum() == np.isfinite(values).sum()  # those were chosen before
    assert np.isnan(thin.values).sum() in (10, 11)
    assert {np.inf, -np.inf} <= set(thin.values.tolist()) and (np.diff(thin.steps) > 0).all()
    one = Points(steps[:1], steps[:1] * 0.5, values[:1], values[:1])
    assert thinned(one, 10).steps.tolist() == [0]


@needs_pages
def test_the_size_is_bounded_and_what_has_no_room_is_told(tmp_path):
    rows = [scalar(f"s{k}", s, math.nan if s % 2 else s * k) for k in range(12) for s in range(6000)]
    image = number(1, 3) + number(2, 2) + number(3, 3) + field(4, PNG + bytes(200_000))
    rows += [framed(event(s, 0.0, field(5, field(1, field(1, "img") + field(4, image))))) for s in range(9)]
    write(tmp_path / "run", rows)
    result = report(tmp_path / "run", tmp_path / "r.html", "--max-size", "1")
    assert result.exit_code == 0
    program = sum(
        (PAGES / "report" / name).stat().st_size for name in ("report.js", "report.css", "licenses.txt")
    )
    assert (tmp_path / "r.html").stat().st_size < (1 << 20) + program + 20_000
    told = data_of(tmp_path / "r.html")
    (run,) = told["runs"]
    assert len(run["scalars"]) == 12 and 100 < len(run["scalars"]["s1"]["steps"]) < 6000
    values = [v for v in run["scalars"]["s1"]["values"] if not isinstance(v, str)]
    assert (min(values), max(values)) == (0, 5998) and "NaN" in run["scalars"]["s1"]["values"]
    assert 0 < len(run["media"]["img"]["steps"]) < 8
    assert told["left"] and all(one.startswith("@: img at step ") for one in told["left"])
    assert result.stderr.splitlines() == [f"[WARNING] left out: {one}" for one in told["left"]]


@needs_pages
@pytest.mark.parametrize(
    "more, code, text",
    [
        (["--runs", "("], 2, "--runs must be a regular expression"),
        (["--tags", "["], 2, "--tags must be a regular expression"),
        (["--query", "loss <"], 2, "--query"),
        (["--runs", "nothing"], 1, "there are no such runs"),
        (["--max-size", "0"], 2, "Invalid value for '--max-size'"),
        (["-o", "taken"], 1, "taken is there already; --force writes over it"),
        (["-o", "runs/r.html"], 1, "which is only read"),
        (["-o", "missing/r.html"], 1, "missing/r.html"),
        (["--summary-dir", "nowhere"], 2, "nowhere is not a folder"),
    ],
)
def test_what_is_wrong_is_told(tmp_path, monkeypatch, more, code, text):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "runs" / "a", [scalar("loss", 1, 1.0)])
    (tmp_path / "taken").write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    result = CliRunner().invoke(app, ["html", "--summary-dir", "runs", "-o", "r.html", *more])
    assert result.exit_code == code and text in " ".join(result.stderr.split())
    assert sorted(tmp_path.rglob("*")) == before and (tmp_path / "taken").read_text() == "mine"


def test_without_its_program_there_is_no_report(tmp_path, monkeypatch):
    monkeypatch.setattr("mycelia_insight.exchange.report.PAGES", tmp_path / "none")
    result = report(FIXTURE, tmp_path / "r.html")
    assert result.exit_code == 1 and "tools/build_pages.py" in result.stderr
    assert list(tmp_path.iterdir()) == []


@needs_pages
@pytest.mark.skipif(sys.platform != "linux", reason="limits of a file's size as on Linux")
def test_a_full_disk_leaves_what_was_there(tmp_path):
    (tmp_path / "r.html").write_text("mine")

    result = little_room.run("html", "--force", "--summary-dir", FIXTURE, "-o", tmp_path / "r.html")
    assert result.returncode == 1 and "Nothing was written: " in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["r.html"]
    assert (tmp_path / "r.html").read_text() == "mine"
