"""Rules of sizes that are left open (capture/open_sizes.py): Shape, its elements, operators on numbers."""

from __future__ import annotations

import math
import operator

from mycelia.engine.base import dtypes
from mycelia.engine.ir import Node
from mycelia.engine.ir.graph import group_inputs
from mycelia.engine.ir.sizes import with_symbols
from mycelia.io.compositions import traced
from mycelia.io.mindir.rules.table import find, rule
from mycelia.io.mindir.values import id_of_dtype

# What a formula applies -> MindSpore's operator, and its further arguments.
SCALAR_OPERATORS = {
    operator.add: ("ScalarAdd",), operator.sub: ("ScalarSub",), operator.mul: ("ScalarMul",),
    operator.floordiv: ("ScalarFloorDiv",), operator.truediv: ("ScalarDiv",), operator.mod: ("ScalarMod",),
    operator.pow: ("ScalarPow",), min: ("ScalarMin",), max: ("ScalarMax",),
    math.log: ("ScalarLog",), float: ("ScalarCast", id_of_dtype(dtypes.float32)),
    math.trunc: ("ScalarCast", id_of_dtype(dtypes.int64)),
}  # fmt: skip


@rule("size_value")
def _size_value(w, node, inputs):
    w.symbols = {symbol: (x, axis) for x, (symbol, axis) in zip(inputs, node.attrs["places"])}
    return w.scalar(node.attrs["size"])


@rule("sized")
def _sized(w, node, inputs):
    op, attrs, places = (node.attrs[name] for name in ("op", "attrs", "places"))
    count = len(inputs) - len(places)
    inner = Node(op, node.inputs[:count], attrs, [v.type for v in node.outputs], node.location)
    if find(op) is not None or op.definition.decomposition is None:
        w.symbols = {symbol: (x, axis) for x, (symbol, axis) in zip(inputs[count:], places)}
        return w.applied(inner, inputs[:count])

    def composed(*tensors):
        known = {symbol: x.shape[axis] for x, (symbol, axis) in zip(tensors[count:], places)}
        arguments = group_inputs(op, tensors[:count])
        return op.definition.decomposition(*arguments, **with_symbols(attrs, known))

    return w.inline(traced(op.name, composed, [v and v.type for v in node.inputs]), inputs)
