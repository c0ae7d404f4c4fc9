"""Models for devices: `.ms` files, what makes them, and what runs them.

All but `Converter` needs NumPy alone, not `mycelia`, and serves every Python from 3.9 on.
"""

from __future__ import annotations

import sys

from mycelia_lite.context import Context
from mycelia_lite.enums import DataType, FmkType, Format, ModelGroupFlag, ModelType, QuantizationType
from mycelia_lite.model import Model, ModelGroup
from mycelia_lite.operators import register_operator
from mycelia_lite.runner import ModelParallelRunner
from mycelia_lite.tensor import Tensor

__all__ = [
    "Context",
    "Converter",
    "DataType",
    "FmkType",
    "Format",
    "Model",
    "ModelGroup",
    "ModelGroupFlag",
    "ModelParallelRunner",
    "ModelType",
    "QuantizationType",
    "Tensor",
    "register_operator",
]


def __getattr__(name: str):
    if name == "__version__":
        from importlib.metadata import version

        return version("mycelia-lite")
    if name == "Converter":
        if sys.version_info < (3, 11):  # noqa: UP036 - core's least
            raise ImportError("mycelia_lite.Converter needs Python 3.11 or newer; this one only runs models")
        from mycelia_lite.converter import Converter

        return Converter
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
