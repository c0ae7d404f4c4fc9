"""Backends: the contract, the reference backend and the choice of a kernel."""

from mycelia.backends.base import Backend

__all__ = ["Backend"]
