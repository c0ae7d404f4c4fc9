"""Pages of images and distributions, as a person uses them."""

from __future__ import annotations

import sys
from pathlib import Path
from urllib.parse import quote

import pytest
from selenium.webdriver import Keys
from selenium.webdriver.common.by import By

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "runs"), str(TESTS / "service"), str(TESTS / "pages")]
from test_media import recorded  # noqa: E402
from test_pages import by, new_run, until  # noqa: E402
from test_records import bucket, image_message, png  # noqa: E402

SCRIPT = "<script>document.title='taken'</script>"
REAL = "?train_id=" + quote("./of mindspore")
ODD = "?train_id=./odd%20media"


@pytest.fixture(scope="module")
def odd(service, gallery):
    image = [recorded(4, SCRIPT, image_message(png(4 + step, 3), 4 + step, 3), step) for step in range(3)]
    nan = [
        recorded(9, SCRIPT, bucket(step, 1, 5) + bucket(step + 1, 1, 9) + b"\x10\x03", step)
        for step in range(4)
    ]
    new_run(service, gallery, "odd media", image + nan)


def tagged(driver, testid: str, tag: str):
    return until(
        driver,
        lambda: next((one for one in by(driver, testid) if one.get_attribute("data-tag") == tag), None),
    )


def slide(box, key) -> None:
    box.send_keys(key)


def test_images_of_every_step(page):
    driver = page(f"#/train-manage/image{REAL}")
    card = tagged(driver, "image-card", "batch")
    until(driver, lambda: card.get_attribute("data-step") == "15")
    image = card.find_element(By.TAG_NAME, "img")
    until(driver, lambda: image.get_property("naturalWidth") == 128)
    slider = card.find_element(By.CSS_SELECTOR, '[data-testid="image-step-slider"]')
    slide(slider, Keys.HOME)
    until(driver, lambda: card.get_attribute("data-step") == "1" and "step=1&" in image.get_property("src"))
    slide(slider, Keys.ARROW_RIGHT)
    until(driver, lambda: card.get_attribute("data-step") == "3")
    assert tagged(driver, "image-card", "input_data/auto").get_attribute("data-step") == "15"
    slide(by(driver, "image-brightness")[0], Keys.END)
    slide(by(driver, "image-contrast")[0], Keys.HOME)
    until(driver, lambda: image.value_of_css_property("filter") == "brightness(2) contrast(0)")
    assert "brightness=100" in driver.current_url and "contrast=0" in driver.current_url
    by(driver, "image-brightness-reset")[0].click()
    until(driver, lambda: image.value_of_css_property("filter") == "brightness(1) contrast(0)")
    by(driver, "image-play")[0].click()
    until(driver, lambda: card.get_attribute("data-step") == "9")


def test_images_side_by_side_stand_at_one_step_that_the_address_names(page):
    driver = page(f"#/train-manage/image{REAL}&beside=1&place=2")
    for tag in ("batch", "input_data/auto"):
        card = tagged(driver, "image-card", tag)
        until(driver, lambda card=card: card.get_attribute("data-step") == "6")


def test_names_of_images_and_distributions_are_text(page, odd):
    for kind, testid in (("image", "image-card"), ("histogram", "histogram-chart")):
        driver = page(f"#/train-manage/{kind}{ODD}")
        assert SCRIPT in tagged(driver, testid, SCRIPT).text
        assert driver.title.startswith("./odd media-")


def test_an_image_that_claims_too_much_says_so(chromium, service, gallery):
    new_run(service, gallery, "huge", [recorded(4, "huge", image_message(png(100_000, 100_000)), 0)])
    driver = chromium
    driver.get("about:blank")
    driver.get(f"http://127.0.0.1:{service.port}/#/train-manage/image?train_id=./huge")
    card = tagged(driver, "image-card", "huge")
    until(driver, lambda: "claims 100000 x 100000 pixels" in card.text)
    # The browser notes the refused request; nothing else is wrong.
    noted = [entry["message"] for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
    assert noted and all("422" in text for text in noted)


def drawn(driver, chart) -> int:
    """How many pixels of a chart's canvas are of the green that marks values."""
    return driver.execute_script(
        "const c = arguments[0].querySelector('canvas');"
        "const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        "let n = 0; for (let i = 0; i < d.length; i += 4) n += d[i + 1] > d[i] + 20 && d[i + 3] > 20; return n;",
        chart,
    )


def test_distributions_in_every_view(page):
    driver = page(f"#/train-manage/histogram{REAL}")
    chart = tagged(driver, "histogram-chart", "net.fc1.weight/auto")
    until(driver, lambda: chart.get_attribute("data-steps") == "6")
    assert chart.get_attribute("data-view") == "top"
    seen = set()
    for view in ("front", "heat", "bands", "top"):
        by(driver, f"view-{view}")[0].click()
        until(driver, lambda view=view: chart.get_attribute("data-view") == view)
        seen.add(until(driver, lambda: drawn(driver, chart)))
    assert len(seen) == 4 and min(seen) > 2000
    by(driver, "view-heat")[0].click()
    by(driver, "xaxis-relative")[0].click()
    assert "view=heat" in driver.current_url and "axis=relative" in driver.current_url
    chart.find_element(By.CSS_SELECTOR, '[data-testid="histogram-enlarge"]').click()
    until(driver, lambda: chart.size["width"] > 1000)


def test_what_is_not_finite_is_told(page, odd):
    driver = page(f"#/train-manage/histogram{ODD}&view=front")
    chart = tagged(driver, "histogram-chart", SCRIPT)
    until(driver, lambda: "4 steps" in chart.text and "12 NaN" in chart.text)
