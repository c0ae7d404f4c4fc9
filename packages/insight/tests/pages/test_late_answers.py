"""Answers that come in another order than they were asked for, in a real browser."""

from __future__ import annotations

import sys
from pathlib import Path
from urllib.parse import quote

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from event_files import scalar
from test_graph_pages import REAL, names, one
from test_pages import by, new_run, until

#: The next answer whose address has a text in it is kept back, as it is now, until `release()`.
HOLD = """
const [part, real] = [arguments[0], window.fetch];
window.held = false;
const free = new Promise((done) => (window.release = done));
window.fetch = async (...asked) => {
  if (window.held || !String(asked[0]).includes(part)) return real(...asked);
  window.held = true;
  const answer = await real(...asked);
  const body = await answer.text();
  window.kept = true;
  await free;
  return new Response(body, { status: answer.status, headers: answer.headers });
};
"""
RELEASE = "const done = arguments[0]; window.release(); setTimeout(done, 100);"


def kept(driver) -> bool:
    return driver.execute_script("return window.kept ?? false")


@pytest.fixture
def opened(page):
    yield page
    page().execute_script("localStorage.clear()")


def test_a_late_list_of_runs_does_not_take_a_new_run_away(opened, service, gallery):
    driver = opened("#/summary-manage?filter=late")
    until(driver, lambda: by(driver, "refresh"))
    driver.execute_script(HOLD, "api/v1/runs?")
    by(driver, "refresh")[0].click()
    until(driver, lambda: kept(driver))
    new_run(service, gallery, "late", [scalar("loss", 0, 1.0)])
    until(driver, lambda: by(driver, "run-row"))
    driver.execute_async_script(RELEASE)
    assert [row.get_attribute("data-run") for row in by(driver, "run-row")] == ["./late"]


def test_a_late_curve_does_not_take_points_away(opened, service, gallery):
    new_run(service, gallery, "curve", [scalar("loss", 0, 1.0)])
    driver = opened("#/train-manage/scalar?train_id=" + quote("./curve"))
    points = lambda: [card.get_attribute("data-points") for card in by(driver, "scalar-chart")]
    until(driver, lambda: points() == ["1"])
    driver.execute_script(HOLD, "api/v1/scalars?")
    by(driver, "refresh")[0].click()
    until(driver, lambda: kept(driver))
    new_run(service, gallery, "curve", [scalar("loss", s, 1.0) for s in range(3)])
    until(driver, lambda: points() == ["3"])
    driver.execute_async_script(RELEASE)
    assert points() == ["3"]


def test_a_late_node_does_not_take_the_place_of_the_chosen_one(opened):
    driver = opened(REAL)
    until(driver, lambda: "Gradients" in names(driver))
    driver.execute_script(HOLD, "Gradients")
    one(driver, "Gradients").click()
    until(driver, lambda: kept(driver))
    one(driver, "output").click()
    told = lambda: driver.find_element("tag name", "aside").text
    until(driver, lambda: "output" in told())
    shown = told()
    driver.execute_async_script(RELEASE)
    assert told() == shown
