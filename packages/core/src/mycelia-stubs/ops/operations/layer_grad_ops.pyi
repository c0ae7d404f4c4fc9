# Written by tools/gen_stubs.py.
from mycelia.engine.ops.arrays.shape import as_ints as as_ints
from mycelia.ops.operations import (
    BatchNormGrad as BatchNormGrad, CdistGrad as CdistGrad, CholeskyGrad as CholeskyGrad,
    Conv3DBackpropFilter as Conv3DBackpropFilter, Conv3DBackpropInput as Conv3DBackpropInput,
    DeformableOffsetsGrad as DeformableOffsetsGrad, FractionalAvgPoolGrad as FractionalAvgPoolGrad,
    FractionalMaxPool3DGradWithFixedKsize as FractionalMaxPool3DGradWithFixedKsize,
    FractionalMaxPoolGrad as FractionalMaxPoolGrad,
    FractionalMaxPoolGradWithFixedKsize as FractionalMaxPoolGradWithFixedKsize, GluGrad as GluGrad,
    LRNGrad as LRNGrad, LogitGrad as LogitGrad, MaxPool3DGrad as MaxPool3DGrad,
    MaxPoolGradGradWithArgmax as MaxPoolGradGradWithArgmax, MaxPoolGradWithArgmax as MaxPoolGradWithArgmax,
    MaxPoolGradWithArgmaxV2 as MaxPoolGradWithArgmaxV2, MedianGrad as MedianGrad,
    NLLLossGrad as NLLLossGrad, PadV3Grad as PadV3Grad, PdistGrad as PdistGrad,
    ROIAlignGrad as ROIAlignGrad, SliceGrad as SliceGrad, SoftmaxBackward as SoftmaxBackward,
    UpsampleNearest3DGrad as UpsampleNearest3DGrad, UpsampleTrilinear3DGrad as UpsampleTrilinear3DGrad,
)
from mycelia.ops.operations.conv_ops import deformable_offsets as deformable_offsets
from mycelia.ops.operations.define import registry as registry
from mycelia.ops.primitives.checks import (
    anything as anything, boolean as boolean, integer as integer, integers as integers, real as real,
)
from mycelia.ops.primitives.define import primitive as primitive

__all__ = [
    "BatchNormGrad", "CdistGrad", "CholeskyGrad", "Conv3DBackpropFilter", "Conv3DBackpropInput",
    "DeformableOffsetsGrad", "FractionalAvgPoolGrad", "FractionalMaxPool3DGradWithFixedKsize",
    "FractionalMaxPoolGrad", "FractionalMaxPoolGradWithFixedKsize", "GluGrad", "LRNGrad", "LogitGrad",
    "MaxPool3DGrad", "MaxPoolGradGradWithArgmax", "MaxPoolGradWithArgmax", "MaxPoolGradWithArgmaxV2",
    "MedianGrad", "NLLLossGrad", "PadV3Grad", "PdistGrad", "ROIAlignGrad", "SliceGrad", "SoftmaxBackward",
    "UpsampleNearest3DGrad", "UpsampleTrilinear3DGrad", "anything", "as_ints", "boolean",
    "deformable_offsets", "integer", "integers", "primitive", "real", "registry",
]
