"""The examples of outside backends: found through their entry points, used, and conforming."""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
NEEDED = {"backend-skeleton": "numpy", "backend-far": "numpy", "backend-torch": "torch"}


@pytest.fixture(scope="module", params=NEEDED)
def example(request, tmp_path_factory, install_metadata, python):
    """(folder, `python` where the example is an installed distribution)."""
    folder, engine = EXAMPLES / request.param, NEEDED[request.param]
    if importlib.util.find_spec(engine) is None:
        pytest.skip(f"{request.param} compiles by {engine}, which is not installed")
    site = tmp_path_factory.mktemp("site")
    install_metadata(folder / "pyproject.toml", site)
    return folder, functools.partial(python, path=[site, folder / "src"], cwd=folder)


def test_it_is_found_through_its_entry_point(example):
    folder, run = example
    name = (folder / "pyproject.toml").read_text().split('name = "')[1].split('"')[0]
    assert name in run("-m", "mycelia.cli", "plugins").stdout


def test_it_runs_what_its_readme_shows(example):
    folder, run = example
    code = (folder / "README.md").read_text().split("```python\n")[1].split("```")[0]
    shown = [line.split("  # ")[1] for line in code.splitlines() if line.startswith("print")]
    result = run("-c", code)
    assert result.stdout.splitlines() == shown, result.stderr


def test_it_conforms_and_passes_its_own_tests(example):
    folder, run = example
    result = run("-m", "pytest", "-p", "no:cacheprovider", "--rootdir", str(folder), "tests")
    assert result.returncode == 0, result.stdout + result.stderr


def test_without_it_the_target_is_unknown(python):
    code = "import mycelia as ms\nms.set_context(device_target='acme')\nms.Tensor([1.0]) + 1"
    result = python("-c", code, MYCELIA_PLUGINS="backend-cpu")
    assert result.returncode != 0
    assert "'device_target' must be one of ['CPU', 'reference'], but got 'acme'" in result.stderr
