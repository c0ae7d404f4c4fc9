"""Tensor methods of the elementwise and reducing families, where their signature differs from the op's.

MindSpore has two generations of reduction methods, (axis, keep_dims or keepdims) and (dim, keepdim).
"""

import numpy as np

from mycelia.engine import _C
from mycelia.engine.backends import registry
from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.control_flow.device import on_device
from mycelia.engine.ops.elementwise import (
    bitwise,
    clipping,
    combined,
    comparison,
    gamma,
    logarithms,
    math,
    powers,
    rounding,
    special,
    trig,
)
from mycelia.engine.ops.elementwise.cast import cast, type_as
from mycelia.engine.ops.reductions import extreme_values, extremes, moments, reduce, scan, statistics, truth
from mycelia.engine.tensors.attach import attach

# ------------------------------------------------------------------------------------------------- casts

_PYTHON_NAMES = {"float": dtypes.float64, "int": dtypes.int64}  # what NumPy makes of these texts


def _astype(self, dtype, copy=True):
    """This Tensor with elements of `dtype`: a mycelia or NumPy dtype, a Python type, or a name."""
    dtype = (
        _PYTHON_NAMES.get(dtype)
        if isinstance(dtype, str) and dtype in _PYTHON_NAMES
        else dtypes.as_dtype(dtype)
    )
    return self if dtype is self.dtype and not copy else cast(self, dtype)


def _to(self, *args, device=None, dtype=None, other=None, non_blocking=False, copy=False):
    """``to(dtype)``, ``to(device, dtype=None)`` or ``to(other)``: this Tensor in another dtype, on another
    device, or as `other` is.

    Then `non_blocking` and `copy` may follow; without `copy` it is itself if nothing changes.
    Errors: RuntimeError for a device that no backend serves.
    """
    rest = list(args)
    if rest and isinstance(rest[0], str):
        device = rest.pop(0)
    if rest and isinstance(rest[0], _C.Tensor):
        other = rest.pop(0)
    elif rest:
        dtype = rest.pop(0)
    non_blocking, copy, *_ = (*rest, *(non_blocking, copy)[len(rest) :])
    if other is not None and other._device:
        device = registry.device_name(other._device)
    dtype = other.dtype if other is not None else self.dtype if dtype is None else dtypes.as_dtype(dtype)
    result = self if dtype is self.dtype else cast(self, dtype)
    if device is not None and (copy or not _lies_on(result, device)):
        return on_device("Tensor.to", result, device)
    return self.copy() if copy and result is self else result


def _lies_on(tensor, device: str) -> bool:
    return registry.device_name(tensor._device).partition(":")[0].lower() == device.partition(":")[0].lower()


def _type(self, dtype=None):
    """The name of the dtype, or this Tensor in another dtype."""
    return str(self.dtype) if dtype is None else cast(self, dtype)


def _cast_to(dtype):
    def method(self):
        return self if self.dtype is dtype else cast(self, dtype)

    method.__doc__ = f"This Tensor with elements of {dtype.name}."
    return method


# ------------------------------------------------------------------------------------------- reductions


def _sum(self, axis=None, dtype=None, keepdims=False, initial=None, *, dim=None, keepdim=False):
    """Sum over `axis` (or `dim`), in `dtype`, plus `initial`."""
    if isinstance(dtype, bool):  # sum(dim, keepdim)
        dtype, keepdims = None, dtype
    total = reduce.sum(self, axis if dim is None else dim, keepdims or keepdim, dtype)
    return total if initial is None else math.add(total, initial)


def _mean(self, axis=None, keep_dims=False, *, dim=None, keepdim=False, dtype=None):
    """Mean over `axis` (or `dim`), of the elements as `dtype`."""
    x = self if dtype is None else cast(self, dtype)
    return reduce.mean(x, axis if dim is None else dim, keep_dims or keepdim)


def _prod(self, axis=None, keep_dims=False, dtype=None, *, dim=None, keepdim=False):
    """Product over `axis` (or `dim`), in `dtype`."""
    return reduce.prod(self, axis if dim is None else dim, keep_dims or keepdim, dtype)


def _all(self, axis=None, keep_dims=False, *, dim=None, keepdim=False):
    """Whether all elements over `axis` (or `dim`) are true."""
    return truth.all(self, axis if dim is None else dim, keep_dims or keepdim)


def _any(self, axis=None, keep_dims=False, *, dim=None, keepdim=False):
    """Whether some element over `axis` (or `dim`) is true."""
    return truth.any(self, axis if dim is None else dim, keep_dims or keepdim)


_PLACED = {"dim", "keepdim"}
_NAMED = {*_PLACED, "axis", "keepdims", "initial", "where", "return_indices"}


def _check_extreme(name, args, named):
    """TypeError unless an overload of `max` and `min` takes these arguments."""
    unknown = set(named) - _NAMED
    if unknown:
        raise errors.type_error(f"{name}: an unexpected keyword argument '{sorted(unknown)[0]}'")
    if len(args) > 2:
        raise errors.type_error(f"{name}: at most 2 positional arguments, got {len(args)}")
    axes = [*args[:1], *(named[word] for word in ("dim", "axis") if word in named)]
    keeps = [*args[1:], *(named[word] for word in ("keepdim", "keepdims") if word in named)]
    for what, given, refused in (("axis", axes, (bool, float, str)), ("keepdims", keeps, (int, list, tuple))):
        if len(given) > 1:
            raise errors.type_error(f"{name}: '{what}' is given twice, as {given[0]!r} and {given[1]!r}")
        boolean = what == "keepdims" and given and isinstance(given[0], bool)
        if given and not boolean and isinstance(given[0], refused):
            raise errors.type_error(f"{name}: '{what}' must not be of type {type(given[0]).__name__}")
    if keeps == [None] or named.get("dim", 0) is None:
        raise errors.type_error(f"{name}: neither 'dim' nor 'keepdims' may be None")


def _extreme(name, pair, value):
    """Two overloads: ``(dim, keepdim)`` gives values and places, ``(axis, keepdims, *, initial, where,
    return_indices)`` the values unless the places are asked for. An axis by position alone means the first,
    compiled as well, where MindSpore's graphs take it for the second.
    Over all elements the result has no axes, and `initial` takes no part, as in MindSpore.
    """

    def method(self, *args, **named):
        if args or named:
            _check_extreme(name, args, named)
        by_axis = not _PLACED.issuperset(named)
        if args and args[0] is None or not args and "dim" not in named:
            by_axis = True
        first, keep = (*args, *(None, False)[len(args) :])
        keep = named.get("keepdims", named.get("keepdim", keep))
        axis = named.get("dim", named.get("axis", first))
        if named.get("return_indices") or isinstance(axis, int) and not by_axis:
            return pair(self, axis, keep)
        if axis is None and named.get("where", True) is True:
            return value(self)
        return value(self, axis, keep, initial=named.get("initial"), where=named.get("where", True))

    method.__name__ = name
    method.__doc__ = f"The {name}imum of all elements, over `axis`, or with its place along `dim`."
    return method


def _argmax(self, axis=None, keepdims=False, *, dim=None, keepdim=False):
    """Place of the largest element along `axis` (or `dim`), or in the flattened Tensor."""
    return extremes.argmax(self, axis if dim is None else dim, keepdims or keepdim)


def _argmin(self, axis=None, keepdims=False, *, dim=None, keepdim=False):
    """Place of the smallest element along `axis` (or `dim`), or in the flattened Tensor."""
    return extremes.argmin(self, axis if dim is None else dim, keepdims or keepdim)


def _argmax_with_value(self, axis=0, keep_dims=False):
    """Largest element along `axis` and its place."""
    return extremes.max(self, axis, keep_dims)


def _argmin_with_value(self, axis=0, keep_dims=False):
    """Smallest element along `axis` and its place."""
    return extremes.min(self, axis, keep_dims)


def _spread(function):
    def method(self, axis=None, ddof=0, keepdims=False, *, dim=None, correction=None, keepdim=False):
        count = ddof if correction is None else correction
        return function(self, axis if dim is None else dim, count, keepdims or keepdim)

    method.__doc__ = function.__doc__
    return method


def _ptp(self, axis=None, keepdims=False):
    """Range over `axis`: the largest element less the smallest."""
    return math.sub(extreme_values.amax(self, axis, keepdims), extreme_values.amin(self, axis, keepdims))


def _cumsum(self, axis=None, dtype=None, *, dim=None):
    """Running sum along `axis` (or `dim`); of the flattened Tensor if neither is given."""
    axis = axis if dim is None else dim
    return scan.cumsum(self.reshape(-1), 0, dtype) if axis is None else scan.cumsum(self, axis, dtype)


def _count_nonzero(self, axis=(), keep_dims=False, dtype=dtypes.int32, *, dim=None):
    """Number of elements over `axis` (or `dim`) that are not zero."""
    return truth.count_nonzero(self, axis if dim is None else dim, keep_dims, dtype)


def _nansum(self, axis=None, keepdims=False, *, dtype=None, dim=None, keepdim=False):
    """Sum over `axis` (or `dim`) with NaN counted as 0."""
    return moments.nansum(self, axis if dim is None else dim, keepdims or keepdim, dtype=dtype)


# ------------------------------------------------------------------------------------------ elementwise


def _add(self, other, *, alpha=1):
    """``self + alpha * other``; `other` may be a list or tuple of numbers."""
    other = _listed(other)
    return math.add(self, other) if alpha == 1 else math.add(self, math.mul(other, alpha))


def _sub(self, other, *, alpha=1):
    """``self - alpha * other``; `other` may be a list or tuple of numbers."""
    return math.subtract(self, _listed(other), alpha=alpha)


def _listed(other):
    from mycelia.engine.tensors.tensor import Tensor

    return Tensor(other) if isinstance(other, (list, tuple)) else other


def _addcmul(self, tensor1, tensor2, value=1):
    """``self + value * tensor1 * tensor2``."""
    return combined.addcmul(self, tensor1, tensor2, value)


def _round(self, decimals=0):
    """Rounded to `decimals` places; ties go to the even neighbour."""
    return rounding.round(self, decimals=decimals)


def _multiply(self, value):
    """``self * value``."""
    return math.mul(self, value)


def _allclose(self, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether all elements are close: ``|self - other| <= atol + rtol * |other|``; a Python bool."""
    return bool(np.all(comparison.isclose(self, other, rtol, atol, equal_nan).asnumpy()))


def _in_place(function):
    def method(self, *args, **kwargs):
        self.assign_value(cast(function(self, *args, **kwargs), self.dtype))
        return self

    method.__doc__ = (function.__doc__ or "").split("\n")[0] + " Replaces the value of this Tensor."
    method.__wrapped__ = function  # its parameters
    return method


_METHODS = {
    "astype": _astype, "to": _to, "type": _type, "type_as": type_as, "sum": _sum, "mean": _mean,
    "prod": _prod, "all": _all, "any": _any, "max": _extreme("max", extremes.max, extreme_values.amax),
    "min": _extreme("min", extremes.min, extreme_values.amin), "amax": extreme_values.amax,
    "amin": extreme_values.amin, "aminmax": extremes.aminmax, "argmax": _argmax, "argmin": _argmin,
    "argmax_with_value": _argmax_with_value, "argmin_with_value": _argmin_with_value,
    "var": _spread(moments.var), "std": _spread(moments.std), "ptp": _ptp, "norm": moments.norm,
    "renorm": moments.renorm, "cov": moments.cov, "diff": scan.diff, "logsumexp": moments.logsumexp,
    "nansum": _nansum, "nanmean": moments.nanmean, "cumsum": _cumsum, "cumprod": scan.cumprod,
    "cummax": scan.cummax, "cummin": scan.cummin, "logcumsumexp": scan.logcumsumexp,
    "count_nonzero": _count_nonzero, "median": statistics.median, "nanmedian": statistics.nanmedian,
    "quantile": statistics.quantile, "nanquantile": statistics.nanquantile, "bincount": statistics.bincount,
    "histc": statistics.histc, "add": _add, "sub": _sub, "subtract": math.subtract,
    "mul": math.mul, "multiply": _multiply, "div": math.div, "divide": math.div,
    "true_divide": math.true_divide, "floor_divide": rounding.floor_divide, "remainder": rounding.remainder,
    "fmod": rounding.fmod, "float_power": powers.float_power, "lerp": combined.lerp, "addcmul": _addcmul,
    "addcdiv": combined.addcdiv, "ldexp": powers.ldexp, "heaviside": combined.heaviside,
    "fmax": clipping.fmax, "fmin": clipping.fmin, "clamp": clipping.clamp, "clip": clipping.clamp,
    "round": _round, "frac": rounding.frac,
    "sgn": math.sgn, "negative": math.negative, "positive": math.positive, "absolute": math.absolute,
    "inv": math.inv, "deg2rad": trig.deg2rad, "rad2deg": trig.rad2deg, "arcsin": trig.asin,
    "arccos": trig.acos, "arctan": trig.atan, "arctan2": trig.atan2, "arcsinh": trig.asinh,
    "arccosh": trig.acosh, "arctanh": trig.atanh, "logit": special.logit, "mvlgamma": gamma.mvlgamma,
    "equal": comparison.equal, "ne": comparison.not_equal, "lt": comparison.less, "le": comparison.less_equal,
    "gt": comparison.greater, "ge": comparison.greater_equal, "bitwise_not": bitwise.invert,
    "allclose": _allclose,
    "float": _cast_to(dtypes.float32), "half": _cast_to(dtypes.float16), "double": _cast_to(dtypes.float64),
    "bfloat16": _cast_to(dtypes.bfloat16), "int": _cast_to(dtypes.int32), "long": _cast_to(dtypes.int64),
    "short": _cast_to(dtypes.int16), "byte": _cast_to(dtypes.uint8), "bool": _cast_to(dtypes.bool_),
    "add_": _in_place(_add), "sub_": _in_place(_sub), "mul_": _in_place(math.multiply),
    "div_": _in_place(math.div), "floor_divide_": _in_place(rounding.floor_divide),
    "remainder_": _in_place(rounding.remainder), "clamp_": _in_place(clipping.clamp),
    "exp_": _in_place(powers.exp), "log_": _in_place(logarithms.log), "floor_": _in_place(rounding.floor),
    "sign_": _in_place(math.sign), "tanh_": _in_place(math.tanh), "erfinv_": _in_place(special.erfinv),
}  # fmt: skip

for _name, _function in _METHODS.items():
    attach(_name, _function)

__all__ = []
