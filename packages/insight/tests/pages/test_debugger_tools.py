"""Tools of the debugger's page, in a browser: an operator again, as a script, comparisons, expressions."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from selenium.webdriver import Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "service"), str(TESTS / "pages")]
import test_debugger_pages as pages  # noqa: E402
from dump_folders import BAD_STEP, dump_training  # noqa: E402
from test_debugger_pages import BACKBONE, HOME, at, current, data, press, query, text  # noqa: E402
from test_pages import by, until  # noqa: E402
from test_service import Command  # noqa: E402

dumped, sessions, page = pages.dumped, pages.sessions, pages.page  # fixtures
RELU = f"{BACKBONE}/relu-ReLU/ReLU-op0"
SCRIPT = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"


def unfold(driver, name: str) -> None:
    """Opens a part of the page from the keyboard."""
    until(driver, lambda: by(driver, name))
    summary = f'[data-testid="{name}"] > summary'
    driver.find_element(By.CSS_SELECTOR, summary).send_keys(Keys.ENTER)
    until(driver, lambda: by(driver, name)[0].get_attribute("open"))


def type_into(driver, name: str, value: str) -> None:
    box = by(driver, name)[0]
    box.clear()
    box.send_keys(value)


def cells(driver) -> list[list[str]]:
    """What the tables of values on the page show, each by its cells."""
    return driver.execute_script(
        "return [...document.querySelectorAll('[data-testid=tensor-table]')].map((one) => "
        "[...one.querySelectorAll('td')].map((cell) => cell.dataset.odd ?? cell.textContent))"
    )


def refused(chromium) -> None:
    """What the service refused is noted by the browser; nothing else is."""
    noted = [one for one in chromium.get_log("browser") if one["level"] == "SEVERE"]
    assert all(one["source"] == "network" for one in noted)


def test_an_operator_runs_again_from_the_keyboard(page, sessions, chromium):
    driver = page(at(sessions, RELU, step=BAD_STEP))
    unfold(driver, "operator-panel")
    press(driver, "operator-run")
    until(driver, lambda: data(driver, "operator-output", "different") == ["0"])
    assert "as recorded" in text(driver, "operator-output")
    made, recorded = cells(driver)
    assert made == recorded and made[:4] == ["NaN"] * 4
    press(driver, "edit-add")
    until(driver, lambda: by(driver, "edit-value"))
    assert "input 0: float32 [5, 4]" in text(driver, "edit-slot")
    type_into(driver, "edit-index", "[0, 1:3]")
    type_into(driver, "edit-value", "[[-1, Inf]]")
    press(driver, "operator-run")
    until(driver, lambda: data(driver, "operator-output", "different") == ["2"])
    assert cells(driver)[0][:4] == ["NaN", "0", "Infinity", "NaN"]
    framed = "document.querySelectorAll('[data-testid=operator-panel] td.apart').length"
    assert driver.execute_script(f"return {framed}") == 2
    for wrong, told in ((SCRIPT, "but is <img"), ("[1, 2", "A value is"), ("[1, 2, 3]", "does not fit")):
        type_into(driver, "edit-value", wrong)
        press(driver, "operator-run")
        until(driver, lambda told=told: told in text(driver, "operator-failure"))
    press(driver, "step-previous")
    until(driver, lambda: query(driver)["step"] == "2" and not by(driver, "operator-output"))
    assert driver.title != "taken"
    refused(chromium)


def test_an_operator_is_exported(page, sessions, tmp_path, chromium):
    driver = page(at(sessions, RELU, step=1))
    chromium.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)}
    )
    unfold(driver, "operator-panel")
    press(driver, "operator-script")
    until(driver, lambda: (tmp_path / "operator.py").exists())
    assert "debug.run_operator('relu'" in (tmp_path / "operator.py").read_text()


def test_weights_of_a_dump_are_not_edited(page, sessions):
    driver = page(at(sessions, "fc1.weight", step=1))
    until(driver, lambda: by(driver, "tensor-row"))
    assert not by(driver, "weight-panel") and not by(driver, "operator-panel")


@pytest.fixture
def other(dumped, sessions):
    """A second dump, whose step 2 has another number, below a hostile name."""
    base = dumped.base
    name = "lenet/<script>document.title='taken'<" + "b>"
    if not (base / name).exists():
        shutil.copytree(base / "lenet" / "dump", base / name)
        (relu,) = [p for p in (base / name).glob("rank_0/*/*/1/ReLU.*ReLU-op0*.output.0.*.npy")
                   if "Grad" not in p.name]  # fmt: skip
        value = np.load(relu)
        value[0, 0] += 0.25
        relu.unlink()
        np.save(relu, value)
    yield f"./{name}"
    shutil.rmtree(base / name)


def test_two_dumps_are_compared_and_what_differs_is_shown(page, sessions, other):
    driver = page(f"{HOME}&step=2")
    press(driver, "compare-button")
    until(driver, lambda: "outputs differ" in text(driver, "compare-counts"))  # from the step before
    assert data(driver, "comparison", "other") == ["1"]
    until(driver, lambda: other in text(driver, "compare-session"))
    Select(by(driver, "compare-session")[0]).select_by_visible_text(other)
    until(
        driver,
        lambda: (
            data(driver, "comparison", "values") == ["1"] and data(driver, "comparison", "other") == ["2"]
        ),
    )
    heads = driver.find_elements(By.CSS_SELECTOR, '[data-testid="comparison"] th')
    assert heads[-1].text == "What differs" and all(one.text for one in heads)
    (row,) = by(driver, "compare-row")
    assert row.get_attribute("data-node").endswith(RELU) and "1 of 20 values differ" in row.text
    row.find_element(By.TAG_NAME, "button").send_keys(Keys.ENTER)
    until(driver, lambda: "1 of 20 values differ" in text(driver, "tensor-different"))
    assert query(driver)["other"] == "2" and query(driver)["node"].endswith(RELU)
    type_into(driver, "compare-step", "77")
    by(driver, "compare-step")[0].send_keys(Keys.TAB)
    until(driver, lambda: "All 0 outputs" in text(driver, "compare-counts"))
    press(driver, "compare-button")
    until(driver, lambda: not by(driver, "comparison"))
    assert driver.title != "taken"


def test_a_third_session_is_refused_in_words(page, sessions, other, dumped, chromium):
    base = dumped.base
    shutil.copytree(base / "lenet" / "dump", base / "third")
    try:
        driver = page(f"{HOME}&step=2&compare=1")
        for dump in (other, "./third"):
            until(driver, lambda dump=dump: dump in text(driver, "compare-session"))
            Select(by(driver, "compare-session")[0]).select_by_visible_text(dump)
            until(driver, lambda dump=dump: dump == "./third" or query(driver).get("against"))
        until(driver, lambda: "2 sessions already" in text(driver, "compare-failure"))
    finally:
        shutil.rmtree(base / "third")
    refused(chromium)


def test_a_field_with_what_is_no_number_is_told(page, sessions):
    driver = page(f"{HOME}&tab=watchpoints&step=1")
    press(driver, "watch-new")
    until(driver, lambda: by(driver, "watch-condition") and by(driver, "watch-condition")[0].text)
    Select(by(driver, "watch-condition")[0]).select_by_value("tensor_all_zero")
    until(driver, lambda: data(driver, "watch-parameter", "name") == ["zero_percentage_ge"])
    for wrong in ("101", "-1", "1e"):
        type_into(driver, "watch-parameter", wrong)
        press(driver, "watch-save")
        alert = driver.find_element(By.CSS_SELECTOR, "dialog [role=alert]")
        assert "must be a number from 0 to 100" in alert.text
    type_into(driver, "watch-parameter", "99.5")
    press(driver, "watch-save")
    until(driver, lambda: "99.5" in text(driver, "watch"))


def test_an_expression_is_watched_and_a_wrong_one_is_told(page, sessions, chromium):
    driver = page(f"{HOME}&tab=watchpoints&step=1")
    press(driver, "watch-new")
    until(driver, lambda: by(driver, "watch-condition") and by(driver, "watch-condition")[0].text)
    Select(by(driver, "watch-condition")[0]).select_by_value("expression")
    until(driver, lambda: data(driver, "watch-parameter", "name") == ["expression"])
    alert = "[...document.querySelectorAll('dialog [role=alert]')].map((one) => one.textContent).join()"
    for wrong in ("max(", SCRIPT, "import os", "max > 'x'"):
        type_into(driver, "watch-parameter", wrong)
        press(driver, "watch-save")
        until(driver, lambda wrong=wrong: wrong[:8] in driver.execute_script(f"return {alert}"))
        assert ".py" not in driver.execute_script(f"return {alert}")  # no line of the service's own
    type_into(driver, "watch-parameter", "max > 0.01 and count > 10")
    press(driver, "watch-save")
    until(driver, lambda: by(driver, "watch") and not by(driver, "watch-dialog"))
    assert "max > 0.01 and count > 10" in text(driver, "watch")
    press(driver, "watch-recheck")
    until(driver, lambda: RELU.rpartition("/")[2] in text(driver, "hit"))
    assert driver.title != "taken"
    refused(chromium)


def test_a_service_that_is_restarted_is_told_and_found_again(tmp_path, chromium):
    base = tmp_path / "runs"
    dump_training(base / "dump")
    command = Command(tmp_path / "service")
    (tmp_path / "service").mkdir()
    assert command.start(base).returncode == 0
    try:
        chromium.get("about:blank")
        chromium.get(f"http://127.0.0.1:{command.port}/#/offline-debugger?dir=" + quote("./dump"))
        until(chromium, lambda: by(chromium, "step") and by(chromium, "tree-node"))
        press(chromium, "step", step="2")
        until(chromium, lambda: current(chromium) == "2")
        command("stop", "--port", str(command.port))
        until(chromium, lambda: text(chromium, "debugger-failure"))
        assert command.start(base).returncode == 0
        until(chromium, lambda: by(chromium, "step") and not text(chromium, "debugger-failure"))
        press(chromium, "step", step="3")
        until(chromium, lambda: current(chromium) == "3")
        assert command.get("/v1/mindinsight/debugger/sessions")["train_jobs"] == {
            "./dump": query(chromium)["sessionId"]
        }
    finally:
        chromium.get("about:blank")
        command("stop", "--port", str(command.port))
    refused(chromium)
