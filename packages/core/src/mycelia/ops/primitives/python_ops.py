"""Primitives around Python: functions of the user, numbers, tuples and lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycelia import ops
from mycelia.engine.autodiff.custom_rule import custom_vjp
from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.control_flow.python_call import call_python
from mycelia.engine.tensors.tensor import Tensor
from mycelia.ops.primitive import Primitive
from mycelia.ops.primitives.checks import type_id
from mycelia.ops.primitives.define import primitive, register, table


@primitive
def Reusing(x):
    """The tensor itself."""
    return x


@primitive
def DtypeToEnum(op_name, arg_name, dtype):
    """The number of a dtype."""
    return type_id(dtype)


@register
class PyFunc(Primitive):
    """Call ``fn(*arrays)`` on NumPy arrays; the results, a tuple, have the given dtypes and shapes."""

    def __init__(
        self, fn: Callable, in_types: list, in_shapes: list, out_types: list, out_shapes: list,
        stateful: bool = True,
    ):  # fmt: skip
        del stateful  # calls are neither joined nor left out
        super().__init__(type(self).__name__)
        declared = dict(in_types=in_types, in_shapes=in_shapes, out_types=out_types, out_shapes=out_shapes)
        for name, value in declared.items():
            if not isinstance(value, (list, tuple)):
                raise errors.type_error(
                    "PyFunc", f"'{name}' must be a list or tuple, but got {type(value).__name__}"
                )
            self.add_prim_attr(name, value)
        self.fn = fn
        self._results = tuple((dtypes.as_dtype(t), tuple(s)) for t, s in zip(out_types, out_shapes))

    def __call__(self, *inputs: Tensor) -> tuple:
        return call_python(self.fn, inputs, self._results)


@register
class Morph(Primitive):
    """A function of the user's as one op; `bprop_fn` makes its gradient function of the inputs' own."""

    captured_call = True

    def __init__(self, fn: Callable, infer_shape: Any, infer_dtype: Any, bprop_fn: Callable | None = None):
        del infer_shape, infer_dtype  # running it shows both
        super().__init__(type(self).__name__)
        self.add_prim_attr("__metamorphosis__", fn)
        self.fn, self.bprop_fn = fn, bprop_fn

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        if self.bprop_fn is None:
            return self.fn(*inputs, **named)
        return custom_vjp(self.fn, self.bprop_fn)(*inputs, **named)


table(ops, {
    "ScalarCast": "scalar_cast", "ScalarToArray": "scalar_to_array", "ScalarToTensor": "scalar_to_tensor",
    "TupleToArray": "tuple_to_array", "Eps": "eps", "Coalesce": "coalesce",
})  # fmt: skip


@primitive
def ListToTuple(x):
    """The members of a list or tuple as a tuple."""
    return tuple(x)


@primitive
def TupleToList(x):
    """The members of a list or tuple as a list."""
    return list(x)


@primitive
def TensorToTuple(x):
    """The elements of a vector as Python numbers."""
    return tuple(x.asnumpy().tolist())
