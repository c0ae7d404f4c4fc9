"""The introduction of the graph page, in a real browser: on the first visit, and when it is asked for."""

from __future__ import annotations

import sys
from pathlib import Path
from urllib.parse import quote

from selenium.webdriver import Keys
from selenium.webdriver.common.by import By

sys.path.insert(0, str(Path(__file__).parent))
from test_pages import by, until

GRAPH = "#/train-manage/graph?train_id=" + quote("./of mindspore")


def told(driver) -> list[str]:
    """What it tells of just now."""
    found = driver.find_elements(By.CSS_SELECTOR, ".introduced")
    return [one.get_attribute("data-testid") for one in found]


def forgotten(page):
    driver = page()
    driver.execute_script("localStorage.removeItem('mycelia-insight.introduced.graph')")
    driver = page(GRAPH)
    until(driver, lambda: by(driver, "introduction"))
    return driver


def test_three_steps_on_the_first_visit_only(page):
    driver = forgotten(page)
    assert told(driver) == ["graph-canvas"] and not by(driver, "introduction-back")[0].is_enabled()
    # It covers nothing: the page can be used meanwhile.
    by(driver, "graph-search")[0].send_keys("conv")
    until(driver, lambda: by(driver, "graph-match"))
    by(driver, "introduction-next")[0].click()
    until(driver, lambda: told(driver) == ["graph-search"])
    by(driver, "introduction-next")[0].click()
    until(driver, lambda: told(driver) == ["graph-node-info"])
    assert not by(driver, "introduction-next") and "3 / 3" in by(driver, "introduction")[0].text
    by(driver, "introduction-back")[0].click()
    until(driver, lambda: told(driver) == ["graph-search"])
    by(driver, "introduction-end")[0].click()
    until(driver, lambda: not by(driver, "introduction") and not told(driver))
    driver = page(GRAPH)
    until(driver, lambda: by(driver, "graph-node"))
    assert not by(driver, "introduction")


def test_it_is_asked_for_and_left_from_the_keyboard(page):
    driver = forgotten(page)
    by(driver, "introduction-end")[0].send_keys(Keys.ENTER)
    until(driver, lambda: not by(driver, "introduction"))
    active = lambda: driver.switch_to.active_element
    assert active().get_attribute("data-testid") == "graph-introduction"
    active().send_keys(Keys.ENTER)
    until(driver, lambda: by(driver, "introduction"))
    until(driver, lambda: active().get_attribute("data-testid") == "introduction")
    active().send_keys(Keys.ESCAPE)
    until(driver, lambda: not by(driver, "introduction"))
    assert active().get_attribute("data-testid") == "graph-introduction"
