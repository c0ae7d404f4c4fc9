"""The comparison of runs: choosing them, a line for each, groups with bands."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "service"))
from event_files import path_of, scalar, write
from test_lineages import lineage_run
from test_pages import by, until
from test_service import FIXTURE, Command

RUNS = 104


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    """A service on 104 runs of ours and one of MindSpore's."""
    folder = tmp_path_factory.mktemp("board")
    base = folder / "runs"
    for i in range(RUNS):
        run = base / f"run{i:03}"
        lineage_run(run, 10.0 ** -(i % 4), 0.1, ("Adam", "SGD")[i % 2], 0.5)
        tags = ["loss"] if i % 2 else ["loss", "acc"]
        write(run, [scalar(tag, s, i + s / 10, 1e9 + i) for s in range(20) for tag in tags])
    shutil.copytree(FIXTURE / "run1", base / "of mindspore")
    made = Command(folder)
    assert made.start(base).returncode == 0
    until(None, lambda: len(made.get("/api/v1/comparison")["runs"]) == RUNS + 1)
    yield made, base
    made("stop", "--port", str(made.port))


@pytest.fixture
def opened(quiet, board):
    def open_page(more: str = ""):
        quiet.get("about:blank")
        quiet.get(f"http://127.0.0.1:{board[0].port}/#/compare-analysis/scalar?{more}")
        until(quiet, lambda: by(quiet, "compare-train-checkbox"))
        return quiet

    return open_page


def chart(driver, tag: str, runs: int):
    def found():
        some = [one for one in by(driver, "scalar-chart") if one.get_attribute("data-tag") == tag]
        return some[0] if some and some[0].get_attribute("data-runs") == str(runs) else None

    return until(driver, found)


def boxes(driver) -> dict:
    return {one.get_attribute("data-run"): one for one in by(driver, "compare-train-checkbox")}


def chosen(runs) -> str:
    return "runs=" + quote(json.dumps([f"./run{i:03}" for i in runs]))


def test_a_hundred_runs_are_drawn_at_once(opened):
    driver = opened()
    assert len(boxes(driver)) == RUNS + 1
    by(driver, "compare-none")[0].click()
    by(driver, "compare-filter")[0].send_keys("/^run0/")
    until(driver, lambda: len(boxes(driver)) == 100)
    by(driver, "compare-all")[0].click()
    one = chart(driver, "loss", 100)
    assert (one.get_attribute("data-curves"), one.get_attribute("data-points")) == ("100", "2000")
    chart(driver, "acc", 50)  # of those that have it
    assert {"loss", "acc"} <= {box.get_attribute("data-tag") for box in by(driver, "tag-checkbox")}


def test_runs_are_chosen_one_by_one_and_by_a_query(opened):
    driver = opened(chosen([0, 1]))
    chart(driver, "loss", 2)
    boxes(driver)["./run005"].click()
    chart(driver, "loss", 3)
    boxes(driver)["./run001"].click()
    one = chart(driver, "loss", 2)
    assert one.get_attribute("data-points") == "40"
    driver = opened("query=" + quote('optimizer == "SGD" and run contains "run00"'))
    until(driver, lambda: list(boxes(driver)) == [f"./run{i:03}" for i in (9, 7, 5, 3, 1)])
    chart(driver, "loss", 5)


def test_runs_of_mindspore_stand_beside_ours(opened):
    runs = quote(json.dumps(["./of mindspore", "./run000"]))
    driver = opened(f"runs={runs}&axis=relative")
    chart(driver, "loss/auto", 1)
    chart(driver, "loss", 1)
    assert "loss/auto" in driver.find_element(By.TAG_NAME, "body").text


def test_groups_are_means_with_bands(opened):
    driver = opened(chosen(range(8)) + "&table=1")
    chart(driver, "loss", 8)
    groups = Select(by(driver, "compare-group")[0])  # what there is comes after the charts
    until(driver, lambda: "optimizer" in [one.get_attribute("value") for one in groups.options])
    groups.select_by_value("optimizer")
    until(driver, lambda: chart(driver, "loss", 8).get_attribute("data-groups") == "2")
    legend = by(driver, "compare-groups")[0].text
    assert "optimizer = Adam 4 runs" in legend and "optimizer = SGD 4 runs" in legend
    one = chart(driver, "loss", 8)
    host = one.find_element(By.CSS_SELECTOR, '[role="application"]')
    host.send_keys("\ue012")  # an arrow: the first point
    # Runs 0, 2, 4, 6 begin with these values.
    until(driver, lambda: "Adam (4) · Step 0 · Value 3 · 0 … 6" in one.text)
    driver = opened(driver.current_url.partition("?")[2].replace("by=optimizer", "by=learning_rate"))
    until(driver, lambda: chart(driver, "loss", 8).get_attribute("data-groups") == "4")


def test_zoom_log_and_axis_are_in_the_address(opened):
    driver = opened(chosen([1, 2]))
    one = chart(driver, "loss", 2)
    one.find_element(By.CSS_SELECTOR, '[data-testid="scalar-log"]').click()
    one.find_element(By.CSS_SELECTOR, '[role="application"]').send_keys("+")
    until(driver, lambda: one.get_attribute("data-zoom-depth") == "1")
    driver = opened(driver.current_url.partition("?")[2])
    one = chart(driver, "loss", 2)
    until(driver, lambda: one.get_attribute("data-scale") == "log")
    assert one.get_attribute("data-zoom-depth") == "1"
    until(driver, lambda: 16 <= int(one.get_attribute("data-points")) <= 24)


def test_lines_grow_while_runs_are_written(opened, board):
    driver = opened(chosen([50, 51]))
    one = chart(driver, "loss", 2)
    with path_of(board[1] / "run050").open("ab") as file:
        file.write(scalar("loss", 20, 1.0, 1e9 + 20))
    until(driver, lambda: one.get_attribute("data-points") == "41")


def test_archived_runs_are_not_offered(opened, board):
    import urllib.request

    address = f"http://127.0.0.1:{board[0].port}/api/v1/runs/run103/notes"
    for archived in (True, False):
        body = json.dumps({"archived": archived}).encode()
        urllib.request.urlopen(urllib.request.Request(address, body, method="PUT"), timeout=20).read()
        assert ("./run103" in boxes(opened())) != archived
