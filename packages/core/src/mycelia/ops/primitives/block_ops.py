"""Padding, the order of axes by name, and blocks of space that become channels or parts of the batch."""

from mycelia import ops
from mycelia.engine.base import dtypes
from mycelia.engine.ops.arrays import rearrange
from mycelia.engine.ops.arrays.shape import as_ints, constant
from mycelia.engine.tensors.tensor import Tensor
from mycelia.ops.primitives.checks import (
    Misfit,
    boolean,
    choice,
    integer,
    integers,
    positive,
    within,
)  # fmt: skip
from mycelia.ops.primitives.define import primitive

# ---- padding ---------------------------------------------------------------------------------------------


def _pairs(value):
    if not isinstance(value, (tuple, list)) or not all(isinstance(p, (tuple, list)) for p in value):
        raise Misfit(TypeError, "a tuple of pairs of int")
    return tuple(integers(p) for p in value)


@primitive
def Pad(x, *, paddings: _pairs):
    """Zeros before and after each axis; negative numbers cut away."""
    return ops.pad(x, tuple(n for pair in reversed(paddings) for n in pair))


@primitive
def PadV3(
    x, paddings, constant_value=None, *,
    mode: choice("constant", "reflect", "edge", "circular") = "constant", paddings_contiguous: boolean = True,
):  # fmt: skip
    """Padding of the last axes: before and after of the last one first."""
    flat = as_ints(ops.flatten(paddings, start_dim=0) if isinstance(paddings, Tensor) else paddings)
    if not paddings_contiguous:
        half = len(flat) // 2
        flat = tuple(n for i in range(half) for n in (flat[i], flat[half + i]))
    if mode != "constant":
        return ops.pad(x, flat, mode)
    value = constant_value.item() if isinstance(constant_value, Tensor) else constant_value
    return ops.pad(x, flat, mode, value)


@primitive
def MirrorPad(input_x, paddings, *, mode: choice("REFLECT", "SYMMETRIC", other=ValueError) = "REFLECT"):
    """Each axis continued by its mirror image, with or (REFLECT) without repeating the edge."""
    return rearrange.mirror_pad(input_x, paddings, mode)


@primitive
def Padding(x, *, pad_dim_size: positive = 8):
    """Zeros behind the last axis, of size 1, up to the given size."""
    return ops.pad(x, (0, pad_dim_size - x.shape[-1]))


# ---- names of axes ---------------------------------------------------------------------------------------

_FORMAT = choice("NHWC", "NCHW")


@primitive
def DataFormatDimMap(input_x, *, src_format: _FORMAT = "NHWC", dst_format: _FORMAT = "NCHW"):
    """Numbers of axes in one format as numbers of the same axes in the other."""
    table = [src_format.index(c) for c in dst_format]
    return ops.gather(constant(table, input_x.dtype), ops.floor_mod(input_x, 4), 0)


@primitive
def DataFormatVecPermute(input_x, *, src_format: _FORMAT = "NHWC", dst_format: _FORMAT = "NCHW"):
    """Four numbers, or pairs, of the axes of one format in the order of the other."""
    return ops.gather(input_x, constant([src_format.index(c) for c in dst_format], dtypes.int32), 0)


# ---- blocks ----------------------------------------------------------------------------------------------


@primitive
def SpaceToDepth(x, *, block_size: within(integer, 2)):
    """Blocks of the picture become channels: [N, C, H, W] -> [N, C * b * b, H / b, W / b]."""
    return rearrange.space_to_depth(x, block_size)


@primitive
def DepthToSpace(x, *, block_size: within(integer, 2)):
    """Channels become blocks of the picture: [N, C, H, W] -> [N, C / b / b, H * b, W * b]."""
    return rearrange.depth_to_space(x, block_size)


@primitive
def SpaceToBatch(input_x, *, block_size: within(integer, 2), paddings: _pairs):
    """Blocks of the padded picture become pictures of the batch."""
    return ops.space_to_batch_nd(input_x, [block_size, block_size], [list(p) for p in paddings])


@primitive
def BatchToSpace(input_x, *, block_size: within(integer, 2), crops: _pairs):
    """Pictures of the batch become blocks of one, which is then cropped."""
    return ops.batch_to_space_nd(input_x, [block_size, block_size], [list(c) for c in crops])


@primitive
def SpaceToBatchND(input_x, *, block_shape: integers, paddings: _pairs):
    """Blocks of the padded space become parts of the batch."""
    shape = block_shape * (1 if len(block_shape) > 1 else len(paddings))
    return ops.space_to_batch_nd(input_x, list(shape), [list(p) for p in paddings])


@primitive
def BatchToSpaceND(input_x, *, block_shape: integers, crops: _pairs):
    """Parts of the batch become blocks of a space, which is then cropped."""
    shape = block_shape * (1 if len(block_shape) > 1 else len(crops))
    return ops.batch_to_space_nd(input_x, list(shape), [list(c) for c in crops])


@primitive(extra={"origin_format": "NHWC"})
def BatchToSpaceNDV2(input_x, block_shape, crops):
    """Parts of the batch become blocks of a space, which is then cropped."""
    return ops.batch_to_space_nd(input_x, list(as_ints(block_shape)), crops)
