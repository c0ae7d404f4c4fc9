"""Differences, integrals, interpolation, convolution, polynomials."""

from __future__ import annotations

import math

from mycelia import ops
from mycelia.engine.base import dtypes, errors
from mycelia.engine.tensors.tensor import is_tensor
from mycelia.faces.numpy._arguments import (
    as_float,
    as_tensor,
    axes_of,
    one_axis,
    only_tensor,
    same_dtype,
    to_dtype,
)
from mycelia.faces.numpy.statistics import searchsorted


def _slices(x, axis, *bounds):
    return [x[(slice(None),) * axis + (slice(low, high),)] for low, high in bounds]


def diff(a, n=1, axis=-1, prepend=None, append=None):
    """Differences of neighbours along `axis`, `n` times over; `prepend` and `append` are put at the ends.

    Shapes: the axis loses n elements, as many as it has at most.  dtypes: same; of bools whether they differ.
    Errors: TypeError unless a Tensor, ValueError for a negative n.
    """
    x = only_tensor("diff", a, "a")
    if x.ndim == 0:
        raise errors.value_error("diff", "a must have one axis at least")
    axis = one_axis("diff", axis, x.ndim)
    if n < 0:
        raise errors.value_error("diff", f"n cannot be negative, but got {n}")
    if n == 0:
        return x
    parts = [_edge(x, end, axis) for end in (prepend,) if end is not None] + [x]
    parts += [_edge(x, end, axis) for end in (append,) if end is not None]
    x = ops.cat(same_dtype(parts, "diff"), axis) if len(parts) > 1 else x
    if n >= x.shape[axis]:
        return _slices(x, axis, (0, 0))[0]
    for _ in range(n):
        low, high = _slices(x, axis, (None, -1), (1, None))
        x = ops.not_equal(high, low) if x.dtype.is_bool else high - low
    return x


def _edge(x, end, axis):
    end = as_tensor("diff", end, "prepend and append")
    if end.ndim == 0:
        return ops.broadcast_to(end, tuple(1 if i == axis else n for i, n in enumerate(x.shape)))
    return end


def ediff1d(ary, to_end=None, to_begin=None):
    """Differences of neighbours of all elements, between `to_begin` and `to_end`.

    Shapes: n elements -> [n - 1 and the ends].  dtypes: as `ary`.  Errors: TypeError unless a Tensor.
    """
    x = ops.reshape(only_tensor("ediff1d", ary, "ary"), (-1,))
    parts = [x[1:] - x[:-1]]
    ends = [None if e is None else ops.reshape(as_tensor("ediff1d", e), (-1,)) for e in (to_begin, to_end)]
    parts = [e for e in ends[:1] if e is not None] + parts + [e for e in ends[1:] if e is not None]
    return ops.cat([to_dtype(part, x.dtype) for part in parts], 0) if len(parts) > 1 else parts[0]


def gradient(f, *varargs, axis=None, edge_order=1):
    """Slopes along each of `axis`: central differences inside, one-sided at the ends.

    `varargs`: the distance of neighbours, one for all axes or one for each.
    Shapes: as `f`; a list for several axes.  dtypes: integers give float32.
    Errors: ValueError for less than two elements, NotImplementedError for places and edge_order 2.
    """
    if edge_order != 1:
        raise errors.error(
            errors.NotSupportedError, "gradient", f"edge_order must be 1, but got {edge_order}"
        )
    x = as_float(as_tensor("gradient", f, "f"))
    axes = axes_of("gradient", axis, x.ndim)
    for one in varargs:
        if is_tensor(one) and one.ndim or isinstance(one, (list, tuple)):
            raise errors.error(errors.NotSupportedError, "gradient", "distances must be numbers")
    distances = varargs if len(varargs) == len(axes) else varargs * len(axes) if len(varargs) == 1 else None
    if not varargs:
        distances = (1,) * len(axes)
    if distances is None:
        raise errors.type_error("gradient", f"{len(axes)} distances are needed, but got {len(varargs)}")
    slopes = [_slope(x, one, distance) for one, distance in zip(axes, distances)]
    return slopes if len(slopes) > 1 else slopes[0]


def _slope(x, axis, distance):
    n = x.shape[axis]
    if n < 2:
        raise errors.value_error("gradient", f"an axis of size {n} has no slope")
    first, second, last, before = _slices(x, axis, (0, 1), (1, 2), (n - 1, n), (n - 2, n - 1))
    parts = [second - first, last - before]
    if n > 2:
        low, high = _slices(x, axis, (None, -2), (2, None))
        parts.insert(1, (high - low) / 2)
    return ops.cat(parts, axis) / distance


def trapz(y, x=None, dx=1.0, axis=-1):
    """The integral along `axis` by trapezoids, at the places `x` or at distances `dx`.

    Shapes: the axis vanishes.  dtypes: integers give float32.
    """
    y = as_tensor("trapz", y, "y")
    if y.ndim == 0:
        raise errors.value_error("trapz", "y must have one axis at least")
    axis, y = one_axis("trapz", axis, y.ndim), as_float(y)
    if x is not None:
        x = as_float(as_tensor("trapz", x))
        if x.ndim == 1:
            dx = ops.reshape(x[1:] - x[:-1], tuple(-1 if i == axis else 1 for i in range(y.ndim)))
        else:
            low, high = _slices(x, one_axis("trapz", axis, x.ndim), (None, -1), (1, None))
            dx = high - low
    low, high = _slices(y, axis, (None, -1), (1, None))
    return ops.sum((low + high) * dx / 2, axis)


def unwrap(p, discont=math.pi, axis=-1):
    """Angles without jumps: differences larger than `discont` are changed by multiples of 2 pi.

    Shapes: same.  dtypes: integers give float32.
    """
    x = as_float(as_tensor("unwrap", p, "p"))
    axis = one_axis("unwrap", axis, x.ndim)
    first, low, high = _slices(x, axis, (None, 1), (None, -1), (1, None))
    step = high - low
    turned = ops.floor_mod(step + math.pi, 2 * math.pi) - math.pi
    turned = ops.where(ops.logical_and(ops.equal(turned, -math.pi), ops.greater(step, 0)), math.pi, turned)
    change = ops.where(ops.less(ops.abs(step), discont), ops.zeros_like(step), turned - step)
    return ops.cat([first, high + ops.cumsum(change, axis)], axis)


def interp(x, xp, fp, left=None, right=None):
    """Linear interpolation between the points (xp, fp); `left` and `right` stand for what lies outside.

    Shapes: any, [n], [n] -> as `x`.  dtypes: float32.  Errors: ValueError if xp and fp do not fit.
    """
    x, xp, fp = (to_dtype(as_tensor("interp", v), dtypes.float32) for v in (x, xp, fp))
    if xp.ndim != 1 or xp.shape != fp.shape:
        raise errors.value_error("interp", f"xp and fp must be vectors of one length: {xp.shape}, {fp.shape}")
    n = xp.shape[0]
    if n == 1:
        inside = ops.broadcast_to(fp, x.shape) if x.ndim else fp[0]
    else:
        upper = ops.clamp(searchsorted(xp, x, "right"), 1, n - 1)
        x0, x1 = ops.gather(xp, upper - 1, 0), ops.gather(xp, upper, 0)
        y0, y1 = ops.gather(fp, upper - 1, 0), ops.gather(fp, upper, 0)
        inside = y0 + (y1 - y0) * (x - x0) / (x1 - x0)
    left = fp[0] if left is None else to_dtype(as_tensor("interp", left), dtypes.float32)
    right = fp[n - 1] if right is None else to_dtype(as_tensor("interp", right), dtypes.float32)
    result = ops.where(ops.less(x, xp[0]), left, inside)
    return ops.where(ops.greater(x, xp[n - 1]), right, result)


# ----------------------------------------------------------------------------------------------- convolution


def _full_convolution(a, v):
    """Sums of products of `a` and the turned `v` at every place where they meet."""
    n, m = a.shape[0], v.shape[0]
    table = ops.mul(ops.reshape(a, (1, n)), ops.reshape(v, (m, 1)))
    padded = ops.pad(table, (0, m)) if m else table  # each row one place further when the rows are joined
    flat = ops.reshape(padded, (-1,))[: m * (n + m - 1)]
    return ops.sum(ops.reshape(flat, (m, n + m - 1)), 0)


def _vectors(name, a, v):
    a, v = same_dtype([as_tensor(name, a, "a"), as_tensor(name, v, "v")], name)
    if a.ndim != 1 or v.ndim != 1 or a.size == 0 or v.size == 0:
        raise errors.value_error(name, f"a and v must be vectors, but have shapes {a.shape} and {v.shape}")
    return a, v


def _convolved(name, a, v, mode):
    n, m = a.shape[0], v.shape[0]
    full = to_dtype(_full_convolution(a, v), a.dtype)
    if mode == "full":
        return full
    if mode == "same":
        start = (min(n, m) - 1) // 2
        return full[start : start + max(n, m)]
    if mode == "valid":
        return full[min(n, m) - 1 : max(n, m)]
    raise errors.value_error(name, f"mode must be 'full', 'same' or 'valid', but got {mode!r}")


def convolve(a, v, mode="full"):
    """Convolution of two vectors; "same" and "valid" give its middle, where most or all of them meets.

    Shapes: [n], [m] -> [n + m - 1], [max(n, m)] or [|n - m| + 1].  dtypes: promoted.
    Errors: ValueError for other shapes and modes.
    """
    a, v = _vectors("convolve", a, v)
    if a.shape[0] < v.shape[0]:
        a, v = v, a
    return _convolved("convolve", a, v, mode)


def correlate(a, v, mode="valid"):
    """Sums of products of `a` and `v` moved along it: `convolve` with `v` backwards.

    dtypes: integers give float32.
    Errors: TypeError unless both are Tensors, ValueError for other shapes and modes.
    """
    only_tensor("correlate", a, "a"), only_tensor("correlate", v, "v")
    a, v = (as_float(x) for x in _vectors("correlate", a, v))
    if a.shape[0] < v.shape[0] and mode in ("same", "valid"):
        return ops.flip(_convolved("correlate", v, ops.flip(a, (0,)), mode), (0,))
    return _convolved("correlate", a, ops.flip(v, (0,)), mode)


# ----------------------------------------------------------------------------------------------- polynomials


def _coefficients(name, p):
    x = as_tensor(name, p, "p")
    if x.ndim > 1:
        raise errors.value_error(name, f"coefficients must be a vector, but have shape {x.shape}")
    return ops.reshape(x, (-1,))


def _aligned(name, a1, a2):
    a, b = same_dtype([_coefficients(name, a1), _coefficients(name, a2)], name)
    n = max(a.shape[0], b.shape[0])
    return [x if x.shape[0] == n else ops.cat([ops.zeros((n - x.shape[0],), x.dtype), x], 0) for x in (a, b)]


def polyadd(a1, a2):
    """The sum of two polynomials, highest power first.  Shapes: [n], [m] -> [max(n, m)]."""
    a, b = _aligned("polyadd", a1, a2)
    return a + b


def polysub(a1, a2):
    """The difference of two polynomials, highest power first.  Shapes: [n], [m] -> [max(n, m)]."""
    a, b = _aligned("polysub", a1, a2)
    return a - b


def polymul(a1, a2):
    """The product of two polynomials, highest power first.  Shapes: [n], [m] -> [n + m - 1]."""
    return convolve(_coefficients("polymul", a1), _coefficients("polymul", a2))


def polyval(p, x):
    """The polynomial `p`, highest power first, at the places `x`.  Shapes: as `x`.  dtypes: floating."""
    p, x = same_dtype([_coefficients("polyval", p), as_tensor("polyval", x)], "polyval")
    p, x = as_float(p), as_float(x)
    result = ops.zeros_like(x)
    for i in range(p.shape[0]):
        result = result * x + p[i]
    return result


def polyder(p, m=1):
    """The `m`-th derivative of a polynomial.  Shapes: [n] -> [n - m].  Errors: ValueError for m < 0."""
    if m < 0:
        raise errors.value_error("polyder", f"m cannot be negative, but got {m}")
    p = _coefficients("polyder", p)
    if m >= p.shape[0]:
        return ops.zeros((0,))
    for _ in range(m):
        n = p.shape[0] - 1
        p = p[:n] * ops.arange(n, 0, -1, dtype=p.dtype)
    return p


def polyint(p, m=1, k=None):
    """The `m`-th integral of a polynomial, with the constants `k`: one for all, or m of them; 0 by default.

    Shapes: [n] -> [n + m].  dtypes: integers give float32 for m > 0.
    Errors: ValueError for a negative m or another number of constants.
    """
    if m < 0:
        raise errors.value_error("polyint", f"m cannot be negative, but got {m}")
    p = _coefficients("polyint", p)
    k = ops.reshape(as_tensor("polyint", 0 if k is None else k, "k"), (-1,))
    if k.shape[0] not in (1, m) and m:
        raise errors.value_error("polyint", f"{m} constants are needed, but got {k.shape[0]}")
    for i in range(m):
        p = as_float(p)
        p = p / ops.arange(p.shape[0], 0, -1, dtype=p.dtype)
        own = k[i : i + 1] if k.shape[0] == m else k[:1]
        p = ops.cat([p, to_dtype(own, p.dtype)], 0)
    return p
