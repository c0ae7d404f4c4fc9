"""Higher derivatives along a curve: `jet` and `derivative`.

A curve is a function of one scalar t; its derivatives at t = 0 come from nested jvps.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from mycelia.engine import _C
from mycelia.engine.autodiff.jacobian_products import jvp
from mycelia.engine.base import dtypes, errors

Tensor = _C.Tensor

__all__ = ["derivative", "jet"]

_TAKEN = (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64)


def _floating(where: str, tensor) -> Tensor:
    if not isinstance(tensor, Tensor) or tensor.dtype not in _TAKEN:
        what = tensor.dtype if isinstance(tensor, Tensor) else type(tensor).__name__
        raise errors.type_error(
            where, f"a Tensor of int32, int64, float32 or float64 is needed, but got {what}"
        )
    return tensor if tensor.dtype.is_floating else tensor.astype(dtypes.float32)


def _along(curve: Callable, dtype, order: int) -> list:
    """``[curve(0), curve'(0), ..., curve^(order)(0)]``."""
    from mycelia.engine.ops.arrays.create import ones, zeros

    functions = [curve]
    for _ in range(order):
        functions.append(lambda t, f=functions[-1]: jvp(f, t, ones((), dtype))[1])
    at = zeros((), dtype)
    return [f(at) for f in functions]


def jet(fn: Callable, primals, series):
    """``(fn(*primals), derivatives)`` of `fn` along the curves whose derivatives are `series`.

    `primals`: a Tensor, or a tuple of them; `series`: for each a Tensor [order, ...primal's shape] with the
    first to last derivative of the input. The derivatives of the output come stacked the same way; for
    several outputs there are two lists. int32 and int64 become float32.
    Errors: TypeError for other types, ValueError for shapes or numbers that do not fit.
    """
    from mycelia.engine.ops.arrays.joining import stack
    from mycelia.engine.ops.arrays.shape import expand_dims

    single = isinstance(primals, Tensor) and isinstance(series, Tensor)
    if not single and not (isinstance(primals, tuple) and isinstance(series, tuple)):
        raise errors.type_error("jet", "primals and series must both be a Tensor, or both a tuple")
    points, slopes = ((primals,), (series,)) if single else (primals, series)
    if len(points) != len(slopes):
        raise errors.value_error("jet", f"primals has {len(points)} members, but series has {len(slopes)}")
    for p, s in zip(points, slopes):
        if not isinstance(s, Tensor) or not isinstance(p, Tensor) or p.dtype is not s.dtype:
            raise errors.type_error("jet", "primals and series must be Tensors of one dtype")
    points = [_floating("jet", p) for p in points]
    slopes = [_floating("jet", s) for s in slopes]
    slopes = [expand_dims(s, 0) if s.shape == p.shape else s for p, s in zip(points, slopes)]
    for p, s in zip(points, slopes):
        if s.shape[1:] != p.shape:
            raise errors.value_error(
                "jet",
                f"each member of series must have shape {list(p.shape)}, but they have {list(s.shape[1:])}",
            )
    order = slopes[0].shape[0]

    def curve(t):
        inputs = []
        for p, s in zip(points, slopes):
            x, power = p, t
            for k in range(order):
                x = x + s[k] * (power / math.factorial(k + 1))
                power = power * t
            inputs.append(x)
        return fn(*inputs)

    found = _along(curve, points[0].dtype, order)
    if isinstance(found[0], tuple) and len(found[0]) > 1:
        return list(found[0]), [stack(list(parts)) for parts in zip(*found[1:])]
    if isinstance(found[0], tuple):
        found = [f[0] for f in found]
    return found[0], stack(found[1:])


def derivative(fn: Callable, primals, order: int):
    """``(fn(*primals), n-th derivative)`` with n = `order`, all inputs moving at speed one.

    `primals`: a Tensor, or a tuple of them; int32 and int64 become float32. For several outputs there are
    two lists. Errors: TypeError for another order or dtype, ValueError for an order below 1.
    """
    if isinstance(order, bool) or not isinstance(order, int):
        raise errors.type_error("derivative", f"order must be an int, but got {type(order).__name__}")
    if order < 1:
        raise errors.value_error("derivative", f"order must be at least 1, but got {order}")
    points = [_floating("derivative", p) for p in (primals if isinstance(primals, tuple) else (primals,))]
    found = _along(lambda t: fn(*(p + t for p in points)), points[0].dtype, order)
    if isinstance(found[0], tuple) and len(found[0]) > 1:
        return list(found[0]), list(found[-1])
    if isinstance(found[0], tuple):
        found = [f[0] for f in found]
    return found[0], found[-1]
