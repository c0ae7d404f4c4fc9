"""The steps of batch normalization over several devices: statistics, their union, and what they make of x."""

from __future__ import annotations

from mycelia import ops
from mycelia.engine.ops.control_flow.state import assign


def _others(input) -> tuple[int, ...]:
    """All dimensions but that of the channels."""
    return (0, *range(2, input.ndim))


def _per_channel(vector, rank: int):
    return ops.reshape(vector, (1, -1, *(1,) * (rank - 2)))


def batch_norm_stats(input, eps):
    """Mean and ``1 / sqrt(variance + eps)`` of each channel.

    Shapes: [N, C, ...] -> [C], [C].  dtypes: floating.
    """
    variance, mean = ops.var_mean(input, _others(input), 0)
    return mean, ops.rsqrt(variance + eps)


def batch_norm_gather_stats_with_counts(
    input, mean, invstd, running_mean=None, running_var=None, momentum=0.1, eps=1e-5, counts=None
):
    """Mean and ``1 / sqrt(variance + eps)`` of the union of several batches; moves the running statistics.

    `mean` and `invstd`: those of each batch; `counts`: how many elements per channel each batch has.
    Shapes: mean, invstd [batches, C], counts [batches], running [C] -> [C], [C].  dtypes: floating.
    """
    if counts is None:
        counts = ops.ones((mean.shape[0],), mean.dtype) * float(input.size // input.shape[1])
    weights = ops.reshape(ops.cast(counts, mean.dtype), (-1, 1))
    total = ops.sum(weights)
    center = ops.sum(mean * weights, 0) / total
    spread = 1.0 / ops.square(invstd) - eps + ops.square(mean - center)
    squares = ops.sum(spread * weights, 0)
    if running_mean is not None:
        assign(running_mean, running_mean * (1.0 - momentum) + center * momentum)
    if running_var is not None:
        unbiased = squares / ops.maximum(total - 1.0, 1.0)
        assign(running_var, running_var * (1.0 - momentum) + unbiased * momentum)
    return center, ops.rsqrt(squares / total + eps)


def batch_norm_elemt(input, weight=None, bias=None, mean=None, invstd=None, eps=1e-5):
    """``(input - mean) * invstd * weight + bias`` for each channel; what is None is left out.

    Shapes: input [N, C, ...], the others [C] -> as input.  dtypes: floating.
    """
    del eps  # invstd holds it
    rank = input.ndim
    for apply, vector in ((ops.sub, mean), (ops.mul, invstd), (ops.mul, weight), (ops.add, bias)):
        if vector is not None:
            input = apply(input, _per_channel(vector, rank))
    return input


def conv_tbc(input, weight, bias, pad=0):
    """Convolution over time of [time, batch, channels].

    Shapes: input [T, B, C], weight [k, C, D], bias [D] -> [T + 2 pad - k + 1, B, D].  dtypes: floating.
    """
    x = ops.transpose(input, (1, 2, 0))
    y = ops.conv1d(x, ops.transpose(weight, (2, 1, 0)), bias, 1, "pad", pad)
    return ops.transpose(y, (2, 0, 1))
