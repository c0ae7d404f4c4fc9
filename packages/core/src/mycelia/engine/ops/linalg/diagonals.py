"""Matrices from stripes of diagonals and stripes of diagonals from matrices, aligned as TensorFlow has it."""

import numpy as np

from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.arrays.gathering import gather
from mycelia.engine.ops.arrays.index import is_tensor
from mycelia.engine.ops.arrays.masks import where
from mycelia.engine.ops.arrays.shape import constant, reshape

_ALIGNMENTS = ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT")


def _numbers(value):
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


def _places(name, rows, columns, low, high, align):
    """Row and column of each entry of the stripe, -1 in what fills it up: arrays [diagonals, longest]."""
    if not (-rows < low <= high < columns):
        raise errors.value_error(f"For '{name}', 'k' must be in ({-rows}, {columns}), but got {(low, high)}.")
    longest = min(rows + min(high, 0), columns - max(low, 0))
    above, below = align.split("_")
    row = np.full((high - low + 1, longest), -1)
    column = row.copy()
    for i, d in enumerate(range(high, low - 1, -1)):
        length = min(rows + min(d, 0), columns - max(d, 0))
        left = (d >= 0 and above == "LEFT") or (d <= 0 and below == "LEFT")
        start = 0 if left else longest - length
        row[i, start : start + length] = np.arange(length) + max(-d, 0)
        column[i, start : start + length] = np.arange(length) + max(d, 0)
    return row, column


def _picked(x, places, fill):
    """`x` along its last axis at `places`; `fill` at negative ones."""
    found = gather(x, constant(np.maximum(places, 0), dtypes.int32), len(x.shape) - 1)
    if (places >= 0).all():
        return found
    return where(constant(places >= 0), found, fill)


def _matrix_places(row, column, rows, columns):
    """Where each element of a matrix lies in a flattened stripe; -1 outside of it."""
    places = np.full((rows, columns), -1)
    inside = row >= 0
    places[row[inside], column[inside]] = np.flatnonzero(inside)
    return places


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
        rows = columns = max(least_rows, least_columns)
    rows = least_rows if rows == -1 else rows
    columns = least_columns if columns == -1 else columns
    row, column = _places("matrix_diag", rows, columns, low, high, align)
    lead = x.shape[:-1] if low == high else x.shape[:-2]
    if x.shape[len(lead) :] not in (row.shape, row.shape[1:]):
        raise errors.value_error(
            f"For 'matrix_diag', diagonals {low} to {high} of a matrix [{rows}, {columns}] need a shape "
            "that ends in "
            f"{row.shape}, but 'x' has shape {x.shape}."
        )
    places = _matrix_places(row, column, rows, columns)
    return _picked(reshape(x, (*lead, row.size)), places, _fill(padding_value))


def matrix_diag_part(x, k, padding_value, align="RIGHT_LEFT"):
    """The diagonals `k` of matrices, short ones filled up with `padding_value`.

    Shapes: [.., rows, columns] -> [.., length] for one diagonal, [.., diagonals, longest] for more.
    dtypes: any.  Errors: ValueError for k and align.
    """
    low, high = _stripe("matrix_diag_part", k, align)
    *lead, rows, columns = x.shape
    row, column = _places("matrix_diag_part", rows, columns, low, high, align)
    places = np.where(row >= 0, row * columns + column, -1)
    places = places[0] if low == high else places
    return _picked(reshape(x, (*lead, rows * columns)), places, _fill(padding_value))


def matrix_set_diag(x, diagonal, k=0, align="RIGHT_LEFT"):
    """Matrices with their diagonals `k` replaced by `diagonal`.

    Shapes: x [.., rows, columns], diagonal [.., length] or [.., diagonals, longest] -> as x.  dtypes: any.
    Errors: ValueError for k, align and the shape of `diagonal`.
    """
    low, high = _stripe("matrix_set_diag", k, align)
    *lead, rows, columns = x.shape
    row, column = _places("matrix_set_diag", rows, columns, low, high, align)
    want = (*lead, *(row.shape[1:] if low == high else row.shape))
    if tuple(diagonal.shape) != want:
        raise errors.value_error(
            f"For 'matrix_set_diag', 'diagonal' must have shape {want}, but has shape {diagonal.shape}."
        )
    places = _matrix_places(row, column, rows, columns)
    return _picked(reshape(diagonal, (*lead, row.size)), places, x)


def matrix_band_part(x, lower, upper):
    """`x` with zeros outside of a band around the main diagonal; a negative width means no limit.

    Shapes: [.., rows, columns] -> same.  dtypes: any.  Errors: ValueError for a rank below 2.
    """
    if len(x.shape) < 2:
        raise errors.value_error(
            f"For 'matrix_band_part', 'x' must have rank 2 or more, but has shape {x.shape}."
        )
    (lower,), (upper,) = _numbers(lower), _numbers(upper)
    distance = np.arange(x.shape[-1]) - np.arange(x.shape[-2])[:, None]
    inside = ((lower < 0) | (-distance <= lower)) & ((upper < 0) | (distance <= upper))
    return where(constant(inside), x, 0)


__all__ = ["matrix_band_part", "matrix_diag", "matrix_diag_part", "matrix_set_diag"]
