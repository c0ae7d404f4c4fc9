"""Max pooling over windows of one size at pseudo-random places, which shrink an image by any ratio.

Source: Graham 2014, "Fractional max-pooling".
"""

import numpy as np

from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.arrays.gathering import gather_d
from mycelia.engine.ops.arrays.shape import broadcast_to, constant, expand_dims, reshape
from mycelia.engine.ops.elementwise import math as _math
from mycelia.engine.ops.elementwise.cast import cast
from mycelia.engine.ops.elementwise.rounding import trunc
from mycelia.engine.ops.random.random import rand
from mycelia.engine.ops.reductions.extremes import max_with_index


def _sizes(name, argument, value, rank, kind):
    found = (value,) * rank if isinstance(value, kind) else tuple(value)
    if len(found) != rank or not all(isinstance(v, kind) and v > 0 for v in found):
        raise errors.value_error(
            f"For '{name}', '{argument}' must be {rank} positive numbers, but got {value!r}."
        )
    return found


def _starts(sample, size, window, count):
    """First elements of `count` windows along one axis: evenly spread, shifted by `sample` in [0, 1).

    Shapes: sample [n, c] -> [n, c, count].
    """
    if count == 1:
        return broadcast_to(
            constant(np.full((1, 1, 1), float(size - window)), dtypes.float32), (*sample.shape, 1)
        )
    step = (size - window) / (count - 1)
    u = expand_dims(sample, -1)
    counts = constant(np.arange(count - 1, dtype=np.float32).reshape(1, 1, -1))
    places = _math.sub(trunc(_math.mul(_math.add(counts, u), step)), trunc(_math.mul(u, step)))
    from mycelia.engine.ops.arrays.joining import cat

    last = constant(np.full((1, 1, 1), float(size - window)), dtypes.float32)
    return cat([places, broadcast_to(last, (*sample.shape, 1))], -1)


def _pool(name, rank, input, kernel_size, output_size, output_ratio, return_indices, samples):
    if len(input.shape) not in (rank + 1, rank + 2):
        raise errors.value_error(
            f"For '{name}', 'input' must have rank {rank + 1} or {rank + 2}, but has shape {input.shape}."
        )
    if (output_size is None) == (output_ratio is None):
        raise errors.value_error(
            f"For '{name}', exactly one of 'output_size' and 'output_ratio' must be given."
        )
    x = input if len(input.shape) == rank + 2 else expand_dims(input, 0)
    sizes, window = x.shape[2:], _sizes(name, "kernel_size", kernel_size, rank, int)
    if output_size is None:
        ratio = _sizes(name, "output_ratio", output_ratio, rank, float)
        output_size = tuple(int(n * r) for n, r in zip(sizes, ratio))
    out = _sizes(name, "output_size", output_size, rank, int)
    if any(o + w - 1 > n for o, w, n in zip(out, window, sizes)):
        raise errors.value_error(
            f"For '{name}', {out} windows of size {window} do not fit into an input of size {tuple(sizes)}."
        )
    if samples is None:
        samples = rand(*x.shape[:2], rank)
    elif tuple(samples.shape) != (*x.shape[:2], rank):
        raise errors.value_error(
            f"For '{name}', '_random_samples' must have shape {(*x.shape[:2], rank)}, but has shape "
            f"{samples.shape}."
        )
    samples = cast(samples, dtypes.float32)
    index = None
    for axis in range(rank):
        # Samples name the axes of an image in reverse, those of a volume in order.
        sample = samples[:, :, rank - 1 - axis if rank == 2 else axis]
        start = cast(_starts(sample, sizes[axis], window[axis], out[axis]), dtypes.int64)
        place = _math.add(expand_dims(start, -1), constant(np.arange(window[axis])))
        around = [1] * (2 * rank)  # [out.., window..]
        around[axis], around[rank + axis] = out[axis], window[axis]
        place = reshape(place, (*x.shape[:2], *around))
        index = place if index is None else _math.add(_math.mul(index, sizes[axis]), place)
    index = reshape(index, (*x.shape[:2], int(np.prod(out)), int(np.prod(window))))
    flat = reshape(x, (*x.shape[:2], -1))
    taps = reshape(gather_d(flat, 2, reshape(index, (*x.shape[:2], -1))), index.shape)
    value, best = max_with_index(taps, -1)
    place = reshape(gather_d(index, 3, expand_dims(best, -1)), (*x.shape[:2], *out))
    value = reshape(value, place.shape)
    if len(input.shape) == rank + 1:
        value, place = reshape(value, value.shape[1:]), reshape(place, place.shape[1:])
    return (value, place) if return_indices else value


def fractional_max_pool2d(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """Max pooling of images to `output_size`, or to `output_ratio` of their size, by windows at random
    places.

    Shapes: [(n,) c, h, w] -> [(n,) c, *output_size], with `return_indices` also the places (int64) in the
    plane; _random_samples [n, c, 2] in [0, 1).  dtypes: real.  Errors: ValueError for sizes that do not fit.
    """
    return _pool(
        "fractional_max_pool2d",
        2,
        input,
        kernel_size,
        output_size,
        output_ratio,
        return_indices,
        _random_samples,
    )


def fractional_max_pool3d(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """As `fractional_max_pool2d` for volumes: [(n,) c, d, h, w], samples [n, c, 3]."""
    return _pool(
        "fractional_max_pool3d",
        3,
        input,
        kernel_size,
        output_size,
        output_ratio,
        return_indices,
        _random_samples,
    )


__all__ = ["fractional_max_pool2d", "fractional_max_pool3d"]
