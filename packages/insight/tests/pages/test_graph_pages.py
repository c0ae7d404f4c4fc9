"""The pages of graphs and data pipelines, in a real browser."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.common.by import By

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "records")]
from event_files import appended, event, field, framed, number  # noqa: E402
from test_graph import node  # noqa: E402
from test_pages import by, new_run, until  # noqa: E402

REAL = "#/train-manage/graph?train_id=" + quote("./of mindspore")
SCRIPT = "<script>document.title='taken'</script><img src=x onerror=document.title='taken'>"


def names(driver) -> set[str]:
    """At one moment: nodes are made anew when a scope is opened."""
    found = "document.querySelectorAll('[data-testid=graph-node]')"
    return set(driver.execute_script(f"return [...{found}].map((one) => one.dataset.name)"))


def one(driver, name: str):
    return next(found for found in by(driver, "graph-node") if found.get_attribute("data-name") == name)


def label(driver, name: str):
    return one(driver, name).find_element(By.TAG_NAME, "text")


def test_scopes_unfold_and_fold(page):
    driver = page(REAL)
    until(driver, lambda: names(driver) == {"Default", "Gradients", "output"})
    ActionChains(driver).double_click(label(driver, "Default")).perform()
    until(driver, lambda: "Default/optimizer-Momentum" in names(driver))
    assert by(driver, "graph-canvas")[0].get_attribute("data-nodes") == str(len(names(driver)))
    seen = names(driver)
    driver = page(driver.current_url[driver.current_url.index("#") :])  # the address says what is open
    until(driver, lambda: names(driver) == seen)
    for shown in ({"Default", "Gradients", "output"}, seen):  # the focus stays where it was
        one(driver, "Default").send_keys(" ")
        until(driver, lambda shown=shown: names(driver) == shown)
        until(driver, lambda: driver.switch_to.active_element.get_attribute("data-name") == "Default")


def test_gradients_and_the_optimizer_can_be_left_out(page):
    driver = page(REAL)
    until(driver, lambda: "Gradients" in names(driver))
    by(driver, "graph-optimize")[0].click()
    # What is left lies in one scope, which opens by itself.
    until(driver, lambda: "Default/network-WithLossCell" in names(driver))
    assert not any("Gradients" in name or "optimizer" in name for name in names(driver))
    by(driver, "graph-search")[0].send_keys("Conv2DBackprop")
    until(driver, lambda: "0 found" in driver.find_element(By.TAG_NAME, "aside").text)
    driver = page(driver.current_url[driver.current_url.index("#") :])
    until(driver, lambda: "Default" in names(driver))
    assert by(driver, "graph-optimize")[0].is_selected() and "Gradients" not in names(driver)
    by(driver, "graph-optimize")[0].click()
    until(driver, lambda: "Gradients" in names(driver))


def test_search_leads_to_a_node_and_its_inputs(page):
    driver = page(REAL)
    until(driver, lambda: by(driver, "graph-node"))
    by(driver, "graph-search")[0].send_keys("conv2d-op0")
    until(driver, lambda: by(driver, "graph-match"))
    by(driver, "graph-match")[0].click()
    path = "Default/network-WithLossCell/_backbone-TrainNet/net-LeNet5/conv1-Conv2d/Conv2D-op0"
    until(driver, lambda: path in names(driver))
    info = by(driver, "graph-node-info")[0]
    until(driver, lambda: path in info.text and "float32[4, 6, 28, 28]" in info.text)
    inputs = [found.text for found in by(driver, "graph-input")]
    by(driver, "graph-input")[0].click()
    until(driver, lambda: info.find_element(By.CLASS_NAME, "name").text == inputs[0])
    assert by(driver, "graph-thumbnail") and by(driver, "graph-legend") and by(driver, "graph-edge")


def test_wheel_keys_and_dragging_move_the_view(page):
    driver = page(REAL)
    until(driver, lambda: by(driver, "graph-node"))
    canvas = by(driver, "graph-canvas")[0]
    before = float(canvas.get_attribute("data-scale"))
    driver.execute_script(
        "arguments[0].dispatchEvent(new WheelEvent('wheel', {deltaY: -300, cancelable: true}))",
        canvas,
    )
    until(driver, lambda: float(canvas.get_attribute("data-scale")) > before * 1.2)
    canvas.send_keys("0")
    until(driver, lambda: abs(float(canvas.get_attribute("data-scale")) - before) < 1e-3)
    at = one(driver, "Default").rect["x"]
    canvas.send_keys(Keys.ARROW_LEFT)
    until(driver, lambda: one(driver, "Default").rect["x"] > at + 50)
    at = one(driver, "Default").rect["x"]
    ActionChains(driver).move_to_element_with_offset(canvas, -200, 150).click_and_hold().move_by_offset(
        -80, 0
    ).release().perform()
    until(driver, lambda: one(driver, "Default").rect["x"] < at - 60)


def test_nodes_are_coloured_by_what_they_give(page):
    driver = page(REAL + "&open=" + quote('["Default"]'))
    until(driver, lambda: len(names(driver)) > 3)
    choice = by(driver, "graph-colour")[0]
    fills = "return Object.fromEntries([...document.querySelectorAll('[data-testid=graph-node]')].map("
    fills += "(one) => [one.dataset.name, [one.dataset.shade ?? null, one.children[1].style.fill]]))"
    assert set(map(tuple, driver.execute_script(fills).values())) == {(None, "")}
    choice.find_element(By.CSS_SELECTOR, "[value=memory]").click()
    until(driver, lambda: by(driver, "graph-shades"))
    seen = driver.execute_script(fills)
    assert seen["Default"] == [None, ""]  # what is open holds what is coloured
    sized = {name: shade for name, (shade, fill) in seen.items() if fill}
    assert sized and all(shade.split()[1] in ("B", "KB", "MB") for shade in sized.values())
    assert all(shade == "not known" for shade, fill in seen.values() if shade and not fill)
    assert len({fill for _, fill in seen.values() if fill}) > 2
    least, most = by(driver, "graph-shades")[0].text.split("\n")[:2]
    assert least != most and {least, most} <= set(sized.values())
    keep = "URL.createObjectURL = (blob) => (blob.text().then((text) => (window.saved = text)), 'blob:x');"
    driver.execute_script(keep + "HTMLAnchorElement.prototype.click = () => {};")
    by(driver, "graph-download")[0].click()
    saved = until(driver, lambda: driver.execute_script("return window.saved ?? ''"))
    assert "rgb(" in saved and not any(left in saved for left in ("var(", "color(", "style=", "color-mix"))
    choice.find_element(By.CSS_SELECTOR, "[value=dtype]").click()
    until(driver, lambda: "float32" in by(driver, "graph-shades")[0].text)
    assert "colour=dtype" in driver.current_url
    # What nobody measured cannot be chosen, and says why.
    closed = [choice.find_element(By.CSS_SELECTOR, f"[value={one}]") for one in ("time", "nan")]
    assert not any(one.is_enabled() for one in closed)
    assert all("SummaryCollector" in one.get_attribute("title") for one in closed)
    driver = page(driver.current_url[driver.current_url.index("#") :])  # the address says how
    until(driver, lambda: any(one[0] == "float32" for one in driver.execute_script(fills).values()))
    label(driver, "output").click()
    until(driver, lambda: by(driver, "graph-bytes"))
    page(REAL + "&colour=memory&with=" + quote("./of mindspore"))  # two graphs have colours of their own
    until(driver, lambda: by(driver, "graph-node"))
    assert not by(driver, "graph-colour")[0].is_enabled() and not by(driver, "graph-shades")


def test_what_was_measured_is_coloured_and_names_of_nodes_are_text(page, service, gallery):
    graph = node("1", SCRIPT, f"scope {SCRIPT}") + node("2", "Add", "", "1") + node("3", "Exp", "", "2")
    flag = field(5, field(1, "precision_flag") + field(2, number(1, 13) + field(7, f"reduce {SCRIPT}")))
    graph += appended(node("4", "Log", "", "3"), flag)
    slow, add, exp = f"scope {SCRIPT}/{SCRIPT}-op1", "/Add-op2", "/Exp-op3"
    bad = {"step": 7, "nan": 1500, "inf": 0, "-inf": 2}
    measured = {"version": 1, "steps": 4, "unattributed": 1000, "watched": True, "nodes": {
        slow: {"calls": 4, "nanoseconds": 3_000_000, **bad, "first": True},
        add: {"calls": 4, "nanoseconds": 100_000, **bad}, exp: {"in": slow},
    }}  # fmt: skip
    (gallery / "named").mkdir(exist_ok=True)
    (gallery / "named" / "node_measurements.1.json").write_text(json.dumps(measured))
    new_run(service, gallery, "named", [framed(event(1, 1.0, field(4, graph)))])
    driver = page("#/train-manage/graph?train_id=./named&colour=time")
    shades = "return Object.fromEntries([...document.querySelectorAll('[data-testid=graph-node]')].map("
    shades += "(one) => [one.dataset.name, one.dataset.shade ?? null]))"
    closed = f"scope {SCRIPT}"  # what it holds is one node
    until(driver, lambda: driver.execute_script(shades).get(closed))
    seen = driver.execute_script(shades)
    assert seen[closed] == "3 ms, 97 % of the step" and seen[add] == "100 µs, 3.2 % of the step"
    assert seen[exp] == f"fused, its time is with {slow}" and seen["/Log-op4"] == "not known"
    legend = by(driver, "graph-shades")[0].text
    assert "100 µs" in legend and "3 ms" in legend and "median of 4" in legend and "1 µs of a step" in legend
    by(driver, "graph-colour")[0].find_element(By.CSS_SELECTOR, "[value=nan]").click()
    until(driver, lambda: "Where it began" in by(driver, "graph-shades")[0].text)
    seen = driver.execute_script(shades)
    assert seen[closed] == "from step 7 on, 1,500 NaN, 2 -Inf, here it began"
    assert seen[add] == "from step 7 on, 1,500 NaN, 2 -Inf" and seen[exp].startswith("nothing but finite")
    driver.execute_script("arguments[0].focus()", one(driver, add))
    one(driver, add).send_keys(Keys.ENTER)
    until(driver, lambda: any("1,500 NaN" in one.text for one in by(driver, "graph-measured")))
    boxes = driver.find_elements(By.CSS_SELECTOR, "[data-testid=graph-shades] li .box")
    assert len(names(driver)) == 5
    assert len({box.value_of_css_property("background-color") for box in boxes}) == 2 + 1
    driver.execute_script("arguments[0].focus()", next(iter(by(driver, "graph-node"))))
    by(driver, "graph-node")[0].send_keys(Keys.ENTER)
    until(driver, lambda: "<script>" in by(driver, "graph-node-info")[0].text)
    assert driver.title == "./named-Graph-Mycelia Insight"
    driver = page("#/train-manage/operatorPrecision?train_id=./named")
    until(driver, lambda: len(by(driver, "op-row")) == 4)
    first = by(driver, "op-row")[0]
    assert first.get_attribute("data-name") == "/Log-op4" and f"reduce {SCRIPT}" in first.text
    assert driver.title == "./named-Precision-Mycelia Insight"
    assert "1 operator of reduced precision" in by(driver, "precision-counts")[0].text
    by(driver, "op-search")[0].send_keys("exp-op")
    until(driver, lambda: [row.get_attribute("data-name") for row in by(driver, "op-row")] == [exp])
    assert "text=exp-op" in driver.current_url
    assert by(driver, "precision-download")[0].get_attribute("href").endswith("/graphs/precision.xlsx?graph=")


def test_edges_between_open_scopes_are_one(page, service, gallery):
    """Four edges between two scopes: from each node to its scope's edge, one line, and on to each node."""
    graph = b"".join(node(f"a{i}", "Exp", "left") for i in range(3))
    graph += node("b0", "Add", "right/inner", "a0", "a1") + node("b1", "Mul", "right", "a0", "a2")
    graph += node("c", "Neg", "right", "b0")
    new_run(service, gallery, "bundled", [framed(event(1, 1.0, field(4, graph)))])
    address = "#/train-manage/graph?train_id=./bundled&open="
    driver = page(address + quote('["left"]'))  # to one that is closed
    until(driver, lambda: by(driver, "graph-edge"))
    # One node is read twice in there.
    assert sorted(bundles(driver)) == [(0, False)] * 3 + [(3, True)]
    driver = page(address + quote('["left", "right", "right/inner"]'))
    until(driver, lambda: "right/inner/Add-opb0" in names(driver) and by(driver, "graph-edge"))
    # Three lead to the one, two lead on; the edge within the other scope is its own.
    assert sorted(bundles(driver)) == [(0, False)] * 3 + [(0, True)] * 3 + [(4, False)]
    assert "4 tensors" in driver.execute_script("return document.querySelector('.canvas svg').textContent")
    # The line goes from one scope's lower edge to the other's upper one.
    place = "const box = (one) => { const b = one.getBoundingClientRect();"
    place += " return [b.left, b.top, b.right, b.bottom]; };"
    scope = "const scope = (name) => box(document.querySelector(`[data-name='${name}']`).children[1]);"
    line, left, right = driver.execute_script(
        f"{place}{scope} return [box(document.querySelector('[data-bundle]')), scope('left'), scope('right')]"
    )
    assert abs(line[1] - left[3]) < 6 and abs(line[3] - right[1]) < 6
    near = "return [...document.querySelectorAll('[data-testid=graph-edge].near')].length"
    one(driver, "left/Exp-opa2").send_keys(Keys.ENTER)  # its own, the line, and on to the node that reads it
    until(driver, lambda: driver.execute_script(near) == 3)
    one(driver, "left/Exp-opa0").send_keys(Keys.ENTER)
    until(driver, lambda: driver.execute_script(near) == 4)


def bundles(driver) -> list[tuple[int, bool]]:
    """Of each line: how many edges it bundles, and whether it ends at a node."""
    found = "[...document.querySelectorAll('[data-testid=graph-edge]')]"
    told = "[Number(one.dataset.bundle ?? 0), one.hasAttribute('marker-end')]"
    return [tuple(one) for one in driver.execute_script(f"return {found}.map((one) => {told})")]


@pytest.mark.parametrize("count", [10_000, 100_000])
def test_large_graphs_open(page, service, gallery, count):
    rows = [
        node(str(i), f"Kind{i % 7}", f"block{i // 1000}/cell{i // 100 % 10}", str(i - 1))
        for i in range(count)
    ] + [node(f"alone{i}", "Alone", f"alone{i}") for i in range(12)]
    name = f"large{count}"
    new_run(service, gallery, name, [framed(event(1, 1.0, field(4, b"".join(rows))))])
    driver = page(f"#/train-manage/graph?train_id=./{name}")
    until(driver, lambda: len(by(driver, "graph-node")) == count // 1000 + 12)
    # Names can be read: a chain is broken into columns, what is unconnected into rows.
    until(driver, lambda: one(driver, "block3").rect["height"] >= 7)
    places = [one(driver, f"alone{i}").rect for i in range(12)]
    assert 2 <= len({place["y"] for place in places}) <= 6
    one(driver, "block3").send_keys(" ")
    until(driver, lambda: "block3/cell2" in names(driver))


def test_a_data_pipeline_and_its_parameters(page):
    driver = page("#/train-manage/data-map?train_id=" + quote("./of mindspore"))
    until(driver, lambda: len(by(driver, "dataset-node")) == 3)
    boxes = sorted(by(driver, "dataset-node"), key=lambda box: box.rect["x"])
    assert [box.get_attribute("aria-label") for box in boxes] == ["MindDataDataset", "Map", "Batch"]
    boxes[1].find_element(By.TAG_NAME, "text").click()
    until(driver, lambda: "TypeCast" in by(driver, "dataset-node-info")[0].text)
    assert "connector_queue_size" in by(driver, "dataset-node-info")[0].text
