"""Ops of graphs whose sizes are open: what is computed from the sizes of tensors while the graph runs.

`size` and the attributes hold formulas (`ir/symint.py`); `places` gives, for each of the last tensors, the
symbol that stands for one of its sizes and the axis.
"""

import numpy as np

from mycelia.engine.base import dtypes
from mycelia.engine.ir.graph import group_inputs
from mycelia.engine.ir.sizes import with_symbols
from mycelia.engine.ir.symint import SymInt
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops.define import op

__all__: list[str] = []


def _known(tensors, places) -> dict:
    return {symbol: x.shape[axis] for x, (symbol, axis) in zip(tensors, places)}


@op(name="size_value", nondiff=True)
def size_value(inputs: "tensors", *, size: "any", places: "any"):
    """The number `size`, which follows from sizes of the inputs.

    Shapes: any -> [].  dtypes: any -> int64, or float32 for a number with a fraction.
    """
    value = with_symbols(size, _known(inputs, places))
    return np.array(value, np.float32 if isinstance(value, float) else np.int64)


@size_value.infer
def size_value(inputs, *, size, places):
    hint = size.hint if type(size) is SymInt else size
    return TensorType(dtypes.float32 if isinstance(hint, float) else dtypes.int64, ())


@op(name="sized", outputs=None)
def sized(inputs: "tensors", *, op: "any", attrs: "any", places: "any"):
    """``op(*inputs, **attrs)`` without the last ``len(places)`` inputs, from whose sizes numbers in `attrs`
    follow.
    """
    raise AssertionError("it is always decomposed into the op that it holds")


@sized.infer
def sized(inputs, *, op, attrs, places):
    count = len(inputs) - len(places)
    given = with_symbols(attrs, _known(inputs[count:], places))
    return op.definition.infer_types(tuple(group_inputs(op, inputs[:count])), given)


@sized.decompose
def sized(inputs, *, op, attrs, places):
    count = len(inputs) - len(places)
    given = with_symbols(attrs, _known(inputs[count:], places))
    result = op(*group_inputs(op, inputs[:count]), *(given[a.name] for a in op.definition.attrs))
    return result if isinstance(result, tuple) else (result,)
