"""Batching rules: how each op runs on a batch, whose axis comes first, at once.

Most ops belong to a family: elementwise, as their block says, one axis shifted, leading axes free, first axis
joined with the batch. The rest have rules of their own, and what has none runs example by example and is
stacked: of an op that nothing is known about nothing is guessed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from mycelia.engine import _C
from mycelia.engine.base import errors
from mycelia.engine.ops.arrays.shape import movedim
from mycelia.engine.ops.define import LIST, find

Tensor = _C.Tensor


class Call:
    """A call of an op on a batch: `operands` flat, those marked in `batched` with the batch axis in front;
    `in_types` and `out_types` are those of one example.
    """

    def __init__(self, op, operands, batched, counts, attrs, in_types, out_types, size):
        self.op, self.operands, self.batched, self.counts = op, operands, batched, counts
        self.attrs, self.in_types, self.out_types, self.size = attrs, in_types, out_types, size

    def run(self, operands: list, **attrs: Any) -> tuple:
        """The op on other operands and attributes; always a tuple."""
        definition = self.op.definition
        inputs = operands
        if definition.params and definition.params[0][1] == LIST:
            inputs = [operands[: self.counts[0]], *operands[self.counts[0] :]]
        found = self.op(*inputs, **{**self.attrs, **attrs})
        return found if isinstance(found, tuple) else (found,)

    def shaped(self, outputs: tuple) -> list[Tensor]:
        """`outputs` as batches of the output types."""
        return [reshaped(o, (self.size, *t.shape)) for o, t in zip(outputs, self.out_types)]

    def whole(self, index: int) -> Tensor | None:
        """Operand `index` as a batch, repeated if all examples share it."""
        operand = self.operands[index]
        if operand is None or self.batched[index]:
            return operand
        return broadcast_to(operand, (self.size, *operand.shape))

    def rank(self, index: int = 0) -> int:
        return len(self.in_types[index].shape)

    def only(self, *positions: int) -> bool:
        """Whether no operand but these is a batch."""
        return not any(b for i, b in enumerate(self.batched) if i not in positions)


def reshaped(x: Tensor, shape: tuple) -> Tensor:
    return x if x.shape == shape else find("reshape")(x, shape)


def broadcast_to(x: Tensor, shape: tuple) -> Tensor:
    return x if x.shape == shape else find("broadcast_to")(x, shape)


_RULES: dict[str, Callable[[Call], Any]] = {}


def rule(*names: str) -> Callable:
    """A decorator: the function is the rule of these ops."""

    def set_rule(function: Callable[[Call], Any]) -> Callable[[Call], Any]:
        for name in names:
            _RULES[name] = function
        return function

    return set_rule


def rule_of(name: str) -> Callable[[Call], Any]:
    """The rule of an op: its own, that of elementwise ops if its block says so, else a loop."""
    found = _RULES.get(name)
    if found is None:
        found = _RULES[name] = one_by_one if find(name).definition.elementwise is None else elementwise
    return found


# ---- families ----------------------------------------------------------------------------------------------


def one_by_one(call: Call) -> list[Tensor]:
    """The op on each example, results stacked: right for every op, at the speed of a loop."""
    stack = find("stack")
    rows: list[tuple] = []
    for i in range(call.size):
        examples = [x[i] if b else x for x, b in zip(call.operands, call.batched)]
        updated = [call.op.definition.param_names.index(name) for name in call.op.definition.updates]
        for position in updated:  # the op is to write into a tensor of its own
            if not call.batched[position] and examples[position] is not None:
                examples[position] = examples[position] * 1
        found = call.run(examples)
        made = tuple(examples[p] for p in updated)
        rows.append(made if updated and found[0] is made[0] else made + found)
    if not rows:
        return [_C.empty(t.dtype, (0, *t.shape)) for t in call.out_types]
    columns = list(zip(*rows))
    if any(t.shape != column[0].shape for column in columns for t in column):
        raise errors.error(
            errors.MyceliaRuntimeError,
            call.op.name,
            "the shape of its result depends on the data and differs between the examples of a vmap",
        )
    return [stack(list(column), 0) for column in columns]


def aligned(call: Call, rank: int) -> list:
    """The operands as batches of examples with at least `rank` axes, so that they broadcast."""
    made = []
    for x, batched, type_ in zip(call.operands, call.batched, call.in_types):
        if batched and len(type_.shape) < rank:
            ones = (1,) * (rank - len(type_.shape))
            x = reshaped(x, (call.size, *ones, *type_.shape))
        made.append(x)
    return made


def elementwise(call: Call) -> tuple:
    ranks = [len(t.shape) for t in call.in_types if t is not None]
    made = aligned(call, max(ranks))
    if call.op.definition.elementwise == "same" and len(made) > 1:
        made = [
            broadcast_to(x, (call.size, *t.shape)) if not b and t is not None else x
            for x, b, t in zip(made, call.batched, call.in_types)
        ]
    return tuple(call.shaped(call.run(made)))


#: Ops whose attribute names an axis, or some of them; None means all, and so does () where it is a sum.
_AXES = {
    "softmax": "axis", "log_softmax": "axis", "sum": "dim", "mean": "axis", "prod": "axis", "all": "axis",
    "any": "axis", "reduce_max": "axis", "reduce_min": "axis", "l2_norm": "axis", "logsumexp": "dim",
    "argmax": "axis", "argmin": "axis", "max_with_index": "axis", "min_with_index": "axis",
    "median": "axis", "cumsum": "axis", "cumprod": "axis", "cummax": "axis", "cummin": "axis",
    "logcumsumexp": "axis", "flip": "dims", "sort": "axis", "topk": "axis", "split": "axis",
    "unstack": "axis", "l2_normalize": "axis", "fft_complex": "axes", "fft_real": "axis",
    "fft_half_to_real": "axis", "softmax_grad": "axis", "log_softmax_grad": "axis", "place_along": "axis",
    "scatter_elements": "axis", "gather_d": "dim",
}  # fmt: skip


@rule(*_AXES)
def along_axes(call: Call) -> list[Tensor]:
    attribute = _AXES[call.op.name]
    value = call.attrs[attribute]
    rank = call.rank()
    operands = [call.whole(i) for i in range(len(call.operands))]
    if rank == 0:  # an example that is a number is a row of one
        return call.shaped(call.run([_as_row(x, call.size) for x in operands], **_first(call, attribute)))
    if value is None and _is_single(call, attribute):
        return call.shaped(call.run([reshaped(operands[0], (call.size, -1))], **{attribute: 1}))
    if value is None or value == () and call.op.name not in ("flip", "fft_complex"):
        axes: Any = tuple(range(1, rank + 1))
    elif isinstance(value, tuple):
        axes = tuple(a % rank + 1 for a in value)
    else:
        axes = value % rank + 1
    return call.shaped(call.run(operands, **{attribute: axes}))


def _is_single(call: Call, attribute: str) -> bool:
    return next(a.kind for a in call.op.definition.attrs if a.name == attribute) == "int"


def _first(call: Call, attribute: str) -> dict:
    return {attribute: 1 if _is_single(call, attribute) else (1,)}


def _as_row(x: Tensor | None, size: int) -> Tensor | None:
    return x if x is None else reshaped(x, (size, 1))


#: Ops on the last axes: what is in front is a batch already. Operands are repeated to the same leading axes.
_LEADING = """cholesky inverse det slogdet matrix_exp eigh eig qr svd tril triu matrix_solve
    triangular_matrix_solve lu pseudo_inverse singular_values row_order geqrf matrix_logarithm
    betainc""".split()


@rule(*_LEADING)
def leading(call: Call) -> list[Tensor]:
    return call.shaped(call.run([call.whole(i) for i in range(len(call.operands))]))


#: Ops whose first axis is a batch of its own, and which operands have it; the others must be shared.
_JOINED = {
    "avg_pool": (0,), "avg_pool_grad": (0,), "max_pool": (0,), "max_pool_grad": (0, 1),
    "max_pool_index": (0,),
    "adaptive_avg_pool": (0,), "adaptive_avg_pool_grad": (0,), "adaptive_max_pool": (0,),
    "adaptive_max_pool_index": (0,), "pool_take": (0, 1), "pool_scatter": (0, 1), "max_unpool": (0, 1),
    "im2col": (0,), "col2im": (0,), "lrn": (0,), "channel_window_sum": (0,), "batch_norm_infer": (0,),
    "group_norm": (0,), "bias_add": (0,), "prelu": (0,), "pick_class": (0, 1), "place_class": (0, 1),
    "softmax_cross_entropy_with_logits": (0, 1),
}  # fmt: skip


@rule(*_JOINED)
def joined(call: Call) -> list[Tensor]:
    positions = _JOINED.get(call.op.name, (0,))
    if not call.only(*positions) or call.rank() == 0:
        return one_by_one(call)
    operands = list(call.operands)
    for position in positions:
        x = call.whole(position)
        operands[position] = reshaped(x, (x.shape[0] * x.shape[1], *x.shape[2:]))
    attrs = {}
    if (
        "size" in call.attrs
        and len(call.attrs["size"]) == call.rank()
        and call.op.name != "adaptive_avg_pool"
    ):
        attrs["size"] = (call.size * call.attrs["size"][0], *call.attrs["size"][1:])
    return call.shaped(call.run(operands, **attrs))


# ---- shapes ------------------------------------------------------------------------------------------------


@rule("reshape", "expand_dims", "squeeze")
def _reshape(call: Call) -> list[Tensor]:
    return call.shaped((call.operands[0],))


@rule("broadcast_to")
def _broadcast_to(call: Call) -> tuple:
    (x,) = aligned(call, len(call.out_types[0].shape))
    return (broadcast_to(x, (call.size, *call.out_types[0].shape)),)


@rule("transpose")
def _transpose(call: Call) -> tuple:
    dims = call.attrs["dims"]
    rank = call.rank()
    order = range(rank)[::-1] if dims is None else (d % rank for d in dims)
    return call.run(call.operands, dims=(0, *(d + 1 for d in order)))


@rule("tile")
def _tile(call: Call) -> list[Tensor]:
    dims = call.attrs["dims"]
    rank = max(len(dims), call.rank())
    dims = (1,) * (rank - len(dims)) + tuple(dims)
    return call.shaped(call.run(aligned(call, rank), dims=(1, *dims)))


@rule("roll")
def _roll(call: Call) -> list[Tensor]:
    dims = call.attrs["dims"]
    rank = call.rank()
    if not dims:
        flat = reshaped(call.operands[0], (call.size, -1))
        return call.shaped(call.run([flat], dims=(1,)))
    return call.shaped(call.run(call.operands, dims=tuple(d % rank + 1 for d in dims)))


@rule("concat")
def _concat(call: Call) -> tuple:
    operands = [call.whole(i) for i in range(len(call.operands))]
    return call.run(operands, axis=call.attrs["axis"] % call.rank() + 1)


@rule("stack")
def _stack(call: Call) -> tuple:
    operands = [call.whole(i) for i in range(len(call.operands))]
    return call.run(operands, axis=call.attrs["axis"] % (call.rank() + 1) + 1)


@rule("strided_slice")
def _strided_slice(call: Call) -> tuple:
    a = call.attrs
    return call.run(
        call.operands,
        begin=(0, *a["begin"]),
        size=(call.size, *a["size"]),
        stride=(1, *a["stride"]),
        shape=(call.size, *a["shape"]),
    )


@rule("strided_place")
def _strided_place(call: Call) -> tuple:
    a = call.attrs
    return call.run(
        call.operands, begin=(0, *a["begin"]), stride=(1, *a["stride"]), shape=(call.size, *a["shape"])
    )


@rule("strided_assign", "strided_write")
def _strided_assign(call: Call) -> tuple:
    a = call.attrs
    value = aligned(call, len(a["size"]))[1]
    return find("strided_assign")(
        call.whole(0), value, (0, *a["begin"]), (call.size, *a["size"]), (1, *a["stride"])
    )


@rule("pad_constant")
def _pad_constant(call: Call) -> tuple:
    return call.run(call.operands, pads=_pads(call))


def _pads(call: Call) -> tuple:
    """`pads` of an example with none for the batch axis, in the order that the op has them."""
    pads = tuple(call.attrs["pads"])
    return (0, 0, *pads)


@rule("diagonal")
def _diagonal(call: Call) -> tuple:
    rank = call.rank()
    dims = {name: call.attrs[name] % rank + 1 for name in ("dim1", "dim2")}
    return call.run(call.operands, **dims)


@rule("diagonal_place")
def _diagonal_place(call: Call) -> tuple:
    shape = call.attrs["shape"]
    dims = {name: call.attrs[name] % len(shape) + 1 for name in ("dim1", "dim2")}
    return call.run(call.operands, shape=(call.size, *shape), **dims)


@rule("sum_to")
def _sum_to(call: Call) -> tuple:
    """The sum over what broadcasting had repeated."""
    shape = call.attrs["shape"]
    lead = call.rank() - len(shape)
    padded = reshaped(call.operands[0], (call.size, *call.in_types[0].shape))
    target = (call.size, *(1,) * lead, *shape)
    return (reshaped(find("sum_to")(padded, target), (call.size, *shape)),)


@rule("masked_fill")
def _masked_fill(call: Call) -> tuple:
    if not call.batched[2]:
        return tuple(call.shaped(call.run(aligned(call, max(call.rank(0), call.rank(1))))))
    x, mask, value = aligned(call, max(call.rank(0), call.rank(1)))
    return (find("where")(mask, value, x),)


@rule("recomputed")
def _recomputed(call: Call) -> tuple:
    return call.run([call.whole(0), call.operands[1]])


@rule("scale_gradient")
def _scale_gradient(call: Call) -> tuple:
    return one_by_one(call) if call.batched[1] else call.run(call.operands)


@rule("dropout")
def _dropout(call: Call) -> tuple:
    """One draw for the whole batch: each example has a mask of its own."""
    return one_by_one(call) if call.batched[1] else call.run(call.operands)


# ---- products ----------------------------------------------------------------------------------------------


@rule("random_choice")
def _random_choice(call: Call) -> list[Tensor]:
    """With one key for all, the examples draw as the rows of one call do."""
    if call.batched[0]:
        return one_by_one(call)
    weights = call.whole(1)
    return call.shaped(call.run([call.operands[0], reshaped(weights, (-1, weights.shape[-1]))]))


@rule("mat_mul")
def _mat_mul(call: Call) -> tuple:
    x, y = call.operands
    if call.batched[0] and not call.batched[1] and not call.attrs["transpose_a"]:
        rows = reshaped(x, (x.shape[0] * x.shape[1], x.shape[2]))
        return tuple(call.shaped(call.run([rows, y])))
    return (find("batch_matmul")(x, y, call.attrs["transpose_a"], call.attrs["transpose_b"]),)


@rule("batch_matmul")
def _batch_matmul(call: Call) -> list[Tensor]:
    return call.shaped(call.run(aligned(call, max(call.rank(0), call.rank(1)))))


@rule("dense")
def _dense(call: Call) -> list[Tensor]:
    x, w, b = call.operands
    if call.only(0) and call.rank() > 0:
        return call.shaped(call.run([x, w, b]))
    rows = math.prod(call.in_types[0].shape[:-1])
    inner = call.in_types[0].shape[-1]
    x = reshaped(x, (call.size, rows, inner)) if call.batched[0] else reshaped(x, (rows, inner))
    y = find("batch_matmul")(x, w, False, True)
    if y.ndim == 2:
        y = broadcast_to(y, (call.size, *y.shape))
    if b is not None:
        y = y + (reshaped(b, (call.size, 1, b.shape[-1])) if call.batched[2] else b)
    return call.shaped((y,))


def _side_by_side(x: Tensor, axis: int) -> Tensor:
    """The examples of a batch next to one another along `axis` of an example."""
    order = [i + 1 for i in range(x.ndim - 1)]
    order.insert(axis, 0)
    x = find("transpose")(x, tuple(order))
    return reshaped(x, (*x.shape[:axis], x.shape[axis] * x.shape[axis + 1], *x.shape[axis + 2 :]))


def _apart(call: Call, x: Tensor, axis: int) -> Tensor:
    """The inverse of `_side_by_side` for a result."""
    shape = call.out_types[0].shape
    x = reshaped(x, (*shape[:axis], call.size, *shape[axis:]))
    return find("transpose")(x, (axis, *(i for i in range(x.ndim) if i != axis)))


def _groups(call: Call) -> dict:
    return {"group": call.attrs["group"] * call.size}


@rule("conv")
def _conv(call: Call) -> list[Tensor]:
    """Shared weights: more images; weights of each example: more groups of channels."""
    if call.only(0):
        return joined(call)
    if not call.batched[1]:
        return one_by_one(call)
    x, w = _side_by_side(call.whole(0), 1), _side_by_side(call.operands[1], 0)
    b = call.whole(2)
    found = call.run([x, w, None if b is None else reshaped(b, (-1,))], **_groups(call))
    return [_apart(call, found[0], 1)]


@rule("conv_input_grad")
def _conv_input_grad(call: Call) -> list[Tensor]:
    if call.only(0):
        return joined(call)
    dy, w = _side_by_side(call.whole(0), 1), _side_by_side(call.operands[1], 0)
    return [_apart(call, call.run([dy, w], **_groups(call))[0], 1)]


@rule("conv_weight_grad")
def _conv_weight_grad(call: Call) -> list[Tensor]:
    x, dy = _side_by_side(call.whole(0), 1), _side_by_side(call.whole(1), 1)
    return [_apart(call, call.run([x, dy], **_groups(call))[0], 0)]


# ---- normalizations ----------------------------------------------------------------------------------------


@rule("layer_norm")
def _layer_norm(call: Call) -> list[Tensor]:
    x, gamma, beta = call.operands
    if not call.batched[0] or not call.only(0):
        return one_by_one(call)
    rank = call.rank()
    axes = {name: call.attrs[name] % rank + 1 for name in ("begin_norm_axis", "begin_params_axis")}
    return call.shaped(call.run([x, gamma, beta], **axes))


@rule("rms_norm")
def _rms_norm(call: Call) -> list[Tensor]:
    return call.shaped(call.run(call.operands)) if call.only(0) else one_by_one(call)


@rule("squared_error")
def _squared_error(call: Call) -> list[Tensor]:
    difference = find("square")(call.whole(0) - call.whole(1))
    if call.attrs["reduction"] == "none":
        return [difference]
    kind = "mean" if call.attrs["reduction"] == "mean" else "sum"
    rows = reshaped(difference, (call.size, -1))
    return call.shaped((find(kind)(rows, (1,)),))


# ---- indexing ----------------------------------------------------------------------------------------------


@rule("gather")
def _gather(call: Call) -> list[Tensor]:
    """Shared table: one gather; shared indices: another axis; both differ: batch axes of the op."""
    x, indices = call.operands
    axis, batch_dims = call.attrs["axis"] % call.rank(), call.attrs["batch_dims"]
    if call.batched[0]:
        if not call.batched[1] and not batch_dims:
            return call.shaped(call.run([x, indices], axis=axis + 1))
        return call.shaped(call.run([x, call.whole(1)], axis=axis + 1, batch_dims=batch_dims + 1))
    if batch_dims:
        return call.shaped(call.run([call.whole(0), indices], axis=axis + 1, batch_dims=batch_dims + 1))
    found = call.run([x, indices], axis=axis)[0]  # [.., batch, I.., R..]
    return call.shaped((movedim(found, axis, 0),))


@rule("embedding")
def _embedding(call: Call) -> list[Tensor]:
    return call.shaped(call.run(call.operands)) if call.only(0) else one_by_one(call)


@rule("one_hot")
def _one_hot(call: Call) -> list[Tensor]:
    if not call.only(0):
        return one_by_one(call)
    axis = call.attrs["axis"]
    return call.shaped(call.run(call.operands, axis=axis if axis == -1 else axis + 1))


def _with_rows(call: Call, indices: Tensor) -> Tensor:
    """Indices [batch, I.., k] with the number of the example in front of each: [batch, I.., k + 1]."""
    shape = (*indices.shape[:-1], 1)
    numbers = Tensor(list(range(call.size)), indices.dtype)
    numbers = broadcast_to(reshaped(numbers, (call.size, *(1,) * (len(shape) - 1))), shape)
    return find("concat")([numbers, indices], -1)


@rule("gather_nd")
def _gather_nd(call: Call) -> tuple:
    if not call.batched[0]:
        return call.run(call.operands)
    return call.run([call.operands[0], _with_rows(call, call.whole(1))])


@rule("scatter_nd")
def _scatter_nd(call: Call) -> tuple:
    indices = _with_rows(call, call.whole(0))
    return call.run([indices, call.whole(1)], shape=(call.size, *call.attrs["shape"]))


@rule("tensor_scatter")
def _tensor_scatter(call: Call) -> tuple:
    return call.run([call.whole(0), _with_rows(call, call.whole(1)), call.whole(2)])


@rule("shape_of")
def _shape_of(call: Call) -> list[Tensor]:
    shape = Tensor(list(call.in_types[0].shape), call.out_types[0].dtype)
    return [broadcast_to(shape, (call.size, *shape.shape))]
