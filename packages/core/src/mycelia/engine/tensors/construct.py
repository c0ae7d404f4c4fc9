"""What ``Tensor(...)`` makes of its arguments: arrays, numbers, nested lists, shapes with an initializer."""

from __future__ import annotations

import numpy as np

from mycelia.engine import _C
from mycelia.engine.base import dtypes, errors
from mycelia.engine.base.dtypes import DType
from mycelia.engine.ir.symint import SymInt
from mycelia.engine.ops.arrays.shape import constant
from mycelia.engine.ops.elementwise.cast import cast
from mycelia.engine.ops.late import ops
from mycelia.engine.ops.methods import properties as tensor_properties

Tensor = _C.Tensor


def _array_of(data, dtype: DType | None) -> np.ndarray:
    """A NumPy array with MindSpore's defaults (Python ints are int64, floats float32), exact where `dtype`
    is given."""
    if isinstance(data, (bool, int, float, complex)):
        try:
            wide = data if dtype is None or not isinstance(data, float) else np.float64(data)
            return np.array(wide, None if wide is not data else _number_type(data))
        except OverflowError:
            raise errors.runtime_error("Tensor", f"input_data {data} does not fit into int64") from None
    if isinstance(data, (list, tuple)):
        plain = _plain(data)
        try:
            array = np.array(plain)
        except ValueError as e:
            raise errors.type_error("Tensor", f"input_data must be a regular nested list: {e}") from None
        if array.dtype.kind in "OUS":
            raise errors.type_error("Tensor", f"input_data must hold numbers, but got {_short(data)}")
        if array.dtype == np.float64 and dtype is None and (not array.size or not _holds_arrays(plain)):
            array = array.astype(np.float32)
        return array
    raise errors.type_error(
        "Tensor",
        f"input_data must be a Tensor, a number, a list, a tuple or a numpy.ndarray, "
        f"but got {type(data).__name__}",
    )


def _all_bfloat16(data) -> bool:
    """Whether a nested list holds Tensors of bfloat16 alone: NumPy knows them as float32 only."""
    if isinstance(data, (list, tuple)):
        return bool(data) and all(map(_all_bfloat16, data))
    return isinstance(data, Tensor) and data.dtype is dtypes.bfloat16


def _number_type(number):
    if isinstance(number, complex):
        return np.complex128
    kind = (
        bool if isinstance(number, bool) else int if isinstance(number, int) else float
    )  # of a subclass too
    return dtypes.as_dtype(kind).np


def _plain(data):
    """Nested sequences with Tensors turned into arrays."""
    if isinstance(data, (list, tuple)):
        return [_plain(d) for d in data]
    return data.asnumpy() if isinstance(data, Tensor) else data


def _holds_arrays(data) -> bool:
    if isinstance(data, (list, tuple)):
        return any(_holds_arrays(d) for d in data)
    return isinstance(data, np.ndarray)


def _short(value) -> str:
    text = repr(value)
    return text if len(text) < 80 else text[:77] + "..."


def _from_array(array: np.ndarray, dtype: DType | None) -> Tensor:
    if dtype is None:
        return _C.from_array(array, None, False)
    if array.dtype.kind == "c" and not (dtype.is_complex or dtype.is_bool):
        array = array.real
    if dtype is dtypes.bfloat16:
        return _C.from_array(dtypes.to_bfloat16_bits(array.astype(np.float32)), dtype, False)
    if array.dtype != dtype.np:
        with np.errstate(all="ignore"):
            array = array.astype(dtype.np)
    return _C.from_array(array, dtype, False)


def _construct(input_data=None, dtype=None, shape=None, init=None, const_arg=False, device=None) -> Tensor:
    """Tensor(input_data=None, dtype=None, shape=None, init=None, const_arg=False, device=None)."""
    if dtype is not None and not isinstance(dtype, DType):
        raise errors.type_error("Tensor", f"dtype must be a mycelia dtype such as float32, but got {dtype!r}")
    if input_data is None:
        return _without_data(dtype, shape, init)
    if init is not None:
        raise errors.value_error("Tensor", "input_data and init cannot both be given")
    if shape is not None:
        raise errors.value_error(
            "Tensor", f"input_data has its own shape: shape must be None, but got {shape}"
        )
    if device == "meta":
        made = _construct(input_data, dtype)
        return _C.make_traced(None, made.dtype, made.shape)  # a type without memory
    if isinstance(input_data, Tensor):
        if dtype is None or input_data.dtype is dtype:
            return _copy(input_data)
        return cast(input_data, dtype=dtype)
    if isinstance(input_data, np.generic):
        input_data = np.asarray(input_data)
    if type(input_data) is SymInt:  # only a graph has them
        return cast(input_data, dtype=dtype or dtypes.as_dtype(type(input_data.hint)))
    if isinstance(input_data, (list, tuple)) and SymInt in map(type, input_data):
        whole = all(isinstance(v, int) for v in input_data)
        return constant(list(input_data), dtype or (dtypes.int64 if whole else dtypes.float32))
    if not isinstance(input_data, np.ndarray):
        if dtype is None and isinstance(input_data, (list, tuple)) and _all_bfloat16(input_data):
            dtype = dtypes.bfloat16
        input_data = _array_of(input_data, dtype)
    elif input_data.dtype.kind in "OUSVM":
        raise errors.type_error(
            "Tensor",
            f"initializing tensor by numpy array failed: its dtype {input_data.dtype} is of no numbers",
        )
    return _from_array(input_data, dtype)


def _copy(value: Tensor) -> Tensor:
    """The same values in memory of their own, without history."""
    if value.traced is None:
        return _C.from_array(value._bits(), value.dtype, False)
    return value.reshape(()) if getattr(value.traced, "is_number", False) else value._detach()


def _without_data(dtype, shape, init) -> Tensor:
    """A type without value (for `Cell.set_inputs`), or a tensor that `init` fills."""
    if dtype is None or (init is not None and shape is None):
        raise errors.type_error("Tensor", "without input_data, dtype must be given, and shape for an init")
    if shape is None:
        return _C.make_traced(None, dtype, (-2,))  # of any rank
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if init is None:
        return _C.make_traced(None, dtype, tuple(n if isinstance(n, int) else -1 for n in shape))
    result = _filled(init, shape, dtype)
    tensor_properties.marks(result)["init"] = init
    return result


def _filled(init, shape, dtype) -> Tensor:
    from mycelia.engine.tensors.initializer import initializer

    return initializer(init, shape, dtype)


def _holds_tensor(value: list | tuple) -> bool:
    return any(isinstance(v, Tensor) or (isinstance(v, list | tuple) and _holds_tensor(v)) for v in value)


def _operand(value: list | tuple) -> Tensor:
    """What a list or tuple beside an operator stands for; Tensors of one type in it keep their gradients."""
    if _holds_tensor(value):
        members = [_operand(v) if isinstance(v, list | tuple) else v for v in value]
        kinds = {(v.dtype, v.shape) if isinstance(v, Tensor) else None for v in members}
        if len(kinds) == 1 and None not in kinds:
            return ops.stack(members)
    return Tensor(value)


_C.set_hook("construct", _construct)
_C.set_hook("operand", _operand)
