# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from mycelia.engine.autodiff.custom_rule import custom_vjp as custom_vjp
from mycelia.ops.composite import Partial as Partial
from mycelia.ops.operations import (
    Depend as Depend, MoveTo as MoveTo, StopGradient as StopGradient, UpdateState as UpdateState,
)
from mycelia.ops.primitive import Primitive as Primitive, prim_attr_register as prim_attr_register
from mycelia.ops.primitives.define import primitive as primitive, register as register
from mycelia.ops.primitives.effect_ops import (
    HookBackward as HookBackward, InsertGradientOf as InsertGradientOf,
)

__all__ = [
    "Depend", "HookBackward", "InsertGradientOf", "MoveTo", "Partial", "Primitive", "StopGradient",
    "Tensor", "UpdateState", "custom_vjp", "prim_attr_register", "primitive", "register",
]
