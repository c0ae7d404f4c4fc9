"""ATen ops on elements, and reductions."""

from __future__ import annotations

from typing import Any

import mycelia as ms
from mycelia import ops
from mycelia_lite.converter.importers.torch.calls import as_tensor, aten, cast, in_dtype, shape_of

_PLAIN = {
    "abs": ops.abs, "neg": ops.neg, "exp": ops.exp, "log": ops.log, "log1p": ops.log1p, "sqrt": ops.sqrt,
    "rsqrt": ops.rsqrt, "sin": ops.sin, "cos": ops.cos, "tan": ops.tan, "asin": ops.asin, "acos": ops.acos,
    "atan": ops.atan, "sinh": ops.sinh, "cosh": ops.cosh, "asinh": ops.asinh, "acosh": ops.acosh,
    "atanh": ops.atanh, "tanh": ops.tanh, "sigmoid": ops.sigmoid, "erf": ops.erf, "floor": ops.floor,
    "ceil": ops.ceil, "trunc": ops.trunc, "reciprocal": ops.reciprocal, "expm1": ops.expm1, "relu": ops.relu,
    "sign": ops.sign, "square": ops.square,
}  # fmt: skip


def _enter_plain(name: str, op: Any) -> None:
    aten(name)(lambda call, x: op(cast(x, call.dtype)))


for _name, _op in _PLAIN.items():
    _enter_plain(_name, _op)


@aten("round")
def _round(call, x):
    return ops.round(x)


@aten("add.Tensor", "add.Scalar")
def _add(call, a, b, alpha=1):
    a, b = in_dtype(call, a, b)
    return ops.add(a, b if alpha == 1 else ops.mul(b, as_tensor(alpha, call.dtype)))


@aten("sub.Tensor", "sub.Scalar")
def _sub(call, a, b, alpha=1):
    a, b = in_dtype(call, a, b)
    return ops.sub(a, b if alpha == 1 else ops.mul(b, as_tensor(alpha, call.dtype)))


@aten("rsub.Scalar", "rsub.Tensor")
def _rsub(call, a, b, alpha=1):
    return _sub(call, b, a, alpha)


@aten("mul.Tensor", "mul.Scalar")
def _mul(call, a, b):
    return ops.mul(*in_dtype(call, a, b))


@aten("div.Tensor", "div.Scalar")
def _div(call, a, b):
    return ops.div(*in_dtype(call, a, b))


@aten("div.Tensor_mode", "div.Scalar_mode")
def _div_mode(call, a, b, rounding_mode=None):
    call.need("rounding_mode", rounding_mode, None, "floor", "trunc")
    a, b = in_dtype(call, a, b)
    if rounding_mode == "floor":
        return ops.floor_div(a, b)
    quotient = ops.div(a, b)
    return quotient if rounding_mode is None else cast(ops.trunc(quotient), call.dtype)


@aten("floor_divide")
def _floor_divide(call, a, b):
    return ops.floor_div(*in_dtype(call, a, b))


@aten("remainder.Tensor", "remainder.Scalar")
def _remainder(call, a, b):
    return ops.floor_mod(*in_dtype(call, a, b))


@aten("fmod.Tensor", "fmod.Scalar")
def _fmod(call, a, b):
    return ops.fmod(*in_dtype(call, a, b))


@aten("pow.Tensor_Scalar", "pow.Tensor_Tensor", "pow.Scalar")
def _pow(call, a, b):
    if b == 2 and not isinstance(b, ms.Tensor):
        (a,) = in_dtype(call, a)
        return ops.mul(a, a)
    return ops.pow(*in_dtype(call, a, b))


@aten("log2")
def _log2(call, x):
    return ops.div(ops.log(cast(x, call.dtype)), as_tensor(0.6931471805599453, call.dtype))


@aten("log10")
def _log10(call, x):
    return ops.div(ops.log(cast(x, call.dtype)), as_tensor(2.302585092994046, call.dtype))


@aten("maximum")
def _maximum(call, a, b):
    return ops.maximum(a, b)


@aten("minimum")
def _minimum(call, a, b):
    return ops.minimum(a, b)


@aten("clamp", "clamp.Tensor")
def _clamp(call, x, min=None, max=None):
    (x,) = in_dtype(call, x)
    x = x if min is None else ops.maximum(x, *in_dtype(call, min))
    return x if max is None else ops.minimum(x, *in_dtype(call, max))


@aten("where.self")
def _where(call, condition, a, b):
    return ops.where(condition, *in_dtype(call, a, b))


@aten("masked_fill.Scalar", "masked_fill.Tensor")
def _masked_fill(call, x, mask, value):
    return ops.where(mask, *in_dtype(call, value, x))


def _enter_comparison(name: str, op: Any) -> None:
    @aten(f"{name}.Tensor", f"{name}.Scalar")
    def compare(call, a, b):
        if isinstance(b, ms.Tensor):
            common = (
                a.dtype if a.dtype == b.dtype else ms.float32 if ms.float32 in (a.dtype, b.dtype) else None
            )
            if common is None:
                raise call.fail(f"it compares {a.dtype} with {b.dtype}")
            return op(cast(a, common), cast(b, common))
        if isinstance(b, float) and not a.dtype.is_floating_point:
            a = cast(a, ms.float32)
        return op(a, as_tensor(b, a.dtype))


for _name, _op in {
    "eq": ops.equal, "ne": ops.not_equal, "lt": ops.less, "le": ops.less_equal, "gt": ops.greater,
    "ge": ops.greater_equal,
}.items():  # fmt: skip
    _enter_comparison(_name, _op)


def _enter_logical(name: str, op: Any) -> None:
    aten(f"logical_{name}")(lambda call, *xs: op(*(cast(x, ms.bool_) for x in xs)))
    aten(f"bitwise_{name}" if name == "not" else f"bitwise_{name}.Tensor")(
        lambda call, *xs: op(*_booleans(call, xs))
    )


def _booleans(call, values):
    for x in values:
        if x.dtype != ms.bool_:
            raise call.fail(f"it is imported for bool alone, but the input is {x.dtype}")
    return values


for _name, _op in {
    "and": ops.logical_and, "or": ops.logical_or, "xor": ops.logical_xor, "not": ops.logical_not,
}.items():  # fmt: skip
    _enter_logical(_name, _op)


def _enter_logical_scalar(name: str, op: Any) -> None:
    aten(f"bitwise_{name}.Scalar")(
        lambda call, x, value: op(*_booleans(call, [x, as_tensor(value, ms.bool_)]))
    )


for _name, _op in {"and": ops.logical_and, "or": ops.logical_or, "xor": ops.logical_xor}.items():
    _enter_logical_scalar(_name, _op)


@aten("isnan")
def _isnan(call, x):
    return ops.not_equal(x, x)


@aten("isinf")
def _isinf(call, x):
    x = cast(x, x.dtype if x.dtype.is_floating else ms.float32)
    return ops.equal(ops.abs(x), as_tensor(float("inf"), x.dtype))


@aten("atan2")
def _atan2(call, x, y):
    return ops.atan2(*in_dtype(call, x, y))


@aten("gelu")
def _gelu(call, x, approximate="none"):
    return ops.gelu(x, approximate)


@aten("leaky_relu")
def _leaky_relu(call, x, negative_slope=0.01):
    return ops.leaky_relu(x, negative_slope)


@aten("elu")
def _elu(call, x, alpha=1.0, scale=1.0, input_scale=1.0):
    call.need("scale", scale, 1, 1.0)
    call.need("input_scale", input_scale, 1, 1.0)
    return ops.elu(x, float(alpha))


@aten("hardtanh")
def _hardtanh(call, x, min_val=-1.0, max_val=1.0):
    return _clamp(call, x, min_val, max_val)


@aten("_softmax", "_safe_softmax")
def _softmax(call, x, dim, half_to_float=False):
    return ops.softmax(cast(x, call.dtype), dim)


@aten("_log_softmax")
def _log_softmax(call, x, dim, half_to_float=False):
    return ops.log_softmax(cast(x, call.dtype), dim)


# ---- reductions


def _axes(x: Any, dim: Any) -> tuple[int, ...]:
    rank = len(shape_of(x))
    if dim is None or dim == []:
        return tuple(range(rank))
    return tuple(d % rank for d in (dim if isinstance(dim, list) else [dim])) if rank else ()


@aten("sum.dim_IntList", "sum")
def _sum(call, x, dim=None, keepdim=False, dtype=None):
    x = cast(x, call.dtype)
    return ops.sum(x, _axes(x, dim), keepdim) if _axes(x, dim) else x


@aten("mean.dim", "mean")
def _mean(call, x, dim=None, keepdim=False, dtype=None):
    x = cast(x, call.dtype)
    return ops.mean(x, _axes(x, dim), keepdim) if _axes(x, dim) else x


@aten("amax")
def _amax(call, x, dim=(), keepdim=False):
    return ops.amax(x, _axes(x, list(dim)), keepdim)


@aten("amin")
def _amin(call, x, dim=(), keepdim=False):
    return ops.amin(x, _axes(x, list(dim)), keepdim)


@aten("prod.dim_int", "prod")
def _prod(call, x, dim=None, keepdim=False, dtype=None):
    x = cast(x, call.dtype)
    return ops.prod(x, _axes(x, dim), keepdim)


@aten("any.dim", "any.dims", "any")
def _any(call, x, dim=None, keepdim=False):
    return ops.any(cast(x, ms.bool_), _axes(x, dim), keepdim)


@aten("all.dim", "all")
def _all(call, x, dim=None, keepdim=False):
    return ops.all(cast(x, ms.bool_), _axes(x, dim), keepdim)


@aten("var.dim")
def _var_dim(call, x, dim, unbiased=True, keepdim=False):
    return _var(call, x, dim, int(unbiased), keepdim)


@aten("var.correction")
def _var(call, x, dim=None, correction=1, keepdim=False):
    axes = _axes(x, dim)
    sizes = [shape_of(x)[a] for a in axes]
    if not all(type(n) is int for n in sizes):
        raise call.fail("a size along which it reduces is open, but must be known")
    count = 1
    for n in sizes:
        count *= n
    centred = ops.sub(x, ops.mean(x, axes, True))
    correction = 1 if correction is None else correction
    return ops.div(
        ops.sum(ops.mul(centred, centred), axes, keepdim), as_tensor(float(count - correction), x.dtype)
    )


def _place(call, op, x, dim, keepdim):
    if dim is None:
        x, dim = ops.reshape(x, (-1,)), 0
        if keepdim:
            raise call.fail("argument 'keepdim' is True without 'dim'")
    return cast(op(x, dim, keepdim), ms.int64)


@aten("argmax")
def _argmax(call, x, dim=None, keepdim=False):
    return _place(call, ops.argmax, x, dim, keepdim)


@aten("argmin")
def _argmin(call, x, dim=None, keepdim=False):
    return _place(call, lambda x, d, k: ops.argmin(x, d, k), x, dim, keepdim)


@aten("max.dim")
def _max_dim(call, x, dim, keepdim=False):
    return [ops.amax(x, _axes(x, dim), keepdim), _place(call, ops.argmax, x, dim, keepdim)]


@aten("min.dim")
def _min_dim(call, x, dim, keepdim=False):
    return [ops.amin(x, _axes(x, dim), keepdim), _argmin(call, x, dim, keepdim)]


@aten("linalg_vector_norm")
def _vector_norm(call, x, ord=2, dim=None, keepdim=False, dtype=None):
    call.need("ord", ord, 1, 2, float("inf"))
    x = ops.abs(cast(x, call.dtype))
    axes = _axes(x, dim)
    if ord == 2:
        return ops.sqrt(ops.sum(ops.mul(x, x), axes, keepdim))
    return ops.sum(x, axes, keepdim) if ord == 1 else ops.amax(x, axes, keepdim)


@aten("cumsum")
def _cumsum(call, x, dim, dtype=None):
    return ops.cumsum(cast(x, call.dtype), dim % max(1, len(shape_of(x))))


@aten("topk")
def _topk(call, x, k, dim=-1, largest=True, sorted=True):
    values, places = ops.topk(x, k, dim, largest, sorted)
    return [values, cast(places, ms.int64)]
