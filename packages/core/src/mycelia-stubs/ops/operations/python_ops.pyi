# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor
from mycelia.engine.autodiff.custom_rule import custom_vjp as custom_vjp
from mycelia.ops.operations import (
    DtypeToEnum as DtypeToEnum, ListToTuple as ListToTuple, Reusing as Reusing,
    TensorToTuple as TensorToTuple, TupleToList as TupleToList,
)
from mycelia.ops.operations.custom_ops import call_python as call_python
from mycelia.ops.primitive import Primitive as Primitive
from mycelia.ops.primitives.checks import type_id as type_id
from mycelia.ops.primitives.define import primitive as primitive, register as register, table as table
from mycelia.ops.primitives.python_ops import Morph as Morph, PyFunc as PyFunc

__all__ = [
    "DtypeToEnum", "ListToTuple", "Morph", "Primitive", "PyFunc", "Reusing", "Tensor", "TensorToTuple",
    "TupleToList", "call_python", "custom_vjp", "primitive", "register", "table", "type_id",
]
