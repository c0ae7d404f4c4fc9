"""Algebraic identities that hold exactly, bit for bit, for every input (NaN stays NaN).

Two lists: `RULES` for graphs that may be differentiated, whose gradients stay the same bit for bit as well,
and `DEVICE_RULES` for lowered ones, which look closer at sizes or change what only gradients see:
``maximum(x, x)`` is x, but at NaN its gradient is twice that of x. What would round otherwise, or tell -0.0
from 0.0, is not here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mycelia.engine.base import dtypes
from mycelia.engine.ir.graph import Builder, Graph, Node, Value
from mycelia.engine.ir.rewrite import Any, Constant, Rule, Use, rewrite, rule
from mycelia.engine.ops.define import find, registry
from mycelia.engine.tensors.tensor import Tensor

x, y = Any("x"), Any("y")
one = Constant("one", 1)


def _kept(value: Value, node: Node) -> Value | None:
    """`value` in the place of `node` if it has the same type."""
    return value if value.type == node.outputs[0].type else None


def _is(op: str, *operands: Any | Use) -> Rule:
    """A rule: this expression is its operand x."""

    @rule(Use(op, *operands, node="node"))
    def same(build: Builder, x: Value, node: Node) -> Value | None:
        return _kept(x, node)

    return same


# ---- neutral elements and repetition -----------------------------------------------------------------------


def _is_zero(value: Value, sign: float) -> bool:
    """All elements are zero, of this sign if they are floating."""
    if not value.is_constant or value.type.size == 0 or value.type.dtype.is_complex:
        return False
    array = value.constant.asnumpy()
    if (array != 0).any():
        return False
    return not value.type.dtype.is_floating or bool((np.copysign(1.0, array) == sign).all())


# x + 0.0 is no identity: it makes 0.0 of -0.0.
plus_zero = Any("zero", lambda v: _is_zero(v, 1.0))
minus_zero = Any("zero", lambda v: _is_zero(v, -1.0))

_NEUTRAL = [
    _is("mul", x, one), _is("mul", one, x), _is("div", x, one), _is("pow", x, one),
    _is("sub", x, plus_zero), _is("add", x, minus_zero), _is("add", minus_zero, x),
    _is("neg", Use("neg", x)),
]  # fmt: skip

_REPEATED = [
    _is(op, x, x) for op in ("maximum", "minimum", "logical_and", "logical_or", "bitwise_and", "bitwise_or")
]


@rule(Use("where", Constant("condition"), x, y, node="node"))
def known_choice(build: Builder, condition: Value, x: Value, y: Value, node: Node) -> Value | None:
    """A choice that falls the same way everywhere, as in the gradient of a power. The gradient of what is not
    chosen may be NaN nevertheless: 0 times infinity.
    """
    holds = condition.constant.asnumpy()
    if not condition.type.size or holds.any() != holds.all():
        return None
    return _kept(x if holds.all() else y, node)


def _idempotent(op: str) -> Rule:
    @rule(Use(op, Any("inner"), node="node"))
    def again(build: Builder, inner: Value, node: Node) -> Value | None:
        done = inner.producer is not None and inner.producer.op.name == op
        return _kept(inner, node) if done else None

    return again


@rule(Use("logical_not", Use("logical_not", x)))
def double_not(build: Builder, x: Value) -> Value | None:
    return x if x.type.dtype.is_bool else None


# ---- signs and powers --------------------------------------------------------------------------------------


def _instead(pattern: Use, op: str, *operands: str, floating: bool = False) -> Rule:
    """A rule: the expression is `op` on these named values; `floating`: only where no integer overflows."""

    def replaced(build: Builder, node: Node, *values: Value) -> Value | None:
        if floating and not all(v.type.dtype.is_floating for v in values):
            return None
        return _kept(build.emit(find(op), values)[0], node)

    pattern.node = "node"
    found = Rule(pattern, replaced)
    found.wants = ["node", *operands]
    return found


_SIGNS = [
    _instead(Use("add", x, Use("neg", y)), "sub", "x", "y"),
    _instead(Use("add", Use("neg", x), y), "sub", "y", "x"),
    _instead(Use("sub", x, Use("neg", y)), "add", "x", "y"),
    _instead(Use("mul", Use("neg", x), Use("neg", y)), "mul", "x", "y"),
    _instead(Use("div", Use("neg", x), Use("neg", y)), "div", "x", "y", floating=True),
    _instead(Use("mul", x, Constant("c", -1)), "neg", "x"),
    _instead(Use("mul", Constant("c", -1), x), "neg", "x"),
    _instead(Use("square", Use("neg", x)), "square", "x"),
    _instead(Use("logical_not", Use("equal", x, y)), "not_equal", "x", "y"),
    _instead(Use("logical_not", Use("not_equal", x, y)), "equal", "x", "y"),
    # One product instead of a power: rounded once.
    _instead(Use("pow", x, Constant("two", 2)), "square", "x"),
]  # fmt: skip


# The gradient of abs is -0.0 or 0.0 at 0.
_DEVICE_SIGNS = [
    _instead(Use("abs", Use("neg", x)), "abs", "x", floating=True),
    _instead(Use("square", Use("abs", x)), "square", "x"),
]


@rule(Use("div", x, Constant("c"), node="node"))
def over_power_of_two(build: Builder, x: Value, c: Value, node: Node) -> Value | None:
    """Division by a power of two is a multiplication: both only move the exponent."""
    if c.type.size != 1 or c.type.dtype not in (dtypes.float32, dtypes.float64):
        return None
    if x.type.dtype is not c.type.dtype:
        return None
    number = float(c.constant.asnumpy().reshape(-1)[0])
    if not math.isfinite(number) or number == 0:
        return None
    fraction, exponent = math.frexp(number)
    if abs(fraction) != 0.5 or abs(exponent) > 100:
        return None
    inverse = build.constant(Tensor(1 / number, dtype=c.type.dtype))
    return _kept(build.emit(find("mul"), [x, inverse])[0], node)


# ---- types and shapes --------------------------------------------------------------------------------------

_EXACT = {  # dtypes that hold every value of another
    dtypes.float16: (dtypes.float32, dtypes.float64),
    dtypes.bfloat16: (dtypes.float32, dtypes.float64),
    dtypes.float32: (dtypes.float64,),
    dtypes.int8: (dtypes.int16, dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64),
    dtypes.uint8: (dtypes.int16, dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64),
    dtypes.int16: (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64),
    dtypes.int32: (dtypes.int64, dtypes.float64),
    dtypes.bool_: (
        dtypes.uint8, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.float16, dtypes.float32,
        dtypes.float64,
    ),
}  # fmt: skip


_cast_of_cast = Use("cast", Use("cast", x, node="inner"), node="node")


@rule(_cast_of_cast)
def cast_back(build: Builder, x: Value, inner: Node, node: Node) -> Value | None:
    """To a floating type that holds every value of the first, and back."""
    first, middle, last = x.type.dtype, inner.outputs[0].type.dtype, node.outputs[0].type.dtype
    return x if first is last and first.is_floating and middle in _EXACT.get(first, ()) else None


@rule(_cast_of_cast)
def cast_twice(build: Builder, x: Value, inner: Node, node: Node) -> Value | None:
    """Through a type that holds every value of the first: the first cast changes nothing but gradients, which
    are rounded to each of the types.
    """
    first, middle, last = x.type.dtype, inner.outputs[0].type.dtype, node.outputs[0].type.dtype
    if middle not in _EXACT.get(first, ()):
        return None
    if first.is_floating and not last.is_floating:
        return None  # what is out of range differs from type to type
    return x if first is last else build.emit(node.op, [x], node.attrs)[0]


def _to_same_type(op: str) -> Rule:
    """`op` that gives its input's own type changes nothing."""

    @rule(Use(op, x, node="node"))
    def same_type(build: Builder, x: Value, node: Node) -> Value | None:
        return x if x.type.is_static and x.type == node.outputs[0].type else None

    return same_type


def _view_twice(outer: str, inner: str) -> Rule:
    """A reshape in one step."""

    @rule(Use(outer, Use(inner, x), node="node"))
    def view_of_view(build: Builder, x: Value, node: Node) -> Value | None:
        if outer == "reshape":
            return build.emit(node.op, [x], node.attrs)[0]
        type_ = node.outputs[0].type
        return build.emit(find("reshape"), [x], {"shape": type_.shape})[0] if type_.is_static else None

    return view_of_view


_VIEWS = ("reshape", "squeeze", "expand_dims")


def _order(node: Node) -> tuple[int, ...]:
    """The permutation of a transpose, without negative axes."""
    dims = node.attrs["dims"]
    return tuple(d % len(dims) for d in dims)


@rule(Use("transpose", Use("transpose", x, node="inner"), node="node"))
def transpose_twice(build: Builder, x: Value, inner: Node, node: Node) -> Value:
    first = _order(inner)
    dims = tuple(first[d] for d in _order(node))
    return x if dims == tuple(range(len(dims))) else build.emit(node.op, [x], {"dims": dims})[0]


@rule(Use("transpose", x, node="node"))
def transpose_nothing(build: Builder, x: Value, node: Node) -> Value | None:
    return x if _order(node) == tuple(range(len(x.type.shape))) else None


@rule(Use("broadcast_to", Use("broadcast_to", x), node="node"))
def broadcast_twice(build: Builder, x: Value, node: Node) -> Value | None:
    """The gradient would be one sum instead of two, in another order."""
    type_ = node.outputs[0].type
    return build.emit(node.op, [x], {"shape": type_.shape})[0] if type_.is_static else None


@rule(Use("reshape", Use("batch_matmul", Use("reshape", x), Use("reshape", y), node="product"), node="node"))
def product_in_one_batch(build: Builder, x: Value, y: Value, product: Node, node: Node) -> Value | None:
    """Batch axes that are joined for a product and parted behind it, as `einsum` does."""
    types = [v.type for v in (x, y, node.outputs[0], *product.inputs, product.outputs[0])]
    if not all(t.is_static for t in types):
        return None
    a, b, whole, flat_a, flat_b, flat = (t.shape for t in types)
    if not len(a) == len(b) == len(whole) > 2 or not a[:-2] == b[:-2] == whole[:-2]:
        return None
    if (a[-2:], b[-2:], whole[-2:]) != (flat_a[-2:], flat_b[-2:], flat[-2:]) or flat_a[:-2] != flat_b[:-2]:
        return None
    return build.emit(product.op, [x, y], product.attrs)[0]


# ---- joining and cutting -----------------------------------------------------------------------------------


@rule(Use("concat", ..., node="node"))
def concat_of_pieces(build: Builder, node: Node) -> Value | None:
    """One member, or all the pieces of a split in their order."""
    if len(node.inputs) == 1:
        return node.inputs[0]
    source = node.inputs[0].producer
    if source is None or source.op.name != "split" or node.inputs != source.outputs:
        return None
    return source.inputs[0] if _axis(node) == _axis(source) else None


@rule(Use("split", x, node="node"))
def split_of_concat(build: Builder, x: Value, node: Node) -> Sequence[Value] | None:
    """One piece, or a concatenation cut where it was joined."""
    if len(node.outputs) == 1:
        return [x]
    source = x.producer
    if source is None or source.op.name != "concat" or _axis(node) != _axis(source):
        return None
    if len(source.inputs) != len(node.outputs):
        return None
    alike = all(a.type == b.type for a, b in zip(source.inputs, node.outputs))
    return list(source.inputs) if alike else None


def _axis(node: Node) -> int:
    value = node.outputs[0]
    return node.attrs["axis"] % len(value.type.shape)


RULES = [
    *_NEUTRAL, _is("where", y, x, x), *_SIGNS, over_power_of_two,
    *(_idempotent(op) for op in ("relu", "relu6", "abs", "sign", "floor", "ceil", "trunc")),
    cast_back, *(_to_same_type(op) for op in ("cast", *_VIEWS, "broadcast_to", "sum_to")),
    *(_view_twice(outer, inner) for outer in _VIEWS for inner in _VIEWS),
    transpose_twice, transpose_nothing, product_in_one_batch, concat_of_pieces, split_of_concat,
]  # fmt: skip


# ---- on devices --------------------------------------------------------------------------------------------


@rule(Use("transpose", x, node="node"))
def transpose_of_ones(build: Builder, x: Value, node: Node) -> Value | None:
    """Moving axes of size 1 moves no element."""
    shape = x.type.shape
    if not x.type.is_static:
        return None
    order = [d for d in _order(node) if shape[d] != 1]
    if order != sorted(order):
        return None
    return build.emit(find("reshape"), [x], {"shape": node.outputs[0].type.shape})[0]


@rule(Use("transpose", Any("result"), node="node"))
def transposes_around(build: Builder, result: Value, node: Node) -> Value | None:
    """An elementwise op between a transpose and its inverse."""
    middle = result.producer
    if middle is None or not middle.op.definition.elementwise or len(middle.inputs) != 1:
        return None
    before = middle.inputs[0].producer
    if before is None or before.op.name != "transpose":
        return None
    first = _order(before)
    if [first[d] for d in _order(node)] != list(range(len(first))):
        return None
    return build.emit(middle.op, before.inputs, middle.attrs)[0]


def _broadcast_anyway(op: str, position: int) -> Rule:
    """An operand that is stretched to the shape of the other: the op does that itself."""
    stretched = Use("broadcast_to", x)

    @rule(Use(op, *((stretched, y) if position == 0 else (y, stretched)), node="node"))
    def broadcast_by_op(build: Builder, x: Value, y: Value, node: Node) -> Value | None:
        if y.type.shape != node.outputs[0].type.shape:
            return None
        return build.emit(node.op, [x, y] if position == 0 else [y, x], node.attrs)[0]

    return broadcast_by_op


@rule(Use("strided_slice", x, node="node"))
def whole_slice(build: Builder, x: Value, node: Node) -> Value | None:
    how = node.attrs
    if any(how["begin"]) or tuple(how["size"]) != tuple(x.type.shape) or set(how["stride"]) - {1}:
        return None
    same = tuple(how["shape"]) == tuple(x.type.shape)
    return x if same else build.emit(find("reshape"), [x], {"shape": how["shape"]})[0]


@rule(Use("pad_constant", x, node="node"))
def no_padding(build: Builder, x: Value, node: Node) -> Value | None:
    return None if any(node.attrs["pads"]) else x


DEVICE_RULES = [
    *RULES, *_REPEATED, *_DEVICE_SIGNS, double_not, known_choice, cast_twice, broadcast_twice,
    transpose_of_ones, transposes_around, whole_slice, no_padding,
    # Only gradients see these.
    _is("stop_gradient", x), _is("scale_gradient", x, y),
    *(_broadcast_anyway(name, i) for name, op in registry.items() for i in (0, 1)
      if op.definition.elementwise == "broadcast" and len(op.definition.params) == 2),
    # The mean of one element may turn -0.0 into 0.0, this does not.
    *(_to_same_type(op) for op in ("adaptive_avg_pool", "adaptive_avg_pool_grad", "tile")),
]  # fmt: skip


def run(graph: Graph) -> int:
    """For graphs that may be differentiated."""
    return rewrite(graph, RULES)


def run_device(graph: Graph) -> int:
    """For lowered graphs."""
    return rewrite(graph, DEVICE_RULES)
