# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from mycelia.engine.autodiff.transforms import custom_vjp as custom_vjp
from mycelia.ops.composite import Partial as Partial
from mycelia.ops.operations import (
    Depend as Depend, DtypeToEnum as DtypeToEnum, ListToTuple as ListToTuple, MoveTo as MoveTo,
    Reusing as Reusing, StopGradient as StopGradient, TensorToTuple as TensorToTuple,
    TupleToList as TupleToList, UpdateState as UpdateState,
)
from mycelia.ops.operations.custom_ops import call_python as call_python
from mycelia.ops.primitive import Primitive as Primitive, prim_attr_register as prim_attr_register
from mycelia.ops.primitives.checks import type_id as type_id
from mycelia.ops.primitives.define import primitive as primitive, register as register, table as table
from mycelia.ops.primitives.other_ops import (
    HookBackward as HookBackward, InsertGradientOf as InsertGradientOf, Morph as Morph, PyFunc as PyFunc,
)

__all__ = [
    "Depend", "DtypeToEnum", "HookBackward", "InsertGradientOf", "ListToTuple", "Morph", "MoveTo",
    "Partial", "Primitive", "PyFunc", "Reusing", "StopGradient", "Tensor", "TensorToTuple", "TupleToList",
    "UpdateState", "call_python", "custom_vjp", "prim_attr_register", "primitive", "register", "table",
    "type_id",
]
