# Written by tools/gen_stubs.py.
from . import functional as functional
from mycelia.faces.mint.nn.basic import EmbeddingExt as _EmbeddingExt, PReLUExt as _PReLUExt
from mycelia.faces.mint.nn.conv import (
    Conv1d as Conv1d, Conv2d as Conv2d, Conv3d as Conv3d, ConvTranspose2d as ConvTranspose2d,
)
from mycelia.faces.mint.nn.norm import (
    BatchNorm1d as BatchNorm1d, BatchNorm2d as BatchNorm2d, BatchNorm3d as BatchNorm3d,
    GroupNorm as GroupNorm, LayerNormExt as _LayerNormExt, SyncBatchNorm as SyncBatchNorm,
)
from mycelia.nn import (
    ReLU as ReLU, ReflectionPad1d as ReflectionPad1d, ReflectionPad2d as ReflectionPad2d,
    ReflectionPad3d as ReflectionPad3d, ReplicationPad1d as ReplicationPad1d,
    ReplicationPad2d as ReplicationPad2d, ReplicationPad3d as ReplicationPad3d, Sigmoid as Sigmoid,
    SoftMarginLoss as SoftMarginLoss, Tanh as Tanh, ZeroPad2d as ZeroPad2d,
)
from mycelia.nn.activation import HShrink as _HShrink, SoftShrink as _SoftShrink
from mycelia.nn.cell import Cell as _Cell
from mycelia.nn.dense import Identity as Identity, Linear as Linear
from mycelia.nn.padding import (
    ConstantPad1d as ConstantPad1d, ConstantPad2d as ConstantPad2d, ConstantPad3d as ConstantPad3d,
    _Padding as __Padding,
)

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AvgPool1d", "AvgPool2d", "AvgPool3d", "BCELoss", "BCEWithLogitsLoss", "BatchNorm1d", "BatchNorm2d",
    "BatchNorm3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d", "Conv1d", "Conv2d", "Conv3d",
    "ConvTranspose2d", "CosineEmbeddingLoss", "CrossEntropyLoss", "Dropout", "Dropout2d", "ELU",
    "Embedding", "Flatten", "Fold", "GELU", "GLU", "GroupNorm", "Hardshrink", "Hardsigmoid", "Hardswish",
    "Hardtanh", "Identity", "KLDivLoss", "L1Loss", "LayerNorm", "Linear", "LogSigmoid", "LogSoftmax",
    "MSELoss", "MaxUnpool2d", "Mish", "NLLLoss", "PReLU", "PixelShuffle", "ReLU", "ReLU6",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
    "ReplicationPad3d", "SELU", "SiLU", "Sigmoid", "SmoothL1Loss", "SoftMarginLoss", "Softmax",
    "Softshrink", "SyncBatchNorm", "Tanh", "Threshold", "Unfold", "Upsample", "UpsamplingBilinear2d",
    "UpsamplingNearest2d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d", "functional",
]


class AdaptiveAvgPool1d(_Cell):
    """`mint.nn.functional.adaptive_avg_pool1d` as a layer."""
    def __init__(self, output_size) -> None: ...

class AdaptiveAvgPool2d(_Cell):
    """`mint.nn.functional.adaptive_avg_pool2d` as a layer."""
    def __init__(self, output_size) -> None: ...

class AdaptiveAvgPool3d(_Cell):
    """`mint.nn.functional.adaptive_avg_pool3d` as a layer."""
    def __init__(self, output_size) -> None: ...

class AdaptiveMaxPool1d(_Cell):
    """`mint.nn.functional.adaptive_max_pool1d` as a layer."""
    def __init__(self, output_size, return_indices=False) -> None: ...

class AdaptiveMaxPool2d(_Cell):
    """`mint.nn.functional.adaptive_max_pool2d` as a layer."""
    def __init__(self, output_size, return_indices=False) -> None: ...

class AvgPool1d(_Cell):
    """`mint.nn.functional.avg_pool1d` as a layer."""
    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True) -> None: ...

class AvgPool2d(_Cell):
    """`mint.nn.functional.avg_pool2d` as a layer."""
    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None) -> None: ...

class AvgPool3d(_Cell):
    """`mint.nn.functional.avg_pool3d` as a layer."""
    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None) -> None: ...

class BCELoss(_Cell):
    """`mint.nn.functional.binary_cross_entropy` as a layer."""
    def __init__(self, weight=None, reduction='mean') -> None: ...

class BCEWithLogitsLoss(_Cell):
    """`mint.nn.functional.binary_cross_entropy_with_logits` as a layer."""
    def __init__(self, weight=None, reduction='mean', pos_weight=None) -> None: ...

class CosineEmbeddingLoss(_Cell):
    """`mint.nn.functional.cosine_embedding_loss` as a layer."""
    def __init__(self, margin=0.0, reduction='mean') -> None: ...

class CrossEntropyLoss(_Cell):
    """`mint.nn.functional.cross_entropy` as a layer."""
    def __init__(self, weight=None, ignore_index=-100, reduction='mean', label_smoothing=0.0) -> None: ...

class Dropout(_Cell):
    """`mint.nn.functional.dropout` as a layer, which does nothing but in training."""
    def __init__(self, p=0.5, inplace=False) -> None: ...

class Dropout2d(_Cell):
    """`mint.nn.functional.dropout2d` as a layer, which does nothing but in training."""
    def __init__(self, p=0.5, inplace=False) -> None: ...

class ELU(_Cell):
    """`mint.nn.functional.elu` as a layer."""
    def __init__(self, alpha=1.0, inplace=False) -> None: ...
Embedding = _EmbeddingExt

class Flatten(_Cell):
    """`mint.nn.functional.flatten` as a layer."""
    def __init__(self, start_dim=1, end_dim=-1) -> None: ...

class Fold(_Cell):
    """`mint.nn.functional.fold` as a layer."""
    def __init__(self, output_size, kernel_size, dilation=1, padding=0, stride=1) -> None: ...

class GELU(_Cell):
    """`mint.nn.functional.gelu` as a layer."""
    def __init__(self, approximate='none') -> None: ...

class GLU(_Cell):
    """`mint.nn.functional.glu` as a layer."""
    def __init__(self, dim=-1) -> None: ...
Hardshrink = _HShrink

class Hardsigmoid(_Cell):
    """``clip(x + 3, 0, 6) / 6``. Shapes: any -> same."""
    def __init__(self, auto_prefix: bool = True, flags: dict | None = None) -> None: ...

class Hardswish(_Cell):
    """``x * hardsigmoid(x)``. Shapes: any -> same."""
    def __init__(self, auto_prefix: bool = True, flags: dict | None = None) -> None: ...

class Hardtanh(_Cell):
    """`mint.nn.functional.hardtanh` as a layer."""
    def __init__(self, min_val=-1.0, max_val=1.0, inplace=False) -> None: ...

class KLDivLoss(_Cell):
    """`mint.nn.functional.kl_div` as a layer."""
    def __init__(self, reduction='mean', log_target=False) -> None: ...

class L1Loss(_Cell):
    """`mint.nn.functional.l1_loss` as a layer."""
    def __init__(self, reduction='mean') -> None: ...
LayerNorm = _LayerNormExt

class LogSigmoid(_Cell):
    """`mint.nn.functional.logsigmoid` as a layer."""
    def __init__(self) -> None: ...

class LogSoftmax(_Cell):
    """`mint.nn.functional.log_softmax` as a layer."""
    def __init__(self, dim=None) -> None: ...

class MSELoss(_Cell):
    """`mint.nn.functional.mse_loss` as a layer."""
    def __init__(self, reduction='mean') -> None: ...

class MaxUnpool2d(_Cell):
    """`mint.nn.functional.max_unpool2d` as a layer."""
    def __init__(self, kernel_size, stride=None, padding=0) -> None: ...

class Mish(_Cell):
    """`mint.nn.functional.mish` as a layer."""
    def __init__(self) -> None: ...

class NLLLoss(_Cell):
    """`mint.nn.functional.nll_loss` as a layer."""
    def __init__(self, weight=None, ignore_index=-100, reduction='mean') -> None: ...
PReLU = _PReLUExt

class PixelShuffle(_Cell):
    """`mint.nn.functional.pixel_shuffle` as a layer."""
    def __init__(self, upscale_factor) -> None: ...

class ReLU6(_Cell):
    """`mint.nn.functional.relu6` as a layer."""
    def __init__(self, inplace=False) -> None: ...

class SELU(_Cell):
    """`mint.nn.functional.selu` as a layer."""
    def __init__(self) -> None: ...

class SiLU(_Cell):
    """`mint.nn.functional.silu` as a layer."""
    def __init__(self, inplace=False) -> None: ...

class SmoothL1Loss(_Cell):
    """`mint.nn.functional.smooth_l1_loss` as a layer."""
    def __init__(self, reduction='mean', beta=1.0) -> None: ...

class Softmax(_Cell):
    """`mint.nn.functional.softmax` as a layer."""
    def __init__(self, dim=None) -> None: ...
Softshrink = _SoftShrink

class Threshold(_Cell):
    """`mint.nn.functional.threshold` as a layer."""
    def __init__(self, threshold, value, inplace=False) -> None: ...

class Unfold(_Cell):
    """`mint.nn.functional.unfold` as a layer."""
    def __init__(self, kernel_size, dilation=1, padding=0, stride=1) -> None: ...

class Upsample(_Cell):
    """`mint.nn.functional.interpolate` as a layer."""
    def __init__(self, size=None, scale_factor=None, mode='nearest', align_corners=None, recompute_scale_factor=None) -> None: ...

class UpsamplingBilinear2d(_Cell):
    """Resizes images to `size` or by `scale_factor` in mode 'bilinear'."""
    def __init__(self, size=None, scale_factor=None) -> None: ...

class UpsamplingNearest2d(_Cell):
    """Resizes images to `size` or by `scale_factor` in mode 'nearest'."""
    def __init__(self, size=None, scale_factor=None) -> None: ...

class ZeroPad1d(__Padding):
    """Pads the last 1 dimension with zeros; `padding`: one int, or before and after, last first."""
    def __init__(self, padding) -> None: ...

class ZeroPad3d(__Padding):
    """Pads the last 3 dimensions with zeros; `padding`: one int, or before and after, last first."""
    def __init__(self, padding) -> None: ...
