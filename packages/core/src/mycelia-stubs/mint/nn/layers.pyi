# Written by tools/gen_stubs.py.
from mycelia.mint.nn import (
    AdaptiveAvgPool1d as AdaptiveAvgPool1d, AdaptiveAvgPool2d as AdaptiveAvgPool2d,
    AdaptiveAvgPool3d as AdaptiveAvgPool3d, AdaptiveMaxPool1d as AdaptiveMaxPool1d,
    AdaptiveMaxPool2d as AdaptiveMaxPool2d, BCELoss as BCELoss, BCEWithLogitsLoss as BCEWithLogitsLoss,
    CosineEmbeddingLoss as CosineEmbeddingLoss, CrossEntropyLoss as CrossEntropyLoss, ELU as ELU,
    Flatten as Flatten, Fold as Fold, GELU as GELU, GLU as GLU, Hardtanh as Hardtanh,
    KLDivLoss as KLDivLoss, LogSigmoid as LogSigmoid, MSELoss as MSELoss, MaxUnpool2d as MaxUnpool2d,
    Mish as Mish, NLLLoss as NLLLoss, PixelShuffle as PixelShuffle, ReLU6 as ReLU6, SELU as SELU,
    SiLU as SiLU, SmoothL1Loss as SmoothL1Loss, Threshold as Threshold,
    UpsamplingBilinear2d as UpsamplingBilinear2d, UpsamplingNearest2d as UpsamplingNearest2d,
)
from mycelia.nn import (
    AvgPool1dExt as AvgPool1dExt, AvgPool2dExt as AvgPool2dExt, AvgPool3dExt as AvgPool3dExt,
    Dropout2dExt as Dropout2dExt, DropoutExt as DropoutExt, L1LossExt as L1LossExt,
    LogSoftmaxExt as LogSoftmaxExt, MaxPool2dExt as MaxPool2dExt, SoftmaxExt as SoftmaxExt,
    UnfoldExt as UnfoldExt, UpsampleExt as UpsampleExt,
)
from mycelia.nn.cell import Cell as Cell

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AvgPool1dExt", "AvgPool2dExt", "AvgPool3dExt", "BCELoss", "BCEWithLogitsLoss", "Cell",
    "CosineEmbeddingLoss", "CrossEntropyLoss", "Dropout2dExt", "DropoutExt", "ELU", "Flatten", "Fold",
    "GELU", "GLU", "Hardtanh", "KLDivLoss", "L1LossExt", "LogSigmoid", "LogSoftmaxExt", "MSELoss",
    "MaxPool2dExt", "MaxUnpool2d", "Mish", "NLLLoss", "PixelShuffle", "ReLU6", "SELU", "SiLU",
    "SmoothL1Loss", "SoftmaxExt", "Threshold", "UnfoldExt", "UpsampleExt", "UpsamplingBilinear2d",
    "UpsamplingNearest2d",
]
