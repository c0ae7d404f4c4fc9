"""Pages of images, distributions, tensors, texts and sounds, as a person uses them."""

from __future__ import annotations

import json
import struct
import sys
import zlib
from pathlib import Path
from urllib.parse import quote

import pytest
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "runs"), str(TESTS / "service"), str(TESTS / "pages")]
from charts import pointed, series  # noqa: E402
from event_files import TENSORBOARD, field, path_of  # noqa: E402
from test_media import WAVE, recorded, told  # noqa: E402
from test_pages import by, new_run, until  # noqa: E402
from test_records import bucket, image_message, png, tensorflow  # noqa: E402


def colours(width: int, height: int, of) -> bytes:
    """A PNG of `of(x, y)`, red, green and blue."""
    rows = b"".join(b"\0" + b"".join(bytes(of(x, y)) for x in range(width)) for y in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    chunks = [struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in parts]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


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
    driver = page(f"#/train-manage/image{REAL}&beside=1&step=7")
    for tag in ("batch", "input_data/auto"):
        card = tagged(driver, "image-card", tag)
        until(driver, lambda card=card: card.get_attribute("data-step") == "6")


def until_step(driver, card, step: int) -> None:
    until(driver, lambda: card.get_attribute("data-step") == str(step))


def test_what_differs_between_two_steps_is_drawn_and_told(page, service, gallery):
    def square(value: int) -> bytes:
        return colours(8, 8, lambda x, y: (value, 10, 10) if x < 2 and y == 3 else (10, 10, 10))

    records = [recorded(4, "s", image_message(square(v), 8, 8), step) for step, v in enumerate((10, 13, 110))]
    records.append(recorded(4, "s", image_message(png(4, 4), 4, 4), 3))
    new_run(service, gallery, "differing", records)
    driver = page("#/train-manage/image?train_id=./differing&size=20&step=2&against=previous")
    card = tagged(driver, "image-card", "s")

    def differs():
        found = by(driver, "image-difference")
        return found and (found[0].get_attribute("data-changed"), found[0].get_attribute("data-most"))

    until(driver, lambda: differs() == ("2", "97") and card.get_attribute("data-against") == "1")
    Select(by(driver, "image-against")[0]).select_by_value("step")
    until(driver, lambda: differs() == ("2", "100") and card.get_attribute("data-against") == "0")
    by(driver, "image-against-slider")[0].send_keys(Keys.ARROW_RIGHT)
    until(driver, lambda: differs() == ("2", "97"))
    canvas = "document.querySelector('[data-testid=image-difference]').getContext('2d')"
    red = lambda x: driver.execute_script(f"return {canvas}.getImageData({x}, 3, 1, 1).data[0]")
    assert (red(1), red(2)) == (97, 0)
    Select(by(driver, "image-gain")[0]).select_by_value("2")
    until(driver, lambda: (red(1), red(2)) == (194, 0))
    ActionChains(driver).move_to_element_with_offset(by(driver, "image-difference")[0], 9, 9).perform()
    until(driver, lambda: by(driver, "image-pixel")[0].text == "(4, 4) 10 – 10")
    by(driver, "image-step-slider")[0].send_keys(Keys.END)
    until(driver, lambda: "The images are of different sizes." in card.text)


def test_the_pixel_under_the_pointer_is_told(page, service, gallery):
    image = colours(9, 5, lambda x, y: (x * 20, y * 40, 7))
    classes = colours(9, 5, lambda x, y: (2, 2, 2) if x > 4 else (0, 0, 0))
    boxes = {"boxes": [[0, 0, 4.5, 2.5], [1, 1, 2, 2]], "labels": [SCRIPT, "dog"], "scores": [0.9, 0.3]}
    layer = field(1, f"found {SCRIPT}") + field(2, json.dumps(boxes)) + field(3, classes)
    layer += field(4, json.dumps({"2": "road"}))
    over = image_message(image, 9, 5) + field(100, layer)
    new_run(
        service, gallery, "pixels", [recorded(4, "p", over, 0), recorded(4, "plain", image_message(png()), 0)]
    )
    driver = page("#/train-manage/image?train_id=./pixels")
    shown = until(driver, lambda: driver.find_elements(By.CSS_SELECTOR, '[data-testid="image-card"] img'))[0]
    until(driver, lambda: shown.size["width"] > 100)
    wide, high = shown.size["width"], shown.size["height"]
    ActionChains(driver).move_to_element_with_offset(
        shown, int(-wide / 2 + wide * 2.5 / 9), int(high * 2 / 5)
    ).perform()
    until(driver, lambda: by(driver, "image-pixel")[0].text == "(2, 4) 40 160 7")
    ActionChains(driver).move_by_offset(0, -high - 100).perform()
    until(driver, lambda: by(driver, "image-pixel")[0].text.strip() == "")
    # Boxes and masks lie over it, as large as it is.
    overlay = until(driver, lambda: by(driver, "image-overlay"))[0]
    assert len(by(driver, "image-overlay")) == 1  # the other tag has none
    drawn = lambda: (overlay.get_attribute("data-boxes"), overlay.get_attribute("data-masks"))
    until(driver, lambda: drawn() == ("2", "1"))
    assert {SCRIPT + " 0.90", "dog 0.30"} <= set(overlay.text.split("\n"))
    rect = overlay.find_element(By.TAG_NAME, "rect").rect
    assert abs(rect["width"] - wide / 2) < 4 and abs(rect["height"] - high / 2) < 4
    painted = "const c = arguments[0].querySelector('canvas'); "
    painted += "return c ? [...c.getContext('2d').getImageData(arguments[1], 0, 1, 1).data] : null"
    until(driver, lambda: driver.execute_script(painted, overlay, 8)[3] == 255)
    assert driver.execute_script(painted, overlay, 2)[3] == 0
    tick = lambda kind, name: next(
        one for one in by(driver, f"image-{kind}") if one.get_attribute(f"data-{kind}") == name
    ).click()
    tick("label", "road")
    until(driver, lambda: driver.execute_script(painted, overlay, 8)[3] == 0)
    by(driver, "image-score")[0].send_keys(Keys.END)
    until(driver, lambda: drawn() == ("0", "1"))
    by(driver, "image-score")[0].send_keys(Keys.HOME)
    tick("label", "dog")
    until(driver, lambda: drawn() == ("1", "1"))
    tick("layer", f"found {SCRIPT}")
    until(driver, lambda: drawn()[0] == "0" and driver.execute_script(painted, overlay, 8) is None)
    assert "off=" in driver.current_url and driver.title.startswith("./pixels")
    driver = page(driver.current_url[driver.current_url.index("#") :])  # the address says what is off
    until(
        driver,
        lambda: (
            by(driver, "image-overlay") and by(driver, "image-overlay")[0].get_attribute("data-boxes") == "0"
        ),
    )


def test_runs_stand_side_by_side_at_one_step_and_are_compared(page, service, gallery):
    for name, steps, value in (("left", (0, 2, 4), 50), ("right", (1, 4), 80)):
        one = colours(4, 4, lambda x, y, value=value: (value, value, value))
        tags = ("i", "only left") if name == "left" else ("i",)
        written = [recorded(4, tag, image_message(one, 4, 4), step) for step in steps for tag in tags]
        new_run(service, gallery, name, written)
    driver = page("#/train-manage/image?train_id=./left")
    until(driver, lambda: by(driver, "image-run"))
    driver.execute_script("document.querySelector('details').open = true")
    (box,) = [one for one in by(driver, "image-run") if one.get_attribute("data-run") == "./right"]
    driver.execute_script("arguments[0].click()", box)
    cards = lambda: {
        c.get_attribute("data-run"): c.get_attribute("data-step")
        for c in by(driver, "image-card")
        if c.get_attribute("data-tag") == "i"
    }
    until(driver, lambda: cards() == {"./left": "4", "./right": "4"})
    # What the other run lacks is said; it is not asked for, so the console stays empty.
    (missing,) = by(driver, "image-missing")
    assert missing.get_attribute("data-run") == "./right" and "no images of this tag" in missing.text
    by(driver, "image-step-slider")[0].send_keys(Keys.ARROW_LEFT)
    until(driver, lambda: cards() == {"./left": "2", "./right": "1"})
    assert "runs=" in driver.current_url and "step=2" in driver.current_url
    Select(by(driver, "image-against")[0]).select_by_value("run")
    until(driver, lambda: [d.get_attribute("data-most") for d in by(driver, "image-difference")] == ["30"])


def test_names_of_images_and_distributions_are_text(page, odd):
    for kind, testid in (("image", "image-card"), ("histogram", "histogram-chart")):
        driver = page(f"#/train-manage/{kind}{ODD}")
        assert SCRIPT in tagged(driver, testid, SCRIPT).text
        assert driver.title.startswith("./odd media-")


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + bytes(20)


def jpeg(width: int, height: int) -> bytes:
    return b"\xff\xd8\xff\xc0\x00\x11\x08" + struct.pack(">HH", height, width) + bytes(20)


@pytest.mark.parametrize("against", ["none", "previous"])
def test_images_that_claim_too_much_say_so(chromium, service, gallery, against):
    claims = {"png": png(100_000, 100_000), "gif": gif(65_535, 65_535), "jpeg": jpeg(65_535, 65_535)}
    if not (gallery / "huge").exists():
        records = [
            recorded(4, tag, image_message(data), step) for step in (0, 1) for tag, data in claims.items()
        ]
        new_run(service, gallery, "huge", records)
    driver = chromium
    driver.get("about:blank")
    driver.get(f"http://127.0.0.1:{service.port}/#/train-manage/image?train_id=./huge&against={against}")
    for tag in claims:
        card = tagged(driver, "image-card", tag)
        size = "100000 x 100000" if tag == "png" else "65535 x 65535"
        until(driver, lambda card=card, size=size: f"claims {size} pixels" in card.text)
    # The browser notes the refused requests; nothing else is wrong.
    noted = [entry["message"] for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
    assert noted and all("422" in text for text in noted)


def drawn(driver, chart) -> int:
    """How many pixels of a chart's canvas are of the green that marks values."""
    return driver.execute_script(
        "const c = arguments[0].querySelector('canvas'); if (!c) return 0;"
        "const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        "let n = 0; for (let i = 0; i < d.length; i += 4) n += d[i + 1] > d[i] + 20 && d[i + 3] > 20;"
        "return n;",
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
        seen.add(until(driver, lambda: {drawn(driver, chart)} - seen - {0}).pop())
    assert len(seen) == 4 and min(seen) > 2000
    # Under the pointer is the step whose ridge is nearest, and it is marked.
    host = chart.find_element(By.CSS_SELECTOR, "[role=img]")
    kinds = "return arguments[0].chart.getZr().storage.getDisplayList().filter(one => one.type === 'polygon')"
    edges = lambda: driver.execute_script(kinds + ".map(one => one.style.stroke)", host)
    assert len(edges()) == 6 and len(series(driver, host)[0]["data"]) == 6 and len(set(edges())) == 1
    size = host.size
    pointed(driver, host, [14 + (size["width"] - 88) * 0.4, size["height"] - 30]).perform()
    until(driver, lambda: "Step 15 · Value" in chart.text and "Count" in chart.text)
    until(driver, lambda: len(set(edges())) == 2 and edges()[-1] not in edges()[:-1])
    by(driver, "view-heat")[0].click()
    by(driver, "xaxis-relative")[0].click()
    assert "view=heat" in driver.current_url and "axis=relative" in driver.current_url
    chart.find_element(By.CSS_SELECTOR, '[data-testid="histogram-enlarge"]').click()
    until(driver, lambda: chart.size["width"] > 1000)


def test_every_step_of_a_long_distribution_is_reached(page, service, gallery):
    many = [recorded(9, "h", bucket(step, 1, 5 + step), step) for step in range(250)]
    new_run(service, gallery, "long", many)
    driver = page("#/train-manage/histogram?train_id=./long")
    chart = tagged(driver, "histogram-chart", "h")
    until(driver, lambda: chart.get_attribute("data-steps") == "100" and "250 steps (100)" in chart.text)
    by(driver, "histogram-window")[0].click()
    until(driver, lambda: "steps 1 to 100 of 250" in chart.text)
    by(driver, "histogram-begin")[0].send_keys(Keys.END)
    until(driver, lambda: "steps 151 to 250 of 250" in chart.text)
    by(driver, "histogram-window")[0].click()
    until(driver, lambda: "250 steps (100)" in chart.text)


def test_what_is_not_finite_is_told(page, odd):
    driver = page(f"#/train-manage/histogram{ODD}&view=front")
    chart = tagged(driver, "histogram-chart", SCRIPT)
    until(driver, lambda: "4 steps" in chart.text and "12 NaN" in chart.text)


def test_tensors_by_slices(page):
    driver = page(f"#/train-manage/tensor{REAL}")
    card = tagged(driver, "tensor-card", "logits")

    def cells():
        rows = "return [...arguments[0].querySelectorAll('tbody tr')].map(r => r.cells.length - 1)"
        return driver.execute_script(rows, card)

    until(driver, lambda: by(driver, "tensor-table") and cells() == [4, 4, 4, 4])
    assert "float32 [4, 4]" in card.text and "count 16" in card.text
    box = by(driver, "tensor-dim")[1]
    box.clear()
    box.send_keys("-1", Keys.ENTER)
    until(driver, lambda: cells() == [4] and "slices=" in driver.current_url)
    slide(by(driver, "tensor-step-slider")[0], Keys.HOME)
    until(driver, lambda: card.get_attribute("data-step") == "1")
    address = driver.current_url
    driver = page(address[address.index("#") :])
    card = tagged(driver, "tensor-card", "logits")
    until(driver, lambda: card.get_attribute("data-step") == "1" and cells() == [4])
    by(driver, "tensor-show-histogram")[0].click()
    chart = tagged(driver, "histogram-chart", "logits")
    until(driver, lambda: chart.get_attribute("data-steps") == "6" and drawn(driver, chart))


def test_what_is_not_finite_stands_in_the_table(page, service, gallery):
    values = struct.pack("<4f", float("nan"), float("inf"), float("-inf"), -2)
    records = [recorded(8, SCRIPT, b"\x08\x02\x08\x02\x10\x0b" + field(3, values), 0)]
    new_run(service, gallery, "odd tensor", records)
    driver = page("#/train-manage/tensor?train_id=./odd%20tensor")
    card = tagged(driver, "tensor-card", SCRIPT)
    until(driver, lambda: by(driver, "tensor-table"))
    found = [cell.text for cell in card.find_elements(By.TAG_NAME, "td")]
    assert found == ["NaN", "+Inf", "-Inf", "-2"] and SCRIPT in card.text


HYPER = """# Settings of *run*

|param|value|
|-|:-:|
|learning\\|rate|0.5|
|`batch`|16|
|<b>x</b>|128|

* **first** one
* [second](javascript:alert(1))

```
if a < b:
    | no | table |
```
1 | 2 is no table"""


def test_tables_of_markdown_are_tables_and_the_rest_is_text(page, service, gallery):
    path_of(gallery / "hyper").write_bytes(
        TENSORBOARD + told("hyper", "text", tensorflow(7, [], field(8, HYPER)), 1)
    )
    until(None, lambda: "hyper" in [row["run"] for row in service.get("/api/v1/runs")["runs"]])
    driver = page("#/train-manage/text?train_id=./hyper")
    card = tagged(driver, "text-card", "hyper")
    table = until(driver, lambda: by(driver, "text-table"))[0]

    def column(n: int) -> list[str]:
        return [cell.text for cell in table.find_elements(By.CSS_SELECTOR, f"tbody td:nth-child({n})")]

    assert column(1) == ["learning|rate", "batch", "<b>x</b>"] and column(2) == ["0.5", "16", "128"]
    by(driver, "text-sort")[1].click(), by(driver, "text-sort")[1].click()
    until(driver, lambda: column(2) == ["128", "16", "0.5"])
    assert [one.text for one in card.find_elements(By.TAG_NAME, "li")] == [
        "first one", "[second](javascript:alert(1))",
    ]  # fmt: skip
    assert (
        card.find_element(By.TAG_NAME, "strong").text == "first" and card.find_element(By.TAG_NAME, "h3").text
    )
    assert card.find_element(By.TAG_NAME, "pre").text == "if a < b:\n    | no | table |"
    assert card.find_element(By.TAG_NAME, "p").text and not card.find_elements(By.TAG_NAME, "b")
    assert len(by(driver, "text-table")) == 1 and "1 | 2 is no table" in card.text
    by(driver, "text-written")[0].click()
    until(driver, lambda: [one.text for one in card.find_elements(By.TAG_NAME, "pre")] == [HYPER])


def test_texts_tables_and_sounds(page, service, gallery):
    records = [
        told(SCRIPT, "text", tensorflow(7, [], field(8, f"<img src=x> {step}")), step) for step in range(30)
    ]
    records.append(
        told("table", "text", tensorflow(7, [2, 2], *(field(8, c) for c in ("a", "b", "<b>", "d"))), 1)
    )
    records += [
        told("wave", "audio", tensorflow(7, [1, 2], field(8, WAVE), field(8, "")), step) for step in (1, 2)
    ]
    path_of(gallery / "board").write_bytes(TENSORBOARD + b"".join(records))
    until(None, lambda: "board" in [row["run"] for row in service.get("/api/v1/runs")["runs"]])
    driver = page("#/train-manage/text?train_id=./board")
    card = tagged(driver, "text-card", SCRIPT)
    until(driver, lambda: len(card.find_elements(By.TAG_NAME, "pre")) == 20)
    assert card.find_element(By.TAG_NAME, "pre").text == "<img src=x> 29" and SCRIPT in card.text
    by(driver, "text-earlier")[0].click()
    until(
        driver, lambda: len(card.find_elements(By.TAG_NAME, "pre")) == 30 and not by(driver, "text-earlier")
    )
    table = by(driver, "text-table")[0]
    assert [cell.text for cell in table.find_elements(By.TAG_NAME, "td")] == ["a", "b", "<b>", "d"]
    driver = page("#/train-manage/audio?train_id=./board")
    card = tagged(driver, "audio-card", "wave")
    until(driver, lambda: card.get_attribute("data-step") == "2")
    slide(by(driver, "audio-step-slider")[0], Keys.HOME)
    until(driver, lambda: card.get_attribute("data-step") == "1")
    assert "step=1&" in card.find_element(By.TAG_NAME, "audio").get_property("src")
