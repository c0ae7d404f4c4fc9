# Written by tools/gen_stubs.py.
from mycelia.engine.tensors.initializer import (
    Constant as Constant, Dirac as Dirac, HeNormal as HeNormal, HeUniform as HeUniform,
    Identity as Identity, Initializer as Initializer, Normal as Normal, One as One,
    Orthogonal as Orthogonal, Sparse as Sparse, TruncatedNormal as TruncatedNormal, Uniform as Uniform,
    VarianceScaling as VarianceScaling, XavierNormal as XavierNormal, XavierUniform as XavierUniform,
    Zero as Zero, initializer as initializer,
)

__all__ = [
    "Constant", "Dirac", "HeNormal", "HeUniform", "Identity", "Initializer", "Normal", "One", "Orthogonal",
    "Sparse", "TruncatedNormal", "Uniform", "VarianceScaling", "XavierNormal", "XavierUniform", "Zero",
    "initializer",
]
