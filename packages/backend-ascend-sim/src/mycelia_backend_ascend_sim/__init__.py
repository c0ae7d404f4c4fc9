"""Ascend's dtype and format rules, simulated on the host."""

from __future__ import annotations


def __getattr__(name: str):
    if name == "__version__":
        from importlib.metadata import version

        return version("mycelia-backend-ascend-sim")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
