"""The page of examples/insight_page, installed as a distribution, under the service's policy."""

from __future__ import annotations

import os
import sys
import tomllib
import urllib.request
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "service"), str(TESTS / "pages")]
from event_files import scalar, write  # noqa: E402
from test_hostile_pages import MADE, evil  # noqa: E402
from test_pages import by, until  # noqa: E402
from test_service import Command  # noqa: E402

EXAMPLE = TESTS.parents[2] / "examples" / "insight_page"
BROKEN = """
from mycelia.hookspecs import hookimpl
@hookimpl
def mycelia_dashboards(app):
    raise RuntimeError("it does not work today")
"""
pytestmark = pytest.mark.skipif(not EXAMPLE.is_dir(), reason="examples/insight_page is not here")


def installed(site: Path, pyproject: Path) -> None:
    """As an installer leaves a distribution."""
    project = tomllib.loads(pyproject.read_text())["project"]
    info = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n")
    points = [f"{name} = {target}" for name, target in project["entry-points"]["mycelia"].items()]
    (info / "entry_points.txt").write_text("\n".join(["[mycelia]", *points]))


@pytest.fixture(scope="module")
def ranked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dashboards")
    site = folder / "site"
    installed(site, EXAMPLE / "pyproject.toml")
    info = site / "broken-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: broken-page\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[mycelia]\nbroken = broken_page\n")
    (site / "broken_page.py").write_text(BROKEN)
    for name, values in (
        ("worse", (3.0, 2.0, float("nan"))),
        ("best", (2.0, 0.5, 1.0)),
        (evil("run"), (9.0,)),
    ):
        write(folder / "runs" / name, [scalar(f"loss/{name}", step, one) for step, one in enumerate(values)])
    made = Command(folder)
    made.environment["PYTHONPATH"] = os.pathsep.join([str(site), str(EXAMPLE / "src")])
    assert made.start(folder / "runs").returncode == 0
    yield made
    made("stop", "--port", str(made.port))


def test_a_page_of_another_distribution_is_found_and_works(chromium, ranked):
    chromium.get_log("browser")
    chromium.get(f"http://127.0.0.1:{ranked.port}/")
    (link,) = until(chromium, lambda: by(chromium, "dashboard-link"))
    assert link.text == "Ranking"
    link.click()

    def rows():
        return [one.get_attribute("data-run") for one in chromium.find_elements(By.CSS_SELECTOR, ".acme-row")]

    runs = ["./best", "./worse", "./" + evil("run")]
    until(chromium, lambda: rows() == runs)
    assert "0.5000 (step 1)" in chromium.find_element(By.CSS_SELECTOR, ".acme-row").text
    assert chromium.title == "Ranking-Mycelia Insight"
    style = "return getComputedStyle(document.querySelector('.acme-row')).borderRadius"
    until(chromium, lambda: chromium.execute_script(style) == "8px")
    assert (
        chromium.execute_script(MADE) == [] and chromium.execute_script("return window.taken ?? null") is None
    )
    Select(by(chromium, "language")[0]).select_by_visible_text("中文")
    until(chromium, lambda: "每个训练的最低损失" in chromium.find_element(By.TAG_NAME, "main").text)
    until(chromium, lambda: rows() == runs)  # once, not twice
    chromium.execute_script("localStorage.clear(); location.hash = '#/summary-manage'")
    until(chromium, lambda: by(chromium, "run-row") and not rows())
    assert [one for one in chromium.get_log("browser") if one["level"] == "SEVERE"] == []


def test_a_page_that_is_not_there_is_named(chromium, ranked):
    chromium.get("about:blank")
    chromium.get(f"http://127.0.0.1:{ranked.port}/#/dashboard?name=<b>nothing")
    until(
        chromium,
        lambda: "There is no dashboard <b>nothing" in chromium.find_element(By.TAG_NAME, "main").text,
    )
    assert chromium.execute_script(MADE) == []


def test_its_files_have_the_policy_of_all_pages_and_stay_in_their_folder(ranked):
    base = f"http://127.0.0.1:{ranked.port}/dashboards/acme-ranking"
    with urllib.request.urlopen(f"{base}/page.js") as answer:
        assert "javascript" in answer.headers["Content-Type"]
        assert answer.headers["Content-Security-Policy"].startswith("default-src 'self'")
    assert ranked.get("/dashboards/acme-ranking/api/best?part=nothing") == []
    assert ranked.get("/api/v1/dashboards?language=zh")["dashboards"] == [
        {"name": "acme-ranking", "title": "排行"}
    ]
    for path in ("/../plugin.py", "/%2e%2e/plugin.py", "/..%2fplugin.py", "/gone.js"):
        status, _ = ranked.refused(f"/dashboards/acme-ranking{path}")
        assert status == 404, path
    assert ranked.refused("/dashboards/gone/page.js")[0] == 404
