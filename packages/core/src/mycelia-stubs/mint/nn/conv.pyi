# Written by tools/gen_stubs.py.
from mycelia.dtype import float32 as float32
from mycelia.engine.ops.nn_ops.conv_geometry import spread as spread
from mycelia.faces.mint.nn.conv import (
    Conv1d as Conv1d, Conv2d as Conv2d, Conv3d as Conv3d, ConvTranspose2d as ConvTranspose2d,
)
from mycelia.faces.mint.nn.windows import named_pads as named_pads
from mycelia.nn.parameters import Convolution as Convolution

__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose2d", "Convolution", "float32", "named_pads", "spread",
]
