# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from mycelia.ops.operations import (
    Col2Im as Col2Im, Conv2D as Conv2D, Conv2DBackpropInput as Conv2DBackpropInput,
    Conv2DTranspose as Conv2DTranspose, Conv3D as Conv3D, Conv3DTranspose as Conv3DTranspose,
    DeformableOffsets as DeformableOffsets, DepthwiseConv2dNative as DepthwiseConv2dNative,
    Dilation2D as Dilation2D, ExtractImagePatches as ExtractImagePatches,
    ExtractVolumePatches as ExtractVolumePatches, Im2Col as Im2Col,
)
from mycelia.ops.operations.array_ops import positive as positive
from mycelia.ops.primitives.checks import (
    Misfit as Misfit, anything as anything, boolean as boolean, choice as choice, integer as integer,
    within as within,
)
from mycelia.ops.primitives.conv_ops import extents as extents, full as full, paddings as paddings
from mycelia.ops.primitives.define import primitive as primitive

__all__ = [
    "Col2Im", "Conv2D", "Conv2DBackpropInput", "Conv2DTranspose", "Conv3D", "Conv3DTranspose",
    "DeformableOffsets", "DepthwiseConv2dNative", "Dilation2D", "ExtractImagePatches",
    "ExtractVolumePatches", "Im2Col", "Misfit", "anything", "boolean", "choice", "deformable_offsets",
    "extents", "full", "integer", "paddings", "positive", "primitive", "within",
]


def deformable_offsets(owner, x, offsets, kernel_size, strides, padding, dilations, deformable_groups, modulated, positions=None) -> Tensor:
    """What the bent windows of `deformable_conv2d` read, each window as a block: [n, c, h' * kh, w' * kw]."""
