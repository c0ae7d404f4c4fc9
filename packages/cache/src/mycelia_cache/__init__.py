"""A server that keeps preprocessed rows for several training processes, and its clients."""

from __future__ import annotations


def __getattr__(name: str):
    if name == "__version__":
        from importlib.metadata import version

        return version("mycelia-cache")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
