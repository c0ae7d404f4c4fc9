"""A tensor that had another shape in the step before, in a real browser: shown, and compared with none."""

from __future__ import annotations

import sys
from pathlib import Path
from urllib.parse import quote

import pytest
from selenium.webdriver.support.ui import Select

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "service"), str(TESTS / "pages"), str(TESTS / "debugger")]
from test_changed_shapes import dump_eager_training  # noqa: E402
from test_debugger_pages import press, text, texts  # noqa: E402
from test_pages import by, until  # noqa: E402
from test_service import Command  # noqa: E402


@pytest.fixture(scope="module")
def dumped(tmp_path_factory):
    base = tmp_path_factory.mktemp("shapes") / "runs"
    dump_eager_training(base / "dump")
    made = Command(tmp_path_factory.mktemp("service"))
    (step,) = base.glob("dump/rank_0/*/*/2")
    made.graph = f"graph_{step.parent.name}"
    assert made.start(base).returncode == 0
    yield made
    made("stop", "--port", str(made.port))


def test_another_shape_is_told_and_the_page_goes_on(chromium, dumped):
    driver = chromium
    driver.get("about:blank")
    driver.get_log("browser")
    relu = quote(f"{dumped.graph}/Default/network-WithLossCell/_backbone-Net/relu-ReLU/ReLU-op0")
    address = f"http://127.0.0.1:{dumped.port}/#/offline-debugger?dir=./dump&step=3&node={relu}"
    driver.get(f"{address}&tensor=output:0")
    until(driver, lambda: "float32 [3, 4]" in text(driver, "tensor-values"))
    Select(by(driver, "tensor-other")[0]).select_by_value("2")
    until(driver, lambda: "has shape [3, 4] in step 3, [5, 4] in 2" in text(driver, "tensor-values"))
    press(driver, "compare-button")
    until(driver, lambda: any("[3, 4]" in row and "[5, 4]" in row for row in texts(driver, "compare-row")))
    press(driver, "step", step="2")
    until(driver, lambda: "float32 [5, 4]" in text(driver, "tensor-values"))
    noted = [one for one in driver.get_log("browser") if one["level"] == "SEVERE"]
    driver.get("about:blank")
    assert [one for one in noted if one["source"] != "network"] == []  # a refusal is noted, too
