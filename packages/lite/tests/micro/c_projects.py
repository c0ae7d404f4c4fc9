"""Folders of C sources that are compiled with all warnings as errors, and run."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
C = ("gcc", "-std=c99")
CXX = ("g++", "-x", "c++", "-std=c++11")


def compiled(folder: Path, compiler: tuple[str, ...] = C, *more: str) -> Path:
    """The self-test of a project as a program; the test is skipped without the compiler."""
    if shutil.which(compiler[0]) is None:
        pytest.skip(f"needs {compiler[0]}")
    sources = sorted(map(str, (*folder.glob("src/**/*.c"), *folder.glob("benchmark/*.c"))))
    includes = [f"-I{folder / name}" for name in ("include", "src", "benchmark")]
    program = folder / f"program-{compiler[0]}"
    command = [*compiler, *WARNINGS, *(more or ("-O1",)), *includes, *sources, "-lm", "-o", str(program)]
    made = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert made.returncode == 0, made.stderr[:3000]
    return program


def run(program: Path) -> list[str]:
    """The lines of a self-test that found no difference."""
    made = subprocess.run([str(program)], capture_output=True, text=True, timeout=300)
    assert made.returncode == 0, made.stdout + made.stderr
    return made.stdout.splitlines()
