"""Tensors that models read and write."""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Sequence

import numpy as np

from mycelia_lite import runtime
from mycelia_lite.enums import DataType, Format


def sizes_of(shape: Sequence[int], name: str) -> list[int]:
    """The sizes of a shape that a caller gave as `name`.  Errors: TypeError, ValueError beyond 64 bits."""
    try:
        sizes = [operator.index(size) for size in shape]
    except TypeError:
        raise TypeError(f"{name} must be a list of integers, but got {shape!r}") from None
    if beyond := [size for size in sizes if not -(1 << 63) <= size < 1 << 63]:
        raise ValueError(f"{name} must have sizes of 64 bits, but got {beyond[0]}")
    return sizes


class Tensor:
    """Named elements of one type: an input or output of a model, or made by hand.

    `shape` has -1 for a size that is open until the model is resized. One made by hand is a float32
    number unless `shape` and `dtype` say otherwise, which may be set later, too.

    Errors: TypeError for a `dtype` that is no DataType, ValueError for a `device` other than "cpu" and sizes
    beyond 64 bits, RuntimeError for a shape that cannot be.
    """

    def __init__(
        self,
        tensor: Tensor | None = None,
        shape: Sequence[int] | None = None,
        dtype: DataType | None = None,
        device: str | None = None,
    ):
        if device not in (None, "cpu"):
            raise ValueError(f"device must be 'cpu', but got {device!r}")
        if tensor is not None:
            if not isinstance(tensor, Tensor):
                raise TypeError(f"tensor must be a Tensor, but got {type(tensor).__name__}")
            shape, dtype = tensor.shape, tensor.dtype
        dtype = _checked(DataType.FLOAT32 if dtype is None else dtype)
        given = sizes_of(() if shape is None else shape, "shape")
        sizes = (ctypes.c_int64 * len(given))(*given)
        self._handle = runtime.library().MSTensorCreate(b"", dtype, sizes, len(sizes), None, 0)
        if not self._handle:
            raise RuntimeError(runtime.reason())
        self._owner = None

    @classmethod
    def _of(cls, handle: int, owner: object) -> Tensor:
        made = cls.__new__(cls)
        made._handle, made._owner = handle, owner
        return made

    def __del__(self) -> None:
        if getattr(self, "_handle", None) and self._owner is None:
            runtime.library().MSTensorDestroy(ctypes.byref(runtime.Handle(self._handle)))

    @property
    def name(self) -> str:
        """Its name in the model; empty for one made by hand."""
        return runtime.text(runtime.library().MSTensorGetName(self._handle))

    @name.setter
    def name(self, name: str) -> None:
        runtime.check(runtime.library().MSTensorSetName(self._handle, name.encode()))

    @property
    def quant_params(self) -> list[tuple[float, int]]:
        """(scale, zero point) of integers that stand for (integer - zero point) * scale; else empty."""
        count = runtime.library().MSTensorGetQuantParams(self._handle, None, 0)
        found = (runtime.QuantParam * count)()
        runtime.library().MSTensorGetQuantParams(self._handle, found, count)
        return [(param.scale, param.zero_point) for param in found]

    @property
    def format(self) -> Format:
        """The order of its axes, as the file says it."""
        return Format(runtime.library().MSTensorGetFormat(self._handle))

    @format.setter
    def format(self, format: Format) -> None:
        runtime.check(runtime.library().MSTensorSetFormat(self._handle, format))

    @property
    def dtype(self) -> DataType:
        """The type of its elements."""
        return DataType(runtime.library().MSTensorGetDataType(self._handle))

    @dtype.setter
    def dtype(self, dtype: DataType) -> None:
        """Of a tensor made by hand, whose elements become zeros."""
        runtime.check(runtime.library().MSTensorSetDataType(self._handle, _checked(dtype)))

    @property
    def shape(self) -> list[int]:
        """Its sizes."""
        count = ctypes.c_size_t()
        sizes = runtime.library().MSTensorGetShape(self._handle, ctypes.byref(count))
        return [sizes[i] for i in range(count.value)]

    @shape.setter
    def shape(self, shape: Sequence[int]) -> None:
        """Of a tensor made by hand, whose elements become zeros; a model's are changed by its `resize`."""
        sizes = sizes_of(shape, "shape")
        array = (ctypes.c_int64 * len(sizes))(*sizes)
        runtime.check(runtime.library().MSTensorSetShape(self._handle, array, len(sizes)))

    @property
    def element_num(self) -> int:
        """The number of elements; -1 while a size is open."""
        return -1 if -1 in self.shape else int(np.prod(self.shape, dtype=np.int64))

    @property
    def data_size(self) -> int:
        """Bytes of its elements."""
        return runtime.library().MSTensorGetDataSize(self._handle)

    def set_data_from_numpy(self, array: np.ndarray) -> None:
        """Copy the elements of an array.  Errors: TypeError, RuntimeError if its type or size do not fit."""
        if not isinstance(array, np.ndarray):
            raise TypeError(f"array must be a numpy.ndarray, but got {type(array).__name__}")
        if array.dtype != self.dtype.numpy:
            raise RuntimeError(
                f"tensor '{self.name}' has dtype {self.dtype.numpy}, but the array {array.dtype}"
            )
        if array.nbytes != self.data_size:
            raise RuntimeError(
                f"tensor '{self.name}' of shape {self.shape} has {self.data_size} bytes, but the array of "
                f"shape {list(array.shape)} has {array.nbytes}"
            )
        array = np.ascontiguousarray(array)
        ctypes.memmove(self._elements(), array.ctypes.data, array.nbytes)

    def get_data_to_numpy(self) -> np.ndarray:
        """A copy of the elements.  Errors: RuntimeError for an output of a model that has not run."""
        elements = self._elements()
        made = np.empty(self.shape, self.dtype.numpy)
        if made.nbytes:
            ctypes.memmove(made.ctypes.data, elements, made.nbytes)
        return made

    def _elements(self) -> int:
        address = runtime.library().MSTensorGetMutableData(self._handle)
        if address is None:
            raise RuntimeError(runtime.reason())
        return address

    def __repr__(self) -> str:
        return f"Tensor(name={self.name!r}, shape={self.shape}, dtype={self.dtype.name})"


def _checked(dtype: DataType) -> DataType:
    if not isinstance(dtype, DataType):
        raise TypeError(f"dtype must be a DataType, but got {dtype!r}")
    return dtype


def handles(tensors: Sequence[Tensor], name: str) -> runtime.TensorArray:
    """Those of tensors that a caller gave as `name`.  Errors: TypeError."""
    if isinstance(tensors, Tensor) or not hasattr(tensors, "__len__"):
        raise TypeError(f"{name} must be a list of Tensors, but got {type(tensors).__name__}")
    for i, t in enumerate(tensors):
        if not isinstance(t, Tensor):
            raise TypeError(f"{name}[{i}] must be a Tensor, but got {type(t).__name__}")
    return runtime.TensorArray.of([t._handle for t in tensors])
