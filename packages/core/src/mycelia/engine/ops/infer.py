"""Shape rules that many ops share, and `unbroadcast`, their counterpart in gradients."""

from __future__ import annotations

from collections.abc import Callable

from mycelia.engine.base import errors
from mycelia.engine.base.dtypes import DType
from mycelia.engine.ir.symint import SymInt
from mycelia.engine.ir.types import UNKNOWN, TensorType
from mycelia.engine.ops.define import registry


def same(dtype: DType | None = None) -> Callable:
    """The result has the first input's shape and dtype (or `dtype`)."""

    def rule(x, *others, **attrs):
        return x if dtype is None else TensorType(dtype, x.shape)

    return rule


def is_one(n: int) -> bool:
    """Whether a size is 1 whatever the open sizes are: those are compared only where the outcome matters."""
    return type(n) is not SymInt and n == 1


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """NumPy broadcasting of shapes; unknown sizes (-1) stay unknown unless a size above 1 decides.

    Raises ValueError naming the shapes.
    """
    longest = max(shapes, key=len, default=())  # not compared with anything where it stands alone
    rank, result = len(longest), list(longest)
    for shape in shapes:
        if shape is longest:
            continue
        for i, n in enumerate(shape, rank - len(shape)):
            m = result[i]
            if is_one(m):
                result[i] = n
            elif is_one(n) or m == n or n == 1:
                continue
            elif m == 1 or m == UNKNOWN:
                result[i] = n
            elif n != UNKNOWN:
                raise ValueError(
                    f"shapes {' and '.join(str(list(s)) for s in shapes)} cannot be broadcast together"
                )
    return tuple(result)


def broadcast(dtype: DType | None = None) -> Callable:
    """The inputs broadcast together; dtype of the first (or `dtype`)."""

    def rule(*types, **attrs):
        present = [t for t in types if t is not None]
        return TensorType(dtype or present[0].dtype, broadcast_shapes(*(t.shape for t in present)))

    return rule


def need_floating(**tensors: TensorType | None) -> None:
    """Raises TypeError that names the first tensor without a floating dtype."""
    for name, t in tensors.items():
        if t is not None and not t.dtype.is_floating:
            raise errors.dtype_error(
                f"{name} must have a floating dtype, but is {t.dtype.name} of shape {list(t.shape)}"
            )


def normalize_axis(axis: int, rank: int, name: str = "axis") -> int:
    """`axis` as a non-negative int; a 0-d tensor takes 0 and -1 as MindSpore does.

    Raises ValueError when it is outside [-rank, rank).
    """
    bound = max(rank, 1)
    if not -bound <= axis < bound:
        raise ValueError(f"'{name}' must be in the range [{-bound}, {bound}), but got {axis}")
    return axis % bound


def same_along(x, *, axis: int | None = None, axes: tuple[int, ...] = (), **attrs):
    """The result has the first input's type, of which `axis` or all `axes` are axes."""
    for one in axes if axis is None else (axis,):
        normalize_axis(one, x.rank)
    return x


def normalize_axes(axes: tuple[int, ...] | None, rank: int, name: str = "axis") -> tuple[int, ...]:
    """Axes as sorted non-negative ints; None or () means all. Raises ValueError on repeats and bad axes."""
    if axes is None or len(axes) == 0:
        return tuple(range(rank))
    found = tuple(sorted(normalize_axis(a, rank, name) for a in axes))
    if rank == 0:
        return ()
    if len(set(found)) != len(found):
        raise ValueError(f"'{name}' must not name an axis twice, but got {tuple(axes)}")
    return found


def reduced_shape(shape: tuple[int, ...], axes: tuple[int, ...] | None, keepdims: bool) -> tuple[int, ...]:
    """The shape left after reducing `axes`."""
    gone = set(normalize_axes(axes, len(shape)))
    if keepdims:
        return tuple(1 if i in gone else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in gone)


def reduced(dtype: DType | None = None) -> Callable:
    """Reduction over attribute `axis` (tuple, int, None) with `keepdims`; the input's dtype or `dtype`."""

    def rule(x, *others, axis=None, keepdims=False, **attrs):
        axes = (axis,) if isinstance(axis, int) else axis
        return TensorType(dtype or x.dtype, reduced_shape(x.shape, axes, keepdims))

    return rule


def unbroadcast(ct, shape: tuple[int, ...]):
    """Sum the cotangent over the axes that broadcasting had stretched, back to `shape`."""
    if ct.shape == shape:
        return ct
    return registry["sum_to"](ct, shape=shape)
