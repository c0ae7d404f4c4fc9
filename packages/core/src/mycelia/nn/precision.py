"""Cells that compute in another float type: casts around `construct`, and op by op in the level "auto".

Parameters keep their type: a Cell sees casts of its own while it computes, so gradients arrive in the type
of the master weights. Results are rounded as the type rounds, whatever the kernels compute in.
"""

from __future__ import annotations

import functools

from mycelia.engine import dispatch
from mycelia.engine.base.dtypes import DType, float32
from mycelia.engine.ops.elementwise.cast import cast
from mycelia.engine.tensors.tensor import Parameter, ParameterTuple, Tensor

# What a normalization updates in place keeps its type and place.
_STATISTICS = ("moving_mean", "moving_variance")


def cast_floats(value, dtype: DType):
    """`value` with the floating Tensors in it, in tuples, lists and dicts too, cast to `dtype`."""
    if isinstance(value, Tensor):
        return cast(value, dtype=dtype) if value.dtype.is_floating and value.dtype is not dtype else value
    if isinstance(value, (tuple, list)):
        members = [cast_floats(v, dtype) for v in value]
        return type(value)(*members) if hasattr(value, "_fields") else type(value)(members)
    if isinstance(value, dict):
        return {k: cast_floats(v, dtype) for k, v in value.items()}
    return value


class _CastParameters:
    """While it is open, the attributes of a cell that are Parameters are casts of them."""

    def __init__(self, cell, dtype: DType):
        self._attributes = cell.__dict__
        self._kept: dict = {}
        for name, value in self._attributes.items():
            if name in _STATISTICS or name.startswith("_"):
                continue
            if isinstance(value, Parameter):
                changed = cast_floats(value, dtype)
            elif isinstance(value, ParameterTuple):
                changed = tuple(cast_floats(p, dtype) for p in value)
            else:
                continue
            if changed is not value:
                self._kept[name] = value, changed

    def __enter__(self) -> None:
        for name, (_, changed) in self._kept.items():
            self._attributes[name] = changed

    def __exit__(self, *exc: object) -> None:
        for name, (value, changed) in self._kept.items():
            if self._attributes.get(name) is changed:
                self._attributes[name] = value


def compute(cell, args: tuple, kwargs: dict):
    """A call of a cell that has a float type of its own, casts its output, or casts op by op."""
    settings = cell.__dict__
    automatic = settings.get("_amp_auto")
    if automatic is not None:
        with Automatic(automatic):
            return cell._compute_plainly(args, kwargs)
    dtype = cell._to_float
    if dtype is None:
        output = cell._compute_plainly(args, kwargs)
    else:
        with _CastParameters(cell, dtype):
            output = cell._compute_plainly(cast_floats(args, dtype), cast_floats(kwargs, dtype))
    return cast_floats(output, float32) if settings.get("_amp_output") else output


class Automatic:
    """While it is open, the ops of this thread get their floating inputs in the type their blocks ask for."""

    def __init__(self, dtype: DType):
        self.dtype = dtype

    def __enter__(self) -> None:
        self._mode = dispatch.push_interceptor(self._call, dispatch.OBSERVING)

    def __exit__(self, *exc: object) -> None:
        dispatch.pop_interceptor(self._mode)

    def _call(self, op, inputs: tuple, attrs: tuple):
        dispatch.pop_interceptor(self._mode)  # what is below sees the op, and the casts before it
        try:
            precision = op.definition.precision
            if precision == "short":
                return self._short(op, inputs, attrs)
            if precision == "wide":
                inputs = tuple(self._widened(x) for x in inputs)
            return op(*inputs, *attrs)
        finally:
            dispatch.push_interceptor(self._call, dispatch.OBSERVING)

    def _widened(self, value):
        short = isinstance(value, Tensor) and value.dtype is self.dtype and not value._is_parameter
        return cast(value, dtype=float32) if short else value

    def _short(self, op, inputs: tuple, attrs: tuple):
        inputs = tuple(cast_floats(x, self.dtype) if i < 2 else x for i, x in enumerate(inputs))
        bias = inputs[2] if len(inputs) > 2 else None
        if not isinstance(bias, Tensor) or bias.dtype is self.dtype:
            return op(*inputs, *attrs)
        # The bias is an addition of its own, in its own type.
        product = op(*inputs[:2], None, *attrs)
        channels = (1, -1) + (1,) * (product.ndim - 2) if op.name == "conv" else (-1,)
        return product + bias.reshape(channels)


def automatic_function(function, dtype: DType):
    """`function` with its ops cast one by one."""

    @functools.wraps(function)
    def run(*args, **kwargs):
        with Automatic(dtype):
            return function(*args, **kwargs)

    return run
