"""Hook implementations of the CPU backend; imported at the first hook call, so nothing heavy at the top."""

from __future__ import annotations

from mycelia.hookspecs import hookimpl

HOOK_API = 1


@hookimpl
def mycelia_backends():
    """The CPU backend."""
    from mycelia_backend_cpu.backend import CpuBackend

    return [CpuBackend()]


@hookimpl
def mycelia_kernel_library(target: str):
    """Where the kernel library is: its loaded table for "cpu", its sources for "cpu" and "micro"."""
    if target not in ("cpu", "micro"):
        return None
    from mycelia_backend_cpu.library import kernel_library

    return kernel_library(target)
