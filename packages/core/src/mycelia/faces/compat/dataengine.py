"""What scripts ask of MindSpore's extension module of datasets, `mindspore._c_dataengine`: its value "
"types."""

from __future__ import annotations

import numpy as np

__all__ = ["DataType", "Tensor", "TensorShape", "nptype_to_detype"]


class DataType:
    """A type of elements by its name: 'int64', 'string', ..."""

    def __init__(self, name: str):
        self.name = "string" if name in ("str", "string") else np.dtype(name).name

    def __eq__(self, other) -> bool:
        return isinstance(other, DataType) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return self.name


class TensorShape:
    """Sizes of axes."""

    def __init__(self, sizes):
        self._sizes = [int(size) for size in sizes]

    def as_list(self) -> list[int]:
        """The sizes."""
        return list(self._sizes)

    def is_known(self) -> bool:
        """Whether no size is left open."""
        return all(size >= 0 for size in self._sizes)

    def __repr__(self) -> str:
        return f"<{','.join(map(str, self._sizes))}>"


class Tensor:
    """An array of a dataset: a copy of what it is made of, and NumPy's view of it."""

    def __init__(self, array):
        self._array = np.array(array, order="C")

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        if dtype is not None and np.dtype(dtype) != self._array.dtype:
            return self._array.astype(dtype)
        return self._array.copy() if copy else self._array

    def as_array(self) -> np.ndarray:
        """The array itself."""
        return self._array

    def type(self) -> DataType:
        """The type of its elements."""
        return nptype_to_detype(self._array.dtype)

    def shape(self) -> TensorShape:
        """Its sizes."""
        return TensorShape(self._array.shape)


def nptype_to_detype(type_) -> DataType:
    """The `DataType` of a dtype of NumPy."""
    dtype = np.dtype(type_)
    return DataType("string" if dtype.kind in "SU" else dtype.name)
