"""Post-training quantization: models in fewer bits, by the converter or on the tables of a `.ms` file."""

from mycelia_lite.quant.settings import WeightQuantization
from mycelia_lite.quant.weights import Layer, quantize_weights

__all__ = ["Layer", "WeightQuantization", "quantize_weights"]
