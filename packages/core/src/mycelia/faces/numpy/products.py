"""Products of vectors and matrices."""

from __future__ import annotations

from mycelia import ops
from mycelia.engine.base import errors
from mycelia.faces.numpy._arguments import (
    as_tensor,
    axes_of,
    one_axis,
    only_tensor,
    result_dtype,
    same_dtype,
    to_dtype,
)


def _alike(name, a, b):
    """Two Tensors of one dtype; TypeError for others."""
    only_tensor(name, a, "the first"), only_tensor(name, b, "the second")
    if a.dtype is not b.dtype:
        raise errors.type_error(name, f"both must have one dtype, but they have {a.dtype} and {b.dtype}")
    return a, b


def matmul(x1, x2, dtype=None):
    """Matrix product; vectors are rows on the left and columns on the right.

    Shapes: [.., n, k], [.., k, m] -> [.., n, m].  dtypes: both the same.
    Errors: TypeError for different dtypes, ValueError for shapes that do not match.
    """
    x1, x2 = _alike("matmul", x1, x2)
    if x1.ndim == 0 or x2.ndim == 0:
        raise errors.value_error("matmul", "numbers have no matrix product")
    return to_dtype(ops.matmul(x1, x2), result_dtype("matmul", dtype))


def dot(a, b):
    """Sums of products over the last axis of `a` and the last but one of `b`; of numbers the product.

    Shapes: [.., k], [.., k, m] or [k] -> [.., .., m] or [..].  dtypes: both the same.
    Errors: TypeError for different dtypes, ValueError if the lengths differ.
    """
    a, b = _alike("dot", a, b)
    if a.ndim == 0 or b.ndim == 0:
        return ops.mul(a, b)
    axis = -1 if b.ndim == 1 else -2
    if a.shape[-1] != b.shape[axis] or a.size == 0 or b.size == 0:
        raise errors.value_error("dot", f"shapes {a.shape} and {b.shape} do not match")
    if b.ndim == 1:
        return ops.matmul(a, b)
    return _contracted(a, b, (a.ndim - 1,), (b.ndim - 2,))


def inner(a, b):
    """Sums of products over the last axes; of numbers the product.

    Shapes: [n.., k], [m.., k] -> [n.., m..].  dtypes: both the same.
    Errors: TypeError for different dtypes, ValueError if the lengths differ.
    """
    a, b = _alike("inner", a, b)
    if a.ndim == 0 or b.ndim == 0:
        return ops.mul(a, b)
    if a.shape[-1] != b.shape[-1]:
        raise errors.value_error("inner", f"shapes {a.shape} and {b.shape} do not match")
    return _contracted(a, b, (a.ndim - 1,), (b.ndim - 1,))


def outer(a, b):
    """All products of the elements of `a` with those of `b`.

    Shapes: n elements, m elements -> [n, m].  dtypes: both the same.  Errors: TypeError for different dtypes.
    """
    a, b = _alike("outer", a, b)
    return ops.mul(ops.reshape(a, (-1, 1)), ops.reshape(b, (1, -1)))


def kron(a, b):
    """The Kronecker product.  Shapes: sizes multiply axis by axis, from the last.  dtypes: promoted."""
    a, b = same_dtype([as_tensor("kron", a, "a"), as_tensor("kron", b, "b")], "kron")
    return ops.kron(a, b)


def _contracted(a, b, axes_a, axes_b):
    rest_a = [i for i in range(a.ndim) if i not in axes_a]
    rest_b = [i for i in range(b.ndim) if i not in axes_b]
    size = 1
    for axis in axes_a:
        size *= a.shape[axis]
    left = ops.reshape(ops.transpose(a, (*rest_a, *axes_a)), (-1, size)) if size else a
    right = ops.reshape(ops.transpose(b, (*axes_b, *rest_b)), (size, -1)) if size else b
    shape = tuple(a.shape[i] for i in rest_a) + tuple(b.shape[i] for i in rest_b)
    return ops.reshape(ops.matmul(left, right), shape) if size else ops.zeros(shape, a.dtype)


def tensordot(a, b, axes=2):
    """Sums of products over `axes`: a number (the last of `a`, the first of `b`), or a pair of axes.

    Shapes: what is left of `a`, then what is left of `b`.  dtypes: both the same.
    Errors: TypeError for different dtypes, ValueError if sizes differ.
    """
    a, b = _alike("tensordot", a, b)
    if isinstance(axes, int):
        axes_a, axes_b = tuple(range(a.ndim - axes, a.ndim)), tuple(range(axes))
    else:
        axes_a, axes_b = (axes_of("tensordot", one, x.ndim) for one, x in zip(axes, (a, b)))
    if [a.shape[i] for i in axes_a] != [b.shape[i] for i in axes_b]:
        raise errors.value_error("tensordot", f"axes {axes} of shapes {a.shape} and {b.shape} do not match")
    return _contracted(a, b, axes_a, axes_b)


def matrix_power(a, n):
    """`n`-th power of square matrices.

    Shapes: [.., m, m] -> same.  dtypes: number.  Errors: ValueError for other shapes and a negative n.
    """
    a = as_tensor("matrix_power", a, "a")
    if isinstance(n, bool) or not isinstance(n, int):
        raise errors.type_error("matrix_power", f"n must be an int, but got {n!r}")
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise errors.value_error("matrix_power", f"a must hold square matrices, but has shape {a.shape}")
    if n < 0:
        raise errors.value_error("matrix_power", f"n cannot be negative, but got {n}")
    result = None
    square = a
    while n:
        if n & 1:
            result = square if result is None else ops.matmul(result, square)
        n >>= 1
        square = ops.matmul(square, square) if n else square
    if result is None:
        return ops.broadcast_to(ops.eye(a.shape[-1], a.shape[-1], a.dtype), a.shape)
    return result


def multi_dot(arrays):
    """The product of all matrices, in the order that costs least; the ends may be vectors.

    Shapes: [n, k], [k, m], .., [l, p] -> [n, p].  dtypes: promoted.
    Errors: TypeError for another container, ValueError for less than two, or shapes that do not match.
    """
    if not isinstance(arrays, (tuple, list)):
        raise errors.type_error(
            "multi_dot", f"arrays must be a tuple or list, but got {type(arrays).__name__}"
        )
    if len(arrays) < 2:
        raise errors.value_error("multi_dot", "at least two matrices are needed")
    matrices = same_dtype([as_tensor("multi_dot", x) for x in arrays], "multi_dot")
    first, last = matrices[0].ndim == 1, matrices[-1].ndim == 1
    if first:
        matrices[0] = ops.expand_dims(matrices[0], 0)
    if last:
        matrices[-1] = ops.expand_dims(matrices[-1], 1)
    for left, right in zip(matrices, matrices[1:]):
        if left.ndim != 2 or right.ndim != 2 or left.shape[1] != right.shape[0]:
            raise errors.value_error("multi_dot", f"shapes {left.shape} and {right.shape} do not match")
    result = _chained(matrices, _cheapest([m.shape[0] for m in matrices] + [matrices[-1].shape[1]]))
    kept = tuple(n for n, dropped in zip(result.shape, (first, last)) if not dropped)
    return ops.reshape(result, kept) if first or last else result


def _cheapest(sizes):
    """Where to part each run of matrices so that the least is multiplied."""
    n = len(sizes) - 1
    cost, part = {(i, i): 0 for i in range(n)}, {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            options = [
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            ]
            cost[i, j], part[i, j] = min(options)
    return part


def _chained(matrices, part, i=0, j=None):
    j = len(matrices) - 1 if j is None else j
    if i == j:
        return matrices[i]
    k = part[i, j]
    return ops.matmul(_chained(matrices, part, i, k), _chained(matrices, part, k + 1, j))


def cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    """Vector products along one axis of 2 or 3; a missing third component is 0.

    Shapes: broadcast; two vectors of 2 give numbers.  dtypes: promoted.
    Errors: ValueError for other sizes.
    """
    a, b = same_dtype([as_tensor("cross", a, "a"), as_tensor("cross", b, "b")], "cross")
    if axis is not None:
        axisa = axisb = axisc = axis
    a = ops.moveaxis(a, one_axis("cross", axisa, a.ndim), -1)
    b = ops.moveaxis(b, one_axis("cross", axisb, b.ndim), -1)
    sizes = a.shape[-1], b.shape[-1]
    if not set(sizes) <= {2, 3}:
        raise errors.value_error("cross", f"vectors must have 2 or 3 components, but they have {sizes}")
    x, y = ([v[..., i] for i in range(v.shape[-1])] for v in (a, b))
    z = x[0] * y[1] - x[1] * y[0]
    if sizes == (2, 2):
        return z
    x = x if len(x) == 3 else [*x, ops.zeros_like(x[0])]
    y = y if len(y) == 3 else [*y, ops.zeros_like(y[0])]
    parts = (x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], z)
    result = ops.stack(parts, -1)
    return ops.moveaxis(result, -1, one_axis("cross", axisc, result.ndim))
