"""Builds native code into the environment that runs this script.

`python tools/build_native.py [core] [backend-cpu] ...`; without names, every package with
native/CMakeLists.txt. Incremental; build trees lie in packages/<name>/build/dev, shared with the
installation of the package. Concurrent calls queue. MYCELIA_BUILD_TYPE=Debug|Asan|Tsan picks another build
type (its own tree), MYCELIA_ISA=avx2 limits the kernel variants, MYCELIA_JOBS the compilers at once.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import numpy

ROOT = Path(__file__).resolve().parent.parent


def native_packages() -> list[str]:
    return sorted(p.parent.parent.name for p in ROOT.glob("packages/*/native/CMakeLists.txt"))


@contextlib.contextmanager
def queue():
    """One build at a time: two ninjas in one tree, or two installs of one file, would spoil each other."""
    lock = ROOT / "build" / "native.lock"
    lock.parent.mkdir(exist_ok=True)
    with lock.open("w") as file:
        try:
            import fcntl
        except ImportError:  # no file locks here (Windows): concurrent calls are the caller's concern
            yield
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("build_native: another build is running, waiting for it", flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def tool(name: str, tree: Path, cache_key: str) -> str:
    """The program that made the build tree, lest everything is compiled anew;
    else the environment's or system's.

    The tree may come from the installation of the package, which uses a cmake and a ninja of its own choice.
    """
    cache = tree / "CMakeCache.txt"
    if cache.exists():
        used = re.search(rf"(?m)^{cache_key}:\w+=(.+)$", cache.read_text())
        if used and Path(used[1]).exists():
            return used[1]
    found = shutil.which(name, path=sysconfig.get_path("scripts")) or shutil.which(name)
    if not found:
        sys.exit(f"build_native: {name} is missing; install it with: pip install {name}")
    return found


def run(command: list[str], what: str) -> None:
    """Run one step; a step that fails shows all it printed, a step that succeeds only its warnings."""
    result = subprocess.run(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if result.returncode:
        print(result.stdout, flush=True)
        sys.exit(f"build_native: {what} failed (exit code {result.returncode})")
    for line in result.stdout.splitlines():
        if "warning:" in line:
            print(line, flush=True)


def build(package: str) -> None:
    source = ROOT / "packages" / package / "native"
    if not (source / "CMakeLists.txt").exists():
        known = ", ".join(native_packages())
        sys.exit(f"build_native: no native code in package {package!r}; native are: {known}")
    build_type = os.environ.get("MYCELIA_BUILD_TYPE", "Release")
    name = "dev" if build_type == "Release" else f"dev-{build_type.lower()}"
    tree = ROOT / "packages" / package / "build" / name
    start = time.perf_counter()
    options = {
        "CMAKE_BUILD_TYPE": build_type,
        "CMAKE_MAKE_PROGRAM": tool("ninja", tree, "CMAKE_MAKE_PROGRAM"),
        "CMAKE_EXPORT_COMPILE_COMMANDS": "ON",
        "Python_EXECUTABLE": sys.executable,
        "Python_NumPy_INCLUDE_DIR": numpy.get_include(),
        "MYCELIA_ISA": os.environ.get("MYCELIA_ISA", ""),  # empty = all variants
    }
    cmake = tool("cmake", tree, "CMAKE_COMMAND")
    configure = [cmake, "-S", str(source), "-B", str(tree), "-G", "Ninja", "--no-warn-unused-cli"]
    run(configure + [f"-D{k}={v}" for k, v in options.items()], f"configuring {package}")
    jobs = os.environ.get("MYCELIA_JOBS", "2")
    run([cmake, "--build", str(tree), "-j", jobs], f"compiling {package}")
    run(
        [cmake, "--install", str(tree), "--prefix", sysconfig.get_path("platlib")],
        f"installing {package}",
    )
    print(f"build_native: {package} is up to date ({time.perf_counter() - start:.1f} s)", flush=True)


if __name__ == "__main__":
    names = sys.argv[1:] or native_packages()
    with queue():
        for name in names:
            build(name)
