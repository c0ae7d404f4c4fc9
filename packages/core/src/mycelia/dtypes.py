"""Element types: their codes in the C ABI, NumPy counterparts and MindSpore's promotion rules.

`bfloat16` has no NumPy type: its memory is seen as uint16 bits, and NumPy code works on float32 copies.
"""

from __future__ import annotations

import numpy as np


class DType:
    """One element type, a singleton: compare with ``is`` or ``==``."""

    __slots__ = ("code", "itemsize", "kind", "name", "np", "short")

    def __init__(self, name: str, short: str, code: int, kind: str, np_type):
        self.name, self.short, self.code, self.kind = name, short, code, kind
        self.np = np.dtype(np_type)
        self.itemsize = self.np.itemsize

    @property
    def is_floating(self) -> bool:
        return self.kind == "f"

    @property
    def is_integer(self) -> bool:
        return self.kind in "iu"

    @property
    def is_signed(self) -> bool:
        return self.kind in "ifc"

    @property
    def is_bool(self) -> bool:
        return self.kind == "b"

    @property
    def is_complex(self) -> bool:
        return self.kind == "c"

    def __str__(self) -> str:
        """The name MindSpore prints, e.g. ``Float32``."""
        return _DISPLAY[self.name]

    __repr__ = __str__

    def __reduce__(self):
        return _by_name, (self.name,)


_DISPLAY = {
    "bool": "Bool", "int8": "Int8", "int16": "Int16", "int32": "Int32", "int64": "Int64", "uint8": "UInt8",
    "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64", "float16": "Float16", "bfloat16": "BFloat16",
    "float32": "Float32", "float64": "Float64", "complex64": "Complex64", "complex128": "Complex128",
}  # fmt: skip

bool_ = DType("bool", "bool", 0, "b", np.bool_)
int8 = DType("int8", "i8", 1, "i", np.int8)
int16 = DType("int16", "i16", 2, "i", np.int16)
int32 = DType("int32", "i32", 3, "i", np.int32)
int64 = DType("int64", "i64", 4, "i", np.int64)
uint8 = DType("uint8", "u8", 5, "u", np.uint8)
uint16 = DType("uint16", "u16", 6, "u", np.uint16)
uint32 = DType("uint32", "u32", 7, "u", np.uint32)
uint64 = DType("uint64", "u64", 8, "u", np.uint64)
float16 = DType("float16", "f16", 9, "f", np.float16)
bfloat16 = DType("bfloat16", "bf16", 10, "f", np.uint16)
float32 = DType("float32", "f32", 11, "f", np.float32)
float64 = DType("float64", "f64", 12, "f", np.float64)
complex64 = DType("complex64", "c64", 13, "c", np.complex64)
complex128 = DType("complex128", "c128", 14, "c", np.complex128)
# The C names of the same types.
half, single, double = float16, float32, float64
byte, short, intc, intp, long = int8, int16, int32, int64, int64
ubyte, ushort, uintc, uintp = uint8, uint16, uint32, uint64
cfloat, cdouble = complex64, complex128

ALL = (bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64,
       complex64, complex128)  # fmt: skip
_NAMES = {d.name: d for d in ALL} | {"bool_": bool_}
_BY_NP = {d.np: d for d in ALL if d is not bfloat16}
_BY_PYTHON = {bool: bool_, int: int64, float: float32, complex: complex64}


def _by_name(name: str) -> DType:
    return _NAMES[name]


def as_dtype(value) -> DType:
    """The DType that `value` names: a DType, a text, a NumPy dtype or type, or bool, int, float.

    Raises TypeError for anything else.
    """
    if isinstance(value, DType):
        return value
    if isinstance(value, str):
        found = _NAMES.get(value) or _NAMES.get(value.lower())
        if found is not None:
            return found
    elif value in _BY_PYTHON:
        return _BY_PYTHON[value]
    try:
        return _BY_NP[np.dtype(value)]
    except (TypeError, KeyError):
        pass
    raise TypeError(f"dtype must be a mycelia dtype such as float32, but got {value!r}")


def from_numpy(dtype: np.dtype) -> DType:
    """The DType of a NumPy dtype; TypeError if there is none."""
    found = _BY_NP.get(dtype)
    if found is None:
        raise TypeError(f"no element type holds numpy {dtype}")
    return found


def dtype_to_nptype(type_: DType) -> type:
    """The NumPy scalar type of a dtype; bfloat16, which NumPy lacks, is handled as float32."""
    return np.float32 if type_ is bfloat16 else as_dtype(type_).np.type


def dtype_to_pytype(type_: DType) -> type:
    """The Python type whose values a dtype's elements become: bool, int, float or complex."""
    return {"b": bool, "i": int, "u": int, "f": float, "c": complex}[as_dtype(type_).kind]


def pytype_to_dtype(obj: type) -> DType:
    """The dtype of a Python or NumPy scalar type; Python's own are 64 bits wide.

    Errors: TypeError unless `obj` is a type, NotImplementedError for a type without dtype.
    """
    if not isinstance(obj, type):
        raise TypeError(f"pytype_to_dtype: 'obj' must be a Python type such as int or float, but got {obj!r}")
    wide = {bool: bool_, int: int64, float: float64, complex: complex128}
    if obj in wide:
        return wide[obj]
    if issubclass(obj, np.generic) and np.dtype(obj) in _BY_NP:
        return _BY_NP[np.dtype(obj)]
    raise NotImplementedError(f"pytype_to_dtype: no dtype stands for the Python type {obj.__name__}")


_FLOAT_RANK = {float16: 1, bfloat16: 1, float32: 2, float64: 3}
_WIDE_UNSIGNED = (uint16, uint32, uint64)


def promote(a: DType, b: DType) -> DType:
    """The common dtype of two tensors under MindSpore's implicit conversion.

    Raises TypeError for uint16, uint32 and uint64 mixed with anything but bool and themselves.
    """
    if a is b or b is bool_:
        return a
    if a is bool_:
        return b
    if a in _WIDE_UNSIGNED or b in _WIDE_UNSIGNED:
        raise TypeError(f"Type implicit conversion between {a} and {b} is not supported.")
    if a.is_complex or b.is_complex:
        wide = (
            complex128 in (a, b)
            or float64 in (a, b)
            and (a.is_complex and b is float64 or b.is_complex and a is float64)
        )
        return complex128 if wide else complex64
    if a.is_floating and b.is_floating:
        ra, rb = _FLOAT_RANK[a], _FLOAT_RANK[b]
        return float32 if ra == rb else (a if ra > rb else b)
    if a.is_floating:
        return a
    if b.is_floating:
        return b
    if uint8 in (a, b):
        other = b if a is uint8 else a
        return int16 if other is int8 else other
    return a if a.itemsize >= b.itemsize else b


def promote_number(dtype: DType, number: type) -> DType:
    """The dtype in which a Python number of type `number` meets a tensor of `dtype`: numbers are weak."""
    if number is bool or dtype.is_complex:
        return dtype
    if number is complex:
        return complex128 if dtype is float64 else complex64
    if dtype.is_floating:
        return dtype
    if dtype in _WIDE_UNSIGNED:
        name = "Int64" if number is int else "Float32"
        raise TypeError(f"Type implicit conversion between Tensor[{dtype}] and {name} is not supported.")
    if number is float:
        return float32
    return int64 if dtype is bool_ else dtype


def to_bfloat16_bits(values: np.ndarray) -> np.ndarray:
    """float32 values rounded to nearest even, as uint16 bits."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = ((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)).astype(
        np.uint16
    )
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded).reshape(np.shape(values))


def from_bfloat16_bits(bits: np.ndarray) -> np.ndarray:
    """uint16 bits of bfloat16 as float32 values."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32).reshape(bits.shape)
