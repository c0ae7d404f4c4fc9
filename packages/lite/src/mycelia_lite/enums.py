"""Numbers that the file format and the interface share, under MindSpore Lite's names."""

from __future__ import annotations

import enum

import numpy as np


class FmkType(enum.IntEnum):
    """The framework that a model to convert comes from."""

    TF = 0
    CAFFE = 1
    ONNX = 2
    MINDIR = 3
    TFLITE = 4
    PYTORCH = 5
    MSLITE = 7
    OM = 8


class ModelType(enum.IntEnum):
    """What kind of file a model is loaded from."""

    MINDIR = 0
    MINDIR_LITE = 4


class ModelGroupFlag(enum.IntEnum):
    """What the models of a group share."""

    SHARE_WEIGHT = 1
    SHARE_WORKSPACE = 2


class Format(enum.IntEnum):
    """The order of the axes of a tensor."""

    NCHW = 0
    NHWC = 1
    NHWC4 = 2
    HWKC = 3
    HWCK = 4
    KCHW = 5
    CKHW = 6
    KHWC = 7
    CHWK = 8
    HW = 9
    HW4 = 10
    NC = 11
    NC4 = 12
    NC4HW4 = 13
    NCDHW = 15
    NWC = 16
    NCW = 17
    NC8HW8 = 18


class QuantizationType(enum.IntEnum):
    """How weights of an exported model are stored."""

    NO_QUANT = 0
    WEIGHT_QUANT = 1
    FULL_QUANT = 2


class DataType(enum.IntEnum):
    """Element types of tensors."""

    UNKNOWN = 0
    BOOL = 30
    INT8 = 32
    INT16 = 33
    INT32 = 34
    INT64 = 35
    UINT8 = 37
    UINT16 = 38
    UINT32 = 39
    UINT64 = 40
    FLOAT16 = 42
    FLOAT32 = 43
    FLOAT64 = 44
    BFLOAT16 = 45

    @property
    def numpy(self) -> np.dtype:
        """The dtype of NumPy arrays with such elements.  Errors: TypeError for UNKNOWN and BFLOAT16."""
        return np.dtype(self.name.lower())

    @classmethod
    def of(cls, dtype: np.dtype) -> DataType:
        """The type of a NumPy dtype's elements.  Errors: TypeError if tensors cannot have them."""
        name = np.dtype(dtype).name.upper()
        if name not in cls.__members__:
            raise TypeError(
                f"dtype must be one of {[t.name.lower() for t in cls if t]}, but got {name.lower()}"
            )
        return cls[name]
