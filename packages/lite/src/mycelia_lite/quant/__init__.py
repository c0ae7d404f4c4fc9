"""Post-training quantization: models in fewer bits, by the converter or on the tables of a `.ms` file."""

from mycelia_lite.quant.calibration import Folders
from mycelia_lite.quant.dynamic import quantize_dynamic
from mycelia_lite.quant.full import Result, quantize_full
from mycelia_lite.quant.settings import (
    DynamicQuantization,
    FullQuantization,
    Quantization,
    WeightQuantization,
)
from mycelia_lite.quant.weights import Layer, quantize_weights

__all__ = [
    "DynamicQuantization",
    "Folders",
    "FullQuantization",
    "Layer",
    "Quantization",
    "Result",
    "WeightQuantization",
    "quantize_dynamic",
    "quantize_full",
    "quantize_weights",
]
