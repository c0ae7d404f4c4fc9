"""Importers: a model file of a framework becomes core's IR.

`FRAMEWORKS` names the module of each, which has a function `load`; only the one asked for is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from mycelia_lite.converter.source import Source
from mycelia_lite.enums import FmkType

FRAMEWORKS = {
    FmkType.CAFFE: "caffe",
    FmkType.MINDIR: "mindir",
    FmkType.ONNX: "onnx",
    FmkType.PYTORCH: "torch",
    FmkType.TF: "tensorflow",
    FmkType.TFLITE: "tflite",
}


def importer(framework: FmkType) -> Callable[..., Source]:
    """``(model_file, input_shapes, ...) -> Source`` of a framework.  Errors: KeyError if there is none."""
    return import_module(f"{__name__}.{FRAMEWORKS[framework]}").load
