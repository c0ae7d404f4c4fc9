"""Element types: their codes in the C ABI, NumPy counterparts and MindSpore's promotion rules.

`bfloat16` has no NumPy type: its memory is seen as uint16 bits, and NumPy code works on float32 copies.
"""

from __future__ import annotations

import enum

import numpy as np

_DISPLAY = {
    "bool": "Bool", "int8": "Int8", "int16": "Int16", "int32": "Int32", "int64": "Int64", "uint8": "UInt8",
    "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64", "float16": "Float16", "bfloat16": "BFloat16",
    "float32": "Float32", "float64": "Float64", "complex64": "Complex64", "complex128": "Complex128",
}  # fmt: skip


class Type:
    """What has a place in MindSpore's system of types: an element type, or a kind such as `number` or
    `list_`.

    `str` gives the name for people (``Float32``), `repr` the one for programs (``mindspore.float32``).
    """

    __slots__ = ("name", "shown")

    def __init__(self, name: str, shown: str):
        self.name, self.shown = name, shown

    def __str__(self) -> str:
        return self.shown

    def __repr__(self) -> str:
        return f"mindspore.{self.name}"

    def __reduce__(self):
        return _by_name, (self.name,)


class DType(Type):
    """One element type, a singleton: compare with ``is`` or ``==``."""

    __slots__ = ("code", "itemsize", "kind", "np", "short")

    def __init__(self, name: str, short: str, code: int, kind: str, np_type):
        super().__init__(name, _DISPLAY[name])
        self.short, self.code, self.kind = short, code, kind
        self.np = np.dtype(np_type)
        self.itemsize = self.np.itemsize

    @property
    def is_floating(self) -> bool:
        return self.kind == "f"

    is_floating_point = is_floating

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

    def to_complex(self) -> DType:
        """The complex dtype whose parts have this dtype, or come nearest to it."""
        return complex128 if self in (float64, complex128) else complex64

    def to_real(self) -> DType:
        """The dtype of the parts of a complex dtype; a real dtype itself."""
        return {complex64: float32, complex128: float64}.get(self, self)


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

# Element types that only accelerators have: they can be named and compared, not held by a tensor here.
qint4x2 = Type("int4", "Int4")
float8_e4m3fn, float8_e5m2 = Type("float8_e4m3fn", "Float8E4M3FN"), Type("float8_e5m2", "Float8E5M2")
hifloat8 = Type("hifloat8", "HiFloat8")

# Kinds of values.
number, int_, uint, float_ = (
    Type(n, n.title() if n != "uint" else "UInt") for n in ("number", "int", "uint", "float")
)
string, list_, tuple_ = Type("string_", "String"), Type("list_", "List"), Type("tuple_", "Tuple")
tensor_type, function = Type("tensor", "Tensor"), Type("function", "Func")
type_none, type_type, _null = Type("type_none", "None"), Type("type_type", "TypeType"), Type("Null", "Null")
coo_tensor, csr_tensor = Type("COOTensor", "COOTensor"), Type("CSRTensor", "CSRTensor")

ALL = (bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64,
       complex64, complex128)  # fmt: skip
_KINDS = (
    qint4x2, float8_e4m3fn, float8_e5m2, hifloat8, number, int_, uint, float_, string, list_, tuple_,
    tensor_type,
    function, type_none, type_type, _null, coo_tensor, csr_tensor,
)  # fmt: skip
_NAMES = {d.name: d for d in ALL} | {"bool_": bool_}
_ANY_NAME = {d.name: d for d in _KINDS} | _NAMES
_BY_NP = {d.np: d for d in ALL if d is not bfloat16}
_BY_PYTHON = {bool: bool_, int: int64, float: float32, complex: complex64}


def _by_name(name: str) -> Type:
    return _ANY_NAME[name]


class _Family(type):
    """The class of `Int`, `UInt` and `Float`: ``Int(32)`` is int32, ``Int()`` the kind, and all are
    instances."""

    def __call__(cls, bits: int = 0) -> Type:
        if not bits:
            return cls.kind
        found = _NAMES.get(f"{cls.kind.name}{bits}")
        if found is None:
            raise RuntimeError(f"no type {cls.kind.shown} has {bits} bits")
        return found

    def __instancecheck__(cls, value) -> bool:
        return value is cls.kind or isinstance(value, DType) and value.name.startswith(cls.kind.name)


class Int(Type, metaclass=_Family):
    """The signed integer types."""

    kind = int_


class UInt(Type, metaclass=_Family):
    """The unsigned integer types."""

    kind = uint


class Float(Type, metaclass=_Family):
    """The floating types of IEEE 754."""

    kind = float_


class TensorType(Type):
    """The type of tensors whose elements have the type `element`."""

    __slots__ = ("element",)

    def __init__(self, element: Type | None = None):
        self.element = element
        inner = element.name if element else ""
        super().__init__(
            f"tensor[{inner}]" if inner else "tensor", f"Tensor[{element}]" if element else "Tensor"
        )

    def element_type(self) -> Type | None:
        """The type of the elements."""
        return self.element

    def __eq__(self, other) -> bool:
        return isinstance(other, TensorType) and other.element is self.element

    def __hash__(self) -> int:
        return hash((TensorType, self.element))

    def __reduce__(self):
        return TensorType, (self.element,)


class QuantDtype(enum.Enum):
    """Integers of 1 to 16 bits, as quantization counts them."""

    INT1, INT2, INT3, INT4, INT5, INT6, INT7, INT8 = range(8)
    INT9, INT10, INT11, INT12, INT13, INT14, INT15, INT16 = range(8, 16)
    UINT1, UINT2, UINT3, UINT4, UINT5, UINT6, UINT7, UINT8 = range(100, 108)
    UINT9, UINT10, UINT11, UINT12, UINT13, UINT14, UINT15, UINT16 = range(108, 116)

    def __str__(self) -> str:
        return self.name


def __getattr__(name: str):
    if (
        name in _BUILTIN_NAMES
    ):  # MindSpore's names of Python's own words: they must not hide those in this file
        return _BUILTIN_NAMES[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_BUILTIN_NAMES = {"bool": bool_, "int": int32, "float": float32}


_SIZED = {int_: int32, uint: uint32, float_: float32}  # a kind asked for as a dtype


def as_dtype(value) -> DType:
    """The DType that `value` names: a DType, a text, a NumPy dtype or type, or bool, int, float.

    Raises TypeError for anything else.
    """
    if isinstance(value, DType):
        return value
    if isinstance(value, Type) and value in _SIZED:
        return _SIZED[value]
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
    """The NumPy scalar type of a dtype; bfloat16, which NumPy lacks, is handled as float32.  KeyError for
    a kind."""
    if type_ is string:
        return np.str_
    if not isinstance(type_, DType):
        raise KeyError(type_)
    return np.float32 if type_ is bfloat16 else type_.np.type


def dtype_to_pytype(type_: Type) -> type:
    """The Python type whose values an element type or kind stands for.  KeyError if there is none."""
    if isinstance(type_, DType):
        return {"b": bool, "i": int, "u": int, "f": float, "c": complex}[type_.kind]
    kinds = {int_: int, float_: float, string: str, list_: list, tuple_: tuple, type_none: type(None)}
    return kinds[type_]


_OF_PYTHON = {
    bool: bool_, int: int64, float: float64, complex: complex128, str: string, np.str_: string, list: list_,
    tuple: tuple_, type(None): type_none,
}  # fmt: skip


def pytype_to_dtype(obj: type) -> Type:
    """The type of the values of a Python or NumPy type; Python's own numbers are 64 bits wide.

    Errors: TypeError unless `obj` is a type, NotImplementedError for a type without dtype.
    """
    if isinstance(obj, Type):
        return obj
    if not isinstance(obj, type):
        raise TypeError(f"pytype_to_dtype: 'obj' must be a Python type such as int or float, but got {obj!r}")
    if obj in _OF_PYTHON:
        return _OF_PYTHON[obj]
    if issubclass(obj, np.generic) and np.dtype(obj) in _BY_NP:
        return _BY_NP[np.dtype(obj)]
    raise NotImplementedError(f"pytype_to_dtype: no dtype stands for the Python type {obj.__name__}")


def get_py_obj_dtype(obj) -> Type:
    """The type of a Python value: `tensor[dtype]`, `function`, that of a number, or the one a type stands
    for."""
    from mycelia.engine._C import Tensor

    if isinstance(obj, Tensor):
        return TensorType(obj.dtype)
    if isinstance(obj, Type):
        return type_type
    if isinstance(obj, type):
        return pytype_to_dtype(obj)
    if callable(obj):
        return function
    return pytype_to_dtype(type(obj))


int_type = (int8, int16, int32, int64)
uint_type = (uint8, uint16, uint32, uint64)
float_type = (float16, float32, float64, bfloat16, float8_e4m3fn, float8_e5m2, hifloat8)
complex_type = (complex64, complex128)
number_type = (
    *int_type, *uint_type, float16, float32, float64, bfloat16, *complex_type, qint4x2, float8_e4m3fn,
    float8_e5m2,
    hifloat8,
)  # fmt: skip
all_types = (bool_, *number_type)

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


#: Of arrays of bfloat16's bits, where these are moved and not computed with.
BFLOAT16_BITS = np.dtype([("bfloat16", "<u2")])


def from_bfloat16_bits(bits: np.ndarray) -> np.ndarray:
    """uint16 bits of bfloat16 as float32 values."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32).reshape(bits.shape)
