"""Order of effects, gradients that are changed on their way, functions of the user's in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycelia import ops
from mycelia.engine import _C, dispatch
from mycelia.engine.autodiff.transforms import custom_vjp
from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.control_flow.python_call import call_python
from mycelia.engine.tensors.tensor import Tensor
from mycelia.ops.composite import Partial
from mycelia.ops.primitive import Primitive, prim_attr_register
from mycelia.ops.primitives.checks import type_id
from mycelia.ops.primitives.define import primitive, register, table


@primitive(extra={"side_effect_propagate": 1})
def Depend(value, expr):
    """`value`, after `expr` was computed."""
    return value


@primitive
def UpdateState(value, *expressions):
    """`value`, after the expressions were computed."""
    return value


@primitive
def StopGradient(x):
    """`x`, through which no gradient flows."""
    return ops.stop_gradient(x)


register(Partial)


@primitive
def MoveTo(input, to="CPU", blocking=True):
    """A copy of `input` in the memory of a device, "CPU" or that of a backend."""
    return ops.move_to(input, to, blocking)


@primitive
def Reusing(x):
    """The tensor itself."""
    return x


@primitive
def DtypeToEnum(op_name, arg_name, dtype):
    """The number of a dtype."""
    return type_id(dtype)


# ---- gradients on their way ------------------------------------------------------------------------------


def _same(*tensors):
    """New tensors of the same values: they carry a node of their own."""
    found = tuple(ops.reshape(t, t.shape) for t in tensors)
    return found[0] if len(found) == 1 else found


@register
class InsertGradientOf(Primitive):
    """The input itself; on the way back its gradient becomes ``f(gradient)``."""

    @prim_attr_register
    def __init__(self, f: Callable):
        self.add_prim_attr("side_effect_backprop", True)
        self.add_prim_attr("side_effect_backprop_mem", True)

    def __call__(self, x: Tensor) -> Tensor:
        return custom_vjp(_same, lambda x, out, ct: self.f(ct))(x)


@register
class HookBackward(Primitive):
    """The inputs themselves; on the way back ``hook_fn(gradients)`` sees their gradients, a tuple, and may
    return others. Graphs leave the hook out.
    """

    def __init__(self, hook_fn: Callable, cell_id: str = ""):
        if not callable(hook_fn):
            raise errors.type_error(
                "HookBackward", f"expected a callable hook function, but got {type(hook_fn).__name__}"
            )
        super().__init__(type(self).__name__)
        self.add_prim_attr("cell_id", cell_id)
        self.hook_fn = hook_fn

    def __call__(self, *inputs: Tensor) -> Any:
        if _C.mode() & dispatch.TRACING:
            return inputs[0] if len(inputs) == 1 else inputs

        def rule(*args):
            gradients = args[len(inputs) + 1]
            gradients = gradients if isinstance(gradients, tuple) else (gradients,)
            changed = self.hook_fn(gradients)
            if changed is None:
                changed = gradients
            if not isinstance(changed, tuple) or len(changed) != len(gradients):
                raise errors.type_error(
                    "HookBackward", f"the hook must return a tuple of {len(gradients)} gradients or None"
                )
            return changed if len(inputs) > 1 else changed[0]

        return custom_vjp(_same, rule)(*inputs)


# ---- functions in Python ---------------------------------------------------------------------------------


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


# ---- Python values ---------------------------------------------------------------------------------------

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
