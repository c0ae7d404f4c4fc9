"""Backends: the contract, the reference backend and the choice of a kernel."""

from mycelia.engine.backends.base import Backend, Pass, include_dir

__all__ = ["Backend", "Pass", "include_dir"]
