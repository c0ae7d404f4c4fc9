"""What scripts ask of MindSpore's extension module, `mindspore._c_expression`."""

from __future__ import annotations

import enum
from types import SimpleNamespace
from typing import Any

import numpy as np

from mycelia.engine.base import dtypes
from mycelia.engine.tensors.tensor import Tensor as TensorPy

__all__ = ["CreationType", "TensorPy", "enable_security", "security", "typing"]


def enable_security() -> bool:
    """False: no build of this has the restrictions of MindSpore's security mode."""
    return False


def _random_normal(seed: int, data: np.ndarray, mean: float, sigma: float) -> None:
    """Fill an array from a normal distribution."""
    data[...] = np.random.default_rng(seed).normal(mean, sigma, data.shape)


def _random_uniform(seed: int, data: np.ndarray, low: float, high: float) -> None:
    """Fill an array from a uniform distribution."""
    data[...] = np.random.default_rng(seed).uniform(low, high, data.shape)


def _truncated_normal(
    seed: int, data: np.ndarray, low: float, high: float, mean: float, sigma: float
) -> None:
    """Fill an array from the part of a normal distribution that lies `low` to `high` sigmas from its mean."""
    random = np.random.default_rng(seed)
    drawn = random.normal(mean, sigma, data.shape)
    while (outside := (drawn < mean + low * sigma) | (drawn > mean + high * sigma)).any():
        drawn[outside] = random.normal(mean, sigma, outside.sum())
    data[...] = drawn


security = SimpleNamespace(enable_security=enable_security)


class CreationType(enum.Enum):
    """How a view came to be: MindSpore forbids in-place changes of some; here none are views of memory."""

    DEFAULT = 0
    NO_GRAD_MODE = 1
    MULTI_OUTPUT = 2
    CUSTOM_BPROP = 3


class _Kind(type):
    """A class of element types, which are its instances: ``isinstance(ms.int32, typing.Int)``."""

    letters: str

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, dtypes.DType) and value.kind in cls.letters

    def __subclasscheck__(cls, other: Any) -> bool:
        return isinstance(other, _Kind) and set(other.letters) <= set(cls.letters)


_KINDS = {"Number": "biufc", "Bool": "b", "Int": "i", "UInt": "u", "Float": "f", "Complex": "c"}
_NAMED = {name: _Kind(name, (), {"letters": letters}) for name, letters in _KINDS.items()}
typing = SimpleNamespace(
    **_NAMED, Type=dtypes.Type, TensorType=dtypes.TensorType, String=str, Tuple=tuple, List=list, Dict=dict
)
