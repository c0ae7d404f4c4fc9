"""Loss landscapes of one run and of several, as a person looks at them."""

from __future__ import annotations

import math
import shutil
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "service"), str(TESTS / "pages")]
from charts import series, values  # noqa: E402
from event_files import landscape  # noqa: E402
from test_media import recorded  # noqa: E402
from test_pages import by, new_run, until  # noqa: E402

PAGE = "#/train-manage/loss-analysis?train_id="
SIDE = 21


def bowl(height: float, odd: bool = False) -> bytes:
    """A landscape with its lowest loss in the middle, and a path of four steps to it."""
    axis = [i / (SIDE - 1) * 2 - 1 for i in range(SIDE)]
    z = [height * (x * x + y * y) for y in axis for x in axis]
    if odd:
        z[0] = math.nan
    path = {step: (x, x, 2 * height * x * x) for step, x in ((1, -0.8), (2, -0.5), (3, -0.2), (9, 0.0))}
    return landscape(axis, axis, z, path)


@pytest.fixture(scope="module", autouse=True)
def runs(service, gallery):
    shutil.copytree(TESTS / "fixtures" / "landscape", gallery / "of mindspore 2")
    flat = landscape([-1, 0, 1], [-1, 0, 1], [math.nan] * 9)
    for name, height in (("bowl", 1.0), ("deep bowl", 10.0)):
        many = [("landscape_[1, 9]", bowl(height, name == "bowl")), ("landscape_[9]", flat)]
        new_run(service, gallery, name, [recorded(10, tag, one, 0) for tag, one in many])
    until(None, lambda: "of mindspore 2" in [row["run"] for row in service.get("/api/v1/runs")["runs"]])


def card(driver, **wanted: str):
    def found():
        for one in by(driver, "landscape-card"):
            if all(one.get_attribute(f"data-{name}") == value for name, value in wanted.items()):
                return one
        return None

    return until(driver, found)


def pixel(driver, card_, across: float, down: float) -> tuple[int, ...]:
    """The colour at a share of the canvas."""
    return tuple(driver.execute_script(
        "const c = arguments[0].querySelector('canvas'); if (!c) return [0, 0, 0, 0];"
        "const at = [c.width * arguments[1], c.height * arguments[2]];"
        "return [...c.getContext('2d').getImageData(...at, 1, 1).data];",
        card_, across, down,
    ))  # fmt: skip


def test_landscapes_of_mindspore_by_their_intervals(page):
    driver = page(PAGE + quote("./of mindspore 2"))
    one = card(driver, tag="landscape_[1, 5]", view="isolines", path="5")
    until(driver, lambda: "principal axes" in one.text and "step 5: Loss 2.8672" in one.text)
    choice = Select(by(driver, "landscape-choice")[0])
    assert [o.text for o in choice.options] == ["steps 1 to 5", "steps 5 to 8", "around the trained weights"]
    choice.select_by_visible_text("around the trained weights")
    one = card(driver, tag="landscape_[8]", path="0")
    until(driver, lambda: "drawn at random" in one.text)
    assert not by(driver, "landscape-play") and "tag=landscape_%5B8%5D" in driver.current_url
    assert driver.title == "./of mindspore 2-Loss landscape-Mycelia Insight"


def test_a_relief_has_the_colours_of_its_losses(page):
    driver = page(f"{PAGE}{quote('./deep bowl')}&view=relief&colours=grey&path=off&lines=3")
    one = card(driver, view="relief", colours="grey", lines="3", path="0")
    until(driver, lambda: sum(pixel(driver, one, 0.3, 0.3)[:3]) > 0)
    middle, corner = pixel(driver, one, 0.44, 0.48), pixel(driver, one, 0.9, 0.9)
    assert sum(middle[:3]) < 250 < 400 < sum(corner[:3]) and middle[3] == corner[3] == 255
    Select(by(driver, "landscape-colours")[0]).select_by_value("heat")
    one = card(driver, colours="heat")
    until(driver, lambda: len(set(pixel(driver, one, 0.1, 0.1)[:3])) > 1)


def test_a_path_is_played_and_stepped_through(page):
    driver = page(f"{PAGE}{quote('./deep bowl')}")
    one = card(driver, path="4")
    host = one.find_element(By.CSS_SELECTOR, "[role=img]")
    assert len(values(driver, host, "path")) == 4 and len(series(driver, host)[3]["data"]) == 16
    position = by(driver, "landscape-position")[0]
    position.send_keys(Keys.HOME)
    one = card(driver, path="1")
    until(driver, lambda: "step 1: Loss 12.8" in one.text)
    until(driver, lambda: len(values(driver, host, "path")) == 1)
    by(driver, "landscape-play")[0].click()
    card(driver, path="3")
    card(driver, path="4")
    until(driver, lambda: by(driver, "landscape-play")[0].get_attribute("aria-pressed") == "false")
    by(driver, "landscape-path")[0].click()
    card(driver, path="0")
    assert not by(driver, "landscape-play") and "path=off" in driver.current_url


def test_a_surface_is_turned_and_kept_in_the_address(page):
    driver = page(f"{PAGE}{quote('./deep bowl')}&view=surface")
    one = card(driver, view="surface", turn="0.70,0.60,1.00")
    canvas = one.find_element(By.TAG_NAME, "canvas")
    drawn = until(driver, lambda: driver.execute_script("return arguments[0].toDataURL()", canvas))
    ActionChains(driver).click_and_hold(canvas).move_by_offset(70, 28).release().perform()
    card(driver, turn="1.20,0.80,1.00")
    assert driver.execute_script("return arguments[0].toDataURL()", canvas) != drawn
    canvas.send_keys(Keys.ARROW_LEFT, "+")
    card(driver, turn="1.10,0.80,1.20")
    address = driver.current_url
    driver = page(address[address.index("#") :])
    one = card(driver, turn="1.10,0.80,1.20")
    one.find_element(By.TAG_NAME, "canvas").send_keys("0")
    card(driver, turn="0.70,0.60,1.00")


def test_what_is_under_the_pointer_is_told(page):
    driver = page(f"{PAGE}./bowl&heights=log&lines=30")
    one = card(driver, lines="30")
    until(driver, lambda: one.find_elements(By.TAG_NAME, "canvas"))
    canvas = one.find_element(By.TAG_NAME, "canvas")
    ActionChains(driver).move_to_element(canvas).perform()
    until(driver, lambda: "· Loss 0.0" in by(driver, "landscape-foot")[0].text)
    ActionChains(driver).move_to_element_with_offset(canvas, -canvas.size["width"] // 2 + 3, 0).perform()
    until(driver, lambda: "Directions" in by(driver, "landscape-foot")[0].text)  # beside the grid


def test_losses_that_are_not_finite(page):
    driver = page(f"{PAGE}./bowl&tag={quote('landscape_[9]')}")
    one = card(driver, tag="landscape_[9]")
    assert "No loss of this landscape is finite" in one.text
    assert not one.find_elements(By.TAG_NAME, "canvas")
    driver = page(f"{PAGE}./bowl&view=surface")
    assert card(driver, low="0").find_elements(By.TAG_NAME, "canvas")  # with a corner that is NaN


def test_landscapes_side_by_side(page):
    driver = page("#/compare-analysis/loss")
    until(driver, lambda: len(by(driver, "compare-train-checkbox")) >= 3)
    driver = page("#/compare-analysis/loss?interval=1-9&runs=" + quote('["bowl","deep bowl"]'))
    one, other = card(driver, run="bowl"), card(driver, run="deep bowl")
    assert one.get_attribute("data-scale") == "0,2" and other.get_attribute("data-scale") == "0,20"
    by(driver, "landscape-together")[0].click()
    for name in ("bowl", "deep bowl"):
        card(driver, run=name, scale="0,20")
    box = next(
        b for b in by(driver, "compare-train-checkbox") if b.get_attribute("data-run") == "./of mindspore 2"
    )
    box.click()
    told = "./of mindspore 2 has no landscape of this interval"
    until(driver, lambda: [one.text for one in by(driver, "landscape-missing")] == [told])
    Select(by(driver, "landscape-interval")[0]).select_by_visible_text("around the trained weights")
    card(driver, run="of mindspore 2", tag="landscape_[8]")
    by(driver, "landscape-view-surface")[0].click()
    card(driver, run="of mindspore 2", view="surface")
