"""The kernel library as other packages see it: the loaded table, and the sources they may compile."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class KernelLibrary:
    """A kernel library found by the hook ``mycelia_kernel_library``.

    `table` is a capsule with a myc_kernel_table, None when the target is not this process ("micro");
    `source_dir` holds CMakeLists.txt, kernels.def and src/; CMake's add_subdirectory takes it as it is.
    """

    target: str
    table: object | None
    source_dir: Path


def source_dir() -> Path:
    """Directory of the kernel sources: in the wheel beside this file, in the repository under native/.

    Errors: FileNotFoundError when neither is there.
    """
    here = Path(__file__).resolve().parent
    places = (here / "kernels", here.parents[1] / "native" / "kernels")
    for place in places:
        if (place / "CMakeLists.txt").is_file():
            return place
    raise FileNotFoundError(
        f"mycelia-backend-cpu: kernel sources are neither in {places[0]} nor in {places[1]}; reinstall it"
    )


def kernel_library(target: str) -> KernelLibrary:
    """The library for `target`: "cpu" (this process) or "micro" (sources only)."""
    table = None
    if target == "cpu":
        from mycelia_backend_cpu import _native

        table = _native.kernel_table()
    return KernelLibrary(target, table, source_dir())
