"""`mycelia.experimental`: optimizers whose parameter groups are dicts, and their schedulers."""

from __future__ import annotations


def __getattr__(name: str):
    if name != "optim":
        raise AttributeError(f"module 'mycelia.experimental' has no attribute {name!r}")
    import importlib

    return importlib.import_module("mycelia.faces.experimental.optim")
