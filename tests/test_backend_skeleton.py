"""The example of an outside backend: found through its entry point, used, and conforming."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

SKELETON = Path(__file__).resolve().parent.parent / "examples" / "backend-skeleton"


@pytest.fixture(scope="module")
def with_skeleton(tmp_path_factory, install_metadata, python):
    """`python` where the example is an installed distribution."""
    site = tmp_path_factory.mktemp("site")
    install_metadata(SKELETON / "pyproject.toml", site)
    return functools.partial(python, path=[site, SKELETON / "src"], cwd=SKELETON)


def test_it_is_found_through_its_entry_point(with_skeleton):
    assert "acme-mycelia-backend" in with_skeleton("-m", "mycelia.cli", "plugins").stdout


def test_it_runs_what_its_readme_shows(with_skeleton):
    code = (SKELETON / "README.md").read_text().split("```python\n")[1].split("```")[0]
    result = with_skeleton("-c", code)
    assert result.stdout == "[2. 3.]\n", result.stderr


def test_it_conforms_and_passes_its_own_tests(with_skeleton):
    result = with_skeleton("-m", "pytest", "-p", "no:cacheprovider", "--rootdir", str(SKELETON), "tests")
    assert result.returncode == 0, result.stdout + result.stderr


def test_without_it_the_target_is_unknown(with_skeleton):
    code = "import mycelia as ms\nms.set_context(device_target='acme')\nms.Tensor([1.0]) + 1"
    result = with_skeleton("-c", code, MYCELIA_PLUGINS="backend-cpu")
    assert result.returncode != 0
    assert "'device_target' must be one of ['CPU', 'reference'], but got 'acme'" in result.stderr
