"""Values in MindIR files: attributes and tensors of the schema to Python values and back.

Numbers, texts, None, tuples, lists, dicts, Tensors and dtypes stand for themselves; a monad, which only
orders side effects, is MONAD.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from mycelia.engine.base import dtypes
from mycelia.engine.base.dtypes import DType
from mycelia.engine.tensors.tensor import Tensor
from mycelia.io.mindir import mindir_pb2 as pb
from mycelia.io.raw import Raw, from_bytes, of_tensor, to_tensor

TYPE = pb.AttributeProto
DATA = pb.TensorProto

# DataType number -> dtype name. A float64 tensor is written as DOUBLE, a float64 dtype constant as FLOAT64.
_DTYPE_NAMES = {
    DATA.FLOAT: "float32", DATA.UINT8: "uint8", DATA.INT8: "int8", DATA.UINT16: "uint16", DATA.INT16:
    "int16", DATA.INT32: "int32", DATA.INT64: "int64", DATA.BOOL: "bool", DATA.FLOAT16: "float16",
    DATA.DOUBLE: "float64", DATA.UINT32: "uint32", DATA.UINT64: "uint64", DATA.COMPLEX64: "complex64",
    DATA.COMPLEX128: "complex128", DATA.BFLOAT16: "bfloat16", DATA.FLOAT64: "float64",
}  # fmt: skip
_DATA_TYPES = {name: number for number, name in _DTYPE_NAMES.items() if number != DATA.FLOAT64}

# Type id, as dtype arguments of operators are written -> dtype name.
_TYPE_IDS = {
    30: "bool", 31: "int64", 32: "int8", 33: "int16", 34: "int32", 35: "int64", 36: "uint64", 37: "uint8",
    38: "uint16", 39: "uint32", 40: "uint64", 41: "float32", 42: "float16", 43: "float32", 44: "float64",
    45: "bfloat16", 49: "float64", 51: "complex64", 52: "complex128",
}  # fmt: skip
_ID_OF = {"bool": 30, "int64": 35, "uint64": 40, "float32": 43, "float64": 44} | {
    name: number for number, name in _TYPE_IDS.items() if list(_TYPE_IDS.values()).count(name) == 1
}

_INTEGERS = frozenset(
    (TYPE.UINT8, TYPE.INT8, TYPE.UINT16, TYPE.INT16, TYPE.INT32, TYPE.INT64, TYPE.UINT32, TYPE.UINT64)
)
_SEQUENCES = {TYPE.TUPLE: tuple, TYPE.LIST: list}
_TEXTS = frozenset((TYPE.STRING, TYPE.CLASS_TYPE, TYPE.NAME_SPACE, TYPE.SYMBOL))


class _Monad:
    """The value of monads: data that does not exist."""

    def __repr__(self) -> str:
        return "MONAD"


MONAD = _Monad()
IO_MONAD = _Monad()  # what orders printed lines; both are read as MONAD


def dtype_named(name: str) -> DType:
    """The dtype whose `.name` is `name`."""
    return dtypes.bool_ if name == "bool" else getattr(dtypes, name)


def dtype_of_data_type(number: int) -> DType:
    """The dtype of a TensorProto. Errors: ValueError for texts and packed 4-bit integers."""
    if number not in _DTYPE_NAMES:
        raise ValueError(f"data type {number} is not supported")
    return dtype_named(_DTYPE_NAMES[number])


def dtype_of_id(number: int) -> DType:
    """The dtype that an operator's argument names by its type id (43: float32)."""
    if number not in _TYPE_IDS:
        raise ValueError(f"type id {number} is not supported")
    return dtype_named(_TYPE_IDS[number])


def id_of_dtype(dtype: DType) -> int:
    """The type id of a dtype."""
    return _ID_OF[dtype.name]


# ---- reading -----------------------------------------------------------------------------------
def read_tensor(proto: Any) -> Raw:
    """The content of a TensorProto with raw_data. Errors: ValueError if its size is not that of dims."""
    return from_bytes(dtype_of_data_type(proto.data_type).name, tuple(proto.dims), proto.raw_data)


def read_value(attribute: Any) -> Any:
    """The value of an attribute, or of an element inside one."""
    if attribute.ref_attr_name:
        return _read_old(attribute)
    kind = attribute.type
    if kind in _INTEGERS:
        return _integer(_scalar(attribute, "i", "ints"), kind)
    if kind == TYPE.BOOL:
        return bool(_scalar(attribute, "i", "ints"))
    if kind in (TYPE.FLOAT, TYPE.FLOAT16, TYPE.BFLOAT16):
        return _scalar(attribute, "f", "floats")
    if kind == TYPE.DOUBLE:
        return _scalar(attribute, "d", "doubles")
    if kind in _TEXTS:
        return _scalar(attribute, "s", "strings").decode("utf-8", "replace")
    if kind in (TYPE.NONE, TYPE.TYPE_NULL):
        return None
    if kind in (TYPE.UMONAD, TYPE.IOMONAD):
        return MONAD
    if kind in _SEQUENCES:
        return _SEQUENCES[kind](read_value(v) for v in attribute.values)
    if kind == TYPE.DICT:
        return {v.name: read_value(v.values[0]) for v in attribute.values}
    if kind in (TYPE.TENSORS, TYPE.TENSOR):
        return _tensor_or_dtype(attribute.tensors[0] if attribute.tensors else attribute.t)
    name = next((k for k, v in TYPE.AttributeType.items() if v == kind), kind)
    raise ValueError(f"the value '{attribute.name}' has the type {name}, which is not supported")


def _scalar(attribute: Any, own: str, elements: str) -> Any:
    """The number or text of an attribute: in a field of its own, or as the element of a list."""
    many = getattr(attribute, elements)
    return many[0] if many else getattr(attribute, own)


def _integer(value: int, kind: int) -> int:
    return value & (1 << 64) - 1 if kind == TYPE.UINT64 else value


def _tensor_or_dtype(proto: Any) -> Tensor | DType:
    if proto.HasField("raw_data"):  # the presence tells them apart: an empty tensor has empty raw_data
        return to_tensor(read_tensor(proto))
    return dtype_of_data_type(proto.data_type)


_OLD_TOKEN = re.compile(r"(Tuple|List)\[|(\])|(value|tensor|shape)\d+|(None)|,|\s")


def _read_old(attribute: Any) -> Any:
    """A value as 1.x wrote it: flat, with its structure in ref_attr_name, such as
    ``scalar:Tuple[value1,value2,]``.
    """
    form, _, structure = attribute.ref_attr_name.partition(":")
    if form == "none":
        return None
    if form == "Monad":
        return MONAD
    if form == "type":
        return dtype_of_data_type(attribute.tensors[0].data_type)
    if form not in ("scalar", "tensor"):
        raise ValueError(
            f"the value '{attribute.name}' has the form {attribute.ref_attr_name!r}, which is not known"
        )
    flat = iter(_old_elements(attribute))
    stack: list[list] = [[]]
    kinds: list[type] = []
    for match in _OLD_TOKEN.finditer(structure):
        opened, closed, leaf, none = match.groups()
        if opened:
            kinds.append(tuple if opened == "Tuple" else list)
            stack.append([])
        elif closed and kinds:
            items = stack.pop()
            stack[-1].append(kinds.pop()(items))
        elif leaf:
            stack[-1].append(next(flat))
        elif none:
            stack[-1].append(None)
    if kinds or len(stack[0]) != 1:
        raise ValueError(
            f"the value '{attribute.name}' has the form {attribute.ref_attr_name!r}, which is incomplete"
        )
    return stack[0][0]


def _old_elements(attribute: Any) -> list[Any]:
    kind = attribute.type
    if attribute.tensors:
        return [_tensor_or_dtype(t) for t in attribute.tensors]
    if attribute.strings or attribute.HasField("s"):
        return [s.decode("utf-8", "replace") for s in attribute.strings or [attribute.s]]
    if attribute.floats or attribute.HasField("f"):
        return list(attribute.floats) or [attribute.f]
    if attribute.doubles or attribute.HasField("d"):
        return list(attribute.doubles) or [attribute.d]
    integers = list(attribute.ints) or [attribute.i]
    return [bool(i) for i in integers] if kind == TYPE.BOOL else [_integer(i, kind) for i in integers]


# ---- writing -----------------------------------------------------------------------------------
def write_tensor(proto: Any, raw: Raw, *, with_data: bool = True) -> Any:
    """Fills dims, data_type and raw_data of a TensorProto."""
    proto.dims.extend(raw.shape)
    proto.data_type = _DATA_TYPES[raw.dtype]
    if with_data:
        proto.raw_data = bytes(raw.data)
    return proto


def write_value(attribute: Any, value: Any, *, element: bool = False) -> Any:
    """Fills type and value of an AttributeProto; inside a tuple, list or dict (`element`)
    the lists hold the scalars.

    Errors: TypeError for values that MindIR cannot hold.
    """
    if value is None and not element:
        attribute.type = TYPE.NONE
    elif isinstance(value, _Monad):
        attribute.type = TYPE.UMONAD if value is MONAD else TYPE.IOMONAD
    elif isinstance(value, (bool, np.bool_)):
        _write_scalar(attribute, TYPE.BOOL, "i", "ints", int(value), element)
    elif isinstance(value, (int, np.integer)):
        _write_scalar(attribute, TYPE.INT64, "i", "ints", int(value), element)
    elif isinstance(value, (float, np.floating)):
        _write_scalar(attribute, TYPE.FLOAT, "f", "floats", float(value), element)
    elif isinstance(value, str):
        _write_scalar(attribute, TYPE.STRING, "s", "strings", value.encode(), element)
    elif isinstance(value, (tuple, list)):
        attribute.type = TYPE.TUPLE if isinstance(value, tuple) else TYPE.LIST
        for item in value:
            write_value(attribute.values.add(), item, element=True)
    elif isinstance(value, dict):
        attribute.type = TYPE.DICT
        for key, item in value.items():
            entry = attribute.values.add(name=key)
            write_value(entry.values.add(), item, element=True)
    elif isinstance(value, DType):
        attribute.type = TYPE.TENSORS
        attribute.tensors.add(
            name="value0", data_type=DATA.FLOAT64 if value.name == "float64" else data_type(value)
        )
    elif isinstance(value, Tensor):
        attribute.type = TYPE.TENSORS
        write_tensor(attribute.tensors.add(name="value0"), of_tensor(value))
    else:
        raise TypeError(f"a value of {type(value).__name__} cannot be written to MindIR: {value!r}")
    return attribute


def _write_scalar(attribute: Any, kind: int, own: str, elements: str, value: Any, element: bool) -> None:
    attribute.type = kind
    if element:
        getattr(attribute, elements).append(value)
    else:
        setattr(attribute, own, value)


def data_type(dtype: DType) -> int:
    """The DataType number of tensors of a dtype."""
    return _DATA_TYPES[dtype.name]
