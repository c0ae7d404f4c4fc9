"""Tensor and Parameter as users see them: text, pickles, and the ops behind the operators."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from mycelia.engine import _C, dispatch
from mycelia.engine.base import config, dtypes, errors, ignored
from mycelia.engine.base.dtypes import DType
from mycelia.engine.ops.late import ops
from mycelia.engine.tensors import text as tensor_text
from mycelia.engine.tensors.construct import _copy, _filled
from mycelia.engine.tensors.divided import require_open

if TYPE_CHECKING:
    from mycelia.engine.communication.share import GridShare, Share

Tensor = _C.Tensor
Tensor.__name__ = "Tensor"  # Python's own errors call it so, without the module
from_numpy = Tensor.from_numpy
config.on_change("max_device_memory", lambda size: _C.set_memory_limit(config.gigabytes(size)))


def is_tensor(obj) -> bool:
    """Whether `obj` is a Tensor; Parameters are."""
    return isinstance(obj, Tensor)


def tensor(input_data=None, dtype=None, shape=None, init=None, const_arg=False, device=None) -> Tensor:
    """A new Tensor; the function form of ``Tensor(...)``."""
    return Tensor(input_data, dtype, shape, init, const_arg, device)


def _rebuild_type(dtype: DType, shape: tuple) -> Tensor:
    """A type without a value, from a pickle: what `Cell.set_inputs` was given, say."""
    return _C.make_traced(None, dtype, shape)


def _rebuild(array: np.ndarray, dtype: DType) -> Tensor:
    return _C.from_array(array, dtype, False)


def _text(self) -> str:
    if self.traced is not None:
        return f"<traced Tensor {self.dtype}{list(self.shape)}>"
    if not self._has_value:
        value = "<uninitialized>"
        if -1 in self.shape:  # it never has one: it stands for tensors of any such shape
            value = " " if self.ndim == 1 else "\n"
        return f"Tensor(shape={list(self.shape)}, dtype={self.dtype}, value={value})"
    return tensor_text.plain(self.asnumpy(), self.dtype)


def _repr(self) -> str:
    """MindSpore's form: scalars with 6 digits, floating elements in scientific notation."""
    if self.traced is not None or not self._has_value:
        return _text(self)
    gap = " " if self.ndim < 2 else "\n"
    value = tensor_text.summary(self.asnumpy(), self.dtype)
    return f"Tensor(shape={list(self.shape)}, dtype={self.dtype}, value={gap}{value})"


def _concretize(self):
    require_open(self)
    raise errors.error(
        errors.CaptureError, "jit", "the value of a Tensor was needed while a graph is being captured",
        hint="values such as x.asnumpy(), x.item() or float(x) exist only when the graph runs; "
        "compute with ops instead",
    )  # fmt: skip


_unnamed_parameters = itertools.count(2)


class Parameter(Tensor):
    """A Tensor that a Cell owns and an optimizer updates.

    `name` may be None: the Cell that it is assigned to names it. `default_input`: Tensor, number, array or
    list.
    Errors: TypeError for another `default_input`, ValueError for a bool or a name that is no text.
    """

    stages: tuple[int, ...] = ()  # of a pipeline that use it, once a network was cut into stages
    elsewhere = False  # whether only other stages do: it has no value here
    share: Share | None = None  # of which it is a part, if it is one: a state of an optimizer that is divided
    in_use: GridShare | None = None  # the part that graphs make of it first, if that is another one
    divided = False  # whether it is a weight of which each process keeps a part, and Cells gather the whole
    own_part: Tensor | None = None  # that part, while the Parameter shows something else
    # What MindSpore's parallel modes and caches of embeddings ask for.
    layerwise_parallel = sliced = unique = cache_enable = parallel_optimizer_comm_recompute = False
    parallel_optimizer, comm_fusion, key, cache_shape = True, 1, -1, ()
    _is_optimizer_state = False  # as the optimizer that owns it says

    def __new__(cls, default_input=None, *args, **kwargs):
        return super().__new__(cls)

    @ignored.arguments(
        storage_format="elements lie in order of their indices",
        device="the device target says where it lies",
    )
    def __init__(
        self,
        default_input,
        name: str | None = None,
        requires_grad: bool = True,
        layerwise_parallel: bool = False,
        parallel_optimizer: bool = True,
        storage_format: str = "",
        device=None,
    ):
        self._assign(_first_value(default_input))
        self._is_parameter = True
        self._unnamed = name is None and not isinstance(default_input, Parameter)
        self.name = default_input.name if name is None and isinstance(default_input, Parameter) else name
        self.requires_grad = requires_grad
        self.layerwise_parallel = layerwise_parallel
        self.parallel_optimizer = parallel_optimizer
        self.storage_format = storage_format
        self.init_mode = None
        self.cache_shape = []

    @property
    def name(self) -> str:
        """The name under which files, optimizers and messages know it."""
        return self._name

    @name.setter
    def name(self, value: str | None):
        if value is None:
            value = f"Parameter#{next(_unnamed_parameters)}"
        elif not isinstance(value, str):
            raise errors.value_error(
                "Parameter", f"name must be a str or None, but got {type(value).__name__}"
            )
        self._name = value

    @property
    def requires_grad(self) -> bool:
        """Whether `trainable_params` lists it, and gradients flow to it.

        What an eager function computes while this is False has no gradient by the Parameter, and one that
        ends so gets zeros. Errors: TypeError for another value than a bool; ValueError for a change in a
        graph.
        """
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool):
        if not isinstance(value, bool):
            raise errors.type_error("Parameter", f"requires_grad must be a bool, but got {value!r}")
        if self.__dict__.get("_requires_grad", value) is not value:
            if _C.mode() & dispatch.TRACING:
                raise errors.value_error(
                    "Parameter",
                    f"requires_grad of '{self.name}' cannot change in a graph, it is compiled for one value",
                    hint="set it before the function is called",
                )
            if _C.tape_level():
                from mycelia.engine.autodiff.reverse import set_followed

                set_followed(self, value)
        self._requires_grad = value

    @property
    def param_info(self) -> Parameter:
        """Where the name and the marks of this Parameter are: itself."""
        return self

    @property
    def inited_param(self) -> None:
        """None: a Parameter is filled when it is made, there is no second one."""
        return None

    def set_data(self, data, slice_shape: bool = False) -> Parameter:
        """Give it the value and shape of `data`, a Tensor or a number; the dtype stays and the elements
        are cast.

        Errors: TypeError for anything else.
        """
        if slice_shape:
            ignored.tell("Parameter.set_data", "slice_shape", slice_shape, "Parameters are whole")
        if not isinstance(data, (Tensor, int, float)):
            raise errors.type_error(
                "Parameter.set_data",
                f"parameter '{self.name}' takes a Tensor, an int or a float, but got {type(data).__name__}",
            )
        if not isinstance(data, Tensor) or data.dtype is not self.dtype:
            data = Tensor(data, self.dtype)
        self._assign(data._detach())
        return self

    @ignored.arguments(layout="Parameters are whole", set_sliced="Parameters are whole")
    def init_data(self, layout=None, set_sliced: bool = False) -> Parameter:
        """The Parameter itself: values are set when it is made."""
        return self

    def add_pipeline_stage(self, stage: int) -> None:
        """Note that a stage of a pipeline uses it: without several devices there is one stage."""
        if not isinstance(stage, int) or stage < 0:
            raise errors.type_error("Parameter", f"stage must be an int of 0 or more, but got {stage!r}")

    def clone(self, init: str = "same") -> Parameter:
        """A new Parameter of this value, or filled by `init` (an initializer name, number or Tensor)."""
        if isinstance(init, str) and init == "same":
            value = self._detach()
        elif isinstance(init, Tensor):
            value = init
        else:
            value = _filled(init, self.shape, self.dtype)
        made = type(self)(value, name=self.name, requires_grad=self.requires_grad)
        made._unnamed = self._unnamed
        made.layerwise_parallel = self.layerwise_parallel
        made.parallel_optimizer = self.parallel_optimizer
        return made

    def copy(self) -> Parameter:
        """A new Parameter with the same values and the same name."""
        return self.clone()

    def register_hook(self, hook_fn):
        """Call ``hook_fn(gradient)`` when the gradient is known, see `Tensor.register_hook`."""
        return super().register_hook(hook_fn)

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


def _first_value(given) -> Tensor:
    """The Tensor that a Parameter starts with, in memory of its own. Python ints are int32, other than in
    Tensor."""
    if isinstance(given, bool):
        raise errors.value_error("Parameter", "default_input must not be a bool")
    if isinstance(given, Tensor):
        return _copy(given) if given._has_value else given._detach()
    if isinstance(given, (int, float)):
        return Tensor(given, dtypes.int32 if isinstance(given, int) else dtypes.float32)
    if not isinstance(given, (list, np.ndarray)):
        raise errors.type_error(
            "Parameter",
            f"default_input must be a Tensor, int, float, array or list, but got {type(given).__name__}",
        )
    return Tensor(given)


def _rebuild_parameter(bits, dtype, name, requires_grad, unnamed) -> Parameter:
    made = Parameter(_C.from_array(bits, dtype, False), name, requires_grad)
    made._unnamed = unnamed
    return made


class ParameterTuple(tuple):
    """A tuple of Parameters, e.g. the weights that `grad` differentiates."""

    def __new__(cls, iterable):
        items = tuple(iterable)
        names: dict[str, Parameter] = {}
        for p in items:
            if not isinstance(p, Parameter):
                raise errors.type_error(
                    "ParameterTuple", f"every member must be a Parameter, but got {type(p).__name__}"
                )
            if names.setdefault(p.name, p) is not p:
                raise errors.value_error(
                    "ParameterTuple", f"two members are called alike: its name '{p.name}' already exists."
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
    "gt": "greater", "ge": "greater_equal", "neg": "neg", "abs": "abs", "invert": "logical_not",
}  # fmt: skip


def _install_operators() -> None:
    from mycelia.engine.ops.define import registry
    from mycelia.engine.tensors import indexing  # noqa: F401  (indexing sets the hooks of x[key])

    for operator, name in _OPERATORS.items():
        found = registry.get(name) or getattr(ops, name, None)
        if found is not None:
            _C.set_operator(operator, found)


_C.set_hook("repr", _repr)
_C.set_hook("str", _text)
_C.set_hook("concretize", _concretize)
_install_operators()


__all__ = ["Parameter", "ParameterTuple", "Tensor", "from_numpy", "is_tensor", "tensor"]
