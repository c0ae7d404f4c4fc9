"""Rules of attention, dropout and losses."""

from __future__ import annotations

import math

from mycelia.engine.base import dtypes
from mycelia.engine.ir.graph import Node
from mycelia.engine.sharding.rules import Rule, numbered, rule, shapes

# ---- attention ---------------------------------------------------------------------------------------------


def _attended(node: Node, first: int, mask: int):
    """Labels of queries, keys, rows of scores, and the mask: sequences and heads are divided, and queries
    where their places do not count. Dropped weights are drawn for all heads at once.
    """
    rank = node.inputs[first].type.rank
    is_free = not node.attrs["p"]
    lead = numbered(rank - 2, () if is_free else range(rank))
    query = ("T",) if is_free and not node.attrs["is_causal"] else ()
    scores = (*node.inputs[first].type.shape[:-1], node.inputs[first + 1].type.shape[-2])
    axes = (*lead, query, ())
    given = shapes(node)[mask]
    masked = None
    if given is not None:
        start = rank - len(given)
        masked = tuple(axes[start + i] if n == scores[start + i] else () for i, n in enumerate(given))
    key = None if shapes(node)[mask + 1] is None else ((),)
    return axes, (*lead, (), ()), (*lead, query), masked, key


@rule("attention")
def _attention(node: Node) -> Rule:
    query, keys, rows, mask, key = _attended(node, 0, 3)
    return Rule([query, keys, keys, mask, key], [query, rows])


@rule("attention_grad")
def _attention_grad(node: Node) -> Rule:
    query, keys, rows, mask, key = _attended(node, 1, 6)
    return Rule([query, query, keys, keys, query, rows, mask, key], [query, keys, keys])


@rule("dropout")
def _dropout(node: Node) -> Rule:
    """The elements that one process would drop: what is kept is drawn for all, and each rank takes its
    part.
    """
    given = node.inputs[0].type
    axes = numbered(given.rank)

    def emit(rewriter, division, operands):
        x, key = operands
        if division.is_whole:
            return rewriter.emit(node.op, operands, **node.attrs)
        ones = rewriter.one("broadcast_to", [rewriter.number(1, given.dtype)], shape=given.shape)
        kept = rewriter.one(node.op, [ones, key], **node.attrs)
        now, then = division.placed(((),) * given.rank), division.placed(axes)
        return rewriter.emit("mul", [x, rewriter.moved(kept, now, then)])

    return Rule([axes, ((),)], [axes], emit=emit)


# ---- losses ------------------------------------------------------------------------------------------------


@rule("softmax_cross_entropy_with_logits")
def _softmax_cross_entropy(node: Node) -> Rule:
    both = (("n",), ())
    return Rule([both, both], [(("n",),), both])


@rule("sparse_softmax_cross_entropy_with_logits")
def _sparse_cross_entropy(node: Node) -> Rule:
    """The mean is over the samples of all ranks that count."""
    how = node.attrs["reduction"]

    def emit(rewriter, division, operands):
        if how != "mean" or division.parts("n") == 1:
            return rewriter.emit(node.op, operands, **node.attrs)
        logits, labels = operands
        attrs = {**node.attrs, "reduction": "sum"}
        loss, gradient = rewriter.emit(node.op, operands, **attrs)
        ignored = rewriter.number(node.attrs["ignore_index"], dtypes.int64)
        counts = rewriter.one("not_equal", [rewriter.one("cast", [labels], dtype=dtypes.int64), ignored])
        counts = rewriter.one("cast", [counts], dtype=logits.type.dtype)
        count = rewriter.one("sum", [counts], dim=(0,))
        group = rewriter.group(division.atoms("n"))
        count = rewriter.one("all_reduce_sum", [count], reduction="sum", group=group)
        one = rewriter.number(1, logits.type.dtype)
        scale = rewriter.one("div", [one, rewriter.one("maximum", [count, one])])
        return [rewriter.one("mul", [x, scale]) for x in (loss, gradient)]

    both = (("n",), ())
    return Rule([both, (("n",),)], [(("n",),) if how == "none" else (), both], emit=emit)


@rule("pick_class")
def _pick_class(node: Node) -> Rule:
    return Rule([(("n",), ()), (("n",),)], [(("n",),)])


@rule("place_class")
def _place_class(node: Node) -> Rule:
    return Rule([(("n",),), (("n",),)], [(("n",), ())])


def _of_all(node: Node, places, emit_operands):
    """A mean is a sum of parts, divided by the number of all elements."""
    how, count = node.attrs["reduction"], max(1, math.prod(node.inputs[places].type.shape))

    def emit(rewriter, division, operands):
        if how != "mean" or division.is_whole:
            return rewriter.emit(node.op, operands, **node.attrs)
        share = rewriter.number(1 / count, operands[places].type.dtype)
        return emit_operands(rewriter, operands, share)

    return emit


@rule("squared_error")
def _squared_error(node: Node) -> Rule:
    axes = numbered(node.inputs[0].type.rank)

    def summed(rewriter, operands, share):
        total = rewriter.one(node.op, operands, reduction="sum")
        return rewriter.emit("mul", [total, share])

    made = axes if node.attrs["reduction"] == "none" else ()
    return Rule([axes, axes], [made], emit=_of_all(node, 0, summed))


@rule("squared_error_grad")
def _squared_error_grad(node: Node) -> Rule:
    axes = numbered(node.inputs[1].type.rank)

    def summed(rewriter, operands, share):
        dy = rewriter.one("mul", [operands[0], share])
        return rewriter.emit(node.op, [dy, *operands[1:]], reduction="sum")

    dy = axes if node.inputs[0].type.rank == len(axes) else ()
    return Rule([dy, axes, axes], [axes], emit=_of_all(node, 1, summed))
