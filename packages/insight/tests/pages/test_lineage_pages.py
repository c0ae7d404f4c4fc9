"""Lineage as a person looks at it: lines, choices on axes, sorting, notes, queries, targets."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from urllib.parse import quote, unquote

import pytest
from selenium.webdriver import Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "service"))
from charts import on_axis, place, pointed, series, texts, values
from test_lineages import lineage_run
from test_pages import by, until
from test_touch_and_refresh import fingers


@pytest.fixture(scope="module")
def runs(gallery, service):
    for i in range(6):
        lineage_run(
            gallery / f"lin{i}",
            10.0**-i,
            0.1 * (i + 1),
            "Adam" if i % 2 else SCRIPT,
            1 - i / 10,
            note=SCRIPT,
            size=i,
        )
    until(None, lambda: len(service.get("/api/v1/lineages")["rows"]) >= 7)
    return [f"./lin{i}" for i in range(6)]


def order(driver, name: str = "lineage-row") -> list[str]:
    return driver.execute_script(
        "return [...document.querySelectorAll(`[data-testid=${arguments[0]}]`)].map(r => r.dataset.run)",
        name,
    )


def opened(page, address: str):
    driver = page(address)
    until(driver, lambda: len(by(driver, "lineage-row")) >= 1)
    return driver


def typed(driver, element, text: str) -> None:
    element.send_keys(Keys.CONTROL, "a")
    element.send_keys(text, Keys.ENTER)


SCRIPT = "<script>document.title='taken'</script>"
MODEL = "#/model-traceback?query=run+contains+'lin'"


def test_rows_are_sorted_and_queried(page, runs):
    driver = opened(page, MODEL)
    by(driver, "lineage-sort-loss")[0].click()
    until(driver, lambda: order(driver) == runs)
    by(driver, "lineage-sort-loss")[0].click()
    until(driver, lambda: order(driver) == runs[::-1])
    assert "sort=-loss" in driver.current_url
    typed(driver, by(driver, "query-line")[0], 'loss < 0.35 and optimizer == "Adam"')
    until(driver, lambda: order(driver) == ["./lin1"])
    typed(driver, by(driver, "query-line")[0], "loss <")
    until(driver, lambda: by(driver, "query-error"))
    assert "at character 7" in by(driver, "query-error")[0].text
    driver.get_log("browser")  # the refused query


def test_a_drag_along_an_axis_chooses_and_a_click_gives_back(page, runs):
    driver = opened(page, MODEL)
    lines = by(driver, "lineage-parallel")[0]
    assert (lines.get_attribute("data-lines"), lines.get_attribute("data-chosen")) == ("6", "6")
    chart = by(driver, "lineage-lines")[0]
    assert len(series(driver, chart)[0]["data"]) == 6
    (x, top), (_, bottom) = (on_axis(driver, chart, loss, "loss") for loss in (0.25, 0.1))
    drag = pointed(driver, chart, [x, top]).click_and_hold()
    drag.move_by_offset(0, round(bottom - top) + 4).release().perform()
    until(driver, lambda: sorted(order(driver)) == runs[:2])  # the lowest two losses
    assert by(driver, "lineage-parallel")[0].get_attribute("data-chosen") == "2"
    names = lambda: [sorted(mark["name"] for mark in one["data"]) for one in series(driver, chart)]
    until(driver, lambda: names() == [["lin0", "lin1"], ["lin2", "lin3", "lin4", "lin5"]])
    address = driver.current_url
    driver = opened(page, address[address.index("#") :])
    until(driver, lambda: sorted(order(driver)) == runs[:2])
    chart = by(driver, "lineage-lines")[0]
    # The choice is drawn where it was made, and a click on it gives it back.
    covers = "return arguments[0].chart.getZr().storage.getDisplayList().filter(one => one.name === 'main')"
    covers += ".map(one => { const box = one.getBoundingRect().clone(); box.applyTransform(one.transform); "
    covers += "return [box.x, box.x + box.width, box.y, box.y + box.height] })"
    ((left, right, high, low),) = until(
        driver, lambda: series(driver, chart) and driver.execute_script(covers, chart)
    )
    assert left < x < right and abs(high - top) < 3 and abs(low - bottom) < 3
    pointed(driver, chart, [x, (high + low) / 2]).click().perform()
    until(driver, lambda: len(order(driver)) == 6 and "brush" not in driver.current_url)
    until(driver, lambda: driver.execute_script(covers, chart) == [])


@pytest.fixture
def touched(chromium):
    """The browser has a screen for fingers meanwhile."""
    chromium.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})
    yield
    chromium.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})


def test_a_finger_chooses_on_an_axis_and_scrolls_beside_it(page, runs, touched):
    driver = opened(page, MODEL)
    chart = by(driver, "lineage-lines")[0]
    (x, top), (_, bottom) = (on_axis(driver, chart, loss, "loss") for loss in (0.25, 0.1))
    box = driver.execute_script("const b = arguments[0].getBoundingClientRect(); return [b.x, b.y]", chart)

    def drag(x: float, start: float, end: float) -> None:
        at = lambda y: (box[0] + x, box[1] + y)
        fingers(driver, "touchStart", at(start))
        for step in range(1, 9):
            fingers(driver, "touchMove", at(start + (end - start) * step / 8))
        fingers(driver, "touchEnd")

    drag(x, top, bottom + 4)
    until(driver, lambda: sorted(order(driver)) == runs[:2])
    assert driver.execute_script("return scrollY") == 0
    address = driver.current_url
    drag(x + 40, bottom, top - 60)
    until(driver, lambda: driver.execute_script("return scrollY") > 20)
    assert driver.current_url == address


def test_choices_on_categories_and_lines_that_end(page, gallery, service):
    for i, name in enumerate("abcd"):
        more = {"seed": i} if i != 1 else {}
        lineage_run(gallery / f"ends{i}", 0.1, 0.1 + i / 10, name, 0.5, **more, tries=i if i else "none")
    until(None, lambda: len(service.get("/api/v1/lineages?query=run+contains+'ends'")["rows"]) == 4)
    columns = quote(json.dumps(["loss", "optimizer", "user_defined/seed", "user_defined/tries"]))
    driver = opened(page, f"#/model-traceback?query=run+contains+'ends'&columns={columns}&brush=")
    chart = by(driver, "lineage-lines")[0]
    # The run without a seed is a line before that axis and one behind it.
    marks = lambda: [one["name"] for one in series(driver, chart)[0]["data"]]
    until(driver, lambda: sorted(marks()) == ["ends0", "ends1", "ends1", "ends2", "ends3"])
    assert sorted(value.count("-") for value in values(driver, chart, "chosen")) == [0, 0, 0, 2, 3]
    # By keyboard, from run to run; numbers and texts on one axis are not chosen among.
    chart.send_keys(Keys.ARROW_RIGHT)
    said = chart.find_element(By.XPATH, "following-sibling::*[@aria-live]")
    until(driver, lambda: "./ends0 loss: 0.1" in " ".join(said.get_property("textContent").split()))
    chart.send_keys(Keys.ESCAPE)
    for axis in ("user_defined/tries", "optimizer"):
        (x, top), (_, bottom) = (on_axis(driver, chart, at, axis) for at in (1.4, 0.6))
        drag = pointed(driver, chart, [x, top]).click_and_hold()
        drag.move_by_offset(0, round(bottom - top)).release().perform()
    until(driver, lambda: order(driver) == ["./ends1"])
    assert "optimizer" in unquote(driver.current_url.split("brush=")[1])
    assert "tries" not in unquote(driver.current_url.split("brush=")[1])


def test_logarithmic_axes_and_columns(page, runs):
    driver = opened(page, MODEL + "&columns=%5B%22learning_rate%22%2C%22loss%22%5D")
    (box,) = [one for one in by(driver, "lineage-log") if one.get_attribute("data-column") == "learning_rate"]
    box.click()

    def scale() -> str:
        axes = {one.get_attribute("data-column"): one for one in by(driver, "lineage-axis")}
        assert set(axes) == {"learning_rate", "loss"}
        return axes["learning_rate"].get_attribute("data-scale")

    until(driver, lambda: scale() == "log")


def test_rows_are_hidden_and_shown(page, runs):
    driver = opened(page, MODEL + "&sort=loss")
    until(driver, lambda: order(driver) == runs)
    by(driver, "lineage-row")[0].find_element(By.CSS_SELECTOR, "input[type=checkbox]").click()
    by(driver, "lineage-hide-selected")[0].click()
    until(driver, lambda: order(driver) == runs[1:])
    by(driver, "lineage-row")[1].find_element(By.CSS_SELECTOR, "input[type=checkbox]").click()
    by(driver, "lineage-show-selected")[0].click()
    until(driver, lambda: order(driver) == [runs[2]])
    by(driver, "lineage-show-all")[0].click()
    until(driver, lambda: order(driver) == runs)


def test_a_remark_and_a_tag_are_kept(page, runs, service):
    driver = opened(page, MODEL + "&sort=loss")
    until(driver, lambda: order(driver) == runs)
    typed(driver, by(driver, "lineage-remark")[0], "best.one")
    until(driver, lambda: "best.one" in [r["remark"] for r in service.get("/api/v1/lineages")["rows"]])
    by(driver, "lineage-tag")[0].send_keys("■")
    until(driver, lambda: 3 in [r["tag"] for r in service.get("/api/v1/lineages")["rows"]])
    driver = opened(page, MODEL + "&sort=loss")
    until(driver, lambda: by(driver, "lineage-remark")[0].get_property("value") == "best.one")


def test_a_target_shows_what_tells_of_it(page, runs):
    driver = opened(page, MODEL + "&target=loss")
    until(driver, lambda: by(driver, "lineage-importance"))
    importance = by(driver, "lineage-importance")[0]
    bars = lambda: {one["name"]: one for one in series(driver, importance)[0]["data"]}
    size = until(driver, lambda: bars().get("user_defined/size"))
    assert abs(size["value"] - 1) < 1e-6 and size["label"]["formatter"] == "1.00"
    axis = "return arguments[0].chart.getOption().yAxis[0].data"
    assert driver.execute_script(axis, importance)[list(bars()).index("user_defined/size")] == "[U]size"
    row = list(bars()).index("user_defined/size")
    pointed(driver, importance, place(driver, importance, [0.5, row])).click().perform()
    until(driver, lambda: by(driver, "lineage-scatter")[0].get_attribute("data-points") == "6")
    until(driver, lambda: "parameter=user_defined%2Fsize" in driver.current_url)
    scatter = by(driver, "lineage-scatter")[0]
    until(driver, lambda: [round(x) for x, _ in values(driver, scatter, "front")] == [0, 1, 2, 3, 4, 5])
    assert [round(y, 3) for _, y in values(driver, scatter, "front")] == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    # A tooltip is drawn, so that nothing needs styles which the policy of the page forbids.
    pointed(driver, scatter, place(driver, scatter, values(driver, scatter, "front")[2])).perform()
    until(driver, lambda: any("./lin" in text for text in texts(driver, scatter)))
    assert not scatter.find_elements(By.CSS_SELECTOR, "[style*=position] :not(canvas)")
    # By keyboard: what a mark tells is said, Enter chooses it.
    importance.send_keys(Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    said = importance.find_element(By.XPATH, "following-sibling::*[@aria-live]")
    second = list(bars())[1]
    until(driver, lambda: said.get_property("textContent").startswith(second.split("/")[-1]))
    importance.send_keys(Keys.ENTER)
    until(driver, lambda: f"parameter={quote(second, safe='')}" in driver.current_url)
    # Both go with the loss, and others do not: a forest of the six runs tells so.
    Select(by(driver, "lineage-measure")[0]).select_by_value("forest")
    first = lambda: next(iter(bars().values()))
    until(driver, lambda: first()["name"] in ("learning_rate", "user_defined/size") and first()["value"] > 0)
    assert "measure=forest" in driver.current_url
    # What does not vary has no importance, which is told instead of 0.00.
    told = importance.get_attribute("aria-label")
    assert "network: does not vary" in told and "epoch: does not vary" in told
    assert bars()["network"]["label"]["formatter"] == "does not vary"
    # The loss grows while the accuracy falls: one run is the best in both.
    Select(by(driver, "lineage-against")[0]).select_by_value("metric/acc")
    until(driver, lambda: by(driver, "lineage-front"))
    assert by(driver, "lineage-front")[0].text == "No run is better in both than: ./lin0"
    scatter = by(driver, "lineage-scatter")[0]
    until(driver, lambda: len(values(driver, scatter, "others")) == 5)
    assert [[round(at, 3) for at in one] for one in values(driver, scatter, "front")] == [[1, 0.1]]


def test_a_target_over_parameters_by_slices_and_contours(page, gallery, service):
    # Runs at the corners and in the middle of a square of logarithmic rates and sizes; two lack something.
    places = [(1e-4, 0), (1e-2, 0), (1e-4, 2), (1e-2, 2), (1e-3, 1), (1e-3, 1)]
    for i, (rate, size) in enumerate(places):
        lineage_run(gallery / f"plot{i}", rate, 0.1 * i + 0.1, ("Adam", "SGD")[i % 2], 0.5, size=size)
    lineage_run(gallery / "plot6", 1e-3, math.nan, "Adam", 0.5, size=1)
    lineage_run(gallery / "plot7", 1e-3, 0.3, "Adam", 0.5)
    until(None, lambda: len(service.get("/api/v1/lineages?query=run+contains+'plot'")["rows"]) == 8)
    columns = json.dumps(["optimizer", "learning_rate", "epoch", "user_defined/size"])
    address = "#/model-traceback?query=run+contains+'plot'&target=loss&log=%5B%22learning_rate%22%5D&columns="
    driver = opened(page, address + quote(columns))
    attributes = lambda one, *names: tuple(one.get_attribute(f"data-{name}") for name in names)
    until(driver, lambda: by(driver, "slice"))
    slices = {attributes(one, "column", "points", "scale") for one in by(driver, "slice")}
    assert slices == {
        ("optimizer", "7", "category"), ("learning_rate", "7", "log"), ("user_defined/size", "6", "linear")
    }  # fmt: skip  # epoch does not vary
    assert "1 run without a value" in by(driver, "slice")[0].text
    by(driver, "plot-contour")[0].click()
    until(driver, lambda: by(driver, "contour"))
    (plot,) = by(driver, "contour")
    # The middle, where two runs are one, and the corners: four triangles; 1e-3 is half-way on the axis.
    assert attributes(plot, "x", "y", "triangles", "points") == (
        "learning_rate",
        "user_defined/size",
        "4",
        "6",
    )
    assert plot.get_attribute("data-scale") == "log linear linear"
    chart = plot.find_element(By.CSS_SELECTOR, "[role=img]")
    dots = values(driver, chart, "runs")
    across = sorted({round(place(driver, chart, one)[0]) for one in dots})
    assert len(across) == 3 and abs(across[0] + across[2] - 2 * across[1]) <= 1
    assert "2 runs without a value" in plot.text
    # From the least to the greatest, each in the colour of its legend.
    bands = "return arguments[0].chart.getZr().storage.getDisplayList().filter(one => one.type === 'path')"
    bands += ".filter(one => one.shape.pathData).map(one => [one.shape.pathData, one.style.fill])"
    painted = driver.execute_script(bands, chart)
    assert len(painted) == 10 and all(d.startswith("M") for d, _ in painted)
    legend = driver.execute_script(
        "return arguments[0].chart.getOption().visualMap[0].pieces.map(one => one.color)", chart
    )
    assert [fill for _, fill in painted] == legend[::-1] and len(set(legend)) == 10
    # On a linear axis 1e-3 is no longer in the middle; nothing lies between categories.
    (box,) = [one for one in by(driver, "lineage-log") if one.get_attribute("data-column") == "learning_rate"]
    driver.execute_script("arguments[0].click()", box)
    until(driver, lambda: by(driver, "contour")[0].get_attribute("data-scale") == "linear linear linear")
    Select(by(driver, "contourx")[0]).select_by_value("optimizer")
    until(driver, lambda: "nothing lies between categories" in by(driver, "contour-why")[0].text)
    assert by(driver, "contour")[0].get_attribute("data-triangles") == "0"
    # Runs on one line have no bands; one run has nothing that varies.
    one_line = "#/model-traceback?query=run+==+'plot0'+or+run+==+'plot3'&target=loss&plot=contour&columns="
    driver = opened(page, one_line + quote(columns))
    until(driver, lambda: any("all runs lie on one line" in one.text for one in by(driver, "contour-why")))
    driver = opened(page, one_line.replace("+or+run+==+'plot3'", "") + quote(columns))
    until(driver, lambda: by(driver, "plots-none"))


#: Boxes that an edge of the graph of files has points in, other than those that it joins at its ends.
BEHIND_BOXES = """
const boxes = [...document.querySelectorAll('[data-testid=files-node]')].map((one) =>
  ['left', 'top', 'width', 'height'].map((name) => parseFloat(one.style[name])));
const found = [];
for (const path of document.querySelectorAll('[data-testid=files-drawing] path'))
  for (let at = 1, all = path.getTotalLength(); at < all - 1; at++) {
    const {x, y} = path.getPointAtLength(at);
    boxes.forEach(([left, top, wide, high], i) => {
      if (x > left + 1 && x < left + wide - 1 && y > top && y < top + high) found.push([i, x, y]);
    });
  }
return found;
"""


def test_files_of_runs_are_a_graph(page, gallery, service, runs):
    sha = "ab" * 32
    data = {"role": "data", "sources": [{"kind": "ImageFolderDataset", "paths": ["/data/cats"]}], "files": 3}
    for name, number in (("made a", 0), ("made b", 1)):
        lineage_run(gallery / name, 0.1, 0.1, "Adam", 0.5)
        listed = [
            {"line": "run", "session": name, "network": SCRIPT, "git_commit": "c0ffee", "git_dirty": True},
            {"line": "input", "session": name, **data, "sha256": "cd" * 32},
        ]
        file = {"session": name, "path": f"/ck/{SCRIPT}.ckpt", "sha256": sha, "size": 2500}
        listed += [
            {"line": "artifact", "role": "checkpoint", **file, "step": step, "sha256": f"{step:064x}"}
            for step in range(3 * (1 - number))
        ]
        listed.append({"line": ("artifact", "input")[number], "role": "checkpoint", **file})
        lines = "".join(json.dumps(one) + "\n" for one in listed)
        (gallery / name / "mycelia-artifacts.jsonl").write_text(lines + '{"line": "run", "sess')
    count = lambda: len(service.get("/api/v1/artifacts?query=run+contains+'made'")["nodes"])
    until(None, lambda: count() == 4)
    driver = opened(page, "#/model-traceback?query=run+contains+'made'")
    labels = lambda: [one.get_attribute("data-label") for one in by(driver, "files-node")]
    until(driver, lambda: len(labels()) == 4)
    assert labels()[0] == "cats" and labels()[1] == "./made a" and labels()[3] == "./made b"
    assert SCRIPT.split("/")[-1] in labels()[2] and "3 more checkpoints" in by(driver, "files-node")[1].text
    left = [one.rect["x"] for one in by(driver, "files-node")]
    assert left == sorted(set(left))  # from what was there first to what came of it
    # The data that both were made of passes between the boxes of the columns that its edge skips.
    assert driver.execute_script(BEHIND_BOXES) == []
    scale = lambda: float(by(driver, "files-drawing")[0].get_attribute("data-scale"))
    across = "return arguments[0].getBoundingClientRect().width"
    width = lambda: driver.execute_script(across, by(driver, "files-node")[0])
    whole = width()
    by(driver, "files-zoom-in")[0].click()
    until(driver, lambda: scale() == 1.25 and abs(width() - 1.25 * whole) < 1)
    wheel = (
        "const wheel = new WheelEvent('wheel', {deltaY: 100, ctrlKey: %s, cancelable: true});"
        "arguments[0].dispatchEvent(wheel)"
    )
    driver.execute_script(wheel % "false", by(driver, "files-drawing")[0])  # scrolls
    driver.execute_script(wheel % "true", by(driver, "files-drawing")[0])
    until(driver, lambda: scale() < 1)
    by(driver, "files-fit")[0].click()
    until(driver, lambda: 0.2 < scale() <= 1)
    fits = "const e = arguments[0]; return e.scrollWidth <= e.clientWidth && e.scrollHeight <= e.clientHeight"
    until(driver, lambda: driver.execute_script(fits, by(driver, "files-drawing")[0]))
    # By keyboard: what a box tells stands below, and in the address.
    by(driver, "files-node")[1].send_keys(Keys.ENTER)
    until(driver, lambda: by(driver, "files-told"))
    told = by(driver, "files-told")[0].text
    assert (
        "c0ffee (tracked files differed from it)" in told and SCRIPT in told and "file=" in driver.current_url
    )
    by(driver, "files-node")[2].click()
    until(
        driver,
        lambda: sha in by(driver, "files-told")[0].text and "2.5 KB" in by(driver, "files-told")[0].text,
    )
    by(driver, "files-all")[0].click()
    until(driver, lambda: len(labels()) == 7)
    address = driver.current_url
    driver = opened(page, address[address.index("#") :])
    until(driver, lambda: len(labels()) == 7 and by(driver, "files-told"))
    by(driver, "files-node")[1].click()
    until(driver, lambda: by(driver, "files-told")[0].find_elements(By.TAG_NAME, "a"))
    by(driver, "files-told")[0].find_element(By.TAG_NAME, "a").click()
    until(driver, lambda: "train_id=.%2Fmade+a" in driver.current_url)
    driver = opened(page, "#/model-traceback?query=run+==+'lin1'")
    until(driver, lambda: by(driver, "files-none"))


def test_pipelines_are_columns_of_dataset_lineage(page, runs):
    driver = opened(page, "#/data-traceback?query=run+contains+'lin'")
    (cell, *_) = driver.find_elements(By.CSS_SELECTOR, '[data-testid="lineage-row"] details')
    cell.click()
    until(driver, lambda: "batch_size: " in cell.text)


def test_values_from_files_are_text_on_lineage(page, runs):
    driver = opened(page, MODEL + "&columns=%5B%22optimizer%22%2C%22user_defined%2Fnote%22%5D")
    assert "<script>" in by(driver, "lineage-table")[0].text
    assert driver.title == "Model lineage-Mycelia Insight"


def test_the_list_takes_a_query(page, runs):
    driver = page()
    until(driver, lambda: len(by(driver, "run-row")) >= 6)
    typed(driver, by(driver, "query-line")[0], "acc >= 0.9 and run contains 'lin'")
    until(driver, lambda: sorted(order(driver, "run-row")) == runs[:2])


def test_rows_stand_on_pages_of_10_20_or_50(page, service, gallery):
    for i in range(23):
        lineage_run(gallery / f"many{i:02}", 1.0, 0.1, "Adam", 0.5, size=i)
    count = lambda: len(service.get("/api/v1/lineages?query=run+contains+'many'")["rows"])
    until(None, lambda: count() == 23)
    driver = opened(page, "#/model-traceback?query=run+contains+'many'&sort=run")
    names = [f"./many{i:02}" for i in range(23)]
    until(driver, lambda: order(driver) == names[:10])
    by(driver, "page-next")[0].click()
    until(driver, lambda: order(driver) == names[10:20])
    by(driver, "page-next")[0].click()
    until(driver, lambda: order(driver) == names[20:] and not by(driver, "page-next")[0].is_enabled())
    Select(by(driver, "rows-per-page")[0]).select_by_value("20")
    until(driver, lambda: order(driver) == names[:20] and "rows=20" in driver.current_url)
