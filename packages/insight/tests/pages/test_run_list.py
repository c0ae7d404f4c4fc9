"""The list of runs and a run's dashboard, on runs of ours and of MindSpore."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from pathlib import Path

import pytest
from selenium.webdriver import Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "service"))
from event_files import path_of, scalar, write
from test_lineages import lineage_run
from test_pages import by, until
from test_service import FIXTURE, Command


@pytest.fixture(scope="module")
def listed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("listed")
    base = folder / "runs"
    shutil.copytree(FIXTURE / "run1", base / "of mindspore")
    for i in range(24):
        write(base / f"run{i:02}", [scalar("loss", s, 1 + (i * 7) % 24 / 10, 1e9 + i) for s in range(i + 1)])
    lineage_run(base / "trained", 0.1, 0.3, "Adam", 0.7, note="x")
    old = write(base / "old", [scalar("loss", 0, 99.0, 1e9)])
    os.utime(old, (time.time() - 900,) * 2)
    made = Command(folder)
    assert made.start(base, "--allow-delete").returncode == 0
    until(None, lambda: len(made.get("/api/v1/runs")["runs"]) == 27)
    yield made, base
    made("stop", "--port", str(made.port))


@pytest.fixture
def opened(quiet, listed):
    def open_page(address: str = ""):
        quiet.get("about:blank")
        quiet.get(f"http://127.0.0.1:{listed[0].port}/{address}")
        return quiet

    return open_page


def order(driver) -> list[str]:
    """Runs as they are listed, at one moment: rows may be moved by what comes meanwhile."""
    rows = "return [...document.querySelectorAll('[data-testid=run-row]')].map((one) => one.dataset.run)"
    return driver.execute_script(rows)


def row(driver, run: str):
    found = lambda: [one for one in by(driver, "run-row") if one.get_attribute("data-run") == run]
    return until(driver, found)[0]


def operation(driver, run: str, name: str):
    """An operation of a run's menu, which is opened."""
    row(driver, run).find_element(By.CSS_SELECTOR, '[data-testid="run-menu"]').click()
    one = row(driver, run).find_element(By.CSS_SELECTOR, f'[data-testid="{name}"]')
    until(driver, one.is_displayed)
    return one


def test_every_column_sorts_and_rows_stand_on_pages(opened):
    driver = opened("#/summary-manage?filter=/^run/")
    until(driver, lambda: len(order(driver)) == 20)
    by_loss = sorted(range(24), key=lambda i: (i * 7) % 24)
    for column, expected in {"run": range(24), "step": range(24), "loss": by_loss}.items():
        names = [f"./run{i:02}" for i in expected]
        by(driver, f"run-sort-{column}")[0].click()
        until(driver, lambda names=names: order(driver) == names[:20])
        by(driver, f"run-sort-{column}")[0].click()
        until(driver, lambda names=names: order(driver) == names[::-1][:20])
    by(driver, "page-next")[0].click()
    until(driver, lambda: len(order(driver)) == 4)
    Select(by(driver, "rows-per-page")[0]).select_by_value("50")
    until(driver, lambda: len(order(driver)) == 24 and "rows=50" in driver.current_url)
    for column in ("status", "updated", "best", "labels"):
        by(driver, f"run-sort-{column}")[0].click()
        until(driver, lambda column=column: f"sort={column}" in driver.current_url)


def test_a_row_tells_status_loss_and_metric(opened):
    driver = opened("#/summary-manage?rows=50")
    assert row(driver, "./trained").get_attribute("data-status") == "finished"
    assert row(driver, "./old").get_attribute("data-status") == "stalled"
    assert row(driver, "./run00").get_attribute("data-status") == "running"
    assert "0.7 acc" in row(driver, "./trained").text
    assert "finished" in row(driver, "./of mindspore").text


def test_operations_without_data_say_why(opened):
    driver = opened("#/summary-manage?rows=50")
    images = [
        one
        for one in row(driver, "./old").find_elements(By.CSS_SELECTOR, '[data-testid="run-page"]')
        if one.get_attribute("data-path") == "/train-manage/image"
    ]
    operation(driver, "./old", "run-details")
    assert not images[0].is_enabled() and "no data of this kind" in images[0].text
    driver.find_element(By.TAG_NAME, "body").send_keys(Keys.ESCAPE)
    (here,) = driver.window_handles
    operation(driver, "./old", "run-new-tab").click()
    until(driver, lambda: len(driver.window_handles) == 2)
    driver.switch_to.window(next(one for one in driver.window_handles if one != here))
    until(driver, lambda: driver.title.startswith("./old-Dashboard"))
    assert driver.execute_script("return opener") is None
    driver.close()
    driver.switch_to.window(here)
    details = operation(driver, "./run01", "run-details")
    assert not details.is_enabled() and "No lineage" in details.text
    driver.find_element(By.TAG_NAME, "body").send_keys(Keys.ESCAPE)
    delete = operation(driver, "./run01", "run-delete")
    assert not delete.is_enabled() and "being written" in delete.text


def test_parameter_details_are_a_tree(opened):
    driver = opened("#/summary-manage?rows=50")
    operation(driver, "./trained", "run-details").click()
    dialog = until(driver, lambda: by(driver, "parameter-dialog"))[0]
    until(driver, lambda: "optimizer" in dialog.text)
    assert all(
        text in dialog.text for text in ("Adam", "learning_rate 0.1", "acc 0.7", "note x", "batch_size 32")
    )
    driver.find_element(By.TAG_NAME, "body").send_keys(Keys.ESCAPE)
    until(driver, lambda: not by(driver, "parameter-dialog"))


def test_labels_and_the_archive_live_in_the_workspace(opened, listed):
    before = sorted((path, path.stat().st_mtime_ns) for path in listed[1].rglob("*"))
    driver = opened("#/summary-manage?rows=50")
    operation(driver, "./run03", "run-labels").click()
    dialog = until(driver, lambda: by(driver, "label-dialog"))[0]
    dialog.find_element(By.CSS_SELECTOR, '[data-testid="label-input"]').send_keys("best so far, to keep")
    dialog.find_element(By.CSS_SELECTOR, '[data-testid="label-save"]').click()
    chips = lambda: row(driver, "./run03").find_elements(By.CSS_SELECTOR, '[data-testid="run-label"]')
    until(driver, lambda: [one.text for one in chips()] == ["best so far", "to keep"])
    chips()[1].click()
    until(driver, lambda: order(driver) == ["./run03"])
    driver = opened("#/summary-manage?rows=50")
    operation(driver, "./run04", "run-archive").click()
    until(driver, lambda: "./run04" not in order(driver) and by(driver, "show-archived"))
    focused = lambda: driver.switch_to.active_element.get_attribute("data-testid")
    until(driver, lambda: focused() == "run-menu")  # of the run that stands there now
    by(driver, "show-archived")[0].click()
    until(driver, lambda: "./run04" in order(driver))
    operation(driver, "./run04", "run-archive").click()
    until(driver, lambda: not by(driver, "show-archived"))
    assert sorted((path, path.stat().st_mtime_ns) for path in listed[1].rglob("*")) == before


def test_a_run_is_deleted_once_its_name_is_typed(opened, listed):
    gone = write(listed[1] / "unwanted", [scalar("loss", 0, 1.0)])
    os.utime(gone, (time.time() - 900,) * 2)
    driver = opened("#/summary-manage?filter=unwanted")
    operation(driver, "./unwanted", "run-delete").click()
    dialog = until(driver, lambda: by(driver, "delete-dialog"))[0]
    until(driver, lambda: gone.name in dialog.text)
    button = dialog.find_element(By.CSS_SELECTOR, '[data-testid="delete-now"]')
    field = dialog.find_element(By.CSS_SELECTOR, '[data-testid="delete-name"]')
    field.send_keys("./unwante")
    assert not button.is_enabled() and gone.exists()
    field.send_keys("d")
    button.click()
    until(driver, lambda: not order(driver))
    assert not gone.parent.exists()


KINDS = ["scalar", "histogram", "tensor", "graph", "dataset_graph", "image"]


def cards(driver) -> dict:
    return {one.get_attribute("data-kind"): one for one in by(driver, "dashboard-card")}


def test_the_dashboard_shows_a_run_of_mindspore(opened):
    driver = opened("#/summary-manage?rows=50")
    row(driver, "./of mindspore").find_element(By.CSS_SELECTOR, '[data-testid="run-dashboard"]').click()
    until(driver, lambda: list(cards(driver)) == KINDS)
    assert driver.title == "./of mindspore-Dashboard-Mycelia Insight"
    assert "/train-manage/training-dashboard?id=" in driver.current_url
    shows = {
        "scalar": ("scalar-chart", "data-points", "12"), "histogram": ("histogram-chart", "data-steps", "6"),
        "tensor": ("tensor-card", "data-step", "15"), "image": ("image-card", "data-step", "15"),
        "dataset_graph": ("dataset-graph", "data-nodes", "3"), "graph": ("graph-canvas", "data-nodes", "3"),
    }  # fmt: skip
    for kind, (name, attribute, expected) in shows.items():
        part = lambda kind=kind, name=name: by(cards(driver)[kind], name)
        until(driver, lambda part=part, a=attribute, e=expected: part() and part()[0].get_attribute(a) == e)
    assert json.loads(by(cards(driver)["scalar"], "scalar-chart")[0].get_attribute("data-right")) == [
        "loss_op"
    ]
    first = by(cards(driver)["image"], "image-card")[0].get_attribute("data-tag")
    by(driver, "dashboard-switch-image")[0].click()
    until(driver, lambda: by(cards(driver)["image"], "image-card")[0].get_attribute("data-tag") != first)
    by(cards(driver)["histogram"], "dashboard-open")[0].click()
    until(driver, lambda: "/train-manage/histogram" in driver.current_url and by(driver, "histogram-chart"))


def test_a_dashboard_without_data_says_how_to_record_it_and_is_live(opened, listed):
    driver = opened("#/train-manage/training-dashboard?id=./run00")
    until(driver, lambda: list(cards(driver)) == KINDS)
    hint = by(cards(driver)["tensor"], "dashboard-hint")[0]
    hint.find_element(By.TAG_NAME, "summary").click()
    assert "TensorSummary" in hint.text
    chart = until(driver, lambda: by(cards(driver)["scalar"], "scalar-chart"))[0]
    until(driver, lambda: chart.get_attribute("data-points") == "1")
    with path_of(listed[1] / "run00").open("ab") as file:
        file.write(scalar("loss", 1, 0.25, 1e9 + 1))
    until(driver, lambda: chart.get_attribute("data-points") == "2")
    until(driver, lambda: "0.25" in by(driver, "dashboard-facts")[0].text)


@pytest.mark.parametrize(
    "address",
    [
        "#/summary-manage", "#/compare-analysis/scalar", "#/train-manage/scalar?train_id=./of mindspore",
        "#/train-manage/training-dashboard?id=./of mindspore", "#/model-traceback",
    ],
)  # fmt: skip
def test_pages_fit_a_phone(opened, address):
    metrics = {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": True}
    driver = opened()
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        driver = opened(address)
        drawn = "return document.querySelectorAll('[data-testid=run-row], canvas, svg[data-testid]').length"
        until(driver, lambda: driver.execute_script(drawn) > 0)
        assert driver.execute_script("return document.documentElement.scrollWidth") <= 360
        outside = driver.execute_script(
            "const all = document.querySelectorAll('main button, main input, main select, main a');"
            " return [...all].filter((one) => {"
            " const b = one.getBoundingClientRect(); let p = one; while ((p = p.parentElement))"
            " if (/auto|scroll|hidden/.test(getComputedStyle(p).overflowX)) return false;"
            " return b.width > 0 && (b.right > 361 || b.left < -1); }).map((one) => one.outerHTML)"
        )
        assert outside == []
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
