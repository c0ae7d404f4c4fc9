"""Fingers on a chart, and pages that are refreshed when the user wants it, in a real browser."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.common.by import By

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
from event_files import path_of, scalar
from test_pages import by, chart, new_run, until
from test_scalar_pages import typed

PAGE = "#/train-manage/scalar?train_id=./fingers"


@pytest.fixture(scope="module", autouse=True)
def runs(service, gallery):
    new_run(service, gallery, "fingers", [scalar("loss", s, 1.0 / (s + 1)) for s in range(101)])


@pytest.fixture
def opened(page):
    yield lambda more="": page(PAGE + more)
    page().execute_script("localStorage.clear()")


def fingers(driver, kind: str, *points: tuple[float, float]) -> None:
    """`kind`: touchStart, touchMove or touchEnd, with all fingers that are down."""
    touched = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(points)]
    driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touched})


def area(driver):
    """The place where curves are drawn: left, top, width and height."""
    found = "document.querySelector('[data-testid=scalar-chart] .u-over')"
    until(driver, lambda: driver.execute_script(f"return {found}"))
    driver.execute_script(f"{found}.scrollIntoView({{block: 'center'}})")
    box = driver.execute_script(
        f"const b = {found}.getBoundingClientRect(); return [b.x, b.y, b.width, b.height]"
    )
    return box


def zooms(driver) -> list[list[float]]:
    """The zooms of the chart in the address, the last one is shown."""
    text = driver.execute_script("return new URLSearchParams(location.hash.split('?')[1]).get('zoom')")
    return json.loads(text)["loss"] if text else []


def test_two_fingers_zoom_one_moves_and_a_double_click_goes_back(opened):
    driver = opened()
    one = chart(driver)
    left, top, width, height = area(driver)

    def at(share: float) -> tuple[float, float]:
        return left + share * width, top + height / 2

    # From the middle fifth to three fifths of the width: a third of the axis is seen.
    fingers(driver, "touchStart", at(0.4), at(0.6))
    for step in (0.05, 0.1, 0.15, 0.2):
        fingers(driver, "touchMove", at(0.4 - step), at(0.6 + step))
    assert zooms(driver) == []  # while fingers move, the drawing alone follows
    fingers(driver, "touchEnd")
    until(driver, lambda: one.get_attribute("data-zoom-depth") == "1")
    low, high = zooms(driver)[-1]
    assert low == pytest.approx(33.3, abs=2) and high == pytest.approx(66.7, abs=2)
    until(driver, lambda: int(one.get_attribute("data-points")) <= 40)
    # One finger to the left by a quarter: what is to the right comes.
    fingers(driver, "touchStart", at(0.6))
    for step in (0.1, 0.2, 0.25):
        fingers(driver, "touchMove", at(0.6 - step))
    fingers(driver, "touchEnd")
    until(driver, lambda: one.get_attribute("data-zoom-depth") == "2")
    moved = zooms(driver)[-1]
    assert moved[0] == pytest.approx(low + (high - low) / 4, abs=2)
    assert moved[1] - moved[0] == pytest.approx(high - low, abs=0.5)
    ActionChains(driver).double_click(one.find_element(By.CSS_SELECTOR, ".u-over")).perform()
    until(driver, lambda: one.get_attribute("data-zoom-depth") == "1")
    # Two fingers together again, further than all there is.
    fingers(driver, "touchStart", at(0.05), at(0.95))
    for step in (0.1, 0.2, 0.3, 0.4):
        fingers(driver, "touchMove", at(0.05 + step), at(0.95 - step))
    fingers(driver, "touchEnd")
    until(driver, lambda: one.get_attribute("data-zoom-depth") == "0")
    # One finger on all of the axis shows what lies under it.
    fingers(driver, "touchStart", at(0.2))
    fingers(driver, "touchMove", at(0.5))
    until(driver, lambda: "Step 49" in one.text or "Step 50" in one.text or "Step 51" in one.text)
    fingers(driver, "touchEnd")


def append(gallery, step: int) -> None:
    with path_of(gallery / "fingers").open("ab") as file:
        file.write(scalar("loss", step, 1.0))


def test_pages_are_refreshed_when_it_is_asked_for(opened, gallery):
    driver = opened()

    def points() -> int:
        return int(chart(driver).get_attribute("data-points"))

    by(driver, "live")[0].click()
    assert not by(driver, "interval")
    before = points()
    append(gallery, 101)
    until(driver, lambda: (by(driver, "refresh")[0].click(), points())[1] == before + 1)
    driver = opened()  # the browser keeps that nothing is followed
    chart(driver)
    assert not by(driver, "live")[0].is_selected() and by(driver, "refresh")


def test_pages_are_refreshed_at_an_interval(opened, gallery):
    driver = opened()
    before = int(chart(driver).get_attribute("data-points"))
    by(driver, "interval")[0].send_keys("1", Keys.ENTER)
    append(gallery, 102)
    until(driver, lambda: int(chart(driver).get_attribute("data-points")) == before + 1)
    driver = opened()
    chart(driver)
    assert by(driver, "interval")[0].get_attribute("value") == "1"
    typed(by(driver, "interval")[0], "9999")
    until(driver, lambda: by(driver, "interval")[0].get_attribute("value") == "300")
    typed(by(driver, "interval")[0], "0")
    until(driver, lambda: by(driver, "interval")[0].get_attribute("value") == "")
