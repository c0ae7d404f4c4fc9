"""Reductions of the rows that share a number: sums, products, extremes, means."""

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops.arrays.gathering import gather
from mycelia.engine.ops.arrays.index import is_tensor
from mycelia.engine.ops.arrays.masks import where
from mycelia.engine.ops.arrays.shape import constant, reshape
from mycelia.engine.ops.define import op
from mycelia.engine.ops.elementwise import comparison as _comparison
from mycelia.engine.ops.elementwise import math as _math
from mycelia.engine.ops.elementwise.cast import cast
from mycelia.engine.ops.elementwise.clipping import maximum

_UFUNCS = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}


def _empty(how, dtype):
    """The value of a segment without rows."""
    if how in ("sum", "prod"):
        return how == "prod"
    limits = np.iinfo(dtype) if dtype.kind in "iu" else np.finfo(dtype)
    return limits.min if how == "max" else limits.max


def _segment_type(x, segment_ids, *, count, how):
    if not segment_ids.dtype.is_integer:
        raise TypeError(f"segment_ids must be an integer tensor, but is {segment_ids.dtype.name}")
    rank = len(segment_ids.shape)
    if rank == 0 or x.shape[:rank] != segment_ids.shape:
        raise ValueError(
            f"the shape of segment_ids must begin the shape of x, but they are {list(segment_ids.shape)} "
            f"and {list(x.shape)}"
        )
    if count <= 0:
        raise ValueError(f"num_segments must be greater than 0, but got {count}")
    return TensorType(x.dtype, (count, *x.shape[rank:]))


@op(name="unsorted_segment", infer=_segment_type)
def _segment(x, segment_ids, *, count: "int", how: "sum|prod|max|min" = "sum"):
    """Rows of x with the same number brought together; rows with a negative number are left out.

    A segment without rows is 0, 1, or the least or largest number of the dtype.
    Shapes: x [*ids, ...], segment_ids [*ids] -> [count, ...].  dtypes: real x, integer segment_ids.
    Errors: ValueError for other shapes and a count below 1, RuntimeError for a number of `count` or more.
    """
    out = np.full((count, *x.shape[segment_ids.ndim :]), _empty(how, x.dtype), x.dtype)
    flat = segment_ids.reshape(-1)
    if flat.size and flat.max() >= count:
        raise RuntimeError(f"segment_ids must be less than num_segments {count}, but one is {flat.max()}")
    kept = flat >= 0
    _UFUNCS[how].at(out, flat[kept], x.reshape((flat.size, *out.shape[1:]))[kept])
    return out


@_segment.vjp
def _segment(ct, x, segment_ids, out, count, how):
    def spread(y):  # to each row what its segment has; 0 to rows that take no part
        rows = gather(y, maximum(segment_ids, 0), 0)
        mask = reshape(
            _comparison.greater_equal(segment_ids, 0),
            (*segment_ids.shape, *([1] * (len(x.shape) - len(segment_ids.shape)))),
        )
        return where(mask, rows, 0.0)

    if how == "sum":
        return spread(ct), None
    if how == "prod":
        return _math.mul(spread(ct), _others(x, segment_ids, count, spread)), None
    best = cast(_comparison.equal(x, spread(out)), x.dtype)  # equals share
    ties = maximum(_segment(best, segment_ids, count=count), 1.0)
    return _math.mul(best, spread(_math.true_div(ct, ties))), None


def _others(x, segment_ids, count, spread):
    """For each element the product of the others of its segment, also where some are zero."""
    zero = _comparison.equal(x, 0.0)
    rest = where(zero, 1.0, x)
    zeros = spread(_segment(cast(zero, x.dtype), segment_ids, count=count))
    product = spread(_segment(rest, segment_ids, count=count, how="prod"))
    alone = _comparison.equal(zeros, cast(zero, x.dtype))  # no zero among the others
    return where(alone, _math.true_div(product, rest), 0.0)


@_segment.samples
def _segment(rand):
    ids = np.array([0, 2, 0, -1, 2], np.int32)
    for how in ("sum", "prod", "max", "min"):
        yield rand(5, 3), ids, dict(count=4, how=how, _grad=how in ("sum", "prod"), _second=how != "prod")
        yield rand.ints(-9, 9, (5, 2)), ids.astype(np.int64), dict(count=3, how=how)
        yield (
            rand.distinct(2, 3, 2),
            np.array([[0, 2, 1], [-1, 1, 0]], np.int32),
            dict(count=3, how=how, _second=how != "prod"),
        )
        yield rand(0, 3), np.zeros(0, np.int32), dict(count=2, how=how, _grad=False)
    yield (
        np.array([2, 3, 0, 4, 5, 0, 0], np.float32),
        np.array([0, 0, 1, 1, 1, 2, 2], np.int32),
        dict(count=3, how="prod", _second=False),
    )


def _make(how, text):
    def function(x, segment_ids, num_segments):
        return _checked(x, segment_ids, num_segments)

    def of_input_x(input_x, segment_ids, num_segments):
        return _checked(input_x, segment_ids, num_segments)

    def _checked(x, segment_ids, num_segments):
        count = int(num_segments) if is_tensor(num_segments) else num_segments
        if isinstance(count, bool) or not isinstance(count, int):
            raise errors.type_error(
                f"For 'unsorted_segment_{how}', 'num_segments' must be an int, but got {num_segments!r}."
            )
        return _segment(x, segment_ids, count=count, how=how)

    function = of_input_x if how == "sum" else function  # the sum alone calls it so
    function.__name__ = function.__qualname__ = f"unsorted_segment_{how}"
    function.__doc__ = f"""{text} the rows of `x` that have the same number in `segment_ids`, in any order.

    Rows with a negative number are left out.  Shapes: x [*ids, ...], segment_ids [*ids] -> [num_segments,
    ...].
    dtypes: real.  Errors: as the op `unsorted_segment`.
    """
    return function


unsorted_segment_sum = _make("sum", "Sum of")
unsorted_segment_prod = _make("prod", "Product of")
unsorted_segment_max = _make("max", "Maximum of")
unsorted_segment_min = _make("min", "Minimum of")


def sparse_segment_mean(x, indices, segment_ids):
    """Means of the rows ``x[indices]`` that have the same number in the sorted `segment_ids`.

    Shapes: x [n, ...], indices and segment_ids [k] -> [last segment + 1, ...]; empty segments are 0.
    """
    count = int(segment_ids.asnumpy()[-1]) + 1 if segment_ids.size else 0
    rows = gather(x, indices, 0)
    total = _segment(rows, segment_ids, count=count)
    sizes = np.maximum(np.bincount(segment_ids.asnumpy(), minlength=count), 1)
    return _math.true_div(total, constant(sizes.reshape((-1,) + (1,) * (len(x.shape) - 1)), x.dtype))


__all__ = [
    "sparse_segment_mean", "unsorted_segment_max", "unsorted_segment_min", "unsorted_segment_prod",
    "unsorted_segment_sum",
]  # fmt: skip
