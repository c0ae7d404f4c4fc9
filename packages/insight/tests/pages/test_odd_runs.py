"""Runs that nobody makes on purpose, on the pages: 10,000 tags, names of any length, times that are none."""

from __future__ import annotations

import sys
from pathlib import Path
from urllib.parse import quote

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
from event_files import scalar, write
from test_pages import by, until
from test_service import Command

LONG = "n" * 240


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    folder = tmp_path_factory.mktemp("odd")
    base = folder / "runs"
    write(
        base / "many",
        [scalar(f"layer{i // 100}/tag{i}", 0, i, 1e9) for i in range(10_000)],
    )
    write(base / LONG, [scalar(tag, 0, 1.0, 1e300) for tag in ("", " ", "x" * 5000)])
    made = Command(folder)
    assert made.start(base).returncode == 0
    until(None, lambda: len(made.get("/api/v1/runs/many/tags")["kinds"].get("scalar", [])) == 10_000)
    until(None, lambda: len(made.get("/api/v1/runs")["runs"]) == 2)
    yield made
    made("stop", "--port", str(made.port))


@pytest.fixture
def opened(quiet, odd):
    def open_page(address: str):
        quiet.get("about:blank")
        quiet.get(f"http://127.0.0.1:{odd.port}/{address}")
        return quiet

    return open_page


def press(driver, name: str) -> None:
    """Clicks what a test is about, wherever charts that come later have moved it."""
    until(driver, lambda: by(driver, name))
    driver.execute_script(f"document.querySelector('[data-testid={name}]').click()")


def test_of_ten_thousand_tags_some_are_listed_and_any_is_found(opened):
    driver = opened("#/train-manage/scalar?train_id=./many")
    until(driver, lambda: len(by(driver, "scalar-chart")) == 24)
    assert len(by(driver, "tag-checkbox")) == 100
    press(driver, "tag-more")
    until(driver, lambda: len(by(driver, "tag-checkbox")) == 600)
    press(driver, "tag-all")  # no tag at all
    until(driver, lambda: not by(driver, "scalar-chart"))
    by(driver, "tag-search")[0].send_keys("TAG9999")
    until(driver, lambda: len(by(driver, "tag-checkbox")) == 1)
    press(driver, "tag-checkbox")
    until(driver, lambda: len(by(driver, "scalar-chart")) == 1)
    assert len(driver.current_url) < 200, "the address says what is shown, not what is not"
    driver = opened(driver.current_url[driver.current_url.index("#") :])
    until(driver, lambda: by(driver, "scalar-chart"))
    assert [one.get_attribute("data-tag") for one in by(driver, "scalar-chart")] == ["layer99/tag9999"]
    press(driver, "tag-all")
    until(driver, lambda: len(by(driver, "scalar-chart")) == 24)
    press(driver, "scalar-synthesis")
    until(driver, lambda: by(driver, "tags-left"))
    assert by(driver, "tags-left")[0].text.startswith("The first 200 of 10,000 tags")


def test_names_without_letters_or_without_end_have_their_place(opened):
    driver = opened("#/summary-manage")
    row = until(driver, lambda: [r for r in by(driver, "run-row") if LONG in r.get_attribute("data-run")])[0]
    assert row.size["height"] < 120 and "Invalid" not in row.text
    driver = opened(f"#/train-manage/scalar?train_id={quote('./' + LONG)}")
    until(driver, lambda: len(by(driver, "scalar-chart")) == 3)
    assert {one.size["height"] < 500 for one in by(driver, "scalar-chart")} == {True}
    heads = driver.execute_script(
        "return [...document.querySelectorAll('section h2')].map((h) => h.textContent)"
    )
    assert heads[:2] == ['""', '" "']
    assert driver.execute_script("return document.documentElement.scrollWidth <= innerWidth")


def test_a_run_that_is_not_there_is_said_to_be_none(opened):
    driver = opened("#/train-manage/scalar?train_id=./gone")
    until(driver, lambda: "does not exist" in driver.find_element("tag name", "main").text)
    assert "Reading" not in driver.find_element("tag name", "main").text
    driver.get_log("browser")  # the refusal, which the browser notes
