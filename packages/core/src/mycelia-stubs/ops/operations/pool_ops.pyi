# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from mycelia.ops.operations import (
    AdaptiveAvgPool2D as AdaptiveAvgPool2D, AdaptiveAvgPool3D as AdaptiveAvgPool3D,
    AdaptiveMaxPool2D as AdaptiveMaxPool2D, AdaptiveMaxPool3D as AdaptiveMaxPool3D, AvgPool as AvgPool,
    AvgPool3D as AvgPool3D, FractionalAvgPool as FractionalAvgPool, FractionalMaxPool as FractionalMaxPool,
    FractionalMaxPool3DWithFixedKsize as FractionalMaxPool3DWithFixedKsize,
    FractionalMaxPoolWithFixedKsize as FractionalMaxPoolWithFixedKsize, MaxPool as MaxPool,
    MaxPool3D as MaxPool3D, MaxPool3DWithArgmax as MaxPool3DWithArgmax,
    MaxPoolWithArgmax as MaxPoolWithArgmax, MaxPoolWithArgmaxV2 as MaxPoolWithArgmaxV2,
    MaxUnpool2D as MaxUnpool2D, MaxUnpool3D as MaxUnpool3D,
)
from mycelia.ops.operations.array_ops import natural as natural
from mycelia.ops.primitives.checks import (
    Misfit as Misfit, boolean as boolean, choice as choice, dtype as dtype, integer as integer,
    integers as integers, optional as optional,
)
from mycelia.ops.primitives.conv_ops import extents as extents, full as full, paddings as paddings
from mycelia.ops.primitives.define import primitive as primitive
from mycelia.ops.primitives.random_ops import next_key as next_key, own_stream as own_stream

__all__ = [
    "AdaptiveAvgPool2D", "AdaptiveAvgPool3D", "AdaptiveMaxPool2D", "AdaptiveMaxPool3D", "AvgPool",
    "AvgPool3D", "FractionalAvgPool", "FractionalMaxPool", "FractionalMaxPool3DWithFixedKsize",
    "FractionalMaxPoolWithFixedKsize", "MaxPool", "MaxPool3D", "MaxPool3DWithArgmax", "MaxPoolWithArgmax",
    "MaxPoolWithArgmaxV2", "MaxUnpool2D", "MaxUnpool3D", "Misfit", "avg_pool", "boolean", "choice", "dtype",
    "extents", "full", "integer", "integers", "natural", "next_key", "optional", "own_stream", "paddings",
    "primitive",
]


def avg_pool(x, kernel, stride, pad, ceil_mode=False, count_include_pad=True, divisor_override=None) -> Tensor:
    """Means of windows over one to three dimensions with explicit `pad` (all begins, then all ends)."""
