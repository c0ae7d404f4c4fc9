"""Pages as a person uses them, in a real browser."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from urllib.parse import quote

from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

sys.path.insert(0, str(Path(__file__).parents[1]))
from event_files import path_of, scalar, write

from mycelia_insight.service.app import PAGES

FAULTS = "#/train-manage/scalar?train_id=" + quote("./faults")


def by(driver, name: str):
    return driver.find_elements(By.CSS_SELECTOR, f'[data-testid="{name}"]')


def until(driver, check):
    return WebDriverWait(driver, 60, poll_frequency=0.05).until(lambda _: check())


def chart(driver, tag: str = "loss"):
    def found():
        charts = [one for one in by(driver, "scalar-chart") if one.get_attribute("data-tag") == tag]
        return charts[0] if charts and charts[0].get_attribute("data-points") != "0" else None

    return until(driver, found)


def new_run(service, gallery, name: str, records) -> None:
    """Writes a run and waits until the service has found it."""
    write(gallery / name, records)
    until(None, lambda: name in [row["run"] for row in service.get("/api/v1/runs")["runs"]])


def test_the_list_shows_and_filters_runs(page):
    driver = page()
    until(driver, lambda: len(by(driver, "run-row")) >= 3)
    assert driver.title == "Summary list-Mycelia Insight"
    by(driver, "run-filter")[0].send_keys("/^f/")
    until(driver, lambda: [row.get_attribute("data-run") for row in by(driver, "run-row")] == ["./faults"])
    assert "filter=%2F%5Ef%2F" in driver.current_url
    by(driver, "run-row")[0].find_element(By.LINK_TEXT, "Scalars").click()
    assert chart(driver)


def test_names_from_files_are_text(page):
    driver = page(FAULTS)
    chart(driver)
    assert "<script>" in driver.find_element(By.TAG_NAME, "main").text
    assert driver.title == "./faults-Scalars-Mycelia Insight"


def test_curves_do_not_wait_for_the_library_of_other_charts(page):
    script = "return performance.getEntriesByType('resource').some(one => one.name.includes('echarts'))"
    driver = page(FAULTS)
    chart(driver)
    assert not driver.execute_script(script)
    driver = page("#/train-manage/histogram?train_id=" + quote("./of mindspore"))
    until(driver, lambda: driver.execute_script(script))


def test_a_chart_zooms_at_full_resolution_and_back(page):
    driver = page(FAULTS)
    one = chart(driver)
    # Of each column of pixels at most four points, beside what is not finite.
    assert 600 < int(one.get_attribute("data-points")) <= 3000
    canvas = one.find_element(By.CSS_SELECTOR, ".u-over")
    drag = ActionChains(driver).move_to_element_with_offset(canvas, -40, 0).click_and_hold()
    drag.move_by_offset(60, 0).release().perform()
    until(driver, lambda: one.get_attribute("data-zoom-depth") == "1")
    until(driver, lambda: 100 < int(one.get_attribute("data-points")) < 600)
    one.find_element(By.CSS_SELECTOR, '[data-testid="scalar-stepback"]').click()
    until(driver, lambda: one.get_attribute("data-zoom-depth") == "0")


def test_axis_smoothing_and_tags_are_in_the_address(page):
    driver = page(FAULTS)
    chart(driver)
    by(driver, "xaxis-relative")[0].click()
    box = by(driver, "smoothing-input")[0]
    box.send_keys(Keys.CONTROL, "a")
    box.send_keys("0.6", Keys.ENTER)
    hidden = next(b for b in by(driver, "tag-checkbox") if b.get_attribute("data-tag") != "loss")
    hidden.click()
    until(driver, lambda: len(by(driver, "scalar-chart")) == 1)
    address = driver.current_url
    driver = page(address[address.index("#") :])
    chart(driver)
    assert len(by(driver, "scalar-chart")) == 1
    assert by(driver, "smoothing-input")[0].get_property("value") == "0.6"
    assert by(driver, "xaxis-relative")[0].is_selected()


def test_a_logarithmic_axis_is_for_positive_values(page, service, gallery):
    values = {"signs": range(-5, 5), "plus": range(1, 11)}
    records = [scalar(tag, step, value) for tag, of in values.items() for step, value in enumerate(of)]
    new_run(service, gallery, "signs", records)
    driver = page("#/train-manage/scalar?train_id=./signs")
    for tag, scale in (("signs", "linear"), ("plus", "log")):
        one = chart(driver, tag)
        one.find_element(By.CSS_SELECTOR, '[data-testid="scalar-log"]').click()
        until(driver, lambda one=one, scale=scale: one.get_attribute("data-scale") == scale)
        assert ("not positive" in one.text) == (scale == "linear")


def test_values_are_drawn_while_they_are_written(page, service, gallery):
    new_run(service, gallery, "live", [scalar("loss", 0, 1.0)])
    driver = page("#/train-manage/scalar?train_id=./live")
    one = chart(driver)
    for step in range(1, 4):
        with path_of(gallery / "live").open("ab") as file:
            file.write(scalar("loss", step, 1.0 / step))
        until(driver, lambda step=step: one.get_attribute("data-points") == str(step + 1))


def test_themes_and_languages(page):
    driver = page()
    until(driver, lambda: by(driver, "run-row"))
    theme, language = by(driver, "theme")[0], by(driver, "language")[0]
    theme.send_keys("Dark")
    until(driver, lambda: "dark" in driver.find_element(By.TAG_NAME, "html").get_attribute("class"))
    language.send_keys("中文")
    until(driver, lambda: "训练列表" in driver.find_element(By.TAG_NAME, "main").text)
    driver = page()  # the browser keeps both
    until(driver, lambda: "训练列表" in driver.find_element(By.TAG_NAME, "main").text)
    driver.execute_script("localStorage.clear()")


def test_the_link_of_the_page_is_seen_where_links_have_no_room(page):
    metrics = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    driver = page()
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    seen = (
        "return [...document.querySelectorAll('nav [aria-current]')].map((a) => a.getBoundingClientRect())"
        ".map((r) => r.width > 0 && r.left >= 0 && r.right <= innerWidth)"
    )
    try:
        driver = page("#/debugger")
        until(driver, lambda: driver.execute_script(seen) == [True])
        driver = page("#/train-manage/data-map?train_id=" + quote("./of mindspore"))
        until(driver, lambda: driver.execute_script(seen) == [True])
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_nothing_is_asked_of_any_other_host(page, service):
    driver = page(FAULTS)
    driver.get_log("performance")
    driver = page(FAULTS)
    chart(driver)
    asked = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    urls = {m["params"]["request"]["url"] for m in asked if m["method"] == "Network.requestWillBeSent"}
    assert urls and all(url.startswith(f"http://127.0.0.1:{service.port}/") for url in urls)


def test_licences_of_what_the_pages_contain_come_with_them():
    needed = json.loads((Path(__file__).parents[2] / "front" / "package.json").read_text())["dependencies"]
    text = (PAGES / "licenses.txt").read_text()
    for name in (*needed, "svelte"):
        assert f"{name} " in text, name
    assert "Eclipse Public License" in text and text.count("Permission is hereby granted") >= 2
