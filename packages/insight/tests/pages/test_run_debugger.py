"""From a run's menu into its dumps, in a real browser, also when all sessions are in use."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from selenium.webdriver import Keys
from selenium.webdriver.common.by import By

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "service"), str(TESTS / "pages")]
from dump_folders import dump_training  # noqa: E402
from event_files import scalar, write  # noqa: E402
from test_debugger_pages import Sessions  # noqa: E402
from test_pages import by, until  # noqa: E402
from test_run_list import operation, row  # noqa: E402
from test_service import Command  # noqa: E402


@pytest.fixture(scope="module")
def dumped(tmp_path_factory):
    """Runs with two dumps, one and none, and a folder that holds a dump alone."""
    base = tmp_path_factory.mktemp("dumped") / "runs"
    dump_training(base / "two" / "first")
    for copy in ("two/second", "one/dump", "alone/dump"):
        shutil.copytree(base / "two" / "first", base / copy)
    for run in ("two", "one", "none"):
        write(base / run, [scalar("loss", 0, 1.0)])
    made = Command(tmp_path_factory.mktemp("service"))
    assert made.start(base).returncode == 0
    until(None, lambda: len(made.get("/api/v1/runs")["runs"]) == 4)
    yield made
    made("stop", "--port", str(made.port))


@pytest.fixture
def opened(quiet, dumped):
    def open_page(address: str = ""):
        quiet.get("about:blank")
        quiet.get(f"http://127.0.0.1:{dumped.port}/{address}")
        return quiet

    return open_page


def jobs(dumped) -> dict[str, str]:
    """Dump -> number of its session."""
    return dumped.get("/v1/mindinsight/debugger/sessions")["train_jobs"]


def dumps_of(driver, run: str) -> list[str | None]:
    menu = row(driver, run).find_elements(By.CSS_SELECTOR, '[data-testid="run-debugger"]')
    return [one.get_attribute("data-dump") for one in menu]


def test_a_run_leads_to_its_dumps_or_says_why_not(opened):
    driver = opened()
    until(driver, lambda: len(by(driver, "run-row")) == 4)
    assert dumps_of(driver, "./two") == ["./two/first", "./two/second"]
    assert dumps_of(driver, "./alone") == ["./alone/dump"]
    none = operation(driver, "./none", "run-debugger")
    assert not none.is_enabled() and "No dump" in none.text
    driver.find_element(By.TAG_NAME, "body").send_keys(Keys.ESCAPE)
    one = operation(driver, "./one", "run-debugger")
    assert one.text == "Offline debugger"
    one.send_keys(Keys.ENTER)
    until(driver, lambda: "sessionId=" in driver.current_url)
    assert "/offline-debugger?dir=.%2Fone%2Fdump" in driver.current_url
    until(driver, lambda: by(driver, "step-row") or "4" in driver.find_element(By.TAG_NAME, "main").text)


def test_a_session_is_given_up_for_another_when_all_are_in_use(opened, dumped):
    sessions = Sessions(dumped)
    for number in jobs(dumped).values():
        sessions.post(f"/{number}/delete", {})
    for dump in ("./two/first", "./two/second"):
        sessions.post("", {"session_type": "OFFLINE", "dump_dir": dump})
    driver = opened("#/offline-debugger?dir=./one/dump")
    dialog = until(driver, lambda: by(driver, "sessions-dialog"))[0]
    until(driver, lambda: len(by(driver, "session-row")) == 2)
    assert "./one/dump" in dialog.text
    second = next(r for r in by(driver, "session-row") if r.get_attribute("data-dump") == "./two/second")
    second.find_element(By.CSS_SELECTOR, '[data-testid="session-close"]').click()
    until(driver, lambda: "sessionId=" in driver.current_url and not by(driver, "sessions-dialog"))
    assert jobs(dumped).keys() == {"./two/first", "./one/dump"}
    driver = opened("#/offline-debugger?dir=./alone/dump")
    until(driver, lambda: len(by(driver, "session-row")) == 2)
    driver.find_element(By.TAG_NAME, "body").send_keys(Keys.ESCAPE)  # none is given up
    until(driver, lambda: driver.current_url.endswith("#/debugger"))
    assert len(jobs(dumped)) == 2
