"""Sequences reversed, blocks of space into the batch and back, columns to images, distances of rows.

All are compositions of reshaping, padding and gathering.
"""

import numpy as np

from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.arrays.axes import transpose
from mycelia.engine.ops.arrays.create import arange
from mycelia.engine.ops.arrays.gathering import gather, gather_d
from mycelia.engine.ops.arrays.grids import choices
from mycelia.engine.ops.arrays.index import is_tensor
from mycelia.engine.ops.arrays.joining import unbind
from mycelia.engine.ops.arrays.masks import where
from mycelia.engine.ops.arrays.padding import pad
from mycelia.engine.ops.arrays.shape import broadcast_to, reshape
from mycelia.engine.ops.arrays.slicing import strided_slice
from mycelia.engine.ops.elementwise import math as _math
from mycelia.engine.ops.elementwise.cast import cast
from mycelia.engine.ops.elementwise.comparison import less
from mycelia.engine.ops.nn_ops.unfold import fold
from mycelia.engine.ops.reductions.moments import vector_norm


def reverse_sequence(x, seq_lengths, seq_dim, batch_dim=0):
    """The first ``seq_lengths[i]`` elements along `seq_dim` in reverse, for each i along `batch_dim`.

    Shapes: any, seq_lengths [size of batch_dim] -> as x.  dtypes: any, int32 or int64 lengths.
    Errors: ValueError for axes out of range or equal and other shapes, TypeError for other lengths.
    """
    rank = len(x.shape)
    for name, axis in (("seq_dim", seq_dim), ("batch_dim", batch_dim)):
        if not 0 <= axis < rank:
            raise errors.value_error(
                f"For 'reverse_sequence', '{name}' must be in [0, {rank}), but got {axis}."
            )
    if seq_dim == batch_dim:
        raise errors.value_error(
            f"For 'reverse_sequence', 'batch_dim' must differ from 'seq_dim', but both are {seq_dim}."
        )
    if seq_lengths.dtype not in (dtypes.int32, dtypes.int64):
        raise errors.type_error(
            f"For 'reverse_sequence', 'seq_lengths' must be int32 or int64, but is {seq_lengths.dtype}."
        )
    if tuple(seq_lengths.shape) != (x.shape[batch_dim],):
        raise errors.value_error(
            f"For 'reverse_sequence', 'seq_lengths' must have shape ({x.shape[batch_dim]},), but has shape "
            f"{seq_lengths.shape}."
        )

    def along(t, axis):
        return reshape(t, tuple(-1 if i == axis else 1 for i in range(rank)))

    lengths = along(cast(seq_lengths, dtypes.int64), batch_dim)
    place = along(arange(x.shape[seq_dim]), seq_dim)
    source = where(less(place, lengths), _math.sub(_math.sub(lengths, 1), place), place)
    return gather_d(x, seq_dim, broadcast_to(source, x.shape))


def _pairs(name, argument, value, count):
    array = np.asarray(value.asnumpy() if is_tensor(value) else value)
    if array.shape != (count, 2):
        raise errors.value_error(
            f"For '{name}', '{argument}' must have shape ({count}, 2), but got {np.shape(array)}."
        )
    if (array < 0).any():
        raise errors.value_error(
            f"For '{name}', '{argument}' must not be negative, but got {array.tolist()}."
        )
    return [(int(a), int(b)) for a, b in array]


def _block(name, argument, value, count):
    sizes = (value,) * count if isinstance(value, int) else tuple(value)
    if not all(isinstance(n, int) and n >= 1 for n in sizes):
        raise errors.value_error(f"For '{name}', '{argument}' must hold positive ints, but got {value!r}.")
    return sizes


def space_to_batch_nd(input_x, block_size, paddings):
    """Axes after the first m cut into blocks that become batches; `paddings` widens them first.

    Shapes: [n, .., d1, .., dm] -> [n * prod(block_size), .., (d1 + padding) / block, ..].  dtypes: any.
    Errors: ValueError where sizes do not divide.
    """
    count = len(paddings)
    block = _block("space_to_batch_nd", "block_size", block_size, count)
    pairs = _pairs("space_to_batch_nd", "paddings", paddings, len(block))
    x = pad(input_x, tuple(p for pair in reversed(pairs) for p in pair))
    first = len(x.shape) - len(block)  # the axes before the first of space: batch, channels
    sizes = x.shape[first:]
    if first < 1 or any(n % b for n, b in zip(sizes, block)):
        raise errors.value_error(
            f"For 'space_to_batch_nd', the padded sizes {sizes} must be divisible by 'block_size' {block}."
        )
    shape = list(x.shape[:first])
    for n, b in zip(sizes, block):
        shape += [n // b, b]
    x = reshape(x, tuple(shape))
    inner = [first + 2 * i + 1 for i in range(len(block))]
    outer = [first + 2 * i for i in range(len(block))]
    x = transpose(x, (*inner, *range(first), *outer))
    batch = input_x.shape[0] * int(np.prod(block))
    return reshape(x, (batch, *input_x.shape[1:first], *(n // b for n, b in zip(sizes, block))))


def batch_to_space_nd(input_x, block_shape, crops):
    """Undoes `space_to_batch_nd`: batches become blocks of the last axes, `crops` is cut from their ends.

    Shapes: [n, .., d1, .., dm] -> [n / prod(block_shape), .., d1 * block - crop, ..].  dtypes: any.
    Errors: ValueError where sizes do not divide or crops exceed them.
    """
    block = _block("batch_to_space_nd", "block_shape", block_shape, len(crops))
    pairs = _pairs("batch_to_space_nd", "crops", crops, len(block))
    m = len(block)
    first = len(input_x.shape) - m
    total = int(np.prod(block))
    if first < 1 or input_x.shape[0] % total:
        raise errors.value_error(
            f"For 'batch_to_space_nd', axis 0 of shape {input_x.shape} must be divisible by the product of "
            f"'block_shape' {block}."
        )
    x = reshape(input_x, (*block, input_x.shape[0] // total, *input_x.shape[1:]))
    order = [m + i for i in range(first)]
    for i in range(m):
        order += [m + first + i, i]
    x = transpose(x, tuple(order))
    sizes = [n * b for n, b in zip(input_x.shape[first:], block)]
    x = reshape(x, (input_x.shape[0] // total, *input_x.shape[1:first], *sizes))
    if any(a + b >= n for (a, b), n in zip(pairs, sizes)):
        raise errors.value_error(f"For 'batch_to_space_nd', 'crops' {pairs} exceed the sizes {sizes}.")
    begin = (0,) * first + tuple(a for a, _ in pairs)
    end = (*x.shape[:first], *(n - b for (_, b), n in zip(pairs, sizes)))
    return strided_slice(x, begin, end, (1,) * len(begin))


def col2im(input_x, output_size, kernel_size, dilation, padding_value, stride):
    """Sum of columns at the places from which sliding windows took them.

    Shapes: [n, c, kh * kw, windows] -> [n, c, *output_size].  `output_size`: a tensor of two int32.
    """
    if len(input_x.shape) != 4:
        raise errors.value_error(f"For 'col2im', 'input_x' must have rank 4, but has shape {input_x.shape}.")
    return fold(input_x, output_size, kernel_size, dilation, padding_value, stride)


def padding(x, pad_dim_size=8):
    """The last axis widened to `pad_dim_size` with zeros. Shapes: [.., 1] -> [.., pad_dim_size]."""
    if len(x.shape) < 2 or x.shape[-1] != 1 or pad_dim_size < 1:
        raise errors.value_error(
            "For 'padding', 'x' must have rank 2 or more and end in 1 and 'pad_dim_size' be positive, "
            "but got shape "
            f"{x.shape} and {pad_dim_size}."
        )
    return pad(x, (0, pad_dim_size - 1))


def pdist(input, p=2.0):
    """`p`-norm distances of all pairs of rows, in the order (0, 1), (0, 2), .., (1, 2), ..

    Shapes: [n, m] -> [n * (n - 1) / 2].  dtypes: floating.  Errors: ValueError for other ranks, negative p.
    """
    if len(input.shape) != 2:
        raise errors.value_error(f"For 'pdist', 'input' must have rank 2, but has shape {input.shape}.")
    if not p >= 0:
        raise errors.value_error(f"For 'pdist', 'p' must not be negative, but got {p}.")
    first, second = unbind(choices(input.shape[0], 2), 1)
    return vector_norm(_math.sub(gather(input, first, 0), gather(input, second, 0)), p, -1)


__all__ = [
    "batch_to_space_nd", "col2im", "padding", "pdist", "reverse_sequence", "space_to_batch_nd",
]  # fmt: skip
