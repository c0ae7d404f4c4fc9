"""What the functions of this package ask of their arguments."""

from __future__ import annotations

from mycelia import ops
from mycelia.engine.base import dtypes, errors
from mycelia.engine.tensors.tensor import Tensor

REAL = (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64)
COMPLEX = (dtypes.complex64, dtypes.complex128)


def flags(owner: str, **given) -> None:
    """TypeError unless each of `given` is True or False."""
    for name, value in given.items():
        if type(value) is not bool:
            raise errors.type_error(
                owner,
                f"{name} must be a bool, but got {value!r}",
            )


def floating(owner: str, a, name: str = "a", allowed=REAL):
    """`a`, integers as float64; TypeError unless it is a Tensor of an allowed dtype."""
    if not isinstance(a, Tensor):
        raise errors.type_error(owner, f"{name} must be a Tensor, but got {type(a).__name__}")
    if a.dtype not in allowed:
        names = ", ".join(t.name for t in allowed)
        raise errors.type_error(owner, f"{name} must be one of {names}, but is {a.dtype}")
    return ops.cast(a, dtypes.float64) if a.dtype in (dtypes.int32, dtypes.int64) else a


def matrix(owner: str, a, name: str = "a", allowed=REAL):
    """The same for one matrix: ValueError unless its rank is 2."""
    a = floating(owner, a, name, allowed)
    if a.ndim != 2:
        raise errors.value_error(owner, f"{name} must be a matrix, but has rank {a.ndim}")
    return a


def square(owner: str, a, name: str = "a", allowed=REAL):
    """The same for a square matrix."""
    a = matrix(owner, a, name, allowed)
    if a.shape[0] != a.shape[1]:
        raise errors.value_error(owner, f"{name} must be square, but its shape is {tuple(a.shape)}")
    return a


def equations(owner: str, a, b, name: str = "a"):
    """A square matrix and right-hand sides (N,) or (N, M) of its dtype."""
    if isinstance(a, Tensor) and isinstance(b, Tensor) and a.dtype is not b.dtype:
        raise errors.type_error(
            owner, f"{name} and b must have one dtype, but they have {a.dtype} and {b.dtype}"
        )
    a, b = square(owner, a, name), floating(owner, b, "b")
    if b.ndim not in (1, 2):
        raise errors.value_error(owner, f"b must have rank 1 or 2, but has {b.ndim}")
    if a.shape[1] != b.shape[0]:
        raise errors.value_error(
            owner, f"{name} {tuple(a.shape)} and b {tuple(b.shape)} differ in their number of rows"
        )
    return a, b
