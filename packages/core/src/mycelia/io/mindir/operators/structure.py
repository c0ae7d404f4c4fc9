"""Tuples, numbers, shapes as values, assignments: operators that are no computation on tensors."""

from __future__ import annotations

import inspect
import math
import operator as py
from collections.abc import Callable
from typing import Any

from mycelia.engine import ops
from mycelia.engine.ops.control_flow.debug import _print_lines
from mycelia.engine.tensors.tensor import Parameter, Tensor
from mycelia.io.mindir.operators.arguments import as_dtype, number
from mycelia.io.mindir.operators.table import operator, python, writes

# ---- structure ---------------------------------------------------------------------------------


@operator
def MakeTuple(*items):
    return items


@operator
def MakeList(*items):
    return list(items)


@operator
def TupleGetItem(sequence, index):
    return sequence[int(index)]


@operator
def make_dict(keys, values):
    return dict(zip(keys, values))


@operator
def Identity(x):
    return x.value() if isinstance(x, Parameter) else x


@operator
def Shape(x):
    return tuple(x.shape)


@operator
def TensorShape(x):
    return ops.dyn_shape(x)


operator(TensorShape, "DynamicShape")


@operator
def array_len(x):
    return x.shape[0]


@operator
def TensorToScalar(x):
    return x.item()


@operator
def ScalarToTensor(x, dtype=None):
    return Tensor(x, as_dtype(dtype))


@operator
def TupleToTensor(items, dtype=None):
    return Tensor([number(v) for v in items], as_dtype(dtype))


operator(TupleToTensor, "ListToTensor")


@operator
def TensorToTuple(x):
    return tuple(x.asnumpy().tolist())


@operator
def TupleToList(items):
    return list(items)


@operator
def ListToTuple(items):
    return tuple(items)


@operator
def ScalarCast(x, dtype):
    wanted = as_dtype(dtype)
    return bool(x) if wanted.is_bool else float(x) if wanted.is_floating else int(x)


@operator
def SequenceLen(items):
    return len(items)


operator(SequenceLen, "sequence_len")


python(
    ScalarAdd=py.add, ScalarSub=py.sub, ScalarMul=py.mul, ScalarDiv=py.truediv, ScalarFloorDiv=py.floordiv,
    ScalarMod=py.mod, ScalarPow=py.pow, ScalarEq=py.eq, ScalarGe=py.ge, ScalarGt=py.gt, ScalarLe=py.le,
    ScalarLt=py.lt, ScalarMax=max, ScalarMin=min, ScalarLog=math.log, ScalarUadd=py.pos, ScalarUsub=py.neg,
    ScalarBool=bool, BoolNot=py.not_, bool_not=py.not_, scalar_add=py.add, scalar_sub=py.sub,
    scalar_mul=py.mul, scalar_div=py.truediv, scalar_floordiv=py.floordiv, scalar_mod=py.mod,
    scalar_eq=py.eq, scalar_ge=py.ge, scalar_gt=py.gt, scalar_le=py.le, scalar_lt=py.lt, scalar_uadd=py.pos,
    scalar_usub=py.neg,
)  # fmt: skip

# ---- effects -----------------------------------------------------------------------------------


def _target(variable: Any, operator_name: str) -> Parameter:
    if not isinstance(variable, Tensor):
        raise TypeError(f"{operator_name} needs a parameter, but got {type(variable).__name__}")
    return variable


@writes
def Assign(variable, value):
    return _target(variable, "Assign").set_data(value)


@writes
def AssignAdd(variable, value):
    return _target(variable, "AssignAdd").set_data(ops.add(variable.value(), value))


@writes
def AssignSub(variable, value):
    return _target(variable, "AssignSub").set_data(ops.sub(variable.value(), value))


def _in_place(name: str, function: Callable) -> None:
    """An operator that overwrites its first input: parameters change, other tensors stay as they are."""

    def run(x, *arguments):
        value = ops.cast(function(x, *arguments), x.dtype)
        return x.set_data(value) if isinstance(x, Parameter) else value

    parameters = inspect.signature(function).parameters
    run.__signature__ = inspect.Signature(list(parameters.values()))
    operator(run, name, effect=True)


_in_place("InplaceAddExt", lambda x, y, alpha=1: ops.add(x, y if alpha == 1 else ops.mul(y, alpha)))
_in_place("InplaceAddsExt", lambda x, y, alpha=1: ops.add(x, y * alpha))
_in_place("InplaceSubExt", lambda x, y, alpha=1: ops.sub(x, y if alpha == 1 else ops.mul(y, alpha)))
_in_place("InplaceSubScalar", lambda x, y, alpha=1: ops.sub(x, y * alpha))
_in_place("InplaceMul", lambda x, y: ops.mul(x, y))
_in_place("InplaceMuls", lambda x, y: ops.mul(x, y))
_in_place("InplaceDiv", lambda x, y: ops.div(x, y))
_in_place("InplaceDivs", lambda x, y: ops.div(x, y))
_in_place("InplaceFloorDivide", lambda x, y: ops.floor_divide(x, y))
_in_place("InplaceFloorDivides", lambda x, y: ops.floor_divide(x, y))
_in_place("InplaceCopy", lambda x, y, non_blocking=False: ops.broadcast_to(y, x.shape))
_in_place("InplaceZero", lambda x: ops.zeros_like(x))
_in_place("InplaceReLU", lambda x: ops.relu(x))


@writes
def Print(*items):
    tensors = [item for item in items if isinstance(item, Tensor)]
    numbers = iter(range(len(tensors)))
    _print_lines(tensors, pieces=tuple(next(numbers) if isinstance(i, Tensor) else str(i) for i in items))
    return 0


def _summary(*items):
    """Summaries are for training; a loaded model only keeps their place."""
    return items[-1]


for _name in ("ScalarSummary", "ImageSummary", "TensorSummary", "HistogramSummary"):
    operator(_summary, _name)
