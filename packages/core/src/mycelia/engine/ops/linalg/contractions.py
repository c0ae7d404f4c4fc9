"""Products along chosen axes, outer products, traces."""

from mycelia.engine.base import errors
from mycelia.engine.ops.arrays import axes as _axes
from mycelia.engine.ops.arrays import shape as _shape
from mycelia.engine.ops.elementwise import math as _math
from mycelia.engine.ops.elementwise.cast import cast
from mycelia.engine.ops.late import ops
from mycelia.engine.ops.linalg.products import _count, _ranks, batch_matmul, mat_mul
from mycelia.engine.ops.reductions import reduce as _reduce
from mycelia.engine.tensors.attach import attach


def outer(input, vec2):
    """All products of an element of `input` with one of `vec2`, flattened. Shapes: [m], [n] -> [m, n]."""
    return _math.mul(_shape.reshape(input, (-1, 1)), _shape.reshape(vec2, (1, -1)))


def ger(input, vec2):
    """All products of an element of `input` with one of `vec2`. Shapes: [m], [n] -> [m, n]."""
    _ranks("ger", 1, input=input, vec2=vec2)
    return outer(input, vec2)


def inner(input, other):
    """Sum of products over the last axes. Shapes: [A.., k] and [B.., k] -> [A.., B..]; a rank 0 input scales.

    Errors: ValueError if the last sizes differ.
    """
    if input.ndim == 0 or other.ndim == 0:
        return _math.mul(input, other)
    return tensor_dot(input, other, ((-1,), (-1,)))


def dot(input, other):
    """Sum of products over the last axis of `input` and the second to last of `other`.

    Shapes: [A.., k] and [B.., k, n] -> [A.., B.., n].  Errors: ValueError below rank 2 or for other sizes.
    """
    if input.ndim < 2 or other.ndim < 2:
        raise errors.value_error(
            f"For 'dot', both inputs must have at least 2 axes, but got ranks {input.ndim} and {other.ndim}"
        )
    return tensor_dot(input, other, ((-1,), (-2,)))


def vecdot(x, y, *, axis=-1):
    """Sum of products along `axis`, which both inputs share; the other axes broadcast.

    Of complex numbers the first factors are conjugated.
    """
    if x.dtype.is_complex:
        from mycelia.engine.ops.elementwise.complex_numbers import conj

        x = conj(x)
    return _reduce.sum(_math.mul(x, y), axis)


def _joined(x, axes_out, axes_in, in_first):
    """`x` as a matrix [out, in] (or [in, out]) by joining axes; no copy when they lie in order."""
    order = (*axes_in, *axes_out) if in_first else (*axes_out, *axes_in)
    moved = x if order == tuple(range(x.ndim)) else _axes.transpose(x, order)
    out, inside = (_count([x.shape[d] for d in axes]) for axes in (axes_out, axes_in))
    return _shape.reshape(moved, (inside, out) if in_first else (out, inside))


def tensor_dot(x1, x2, axes):
    """Contraction: sum of products over pairs of axes.

    `axes`: n = the last n axes of `x1` with the first n of `x2` in order, or a pair of axis lists.
    Shapes: the axes of `x1` that are left, then those of `x2`.
    Errors: ValueError if paired sizes differ or an axis is out of range.
    """
    if isinstance(axes, int):
        if not 0 <= axes <= min(x1.ndim, x2.ndim):
            raise errors.value_error(
                f"For 'tensor_dot', axes must be in [0, {min(x1.ndim, x2.ndim)}], but got {axes}"
            )
        axes = (tuple(range(x1.ndim - axes, x1.ndim)), tuple(range(axes)))
    first, second = ((a,) if isinstance(a, int) else tuple(a) for a in axes)
    first, second = (_shape.positive_axes(a, t.ndim, "axes") for a, t in ((first, x1), (second, x2)))
    sizes = [x1.shape[d] for d in first], [x2.shape[d] for d in second]
    if sizes[0] != sizes[1]:
        raise errors.value_error(
            f"For 'tensor_dot', paired axes must have equal sizes, but axes {first} of {tuple(x1.shape)} "
            f"and {second} of {tuple(x2.shape)} do not"
        )
    left = tuple(d for d in range(x1.ndim) if d not in first)
    right = tuple(d for d in range(x2.ndim) if d not in second)
    shape = (*(x1.shape[d] for d in left), *(x2.shape[d] for d in right))
    if not first:
        ones = (*x1.shape, *([1] * x2.ndim))
        return _math.mul(_shape.reshape(x1, ones), x2)
    # On whichever side the contracted axes lie: mat_mul transposes for free.
    turn_left = bool(left) and first[0] < left[0]
    turn_right = bool(right) and right[0] < second[0]
    product = mat_mul(
        _joined(x1, left, first, turn_left), _joined(x2, right, second, not turn_right), turn_left, turn_right
    )
    return _shape.reshape(product, shape)


def batch_dot(x1, x2, axes=None):
    """Contraction of one axis of each input, for every entry of the shared first axis.

    `axes`: an int or a pair; default: the last axis of `x1`, the second to last of `x2` (rank 2: the last).
    Shapes: [b, A.., k], [b, B.., k, n] -> [b, A.., B.., n]; a result of rank 1 gets a last axis of size 1.
    Errors: ValueError below rank 2, for axis 0, or if sizes differ.
    """
    if x1.ndim < 2 or x2.ndim < 2:
        raise errors.value_error(
            f"For 'batch_dot', both inputs must have at least 2 axes, but got ranks {x1.ndim} and {x2.ndim}"
        )
    if axes is None:
        axes = (x1.ndim - 1, max(x2.ndim - 2, 1))
    elif isinstance(axes, int):
        axes = (axes, axes)
    a, b = _shape.positive_axis(axes[0], x1.ndim, "axes"), _shape.positive_axis(axes[1], x2.ndim, "axes")
    if a == 0 or b == 0:
        raise errors.value_error(
            f"For 'batch_dot', axis 0 is the batch and cannot be contracted, but axes is {tuple(axes)}"
        )
    if x1.shape[0] != x2.shape[0] or x1.shape[a] != x2.shape[b]:
        raise errors.value_error(
            f"For 'batch_dot', axis 0 and the contracted axes must agree, but shapes are "
            f"{tuple(x1.shape)} and {tuple(x2.shape)}, axes {(a, b)}"
        )
    left = [d for d in range(1, x1.ndim) if d != a]
    right = [d for d in range(1, x2.ndim) if d != b]
    batch, k = x1.shape[0], x1.shape[a]
    m, n = (_count([t.shape[d] for d in rest]) for t, rest in ((x1, left), (x2, right)))
    lhs = _shape.reshape(_axes.transpose(x1, (0, *left, a)), (batch, m, k))
    rhs = _shape.reshape(_axes.transpose(x2, (0, b, *right)), (batch, k, n))
    shape = (batch, *(x1.shape[d] for d in left), *(x2.shape[d] for d in right))
    return _shape.reshape(batch_matmul(lhs, rhs), shape if len(shape) > 1 else (batch, 1))


def kron(input, other):
    """Kronecker product: blocks ``input[i, j] * other``; the shorter shape is padded with ones in front.

    Shapes: [a, b] and [c, d] -> [a * c, b * d].
    """
    rank = max(input.ndim, other.ndim)
    a = (*([1] * (rank - input.ndim)), *input.shape)
    b = (*([1] * (rank - other.ndim)), *other.shape)
    spread = _shape.reshape(input, tuple(n for size in a for n in (size, 1)))
    tiles = _shape.reshape(other, tuple(n for size in b for n in (1, size)))
    return _shape.reshape(_math.mul(spread, tiles), tuple(m * n for m, n in zip(a, b)))


def trace(input):
    """Sum of the main diagonal of a matrix, in its dtype. Shapes: [m, n] -> [].

    Errors: ValueError for other ranks.
    """
    from mycelia.engine.ops.arrays.triangles import diagonal

    _ranks("trace", 2, input=input)
    return _reduce.sum(diagonal(input), dtype=input.dtype)


def cross(input, other, dim=None):
    """Cross product of vectors of 3 along `dim`; the default is the first axis of size 3.

    Shapes: broadcast.  dtypes: real; `other` is brought to that of `input`.  Errors: ValueError if the axis
    does not have size 3.
    """
    if dim is None:
        if 3 not in input.shape:
            raise errors.value_error(f"For 'cross', no axis has size 3 in shape {tuple(input.shape)}")
        dim = input.shape.index(3)
    axis = _shape.positive_axis(dim, input.ndim, "dim")
    if input.shape[axis] != 3 or other.shape[axis - input.ndim] != 3:
        raise errors.value_error(f"For 'cross', axis {dim} must have size 3, "
                                 f"but shapes are {tuple(input.shape)} and "
                         f"{tuple(other.shape)}")  # fmt: skip
    other = other if other.dtype is input.dtype else cast(other, input.dtype)
    places = axis - input.ndim
    a1, b1 = _axes.roll(input, -1, places), _axes.roll(other, -1, places)
    a2, b2 = _axes.roll(input, -2, places), _axes.roll(other, -2, places)
    return _math.sub(_math.mul(a1, b2), _math.mul(a2, b1))


def adjoint(x):
    """The last two axes swapped; complex numbers conjugated too. Shapes: [.., m, n] -> [.., n, m]."""
    swapped = _axes.swapaxes(x, -1, -2)
    if x.dtype.is_complex:
        return ops.conj(swapped)
    return swapped


def _trace_method(self, offset=0, axis1=0, axis2=1, dtype=None):
    """Sum of a diagonal of the planes spanned by two axes."""
    from mycelia.engine.ops.arrays.triangles import diagonal

    return _reduce.sum(diagonal(self, offset, axis1, axis2), -1, False, dtype)


attach("trace", _trace_method)


__all__ = [
    "adjoint", "batch_dot", "cross", "dot", "ger", "inner", "kron", "outer", "tensor_dot", "trace",
    "vecdot",
]  # fmt: skip
