"""Two graphs compared in the page of graphs, in a real browser."""

from __future__ import annotations

import sys
from pathlib import Path
from urllib.parse import quote

import pytest
from selenium.webdriver.support.ui import Select

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "records")]
from event_files import event, field, framed  # noqa: E402
from test_graph import node  # noqa: E402
from test_graph_pages import names, one  # noqa: E402
from test_pages import by, new_run, until  # noqa: E402

SCRIPT = "<script>document.title='taken'</script>"
PAGE = "#/train-manage/graph?train_id="
LEFT = node("1", "Conv2D", "net/conv") + node("2", "ReLU", "net", "1") + node("3", "Exp", "gone", "2")
RIGHT = (
    node("1", "Conv2D", "net/conv")
    + node("5", "BatchNorm", "net", "1")
    + node("6", "ReLU", "net", "5")
    + node("7", "Tanh", f"new {SCRIPT}", "6")
)


def states(driver) -> dict[str, str]:
    found = "document.querySelectorAll('[data-testid=graph-node]')"
    return dict(
        driver.execute_script(f"return [...{found}].map((one) => [one.dataset.name, one.dataset.state])")
    )


def total(driver) -> int | None:
    found = by(driver, "graph-differences")
    return int(found[0].get_attribute("data-total")) if found else None


@pytest.fixture(scope="module", autouse=True)
def runs(service, gallery):
    for name, graph in (("plain net", LEFT), ("normalized net", RIGHT)):
        new_run(service, gallery, name, [framed(event(1, 1.0, field(4, graph)))])
    stages = gallery / "plain net" / "stages"
    stages.mkdir()
    (stages / "later.pb").write_bytes(LEFT + node("9", "Log", "last", "3"))


def test_a_second_run_is_chosen_and_what_differs_is_shown(page):
    driver = page(PAGE + quote("./plain net"))
    until(driver, lambda: names(driver) == {"net", "gone"})
    assert set(states(driver).values()) == {None}
    driver.execute_script("document.querySelector('[data-testid=graph-with]').closest('details').open = true")
    Select(by(driver, "graph-with")[0]).select_by_visible_text("./normalized net")
    new = f"new {SCRIPT}".split("/")[0]  # names of scopes end there
    until(driver, lambda: states(driver).get(new) == "right")
    assert states(driver) == {"net": "changed", "gone": "left", new: "right"}
    until(driver, lambda: total(driver) == 4)
    sides = {edge.get_attribute("data-side") for edge in by(driver, "graph-edge")}
    assert sides == {"left", "right"}
    assert "≠1 +1" in one(driver, "net").text and "Only in this graph" in by(driver, "graph-legend")[0].text
    # The address has all of it.
    driver = page(driver.current_url[driver.current_url.index("#") :])
    until(driver, lambda: total(driver) == 4 and states(driver).get("gone") == "left")
    assert driver.title == "./plain net-Graph-Mycelia Insight"


def test_differences_are_visited_one_after_the_other(page):
    driver = page(f"{PAGE}{quote('./plain net')}&with={quote('./normalized net')}")
    until(driver, lambda: total(driver) == 4)
    listed = [
        (row.get_attribute("data-name"), row.get_attribute("data-state"))
        for row in by(driver, "graph-difference")
    ]
    assert dict(listed) == {
        "net/ReLU-op6": "changed", "net/BatchNorm-op5": "right", "gone/Exp-op3": "left",
        f"new {SCRIPT}/Tanh-op7": "right",
    }  # fmt: skip
    info = by(driver, "graph-node-info")[0]
    for name, _ in listed:
        by(driver, "graph-difference-after")[0].click()
        until(driver, lambda name=name: name in names(driver) and name in info.text)
    by(driver, "graph-difference-after")[0].click()  # the first one comes after the last
    until(driver, lambda: listed[0][0] in info.text)
    by(driver, "graph-difference-before")[0].click()
    until(driver, lambda: listed[-1][0] in info.text)
    next(
        row for row in by(driver, "graph-difference") if row.get_attribute("data-state") == "changed"
    ).click()
    until(driver, lambda: by(driver, "graph-changes"))
    assert "net/conv/Conv2D-op1" in by(driver, "graph-changes")[0].text
    assert "net/BatchNorm-op5" in by(driver, "graph-changes")[0].text
    assert by(driver, "graph-state")[0].get_attribute("data-state") == "changed"


def test_stages_of_one_run_and_the_sides_swapped(page):
    driver = page(f"{PAGE}{quote('./plain net')}&with={quote('./plain net')}")
    until(driver, lambda: total(driver) == 0 and "alike" in by(driver, "graph-differences")[0].text)
    assert not by(driver, "graph-difference-after")
    until(driver, lambda: len(Select(by(driver, "graph-with-file")[0]).options) == 3)
    Select(by(driver, "graph-with-file")[0]).select_by_value("stages/later.pb")
    until(driver, lambda: states(driver).get("last") == "right")
    by(driver, "graph-swap")[0].click()
    until(driver, lambda: states(driver).get("last") == "left")
    assert (
        Select(by(driver, "graph-file")[0]).first_selected_option.get_attribute("value") == "stages/later.pb"
    )
    Select(by(driver, "graph-with")[0]).select_by_value("")
    until(driver, lambda: set(states(driver).values()) == {None} and not by(driver, "graph-swap"))


def test_a_graph_that_is_not_there_is_told(page, chromium):
    driver = page(f"{PAGE}{quote('./plain net')}&with={quote('./plain net')}&with_file=none")
    until(driver, lambda: "has no graph 'none'" in driver.find_element("tag name", "body").text)
    chromium.get_log("browser")  # the browser tells of the answer 404
