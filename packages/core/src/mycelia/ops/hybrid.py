"""The hybrid language of user kernels: Python functions with a few names of their own, on NumPy arrays."""

from __future__ import annotations

import contextlib
import functools
import math
import types
from collections.abc import Callable
from typing import Any

import numpy as np


def _intrinsics() -> dict[str, Any]:
    """What kernels in the hybrid language may call, on NumPy."""

    def allocate(shape: tuple, dtype: str, scope: str = "") -> np.ndarray:
        return np.zeros(shape, dtype)

    names: dict[str, Any] = {
        "output_tensor": allocate,
        "allocate": allocate,
        "block_realize": contextlib.nullcontext,
    }
    names.update(dict.fromkeys(("grid", "serial", "vectorize", "parallel", "reduce"), _steps))
    names.update({n: getattr(np, n) for n in ("exp", "log", "sqrt", "abs", "floor", "ceil", "round", "tanh")})
    names.update(
        rsqrt=lambda x: 1 / np.sqrt(x), erf=math.erf, power=np.power, int_div=np.floor_divide, int_mod=np.mod,
        bfloat16=np.float32, float16=np.float16, float32=np.float32, float64=np.float64, int8=np.int8,
        int16=np.int16, int32=np.int32, int64=np.int64, uint8=np.uint8,
    )  # fmt: skip
    return names


def _steps(*limits: Any) -> Any:
    """Steps of a loop: over a number as `range`, over a tuple as all places of a grid."""
    return np.ndindex(*limits[0]) if isinstance(limits[0], tuple) else range(*limits)


def kernel(fn: Callable | None = None, reg_info: Any = None, compile_attrs: dict | None = None) -> Callable:
    """Decorator of a function in the hybrid language; it runs on NumPy arrays, also by itself.

    `reg_info`, `compile_attrs`: kept with the function.
    """

    def decorate(function: Callable) -> Callable:
        bound = types.FunctionType(
            function.__code__, {**function.__globals__, **_intrinsics()}, function.__name__,
            function.__defaults__, function.__closure__,
        )  # fmt: skip

        @functools.wraps(function)
        def wrapped(*args: Any) -> Any:
            return bound(*args)

        wrapped.hybrid_kernel = True
        wrapped.reg_info, wrapped.compile_attrs = reg_info, compile_attrs or {}
        return wrapped

    return decorate(fn) if fn is not None else decorate


def ms_kernel(
    fn: Callable | None = None, reg_info: Any = None, compile_attrs: dict | None = None
) -> Callable:
    """`kernel` under its older name."""
    return kernel(fn, reg_info, compile_attrs)


__all__ = ["kernel", "ms_kernel"]
