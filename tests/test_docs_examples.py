"""The code in the docs runs, prints what the pages say, and raises what they promise."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
DOCS = TESTS.parent / "docs"


@pytest.mark.parametrize(
    "page",
    [
        "guide.md",
        "data.md",
        "debugging.md",
        "lite.md",
        "adding-an-op.md",
        "adding-a-backend.md",
        "ascend-sim.md",
    ],
)
def test_code_of_the_page_runs(page, python, tmp_path, install_metadata):
    files = python(TESTS / "run_page.py", DOCS / page, "--files", cwd=tmp_path)
    assert files.returncode == 0, files.stderr
    for pyproject in tmp_path.glob("**/pyproject.toml"):
        install_metadata(pyproject, tmp_path)
    result = python(TESTS / "run_page.py", DOCS / page, path=[tmp_path, TESTS.parent], cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr


def test_tour_runs(python, tmp_path):
    result = python(DOCS / "tour.py", cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr


def test_kernel_of_the_page_compiles(python, tmp_path):
    root = TESTS.parent
    python(TESTS / "run_page.py", DOCS / "adding-an-op.md", "--files", cwd=tmp_path)
    kernels = root / "packages" / "backend-cpu" / "native" / "kernels"
    # the struct that `hatch run gen` would write
    (tmp_path / "attrs.h").write_text(
        '#include "mycelia/op_attrs.h"\ntypedef struct { double b; } myc_squareplus_attrs;\n'
    )
    includes = [kernels / "include", kernels / "src", root / "packages" / "core" / "native" / "include"]
    command = ["g++", "-std=c++17", "-fsyntax-only", *(f"-I{i}" for i in includes), "-include", "attrs.h"]
    result = subprocess.run([*command, "squareplus.cc"], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
