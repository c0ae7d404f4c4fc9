"""Tensor contents as files hold them: a type name, a shape, bytes; the edge between formats and Tensors."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

_STORAGE = {  # name of the dtype -> name of the NumPy dtype of its bytes
    "bool": "?",
    "int8": "i1",
    "int16": "<i2",
    "int32": "<i4",
    "int64": "<i8",
    "uint8": "u1",
    "uint16": "<u2",
    "uint32": "<u4",
    "uint64": "<u8",
    "float16": "<f2",
    "float32": "<f4",
    "float64": "<f8",
    "bfloat16": "<u2",
    "complex64": "<c8",
    "complex128": "<c16",
}


def storage(dtype: str) -> np.dtype:
    """The NumPy dtype that holds the bytes of `dtype`: its own, or uint16 for bfloat16."""
    return np.dtype(_STORAGE[dtype])


@dataclasses.dataclass(slots=True)
class Raw:
    """One value of a file: `dtype` by name ('float32'), shape, and its elements as a C-ordered array of
    `storage(dtype)`. `tensor`: the Tensor whose memory that is, if it was made for it.
    """

    dtype: str
    shape: tuple[int, ...]
    array: np.ndarray
    tensor: Any = None

    @property
    def data(self) -> memoryview:
        """The bytes, without a copy."""
        return memoryview(np.ascontiguousarray(self.array).reshape(-1).view(np.uint8))

    def copy(self) -> Raw:
        """The same value in memory of its own."""
        return Raw(self.dtype, self.shape, self.array.copy())


def from_bytes(dtype: str, shape: tuple[int, ...], data: bytes | memoryview) -> Raw:
    """A view of `data`. Errors: ValueError when its length is not that of `shape`."""
    kind = storage(dtype)
    if any(n < 0 for n in shape):
        raise ValueError(f"shape {list(shape)} has negative sizes")
    if math.prod(shape) * kind.itemsize != len(data):
        raise ValueError(
            f"{dtype}{list(shape)} takes {math.prod(shape) * kind.itemsize} bytes, the file has {len(data)}"
        )
    return Raw(dtype, shape, np.frombuffer(data, kind).reshape(shape))


def empty(dtype: str, shape: tuple[int, ...]) -> Raw:
    """A value to be filled in: its memory is that of the Tensor that `to_tensor` gives."""
    from mycelia.engine import _C
    from mycelia.engine.base import dtypes

    tensor = _C.empty(getattr(dtypes, dtype), shape)
    return Raw(dtype, shape, tensor._bits(), tensor)


def of_tensor(tensor) -> Raw:
    """The content of a Tensor or Parameter; shares its memory where it can."""
    name = tensor.dtype.name
    if name not in _STORAGE:
        raise TypeError(f"tensors of {name} cannot be written to a file")
    array = tensor._bits() if name == "bfloat16" else np.asarray(tensor.asnumpy(), storage(name))
    return Raw(name, tuple(tensor.shape), array)


def to_tensor(raw: Raw):
    """A Tensor of the content, in memory of its own."""
    from mycelia.engine import _C
    from mycelia.engine.base import dtypes

    if raw.tensor is not None:
        return raw.tensor
    return _C.from_array(raw.array, getattr(dtypes, raw.dtype), False)


def to_parameter(raw: Raw, name: str):
    """A Parameter of the content, in memory of its own."""
    from mycelia.engine import _C
    from mycelia.engine.tensors.tensor import Parameter

    tensor = to_tensor(raw)
    made = Parameter(_C.make_traced(None, tensor.dtype, tensor.shape), name=name)
    made._assign(tensor)  # its memory: a Parameter made of a Tensor has a copy
    return made
