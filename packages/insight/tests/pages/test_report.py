"""The file that `mycelia-insight html` writes, opened in a real browser from the disk."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select
from typer.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "runs"))
sys.path.insert(0, str(Path(__file__).parents[1] / "service"))
sys.path.insert(0, str(Path(__file__).parent))
from event_files import TENSORBOARD, event, field, framed, number, scalar, write
from test_media import recorded
from test_pages import by, until
from test_records import image_message, png

from mycelia_insight.cli import app

SCRIPT = "<script>document.title='taken'</script>"  # as a tag and a run of the gallery are called


@pytest.fixture(scope="module")
def written(gallery, tmp_path_factory) -> Path:
    # Other tests add runs to the gallery that they share.
    folder = tmp_path_factory.mktemp("report")
    runs = folder / "runs"
    for name in ("of mindspore", "faults", SCRIPT.replace("/", "_")):
        shutil.copytree(gallery / name, runs / name)
    write(runs / "second", [scalar("loss", s, 2.0 + s / 1000, 1.7e9 + s) for s in range(3000)])
    texts = number(1, 7) + field(2, field(2, number(1, 1))) + field(8, SCRIPT)
    value = field(1, field(1, SCRIPT) + field(9, field(1, field(1, "text"))) + field(8, texts))
    write(runs / "words", [framed(event(1, 1.0, field(5, value)))], first=TENSORBOARD)
    boxes = {"boxes": [[0, 0, 2, 2], [1, 1, 3, 3]], "labels": [SCRIPT, "dog"], "scores": [0.9, 0.3]}
    layer = field(1, "found") + field(2, json.dumps(boxes)) + field(3, png(4, 4))
    over = image_message(png(4, 4), 4, 4) + field(100, layer)
    write(runs / "layers", [recorded(4, "annotated", over, 0)])
    path = folder / "report.html"
    result = CliRunner().invoke(app, ["html", "--summary-dir", str(runs), "-o", str(path), "--title", SCRIPT])
    assert result.exit_code == 0, result.output
    return path


@pytest.fixture
def opened(chromium, written):
    """The report; nothing is asked of anybody, and the console stays empty."""
    chromium.get("about:blank")
    chromium.get_log("performance")
    chromium.get_log("browser")
    chromium.get(written.as_uri())
    until(chromium, lambda: by(chromium, "scalar-chart"))
    yield chromium
    told = [json.loads(entry["message"])["message"] for entry in chromium.get_log("performance")]
    urls = {m["params"]["request"]["url"] for m in told if m["method"] == "Network.requestWillBeSent"}
    assert {url for url in urls if not url.startswith("data:")} == {written.as_uri()}
    # The test itself reads pixels, which the browser has advice for.
    assert [entry for entry in chromium.get_log("browser") if entry["source"] != "rendering"] == []
    chromium.execute_script("localStorage.clear()")


def chart(driver, tag: str, runs: int):
    def found():
        some = [one for one in by(driver, "scalar-chart") if one.get_attribute("data-tag") == tag]
        return some[0] if some and some[0].get_attribute("data-runs") == str(runs) else None

    return until(driver, found)


def colours_of(driver, card) -> list[str]:
    """Opaque colours of a chart, as `r,g,b`."""
    return driver.execute_script(
        "const c = arguments[0].querySelector('canvas'); const d = c.getContext('2d').getImageData(0, 0,"
        " c.width, c.height).data; const s = new Set(); for (let i = 0; i < d.length; i += 4)"
        " if (d[i + 3] > 200) s.add(`${d[i]},${d[i + 1]},${d[i + 2]}`); return [...s];",
        card,
    )


def test_runs_share_a_chart_and_can_be_hidden(opened):
    assert opened.title == SCRIPT
    assert opened.find_element(By.TAG_NAME, "h1").text == SCRIPT
    runs = {
        row.get_attribute("data-run"): row for row in opened.find_elements(By.CSS_SELECTOR, "tr[data-run]")
    }
    assert {"faults", "second", "of mindspore", SCRIPT.replace("/", "_")} <= runs.keys()
    assert "Momentum" in runs["of mindspore"].text
    one = chart(opened, "loss", 3)
    assert int(one.get_attribute("data-points")) > 1000
    assert one.find_element(By.TAG_NAME, "canvas").size["width"] > 200
    drawn = colours_of(opened, one)
    dots = {name: row.find_element(By.CSS_SELECTOR, ".dot").value_of_css_property("background-color")
            for name, row in runs.items()}  # fmt: skip
    for name in ("faults", "second"):  # a line in each run's colour
        assert ",".join(dots[name].removeprefix("rgba(").split(", ")[:3]) in drawn, name
    runs["second"].find_element(By.CSS_SELECTOR, '[data-testid="report-run"]').click()
    chart(opened, "loss", 2)


def test_axis_smoothing_zoom_and_search(opened):
    one = chart(opened, "loss", 3)
    before = one.get_attribute("data-points")
    by(opened, "xaxis-relative")[0].click()
    opened.execute_script(
        "const i = arguments[0]; i.value = '0.6'; i.dispatchEvent(new Event('input', {bubbles: true}))",
        by(opened, "report-smoothing")[0],
    )
    one = chart(opened, "loss", 3)
    assert one.get_attribute("data-points") == before
    over = one.find_element(By.CSS_SELECTOR, ".u-over")
    opened.execute_script("arguments[0].scrollIntoView({block: 'center'})", over)
    drag = ActionChains(opened).move_to_element_with_offset(over, -60, 0).click_and_hold()
    drag.move_by_offset(100, 0).release().perform()
    restore = one.find_element(By.CSS_SELECTOR, '[data-testid="scalar-restore"]')
    until(opened, lambda: restore.is_enabled())
    restore.click()
    until(opened, lambda: not restore.is_enabled())
    by(opened, "report-search")[0].send_keys("/^loss$/")
    until(opened, lambda: [c.get_attribute("data-tag") for c in by(opened, "scalar-chart")] == ["loss"])
    assert not by(opened, "image-card")


def test_images_distributions_and_texts(opened):
    cards = until(opened, lambda: by(opened, "image-card"))
    (annotated,) = [card for card in cards if card.get_attribute("data-tag") == "annotated"]
    card = next(one for one in cards if one != annotated)
    opened.execute_script("arguments[0].scrollIntoView()", card)
    image = card.find_element(By.TAG_NAME, "img")
    until(opened, lambda: opened.execute_script("return arguments[0].naturalWidth", image) > 0)
    last = card.get_attribute("data-step")
    slider = card.find_element(By.CSS_SELECTOR, '[data-testid="image-step-slider"]')
    opened.execute_script(
        "const i = arguments[0]; i.value = '0'; i.dispatchEvent(new Event('input', {bubbles: true}))", slider
    )
    until(opened, lambda: card.get_attribute("data-step") != last)
    until(opened, lambda: all(c.get_attribute("data-steps") == "6" for c in by(opened, "histogram-chart")))
    assert len(by(opened, "histogram-chart")) == 6
    (text,) = by(opened, "text-card")
    assert text.find_element(By.TAG_NAME, "pre").text == SCRIPT
    opened.execute_script("arguments[0].scrollIntoView()", annotated)
    overlay = until(opened, lambda: by(opened, "image-overlay"))[0]
    drawn = lambda: (overlay.get_attribute("data-boxes"), overlay.get_attribute("data-masks"))
    until(opened, lambda: drawn() == ("2", "1"))
    assert {SCRIPT + " 0.90", "dog 0.30"} <= set(overlay.text.split("\n"))


def test_themes_and_languages(opened):
    one, grid = (
        chart(opened, "loss", 3),
        {"Light": (217, 224, 220), "Dark": (46, 58, 52)},
    )  # --line of theme.css

    def is_drawn(colour: tuple[int, int, int]) -> bool:
        found = [[int(part) for part in text.split(",")] for text in colours_of(opened, one)]
        return any(max(abs(a - b) for a, b in zip(one, colour, strict=True)) <= 3 for one in found)

    for theme in ("Dark", "Light", "Dark"):
        Select(by(opened, "theme")[0]).select_by_visible_text(theme)
        until(opened, lambda theme=theme: is_drawn(grid[theme]))
    assert "dark" in opened.find_element(By.TAG_NAME, "html").get_attribute("class")
    by(opened, "language")[0].send_keys("中文")
    until(opened, lambda: "参数分布" in opened.find_element(By.TAG_NAME, "main").text)
