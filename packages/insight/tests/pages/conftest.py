"""A service on a gallery of runs, and a headless browser that looks at it."""

from __future__ import annotations

import math
import shutil
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE.parent / "service"))

from event_files import scalar, write  # noqa: E402
from test_service import FIXTURE, Command  # noqa: E402

from mycelia_insight.service.app import PAGES  # noqa: E402

SCRIPT = "<script>document.title='taken'</script>"


def pytest_collection_modifyitems(config, items):
    missing = [name for name in ("chromium", "chromedriver") if not shutil.which(name)]
    if not (PAGES / "index.html").exists():
        missing.append("pages (tools/build_pages.py)")
    for item in items:
        if HERE not in item.path.parents:
            continue
        if missing:
            item.add_marker(pytest.mark.skip(reason=f"missing: {', '.join(missing)}"))
        if config.pluginmanager.hasplugin("rerunfailures"):  # a browser may lose a click while others work
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.fixture(scope="session")
def gallery(tmp_path_factory):
    base = tmp_path_factory.mktemp("gallery") / "runs"
    shutil.copytree(FIXTURE / "run1", base / "of mindspore")
    values = [math.exp(-step / 300) for step in range(3000)]
    values[700:703] = math.nan, math.inf, -math.inf
    write(
        base / "faults",
        [scalar(tag, s, v, 1.7e9 + s) for s, v in enumerate(values) for tag in ("loss", SCRIPT)],
    )
    write(base / SCRIPT.replace("/", "_"), [scalar("loss", 0, 1.0)])
    return base


@pytest.fixture(scope="session")
def service(gallery, tmp_path_factory):
    made = Command(tmp_path_factory.mktemp("pages"))
    assert made.start(gallery).returncode == 0
    yield made
    made("stop", "--port", str(made.port))


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in (
        "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-sync", "--disable-background-networking", "--disable-component-update",
        "--window-size=1280,900", "--lang=en-GB",
        f"--user-data-dir={tmp_path_factory.mktemp('profile')}",
    ):  # fmt: skip
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    yield driver
    driver.quit()


@pytest.fixture
def quiet(chromium):
    """The browser, whose console has no errors after the test.

    It is on no page before, since one of another module may still ask its
    service, which has ended, and on none after.
    """
    chromium.get("about:blank")
    chromium.get_log("browser")
    yield chromium
    noted = [entry for entry in chromium.get_log("browser") if entry["level"] == "SEVERE"]
    chromium.get("about:blank")
    assert noted == []


@pytest.fixture
def page(quiet, service):
    """Opens a page anew: `page("#/...")`."""

    def open_page(address: str = ""):
        quiet.get("about:blank")
        quiet.get(f"http://127.0.0.1:{service.port}/{address}")
        return quiet

    return open_page
