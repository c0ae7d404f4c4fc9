"""Alerts: rules, what meets them, where they are kept; the command and the interface."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "service")]
from asgi import Client  # noqa: E402
from event_files import scalar, write  # noqa: E402

from mycelia_insight.cli import app  # noqa: E402
from mycelia_insight.runs.alerts import Alert, Alerts, WrongAlert, checked, condition_of, tag_of  # noqa: E402
from mycelia_insight.runs.library import Library  # noqa: E402
from mycelia_insight.service.app import make_app  # noqa: E402
from mycelia_insight.service.settings import Settings  # noqa: E402

VALUES = np.array([-1, 0, 0.5, 2, 30, math.nan, math.inf, -math.inf], np.float32)


@pytest.fixture
def library(tmp_path):
    base = tmp_path / "runs"
    good = [scalar("loss", s, 1.0 / (s + 1), 1e9 + s) for s in range(10)]
    bad = [scalar("val/loss", s, math.nan if s > 6 else 5.0 + s, 1e9 + s) for s in range(10)]
    write(base / "a" / "good", good)
    write(base / "a" / "bad", [*good, *bad])
    made = Library(str(base), str(tmp_path / "workspace"))
    made.look()
    while made.read():
        pass
    made.loaded = True
    return made


@pytest.mark.parametrize(
    "rule, tag, meets",
    [
        ("loss > 1", "loss", [3, 4, 6]),
        ("loss < 0", "loss", [0, 7]),
        ("a b/c>1e1", None, None),
        ("a b/c >1e1", "a b/c", [4, 6]),
        ("x > 0 and < 1", "x", [2]),
        ("x < 0 or > 1", "x", [0, 3, 4, 6, 7]),
        ("loss not  finite", "loss", [5, 6, 7]),
        ("x > y > 1", "x > y", [3, 4, 6]),
    ],
)
def test_rules_say_which_values_are_meant(rule, tag, meets):
    if tag is None:
        with pytest.raises(WrongAlert, match="a rule is"):
            checked(rule)
        return
    rule = checked(rule).rule
    assert tag_of(rule) == tag and np.flatnonzero(condition_of(rule)(VALUES)).tolist() == meets


@pytest.mark.parametrize(
    "rule, why",
    [
        ("", "a rule is"), ("loss", "a rule is"), ("loss = 3", "a rule is"), ("> 3", "a rule is"),
        ("loss > x", "needs a number"), ("loss > nan", "needs a number"), ("loss > 1e999", "needs a number"),
        ("l > 1 and > 2", "same sign"), ("l > 2 and < 1", "no value"), ("l > 1 or < 2", "every value"),
        (3, "must be texts"), ("x" * 600 + " > 1", "at most 500"),
    ],
)  # fmt: skip
def test_rules_that_cannot_be_are_refused(rule, why):
    with pytest.raises(WrongAlert, match=why):
        checked(rule)


def test_hits_tell_the_first_point(library):
    (hit,) = library.alerts.hits(checked("*loss not finite"), library.runs())
    assert (hit.run, hit.tag, hit.points, hit.first_step, hit.last_step) == ("./a/bad", "val/loss", 3, 7, 9)
    assert hit.first_time == 1e9 + 7 and math.isnan(hit.first_value)
    found = library.alerts.hits(checked("loss < 0.2", "A/*o"), library.runs())
    assert [(hit.run, hit.points, hit.first_step) for hit in found] == [("./a/good", 5, 5)]
    assert library.alerts.hits(checked("Loss < 0.2"), library.runs()) == [], "tags are as they are written"
    assert library.alerts.hits(checked("lo*ss* < 9"), library.runs()) != []
    assert library.alerts.hits(checked("loss*loss < 9"), library.runs()) == [], "its parts do not overlap"


def test_a_hit_comes_with_its_point(library):
    alert = checked("loss > 100")
    assert library.alerts.hits(alert, library.runs()) == []
    run = next(Path(library.base).glob("a/good/*"))
    with run.open("ab") as file:
        file.write(scalar("loss", 10, 200.0, 1e9 + 10))
    while library.read():
        pass
    assert [hit.first_step for hit in library.alerts.hits(alert, library.runs())] == [10]


def test_alerts_are_kept_in_the_workspace(tmp_path):
    kept = Alerts(str(tmp_path), "/runs")
    first = kept.add(" loss   >  1 ")
    kept.add("loss > 1", "x")
    kept.add("loss > 1")
    again = Alerts(str(tmp_path), "/runs")
    assert again.all() == [Alert("loss > 1"), Alert("loss > 1", "x")] and first.id == again.all()[0].id
    assert Alerts(str(tmp_path), "/others").all() == []
    assert again.remove(first.id) and not again.remove(first.id)
    (file,) = (tmp_path / "alerts").iterdir()
    for damaged in ("{", "[]", '{"alerts": 3}', '{"alerts": [{"rule": "x", "runs": ""}]}'):
        file.write_text(damaged)
        assert kept.all() == []
    for i in range(100):
        kept.add(f"loss > {i}")
    with pytest.raises(WrongAlert, match="100 alerts"):
        kept.add("loss > 100")


def test_the_interface(library):
    client = Client(make_app(Settings(), library))
    assert client.get("/api/v1/alerts").json() == {"firing": 0, "alerts": []}
    made = client.put("/api/v1/alerts", {"rule": "val/loss not finite"})
    assert made.status_code == 200
    client.put("/api/v1/alerts", {"rule": "loss > 9", "runs": "good"})
    told = client.get("/api/v1/alerts").json()
    assert told["firing"] == 1 and [len(one["hits"]) for one in told["alerts"]] == [1, 0]
    assert (
        told["alerts"][0]["hits"][0]["run"] == "a/bad"
        and told["alerts"][0]["hits"][0]["first_value"] == "NaN"
    )
    library.notes.change(str(Path(library.base) / "a" / "bad"), {"archived": True})
    assert client.get("/api/v1/alerts").json()["firing"] == 0, "archived runs are passed over"
    for body in (None, [], {}, {"rule": "x"}, {"rule": 3}, {"rule": "x > 1", "runs": []}):
        assert client.put("/api/v1/alerts", body).status_code == 400, body
    address = f"/api/v1/alerts/{made.json()['id']}"
    assert client.delete(address).status_code == 200 and client.delete(address).status_code == 404


def command(*more: str):
    result = CliRunner().invoke(app, ["alerts", *more])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def test_the_command_ends_with_1_if_one_is_met(library, tmp_path):
    given = ["--summary-base-dir", library.base, "--workspace", str(tmp_path / "workspace")]
    assert command(*given).stdout == "0 alerts, 0 met\n"
    library.alerts.add("loss > 9")
    quiet = command(*given)
    assert (quiet.exit_code, quiet.stdout) == (0, "1 alert, 0 met\n")
    library.alerts.add("val/loss not finite", "bad")
    met = command(*given)
    assert met.exit_code == 1 and met.stdout.endswith("2 alerts, 1 met\n")
    assert met.stdout.startswith(
        "./a/bad: val/loss not finite: val/loss has 3 points, the first nan at step 7, "
    )
    told = json.loads(command(*given, "--json").stdout)
    assert [len(one["hits"]) for one in told] == [0, 1] and told[1]["hits"][0]["first_value"] == "NaN"
    own = command(*given, "--rule", "loss < 0.2", "--runs", "good")
    assert (
        own.exit_code == 1
        and "./a/good: loss < 0.2: loss has 5 points, the first 0.166667 at step 5" in own.stdout
    )
    library.notes.change(str(Path(library.base) / "a" / "bad"), {"archived": True})
    assert command(*given).exit_code == 0


def test_times_that_are_none_are_told(tmp_path):
    write(tmp_path / "runs" / "odd", [scalar("loss", 3, 2.0, time) for time in (1e300, math.nan)])
    met = command("--summary-base-dir", str(tmp_path / "runs"), "--rule", "loss > 1")
    assert met.exit_code == 1 and "2 at step 3, a time that no calendar has" in met.stdout


@pytest.mark.parametrize(
    "given, why",
    [(["--rule", "loss"], "--rule: a rule is"), (["--runs", "x"], "--runs is for --rule"),
     (["--summary-base-dir", "/no/such"], "is not a folder")],
)  # fmt: skip
def test_wrong_options_end_with_2(given, why, tmp_path):
    result = command("--workspace", str(tmp_path), *given)
    assert result.exit_code == 2 and why in result.output
