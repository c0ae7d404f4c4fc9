"""The page of embeddings: principal axes, UMAP in a worker, labels, search, neighbours."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.support.ui import Select

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "runs"), str(TESTS / "service"), str(TESTS / "pages")]
from event_files import write  # noqa: E402
from test_embeddings import tensor  # noqa: E402
from test_media import recorded  # noqa: E402
from test_pages import by, until  # noqa: E402

PAGE = "#/train-manage/embedding?train_id=./points"
ROWS = 700


@pytest.fixture(scope="module")
def points(service, gallery):
    """A sheet rolled up in space, whose neighbours no plane keeps, and a small table."""
    rng = np.random.default_rng(0)
    turn, wide = rng.uniform(1.5, 5, ROWS) * np.pi, rng.uniform(0, 20, ROWS)
    rolled = np.stack([turn * np.cos(turn), wide, turn * np.sin(turn)], 1) @ rng.normal(size=(3, 20))
    small = np.float32([[0, 0, 0], [1, 0, 0], [5, 5, 5], [np.nan, 0, 0]])
    many = [recorded(8, "rolled", tensor(rolled), step) for step in (1, 2)]
    write(gallery / "points", [*many, recorded(8, "small", tensor(small), 3)])
    lines = [f"p{i}\t{'high' if wide[i] > 10 else 'low'}\t{turn[i]:.3f}\n" for i in range(ROWS)]
    (gallery / "points" / "metadata.tsv").write_text("name\tpart\tturn\n" + "".join(lines))
    until(None, lambda: "points" in [row["run"] for row in service.get("/api/v1/runs")["runs"]])
    until(None, lambda: len(service.get("/api/v1/runs/points/embeddings")["embeddings"]) == 2)


def canvas(driver):
    return until(driver, lambda: next(iter(by(driver, "embedding-canvas")), None))


def kept(driver) -> float:
    return float(until(driver, lambda: by(driver, "embedding-kept"))[0].get_attribute("data-kept"))


def painted(driver) -> int:
    return driver.execute_script(
        "const c = arguments[0], d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        "let n = 0; for (let i = 3; i < d.length; i += 4) n += d[i] > 20; return n;",
        canvas(driver),
    )


def test_points_on_principal_axes_are_turned_and_enlarged(page, points):
    driver = page(PAGE)
    until(driver, lambda: canvas(driver).get_attribute("data-points") == str(ROWS))
    until(driver, lambda: painted(driver) > 2000)
    yaw, zoom = (canvas(driver).get_attribute(name) for name in ("data-yaw", "data-zoom"))
    ActionChains(driver).drag_and_drop_by_offset(canvas(driver), 80, 0).perform()
    until(driver, lambda: canvas(driver).get_attribute("data-yaw") != yaw)
    canvas(driver).send_keys("+")
    until(driver, lambda: float(canvas(driver).get_attribute("data-zoom")) > float(zoom))
    canvas(driver).send_keys("0")
    until(driver, lambda: canvas(driver).get_attribute("data-yaw") == yaw)
    by(driver, "embedding-dims-2")[0].click()
    until(driver, lambda: len(by(driver, "embedding-axis")) == 2 and "dims=2" in driver.current_url)
    Select(by(driver, "embedding-axis")[0]).select_by_value("2")
    until(driver, lambda: "x=2" in driver.current_url)
    assert "700 points of 20 dimensions" in driver.find_element("css selector", "main").text


def test_umap_keeps_neighbours_that_axes_do_not(page, points):
    driver = page(PAGE + "&dims=2")
    on_axes = kept(driver)
    by(driver, "embedding-umap")[0].click()
    until(driver, lambda: by(driver, "embedding-start"))[0].click()
    until(driver, lambda: by(driver, "embedding-round") and canvas(driver))
    until(driver, lambda: by(driver, "embedding-round")[0].get_attribute("data-running") == "false")
    laid_out = kept(driver)
    assert "400" in by(driver, "embedding-round")[0].text
    assert laid_out > 0.6 and laid_out > on_axes + 0.15, (on_axes, laid_out)


def test_search_selection_and_neighbours(page, points, service):
    driver = page(PAGE)
    until(driver, lambda: by(driver, "embedding-search"))[0].send_keys("p12")
    until(driver, lambda: by(driver, "embedding-matches")[0].text == "11 points found")
    by(driver, "embedding-match")[0].click()
    until(driver, lambda: "point=12" in driver.current_url)
    expected = service.get(
        "/api/v1/runs/points/embeddings/neighbours?embedding=tensor:rolled&place=12&count=10"
    )
    found = "document.querySelectorAll('[data-testid=embedding-neighbour]')"
    listed = lambda: driver.execute_script(f"return [...{found}].map((one) => Number(one.dataset.place))")
    until(driver, lambda: listed() == expected["places"])
    Select(by(driver, "embedding-metric")[0]).select_by_value("cosine")
    until(driver, lambda: listed() and listed() != expected["places"])
    by(driver, "embedding-neighbour")[0].click()
    until(driver, lambda: "point=12&" not in driver.current_url + "&")
    by(driver, "embedding-clear")[0].click()
    until(driver, lambda: not by(driver, "embedding-neighbour") and "point=" not in driver.current_url)


def test_a_click_selects_the_point_under_it(page, points):
    driver = page(PAGE + "&embedding=tensor:small&dims=2")
    until(driver, lambda: canvas(driver).get_attribute("data-points") == "3")
    assert (
        "1 rows with values that are not finite are left out"
        in driver.find_element("css selector", "main").text
    )
    # On its first axis the point that is far from the others lies at the right end.
    box = canvas(driver).rect
    x = 0.45 * min(box["width"], box["height"])
    for dy in range(-60, 61, 4):
        ActionChains(driver).move_to_element_with_offset(canvas(driver), int(x), dy).perform()
        if canvas(driver).get_attribute("data-hovered") == "2":
            break
    ActionChains(driver).click().perform()
    until(driver, lambda: "point=2" in driver.current_url)


def test_colours_and_labels_of_the_run_and_of_a_file(page, points, tmp_path):
    driver = page(PAGE)
    legend = lambda: until(driver, lambda: by(driver, "embedding-legend"))[0].text
    Select(until(driver, lambda: by(driver, "embedding-colour"))[0]).select_by_value("part")
    until(driver, lambda: "high" in legend() and "low" in legend())
    Select(by(driver, "embedding-colour")[0]).select_by_value("turn")
    until(driver, lambda: "high" not in legend() and len(legend().splitlines()) == 3)
    own = tmp_path / "own.tsv"
    own.write_text("".join(f"<b>{i % 3}</b>\n" for i in range(ROWS)))
    by(driver, "embedding-file")[0].send_keys(str(own))
    until(driver, lambda: Select(by(driver, "embedding-label")[0]).first_selected_option.text == "label")
    Select(by(driver, "embedding-colour")[0]).select_by_value("label")
    until(driver, lambda: "<b>1</b>" in legend())
    (own := tmp_path / "few.tsv").write_text("too few\n")
    by(driver, "embedding-file")[0].send_keys(str(own))
    until(
        driver,
        lambda: "The file has 1 lines for 700 points." in driver.find_element("css selector", "main").text,
    )


def test_a_step_is_chosen(page, points):
    driver = page(PAGE)
    slider = until(driver, lambda: by(driver, "embedding-step"))[0]
    slider.send_keys(Keys.HOME)
    until(driver, lambda: "step=1" in driver.current_url)
    until(driver, lambda: canvas(driver).get_attribute("data-points") == str(ROWS))
