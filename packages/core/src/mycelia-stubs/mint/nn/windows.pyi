# Written by tools/gen_stubs.py.
from mycelia.faces.mint.nn.windows import (
    adaptive_avg_pool1d as adaptive_avg_pool1d, adaptive_avg_pool2d as adaptive_avg_pool2d,
    adaptive_avg_pool3d as adaptive_avg_pool3d, adaptive_max_pool1d as adaptive_max_pool1d,
    adaptive_max_pool2d as adaptive_max_pool2d, avg_pool1d as avg_pool1d, avg_pool2d as avg_pool2d,
    avg_pool3d as avg_pool3d, conv1d as conv1d, conv2d as conv2d, conv3d as conv3d,
    conv_transpose2d as conv_transpose2d, fold as fold, interpolate as interpolate,
    max_pool2d as max_pool2d, named_pads as named_pads, unfold as unfold, upsample as upsample,
)
from mycelia.mint.nn.functional import max_unpool2d as max_unpool2d
from mycelia.nn.pooling import batched as batched

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool2d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "batched", "conv1d", "conv2d",
    "conv3d", "conv_transpose2d", "fold", "interpolate", "max_pool2d", "max_unpool2d", "named_pads",
    "unfold", "upsample",
]
