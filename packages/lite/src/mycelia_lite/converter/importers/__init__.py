"""Importers: a model file of a framework becomes core's IR. `IMPORTERS` has them by framework."""

from __future__ import annotations

from collections.abc import Callable

from mycelia_lite.converter.importers import caffe, mindir, onnx, tflite, torch
from mycelia_lite.converter.source import Source
from mycelia_lite.enums import FmkType

IMPORTERS: dict[FmkType, Callable[..., Source]] = {
    FmkType.CAFFE: caffe.load,
    FmkType.MINDIR: mindir.load,
    FmkType.ONNX: onnx.load,
    FmkType.PYTORCH: torch.load,
    FmkType.TFLITE: tflite.load,
}
