"""Cosine transforms of the second kind, orthonormal, and their inverses."""

from __future__ import annotations

import operator

from mycelia import ops
from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.linalg.factors import cosine_transform
from mycelia.engine.ops.signal.fourier import _sized
from mycelia.engine.tensors.tensor import Tensor

__all__ = ["dct", "dctn", "idct", "idctn"]

_KEPT = (dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128)
_WIDENED = (dtypes.int16, dtypes.int32, dtypes.int64, dtypes.float16)


def _number(value):
    """`value`, as a Python number where it is one of a graph."""
    return operator.index(value) if isinstance(value, Tensor) else value


def _checked(owner, x, kind, norm):
    if not isinstance(x, Tensor):
        raise errors.type_error(owner, f"x must be a Tensor, but got {type(x).__name__}")
    if x.dtype not in _KEPT + _WIDENED:
        raise errors.type_error(owner, f"x must be real, complex64 or complex128, but is {x.dtype}")
    if _number(kind) != 2:
        raise errors.value_error(owner, f"only type 2 is there, but got {kind!r}")
    if norm not in (None, "ortho"):
        raise errors.value_error(owner, f"norm must be None or 'ortho', but got {norm!r}")
    return x if x.dtype in _KEPT else ops.cast(x, dtypes.float32)


def _along(owner, x, axes, sizes, inverse):
    if len(axes) != len(sizes):
        raise errors.value_error(owner, f"axes and s differ in length: {axes} and {sizes}")
    axes, sizes = [_number(axis) for axis in axes], [_number(size) for size in sizes]
    for axis, size in zip(axes, sizes):
        if not isinstance(axis, int) or size is not None and not isinstance(size, int):
            raise errors.type_error(owner, f"axes and sizes must be ints, but got {axis!r} and {size!r}")
        if not -x.ndim <= axis < x.ndim:
            raise errors.value_error(owner, f"axis {axis} is outside of [-{x.ndim}, {x.ndim})")
        if size is not None and size < 1:
            raise errors.value_error(owner, f"a size must be positive, but got {size}")
    places = [axis % x.ndim for axis in axes]
    if len(set(places)) != len(places):
        raise errors.value_error(owner, f"an axis is named twice: {axes}")
    for axis, size in zip(places, sizes):
        x = cosine_transform(x if size is None else _sized(x, size, axis), axis, inverse)
    return x


def dct(x, type=2, n=None, axis=-1, norm=None):
    """Cosine transform along one axis, first cut or filled with zeros to `n`.

    Shapes: any -> same, `n` along `axis`.  dtypes: integers and float16 give float32, others stay.
    Errors: ValueError for another type than 2 or norm than "ortho" (None means it), for `axis` and `n`.
    """
    return _along("dct", _checked("dct", x, type, norm), (axis,), (n,), False)


def idct(x, type=2, n=None, axis=-1, norm=None):
    """Inverse of `dct`, with the same arguments."""
    return _along("idct", _checked("idct", x, type, norm), (axis,), (n,), True)


def _all_axes(x, s, axes):
    if axes is None:
        axes = range(x.ndim) if s is None else range(x.ndim - len(s), x.ndim)
    axes = tuple(axes)
    return axes, tuple(s) if s is not None else (None,) * len(axes)


def dctn(x, type=2, s=None, axes=None, norm=None):
    """Cosine transform along several axes: all, or the last ones if `s` gives fewer sizes.

    Shapes: any -> same, `s` along `axes`.  dtypes and errors as of `dct`.
    """
    x = _checked("dctn", x, type, norm)
    return _along("dctn", x, *_all_axes(x, s, axes), False)


def idctn(x, type=2, s=None, axes=None, norm=None):
    """Inverse of `dctn`, with the same arguments."""
    x = _checked("idctn", x, type, norm)
    return _along("idctn", x, *_all_axes(x, s, axes), True)
