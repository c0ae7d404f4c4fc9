"""Matrices from stripes of diagonals and stripes of diagonals from matrices, aligned as TensorFlow has it."""

import math

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.ir.symint import SymInt, applied
from mycelia.engine.ops.arrays.create import arange
from mycelia.engine.ops.arrays.gathering import gather
from mycelia.engine.ops.arrays.index import is_tensor
from mycelia.engine.ops.arrays.masks import where
from mycelia.engine.ops.arrays.shape import constant, reshape
from mycelia.engine.ops.elementwise.clipping import maximum, minimum

_ALIGNMENTS = ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT")


def _numbers(value):
    if type(value) is SymInt:
        return [value]
    return [int(v) for v in np.asarray(value.asnumpy() if is_tensor(value) else value).reshape(-1)]


def _stripe(name, k, align):
    """The lowest and the highest diagonal."""
    found = _numbers(k)
    low, high = found[0], found[-1]
    if len(found) > 2 or low > high:
        raise errors.value_error(f"For '{name}', 'k' must be one int or two that ascend, but got {found}.")
    if align not in _ALIGNMENTS:
        raise errors.value_error(f"For '{name}', 'align' must be one of {_ALIGNMENTS}, but got {align!r}.")
    return low, high


def _longest(name, rows, columns, low, high):
    """The length of the longest diagonal of the stripe."""
    if not (-rows < low <= high < columns):
        raise errors.value_error(f"For '{name}', 'k' must be in ({-rows}, {columns}), but got {(low, high)}.")
    return applied(min, rows + min(high, 0), columns - max(low, 0))


def _length(diagonal, rows, columns):
    return minimum(minimum(diagonal, 0) + rows, columns - maximum(diagonal, 0))


def _start(diagonal, rows, columns, longest, align):
    """Where each diagonal (a tensor) begins in its row of the stripe."""
    above, below = align.split("_")
    start = longest - _length(diagonal, rows, columns)
    start = where(diagonal >= 0, 0, start) if above == "LEFT" else start
    return where(diagonal <= 0, 0, start) if below == "LEFT" else start


def _stripe_shape(low, high, longest):
    return (longest,) if low == high else (high - low + 1, longest)


def _picked(x, places, inside, fill):
    """`x` along its last axis at `places` where `inside`; `fill` elsewhere."""
    return where(inside, gather(x, where(inside, places, 0), len(x.shape) - 1), fill)


def _matrix_places(rows, columns, low, high, longest, align):
    """Where each element of a matrix lies in a flattened stripe, and whether it does."""
    row, column = arange(rows).reshape(-1, 1), arange(columns)
    diagonal = column - row
    place = minimum(row, column) + _start(diagonal, rows, columns, longest, align)
    return (high - diagonal) * longest + place, (diagonal >= low) & (diagonal <= high)


def _fill(value):
    return reshape(value, ()) if is_tensor(value) else value


def matrix_diag(x, k=0, num_rows=-1, num_cols=-1, padding_value=0, align="RIGHT_LEFT"):
    """Matrices with the diagonals `x` on the diagonals `k`, and `padding_value` elsewhere.

    `k`: one diagonal, or the lowest and the highest; `align`: how short ones lie in x, above and below the
    main one. Shapes: [.., length] for one diagonal, [.., diagonals, longest] for more -> [.., num_rows,
    num_cols], which are the smallest that fit where they are -1.  dtypes: any.  Errors: ValueError for k,
    align and sizes.
    """
    low, high = _stripe("matrix_diag", k, align)
    (rows,), (columns,) = _numbers(num_rows), _numbers(num_cols)
    longest = x.shape[-1]
    least_rows, least_columns = longest - min(high, 0), longest + max(low, 0)
    if rows == -1 and columns == -1:
        rows = columns = applied(max, least_rows, least_columns)
    rows = least_rows if rows == -1 else rows
    columns = least_columns if columns == -1 else columns
    longest = _longest("matrix_diag", rows, columns, low, high)
    want = _stripe_shape(low, high, longest)
    lead = x.shape[: -len(want)]
    if x.shape[len(lead) :] != want:
        raise errors.value_error(
            f"For 'matrix_diag', diagonals {low} to {high} of a matrix [{rows}, {columns}] need a shape "
            f"that ends in {want}, but 'x' has shape {x.shape}."
        )
    places, inside = _matrix_places(rows, columns, low, high, longest, align)
    return _picked(reshape(x, (*lead, math.prod(want))), places, inside, _fill(padding_value))


def matrix_diag_part(x, k, padding_value, align="RIGHT_LEFT"):
    """The diagonals `k` of matrices, short ones filled up with `padding_value`.

    Shapes: [.., rows, columns] -> [.., length] for one diagonal, [.., diagonals, longest] for more.
    dtypes: any.  Errors: ValueError for k and align.
    """
    low, high = _stripe("matrix_diag_part", k, align)
    *lead, rows, columns = x.shape
    longest = _longest("matrix_diag_part", rows, columns, low, high)
    flat = reshape(x, (*lead, rows * columns))
    if low == high:
        first = low if low > 0 else -low * columns
        return gather(flat, arange(longest) * (columns + 1) + first, len(lead))
    diagonal = constant(np.arange(high, low - 1, -1)[:, None])
    place = arange(longest) - _start(diagonal, rows, columns, longest, align)
    row, column = place - minimum(diagonal, 0), place + maximum(diagonal, 0)
    inside = (place >= 0) & (place < _length(diagonal, rows, columns))
    return _picked(flat, row * columns + column, inside, _fill(padding_value))


def matrix_set_diag(x, diagonal, k=0, align="RIGHT_LEFT"):
    """Matrices with their diagonals `k` replaced by `diagonal`.

    Shapes: x [.., rows, columns], diagonal [.., length] or [.., diagonals, longest] -> as x.  dtypes: any.
    Errors: ValueError for k, align and the shape of `diagonal`.
    """
    low, high = _stripe("matrix_set_diag", k, align)
    *lead, rows, columns = x.shape
    longest = _longest("matrix_set_diag", rows, columns, low, high)
    stripe = _stripe_shape(low, high, longest)
    want = (*lead, *stripe)
    if tuple(diagonal.shape) != want:
        raise errors.value_error(
            f"For 'matrix_set_diag', 'diagonal' must have shape {want}, but has shape {diagonal.shape}."
        )
    places, inside = _matrix_places(rows, columns, low, high, longest, align)
    return _picked(reshape(diagonal, (*lead, math.prod(stripe))), places, inside, x)


def matrix_band_part(x, lower, upper):
    """`x` with zeros outside of a band around the main diagonal; a negative width means no limit.

    Shapes: [.., rows, columns] -> same.  dtypes: any.  Errors: ValueError for a rank below 2.
    """
    if len(x.shape) < 2:
        raise errors.value_error(
            f"For 'matrix_band_part', 'x' must have rank 2 or more, but has shape {x.shape}."
        )
    (lower,), (upper,) = _numbers(lower), _numbers(upper)
    rows, columns = x.shape[-2:]
    distance = arange(columns) - arange(rows).reshape(-1, 1)
    inside = (distance >= -(rows if lower < 0 else lower)) & (distance <= (columns if upper < 0 else upper))
    return where(inside, x, 0)


__all__ = ["matrix_band_part", "matrix_diag", "matrix_diag_part", "matrix_set_diag"]
