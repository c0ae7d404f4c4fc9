# Written by tools/gen_stubs.py.
from mycelia.dtype import float32 as float32
from mycelia.engine.ops.nn_ops.conv_geometry import spread as spread
from mycelia.engine.tensors.initializer import (
    HeUniform as HeUniform, Uniform as Uniform, initializer as initializer,
)
from mycelia.engine.tensors.tensor import Parameter as Parameter
from mycelia.faces.mint.nn.conv import (
    Conv1d as Conv1d, Conv2d as Conv2d, Conv3d as Conv3d, ConvTranspose2d as ConvTranspose2d,
)
from mycelia.faces.mint.nn.windows import named_pads as named_pads
from mycelia.nn.cell import Cell as Cell

__all__ = [
    "Cell", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose2d", "HeUniform", "Parameter", "Uniform", "float32",
    "initializer", "named_pads", "spread",
]
