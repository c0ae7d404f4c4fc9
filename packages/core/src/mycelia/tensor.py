"""Tensor and Parameter as users see them: construction, printing, and the ops behind the operators."""

from __future__ import annotations

import numpy as np

from mycelia import _C, dispatch, dtypes, errors, tensor_text  # noqa: F401  (dispatch registers its callbacks)
from mycelia._methods import attach
from mycelia.dtypes import DType, as_dtype

Tensor = _C.Tensor
from_numpy = Tensor.from_numpy
__all__ = ["Parameter", "ParameterTuple", "Tensor", "attach", "from_numpy", "is_tensor", "tensor"]


def is_tensor(obj) -> bool:
    """Whether `obj` is a Tensor; Parameters are."""
    return isinstance(obj, Tensor)


def _array_of(data) -> np.ndarray:
    """A NumPy array with MindSpore's defaults: Python ints are int64, Python floats float32."""
    if isinstance(data, (bool, int, float, complex)):
        try:
            return np.array(
                data, np.complex128 if isinstance(data, complex) else dtypes.as_dtype(type(data)).np
            )
        except OverflowError:
            raise errors.value_error("Tensor", f"input_data {data} does not fit into int64") from None
    if isinstance(data, (list, tuple)):
        data = _plain(data)
        try:
            array = np.array(data)
        except ValueError as e:
            raise errors.value_error("Tensor", f"input_data must be a regular nested list: {e}") from None
        if array.dtype == np.float64 and not _holds_numpy(data):
            array = array.astype(np.float32)
        if array.size == 0 and array.dtype == np.float64:
            array = array.astype(np.float32)
        if array.dtype.kind in "OUS":
            raise errors.type_error("Tensor", f"input_data must hold numbers, but got {_short(data)}")
        return array
    raise errors.type_error(
        "Tensor",
        f"input_data must be a Tensor, a number, a list, a tuple or a numpy.ndarray, "
        f"but got {type(data).__name__}",
    )


def _plain(data):
    """Nested sequences with Tensors turned into arrays."""
    if isinstance(data, (list, tuple)):
        return [_plain(d) for d in data]
    return data.asnumpy() if isinstance(data, Tensor) else data


def _holds_numpy(data) -> bool:
    if isinstance(data, (list, tuple)):
        return any(_holds_numpy(d) for d in data)
    return isinstance(data, (np.ndarray, np.generic))


def _short(value) -> str:
    text = repr(value)
    return text if len(text) < 80 else text[:77] + "..."


def _from_array(array: np.ndarray, dtype: DType | None) -> Tensor:
    if dtype is None:
        return _C.from_array(array, None, False)
    if dtype is dtypes.bfloat16:
        return _C.from_array(dtypes.to_bfloat16_bits(array.astype(np.float32)), dtype, False)
    if array.dtype != dtype.np:
        with np.errstate(all="ignore"):
            array = array.astype(dtype.np)
    return _C.from_array(array, dtype, False)


def _construct(input_data=None, dtype=None, shape=None, init=None, const_arg=False, device=None) -> Tensor:
    """Tensor(input_data=None, dtype=None, shape=None, init=None, const_arg=False, device=None)."""
    dtype = None if dtype is None else as_dtype(dtype)
    if input_data is None:
        return _lazy(dtype, shape, init)
    if init is not None:
        raise errors.value_error("Tensor", "input_data and init cannot both be given")
    if isinstance(input_data, Tensor):
        if dtype is None or input_data.dtype is dtype:
            return _copy(input_data)
        from mycelia.ops.cast import cast

        return cast(input_data, dtype=dtype)
    if isinstance(input_data, np.generic):
        input_data = np.asarray(input_data)
    if not isinstance(input_data, np.ndarray):
        input_data = _array_of(input_data)
    elif input_data.dtype.kind in "OUSV":
        raise errors.type_error(
            "Tensor", f"input_data must hold numbers, but its dtype is {input_data.dtype}"
        )
    result = _from_array(input_data, dtype)
    if shape is not None and tuple(np.atleast_1d(shape)) != result.shape:
        raise errors.shape_error(
            "Tensor", f"shape {shape} differs from the shape {list(result.shape)} of input_data"
        )
    return result


def _copy(value: Tensor) -> Tensor:
    """The same values in memory of their own, without history."""
    return value._detach() if value.traced is not None else _C.from_array(value._bits(), value.dtype, False)


def _lazy(dtype, shape, init) -> Tensor:
    if shape is None or dtype is None:
        raise errors.value_error("Tensor", "without input_data, both dtype and shape must be given")
    shape = (shape,) if isinstance(shape, int) else tuple(-1 if s is None else int(s) for s in shape)
    if init is None:
        return _C.make_traced(None, dtype, shape)
    result = _C.empty(dtype, shape)
    init(result.asnumpy()) if callable(init) else None
    return result


def tensor(input_data=None, dtype=None, shape=None, init=None, const_arg=False) -> Tensor:
    """A new Tensor; the function form of ``Tensor(...)``."""
    return Tensor(input_data, dtype, shape, init, const_arg)


def _rebuild(array: np.ndarray, dtype: DType) -> Tensor:
    return _C.from_array(array, dtype, False)


def _text(self) -> str:
    if self.traced is not None:
        return f"<traced Tensor {self.dtype}{list(self.shape)}>"
    if not self._has_value:
        return f"Tensor(shape={list(self.shape)}, dtype={self.dtype}, value=<uninitialized>)"
    return tensor_text.plain(self.asnumpy(), self.dtype)


def _repr(self) -> str:
    """MindSpore's form: scalars with 6 digits, floating elements in scientific notation."""
    if self.traced is not None or not self._has_value:
        return _text(self)
    gap = " " if self.ndim < 2 else "\n"
    value = tensor_text.summary(self.asnumpy(), self.dtype)
    return f"Tensor(shape={list(self.shape)}, dtype={self.dtype}, value={gap}{value})"


def _concretize(self):
    raise errors.error(
        errors.CaptureError, "jit", "the value of a Tensor was needed while a graph is being captured",
        hint="values such as x.asnumpy(), x.item() or float(x) exist only when the graph runs; "
        "compute with ops instead",
    )  # fmt: skip


class Parameter(Tensor):
    """A Tensor that a Cell owns and an optimizer updates.

    `name` may be None: the Cell that it is assigned to names it. `default_input`:
    Tensor, array, number or list.
    """

    def __new__(cls, default_input=None, *args, **kwargs):
        return super().__new__(cls)

    def __init__(
        self,
        default_input=None,
        name: str | None = None,
        requires_grad: bool = True,
        layerwise_parallel: bool = False,
        parallel_optimizer: bool = True,
        storage_format: str = "",
        device=None,
    ):
        if default_input is None:
            raise errors.type_error(
                "Parameter", "default_input must be a Tensor, array or number, but got None"
            )
        if name is not None and not isinstance(name, str):
            raise errors.type_error("Parameter", f"name must be a str or None, but got {type(name).__name__}")
        value = default_input if isinstance(default_input, Tensor) else Tensor(default_input)
        source = value._detach()
        if isinstance(default_input, Tensor) and value._has_value:
            source = _copy(value)
        self._assign(source)
        self._is_parameter = True
        self.name = "Parameter" if name is None else name
        self._unnamed = name is None
        self.requires_grad = requires_grad
        self.layerwise_parallel = layerwise_parallel
        self.parallel_optimizer = parallel_optimizer
        self.storage_format = storage_format
        self.init_mode = None

    @property
    def requires_grad(self) -> bool:
        """Whether `trainable_params` lists it."""
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool):
        if not isinstance(value, bool):
            raise errors.type_error("Parameter", f"requires_grad must be a bool, but got {value!r}")
        self._requires_grad = value

    @property
    def data(self) -> Tensor:
        """The value: this Parameter itself, as in MindSpore."""
        return self

    @property
    def inited_param(self):
        return self if self._has_value else None

    def set_data(self, data, slice_shape: bool = False) -> Parameter:
        """Overwrite the value. Shape must agree (unless `slice_shape`);
        the dtype is cast where that loses no kind.

        Raises ValueError for another shape, TypeError for an incompatible dtype.
        """
        if not isinstance(data, Tensor):
            data = Tensor(data)
        if data.shape != self.shape and not slice_shape:
            raise errors.shape_error(
                "Parameter.set_data",
                f"parameter '{self.name}' has shape {list(self.shape)}, but the data has {list(data.shape)}",
            )
        if data.dtype is not self.dtype:
            if self.dtype.is_integer and data.dtype.is_floating:
                raise errors.type_error(
                    "Parameter.set_data",
                    f"parameter '{self.name}' is {self.dtype}, but the data is {data.dtype}",
                )
            data = Tensor(data, self.dtype)
        elif isinstance(data, Tensor):
            data = data._detach()
        self._assign(data)
        return self

    def init_data(self, layout=None, set_sliced: bool = False) -> Parameter:
        """The Parameter itself: values are set when it is made."""
        return self

    def clone(self, init: str = "same") -> Parameter:
        """A new Parameter of this value, or filled by `init` (an initializer name, number or Tensor)."""
        if isinstance(init, str) and init == "same":
            value = self._detach()
        elif isinstance(init, Tensor):
            value = init
        else:
            from mycelia.common.initializer import initializer

            value = initializer(init, self.shape, self.dtype)
        made = type(self)(value, name=self.name, requires_grad=self.requires_grad)
        made._unnamed = self._unnamed
        made.layerwise_parallel = self.layerwise_parallel
        made.parallel_optimizer = self.parallel_optimizer
        return made

    def value(self) -> Tensor:
        """The value as a Tensor of its own."""
        return self._detach()

    def __repr__(self) -> str:
        return (
            f"Parameter (name={self.name}, shape={self.shape}, dtype={self.dtype}, "
            f"requires_grad={self.requires_grad})"
        )

    __str__ = __repr__

    def __deepcopy__(self, memo):
        made = self.clone()
        memo[id(self)] = made
        return made

    def __reduce__(self):
        return _rebuild_parameter, (
            np.array(self._bits()),
            self.dtype,
            self.name,
            self.requires_grad,
            self._unnamed,
        )


def _rebuild_parameter(bits, dtype, name, requires_grad, unnamed) -> Parameter:
    made = Parameter(_C.from_array(bits, dtype, False), name, requires_grad)
    made._unnamed = unnamed
    return made


class ParameterTuple(tuple):
    """A tuple of Parameters, e.g. the weights that `grad` differentiates."""

    def __new__(cls, iterable):
        items = tuple(iterable)
        for p in items:
            if not isinstance(p, Parameter):
                raise errors.type_error(
                    "ParameterTuple", f"every member must be a Parameter, but got {type(p).__name__}"
                )
        return super().__new__(cls, items)

    def clone(self, prefix: str, init: str = "same") -> ParameterTuple:
        """Clones whose names get `prefix.` in front."""
        made = []
        for p in self:
            c = p.clone(init)
            c.name = f"{prefix}.{p.name}"
            c._unnamed = False
            made.append(c)
        return ParameterTuple(made)


#: Tensor operator -> op or function of `mycelia.ops`.
_OPERATORS = {
    "add": "add", "sub": "sub", "mul": "mul", "div": "div", "floordiv": "floor_div", "mod": "floor_mod",
    "pow": "pow",
    "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift", "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal",
    "gt": "greater", "ge": "greater_equal", "neg": "neg", "abs": "abs", "invert": "invert",
}  # fmt: skip


def _install_operators() -> None:
    from mycelia import indexing, ops  # noqa: F401  (indexing sets the hooks of x[key])
    from mycelia.ops.define import registry

    for operator, name in _OPERATORS.items():
        found = registry.get(name) or getattr(ops, name, None)
        if found is not None:
            _C.set_operator(operator, found)


_C.set_hook("construct", _construct)
_C.set_hook("repr", _repr)
_C.set_hook("str", _text)
_C.set_hook("concretize", _concretize)
_install_operators()
