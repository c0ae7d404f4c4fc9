"""Scalars as a person looks at them: tags that share a chart, thresholds, axes, smoothers, files, tables."""

from __future__ import annotations

import csv
import json
import math
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
from event_files import scalar
from test_pages import by, chart, new_run, until

from mycelia_insight.runs.alerts import Alerts

PAGE = "#/train-manage/scalar?train_id=./curves"
TAGS = ["loss", "acc", "grad/a", "grad/b", "epoch"]


@pytest.fixture(scope="module")
def curves(service, gallery):
    def value(tag: str, step: int) -> float:
        return {"loss": 1 / (step + 1), "acc": step / 100, "epoch": step // 10}.get(tag, math.sin(step))

    new_run(
        service, gallery, "curves", [scalar(t, s, value(t, s), 1e9 + s) for s in range(100) for t in TAGS]
    )
    until(None, lambda: len(service.get("/api/v1/runs/curves/tags")["kinds"]["scalar"]) == len(TAGS))


@pytest.fixture
def opened(page, curves):
    yield lambda more="": page(PAGE + more)
    page().execute_script("localStorage.clear()")


def part(element, name: str):
    return element.find_element(By.CSS_SELECTOR, f'[data-testid="{name}"]')


def typed(element, text: str) -> None:
    element.send_keys(Keys.CONTROL, "a")
    element.send_keys(text, Keys.ENTER)


def again(driver, opened):
    """The page that the address of this one opens."""
    return opened(driver.current_url.partition("curves")[2])


def test_any_number_of_tags_share_a_chart_with_two_axes(opened):
    driver = opened()
    until(driver, lambda: len(by(driver, "scalar-chart")) == len(TAGS))
    by(driver, "scalar-synthesis")[0].click()
    (one,) = until(driver, lambda: len(by(driver, "scalar-chart")) == 1 and by(driver, "scalar-chart"))
    until(driver, lambda: one.get_attribute("data-points") == str(100 * len(TAGS)))
    assert json.loads(one.get_attribute("data-right")) == []
    for button in by(driver, "synthesis-right"):
        if button.get_attribute("data-tag") in ("acc", "epoch"):
            button.click()
    until(driver, lambda: json.loads(one.get_attribute("data-right")) == ["acc", "epoch"])
    until(driver, lambda: len(one.find_elements(By.CSS_SELECTOR, ".u-axis")) == 3)
    hidden = next(box for box in by(driver, "tag-checkbox") if box.get_attribute("data-tag") == "epoch")
    hidden.click()
    driver = again(driver, opened)
    (one,) = until(driver, lambda: len(by(driver, "scalar-chart")) == 1 and by(driver, "scalar-chart"))
    until(driver, lambda: one.get_attribute("data-points") == "400")
    assert json.loads(one.get_attribute("data-tags")) == TAGS[:-1]
    by(driver, "scalar-synthesis")[0].click()  # back to charts of their own
    until(driver, lambda: len(by(driver, "scalar-chart")) == 4)


def test_two_tags_have_an_axis_each(opened):
    hide = quote(json.dumps(TAGS[2:]))
    driver = opened(f"&synthesis=1&hide={hide}")
    (one,) = until(driver, lambda: by(driver, "scalar-chart"))
    until(driver, lambda: json.loads(one.get_attribute("data-right")) == ["acc"])


def test_a_pattern_groups_tags(opened):
    driver = opened()
    chart(driver)
    typed(by(driver, "tag-group")[0], "^([^/]*)/")
    names = lambda: [one.text.split()[0] for one in by(driver, "tag-group-name")]
    until(driver, lambda: names() == ["grad", "others"])
    by(driver, "group-together")[0].click()
    until(
        driver,
        lambda: [c.get_attribute("data-tag") for c in by(driver, "scalar-chart")] == ["grad", "others"],
    )
    typed(by(driver, "tag-group")[0], "(")
    until(driver, lambda: by(driver, "tag-group")[0].get_attribute("aria-invalid") == "true")
    until(driver, lambda: len(by(driver, "scalar-chart")) == len(TAGS))


def threshold(driver, tag: str, conditions, joined: str = "", all_tags: bool = False):
    part(chart(driver, tag), "scalar-threshold").click()
    dialog = until(driver, lambda: by(driver, "threshold-dialog"))[0]
    Select(part(dialog, "threshold-joined")).select_by_value(joined)
    for suffix, (sign, text) in zip(("", "-2"), conditions, strict=False):
        Select(part(dialog, f"threshold-sign{suffix}")).select_by_value(sign)
        field = part(dialog, f"threshold-value{suffix}")
        field.clear()
        field.send_keys(text)
    if all_tags:
        part(dialog, "threshold-all").click()
    part(dialog, "threshold-apply").click()
    return dialog


def red(driver, card) -> int:
    """Pixels in the colour of alarms."""
    return driver.execute_script(
        "const c = arguments[0].querySelector('canvas'), d = c.getContext('2d').getImageData(0, 0, c.width,"
        " c.height).data; let n = 0; for (let i = 0; i < d.length; i += 4)"
        " n += d[i] > 150 && d[i + 1] < 90 && d[i + 2] < 90 && d[i + 3] > 200; return n;",
        card,
    )


def test_points_that_meet_a_threshold_are_red(opened):
    driver = opened()
    one = chart(driver, "acc")
    assert red(driver, one) == 0
    threshold(driver, "acc", [(">", "0.895"), ("<", "0.105")], "or")
    until(driver, lambda: chart(driver, "acc").get_attribute("data-alarms") == "21")
    until(driver, lambda: red(driver, chart(driver, "acc")) > 50)
    driver = again(driver, opened)  # the browser keeps it, for this tag of this run
    until(driver, lambda: chart(driver, "acc").get_attribute("data-threshold") == "> 0.895 or < 0.105")
    assert chart(driver, "loss").get_attribute("data-alarms") == "0"
    threshold(driver, "acc", [(">", "0.3"), ("<", "0.4")], "and", all_tags=True)
    until(driver, lambda: chart(driver, "acc").get_attribute("data-alarms") == "9")
    assert {chart(driver, tag).get_attribute("data-threshold") for tag in TAGS} == {"> 0.3 and < 0.4"}
    part(chart(driver, "acc"), "scalar-threshold").click()
    dialog = until(driver, lambda: by(driver, "threshold-dialog"))[0]
    part(dialog, "threshold-delete").click()
    assert chart(driver, "acc").get_attribute("data-threshold")  # it is asked first
    part(dialog, "threshold-delete-yes").click()
    until(driver, lambda: chart(driver, "acc").get_attribute("data-threshold") is None)
    assert chart(driver, "loss").get_attribute("data-threshold")


def test_a_threshold_is_kept_as_an_alert(opened, service, page, gallery):
    for known in (kept := Alerts(str(service.folder / "workspace"), str(gallery))).all():
        kept.remove(known.id)
    driver = opened()
    part(chart(driver, "acc"), "scalar-threshold").click()
    dialog = until(driver, lambda: by(driver, "threshold-dialog"))[0]
    part(dialog, "threshold-value").send_keys("0.9")
    part(dialog, "threshold-keep").click()
    part(dialog, "threshold-apply").click()
    until(driver, lambda: not by(driver, "threshold-dialog"))
    (alert,) = service.get("/api/v1/alerts")["alerts"]
    assert (alert["rule"], alert["hits"][0]["points"]) == ("acc > 0.9", 9)
    driver = page("#/summary-manage")
    until(driver, lambda: by(driver, "alerts-met"))[0].click()
    assert until(driver, lambda: by(driver, "alert-hit"))[0].text == "./curves"
    typed(by(driver, "alert-runs")[0], "no such")
    typed(by(driver, "alert-rule")[0], "grad/* not finite")
    rows = "return [...document.querySelectorAll('[data-testid=alert-row]')].map((one) => one.dataset.hits)"
    until(driver, lambda: driver.execute_script(rows) == ["1", "0"])
    typed(by(driver, "alert-rule")[0], "loss > 2 and < 1")
    told = "return document.querySelector('[data-testid=alert-refused]')?.textContent ?? ''"
    until(driver, lambda: "no value" in driver.execute_script(told))
    noted: list[dict] = []  # the browser notes the refusal, too, sooner or later
    until(driver, lambda: noted.extend(driver.get_log("browser")) or noted)
    assert {one["source"] for one in noted} == {"network"}
    # A question that failed is told until one is answered; a refusal, until the next change.
    driver.execute_script("window.own = fetch; window.fetch = () => Promise.reject(new Error('gone'))")
    by(driver, "refresh")[0].click()
    failed = "return document.querySelector('[data-testid=alert-failure]')?.textContent ?? ''"
    until(driver, lambda: "gone" in driver.execute_script(failed))
    driver.execute_script("window.fetch = window.own")
    by(driver, "refresh")[0].click()
    until(driver, lambda: not by(driver, "alert-failure"))
    assert by(driver, "alert-refused")
    by(driver, "alert-remove")[0].click()
    until(driver, lambda: len(by(driver, "alert-row")) == 1)
    assert not by(driver, "alert-refused")
    assert [one["rule"] for one in service.get("/api/v1/alerts")["alerts"]] == ["grad/* not finite"]
    by(driver, "alert-remove")[0].click()
    until(driver, lambda: not by(driver, "alert-row"))


@pytest.mark.parametrize("width", [1180, 1440])
def test_the_header_is_one_row(opened, width):
    driver = opened()
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False},
    )
    try:
        rows = driver.execute_script(
            "return [...document.querySelector('header').children].map((one) => one.getBoundingClientRect())"
            ".map((r) => r.top + r.height / 2)"
        )
        assert len(rows) == 3 and max(rows) - min(rows) < 3
        assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize(
    "conditions, joined, why",
    [
        ([(">", "")], "", "needs a number"),
        ([(">", "x")], "", "needs a number"),
        ([(">", "1"), (">", "2")], "and", "same sign"),
        ([(">", "2"), ("<", "1")], "and", "No value"),
        ([(">", "1"), ("<", "1")], "and", "No value"),
        ([("<", "2"), (">", "1")], "or", "Every value"),
    ],
)
def test_thresholds_without_sense_are_refused(opened, conditions, joined, why):
    driver = opened()
    dialog = threshold(driver, "acc", conditions, joined)
    assert why in part(dialog, "threshold-refused").text
    part(dialog, "dialog-close").click()
    assert chart(driver, "acc").get_attribute("data-threshold") is None


def test_the_same_threshold_twice_is_refused(opened):
    driver = opened()
    threshold(driver, "acc", [(">", "0.5")])
    until(driver, lambda: chart(driver, "acc").get_attribute("data-threshold") == "> 0.5")
    dialog = threshold(driver, "acc", [(">", "0.50")])
    assert "set already" in part(dialog, "threshold-refused").text


def test_another_scalar_and_logarithms_are_axes(opened):
    driver = opened("&table=1")
    chart(driver)
    Select(by(driver, "xaxis-tag")[0]).select_by_value("epoch")
    until(driver, lambda: "x=epoch" in driver.current_url)
    one = chart(driver)
    ActionChains(driver).move_to_element(one.find_element(By.CSS_SELECTOR, ".u-over")).perform()
    until(driver, lambda: "epoch 4" in one.text or "epoch 5" in one.text)
    by(driver, "xaxis-step")[0].click()
    by(driver, "xaxis-log")[0].click()
    until(driver, lambda: chart(driver).get_attribute("data-x-scale") == "log")
    driver = again(driver, opened)
    until(driver, lambda: chart(driver).get_attribute("data-x-scale") == "log")
    rows = part(chart(driver), "scalar-table").text.split("\n")
    assert rows[-1] == "100 0.01 at step 99 1 at step 0 0.01 at step 99"


def test_smoothers_and_outliers(opened):
    driver = opened()
    chart(driver)
    Select(by(driver, "smoother")[0]).select_by_value("gaussian")
    typed(by(driver, "smoothing-input")[0], "20")
    by(driver, "scalar-clip")[0].click()
    until(
        driver, lambda: {"smoother=gaussian", "smoothing=20", "clip=1"} <= set(driver.current_url.split("&"))
    )
    one = chart(driver)
    ActionChains(driver).move_to_element(one.find_element(By.CSS_SELECTOR, ".u-over")).perform()
    until(driver, lambda: "Smoothed" in one.text)


def test_charts_share_the_pointer_and_obey_keys(opened):
    driver = opened()
    one, other = chart(driver, "loss"), chart(driver, "acc")
    ActionChains(driver).move_to_element(one.find_element(By.CSS_SELECTOR, ".u-over")).perform()
    until(driver, lambda: "Step 49" in one.text or "Step 50" in one.text)
    until(driver, lambda: "Step 49" in other.text or "Step 50" in other.text)
    host = one.find_element(By.CSS_SELECTOR, '[role="application"]')
    driver.execute_script("arguments[0].focus({focusVisible: true})", host)
    assert driver.execute_script("return getComputedStyle(arguments[0]).outlineStyle", host) != "none"
    before = int(one.text.partition("Step ")[2].split()[0])
    host.send_keys(Keys.ARROW_RIGHT)
    until(driver, lambda: f"Step {before + 1}" in one.text)
    host.send_keys("+")
    until(driver, lambda: one.get_attribute("data-zoom-depth") == "1")
    until(driver, lambda: 40 <= int(one.get_attribute("data-points")) <= 52)
    driver = again(driver, opened)
    until(driver, lambda: chart(driver).get_attribute("data-zoom-depth") == "1")
    chart(driver).find_element(By.CSS_SELECTOR, '[role="application"]').send_keys("0")
    until(driver, lambda: chart(driver).get_attribute("data-zoom-depth") == "0")


def test_pinned_charts_come_first_and_a_full_one_is_in_the_address(opened):
    driver = opened()
    chart(driver)
    part(chart(driver, "grad/a"), "scalar-pin").click()
    order = lambda: [one.get_attribute("data-tag") for one in by(driver, "scalar-chart")]
    until(driver, lambda: order()[0] == "grad/a")
    part(chart(driver, "acc"), "scalar-fullscreen").click()
    driver = again(driver, opened)
    until(driver, lambda: chart(driver, "acc").size["width"] > 1100)
    assert order()[0] == "grad/a"
    driver.find_element(By.TAG_NAME, "body").send_keys(Keys.ESCAPE)
    until(driver, lambda: chart(driver, "acc").size["width"] < 900)


def test_a_chart_is_saved_as_a_file(opened, tmp_path):
    driver = opened()
    chart(driver)
    driver.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)}
    )

    def saved(tag: str, ending: str) -> bytes:
        part(chart(driver, tag), "scalar-save").click()
        until(driver, lambda: part(chart(driver, tag), f"download-{ending}").is_displayed())
        part(chart(driver, tag), f"download-{ending}").click()
        path = until(driver, lambda: next(tmp_path.glob(f"*{tag}*.{ending}"), None))
        until(driver, lambda: path.stat().st_size > 0)
        return path.read_bytes()

    rows = list(csv.DictReader(saved("acc", "csv").decode().splitlines()))
    assert [float(row["value"]) for row in rows] == pytest.approx([s / 100 for s in range(100)])
    assert rows[3]["wall_time"] == "1000000003.0"
    drawing = saved("loss", "svg").decode()
    assert drawing.startswith("<svg ") and "loss" in drawing and drawing.count("L") > 90
    assert saved("epoch", "png").startswith(b"\x89PNG")


def test_many_charts_stand_on_pages(page, service, gallery):
    names = [f"tag{i:03}" for i in range(30)]
    new_run(service, gallery, "manytags", [scalar(name, 0, 1.0) for name in names])
    driver = page("#/train-manage/scalar?train_id=./manytags&rows=12")
    order = lambda: [one.get_attribute("data-tag") for one in by(driver, "scalar-chart")]
    until(driver, lambda: order() == names[:12])
    by(driver, "page-next")[0].click()
    until(driver, lambda: order() == names[12:24])
    assert all(name in driver.find_element(By.TAG_NAME, "body").text for name in names)
