"""The native test programs (native/tests): built with the system's compiler, run for each variant."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from mycelia_backend_cpu import _native

SOURCES = Path(__file__).resolve().parents[1] / "native" / "tests"
VARIANTS = list(dict.fromkeys(["generic", _native.isa()]))

pytestmark = pytest.mark.skipif(
    not SOURCES.is_dir() or not shutil.which("cmake") or not shutil.which("c++"),
    reason="needs sources, CMake and a compiler",
)


@pytest.fixture(scope="module")
def build(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("native")
    targets = ["threadpool", *(f"{test}_{isa}" for test in ("gemm", "simd_math") for isa in VARIANTS)]
    for command in (
        ["cmake", "-S", SOURCES, "-B", directory],
        ["cmake", "--build", directory, "--parallel", "2", "--target", *targets],
    ):
        result = subprocess.run(command, capture_output=True, text=True)
        assert result.returncode == 0, result.stdout + result.stderr
    return directory


@pytest.mark.parametrize("isa", VARIANTS)
@pytest.mark.parametrize("program", ["gemm", "simd_math"])
def test_program_finds_no_error(build, program, isa):
    result = subprocess.run([build / f"{program}_{isa}"], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


def test_thread_pool_finds_no_error(build):
    result = subprocess.run([build / "threadpool"], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stdout


def test_kernel_objects_need_no_cpp_library(build):
    """The kernels must link into C programs: no C++ run-time library, no heap."""
    objects = [p for isa in VARIANTS for p in build.rglob(f"gemm_{isa}.dir/**/gemm.cc.o")]
    assert objects
    for path in objects:
        undefined = subprocess.run(["nm", "-u", path], capture_output=True, text=True, check=True).stdout
        names = [line.split()[-1] for line in undefined.splitlines()]
        bad = [
            n
            for n in names
            if n.startswith(("_Z", "__cxa", "__gxx")) or n in ("malloc", "free", "calloc", "realloc")
        ]
        assert not bad, f"{path.name}: {bad}"
