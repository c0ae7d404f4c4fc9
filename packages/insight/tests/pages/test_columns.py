"""Widths of columns that are drawn by hand, in a real browser, which keeps them."""

from __future__ import annotations

import sys
from pathlib import Path

from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.common.by import By

sys.path.insert(0, str(Path(__file__).parent))
from test_pages import by, until


def grips(driver, table: str = "run-table") -> list:
    return driver.find_elements(By.CSS_SELECTOR, f'[data-testid="{table}"] [data-testid="column-grip"]')


def widths(driver, table: str = "run-table") -> list[int]:
    heads = f"document.querySelectorAll('[data-testid={table}] th')"
    return driver.execute_script(f"return [...{heads}].map((one) => one.offsetWidth)")


def clear(driver) -> None:
    driver.execute_script("localStorage.removeItem('mycelia-insight.columns.runs')")


def test_widths_are_drawn_and_kept(page):
    driver = page()
    clear(driver)
    driver = page()
    until(driver, lambda: len(by(driver, "run-row")) >= 3 and grips(driver))
    before = widths(driver)
    grip = grips(driver)[1]  # of the path
    assert grip.get_attribute("aria-label") == "Width of the column Summary path"
    ActionChains(driver).move_to_element(grip).click_and_hold().move_by_offset(-70, 0).release().perform()
    until(driver, lambda: abs(widths(driver)[1] - (before[1] - 70)) <= 1)
    drawn = widths(driver)
    assert [abs(a - b) <= 1 for a, b in zip(drawn, before, strict=True)].count(False) == 1
    assert "sort=" not in driver.current_url  # drawing is no click on the name
    driver = page("#/summary-manage?lang=")
    until(driver, lambda: by(driver, "run-row") and abs(widths(driver)[1] - drawn[1]) <= 1)
    assert grips(driver)[1].get_attribute("aria-valuenow") == str(widths(driver)[1])
    # What is wider than its column is cut off, never drawn over the next one.
    cells = "return [...document.querySelectorAll('[data-testid=run-table] td')].every((one) => "
    cells += "getComputedStyle(one).overflowX === 'hidden')"
    assert driver.execute_script(cells)
    ActionChains(driver).double_click(grips(driver)[1]).perform()
    until(driver, lambda: abs(widths(driver)[1] - before[1]) <= 1)


def test_widths_are_drawn_from_the_keyboard(page):
    driver = page()
    clear(driver)
    driver = page()
    until(driver, lambda: by(driver, "run-row") and grips(driver))
    before = widths(driver)
    grip = grips(driver)[2]
    assert grip.get_attribute("role") == "separator" and grip.get_attribute("tabindex") == "0"
    driver.execute_script("arguments[0].focus()", grip)
    grip.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_LEFT)
    until(driver, lambda: widths(driver)[2] == before[2] + 16)
    for _ in range(40):
        grip.send_keys(Keys.ARROW_LEFT)
    assert widths(driver)[2] == 36  # no column goes
    grip.send_keys(Keys.DELETE)
    until(driver, lambda: widths(driver) == before)


def test_what_was_kept_wrongly_is_passed_over(page):
    driver = page()
    for kept in ("no JSON", "[1]", '{"run": "wide", "step": -5, "loss": 1e9}', "null"):
        driver.execute_script("localStorage.setItem('mycelia-insight.columns.runs', arguments[0])", kept)
        driver = page()
        until(driver, lambda driver=driver: len(by(driver, "run-row")) >= 3 and grips(driver))
        table = by(driver, "run-table")[0]
        assert "drawn" not in table.get_attribute("class").split(), kept
    clear(driver)


def test_a_narrow_window_arranges_columns_itself(page):
    driver = page()
    driver.execute_script("localStorage.setItem('mycelia-insight.columns.runs', '{\"run\": 900}')")
    driver = page()
    until(driver, lambda: by(driver, "run-row") and widths(driver)[1] == 900)
    metrics = {"width": 420, "height": 740, "deviceScaleFactor": 1, "mobile": True}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        until(driver, lambda: driver.execute_script("return document.documentElement.scrollWidth") <= 420)
        assert not any(one.is_displayed() for one in grips(driver))
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        clear(driver)
