"""Blocks of pictures to channels and back, mirrored borders, filled diagonals: compositions of reshapes."""

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.ops.arrays.index import is_tensor
from mycelia.engine.ops.arrays.masks import where
from mycelia.engine.ops.arrays.padding import pad
from mycelia.engine.ops.arrays.shape import constant


def space_to_depth(x, block_size):
    """Blocks of the picture become channels: [N, C, H, W] -> [N, C * b * b, H / b, W / b].

    dtypes: any.  Errors: ValueError for another rank or sizes that are no multiple of `block_size`.
    """
    n, c, h, w = _picture(x, "space_to_depth")
    if h % block_size or w % block_size:
        raise errors.value_error(
            "space_to_depth", f"height and width must be multiples of {block_size}, but are {h} and {w}"
        )
    rows, columns = h // block_size, w // block_size
    parts = x.reshape((n, c, rows, block_size, columns, block_size))
    return parts.transpose(0, 3, 5, 1, 2, 4).reshape((n, c * block_size * block_size, rows, columns))


def depth_to_space(x, block_size):
    """Channels become blocks of the picture: [N, C, H, W] -> [N, C / b / b, H * b, W * b].

    dtypes: any.  Errors: ValueError for another rank or a number of channels that is no multiple of b * b.
    """
    n, c, h, w = _picture(x, "depth_to_space")
    if c % (block_size * block_size):
        raise errors.value_error(
            "depth_to_space", f"the channels must be a multiple of {block_size * block_size}, but are {c}"
        )
    depth = c // block_size // block_size
    parts = x.reshape((n, block_size, block_size, depth, h, w))
    return parts.transpose(0, 3, 4, 1, 5, 2).reshape((n, depth, h * block_size, w * block_size))


def _picture(x, name):
    if x.ndim != 4:
        raise errors.value_error(name, f"the rank of x must be 4, but it is {x.ndim}")
    return x.shape


def mirror_pad(input_x, paddings, mode):
    """Each axis continued by its mirror image, with ("SYMMETRIC") or without ("REFLECT") repeating the edge.

    Shapes: paddings, a Tensor [rank, 2] -> each size grows by both.  dtypes: any.
    Errors: ValueError for another mode and paddings wider than the input, TypeError unless paddings is a
    Tensor.
    """
    if mode not in ("REFLECT", "SYMMETRIC"):
        raise errors.value_error("mirror_pad", f"mode must be 'REFLECT' or 'SYMMETRIC', but is {mode!r}")
    if not is_tensor(paddings):
        raise errors.type_error("mirror_pad", f"paddings must be a Tensor, but is {paddings!r}")
    pairs = np.asarray(paddings.asnumpy() if is_tensor(paddings) else paddings).reshape(-1, 2).tolist()
    return pad(input_x, [n for pair in reversed(pairs) for n in pair], mode.lower())


def fill_diagonal(input_x, fill_value, wrap=False):
    """`fill_value` on the main diagonal; `wrap`: of a matrix with more rows than columns, again below it.

    Shapes: rank 2, or more with equal sizes -> same.  dtypes: any.
    Errors: ValueError for rank below 2 or, above 2, for different sizes.
    """
    shape = input_x.shape
    if len(shape) < 2 or len(shape) > 2 and len(set(shape)) != 1:
        raise errors.value_error(
            "fill_diagonal", f"x must have rank 2, or equal sizes in all axes, but its shape is {shape}"
        )
    mask = np.zeros(shape, bool)
    if len(shape) == 2:
        step = shape[1] + 1
        end = None if wrap else min(shape) * step
        mask.reshape(-1)[:end:step] = True
    else:
        mask[tuple(np.arange(shape[0]) for _ in shape)] = True
    return where(constant(mask), constant(fill_value, input_x.dtype), input_x)


__all__ = ["mirror_pad"]
