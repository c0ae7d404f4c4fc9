"""Moments and norms over axes, written with the reductions: variance, logsumexp, sums without NaN, norms."""

import numpy as np

from mycelia.engine.base import dtypes, errors
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops import batch_rules as _batch
from mycelia.engine.ops.define import op
from mycelia.engine.ops.elementwise import clipping as _clipping
from mycelia.engine.ops.elementwise import comparison as _comparison
from mycelia.engine.ops.elementwise import logarithms as _logarithms
from mycelia.engine.ops.elementwise import logic as _logic
from mycelia.engine.ops.elementwise import math as _math
from mycelia.engine.ops.elementwise import powers as _powers
from mycelia.engine.ops.elementwise.cast import cast
from mycelia.engine.ops.infer import normalize_axis, reduced_shape
from mycelia.engine.ops.late import ops
from mycelia.engine.ops.reductions.extreme_values import amax, amin
from mycelia.engine.ops.reductions.reduce import (
    count_reduced,
    keep_reduced,
    l2_norm,
    mean,
    reduced_axes,
    sum,
)

# ------------------------------------------------------------------------------------------------ moments


def var(input, axis=None, ddof=0, keepdims=False):
    """Variance over `axis`: ``sum((x - mean)**2) / (n - ddof)``, in two passes.

    Shapes: reduced axes vanish, or become 1 with `keepdims`.  dtypes: floating.
    Errors: ValueError for an axis out of range or given twice.
    """
    return var_mean(input, axis, ddof, keepdims)[0]


def std(input, axis=None, ddof=0, keepdims=False):
    """Standard deviation over `axis`: ``sqrt(sum((x - mean)**2) / (n - ddof))``.

    Shapes: reduced axes vanish, or become 1 with `keepdims`.  dtypes: floating.
    Errors: ValueError for an axis out of range or given twice.
    """
    return _powers.sqrt(var(input, axis, ddof, keepdims))


def var_mean(input, axis=None, ddof=0, keepdims=False):
    """Variance and mean over `axis`.

    Shapes: reduced axes vanish, or become 1 with `keepdims`.  dtypes: floating.
    Errors: TypeError for integers; ValueError for an axis out of range or given twice.
    """
    if not input.dtype.is_floating:
        raise errors.type_error(f"var: input must be floating, but is {input.dtype.name}")
    center = mean(input, axis, True)
    squares = sum(_math.square(_math.sub(input, center)), axis, keepdims)
    count = count_reduced(input.shape, axis) - int(ddof)
    variance = _math.mul(squares, 1.0 / count if count > 0 else float("inf"))
    return variance, center if keepdims else mean(input, axis, False)


def std_mean(input, axis=None, ddof=0, keepdims=False):
    """Standard deviation and mean over `axis`.

    Shapes: reduced axes vanish, or become 1 with `keepdims`.  dtypes: floating.
    Errors: TypeError for integers; ValueError for an axis out of range or given twice.
    """
    variance, center = var_mean(input, axis, ddof, keepdims)
    return _powers.sqrt(variance), center


def _logsumexp_type(input, *, dim, keepdim):
    return TensorType(input.dtype, reduced_shape(input.shape, dim, keepdim))


@op(name="logsumexp", infer=_logsumexp_type, float_result=True, batch=_batch.along("dim"), precision="wide")
def _logsumexp(input, *, dim: "ints?" = None, keepdim: "bool" = False):
    """``log(sum(exp(input)))`` over `dim` without overflow on the way.

    Shapes: reduced axes vanish, or become 1 with `keepdim`.  dtypes: floating; integers give float32.
    Errors: ValueError for an axis out of range or given twice.
    """
    axes = reduced_axes(dim, input.ndim)
    peak = np.max(input, axis=axes, keepdims=True)
    peak = np.where(np.isfinite(peak), peak, input.dtype.type(0))
    total = np.log(np.sum(np.exp(input - peak), axis=axes, keepdims=True)) + peak
    return total if keepdim else np.squeeze(total, axes)


@_logsumexp.vjp
def _logsumexp(ct, input, out, *, dim):
    share = _powers.exp(_math.sub(input, keep_reduced(out, dim, input.shape)))
    return _math.mul(keep_reduced(ct, dim, input.shape), share)


@_logsumexp.samples
def _logsumexp(rand):
    yield rand(3, 4), dict(dim=1)
    yield rand(2, 3, 4), dict(dim=(0, 2), keepdim=True)
    yield rand(5)
    yield rand()
    yield (
        np.array([[1000.0, 1000.0], [-1000.0, -999.0], [-np.inf, -np.inf], [np.inf, 0.0]], np.float32),
        dict(dim=1, _grad=False),
    )


@_logsumexp.decompose
def _logsumexp(input, *, dim, keepdim):
    from mycelia.engine.ops.arrays.shape import reshape
    from mycelia.engine.ops.control_flow.control import stop_gradient

    axes = reduced_axes(dim, len(input.shape))
    largest = stop_gradient(amax(input, axes, True))  # the result does not depend on it
    peak = _clipping.nan_to_num(largest, nan=0.0, posinf=0.0, neginf=0.0)
    total = _math.add(_logarithms.log(sum(_powers.exp(_math.sub(input, peak)), axes, True)), peak)
    return total if keepdim else reshape(total, reduced_shape(input.shape, axes, False))


def logsumexp(input, dim, keepdim=False):
    """``log(sum(exp(input)))`` over `dim` without overflow on the way.

    Shapes: reduced axes vanish, or become 1 with `keepdim`.  dtypes: floating.
    Errors: ValueError for an axis out of range or given twice.
    """
    return _logsumexp(input, dim=dim, keepdim=keepdim)


def nansum(input, axis=None, keepdims=False, *, dtype=None):
    """Sum over `axis` with NaN counted as 0.

    Shapes: reduced axes vanish, or become 1 with `keepdims`.  dtypes: real, kept.
    Errors: ValueError for an axis out of range or given twice.
    """
    return sum(_without_nan(input), axis, keepdims, dtype=input.dtype if dtype is None else dtype)


def nanmean(input, axis=None, keepdims=False, *, dtype=None):
    """Mean over `axis` of the elements that are not NaN; NaN where there is none.

    Shapes: reduced axes vanish, or become 1 with `keepdims`.  dtypes: floating.
    Errors: TypeError for integers, ValueError for an axis out of range or given twice.
    """
    if not input.dtype.is_floating:
        raise errors.type_error(f"nanmean: input must be floating, but it is {input.dtype}")
    count = sum(cast(_logic.logical_not(_logic.isnan(input)), dtype or input.dtype), axis, keepdims)
    return _math.true_div(nansum(input, axis, keepdims, dtype=dtype), count)


def _without_nan(input):
    from mycelia.engine.ops.arrays.masks import where

    return where(_logic.isnan(input), 0, input)


# -------------------------------------------------------------------------------------------------- norms


def vector_norm(x, ord=2, axis=None, keepdims=False, *, dtype=None):
    """Vector norm over `axis`: ``sum(|x|**ord) ** (1 / ord)``; `ord` may be 0 (nonzero count), inf or -inf.

    Shapes: reduced axes vanish, or become 1 with `keepdims`.  dtypes: floating.
    Errors: ValueError for an axis out of range or given twice.
    """
    x = x if dtype is None else cast(x, dtype)
    if ord == 2:
        return l2_norm(x, axis, keepdims)
    size = _math.abs(x)
    if ord == 1:
        return sum(size, axis, keepdims)
    if ord == 0:
        return sum(cast(_comparison.not_equal(x, 0), x.dtype), axis, keepdims)
    if ord == float("inf"):
        return amax(size, axis, keepdims)
    if ord == float("-inf"):
        return amin(size, axis, keepdims)
    return _powers.pow(sum(_powers.pow(size, ord), axis, keepdims), 1.0 / ord)


def matrix_norm(A, ord="fro", axis=(-2, -1), keepdims=False, *, dtype=None):
    """Norm of matrices over two axes.

    `ord`: "fro", "nuc" (sum of singular values), 1 and inf (largest column and row sum), 2 (largest singular
    value); a negative number takes the smallest.

    Shapes: the two axes vanish, or become 1 with `keepdims`.  dtypes: floating.
    Errors: ValueError for another `ord`, or if `axis` does not name two different axes.
    """
    A = A if dtype is None else cast(A, dtype)
    rank = len(A.shape)
    axis = tuple(a % rank for a in axis)
    if len(axis) != 2 or axis[0] == axis[1]:
        raise errors.value_error(f"matrix_norm: axis must name two different axes, but is {axis}")
    row, column = axis
    if ord == "fro":
        return l2_norm(A, axis, keepdims)
    if ord in (1, -1, float("inf"), float("-inf")):
        inner, outer = (row, column) if ord in (1, -1) else (column, row)
        sums = sum(_math.abs(A), inner, True)
        result = (amax if ord > 0 else amin)(sums, outer, True)
    elif ord in (2, -2, "nuc"):
        from mycelia.engine.ops.arrays.axes import moveaxis
        from mycelia.engine.ops.arrays.shape import expand_dims

        values = ops.svd(moveaxis(A, axis, (-2, -1)), compute_uv=False)
        value = sum(values, -1) if ord == "nuc" else (amax if ord > 0 else amin)(values, -1)
        if not keepdims:
            return value
        for a in sorted(axis):
            value = expand_dims(value, a)
        return value
    else:
        raise errors.value_error(
            f"matrix_norm: ord is {ord!r}, but must be 'fro', 'nuc', inf, -inf, 1, -1, 2 or -2"
        )
    return result if keepdims else _squeeze(result, axis)


def _squeeze(x, axes):
    from mycelia.engine.ops.arrays.shape import reshape

    return reshape(x, tuple(n for d, n in enumerate(x.shape) if d not in axes))


def norm(A, ord=None, dim=None, keepdim=False, *, dtype=None):
    """Vector norm over one axis or the flattened tensor; matrix norm over two axes or, with `ord`, of one.

    Shapes: reduced axes vanish, or become 1 with `keepdim`.  dtypes: floating.
    Errors: ValueError for an unknown `ord` or a bad axis.
    """
    if dim is None and (ord is None or len(A.shape) == 1):
        return vector_norm(A, 2 if ord is None else ord, None, keepdim, dtype=dtype)
    axes = tuple(range(len(A.shape))) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    if len(axes) == 2:
        return matrix_norm(A, "fro" if ord is None else ord, axes, keepdim, dtype=dtype)
    return vector_norm(A, 2 if ord is None else ord, axes, keepdim, dtype=dtype)


def dist(input, other, p=2):
    """`p`-norm of the difference of two tensors.

    Shapes: broadcast -> scalar.  dtypes: floating.
    """
    return vector_norm(_math.sub(input, other), p)


def renorm(input, p, axis, maxnorm):
    """Scales each slice along `axis` whose `p`-norm exceeds `maxnorm` down to it.

    Shapes: any -> same.  dtypes: floating.
    Errors: ValueError for an axis out of range or a maxnorm that is not positive.
    """
    if not maxnorm > 0:
        raise errors.value_error(f"renorm: maxnorm must be positive, but is {maxnorm}")
    rank = len(input.shape)
    kept = normalize_axis(axis, rank)
    length = vector_norm(input, p, tuple(d for d in range(rank) if d != kept), True)
    return _math.mul(input, _clipping.minimum(_math.true_div(float(maxnorm), length), 1.0))


def cov(input, *, correction=1, fweights=None, aweights=None):
    """Covariance of the variables in the rows of `input`, observed in its columns.

    `fweights`: how often each column counts, integers; `aweights`: weights of the columns.
    Shapes: input [variables, n] or [n] -> [variables, variables] or scalar.
    dtypes: floating; integers give float32.
    Errors: ValueError for rank above 2.
    """
    from mycelia.engine.ops.arrays.shape import reshape
    from mycelia.engine.ops.linalg.products import mat_mul

    if len(input.shape) > 2:
        raise errors.value_error(f"cov: input must have rank 0, 1 or 2, but its shape is {list(input.shape)}")
    x = input if input.dtype.is_floating else cast(input, dtypes.float32)
    variables = input.shape[0] if len(input.shape) == 2 else 1
    x = reshape(x, (variables, -1))
    weights = None
    for given in (fweights, aweights):
        if given is not None:
            given = reshape(cast(given, x.dtype), (1, -1))
            weights = given if weights is None else _math.mul(weights, given)
    if weights is None:
        total = x.shape[1]
        centered = _math.sub(x, mean(x, 1, True))
        weighted, count = centered, (total - correction) * 1.0
    else:
        total = sum(weights)
        centered = _math.sub(x, _math.true_div(sum(_math.mul(x, weights), 1, True), total))
        weighted = _math.mul(centered, weights)
        spread = 1.0
        if aweights is not None:
            spread = _math.true_div(sum(_math.mul(weights, reshape(cast(aweights, x.dtype), (1, -1)))), total)
        count = _math.sub(total, _math.mul(spread, float(correction)))
    result = _math.true_div(mat_mul(weighted, centered, transpose_b=True), count)
    return result if len(input.shape) == 2 else reshape(result, ())


__all__ = [
    "cov", "dist", "logsumexp", "matrix_norm", "nanmean", "nansum", "norm", "renorm", "std", "std_mean",
    "var", "var_mean", "vector_norm",
]  # fmt: skip
