"""Numbers of 16 bits in float32: what the compiler computes float16 and bfloat16 with.

A value of 16 bits that is kept as float32 is rounded by one of these where the eager op would have rounded
its result; casts to the type itself change nothing then.
"""

import numpy as np

from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.define import op


def _same_type(x):
    if x.dtype is not dtypes.float32:
        raise errors.dtype_error(f"x must be float32, but is {x.dtype.name} of shape {list(x.shape)}")
    return x


@op(elementwise="same", infer=_same_type, nondiff=True, fuse="round_f16")
def round_f16(x):
    """`x` rounded to the next float16, ties to even; beyond its range infinity.

    Shapes: any.  dtypes: float32.
    """
    with np.errstate(over="ignore"):
        return x.astype(np.float16).astype(np.float32)


@round_f16.samples
def round_f16(rand):
    yield from _samples(rand)


@op(elementwise="same", infer=_same_type, nondiff=True, fuse="round_bf16")
def round_bf16(x):
    """`x` rounded to the next bfloat16, ties to even.

    Shapes: any.  dtypes: float32.
    """
    return dtypes.from_bfloat16_bits(dtypes.to_bfloat16_bits(x))


@round_bf16.samples
def round_bf16(rand):
    yield from _samples(rand)


def _samples(rand):
    yield (rand(3, 37),)
    yield (rand(0, 2),)
    edges = [0.0, -0.0, 1e-8, -6e-8, 65519.0, 65520.0, -1e30, 1.00048828125, 1.0009765625, np.inf, np.nan]
    yield (np.array(edges, np.float32),)
