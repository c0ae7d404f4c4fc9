"""Checks of parameters that distributions and bijectors share."""

from __future__ import annotations

import numpy as np

from mycelia.engine.base import dtypes, errors
from mycelia.engine.tensors.tensor import Parameter, Tensor


def as_tensor(value, dtype=dtypes.float32) -> Tensor:
    """A parameter as a Tensor; a Parameter stays. Errors: TypeError for bool and other kinds."""
    if isinstance(value, Parameter):
        return value
    if isinstance(value, bool) or not isinstance(value, (Tensor, np.ndarray, list, int, float)):
        raise errors.type_error(
            "distribution", f"a parameter must be a number, list, array or Tensor, but got {value!r:.60}"
        )
    return Tensor(value, dtype=dtype)


def require(owner: str, name: str, value, condition, wanted: str) -> None:
    """Raise ValueError unless `condition` holds for all elements of a Tensor."""
    if value is not None and not condition(value.asnumpy()).all():
        raise errors.value_error(owner, f"{name} must be {wanted}")


def common_dtype(owner: str, values: dict, wanted) -> dtypes.DType:
    """The dtype of parameters: `wanted` if it floats, else float32; arrays bring their own.

    Errors: TypeError when two differ.
    """
    found = None
    for name, value in values.items():
        if hasattr(value, "dtype"):
            current = dtypes.as_dtype(value.dtype) if isinstance(value, np.ndarray) else value.dtype
            if found is not None and current is not found:
                raise errors.type_error(
                    owner, f"{name} must have the dtype of the others: {found}, {current}"
                )
            found = current
    if found is not None and found.is_floating and found is not dtypes.float64:
        return found
    if found is not None or wanted is None or not wanted.is_floating:
        return dtypes.float32
    return wanted


def broadcast_shape(values) -> tuple[int, ...] | None:
    """The common shape of parameters; None when one is not given."""
    if any(v is None for v in values):
        return None
    return np.broadcast_shapes(*(np.shape(v) if not isinstance(v, Tensor) else v.shape for v in values))


def is_scalar(values) -> bool:
    """Whether all given parameters are plain numbers."""
    return all(v is None or isinstance(v, (int, float)) for v in values)
