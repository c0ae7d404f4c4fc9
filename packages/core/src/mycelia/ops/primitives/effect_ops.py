"""Order of effects, gradients that are changed or seen on their way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycelia import ops
from mycelia.engine import _C, dispatch
from mycelia.engine.autodiff.custom_rule import custom_vjp
from mycelia.engine.base import errors
from mycelia.engine.tensors.tensor import Tensor
from mycelia.ops.composite import Partial
from mycelia.ops.primitive import Primitive, prim_attr_register
from mycelia.ops.primitives.define import primitive, register


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
