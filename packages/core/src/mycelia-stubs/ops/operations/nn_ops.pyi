# Written by tools/gen_stubs.py.
from mycelia.ops.operations import (
    BatchNorm as BatchNorm, BiasAdd as BiasAdd, CeLU as CeLU, ChannelShuffle as ChannelShuffle,
    Dropout as Dropout, Dropout2D as Dropout2D, Dropout3D as Dropout3D, DropoutDoMask as DropoutDoMask,
    DropoutGenMask as DropoutGenMask, Elu as Elu, FloatStatus as FloatStatus, GLU as GLU, GeLU as GeLU,
    HShrink as HShrink, InTopK as InTopK, L2Loss as L2Loss, L2Normalize as L2Normalize, LRN as LRN,
    LayerNorm as LayerNorm, LogSoftmax as LogSoftmax, LogSoftmaxExt as LogSoftmaxExt, RmsNorm as RmsNorm,
    SoftShrink as SoftShrink, Softmax as Softmax,
)
from mycelia.ops.operations.array_ops import natural as natural
from mycelia.ops.primitives.checks import (
    Misfit as Misfit, anything as anything, choice as choice, integer as integer, real as real,
    within as within,
)
from mycelia.ops.primitives.define import primitive as primitive, renamed as renamed, table as table
from mycelia.ops.primitives.random_ops import next_key as next_key, own_stream as own_stream

__all__ = [
    "BatchNorm", "BiasAdd", "CeLU", "ChannelShuffle", "Dropout", "Dropout2D", "Dropout3D", "DropoutDoMask",
    "DropoutGenMask", "Elu", "FloatStatus", "GLU", "GeLU", "HShrink", "InTopK", "L2Loss", "L2Normalize",
    "LRN", "LayerNorm", "LogSoftmax", "LogSoftmaxExt", "Misfit", "RmsNorm", "SoftShrink", "Softmax",
    "anything", "choice", "integer", "natural", "next_key", "own_stream", "primitive", "real", "renamed",
    "table", "within",
]
