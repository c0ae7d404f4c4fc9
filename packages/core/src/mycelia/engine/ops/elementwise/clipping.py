"""Elementwise extremes and limits: the larger or smaller operand, clipping, replacing NaN and infinities."""

import math

import numpy as np

from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.define import op
from mycelia.engine.ops.elementwise import comparison as _comparison
from mycelia.engine.ops.elementwise import logic as _logic
from mycelia.engine.ops.elementwise.cast import cast
from mycelia.engine.ops.elementwise.math import SPECIAL, add, div, mul, sub, true_div
from mycelia.engine.ops.infer import broadcast, same, unbroadcast
from mycelia.engine.ops.late import ops


@op(
    elementwise="broadcast",
    infer=broadcast(),
    promote=("input", "other"),
    mindir="Maximum",
    onnx="Max",
    method=True,
    fuse="maximum",
    primitive=True,
    exact=True,
)
def maximum(input, other):
    """Elementwise larger operand; NaN if either is NaN.

    Shapes: broadcast.  dtypes: real, promoted.
    """
    return np.maximum(input, other)


@maximum.vjp
def maximum(ct, input, other, input_shape, other_shape, needs):
    return _extreme_grad(ct, input, other, input_shape, other_shape, needs)


@op(
    elementwise="broadcast",
    infer=broadcast(),
    promote=("input", "other"),
    mindir="Minimum",
    onnx="Min",
    method=True,
    fuse="minimum",
    primitive=True,
    exact=True,
)
def minimum(input, other):
    """Elementwise smaller operand; NaN if either is NaN.

    Shapes: broadcast.  dtypes: real, promoted.
    """
    return np.minimum(input, other)


@minimum.vjp
def minimum(ct, input, other, input_shape, other_shape, needs):
    return _extreme_grad(ct, other, input, input_shape, other_shape, needs)


def _extreme_grad(ct, high, low, input_shape, other_shape, needs):
    """`ct` flows to the larger operand; ties share it by halves, and beside a NaN both have all of it."""

    def part(smaller, larger, shape):
        lost = add(
            cast(_comparison.less(smaller, larger), kind), cast(_comparison.less_equal(smaller, larger), kind)
        )
        if kind.is_floating:
            return unbroadcast(mul(ct, sub(1.0, mul(lost, 0.5))), shape)
        halves = mul(cast(ct, kind), sub(2, lost))
        return unbroadcast(cast(div(halves, 2, rounding_mode="floor"), ct.dtype), shape)

    kind = ct.dtype if ct.dtype.is_floating else dtypes.int64
    return (
        part(high, low, input_shape) if needs[0] else None,
        part(low, high, other_shape) if needs[1] else None,
    )


def _extreme_samples(rand):
    x = rand.distinct(6, 4)
    yield x[:3], x[3:]
    yield x[:3], x[5]
    yield x[0, 0], x[3]
    yield x[:, :1], x[2, 1]
    yield rand(0, 3), rand(3)
    yield rand(1031), rand(1031), dict(_grad=False)
    yield rand.ints(-9, 9, (3, 5)), rand.ints(-9, 9, (5,)), dict(_grad=False)
    yield rand.ints(-9, 9, (2, 1), dtype="int64"), rand.ints(-9, 9, (7,), dtype="int64"), dict(_grad=False)
    yield np.delete(SPECIAL, 4)[:, None], np.delete(SPECIAL, 4), dict(_grad=False)


maximum.samples(_extreme_samples)
minimum.samples(_extreme_samples)


def _ignore_nan(better, input, other):
    best = ops.where(better(input, other), input, other)  # of equals the first, which alone has the gradient
    return ops.where(_logic.isnan(input), other, ops.where(_logic.isnan(other), input, best))


def fmax(input, other):
    """Elementwise larger operand; where one is NaN, the other.

    Shapes: broadcast.  dtypes: real, promoted.
    """
    return _ignore_nan(_comparison.greater_equal, input, other)


def fmin(input, other):
    """Elementwise smaller operand; where one is NaN, the other.

    Shapes: broadcast.  dtypes: real, promoted.
    """
    return _ignore_nan(_comparison.less_equal, input, other)


def _bound(value, dtype):
    """A bound as a number of `dtype`: for integers the nearest that it holds."""
    if dtype.kind not in "iu":
        return dtype.type(value)
    if math.isnan(value):
        raise ValueError("a bound of integers cannot be NaN")
    limits = np.iinfo(dtype)
    if limits.min < value < limits.max:
        return dtype.type(int(value))
    return dtype.type(limits.min if value < 0 else limits.max)


def clip_step(p, x, low, high):
    """The step of a fused program that limits `x` to numbers: its own takes no bound that is NaN."""
    if math.isnan(low) or math.isnan(high):
        return p.step("mul", x, p.constant(math.nan))
    return p.step("clip", x, p.constant(low), p.constant(high))


@op(elementwise="same", name="clip", infer=same())
def _clip(input, *, min: "float?" = None, max: "float?" = None):
    """`input` limited to [min, max] given as numbers; `max` wins where they cross, NaN if one of them is NaN.

    Shapes: any -> same.  dtypes: real.
    """
    y = input if min is None else np.maximum(input, _bound(min, input.dtype))
    return y if max is None else np.minimum(y, _bound(max, y.dtype))


@_clip.vjp
def _clip(ct, input, *, min, max):
    return clip_grad(ct, input, min=min, max=max)


@_clip.samples
def _clip(rand):
    yield rand.distinct(3, 5), dict(min=-0.3, max=0.4)
    yield rand(257, low=-3, high=3), dict(min=-1.03, _grad=False)
    yield rand(4, low=-3, high=3), dict(max=0.77)
    yield rand(4), dict(min=3.0, max=1.0)
    yield rand(35), dict(min=math.nan, _grad=False)
    yield SPECIAL, dict(min=-1.0, max=math.nan, _grad=False)
    yield SPECIAL, dict(min=-1.5, max=1.5, _grad=False)
    yield rand.ints(-9, 9, (7,)), dict(min=-2.0, max=3.0, _grad=False)
    yield rand(0), dict(min=0.0)
    yield rand(low=2, high=3), dict(max=1.0)


@_clip.fuse
def _clip(p, x, *, min, max):
    return clip_step(p, x, -math.inf if min is None else min, math.inf if max is None else max)


@op(elementwise="same", infer=same())
def clip_grad(dy, input, *, min: "float?" = None, max: "float?" = None):
    """Gradient of clip: `dy` where `input` lies in [min, max], else 0.

    Shapes: dy, input equal -> same.  dtypes: floating.
    """
    inside = np.ones(input.shape, bool) if min is None else input >= _bound(min, input.dtype)
    if max is not None:
        inside &= input <= _bound(max, input.dtype)
    return np.where(inside, dy, np.zeros_like(dy))


@clip_grad.vjp
def clip_grad(ct, input, *, min, max):
    return clip_grad(ct, input, min=min, max=max), None


@clip_grad.samples
def clip_grad(rand):
    yield rand(3, 5), rand.distinct(3, 5), dict(min=-0.3, max=0.4)
    yield rand(257), rand(257, low=-3, high=3), dict(max=0.77, _grad=False)
    yield rand(), rand(low=0.5, high=1), dict(min=0.01)
    yield rand(0), rand(0), dict(min=0.0)


@clip_grad.fuse
def clip_grad(p, dy, x, *, min, max):
    low = p.constant(-math.inf if min is None else min)
    high = p.constant(math.inf if max is None else max)
    inside = p.step("and", p.step("less_equal", low, x), p.step("less_equal", x, high))
    return p.step("select", inside, dy, p.constant(0.0))


def clamp(input, min=None, max=None):
    """`input` limited to [min, max]; either bound may be missing; `max` wins where they cross.

    Shapes: input and tensor bounds broadcast.  dtypes: real, promoted.
    Errors: ValueError if both bounds are missing.
    """
    if min is None and max is None:
        raise errors.value_error("clamp: at least one of min and max must be given")
    if input.dtype.is_floating and _is_number(min) and _is_number(max):
        return _clip(input, min=min, max=max)
    if min is not None:
        input = maximum(input, min)
    return input if max is None else minimum(input, max)


def _is_number(bound):
    return bound is None or isinstance(bound, (int, float))


clip = clamp


def clip_by_value(x, clip_value_min=None, clip_value_max=None):
    """`x`, or each member of a list or tuple `x`, limited to [clip_value_min, clip_value_max].

    Shapes: x and tensor bounds broadcast.  dtypes: real, promoted.
    Errors: ValueError if both bounds are missing.
    """
    if isinstance(x, (list, tuple)):
        return type(x)(clamp(member, clip_value_min, clip_value_max) for member in x)
    return clamp(x, clip_value_min, clip_value_max)


@op(elementwise="same", infer=same(), mindir="NanToNum", method=True)
def nan_to_num(input, *, nan: "float?" = None, posinf: "float?" = None, neginf: "float?" = None):
    """Replaces NaN by `nan` (default 0), the infinities by `posinf`, `neginf` (default: the dtype's limits).

    Shapes: any -> same.  dtypes: real; integers are returned as they are.
    """
    return np.nan_to_num(input, nan=nan or 0.0, posinf=posinf, neginf=neginf)


@nan_to_num.vjp
def nan_to_num(ct, input):
    return mul(ct, cast(_logic.isfinite(input), ct.dtype))


@nan_to_num.samples
def nan_to_num(rand):
    yield rand(3, 4)
    yield SPECIAL, dict(_grad=False)
    yield SPECIAL, dict(nan=1.5, posinf=2.5, neginf=-3.5, _grad=False)
    yield rand.ints(-5, 5, (3,)), dict(_grad=False)
    yield rand(0)


def clip_by_norm(x, max_norm, norm_type=2.0, error_if_nonfinite=False):
    """A Tensor, or the Tensors of a list, scaled so that the norm of all elements together is at most
    `max_norm`.

    Shapes: any -> same.  dtypes: floating.
    Errors: TypeError for other arguments, RuntimeError for a norm that is not finite where that is forbidden.
    """
    from mycelia.engine.ops.arrays.shape import reshape

    single = hasattr(x, "dtype")
    if not single and not (isinstance(x, (list, tuple)) and all(hasattr(t, "dtype") for t in x)):
        raise errors.type_error(f"clip_by_norm: x must be a Tensor or a list of Tensors, but is {x!r}")
    tensors = [x] if single else list(x)
    if not tensors:
        return x
    norms = [ops.vector_norm(reshape(t, (-1,)), norm_type) for t in tensors]
    total = ops.vector_norm(ops.stack(norms, 0), norm_type)
    if error_if_nonfinite and not bool(_logic.isfinite(total)):
        text = f"the norm of order {norm_type} is not finite"
        raise errors.error(errors.MyceliaRuntimeError, "clip_by_norm", text)
    share = true_div(float(max_norm), add(total, 1e-6))
    share = ops.where(_comparison.less(share, 1.0), share, 1.0)  # NaN leaves the values alone
    found = [mul(t, cast(share, t.dtype)) for t in tensors]
    return found[0] if single else tuple(found)


__all__ = [
    "clamp", "clip", "clip_by_norm", "clip_by_value", "fmax", "fmin", "maximum", "minimum", "nan_to_num",
]  # fmt: skip
