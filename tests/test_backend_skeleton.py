"""The example of an outside backend: found through its entry point, used, and conforming."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

SKELETON = Path(__file__).resolve().parent.parent / "examples" / "backend-skeleton"


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> dict[str, str]:
    """Environment variables under which the example is an installed distribution: its sources, and the metadata that an
    installer would write from its pyproject.toml."""
    project = tomllib.loads((SKELETON / "pyproject.toml").read_text())["project"]
    site = tmp_path_factory.mktemp("site")
    info = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {target}" for name, target in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines))
    clean = {k: v for k, v in os.environ.items() if not k.startswith("MYCELIA_")}
    return {**clean, "PYTHONPATH": os.pathsep.join([str(site), str(SKELETON / "src")])}


def python(environment: dict[str, str], *arguments: str) -> str:
    done = subprocess.run([sys.executable, *arguments], env=environment, cwd=SKELETON, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_is_found_through_its_entry_point(environment):
    listing = python(environment, "-m", "mycelia.cli", "plugins")
    assert "acme-mycelia-backend" in listing


def test_it_runs_what_its_readme_shows(environment):
    code = (SKELETON / "README.md").read_text().split("```python\n")[1].split("```")[0]
    assert python(environment, "-c", code) == "[2. 3.]\n"


def test_it_conforms_and_passes_its_own_tests(environment):
    python(environment, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", str(SKELETON), "tests")


def test_without_it_the_target_is_unknown(environment):
    code = "import mycelia as ms\nms.set_context(device_target='acme')\nms.Tensor([1.0]) + 1"
    without = {**environment, "MYCELIA_PLUGINS": "backend-cpu"}
    done = subprocess.run([sys.executable, "-c", code], env=without, capture_output=True, text=True)
    assert done.returncode != 0
    assert "acme" in done.stderr
